"""Sampled sums: what a layer's new primitive gives on seeded codes, against exact sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.split import CODES
from pyonednn_q.check.meaning import Meaning, summed_error
from pyonednn_q.check.sample import Slots
from pyonednn_q.dtypes import F32_UNIT, F32_WHOLE, Array
from pyonednn_q.expr.steps import Chain, PRelu, Step
from pyonednn_q.expr.vec import Vec
from pyonednn_q.native import runtime
from pyonednn_q.native.drawn import (
    WRITTEN_BEHIND,
    NoModelHereError,
    difference,
    laid,
    laid_watched,
    pool,
    pool_of_factors,
    small,
)
from pyonednn_q.native.trial import geometry_of, rounded, step_of
from pyonednn_q.primitive.post_ops import BinaryPostOp, PReluPostOp, SumPostOp
from pyonednn_q.primitive.problem import MatMulProblem
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyonednn_q.check.meaning import Band
    from pyonednn_q.check.sample import Reads
    from pyonednn_q.native.prepared import Prepared
    from pyonednn_q.primitive.attr import Scale, ZeroPoint
    from pyonednn_q.primitive.dense_facts import DenseProblem

_LEVELS = 48.0  # of 8 bits, that results are apart as a rule
_NEAR = 64  # columns of weights, whose rows are next to each other
_OUTSIDE = np.iinfo(np.int64).min
_EXACT_TYPES = {("u1", "i1"), ("i1", "i1"), ("u1", "u1"), ("i1", "u1"), ("f4", "f4")}


class SampledSums:
    """A sample of what a convolution, deconvolution, inner product or matmul stores.

    Parameters
    ----------
    prepared : Prepared
        The primitive, on a problem of those kinds.
    wei, bias, values
        Arguments of `prepare`.

    Raises
    ------
    NoModelHereError
        Something that is not judged.
    """

    def __init__(
        self,
        prepared: Prepared,
        problem: DenseProblem,
        wei: Any,  # noqa: ANN401
        bias: Any,  # noqa: ANN401
        values: Mapping[str, object],
    ) -> None:
        attr, prepared = prepared.attr, _in_own_dims(prepared)
        if attr.fpmath != "strict" or attr.accumulation not in {"strict", "s32", "f32"}:
            raise NoModelHereError
        self.prepared, self.problem, self.attr = prepared, problem, attr
        self.geometry = geometry_of(problem)
        self.sample = Slots.of(
            problem.dst.dims,
            self.geometry.axis,
            terms=problem.terms,
            groups=self.geometry.groups,
            far=isinstance(problem, MatMulProblem) and problem.oc > _NEAR,
        )
        self.inputs = self._of_each_call()
        self.values = {**values, **self.inputs}
        if wei is None:
            self.inputs["wei"] = laid(
                prepared.layout("wei"), pool(problem.wei.dtype, *small(problem.wei.dtype))
            )
            wei = self.inputs["wei"]
        self.wei = wei.reshape(self.geometry.wei)
        self.bias = bias

    def differs(self, lost: Collection[int]) -> str:
        """Run the primitive, and return how its result differs; nothing where it does not.

        Parameters
        ----------
        lost : collection of int
            Output channels that are not compared.
        """
        prepared, sample = self.prepared, self.sample
        meaning = self._meaning()
        src_spec, dst_spec = prepared.layout("src"), prepared.layout("dst")
        lo, hi = self._reach(meaning)
        src = self.inputs["src"] = laid(src_spec, pool(src_spec.dtype, lo, hi))
        ends = small(dst_spec.dtype)
        out, behind = laid_watched(dst_spec, pool(dst_spec.dtype, *ends))
        kept = behind.copy()
        before = None
        sums = [op for op in self.attr.post_ops if isinstance(op, SumPostOp)]
        if sums:
            read = dtypes.numpy_dtype(sums[0].dtype or dst_spec.dtype)
            before = sample.take(out).view(read)[np.newaxis]
        operands = self._operands()
        prepared(*(self.inputs[name] for name in prepared.inputs), out=out)
        if not np.array_equal(behind, kept):
            return WRITTEN_BEHIND
        band = self._band(meaning, src, before, operands)
        return difference(sample, band, out, lost)

    # What was asked.

    def _of_each_call(self) -> dict[str, Any]:
        """Return scales and zero points that come with each call."""
        values: dict[str, Any] = {}
        for name in self.prepared.inputs:
            if name.startswith("post_op") or not name.endswith(("_scale", "_zero_point")):
                continue
            spec = self.prepared.layout(name)
            is_scale = name.endswith("_scale")
            ends = (1, 4) if is_scale else (0, 7)
            values[name] = laid(spec, pool(spec.dtype, *ends))
        return values

    def _operands(self) -> dict[str, Array]:
        """Return operands of binary post-ops at the sample, and give those of each call values."""
        operands = {}
        for at, op in enumerate(self.attr.post_ops):
            name = f"post_op_{at}"
            if name in self.prepared.inputs:
                spec = self.prepared.layout(name)
                self.inputs[name] = self.values[name] = laid(spec, pool_of_factors(spec.dtype))
            if isinstance(op, BinaryPostOp):
                value = np.asarray(self.values[name]).reshape(op.src1.dims)
                operands[name] = self.sample.take(value).astype(np.float64)[np.newaxis]
        return operands

    def _meaning(self) -> Meaning:
        problem, attr, sample = self.problem, self.attr, self.sample
        axis = problem.channel_axis
        steps: list[Step] = []
        for at, op in enumerate(attr.post_ops):
            name = f"post_op_{at}"
            if isinstance(op, PReluPostOp) and name in self.values:
                dims = [d if op.mask >> i & 1 else 1 for i, d in enumerate(problem.dst.dims)]
                slopes = np.asarray(self.values[name]).reshape(dims)
                steps.append(PRelu(Vec(sample.take(slopes).astype(np.float64))))
            else:
                steps.append(step_of(op, name, self.values, axis))
        point = attr.dst_zero_point
        if point is not None and point.mask:
            raise NoModelHereError
        bias = self.bias
        if bias is not None:
            bias = np.asarray(bias).reshape(-1)[sample.index[axis]].astype(np.float64)
        dst_scale = self._of_result(attr.dst_scale)
        scale = np.ones(1)
        for name in ("src", "wei"):
            if not self._is_inner(name):
                scale = scale * self._outside(name)
        points = np.asarray(self.values.get("dst_zero_point", 0)).reshape(-1)
        return Meaning(
            Chain(*steps),
            problem.dst.dtype,
            scale=scale,
            dst_scale=dst_scale,
            dst_zero_point=int(points[0]),
            bias=bias,
            in_float32=True,
        )

    def _of_result(self, scale: Scale | None) -> Array:
        if scale is None:
            return np.ones(1)
        values = rounded(scale, self.values["dst_scale"])
        if scale.mask == 0:
            return values
        dims = [d if scale.mask >> i & 1 else 1 for i, d in enumerate(self.problem.dst.dims)]
        return self.sample.take(values.reshape(dims))

    # Scales and zero points of what is summed.

    def _inner_axes(self, name: str) -> Collection[int]:
        """Return the dimensions of a tensor that sums run over."""
        ndim = len(self.problem.tensors[name].dims)
        if isinstance(self.problem, MatMulProblem):
            return (ndim - 1,) if name == "src" else (ndim - 2,)
        first = (
            1 if name == "src" else 2 if len(self.problem.wei.dims) > len(self.geometry.wei) else 1
        )
        return range(first, ndim)

    def _is_inner(self, name: str) -> bool:
        """Whether elements have a scale or a zero point of their own within a sum."""
        for kind in ("scale", "zero_point"):
            factor = getattr(self.attr, f"{name}_{kind}")
            if factor is not None and any(
                factor.mask >> axis & 1 for axis in self._inner_axes(name)
            ):
                return True
        return False

    def _outside(self, name: str) -> Array:
        """Return what elements of src or weights are worth, one for each slot."""
        scale = getattr(self.attr, f"{name}_scale")
        if scale is None:
            return np.ones(1)
        values = rounded(scale, self.values[f"{name}_scale"])
        if scale.mask == 0:
            return values
        return self._at_slots(name, scale, values)

    def _at_slots(self, name: str, factor: Scale | ZeroPoint, values: Array) -> Array:
        """Return values of a mask that spares what is summed over, one for each slot."""
        spec, sample = self.problem.tensors[name], self.sample
        inner = self._inner_axes(name)
        groups = (1,) * (len(spec.dims) - len(factor.groups)) + factor.groups
        table = values.reshape(
            [
                d // g if factor.mask >> i & 1 else 1
                for i, (d, g) in enumerate(zip(spec.dims, groups, strict=True))
            ]
        )
        index: list[Any] = [0] * len(spec.dims)
        outer = [i for i in range(len(spec.dims)) if i not in inner]
        if isinstance(self.problem, MatMulProblem):
            *lead, row, column = sample.index
            of = [*lead[len(lead) - len(spec.dims) + 2 :], row if name == "src" else column]
        elif name == "src":
            of = [sample.index[0]]
        else:
            channels = sample.index[1]
            each = self.geometry.channels // self.geometry.groups
            of = [channels] if len(outer) == 1 else [channels // each, channels % each]
        for axis, at in zip(outer, of, strict=True):
            index[axis] = (at // groups[axis]) % table.shape[axis]
        return np.asarray(table[tuple(index)])

    def _reach(self, meaning: Meaning) -> tuple[int, int]:
        """Return between which codes a source is drawn, so that results differ and fit."""
        dtype = self.problem.src.dtype
        if dtypes.is_float(dtype):
            return -8, 8
        lo, hi = dtypes.qmin(dtype), dtypes.qmax(dtype)
        if not runtime.isa().has_vnni(self.prepared.impl):
            # Of u8 what pairs of products hold in 16 bits; s8 runs as u8, 128 more.
            lo, hi = (0, 127) if dtype == "u8" else (-128, -1)
        if dtypes.bits(self.problem.dst.dtype) > 8:
            return lo, hi
        size = self._wei_size() * np.sqrt(self.problem.terms / 3)
        worth = float(np.median(meaning.scale / meaning.dst_scale))
        for name in ("src", "wei"):
            if self._is_inner(name) and getattr(self.attr, f"{name}_scale") is not None:
                worth *= float(np.median(np.asarray(self.values[f"{name}_scale"])))
        apart = int(np.clip(_LEVELS / max(size * worth, 1e-9), 2, 255))
        centre = int(np.clip(self._point("src"), lo, hi))
        return max(lo, centre - apart), min(hi, centre + apart)

    def _wei_size(self) -> float:
        """Return about how large weights are, less their zero point."""
        wei = self.wei
        flat = wei.reshape(-1) if wei.flags.c_contiguous else wei[..., :1].reshape(-1)
        some = flat[:: max(1, flat.size // 2048)].astype(np.float64)
        point = np.asarray(self.values.get("wei_zero_point", 0)).astype(np.float64).mean()
        return float(np.sqrt(((some - point) ** 2).mean()))

    def _error(self, acc: Array, sizes: Array) -> Array:
        """Return by how much kernels may have the sums wrong."""
        terms = self.problem.terms
        if sizes.size:
            return summed_error(sizes, terms)
        error: Array = F32_UNIT * np.abs(acc)
        if terms * CODES * 128 > F32_WHOLE:
            # Sums of whole codes are rounded before the share of a zero point, or of the 128 that
            # make u8 of s8, is taken off. Of a channel they are no more than twice the usual.
            error = error + 2 * F32_UNIT * CODES * terms * self._wei_size()
        return error

    def _point(self, name: str) -> int:
        values = np.asarray(self.values.get(f"{name}_zero_point", 0)).reshape(-1)
        return int(values[0])

    # The sums.

    def _band(
        self, meaning: Meaning, src: Array, before: Array | None, operands: dict[str, Array]
    ) -> Band:
        reads = self.sample.reads(self.geometry)
        types = src.dtype.str[1:], self.wei.dtype.str[1:]
        is_plain = types in _EXACT_TYPES and not (self._is_inner("src") or self._is_inner("wei"))
        masked = [
            name
            for name in ("src", "wei")
            if (point := getattr(self.attr, f"{name}_zero_point")) is not None and point.mask
        ]
        steps = self.wei.strides
        if masked or any(step % self.wei.itemsize for step in steps):
            is_plain = False
        has_sizes = types[0][0] == "f" or not is_plain or self.prepared.kind == "reference"
        if is_plain:
            acc, sizes = self._quick(reads, src, has_sizes)
        else:
            acc, sizes = self._slow(reads, src)
        error = self._error(acc, sizes if has_sizes else np.empty(0))
        return meaning.band_of(acc[np.newaxis], error[np.newaxis], before=before, operands=operands)

    def _quick(self, reads: Reads, src: Array, has_sizes: bool) -> tuple[Array, Array]:
        steps = [step // src.itemsize for step in src.strides]
        wei_steps = [step // self.wei.itemsize for step in self.wei.strides]
        src_at = sum(at * step for at, step in zip(reads.src_at, steps, strict=True))
        src_at = np.where(reads.inside, src_at, _OUTSIDE)
        wei_at = sum(at * step for at, step in zip(reads.wei_at, wei_steps, strict=True))
        taps = sum(at * step for at, step in zip(reads.taps, wei_steps, strict=True))
        acc = np.empty(self.sample.count)
        sizes = np.empty(self.sample.count if has_sizes else 0)
        runtime.core.sampled_sums(
            src,
            self.wei,
            src_at,
            np.asarray(taps),
            np.asarray(wei_at),
            inner=reads.inner,
            src_step=steps[reads.src_axis],
            wei_step=wei_steps[reads.wei_axis],
            src_point=self._point("src"),
            wei_point=self._point("wei"),
            sums=acc,
            sizes=sizes,
        )
        return acc, sizes

    def _slow(self, reads: Reads, src: Array) -> tuple[Array, Array]:
        """Return sums and sums of absolute products, of values that are gathered one by one."""
        src_index, wei_index = reads.src_index(), reads.wei_index()
        of_src = self._worth("src", src[src_index], src_index)
        of_src = of_src * reads.inside[..., np.newaxis]
        of_wei = self._worth("wei", self.wei[wei_index], wei_index)
        of_src = np.repeat(of_src, len(of_wei) // len(of_src), axis=0)
        shape = (len(of_wei), -1)
        of_src = np.broadcast_to(of_src, of_wei.shape).reshape(shape)
        of_wei = of_wei.reshape(shape)
        acc = np.einsum("ij,ij->i", of_src, of_wei)
        return acc, np.einsum("ij,ij->i", np.abs(of_src), np.abs(of_wei))

    def _worth(self, name: str, codes: Array, index: tuple[Array, ...]) -> Array:
        """Return elements less their zero points, and times scales that sums do not spare."""
        worth = codes.astype(np.float64)
        point = getattr(self.attr, f"{name}_zero_point")
        if point is not None:
            values = np.asarray(self.values[f"{name}_zero_point"]).reshape(-1).astype(np.float64)
            worth = worth - self._at_elements(name, point, values, index)
        scale = getattr(self.attr, f"{name}_scale")
        if scale is not None and self._is_inner(name):
            values = rounded(scale, self.values[f"{name}_scale"])
            worth = worth * self._at_elements(name, scale, values, index)
        return worth

    def _at_elements(
        self, name: str, factor: Scale | ZeroPoint, values: Array, index: tuple[Array, ...]
    ) -> Array | float:
        if factor.mask == 0:
            return float(values[0])
        dims = self.problem.tensors[name].dims
        if len(index) != len(dims):  # groups of channels have a dimension of their own
            if any(factor.mask >> axis & 1 for axis in self._inner_axes(name)):
                raise NoModelHereError
            return self._at_slots(name, factor, values).reshape(-1, *(1,) * (index[0].ndim - 1))
        groups = (1,) * (len(dims) - len(factor.groups)) + factor.groups
        on = [bool(factor.mask >> axis & 1) for axis in range(len(dims))]
        table = values.reshape(
            [d // g if o else 1 for d, g, o in zip(dims, groups, on, strict=True)]
        )
        where = tuple(
            at // group if is_on else 0 for at, group, is_on in zip(index, groups, on, strict=True)
        )
        return np.asarray(table[where])


def _in_own_dims(prepared: Prepared) -> Prepared:
    """Return the same for arrays of the problem's dims, where it was made for others."""
    specs = {}
    for name in ("src", "dst"):
        spec = prepared.problem.tensors[name]
        if prepared.layout(name).dims != spec.dims:
            is_free = spec.strides is None
            specs[name] = TensorSpec.dense(spec.dims, spec.dtype) if is_free else spec
    return prepared.seen_as(specs) if specs else prepared
