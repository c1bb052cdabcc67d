"""Cases of the calculus: which step lets which affine step pass, row by row of its table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import ModuleType

from hypothesis import strategies as st

from pyonednn_q.expr.steps import Affine, Binary, BinaryAlg, Eltwise, Leaf, PRelu, Round, Step, Sum
from pyonednn_q.rewrite.rule import REAL, Outcome, Refusal, Rule
from pyonednn_q.rewrite.rules import carry
from support.rewriting import draws
from support.rewriting.case import Case
from support.rewriting.draws import Window
from support.rewriting.mutant import Mutant

_roots = st.sampled_from((0.25, 1.0, 4.0, 16.0, -4.0, -0.25, 0.0))
_ROW = "carry over "


def crossing(name: str, module: ModuleType = carry) -> Rule:
    """Make a rule of one row: step, then affine, becomes affine, then step, then the sign."""

    def cross(step: Step, affine: Affine) -> Outcome:
        result = module.carry(step, affine.scale, affine.shift)
        if isinstance(result, Refusal):
            return result
        behind = () if result.sign == 1.0 else (Affine(result.sign),)
        return (Affine(result.scale, result.shift), result.step, *behind)

    return Rule(_ROW + name, "the table's", ((Step,), (Affine,)), REAL, cross)


def _row(
    step: Callable[[Window], Step], scales: draws.Values, *, extreme: Iterable[float] = ()
) -> Callable[[Window], tuple[Step, Affine]]:
    def build(w: Window) -> tuple[Step, Affine]:
        if extreme and w.chance(20):
            return (step(w), Affine(w.vec(st.sampled_from(tuple(extreme)), per_channel=False)))
        shift = w.vec(draws.eighths) if w.chance(30) else 0.0
        return (step(w), Affine(w.vec(scales), shift))

    return build


def _leaf(w: Window) -> Step:
    algs: tuple[BinaryAlg, ...] = ("add", "sub", "mul", "div", "max", "min", "gt")
    return Binary(w.pick(algs), Leaf("res"))


def _relu(w: Window) -> Step:
    return Eltwise("relu", w.pick((0.25, 0.5, 2.0, -1.0, 0.0)))


def _unit(w: Window) -> tuple[Step, Affine]:
    scales = w.pick((draws.signs, draws.signs, draws.scales))
    return (Round(), Affine(w.vec(scales), w.vec(w.pick((draws.even, draws.whole, draws.eighths)))))


_LEAF_SCALES = st.sampled_from((1.0, 1.0, 1.0, 0.5, 2.0))
_HUGE = (2.0**100, 2.0**-100)

_ROWS: tuple[Case, ...] = (
    Case(crossing("clip"), _row(lambda w: w.clip(), draws.scales)),
    Case(crossing("relu"), _row(_relu, draws.scales), ("passes no shift", "is not above 0")),
    Case(
        crossing("prelu"),
        _row(lambda w: PRelu(w.vec(draws.signed_powers)), draws.scales),
        ("passes no shift", "is not above 0"),
    ),
    Case(
        crossing("prelu with an extreme slope"),
        _row(lambda w: PRelu(w.pick((2.0**-120, 2.0**127))), draws.signs),
        ("passes no shift", "below float32"),
    ),
    Case(
        crossing("abs"),
        _row(lambda _: Eltwise("abs"), _roots),
        ("passes no shift", "passes one sign"),
    ),
    Case(
        crossing("square"),
        _row(lambda _: Eltwise("square"), _roots),
        ("passes no shift", "passes one sign"),
    ),
    Case(
        crossing("sqrt"),
        _row(lambda _: Eltwise("sqrt"), _roots),
        ("passes no shift", "passes one sign", "not a number"),
    ),
    Case(
        crossing("pow"),
        _row(lambda w: Eltwise("pow", w.pick((0.5, 2.0**60)), 2.0), draws.scales, extreme=_HUGE),
        ("passes no shift", "one alpha", "beyond float32"),
    ),
    Case(
        crossing("sum"),
        _row(lambda w: Sum(w.pick((0.5, 2.0**60, 2.0**-60)), 3), draws.scales, extreme=_HUGE),
        ("one scale", "beyond float32", "below float32"),
    ),
    Case(
        crossing("round"),
        _unit,
        ("only 1 and -1", "only whole numbers", "shift is odd"),
    ),
    Case(
        crossing("leaf"),
        _row(_leaf, _LEAF_SCALES),
        ("passes no shift", "cannot be scaled", "neither a scale nor a shift"),
    ),
)

# A crossing alone need not be progress: `carry_affine_left` decides that.
CASES = {case.rule.name: replace(case, progresses=False) for case in _ROWS}

_PASSES_RELU = "if scale.least >= 0.0:\n        return Carried(step, scale)\n    bent = _bent(Vec"
_PASSES_PRELU = "if scale.least >= 0.0:\n        return Carried(step, scale)\n    bent = _bent(step"


def _mutant(row: str, old: str, new: str) -> Mutant:
    return Mutant(_ROW + row, old, new, "carry")


MUTANTS = (
    _mutant("clip", "if scale.least < 0.0 else Clip(lo, hi)", "if False else Clip(lo, hi)"),
    _mutant("clip", "clip.lo.scaled(scale)", "clip.lo * scale"),
    _mutant("clip", "clip.hi.scaled(scale)", "clip.hi"),
    _mutant("relu", _PASSES_RELU, _PASSES_RELU.replace("scale.least >= 0.0", "True")),
    _mutant("relu", _PASSES_RELU, _PASSES_RELU.replace("least", "greatest")),
    _mutant("relu", "flat = turned & (a <= 0.0)", "flat = turned & (a > 9.0)"),
    _mutant("relu", "flat = turned & (a <= 0.0)", "flat = turned & (a == 0.0)"),
    _mutant("relu", "(step, scale) if shift.is_all(0.0) else _no_shift(step.alg)", "(step, scale)"),
    _mutant("prelu", _PASSES_PRELU, _PASSES_PRELU.replace("scale.least >= 0.0", "True")),
    _mutant("prelu", _PASSES_PRELU, _PASSES_PRELU.replace("least", "greatest")),
    _mutant("prelu", "np.where(turned, a * s, s)", "s"),
    _mutant("prelu", "1.0 / np.where(turned, a, 1.0), a)", "a, a)"),
    _mutant(
        "prelu",
        'not shift.is_all(0.0):\n        return _no_shift("prelu")',
        'False:\n        return _no_shift("prelu")',
    ),
    _mutant(
        "prelu with an extreme slope", 'problem = not_storable("slope", inverse)', "problem = None"
    ),
    _mutant("abs", "if scale.greatest <= 0.0:", "if True:"),
    _mutant("abs", "if scale.least >= 0.0:\n        return 1.0", "if True:\n        return 1.0"),
    _mutant("abs", "inner(abs(scale)), _ZERO, sign)", "inner(abs(scale)))"),
    _mutant("square", "s.map(np.sqrt)", "s"),
    _mutant("square", "if scale.greatest <= 0.0:", "if scale.least <= 0.0:"),
    _mutant("sqrt", "s * s", "s"),
    _mutant(
        "sqrt",
        "if scale.least >= 0.0:\n        return 1.0",
        "if scale.greatest >= 0.0:\n        return 1.0",
    ),
    _mutant(
        "pow",
        'if scale.array is not None:\n        return Refusal("pow',
        'if False:\n        return Refusal("pow',
    ),
    _mutant("pow", 'problem = not_storable("alpha", alpha)', "problem = None"),
    _mutant("pow", "alpha=alpha.least), _ONE)", "alpha=alpha.least), scale)"),
    _mutant(
        "sum",
        'if scale.array is not None:\n        return Refusal("sum',
        'if False:\n        return Refusal("sum',
    ),
    _mutant("sum", 'problem = not_storable("scale of sum", factor)', "problem = None"),
    _mutant("sum", "replace(step, scale=factor.least)", "step"),
    _mutant("round", "if not abs(scale).is_all(1.0):", "if False:"),
    _mutant("round", "if not abs(scale).is_all(1.0):", "if abs(scale).least != 1.0:"),
    _mutant("round", "if not shift.is_even:", "if False:"),
    _mutant("round", "if not shift.is_even:", "if shift.least % 2.0:"),
    _mutant("leaf", "if scale.is_all(1.0):", "if True:"),
    _mutant("leaf", "if scale.is_all(1.0):", "if scale.least == 1.0:"),
    _mutant("leaf", 'step.alg in {"mul", "div"}', 'step.alg in {"mul", "div", "add"}'),
    _mutant("leaf", 'not in {"add", "sub", "mul", "div"}', 'not in {"add", "sub", "mul", "max"}'),
    _mutant("leaf", 'not in {"add", "sub", "mul", "div"}', 'in {"div"}'),
    _mutant(
        "leaf",
        "if shift.is_all(0.0):\n            return Carried(step",
        "if True:\n            return Carried(step",
    ),
)
