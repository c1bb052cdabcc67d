"""Remedies for saturation: smaller weights where they are needed, or smaller activations.

    fit     the channels that need it are scaled down until no pair saturates, and no further
    7bit    they are scaled down to [-64, 64], where nothing can, however pairs are formed
    even    convolutions of s8 sources: odd weights are rounded to even ones, which lose nothing

A weight scale grows by as much as its weights shrink. The cost is given as SQNR: the power of the
weights over that of what they lost. Activations of 7 bits are safe with any weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.acc.pairs import SAFE, inexact_channels
from pyonednn_q.acc.verdict import saturation
from pyonednn_q.argument import flag, instance, items, numbers, one_of
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.report.told import Told
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from pyonednn_q.acc.verdict import Verdict
    from pyonednn_q.primitive.isa import InstructionSet
    from pyonednn_q.primitive.problem import Problem

_HOW = ("fit", "7bit")
_WHERE = ("needed", "all", "none")
_HALF_RANGE = ("enable", "first_layer_only", "disable")
STEP = 1 + 2.0**-9


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Repair(Told):
    """Weights that do not saturate, and their error.

    Attributes
    ----------
    wei : ndarray of int8
        Codes of the new weights, in the dimensions of the old ones.
    factor : ndarray of float
        Factors, (C,), by which to multiply the weight scale of each output channel.
    changed : tuple of int
        Indices of the output channels whose weights changed.
    sqnr : tuple of float
        Signal-to-quantization-noise ratio in dB, one for each changed channel; infinite without an
        error.
    sqnr_of_all : float
        The same ratio over all weights, in dB.
    remaining : tuple of int
        Indices of the output channels that are still not exact: `where` kept them unchanged, or
        smaller weights do not help.
    """

    wei: Array
    factor: Array
    changed: tuple[int, ...]
    sqnr: tuple[float, ...]
    sqnr_of_all: float
    remaining: tuple[int, ...]

    def text(self) -> str:
        """Return one line: the changed channels and their error."""
        if not self.changed:
            return "no channel has other weights"
        worst = min(self.sqnr)
        return (
            f"{len(self.changed)} of {len(self.factor)} channels changed: SQNR {worst:.1f} dB in "
            f"the worst of them, {self.sqnr_of_all:.1f} dB over all weights"
        )


def repair(
    problem: Problem,
    wei: Array,
    isa: InstructionSet | str,
    *,
    how: str = "fit",
    where: str = "needed",
    impl: str | None = None,
    src_range: tuple[int, int] | None = None,
    unrounded: ArrayLike | None = None,
) -> Repair:
    """Return weights that are exact on a machine without VNNI.

    Parameters
    ----------
    problem, wei, isa, impl, src_range
        Arguments of `saturation`.
    how : {"fit", "7bit"}
        Method: scale weights down as far as needed ("fit") or to 7 bits; see the head of this
        module. With both, weights become even if a kernel halves them.
    where : {"needed", "all", "none"}
        Output channels to change: those that some source makes wrong, all, or none.
    unrounded : array_like of float, optional
        Weights in units of their scale before rounding; with them, weights are rounded only once.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    one_of("how", how, _HOW)
    one_of("where", where, _WHERE)
    verdict = saturation(problem, wei, isa, impl=impl, src_range=src_range)
    by_channel = verdict.problem.channel_rows(np.asarray(wei, np.float64))
    ideal = by_channel
    if unrounded is not None:
        real_wei = numbers("unrounded", unrounded).astype(np.float64)
        if real_wei.shape != wei.shape or not np.isfinite(real_wei).all():
            raise ArgumentError("unrounded", f"shape {real_wei.shape}", f"numbers of {wei.shape}")
        ideal = verdict.problem.channel_rows(real_wei)
    needed = np.zeros(len(by_channel), np.bool_)
    needed[list(verdict.flagged)] = where == "needed"
    needed |= where == "all"
    factor = np.ones(len(by_channel))
    codes = by_channel
    if needed.any():
        factor, codes = _repaired(verdict, how, ideal, needed)
        codes = np.where(needed[:, None], codes, by_channel)
    return _report(verdict, by_channel, ideal, codes, factor, wei.shape)


@dataclass(frozen=True, slots=True, eq=False)
class SourceRepair:
    """Activations of 7 bits.

    Attributes
    ----------
    src : ndarray of uint8
        Codes of the source scaled by 127 / 255 and rounded, so none is above 127.
    factor : float
        Factor of the source scale, 255 / 127. The zero point has to be divided by it too.
    sqnr : float
        Signal-to-quantization-noise ratio in dB.
    """

    src: Array
    factor: float
    sqnr: float


def repair_source(src: Array) -> SourceRepair:
    """Return u8 activations clipped to [0, 127], for which no pair of products saturates.

    127 · (127 + 127) and −127 · (128 + 128) lie within 16 bits.

    Parameters
    ----------
    src : ndarray of uint8
        Codes of the source, of any shape.

    Raises
    ------
    DTypeError
        The source is not u8.

    Examples
    --------
    >>> repair_source(np.array([0, 100, 255], np.uint8)).src.tolist()
    [0, 50, 127]
    """
    instance("src", src, np.ndarray)
    if src.dtype != np.uint8:
        raise DTypeError("src", str(src.dtype), "uint8: 7 bits of another type are no remedy")
    factor = 255 / 127
    codes = np.rint(src / factor).astype(np.uint8)
    return SourceRepair(codes, factor, _sqnr(src.astype(np.float64), codes * factor))


