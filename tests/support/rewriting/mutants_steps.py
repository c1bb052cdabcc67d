"""Wrong variants of the guards of activation, binary, residual, affine and snapping rules."""

from __future__ import annotations

from support.rewriting.mutant import Mutant

MUTANTS = (
    # activation
    Mutant("make_clip_of_relu", "and eltwise.alpha == 0.0", ""),
    Mutant("make_clip_of_relu", "and eltwise.alpha == 0.0", "and eltwise.alpha >= 0.0"),
    Mutant("drop_relu_with_slope_one", "and eltwise.alpha == 1.0", ""),
    Mutant("drop_relu_with_slope_one", "and eltwise.alpha == 1.0", "and eltwise.alpha >= 1.0"),
    Mutant("make_clip_of_eltwise", "Clip(eltwise.alpha, eltwise.beta)", "Clip(lo=eltwise.alpha)"),
    Mutant("make_clip_of_eltwise", "Clip(eltwise.alpha, eltwise.beta)", "Clip(0.0, eltwise.beta)"),
    Mutant(
        "make_affine_of_linear", "Affine(eltwise.alpha, eltwise.beta),)", "Affine(eltwise.alpha),)"
    ),
    Mutant("make_affine_of_linear", 'if eltwise.alg == "linear"', "if eltwise.beta"),
    Mutant("make_round_of_eltwise", 'if eltwise.alg == "round"', "if not eltwise.alpha"),
    Mutant("make_round_of_eltwise", "(Round(),) if", "() if"),
    Mutant("make_affine_of_pow", "and eltwise.beta == 1.0", ""),
    Mutant(
        "make_affine_of_pow", "(Affine(eltwise.alpha),) if eltwise.alg ==", "() if eltwise.alg =="
    ),
    Mutant("make_relu_of_prelu", "if prelu.slope.array is None", "if True"),
    Mutant("make_relu_of_prelu", "prelu.slope.least", "abs(prelu.slope).least"),
    Mutant("make_clip_of_hardsigmoid", 'if eltwise.alg != "hardsigmoid":', "if False:"),
    Mutant(
        "make_clip_of_hardsigmoid",
        "inner = Affine(eltwise.alpha, eltwise.beta)",
        "inner = Affine(eltwise.alpha)",
    ),
    Mutant(
        "make_clip_of_hardsigmoid", "if weight(items) > weight((before, eltwise)):", "if False:"
    ),
    Mutant("make_clip_of_hardsigmoid", "_UNIT = Clip(0.0, 1.0)", "_UNIT = Clip(-1.0, 1.0)"),
    # binary
    Mutant("make_affine_of_binary", 'if binary.alg == "sub"', 'if binary.alg in {"sub", "div"}'),
    Mutant("make_affine_of_binary", "Affine(_ONE, -operand)", "Affine(_ONE, operand)"),
    Mutant("make_affine_of_division", "inverse = _ONE / operand", "inverse = operand"),
    Mutant("make_affine_of_division", 'binary.alg != "div" or', ""),
    Mutant("make_affine_of_division", "Refusal(problem) if problem else", ""),
    Mutant("make_affine_of_division", 'not_storable("1/c", inverse)', "None"),
    Mutant("make_clip_of_binary", 'if binary.alg == "min"', "if True"),
    Mutant("make_clip_of_binary", "Clip(lo=binary.operand)", "Clip(hi=binary.operand)"),
    # residual
    Mutant("drop_sum_of_nothing", "if residual.scale == 0.0", "if residual.zero_point == 0"),
    Mutant("drop_sum_of_nothing", "if residual.scale == 0.0", "if residual.scale != 1.0"),
    # affine
    Mutant("drop_identity_affine", "and affine.shift.is_all(0.0) else", "else"),
    Mutant("drop_identity_affine", "if affine.scale.is_all(1.0) and", "if"),
    Mutant("drop_identity_affine", "affine.scale.is_all(1.0)", "abs(affine.scale).is_all(1.0)"),
    Mutant(
        "compose_affines", "second.scale * first.shift + second.shift", "first.shift + second.shift"
    ),
    Mutant("compose_affines", 'not_storable("scale", scale) or', ""),
    Mutant(
        "compose_affines",
        'problem = not_storable("scale", scale) or not_storable("shift", shift)',
        "problem = None",
    ),
    Mutant("compose_affines", "if weight((affine,)) > weight((first, second)):", "if False:"),
    Mutant(
        "compose_affines",
        "weight((affine,)) > weight((first, second))",
        "weight((affine,)) > 2 * weight((first, second))",
    ),
    Mutant(
        "absorb_affine_in_acc",
        "if moved.is_all(1.0) or not acc.shift.is_all(0.0):",
        "if moved.is_all(1.0):",
    ),
    Mutant(
        "absorb_affine_in_acc",
        "replace(acc, scale=scale), Affine(_ONE, affine.shift)",
        "replace(acc, scale=scale), Affine(affine.scale, affine.shift)",
    ),
    Mutant(
        "absorb_affine_in_acc",
        "replace(acc, scale=scale, shift=shift),)",
        "replace(acc, scale=scale),)",
    ),
    Mutant(
        "drop_before_constant",
        "if not affine.scale.is_all(0.0):\n        return None\n    if isinstance(step, Eltwise)",
        "if isinstance(step, Eltwise)",
    ),
    Mutant(
        "drop_before_constant",
        "if not affine.scale.is_all(0.0):\n        return None\n    if isinstance(step, Eltwise)",
        "if affine.scale.least > 0.0:\n        return None\n    if isinstance(step, Eltwise)",
    ),
    Mutant("drop_before_constant", '{"log", "sqrt", "pow", "exp"}', '{"sqrt", "pow", "exp"}'),
    Mutant("drop_before_constant", '{"log", "sqrt", "pow", "exp"}', '{"log", "pow", "exp"}'),
    Mutant("drop_before_constant", '{"log", "sqrt", "pow", "exp"}', '{"log", "sqrt", "pow"}'),
    Mutant("drop_before_constant", 'step.alg == "div" and isinstance(step.operand, Leaf)', "False"),
    Mutant(
        "drop_before_constant",
        'step.alg == "div" and isinstance(step.operand, Leaf)',
        'step.alg == "mul" and isinstance(step.operand, Leaf)',
    ),
    Mutant("fold_constant", "if not np.isfinite(value).all():", "if False:"),
    Mutant(
        "fold_constant",
        "if not affine.scale.is_all(0.0):\n        return None\n    if isinstance(step, Binary)",
        "if isinstance(step, Binary)",
    ),
    Mutant(
        "fold_constant",
        "Refusal(problem) if problem else (Affine(_ZERO, Vec(value)),)",
        "(Affine(_ZERO, Vec(value)),)",
    ),
    Mutant("fold_constant", "(Affine(_ZERO, Vec(value)),)", "(affine,)"),
    Mutant("split_per_channel_shift", "if bool((scale.array == 0.0).any()):", "if False:"),
    Mutant(
        "split_per_channel_shift", "if error > NOISE * max(1.0, abs(middle.least)):", "if False:"
    ),
    Mutant(
        "split_per_channel_shift",
        "if error > NOISE * max(1.0, abs(middle.least)):",
        "if error > 2.0**-20:",
    ),
    Mutant("split_per_channel_shift", 'problem = not_storable("shift", middle)', "problem = None"),
    Mutant(
        "split_per_channel_shift",
        "Affine(_ONE, middle), Affine(scale, _ZERO)",
        "Affine(scale, _ZERO), Affine(_ONE, middle)",
    ),
    # snapping
    Mutant("snap_scale_to_one", "not is_noise(scale, _ONE)", "abs(scale - _ONE).greatest > 0.5"),
    Mutant("snap_scale_to_one", "not is_noise(scale, _ONE)", "abs(scale - _ONE).least > 1e-9"),
    Mutant("snap_shift_before_round", "or not is_noise(shift, whole)", ""),
    Mutant(
        "snap_shift_before_round",
        "if isinstance(end, Dst) and not (end.is_integer and end.scale == 1.0):",
        "if False:",
    ),
    Mutant(
        "snap_shift_before_round",
        "replace(affine, shift=whole)",
        "replace(affine, scale=whole)",
    ),
    Mutant("snap_shift_after_round", "or not is_noise(shift, whole)", ""),
    Mutant(
        "snap_shift_after_round",
        "not is_noise(shift, whole)",
        "abs(shift - whole).least > 2.0**-40",
    ),
    Mutant("snap_shift_after_clipped_round", "or not is_noise(shift, whole)", ""),
    Mutant(
        "snap_shift_after_clipped_round",
        "not is_noise(shift, whole)",
        "abs(shift - whole).least > 2.0**-40",
    ),
    Mutant(
        "collapse_equal_channels",
        "if Vec(vec.least).narrow() != Vec(vec.greatest).narrow():\n        return vec\n",
        "",
    ),
    Mutant(
        "collapse_equal_channels",
        "return Vec(vec.least + 0.5 * (vec.greatest - vec.least))",
        "return Vec(0.5 * (vec.greatest - vec.least))",
    ),
    Mutant("collapse_equal_channels", "least > NOISE * max(", "least > 2.0**-20 * max("),
)
