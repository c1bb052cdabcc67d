"""Operations beside operators: views, concatenations, codes and back, Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import function, instance, integers, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.native import prepare
from pyonednn_q.native.program import Pass
from pyonednn_q.network.moves import Lookup, known
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.problem import ReorderProblem
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.qparams import QParams
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.network.lowering import Lowering

CODES = ("u8", "s8")
_MOST_SPREAD = 4  # channels that a quantizing pass puts last


@dataclass(frozen=True, slots=True)
class Reshape:
    """The same elements in row-major order, in other dimensions.

    Parameters
    ----------
    dims : tuple of int
        Dims of the result; one of them may be -1, which is computed from the others.
    """

    dims: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", integers("dims", self.dims))
        if min(self.dims, default=-2) < -1 or self.dims.count(-1) > 1:
            raise ShapeError("dims", str(self.dims), "lengths, at most one of them -1")

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Make a view, after a copy if the elements are in another order."""
        (name,) = src
        spec = at.specs[name]
        known = prod(dim for dim in self.dims if dim != -1)
        dims = tuple(spec.size // max(known, 1) if dim == -1 else dim for dim in self.dims)
        if prod(dims) != spec.size:
            raise ShapeError("dims", str(self.dims), f"as many elements as {spec.dims}")
        dense = at.in_layout(name, TensorSpec.dense(spec.dims, spec.dtype))
        at.view(dst, dense, TensorSpec.dense(dims, spec.dtype))


@dataclass(frozen=True, slots=True)
class Concat:
    """Concatenation of tensors along an axis; codes must have the same scale, or a table.

    Parameters
    ----------
    axis : int
        Counted from the end when negative.
    tables : sequence of Lookup or None, optional
        Table of codes for each source whose scale differs from the result's.
    """

    axis: int = 1
    tables: tuple[Lookup | None, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", whole("axis", self.axis))
        for table in self.tables:
            if table is not None:
                instance("tables", table, Lookup)
        object.__setattr__(self, "tables", tuple(self.tables))

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add a copy of each source into its part of the result."""
        specs = [at.specs[name] for name in src]
        tables = self.tables or (None,) * len(src)
        if len(tables) != len(src):
            raise ArgumentError("tables", str(len(tables)), f"{len(src)}, one a source")
        stored = [
            spec if table is None else replace(spec, dtype=table.of(spec))
            for spec, table in zip(specs, tables, strict=True)
        ]
        first = stored[0]
        if not -first.ndim <= self.axis < first.ndim:
            raise ArgumentError("axis", str(self.axis), f"one of {first.ndim} dimensions")
        axis = self.axis % first.ndim
        for spec in stored:
            if spec.dtype != first.dtype:
                raise DTypeError("src", spec.dtype, f"{first.dtype}, as the first")
            others = [
                spec.dims[:axis] + spec.dims[axis + 1 :],
                first.dims[:axis] + first.dims[axis + 1 :],
            ]
            if others[0] != others[1]:
                raise ShapeError("src", str(spec.dims), f"{first.dims} but for dimension {axis}")
        dims = list(first.dims)
        dims[axis] = sum(spec.dims[axis] for spec in specs)
        layout = TensorSpec.channels_last if first.ndim > 2 else TensorSpec.dense
        whole_spec = layout(dims, first.dtype)
        assert whole_spec.strides is not None
        at.reserve(dst, whole_spec)
        begins = 0
        for name, spec, table in zip(src, stored, tables, strict=True):
            part = TensorSpec(spec.dims, spec.dtype, whole_spec.strides)
            offset = begins * whole_spec.strides[axis] * dtypes.bits(spec.dtype) // 8
            into = at.fresh(f"{dst}[{name}]")
            at.view(into, dst, part, offset)
            if table is None:
                # No copy from gaps to the same gaps: see the guard reorder-of-gaps-alike.
                read = at.without_gaps(name) if spec.lies_as(part) else name
                copy = prepare(ReorderProblem(at.specs[read], part))
                at.write(copy, (read,), into)
            else:
                strides = (known(at.specs[name]), known(part))
                at.write(Pass.look_up(table.table, spec.dims, *strides), (name,), into)
            begins += spec.dims[axis]


@dataclass(frozen=True, slots=True)
class Quantize:
    """Codes of float32 values, as ONNX's QuantizeLinear has them: ties to even, in float32.

    Parameters
    ----------
    params : QParams
        Scale and zero point of the codes, per tensor, of 8 bits.
    """

    params: QParams

    def __post_init__(self) -> None:
        instance("params", self.params, QParams)
        check_params("params", self.params)

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add our pass over memory. Codes of an image with few channels are channels-last."""
        (name,) = src
        spec = at.specs[name]
        if spec.dtype != "f32":
            raise DTypeError("src", spec.dtype, "f32")
        name = at.without_gaps(name)
        dims, strides, dtype = spec.dims, at.specs[name].strides, self.params.dtype
        spread, codes = (1, 1, spec.size), TensorSpec(dims, dtype, strides)
        is_image = len(dims) > 3 and 1 < dims[1] <= _MOST_SPREAD
        if is_image and strides == TensorSpec.dense(dims, "f32").strides:
            spread = (dims[0], dims[1], prod(dims[2:]))
            codes = TensorSpec.channels_last(dims, dtype)
        at.add(Pass.quantize(spread, self.params), (name,), dst, codes)


def check_params(argument: str, params: QParams | None) -> None:
    """Check what codes mean: of a tensor, of 8 bits; None is allowed."""
    if params is not None:
        instance(argument, params, QParams)
        if params.channels is not None or params.dtype not in CODES:
            raise ArgumentError(argument, str(params), "of a tensor, of u8 or s8")


@dataclass(frozen=True, slots=True)
class Dequantize:
    """Float32 values of codes: (code - zero_point) * scale.

    Parameters
    ----------
    params : QParams
        Scale and zero point of the codes, per tensor.
    """

    params: QParams

    def __post_init__(self) -> None:
        instance("params", self.params, QParams)
        if self.params.channels is not None:
            raise ArgumentError("params", str(self.params), "of a tensor")

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add a reorder with a scale and a zero point."""
        (name,) = src
        spec = at.specs[name]
        if spec.dtype != self.params.dtype:
            raise DTypeError("src", spec.dtype, self.params.dtype)
        name = at.without_gaps(name)
        spec = at.specs[name]
        values = TensorSpec(spec.dims, "f32", spec.strides)
        attr, of = Attr(src_scale=Scale()), {"src_scale": np.float32(self.params.scale)}
        if self.params.zero_point != 0:
            attr = Attr(src_scale=Scale(), src_zero_point=ZeroPoint())
            of["src_zero_point"] = np.int32(self.params.zero_point)
        at.add(prepare(ReorderProblem(spec, values), attr, values=of), (name,), dst, values)


@dataclass(frozen=True, slots=True)
class Convert:
    """The same values in another floating data type: the nearest, ties to even.

    Parameters
    ----------
    dtype : {"f32", "bf16", "f16"}
        Data type of the result.
    """

    dtype: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", dtypes.checked(self.dtype, "dtype", dtypes.FLOATS))

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add a reorder."""
        (name,) = src
        if at.specs[name].dtype not in dtypes.FLOATS:
            raise DTypeError("src", at.specs[name].dtype, ", ".join(dtypes.FLOATS))
        name = at.without_gaps(name)
        spec = at.specs[name]
        values = TensorSpec(spec.dims, self.dtype, spec.strides)
        at.add(prepare(ReorderProblem(spec, values)), (name,), dst, values)


@dataclass(frozen=True, eq=False)
class PythonCall:
    """A Python function between primitives, for what no other operation computes.

    Parameters
    ----------
    function : callable
        ``f(*arrays) -> array``; the arrays are views that it must not keep or write.
    dst : TensorSpec
        Spec of the returned array, with strides.
    """

    function: Callable[..., Any]
    dst: TensorSpec

    def __post_init__(self) -> None:
        function("function", self.function)
        instance("dst", self.dst, TensorSpec)
        if self.dst.strides is None:
            raise ArgumentError("dst", "no strides", "a definite layout")

    def __repr__(self) -> str:
        return f"PythonCall(function={shown(self.function)}, dst={self.dst!r})"

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add it."""

        def run(*arrays: Array) -> None:
            result = np.asarray(self.function(*arrays[:-1]))
            if result.shape != self.dst.dims or result.dtype != arrays[-1].dtype:
                got = f"{result.dtype} {result.shape}"
                argument = f"the result of {dst}"
                raise ShapeError(argument, got, f"{self.dst.dtype} {self.dst.dims}")
            np.copyto(arrays[-1], result)

        at.add(run, src, dst, self.dst)
