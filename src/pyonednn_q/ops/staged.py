"""Staged: chains of primitives of their own, for steps left over and for float sources."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.compose.stages import DST, SRC, Stage, quantizing_chain, quantizing_reorder, stages
from pyonednn_q.compose.zero_point import settled
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, LayoutError, ShapeError
from pyonednn_q.expr.steps import Affine, Chain
from pyonednn_q.native import Prepared, prepare
from pyonednn_q.native.passes import Cast, is_cast
from pyonednn_q.primitive.problem import ReorderProblem
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.expr.fq_forms import CutFakeQuantize
    from pyonednn_q.native.first_run import SelfCheck


@dataclass(frozen=True, slots=True)
class Flat:
    """View of a tensor of many dimensions as (before, channels, after), in the order of memory.

    Attributes
    ----------
    order : tuple of int
        The dimensions, outermost first.
    shape : tuple of int
        Their lengths in that order.
    dims : (before, channels) or (before, channels, after)
        The flat ones.
    """

    order: tuple[int, ...]
    shape: tuple[int, ...]
    dims: tuple[int, ...]

    @classmethod
    def of(cls, spec: TensorSpec, axis: int) -> Flat:
        """Return the flat form of a tensor with its channels on `axis`."""
        assert spec.strides is not None
        strides = spec.strides
        # Dimensions of 1 keep their place beside their neighbours: their strides say nothing.
        order = tuple(sorted(range(spec.ndim), key=lambda i: (-strides[i], spec.dims[i] == 1, i)))
        shape = tuple(spec.dims[i] for i in order)
        at = order.index(axis)
        before, after = math.prod(shape[:at]), math.prod(shape[at + 1 :])
        dims = (before, shape[at], after) if after > 1 else (before, shape[at])
        return cls(order, shape, dims)

    def view(self, array: Array) -> Array:
        """Return an array flat: itself, or a copy if it lies in memory otherwise."""
        flat: Array = array.transpose(self.order).reshape(self.dims)
        return flat

    def back(self, flat: Array) -> Array:
        """Return a flat array in the tensor's own dimensions, without a copy."""
        inverse = tuple(self.order.index(i) for i in range(len(self.order)))
        array: Array = flat.reshape(self.shape).transpose(inverse)
        return array

    def operand(self, array: Array, extent: str) -> Array:
        """Return the operand of a leaf, flat."""
        if extent == "full":
            return self.view(array)
        if extent == "per_row":
            dims = tuple(self.shape[self.order.index(i)] for i in range(len(self.order)))
            return self.view(np.broadcast_to(array[:, None], dims))
        channels = -1 if extent == "per_channel" else 1
        return array.reshape((1, channels, *(1,) * (len(self.dims) - 2)))


class Staged:
    """Stages made ready to run, one after the other."""

    def __init__(
        self,
        stages: tuple[Stage, ...],
        *,
        allow_reference: bool = False,
        self_check: SelfCheck = "auto",
    ) -> None:
        self.stages = stages
        self.primitives = tuple(_prepared(stage, allow_reference, self_check) for stage in stages)

    def __call__(self, sources: Mapping[str, Array], out: Array | None = None) -> Array:
        """Run all stages.

        Parameters
        ----------
        sources : mapping
            Flat arrays by the names that stages give them, `SRC` among them.
        out : ndarray, optional
            Array for the result, flat and row-major.
        """
        values = dict(sources)
        for stage, primitive in zip(self.stages, self.primitives, strict=True):
            inputs = dict(stage.inputs)
            arrays = [
                _input(values, inputs.get(name), primitive.layout(name))
                for name in primitive.inputs
            ]
            target = out if stage.output == DST else None
            values[stage.output] = primitive(*arrays, out=target)
        return values[DST]

    @property
    def nbytes(self) -> int:
        """About how many bytes its primitives take."""
        return sum(one.nbytes for one in self.primitives if isinstance(one, Prepared))

    def describe(self) -> str:
        """Return a line for every stage: what it computes, and on which implementation."""
        return "\n".join(map(_line, self.stages, self.primitives))


