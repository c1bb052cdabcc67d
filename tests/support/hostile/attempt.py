"""Attempt: the arguments of a call before anything is made of them, and what came of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.expr.steps import Chain
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from pyonednn_q.requantize import DIALECTS
from support.calls.call import Call, functions, operators
from support.calls.draw import dst_dims

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

QPARAMS = ("src_q", "wei_q", "dst_q")


@dataclass
class Made:
    """An object that is made only when the call is tried: its constructor is under test, too."""

    of: Callable[..., Any]
    given: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)

    def make(self) -> Any:
        """Make it."""
        return self.of(*map(made, self.given), **{k: made(v) for k, v in self.named.items()})


@dataclass
class Attempt:
    """Arguments to be made worse.

    settings: of the operator. call: of the call: out, residual, operands.
    functional: whether the function is called, with everything at once.
    twice: whether the same call follows, which then takes the shortest way.
    dst_dims, dst_dtype: of the result, before anything was made worse.
    wrong: what was done to it.
    from_float: whether the operator is made of float weights.
    """

    kind: str
    src: Any
    wei: Any
    bias: Any
    settings: dict[str, Any]
    call: dict[str, Any]
    functional: bool
    twice: bool
    dst_dims: tuple[int, ...]
    dst_dtype: str
    wrong: list[str] = field(default_factory=list)
    from_float: bool = False
    prepare_first: tuple[Any, ...] | None = None
    positional: tuple[Any, ...] = ()

    @classmethod
    def of(cls, call: Call, rng: np.random.Generator) -> Attempt:
        """Take a call apart."""
        call = _for_another_runtime(call, rng)
        settings = call.settings()
        for name in QPARAMS:
            if name in settings:
                settings[name] = _taken_apart(settings[name])
        given: dict[str, Any] = {}
        if call.residual is not None:
            given["residual"] = call.residual
        if call.operands:
            given["operands"] = dict(call.operands)
        src, wei, bias, is_made = call.src, call.wei, call.bias, False
        if "requantize" not in settings and call.src_q is not None and rng.random() < 0.3:
            src = _as_floats(src, call.src_q, rng)
            match int(rng.integers(4)):
                case 0 | 1:
                    bias = _make_dynamic(call, settings, rng)
                case 2:
                    is_made = True
                    wei, bias = _make_of_floats(call, settings, rng)
                    src = src if rng.random() < 0.7 or "src_q" not in settings else call.src
        if call.src_q is not None and rng.random() < 0.1:
            settings["zero_point"] = str(rng.choice(["auto", "attribute", "bias", "map"]))
        for name, share in (("self_check", 0.04), ("tune", 0.01)):
            if rng.random() < share:
                settings[name] = True
        return cls(
            call.kind,
            src,
            wei,
            bias,
            settings,
            given,
            functional=bool(rng.random() < 0.4) and not is_made,
            twice=bool(rng.random() < 0.4),
            dst_dims=dst_dims(call),
            dst_dtype=call.dtype,
            from_float=is_made,
        )

    def run(self) -> list[Any]:
        """Make everything, call it, and return the results."""
        settings = {name: made(value) for name, value in self.settings.items()}
        call = {name: made(value) for name, value in self.call.items()}
        tensors: tuple[Any, ...]
        if self.functional:
            one, tensors = functions()[self.kind], (self.src, self.wei, self.bias)
            call = {**settings, **call}
        else:
            of = operators()[self.kind]
            make = of.from_float if self.from_float else of
            one, tensors = make(self.wei, self.bias, **settings), (self.src,)
            if self.prepare_first is not None:
                one.prepare(*self.prepare_first)
            call.update(call.pop("operands", {}))
        first = one(*tensors, *self.positional, **call)
        if not self.twice:
            return [first]
        kept = np.array(getattr(first, "array", first), copy=True)  # of support.foreign, too
        return [kept, one(*tensors, *self.positional, **call)]


def made(value: Any) -> Any:
    """Return an object, made now if it was only described."""
    return value.make() if isinstance(value, Made) else value


def _for_another_runtime(call: Call, rng: np.random.Generator) -> Call:
    """Let a dialect make the codes of a call now and then: no chain, whole numbers as bias."""
    if call.src_q is None or rng.random() > 0.12:
        return call
    dialect = str(rng.choice(sorted(DIALECTS)))
    bias, dst_q = call.bias, call.dst_q
    if bias is not None and bias.dtype.kind == "f" and not dialect.startswith("onednn"):
        bias = np.rint(100 * bias).astype(np.int32)
    if dst_q is None:
        dst_q = QParams(float(rng.uniform(0.2, 2.0)), int(rng.integers(0, 100)), "s8")
    plain: dict[str, Any] = {"post": Chain(), "residual": None, "operands": {}, "dst": None}
    options = {**call.options, "requantize": dialect}
    return call.but(**plain, bias=bias, dst_q=dst_q, exact_rounding=False, options=options)


def _as_floats(codes: Array, params: QParams, rng: np.random.Generator, axis: int = 0) -> Array:
    """Return values about what codes are worth."""
    aligned = [1] * codes.ndim
    aligned[axis] = -1
    scale, points = (np.asarray(x) for x in (params.scale, params.zero_point))
    scale, points = (x.reshape(aligned) if x.ndim else x for x in (scale, points))
    values = scale * (codes.astype(np.float64) - points)
    return np.asarray(values * rng.uniform(0.9, 1.1, codes.shape)).astype(np.float32)


def _make_dynamic(call: Call, settings: dict[str, Any], rng: np.random.Generator) -> Array | None:
    """Let each call find the range of its source; return the bias, if it may stay."""
    is_product = call.kind in {"inner_product", "matmul"}
    extent = "per_row" if is_product and rng.random() < 0.6 else "per_tensor"
    dtype = str(rng.choice(["u8", "s8"]))
    settings["src_q"] = Made(Dynamic, (), {"dtype": dtype, "extent": extent})
    settings.pop("exact_rounding", None)
    return None if call.bias is not None and call.bias.dtype.kind == "i" else call.bias


def _make_of_floats(
    call: Call, settings: dict[str, Any], rng: np.random.Generator
) -> tuple[Array, Array | None]:
    """Return weights and bias of a float layer; some ranges come as such."""
    assert call.wei_q is not None
    del settings["wei_q"]
    settings.pop("exact_rounding", None)
    wei = _as_floats(call.wei, call.wei_q, rng, -1 if call.kind == "matmul" else 0)
    settings["wei_levels"] = int(rng.choice([255, 129, 129]))
    if rng.random() < 0.4:
        assert call.src_q is not None
        settings["src_q"] = (float(-200 * call.src_q.scale), float(99 * call.src_q.scale))
        settings["src_dtype"] = call.src_q.dtype
    if "dst_q" in settings and rng.random() < 0.4:
        settings["dst_q"], settings["dst"] = (-30.0, 70.0), call.dtype
    bias = call.bias
    return wei, None if bias is not None and bias.dtype.kind == "i" else bias


def _taken_apart(params: QParams) -> Made:
    given = {name: getattr(params, name) for name in ("scale", "zero_point", "dtype", "axis")}
    return Made(QParams, (), given)
