"""What an attempt asks for, read from its arguments as they were given.

The judge makes up its own mind about what must be refused: it asks no check of the package.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.expr.steps import Binary, Chain, Clip, Leaf, Sum
from pyonednn_q.requantize import dialect
from support.calls.call import Call
from support.calls.codes import Codes
from support.hostile.asked_floats import in_codes_of_own_range, of_floats, own_range, require
from support.hostile.attempt import QPARAMS, Attempt, Made, made
from support.oracle_numbers import INTEGER_RANGES, numpy_dtype, short_name

if TYPE_CHECKING:
    from support.calls.rows import Rows

    Array = np.ndarray[Any, Any]

_WINDOW = ("stride", "padding", "dilation", "groups")
_FLAGS = ("exact_rounding", "strict", "allow_reference", "self_check", "tune")
_WORDS = {
    "policy": ("bitwise", "real", "fast"),
    "layout": ("preserve", "channels_last", "dense"),
    "saturation": ("refuse", "allow"),
    "zero_point": ("auto", "attribute", "bias", "map"),
}
_STORED = ("f32", "s32", "s8", "u8", "bf16", "f16")


def asked(attempt: Attempt, before: Mapping[str, Any]) -> Call | Rows | Codes:
    """Return what was asked for, or say why nobody could mean it.

    before: what the tensors held when the call began, by name.
    """
    settings = dict(attempt.settings)
    bias = None if attempt.bias is None else _tensor("bias", before["bias"])
    wei = _tensor("wei", before["wei"])
    if attempt.from_float:
        wei, bias = of_floats(attempt.kind, settings, wei, bias)
    dynamic = own_range(settings)
    for name in settings:
        known = (*QPARAMS, "dst", "post", "requantize", *_FLAGS, *_WORDS, *_WINDOW)
        require(name in known, f"an option called {name!r}")
    params = {name: _params(name, settings.pop(name, None)) for name in QPARAMS}
    post = made(settings.pop("post", None))
    post = Chain() if post is None else post
    require(isinstance(post, Chain), "post is no chain")
    dst: Any = short_name(settings.pop("dst", None))
    require(dst is None or dst in _STORED, f"dst {dst!r}")
    for name in _FLAGS:
        require(_is_flag(name, settings.get(name, True)), f"{name}={settings.get(name)!r}")
    for name, allowed in _WORDS.items():
        require(settings.get(name, allowed[0]) in allowed, f"{name}={settings.get(name)!r}")
    rule = settings.pop("requantize", None)
    window = {name: settings.pop(name) for name in _WINDOW if name in settings}
    _check_window(window)
    call = Call(
        attempt.kind,
        _tensor("src", before["src"]),
        wei,
        bias,
        **params,
        dst=dst,
        post=post,
        exact_rounding=bool(settings.pop("exact_rounding", False)),
        residual=_residual(before, post),
        operands=_operands(attempt, before, post),
        window=window,
        options=settings,
    )
    call = _in_codes(call)
    # Where the attribute would be wrong, another carrier takes the zero point, and rounds.
    by_attribute = call.options.get("zero_point", "auto") in {"auto", "attribute"}
    is_bitwise = by_attribute and call.options.get("policy") == "bitwise"
    call = call.but(in_parts=not call.exact_rounding and not is_bitwise)
    if rule is not None:
        require(dynamic is None, "a dialect for a range that each call finds")
    elif call.dst_q is not None:
        require(call.dst_q.axis is None, f"dst_q along {call.dst_q.axis}")
    _check_bias(call)
    if call.bias is not None and call.bias.dtype != np.int32:
        # A bias of real units is one of float32, whichever float it came in.
        with np.errstate(over="ignore"):
            call = call.but(bias=call.bias.astype(np.float32))
    if dynamic is None:
        _check_types(call)
        return call if rule is None else _in_another_runtime(call, rule)
    require(not call.exact_rounding, "exact rounding of a range that each call finds")
    require(call.bias is None or call.bias.dtype == np.float32, "a bias of units")
    found = in_codes_of_own_range(call, dynamic)
    if isinstance(found, Call):
        _check_types(found)
    return found


def _is_flag(name: str, value: object) -> bool:
    return isinstance(value, bool) or (name == "self_check" and str(value) == "auto")


def _in_another_runtime(call: Call, rule: Any) -> Codes:
    require(isinstance(rule, str) and dialect(rule), f"requantize={rule!r}")
    dst_q = call.dst_q
    require(call.src_q is not None and dst_q is not None, "sums that are not of codes")
    assert dst_q is not None
    if dst_q.axis is not None:
        is_matmul = call.kind == "matmul"
        require(dst_q.axis == (-1 if is_matmul else 1), f"dst_q along {dst_q.axis}")
        channels = call.wei.shape[-1 if is_matmul else 0]
        require(dst_q.channels == channels, f"dst_q of {dst_q.channels} channels")
        require(len(set(np.ravel(dst_q.zero_point))) == 1, "zero points that differ")
    between = list(call.post)
    one_clip = len(between) == 1 and isinstance(between[0], Clip) and not between[0].channels
    require(not between or one_clip, "steps between sums and codes")
    require(not between or not np.ndim(dst_q.scale), "a clip of channels' own codes")
    require(not call.exact_rounding, "steps between sums and codes")
    is_real = call.bias is not None and call.bias.dtype.kind == "f"
    require(not is_real or rule.startswith("onednn"), "a bias of real units")
    codes = Codes(call, rule)
    lo, hi = codes.ends
    store = np.iinfo(numpy_dtype(dst_q.dtype))
    require(lo <= store.max and hi >= store.min, "a clip that leaves no code")
    return codes


def _in_codes(call: Call) -> Call:
    """Return a call with the codes that a float source stands for, by the formula in float32."""
    params = call.src_q
    if params is None or call.src.dtype != np.float32:
        return call
    limits = np.finfo(np.float32)
    require(limits.tiny <= params.scale <= float(limits.max), f"a scale of {params.scale}")
    require(not np.isnan(call.src).any(), "a source that is no number")
    with np.errstate(over="ignore"):
        levels = np.rint(call.src / np.float32(params.scale)).astype(np.float64)
    codes = np.clip(levels + params.zero_point, *INTEGER_RANGES[params.dtype])
    return call.but(src=codes.astype(numpy_dtype(params.dtype)))


def _tensor(name: str, value: Any) -> Array:
    require(isinstance(value, np.ndarray), f"{name} is a {type(value).__name__}")
    array: Array = value
    return array


def _params(name: str, value: Any) -> Any:
    if value is None:
        return None
    require(isinstance(value, Made), f"{name} is a {type(value).__name__}")
    given = value.named
    scale, points = np.asarray(given["scale"]), np.asarray(given["zero_point"])
    numbers = scale.dtype.kind in "iuf" and bool((np.isfinite(scale) & (scale > 0)).all())
    require(numbers, f"{name} with scale {given['scale']!r}")
    dtype: Any = short_name(given["dtype"])
    require(isinstance(dtype, str) and dtype in INTEGER_RANGES, f"{name} of {given['dtype']!r}")
    least, greatest = INTEGER_RANGES[dtype]
    whole = points.dtype.kind in "iu" and all(least <= int(z) <= greatest for z in points.flat)
    require(whole, f"{name} with zero point {given['zero_point']!r}")
    if given["axis"] is None:
        require(not (scale.ndim or points.ndim), f"{name} of several values and no axis")
    else:
        require(name != "src_q", f"{name} along {given['axis']!r}")
    return value.make()


def _check_window(window: Mapping[str, Any]) -> None:
    for name, value in window.items():
        least = 0 if name == "padding" else 1
        require(
            all(operator.index(number) >= least for number in _flat(value)), f"{name} {value!r}"
        )


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple, np.ndarray)):
        return [number for part in value for number in _flat(part)]
    return [value]


def _residual(before: Mapping[str, Any], post: Chain) -> Array | None:
    has_sum = any(isinstance(step, Sum) for step in post)
    if not has_sum:
        require(before.get("residual") is None, "a residual that nothing reads")
        return None
    given = before.get("residual")
    return _tensor("residual", before.get("out") if given is None else given)


def _operands(attempt: Attempt, before: Mapping[str, Any], post: Chain) -> dict[str, Array]:
    operands = attempt.call.get("operands")
    if operands is None:
        return {}
    require(isinstance(operands, dict), "operands that are no mapping")
    read = [step.operand for step in post if isinstance(step, Binary)]
    leaves = {leaf.name: leaf for leaf in read if isinstance(leaf, Leaf)}
    found = {}
    for name in operands:
        require(name in leaves, f"an operand {name!r} that nothing reads")
        found[name] = _tensor(name, before[f"operand {name}"])
        wanted = numpy_dtype(leaves[name].dtype)
        require(found[name].dtype == wanted, f"an operand {name!r} of {found[name].dtype}")
    return found


def _check_types(call: Call) -> None:
    require((call.src_q is None) == (call.wei_q is None), "one of src_q and wei_q")
    floats = [numpy_dtype(name) for name in ("f32", "bf16", "f16")]
    for name, params in (("src", call.src_q), ("wei", call.wei_q)):
        found = getattr(call, name).dtype
        allowed = floats if params is None else [numpy_dtype(params.dtype)]
        require(found in allowed, f"{name} of {found}")
    if call.dst_q is not None:
        require(call.dst in (None, call.dst_q.dtype), f"dst {call.dst} with {call.dst_q.dtype}")
    if call.residual is not None:
        sums = [step for step in call.post if isinstance(step, Sum)]
        names = {step.dtype or call.dtype for step in sums} | {call.dtype}
        fits = call.residual.dtype in {numpy_dtype(name) for name in names}
        require(fits, f"a residual of {call.residual.dtype}")
    require(call.wei.size, "no weights")


def _check_bias(call: Call) -> None:
    if call.bias is None:
        return
    channels = call.wei.shape[-1 if call.kind == "matmul" else 0]
    types = [np.dtype(np.float64), *map(numpy_dtype, ("f32", "bf16", "f16", "s32"))]
    fits = call.bias.shape == (channels,) and call.bias.dtype in types
    require(fits, f"a bias of {call.bias.dtype} {call.bias.shape}")
    require(np.isfinite(call.bias).all(), "a bias that is not finite")