@dataclass(frozen=True, slots=True)
class Rest:
    """Steps that run after a plan's primitive, on its result seen flat.

    Attributes
    ----------
    flat : Flat
        View of the primitive's dst in three dims.
    staged : Staged
        Steps that run.
    extents : mapping of str to str
        Extent of each leaf, by name: "full", "per_channel", "per_row" or "per_tensor"; others are
        full.
    """

    flat: Flat
    staged: Staged
    extents: Mapping[str, str]

    @classmethod
    def of(
        cls, plan: Plan, dst: TensorSpec, *, allow_reference: bool, self_check: SelfCheck
    ) -> Rest:
        """Prepare what a plan leaves over.

        Parameters
        ----------
        plan : Plan
            Plan with leftovers.
        dst : TensorSpec
            Tensor that its primitive stores.
        allow_reference, self_check
            Options of `prepare`.
        """
        facts = plan.facts
        flat = Flat.of(dst, facts.axis)
        left = stages(plan.leftovers, flat.dims, facts.dst, residual=facts.dst)
        extents = {leaf.name: leaf.extent for leaf in plan.leaves}
        return cls(
            flat, Staged(left, allow_reference=allow_reference, self_check=self_check), extents
        )

    def __call__(self, arrays: Mapping[str, Array], out: Array | None = None) -> Array:
        """Return dst, in the dims of the primitive.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            Arrays by the names that stages give them: the result of the primitive and what a Sum
            reads, in its dims; and leaves.
        out : ndarray, optional
            Written and returned.
        """
        flat = self.flat
        of = self.extents
        seen = {name: flat.operand(one, of.get(name, "full")) for name, one in arrays.items()}
        if out is None:
            return flat.back(self.staged(seen))
        target = flat.view(out)
        if np.may_share_memory(target, out):
            self.staged(seen, target)
        else:  # another layout than the primitive's
            np.copyto(out, flat.back(self.staged(seen)))
        return out

    @property
    def nbytes(self) -> int:
        """About how many bytes its primitives take."""
        return self.staged.nbytes

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing: the plan says what is left over."""
        return ()

    def describe(self) -> str:
        """Return a line for every stage."""
        return self.staged.describe()


def _line(stage: Stage, primitive: Prepared | Cast) -> str:
    if isinstance(primitive, Cast):
        return f"cast from {primitive.layout('src').dtype} to {primitive.layout('dst').dtype}"
    return f"{stage.problem.kind} {stage.attr.text()}".rstrip() + f" on {primitive.impl}"


def _prepared(stage: Stage, allow_reference: bool, self_check: SelfCheck) -> Prepared | Cast:
    if isinstance(stage.problem, ReorderProblem) and is_cast(stage.problem):
        return Cast(stage.problem.src, stage.problem.dst)
    values = {
        name: vec.values().astype(np.int32 if name.endswith("_zero_point") else np.float32)
        for name, vec in stage.values
    }
    options: Any = {"allow_reference": allow_reference, "self_check": self_check}
    return prepare(stage.problem, stage.attr, values=values, **options)


def _input(values: Mapping[str, Array], name: str | None, spec: TensorSpec) -> Array:
    """Return a value with its bits read as `spec` says, as a sum may ask; or the number 1."""
    dtype = dtypes.numpy_dtype(spec.dtype)
    if name is None:
        return np.ones(spec.dims, dtype)
    array = values[name]
    return array if array.dtype == dtype else array.view(dtype)


@dataclass(frozen=True, slots=True)
class SourceLevels:
    """Codes of a source by a FakeQuantize that is no QParams: other levels, or 0 between two.

    Attributes
    ----------
    cut : CutFakeQuantize
        Steps from real values to codes, and back.
    dtype : {"u8", "s8"}
        Data type of the codes.
    scale : float
        Real value of a step of the codes.
    zero_point : float
        The code of real 0, which need not be whole.
    """

    cut: CutFakeQuantize
    dtype: str
    scale: float
    zero_point: float

    @classmethod
    def of(cls, cut: CutFakeQuantize, dtype: str) -> SourceLevels:
        """Return those of a FakeQuantize for the whole tensor."""
        (step,) = cut.dequantize
        assert isinstance(step, Affine)
        scale = step.scale.least
        return cls(cut, dtype, scale, settled(-step.shift.least / scale))


class Quantizer:
    """Float values to integer codes, in float32: a code next to a tie may be its neighbour.

    One reorder from whatever layout the values have, where scale and zero point say it all;
    otherwise binary primitives with post-ops.

    Parameters
    ----------
    cut : CutFakeQuantize
        FakeQuantize that is computed.
    spec : TensorSpec
        Dims, integer type and strides of the codes.
    """

    def __init__(self, cut: CutFakeQuantize, spec: TensorSpec) -> None:
        self.spec = spec
        self._chain = Chain(*cut.quantize)
        self._reorders: dict[TensorSpec, Staged] = {}
        self._staged: Staged | None = None
        self._flat = Flat.of(spec, min(1, spec.ndim - 1))
        if quantizing_reorder(self._chain, _f32(spec), spec) is None:
            chain = quantizing_chain(self._chain, spec.dtype)
            self._staged = Staged(stages(chain, self._flat.dims, spec.dtype))

    def __call__(self, values: Array) -> Array:
        """Return the codes of float32 values, in the layout that was asked for.

        Raises
        ------
        DTypeError, ShapeError
            Not float32, or of other dims.
        """
        if values.dtype != np.float32:
            wanted = f"float32, or {self.spec.dtype} codes"
            raise DTypeError("src", str(values.dtype), wanted)
        if values.shape != self.spec.dims:
            raise ShapeError("src", str(values.shape), str(self.spec.dims))
        if self._staged is not None:
            return self._flat.back(self._staged({SRC: self._flat.view(values)}))
        source, reorder = self._reorder(values)
        return reorder({SRC: source})

    def _reorder(self, values: Array) -> tuple[Array, Staged]:
        """Return the values as a reorder can read them, and that reorder."""
        try:
            spec = TensorSpec.of(values, "src")
        except (LayoutError, ArgumentError):  # reversed, overlapping or unaligned
            values = np.ascontiguousarray(values)
            spec = TensorSpec.of(values, "src")
        if spec not in self._reorders:
            stage = quantizing_reorder(self._chain, spec, self.spec)
            assert stage is not None
            self._reorders[spec] = Staged((stage,))
        return values, self._reorders[spec]


def _f32(spec: TensorSpec) -> TensorSpec:
    return TensorSpec(spec.dims, "f32", spec.strides)
