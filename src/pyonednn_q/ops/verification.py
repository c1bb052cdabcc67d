"""Verification: what an operator made ready, run on seeded data and compared with what was asked.

What was asked is what the caller wrote: codes and QParams of the weights, the bias and its type,
scales, window, chain. The operator's own weights, its plans and a dialect's constants are not
looked at; they are what is judged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q.check.draw import Draw, by_own_range, quantized
from pyonednn_q.check.meaning import Meaning
from pyonednn_q.check.places import Geometry, Places
from pyonednn_q.dtypes import Array
from pyonednn_q.expr.steps import Affine, Binary, Leaf, Sum
from pyonednn_q.native.trial import compare
from pyonednn_q.ops.source import OFFSET
from pyonednn_q.ops.staged import SourceLevels
from pyonednn_q.qparams import QParams, along
from pyonednn_q.quantize.ranges import Dynamic
from pyonednn_q.requantize import dialect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyonednn_q.check.places import Kind
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.settings import Settings

    Run = Callable[["Array", "Array | None", Mapping[str, "Array"]], Iterable["Array"]]

Dims = tuple[int, ...]

_POINT = 37  # of u8 sources whose range is found by each call
_FLOATS = float(np.finfo(np.float32).max)
_TINY = float(np.finfo(np.float32).tiny)


class _Source(NamedTuple):
    """One source: the ways in which it is passed, and what they mean."""

    passed: tuple[Array, ...]
    codes: Array
    scale: Array
    zero_point: Array


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """An operator as its caller wrote it.

    Attributes
    ----------
    kind : str
        Kind of operator, as in `Geometry`.
    wei : ndarray
        Codes or floats, as they came.
    bias : ndarray or None
        Real values if floating, else counts of the accumulator.
    wei_q : QParams or None
        Scale and zero point of the weights.
    settings : Settings
        Everything else but the window.
    window : mapping
        The window and the groups, as they were passed.
    """

    kind: Kind
    wei: Array
    bias: Array | None
    wei_q: QParams | None
    settings: Settings
    window: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def verify(
        self,
        src_dims: Dims,
        src_dtype: str,
        planned: Planned,
        run: Run,
        lost: tuple[int, ...] = (),
    ) -> None:
        """Run what was made ready for sources of a shape, and compare.

        Parameters
        ----------
        src_dims, src_dtype
            Dims and data type of a source; of its codes, where it has them.
        planned : Planned
            Plan that is judged: for the text of an error, and the levels that rewrites declare.
        run : callable
            f(src, residual, operands): results of every way in which a call can run.
        lost : tuple of int
            Channels that were allowed to saturate in 16 bits.

        Raises
        ------
        SelfCheckError
            A result differs by more than float32 and the declared exactness allow.
        """
        geometry = Geometry.of(self.kind, src_dims, self.wei.shape, **self.window)
        if not np.prod(geometry.dst):
            return
        places, draw = Places.of(geometry, Draw.turns(geometry.blocks[1])), Draw()
        for turn, source in enumerate(self._sources(geometry, draw, src_dtype)):
            residual, operands = self._operands(geometry, draw, turn)
            meaning = self._meaning(places, source, planned)
            band = meaning.band(places, source.codes, self.wei, before=residual, operands=operands)
            for src in source.passed:
                for dst in run(src, residual, operands):
                    compare(places, band, dst, planned.primitive, lost)

    @property
    def _axis(self) -> int:
        """The axis of the output channels in the weights."""
        return self.wei.ndim - 1 if self.kind == "matmul" else 0

    def _along(self, values: Any) -> Array:  # noqa: ANN401 - one value, or one per channel
        """Return values of channels so that they broadcast over the weights."""
        array = np.asarray(values, np.float64)
        return along(array, self._axis, self.wei.ndim) if array.ndim else array

    def _meaning(self, places: Places, source: _Source, planned: Planned) -> Meaning:
        settings, dst = self.settings, places.geometry.dst
        wei_scale = np.ones(1) if self.wei_q is None else np.asarray(self.wei_q.scale).reshape(-1)
        scale = source.scale.reshape(-1)
        if scale.size > 1:
            of_rows = source.scale if self.kind == "matmul" else scale[:, np.newaxis]
            scale = places.take(np.broadcast_to(of_rows, dst))
        dst_q = settings.dst_q
        scale = scale * wei_scale
        dst_scale = np.ones(1) if dst_q is None else np.asarray(dst_q.scale, float).reshape(-1)
        rule = None if settings.requantize is None else dialect(settings.requantize)
        if rule is not None:
            scale = np.minimum(scale, rule.most * dst_scale)
        may_split = settings.policy != "bitwise" and settings.zero_point != "attribute"
        return Meaning(
            settings.post,
            settings.dst,
            scale=scale,
            dst_scale=dst_scale,
            src_zero_point=source.zero_point,
            wei_zero_point=self._along(0 if self.wei_q is None else self.wei_q.zero_point),
            dst_zero_point=0 if dst_q is None else int(np.max(dst_q.zero_point)),
            bias=None if self.bias is None else self.bias.astype(np.float64),
            bias_in_acc=self.bias is not None and self.bias.dtype.kind in "iu",
            levels=planned.plan.exactness.levels if settings.policy == "fast" else 0,
            rounds_first=settings.exact_rounding,
            splits_src=may_split or settings.dynamic is not None,
            distance=None if rule is None else rule.distance,
        )

    def _operands(
        self, geometry: Geometry, draw: Draw, turn: int
    ) -> tuple[Array | None, dict[str, Array]]:
        """Return what a Sum reads, and the leaves of the chain."""
        dims, residual = geometry.dst, None
        sums = [step for step in self.settings.post if isinstance(step, Sum)]
        if sums:
            read = sums[0].dtype or self.settings.dst
            residual = draw.source(dims, read, sums[0].zero_point, turn=turn)
        sizes = {
            "full": dims,
            "per_channel": (geometry.channels,),
            "per_row": dims[-2:-1],
            "per_tensor": (1,),
        }
        steps = [step.operand for step in self.settings.post if isinstance(step, Binary)]
        leaves = [operand for operand in steps if isinstance(operand, Leaf)]
        return residual, {
            leaf.name: draw.operand(sizes[leaf.extent], leaf.dtype) for leaf in leaves
        }

    def _sources(self, geometry: Geometry, draw: Draw, src_dtype: str) -> Iterator[_Source]:
        """Give sources of all styles, each as codes and as floats, in every layout."""
        dims, src_q = geometry.src, self.settings.src_q
        blocks, toward = geometry.blocks, self._toward(geometry)
        for turn in range(Draw.turns(blocks[1])):
            point = 0
            if isinstance(src_q, (QParams, SourceLevels)):
                point = round(float(src_q.zero_point))
            if isinstance(src_q, Dynamic):
                point = _POINT if src_q.dtype == "u8" else 0
                src_dtype = src_q.dtype
            values = draw.source(dims, src_dtype, point, blocks=blocks, turn=turn, toward=toward)
            if src_q is None:
                yield _Source(self._laid(values), values, np.ones(1), np.zeros(1))
            elif isinstance(src_q, QParams):
                scale = float(src_q.scale)
                passed, codes = self._laid(values), values
                if _TINY <= scale <= _FLOATS / 1024:
                    real = draw.floats(values, scale, point, src_dtype)
                    codes = quantized(real, np.array(scale), np.array(point), src_dtype)
                    passed = (*self._laid(codes), real)
                yield _Source(passed, codes, np.array([scale]), np.array([point]))
            elif isinstance(src_q, SourceLevels):
                yield self._of_levels(values, src_q)
            else:
                yield self._by_own_range(draw, values, point, src_q)

    def _of_levels(self, values: Array, levels: SourceLevels) -> _Source:
        """Return a source whose float values lie on levels, where no rounding is in doubt."""
        codes = np.clip(values, levels.cut.qmin, levels.cut.qmax)
        scale, point = np.array([levels.scale]), np.array([levels.zero_point])
        steps = [step for step in levels.cut.quantize if isinstance(step, Affine)]
        shift = sum(step.shift.least for step in steps)
        real = (codes - shift) / np.prod([step.scale.least for step in steps])
        passed = (*self._laid(codes), real.astype(np.float32))
        if levels.dtype == "s8":  # it may run as u8, 128 more: a larger share of the point
            codes, point = codes.astype(np.int16) + OFFSET, point + OFFSET
        return _Source(passed, codes, scale, point)

    def _by_own_range(self, draw: Draw, values: Array, point: int, dynamic: Dynamic) -> _Source:
        """Return a float source whose range, or that of each row, is found by the call."""
        real = draw.floats(values, 0.125, point, dynamic.dtype)
        by_row = dynamic.extent == "per_row"
        lead = values.shape[: -1 if self.kind == "matmul" else 1] if by_row else ()
        rows = int(np.prod(lead))
        if by_row:
            spread = np.exp2(np.arange(rows) % 9 - 4.0).reshape(
                *lead, *(1,) * (real.ndim - len(lead))
            )
            real = (real * spread).astype(np.float32)
        quantized = by_own_range(real, dynamic.dtype, rows)
        ones = (1,) * (values.ndim - len(lead))
        scale, zero_point = (one.astype(np.float64).reshape(*lead, *ones) for one in quantized[1:])
        return _Source(self._laid(real), quantized.codes, scale, zero_point)

    def _laid(self, array: Array) -> tuple[Array, ...]:
        """Return an array in the layouts that calls may have."""
        if self.kind not in {"convolution", "deconvolution"}:
            return (array,)
        last = np.ascontiguousarray(np.moveaxis(array, 1, -1))
        return np.moveaxis(last, -1, 1), np.ascontiguousarray(array)

    def _toward(self, geometry: Geometry) -> Array:
        """Return the weights of the channel that can be largest, to broadcast over a source."""
        wei = self.wei.astype(np.float64)
        if self.wei_q is not None:
            wei = self.wei_q.dequantize(self.wei)
        if self.kind == "matmul":
            first = wei.reshape(-1, *wei.shape[-2:])[0]
            return np.asarray(first[:, int(np.abs(first).sum(axis=0).argmax())])
        largest = int(np.abs(wei).reshape(len(wei), -1).sum(axis=1).argmax())
        if self.kind == "inner_product":
            return np.asarray(wei[largest])
        # The same channel of each group, its kernel repeated so that some windows meet all of it.
        groups, each = geometry.groups, len(wei) // geometry.groups
        kernel = wei.reshape(groups, each, *wei.shape[1:])[:, largest % each]
        toward = kernel.reshape(-1, *wei.shape[2:])
        for axis, (stride, dilation) in enumerate(
            zip(geometry.stride, geometry.dilation, strict=True)
        ):
            place = np.arange(geometry.src[2 + axis])
            tap = (place + geometry.padding[axis][0]) // dilation
            if self.kind == "deconvolution":
                tap = -place * stride // dilation
            toward = np.take(toward, tap % wei.shape[2 + axis], axis=1 + axis)
        return toward
