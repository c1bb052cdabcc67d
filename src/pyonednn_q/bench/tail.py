"""Tails by name: what follows the products, as a chain for `compose`.

A name is words joined by underscores, applied from left to right: ``relu``, ``sum_relu_fq``,
``gelu_tanh_fq_s8_per_channel``. So every combination has a name, and what is measured is the plan
that the composer makes of it. The words that quantize (fq) exist for INT8 alone; floating-point
rows run the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyonednn_q import dtypes
from pyonednn_q.bench.precision import Precision
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Eltwise, Leaf, PRelu, Step, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.shown import meant, shown

__all__ = ["WORDS", "Ending", "Tail"]

Array = NDArray[np.float64]

ADDED = "added"  # the leaf of a residual that no Sum reads: calls have an argument `residual`
RESIDUAL_RANGE = 4.0  # half-normal values, all but one in 16 000
_SAMPLES = 1 << 16
_FINE = 1.0 / 64.0  # what one level of an s32 or s8-from-float residual is worth


@dataclass(frozen=True, slots=True)
class Ending:
    """A tail made concrete for one primitive.

    Attributes
    ----------
    chain : Chain
        Chain for the composer.
    dst_scale, dst_zero_point : float and int
        Real value of one step of dst, and its code for real 0.
    scale, shift : Vec
        Real value of a stored value q: scale · q + shift.
    """

    chain: Chain
    dst_scale: float
    dst_zero_point: int
    scale: Vec
    shift: Vec


@dataclass(frozen=True, slots=True)
class Tail:
    """A named sequence of steps.

    Parameters
    ----------
    name : str
        "none", or words of `WORDS` joined by underscores.

    Raises
    ------
    ArgumentError
        No such word.

    Examples
    --------
    >>> Tail("sum_relu_fq").words
    ('sum', 'relu', 'fq')
    """

    name: str

    def __post_init__(self) -> None:
        _ = self.words

    @property
    def words(self) -> tuple[str, ...]:
        """The words that the name is made of; the longest that fits is taken each time."""
        if self.name == "none":
            return ()
        words: list[str] = []
        parts = self.name.split("_")
        while parts:
            ends = [n for n in range(len(parts), 0, -1) if "_".join(parts[:n]) in WORDS]
            if not ends:
                wanted = f"none, or words joined by _: {', '.join(WORDS)}{meant(self.name, WORDS)}"
                raise ArgumentError("tail", shown(self.name), wanted)
            words.append("_".join(parts[: ends[0]]))
            del parts[: ends[0]]
        return tuple(words)

    @property
    def reads_dst(self) -> bool:
        """Whether the primitive reads what dst held before."""
        return "sum" in self.words

    @property
    def adds_residual(self) -> bool:
        """Whether another tensor is added, as f32."""
        return "residual" in self.words

    @property
    def has_residual(self) -> bool:
        """Whether there is a second input, in dst or beside it."""
        return self.reads_dst or self.adds_residual

    def ending(self, channels: int, precision: Precision) -> Ending:
        """Return the chain for that many channels, with ranges that values of deviation 1 fill."""
        rng = np.random.default_rng(7)
        steps: list[Step] = []
        last: FakeQuantize | None = None
        for word in self.words:
            if word in _MAKERS:
                steps.append(_MAKERS[word](rng, channels))
                last = None
            elif precision.is_int8:
                last = _fake_quantize(word, steps, channels, precision, rng)
                steps += last.chain().steps
        if last is not None and precision.dst in {"u8", "s8"}:
            return _stored_levels(Chain(*_typed(steps, precision)), last, precision)
        lo, hi = value_range(steps, channels)
        scale, zero_point = 1.0, 0
        if precision.is_int8 and dtypes.is_integer(precision.dst):
            scale, zero_point = _store(precision.dst, lo, hi)
        return Ending(
            Chain(*_typed(steps, precision)),
            scale,
            zero_point,
            Vec(scale),
            Vec(-scale * zero_point),
        )


def residual_scale(dst: str) -> float:
    """Return the real value of one unit of a stored residual, for a sum that reads it from dst."""
    if dst in {"u8", "s8"}:
        return RESIDUAL_RANGE / dtypes.qmax(dst)
    return _FINE if dst == "s32" else 1.0


def value_range(steps: list[Step], channels: int) -> tuple[float, float]:
    """Return the range of the steps' result for normal values in and half-normal residuals."""
    rng = np.random.default_rng(8)
    rows = max(_SAMPLES // channels, 1)
    x = rng.standard_normal((rows, channels))
    residual = np.abs(rng.standard_normal(x.shape))
    y = evaluate(Chain(*steps), x, dst_before=residual, operands={ADDED: residual})
    return min(float(y.min()), 0.0), max(float(y.max()), 0.0)


def _typed(steps: list[Step], precision: Precision) -> list[Step]:
    """Let a sum read dst in the units in which it is stored."""
    scale = residual_scale(precision.dst) if precision.is_int8 else 1.0
    return [Sum(scale) if isinstance(step, Sum) else step for step in steps]


def _store(dst: str, lo: float, hi: float) -> tuple[float, int]:
    if dst == "s32":
        return _FINE, 0
    if dst == "s8":
        return max(-lo, hi) / 127, 0
    scale = (hi - lo) / 255
    return scale, round(-lo / scale)


def _fake_quantize(
    word: str,
    before: list[Step],
    channels: int,
    precision: Precision,
    rng: np.random.Generator,
) -> FakeQuantize:
    """Return quantization to u8 or s8 of what the steps before give, out in real values."""
    lo, hi = value_range(before, channels)
    factor = rng.uniform(0.8, 1.2, channels) if word.endswith("per_channel") else 1.0
    is_signed = "_s8" in word or ("_u8" not in word and precision.dst == "s8")
    if is_signed:
        return FakeQuantize.symmetric(Vec(max(-lo, hi) * factor))
    # Ends on whole levels, so that 0 is one of them.
    scale, zero_point = _store("u8", lo, hi)
    low, high = -scale * zero_point, scale * (255 - zero_point)
    return FakeQuantize(
        Vec(low * factor), Vec(high * factor), Vec(low * factor), Vec(high * factor)
    )


def _stored_levels(chain: Chain, last: FakeQuantize, precision: Precision) -> Ending:
    """Store the levels of the last quantization instead of what they are worth."""
    scale = last.scale_out
    lowest = float(dtypes.qmin(precision.dst))
    shift = last.output_low - scale * lowest
    into = Affine(Vec(1.0) / scale, -shift / scale)
    if scale.is_per_tensor and shift.is_per_tensor:
        zero_point = round(-shift.least / scale.least)
        return Ending(chain, scale.least, zero_point, scale, shift)
    return Ending(Chain(chain, into), 1.0, 0, scale, shift)


def _eltwise(alg: str, alpha: float = 0.0, beta: float = 0.0) -> Callable[..., Step]:
    return lambda _rng, _channels: Eltwise(alg, alpha, beta)


_MAKERS: dict[str, Callable[[np.random.Generator, int], Step]] = {
    "relu": _eltwise("relu"),
    "relu6": lambda _rng, _channels: Clip(0.0, 6.0),
    "leaky_relu": _eltwise("relu", 0.1),
    "prelu": lambda rng, channels: PRelu(rng.uniform(0.05, 0.3, channels)),
    "elu": _eltwise("elu", 1.0),
    "hardswish": _eltwise("hardswish", 1.0 / 6.0, 0.5),
    "swish": _eltwise("swish", 1.0),
    "gelu_erf": _eltwise("gelu_erf"),
    "gelu_tanh": _eltwise("gelu_tanh"),
    "tanh": _eltwise("tanh"),
    "sigmoid": _eltwise("logistic"),
    "sum": lambda _rng, _channels: Sum(),
    "residual": lambda _rng, _channels: Binary("add", Leaf(ADDED)),
    "mul": lambda rng, channels: Binary("mul", Vec(rng.uniform(0.5, 2.0, channels))),
    "add": lambda rng, channels: Binary("add", Vec(rng.uniform(-0.5, 0.5, channels))),
}
_QUANTIZERS = tuple(
    fq + extent for fq in ("fq", "fq_u8", "fq_s8") for extent in ("", "_per_channel")
)
WORDS = (*_MAKERS, *_QUANTIZERS)
