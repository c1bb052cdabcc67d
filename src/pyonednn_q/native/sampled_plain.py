"""Sampled plain: what a new primitive without weights gives on seeded codes, looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.check.draw import WIDE
from pyonednn_q.check.meaning import Meaning
from pyonednn_q.check.plain_values import entering, terms_of
from pyonednn_q.check.sample import Slots
from pyonednn_q.dtypes import Array
from pyonednn_q.expr.steps import Chain, PRelu, Step
from pyonednn_q.expr.vec import Vec
from pyonednn_q.native.drawn import (
    WRITTEN_BEHIND,
    NoModelHereError,
    difference,
    laid,
    laid_watched,
    pool,
    pool_of_factors,
    pool_of_reals,
    small,
)
from pyonednn_q.native.trial import rounded, step_of
from pyonednn_q.primitive.post_ops import BinaryPostOp, PReluPostOp, SumPostOp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyonednn_q.native.prepared import Prepared
    from pyonednn_q.primitive.problem import Problem
    from pyonednn_q.primitive.tensor import TensorSpec

_SCALED = {"reorder": ("src",), "binary": ("src", "src1"), "softmax": ("src",)}
_LEVELS = 100.0  # of 8 bits, that results are apart at most


class SampledValues:
    """A sample of what a reorder, a pooling or another kind without products of weights stores.

    Parameters
    ----------
    prepared : Prepared
        The primitive.
    problem : Problem
        Problem of the primitive.
    wei, values
        Arguments of `prepare`.

    Raises
    ------
    NoModelHereError
        Something that is not judged.
    """

    def __init__(
        self,
        prepared: Prepared,
        problem: Problem,
        wei: Any,  # noqa: ANN401 - an array of any type, if at all
        values: Mapping[str, object],
    ) -> None:
        attr = prepared.attr
        scaled = _SCALED.get(problem.kind, ())
        for name, factor in attr.structures.items():
            tensor = name.partition("_")[0]
            is_point = name.endswith("_zero_point")
            is_read = problem.kind == "reorder" if is_point else tensor in scaled
            if (tensor != "dst" and not is_read) or (name == "dst_zero_point" and factor.mask):
                raise NoModelHereError
            if factor.groups:
                raise NoModelHereError
        for name, spec in problem.tensors.items():
            if name in prepared.inputs and prepared.layout(name).dims != spec.dims:
                raise NoModelHereError
        if prepared.layout("dst").dims != problem.tensors["dst"].dims:
            raise NoModelHereError
        self.prepared, self.problem, self.attr = prepared, problem, attr
        dims = problem.tensors["dst"].dims
        self.sample = Slots.of(dims, min(1, len(dims) - 1), terms=terms_of(problem))
        self.values = dict(values)
        self.wei = wei

    def differs(self) -> str:
        """Run the primitive, and return how its result differs; nothing where it does not."""
        prepared, sample, attr = self.prepared, self.sample, self.attr
        inputs = {name: self._input(name) for name in prepared.inputs}
        self.values |= inputs
        arrays = {name: array for name, array in inputs.items() if name in self.problem.tensors}
        if self.wei is not None:
            arrays["wei"] = np.asarray(self.wei)
        dst_spec = prepared.layout("dst")
        out, behind = laid_watched(dst_spec, pool(dst_spec.dtype, *small(dst_spec.dtype)))
        kept = behind.copy()
        sums = [op for op in attr.post_ops if isinstance(op, SumPostOp)]
        before = None
        if sums:
            read = dtypes.numpy_dtype(sums[0].dtype or dst_spec.dtype)
            before = sample.take(out).view(read)[np.newaxis]
        prepared(*(inputs[name] for name in prepared.inputs), out=out)
        if not np.array_equal(behind, kept):
            return WRITTEN_BEHIND
        scales = {name: self._scale(name) for name in ("src", "src1")}
        point = self._points("src")
        x, error, steps, operands = entering(self.problem, sample, arrays, scales, point)
        chain, more = self._chain()
        meaning = Meaning(
            Chain(*steps, *chain),
            dst_spec.dtype,
            dst_scale=sample.take(self._scale("dst")),
            dst_zero_point=int(self._points("dst").reshape(-1)[0]),
            in_float32=True,
        )
        band = meaning.band_of(
            x[np.newaxis], error[np.newaxis], before=before, operands=operands | more
        )
        return difference(sample, band, out)

    def _input(self, name: str) -> Array:
        """Return values of what each call brings."""
        spec = self.prepared.layout(name)
        if name.endswith("_scale"):
            return laid(spec, pool(spec.dtype, 1, 4))
        if name.endswith("_zero_point"):
            return laid(spec, pool(spec.dtype, 0, 7))
        if name.startswith("post_op") or name in {"src1", "wei"}:
            return laid(spec, pool_of_factors(spec.dtype))
        return laid(spec, self._pool_of_source(spec))

    def _pool_of_source(self, spec: TensorSpec) -> bytes:
        """Return values whose results differ, and mostly fit what stores them."""
        stored = self.problem.tensors["dst"].dtype
        worth = float(np.median(self._scale("src"))) / float(np.median(self._scale("dst")))
        if dtypes.is_float(spec.dtype):
            power = 2
            if dtypes.bits(stored) == 8:
                power = int(np.clip(np.floor(np.log2(_LEVELS / worth)), -20, 12))
            return pool_of_reals(spec.dtype, power)
        lo, hi = dtypes.qmin(spec.dtype), dtypes.qmax(spec.dtype)
        if dtypes.bits(spec.dtype) > 8:
            most = WIDE
            if dtypes.bits(stored) == 8:
                most = int(np.clip(_LEVELS / worth, 2, WIDE))
            lo, hi = -most, most
        return pool(spec.dtype, lo, hi)

    def _chain(self) -> tuple[list[Step], dict[str, Array]]:
        """Return the post-ops as steps, and their operands at the sample."""
        steps: list[Step] = []
        operands = {}
        dims = self.problem.tensors["dst"].dims
        for at, op in enumerate(self.attr.post_ops):
            name = f"post_op_{at}"
            if isinstance(op, PReluPostOp):
                shape = [d if op.mask >> i & 1 else 1 for i, d in enumerate(dims)]
                slopes = self.sample.take(np.asarray(self.values[name]).reshape(shape))
                steps.append(PRelu(Vec(slopes.astype(np.float64))))
                continue
            steps.append(step_of(op, name, self.values, self.sample.axis))
            if isinstance(op, BinaryPostOp):
                value = np.asarray(self.values[name]).reshape(op.src1.dims)
                operands[name] = self.sample.take(value).astype(np.float64)[np.newaxis]
        return steps, operands

    def _scale(self, name: str) -> Array:
        """Return scales of a tensor, which broadcast to it."""
        scale = self.attr.scale(name) if name != "src1" else self.attr.src1_scale
        if scale is None:
            return np.ones(1)
        values = rounded(scale, self.values.get(f"{name}_scale", 1.0))
        return self._spread(name, scale, values)

    def _points(self, name: str) -> Array:
        point = self.attr.zero_point(name)
        if point is None:
            return np.zeros(1)
        values = np.asarray(self.values.get(f"{name}_zero_point", 0)).reshape(-1)
        return self._spread(name, point, values.astype(np.float64))

    def _spread(self, name: str, factor: Any, values: Array) -> Array:  # noqa: ANN401
        if factor.mask == 0 or values.size == 1:
            return values.reshape(-1)[:1]
        dims = self.problem.tensors[name].dims
        return values.reshape([d if factor.mask >> i & 1 else 1 for i, d in enumerate(dims)])
