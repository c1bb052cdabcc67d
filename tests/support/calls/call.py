"""Call: everything an operator is made of and called with, and what it must return.

    acc    = Σ (src − src_zp) · (wei − wei_zp)                     integers, exact
    x0     = src_scale · wei_scale · acc + bias                    f32 bias
    x0     = src_scale · wei_scale · (acc + bias)                  s32 bias
    dst    = saturate(rne(post(x0) / dst_scale + dst_zp))

Nothing of the package computes here: its values (QParams, Chain) are only read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.expr.steps import Chain, Clip
from pyonednn_q.native import runtime
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem
from pyonednn_q.qparams import QParams
from support.calls.bounded import Bounded
from support.calls.steps import Around, run
from support.oracle_convolution import convolve, deconvolve
from support.oracle_dense import matmul
from support.oracle_numbers import INTEGER_RANGES, convert, convert_ends, numpy_dtype
from support.oracle_tracked import grid, summed

if TYPE_CHECKING:
    from support.oracle_tracked import F64

Array = np.ndarray[Any, Any]

KINDS = ("conv", "deconv", "inner_product", "matmul")
_OPTIONS = ("src_q", "wei_q", "dst_q", "dst", "post", "exact_rounding")
_EXACT_IN_FLOAT32 = 2.0**24


@dataclass(frozen=True, eq=False)
class Call:
    """A call in plain values.

    window: stride, padding, dilation, groups of a convolution, as they are passed.
    options: everything else that is passed by keyword but changes no number.
    in_parts: whether Σ src · wei and the zero point's share of it may be rounded on their own.
    """

    kind: str
    src: Array
    wei: Array
    bias: Array | None = None
    src_q: QParams | None = None
    wei_q: QParams | None = None
    dst_q: QParams | None = None
    dst: str | None = None
    post: Chain = Chain()  # noqa: RUF009 - frozen
    exact_rounding: bool = False
    residual: Array | None = None
    operands: Mapping[str, Array] = field(default_factory=dict)
    window: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    in_parts: bool = False

    def but(self, **changes: Any) -> Call:
        """Return the call with other fields."""
        return replace(self, **changes)

    @property
    def dtype(self) -> str:
        """Data type of the result."""
        if self.dst is not None:
            return self.dst
        return self.dst_q.dtype if self.dst_q is not None else "f32"

    def settings(self) -> dict[str, Any]:
        """Return the keywords of the operator, those with usual values left out."""
        given = {name: getattr(self, name) for name in _OPTIONS}
        given = {name: value for name, value in given.items() if value is not None}
        given = {name: value for name, value in given.items() if value is not False}
        if not len(self.post):
            del given["post"]
        return {**given, **self.window, **self.options}

    def operator(self) -> Any:
        """Make the operator."""
        return operators()[self.kind](self.wei, self.bias, **self.settings())

    def run(self, operator: Any = None, **more: Any) -> Any:
        """Call the operator, made now if none is given."""
        made = self.operator() if operator is None else operator
        residual = {} if self.residual is None else {"residual": self.residual}
        return made(self.src, **{**residual, **self.operands, **more})

    def run_functional(self, **more: Any) -> Any:
        """Call the function of the kind."""
        given: dict[str, Any] = {}
        if self.residual is not None:
            given["residual"] = self.residual
        if self.operands:
            given["operands"] = self.operands
        call = functions()[self.kind]
        return call(self.src, self.wei, self.bias, **self.settings(), **{**given, **more})

    def meaning(self) -> Meaning:
        """Return what the call must return, from the formula alone."""
        acc = self._acc()
        dims = acc.value.shape
        axis = len(dims) - 1 if self.kind == "matmul" else 1
        around = Around(dims, axis, self.dtype, self.residual, self.operands)
        if self.exact_rounding:
            return Meaning.of(self._exact(acc, around), self.dtype)
        scale, zero_point = 1.0, 0
        if self.dst_q is not None:
            scale, zero_point = float(self.dst_q.scale), int(self.dst_q.zero_point)
        x = self._real(acc, around)
        x = run(self.post, x, around, zero_point)
        if scale != 1.0 or zero_point:
            x = x.affine(np.asarray(1.0 / scale), np.asarray(float(zero_point)), roundings=6)
        return Meaning.of(x, self.dtype)

    def accumulators(self) -> Array:
        """Return the exact sums of products of integers."""
        return self._acc().value.astype(np.int64)

    def _acc(self) -> Bounded:
        src, wei = self.src.astype(np.float64), self.wei.astype(np.float64)
        if self.src_q is None:
            value, terms = self._sums(src, wei), self.wei[0].size
            size = self._sums(np.abs(src), np.abs(wei))
            terms = self.wei.shape[-2] if self.kind == "matmul" else terms
            found = summed(value, size, terms, grid(src) * grid(wei))
            return Bounded.of(found.value, found.error, size)
        assert self.wei_q is not None
        points = np.asarray(self.wei_q.zero_point, np.float64)
        aligned = [1] * wei.ndim
        aligned[-1 if self.kind == "matmul" else 0] = -1
        points = points.reshape(aligned) if points.ndim else points
        point = float(self.src_q.zero_point)
        value = self._sums(src - point, wei - points)
        if not self.in_parts:
            return Bounded.of(value)
        whole = self._sums(src, wei - points)
        size = np.abs(whole) + np.abs(whole - value)
        if self.wei_q.dtype == "u8":
            # Primitives take s8: 128 less, and what is left of the zero point as a part of its own.
            signed = self._sums(src - point, wei - 128.0)
            size = size + np.abs(signed) + np.abs(signed - value)
        if self.src.dtype == np.int8 and not runtime.isa().has_vnni():
            # Codes of s8 may run as u8, 128 more: what that adds up to is a part, too.
            unsigned = self._sums(src + 128.0, wei - points)
            size = np.maximum(size, np.abs(unsigned) + np.abs(unsigned - value))
        return Bounded.of(value, size=size)

    def _sums(self, src: F64, wei: F64) -> F64:
        if self.kind == "matmul":
            return matmul(src, wei)
        if self.kind == "inner_product":
            return matmul(src.reshape(len(src), wei[0].size), wei.reshape(len(wei), -1).T)
        window = dict(self.window)
        groups = window.pop("groups", 1)
        if groups > 1:
            wei = wei.reshape(groups, wei.shape[0] // groups, *wei.shape[1:])
        if self.kind == "conv":
            return convolve(src, wei, ConvProblem.of(src.shape, wei.shape, **window))
        return deconvolve(src, wei, DeconvProblem.of(src.shape, wei.shape, **window))

    def _real(self, acc: Bounded, around: Around) -> Bounded:
        bias = np.zeros(1) if self.bias is None else self.bias.astype(np.float64)
        bias = around.channels(bias)
        if self.src_q is None:
            return acc.affine(np.ones(()), bias)
        assert self.wei_q is not None
        scale = float(self.src_q.scale) * np.asarray(self.wei_q.scale, np.float64)
        scale = around.channels(scale.reshape(-1))
        in_acc = self.bias is not None and self.bias.dtype.kind in "iu"
        return acc.affine(scale, scale * bias if in_acc else bias)

    def _exact(self, acc: Bounded, around: Around) -> Bounded:
        """Return rne(f32(acc + bias) · M) + zero point, every operation in float32, as ONNX has it.

        The chain may hold clips and relus: in levels, after the rounding.
        """
        assert self.src_q is not None
        assert self.wei_q is not None
        dst_q = QParams(1.0, 0, self.dtype) if self.dst_q is None else self.dst_q
        wei_scale = np.asarray(self.wei_q.scale, np.float64).astype(np.float32)
        multiplier = np.float32(self.src_q.scale) * wei_scale / np.float32(dst_q.scale)
        bias = np.zeros(1) if self.bias is None else self.bias.astype(np.float64)
        total = (acc.value + around.channels(bias)).astype(np.float32)
        levels = np.rint(total * around.channels(multiplier.reshape(-1)))
        step = float(dst_q.scale)
        for clip in self.post:
            ends: tuple[Any, Any] = (0.0, np.inf)  # of a relu
            if isinstance(clip, Clip):
                ends = (clip.lo.values(), clip.hi.values())
            lo, hi = (around.channels(np.rint(np.asarray(end) / step)) for end in ends)
            levels = np.clip(levels, lo, hi)
        return Bounded.of(levels.astype(np.float64) + float(dst_q.zero_point))


@dataclass(frozen=True, eq=False)
class Meaning:
    """What a call must return: `dst` where float32 has no choice, else from `lo` to `hi`."""

    dst: Array
    lo: Array
    hi: Array

    @classmethod
    def of(cls, x: Bounded, dtype: str) -> Meaning:
        """Store a bounded value."""
        with np.errstate(over="ignore", invalid="ignore"):
            lo, hi = x.value - x.error, x.value + x.error
            lo, hi = np.where(np.isnan(lo), -np.inf, lo), np.where(np.isnan(hi), np.inf, hi)
            return cls(convert(x.value, dtype), *convert_ends(lo, hi, dtype))

    def check_equal(self, got: Any) -> None:
        """Compare for equality: for calls whose every float32 operation is exact."""
        assert isinstance(got, np.ndarray)
        assert got.dtype == self.dst.dtype
        np.testing.assert_array_equal(got, self.dst)

    def wrong(self, got: Any) -> str:
        """Say what is wrong with a result; nothing if it is right."""
        if not isinstance(got, np.ndarray) or got.dtype != self.dst.dtype:
            return f"a {type(got).__name__} of {getattr(got, 'dtype', '-')}, not {self.dst.dtype}"
        if got.shape != self.dst.shape:
            return f"dims {got.shape}, not {self.dst.shape}"
        lo, hi, value = (array.astype(np.float64) for array in (self.lo, self.hi, got))
        bad = (value < lo) | (value > hi) | (np.isnan(value) & np.isfinite(lo) & np.isfinite(hi))
        if not bad.any():
            return ""
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        return (
            f"{int(bad.sum())} of {bad.size} values, the first at {at}: "
            f"{value[at]!r}, not in [{lo[at]!r}, {hi[at]!r}]"
        )

    def check(self, got: Any) -> None:
        """Compare with the interval that float32 may reach."""
        problem = self.wrong(got)
        assert not problem, problem

    @property
    def is_known(self) -> bool:
        """Whether the interval says anything: nowhere all that the type can hold."""
        if self.dst.dtype.kind in "iu":
            least, greatest = _limits(self.dst.dtype)
            return not bool(((self.lo == least) & (self.hi == greatest)).any())
        return bool(np.isfinite(self.lo).all() and np.isfinite(self.hi).all())


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    for name, limits in INTEGER_RANGES.items():
        if name in {"u8", "s8", "s32"} and numpy_dtype(name) == dtype:
            return limits
    raise AssertionError(dtype)


def operators() -> dict[str, Any]:
    """Return the operator of each kind."""
    from pyonednn_q.ops.conv import Conv, Deconv
    from pyonednn_q.ops.dense import InnerProduct, MatMul

    return {"conv": Conv, "deconv": Deconv, "inner_product": InnerProduct, "matmul": MatMul}


def functions() -> dict[str, Any]:
    """Return the function of each kind."""
    from pyonednn_q.ops import functional

    return {kind: getattr(functional, kind) for kind in KINDS}


Layer = tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]


def odd_call(
    layer: Layer, rng: np.random.Generator, src_dtype: str, point: int, **options: Any
) -> Call:
    """Draw a call of a layer (kind, dims of weights and source, window) that s8 must not halve.

    Weights are odd: halved, they would lose a bit. Pairs of products stay within 16 bits.
    """
    kind, wei_dims, src_dims, window = layer
    wei = (rng.integers(-16, 16, wei_dims) * 2 + 1).astype(np.int8)
    src = rng.integers(0, 100, src_dims).astype(np.uint8 if src_dtype == "u8" else np.int8)
    src_q, wei_q = QParams(0.5, point, src_dtype), QParams(0.25, 0, "s8")
    return Call(kind, src, wei, None, src_q, wei_q, window=window, options=options)