def half_range(
    layers: Iterable[ArrayLike], option: str = "enable", *, narrow: bool = False
) -> tuple[tuple[Array, Array], ...]:
    """Return (codes, scales) of layers with half of the range, the overflow fix of training tools.

    The whole tensor is quantized symmetrically for 7 bits and stored in 8: codes lie in [-64, 63],
    or in [-64, 64] with `narrow`, where the top code 63.5 rounds up. This makes u8 sources
    exact, and s8 sources of matmul; not s8 convolutions, which need even weights.

    Parameters
    ----------
    layers : sequence of array_like
        One array a layer, [wei] for a single one: real weights, output channels first; each channel
        has a scale of its own.
    option : {"enable", "first_layer_only", "disable"}
        Layers with half of the range; the others have [-127, 127].
    narrow : bool
        Whether a range has 127 levels on both sides of 0, instead of 128 below and 127 above.

    Raises
    ------
    ArgumentError
        No such option, or weights that are not finite.
    """
    one_of("option", option, _HALF_RANGE)
    flag("narrow", narrow)
    if isinstance(layers, np.ndarray):  # whose rows would be taken for layers
        wanted = "a sequence of arrays, one a layer: [wei] for a single one"
        raise ArgumentError("layers", shown(layers), wanted)
    weights = items("layers", layers, object)
    halved = {"enable": len(weights), "first_layer_only": 1, "disable": 0}[option]
    return tuple(
        _quantized(layer, half=at < halved, narrow=narrow) for at, layer in enumerate(weights)
    )


def _quantized(layer: ArrayLike, *, half: bool, narrow: bool) -> tuple[Array, Array]:
    real = numbers("layers", layer).astype(np.float64)
    if not np.isfinite(real).all() or real.ndim < 1:
        raise ArgumentError("layers", "weights that are not finite", "finite numbers")
    if not real.size:
        raise ShapeError("layers", f"weights of shape {real.shape}", "nothing empty")
    flat = real.reshape(len(real), -1)
    high = np.maximum(np.abs(flat).max(axis=1, initial=0.0), 1e-12)
    lo, hi, steps = -127, 127, 127.0
    if half:
        lo, hi, steps = (-64, 64, 63.5) if narrow else (-64, 63, 63.0)
    scale = high / steps
    codes = np.clip(np.rint(flat / scale[:, None]), lo, hi).astype(np.int8)
    return codes.reshape(real.shape), scale


def _repaired(verdict: Verdict, how: str, ideal: Array, needed: Array) -> tuple[Array, Array]:
    """Return factors and codes of all channels, those that are not needed unchanged."""
    even = any(way.halved for way in verdict.ways)
    if all(way.halved for way in verdict.ways):
        return np.ones(len(ideal)), _codes(ideal, np.ones(len(ideal)), even=True)
    largest = np.abs(ideal).max(axis=1)
    most = np.where(needed, np.maximum(largest / SAFE, 1.0), 1.0)
    if how == "7bit":
        return most, _codes(ideal, most, even=even)
    factor = np.where(needed, np.minimum(_least(verdict), most), 1.0)
    while True:
        codes = _codes(ideal, factor, even=even)
        bad = _inexact(verdict, codes) & needed & (factor < most)
        if not bad.any():
            return factor, codes
        factor = np.where(bad, np.minimum(factor * STEP, most), factor)


def _codes(ideal: Array, factor: Array, *, even: bool) -> Array:
    scaled = ideal / factor[:, None]
    if even:
        return np.asarray(np.clip(2 * np.rint(scaled / 2), -128, 126))
    return np.asarray(np.clip(np.rint(scaled), -128, 127))


def _least(verdict: Verdict) -> Array:
    """Return the least factor by which each channel has to shrink, from the ends of its pairs."""
    ends = [max(channel.hi / 32767, channel.lo / -32768, 1.0) for channel in verdict.channels]
    return np.asarray(ends)


def _inexact(verdict: Verdict, codes: Array) -> Array:
    wei = verdict.problem.from_channel_rows(codes).astype(np.int8)
    flags = [inexact_channels(verdict.problem, wei, way, verdict.source) for way in verdict.ways]
    return np.asarray(np.any(flags, axis=0))


def _report(
    verdict: Verdict,
    before: Array,
    ideal: Array,
    codes: Array,
    factor: Array,
    dims: tuple[int, ...],
) -> Repair:
    changed = np.flatnonzero((codes != before).any(axis=1) | (factor != 1))
    real = codes * factor[:, None]
    return Repair(
        wei=verdict.problem.from_channel_rows(codes).astype(np.int8).reshape(dims),
        factor=factor,
        changed=tuple(int(channel) for channel in changed),
        sqnr=tuple(_sqnr(ideal[channel], real[channel]) for channel in changed),
        sqnr_of_all=_sqnr(ideal, real),
        remaining=tuple(int(channel) for channel in np.flatnonzero(_inexact(verdict, codes))),
    )


def _sqnr(ideal: Array, actual: Array) -> float:
    """Return the power of what is wanted over that of the error, in dB."""
    lost = float(np.square(ideal - actual).sum())
    power = float(np.square(ideal).sum())
    if lost == 0:
        return float("inf")
    return 10 * float(np.log10(power / lost))
