"""Operations that move codes without computing: look-ups, and other views of the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, integers, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.native.program import Pass
from pyonednn_q.network.code_products import product_of, sum_of
from pyonednn_q.network.lowering import layout_like, natural
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from pyonednn_q.network.lowering import Lowering
    from pyonednn_q.qparams import QParams

_BYTES = ("u8", "s8")
SAME = np.arange(256).astype(np.uint8)


@dataclass(frozen=True, eq=False, slots=True)
class Lookup:
    """Any function of a code, or of two codes, as a table of its values: one pass over memory.

    Parameters
    ----------
    table : (256,) or (256, 256) ndarray of uint8 or int8
        Code of dst for each byte of the source; ``table[first, second]`` for two sources, which
        broadcast as in NumPy. The byte of an s8 code is the code modulo 256.
    adds : (QParams, QParams, QParams), optional
        QParams of both sources and dst, per tensor, if the table may be the sum of the real
        values; the sum then runs as arithmetic.

    Examples
    --------
    >>> import numpy as np
    >>> from pyonednn_q.network import Lookup, Network, Node
    >>> halved = Lookup(np.arange(256).astype(np.uint8) // 2)
    >>> Network(["x"], [Node("y", halved, "x")], ["y"])(np.uint8([[7, 200]]))["y"].tolist()
    [[3, 100]]
    """

    table: Array
    adds: tuple[QParams, QParams, QParams] | None = None

    def __post_init__(self) -> None:
        instance("table", self.table, np.ndarray)
        if self.table.shape not in {(256,), (256, 256)}:
            raise ShapeError("table", str(self.table.shape), "(256,) or (256, 256)")
        if self.table.dtype not in {np.dtype(np.uint8), np.dtype(np.int8)}:
            raise DTypeError("table", str(self.table.dtype), "uint8 or int8")
        table = np.array(self.table, order="C")
        table.flags.writeable = False
        object.__setattr__(self, "table", table)

    def __repr__(self) -> str:
        return f"Lookup({self.table.dtype} {self.table.shape})"

    @property
    def dtype(self) -> str:
        """Data type of dst."""
        return "u8" if self.table.dtype == np.uint8 else "s8"

    def of(self, *specs: TensorSpec) -> str:
        """Return the data type of dst for sources of 8 bits, as many as it takes."""
        if len(specs) != self.table.ndim:
            raise ArgumentError("src", f"{len(specs)} tensors", f"{self.table.ndim}")
        for spec in specs:
            if spec.dtype not in _BYTES:
                raise DTypeError("src", spec.dtype, "u8 or s8")
        return self.dtype

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add the pass."""
        specs = [at.specs[name] for name in src]
        dtype = self.of(*specs)
        dims = dims_together(specs)
        result = layout_like(dims, dtype, specs)
        table, adds = self.table, self.adds
        if len(specs) == 2 and specs[1].dims == dims != specs[0].dims:
            # Gates come second.
            table, specs, src = np.ascontiguousarray(table.T), specs[::-1], src[::-1]
            adds = None if adds is None else (adds[1], adds[0], adds[2])
        strides = [*(strides_along(spec, dims) for spec in specs), known(result)]
        total = None if len(specs) == 1 or adds is None else sum_of(table, *adds)
        product = None
        if len(specs) == 2 and total is None:
            product = product_of(table, *(s.dtype for s in specs))
        copy = Pass.look_up(table, dims, *strides, product=product, total=total)
        at.add(copy, src, dst, result)


@dataclass(frozen=True, slots=True)
class Transpose:
    """Dimensions in another order: a view.

    Parameters
    ----------
    perm : tuple of int
        Dimension of the source for each dimension of dst.
    """

    perm: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "perm", integers("perm", self.perm))
        if sorted(self.perm) != list(range(len(self.perm))):
            raise ArgumentError("perm", str(self.perm), "each dimension once")

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Make the view."""
        (name,) = src
        spec = at.specs[name]
        if len(self.perm) != spec.ndim:
            raise ShapeError("perm", str(self.perm), f"{spec.ndim} dimensions")
        strides = known(spec)
        turned = [tuple(of[axis] for axis in self.perm) for of in (spec.dims, strides)]
        at.view(dst, name, TensorSpec(turned[0], spec.dtype, turned[1]))


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a tensor along one dimension: a view; a copy where it has steps.

    Parameters
    ----------
    axis : int
        Axis; counted from the end when negative.
    start, length : int
        First index, and number of elements.
    step : int
        Distance from one element to the next.
    """

    axis: int
    start: int
    length: int
    step: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", whole("axis", self.axis))
        for name, lo in (("start", 0), ("length", 1), ("step", 1)):
            object.__setattr__(self, name, whole(name, getattr(self, name), lo=lo))

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Make the view, or add a pass."""
        (name,) = src
        spec = at.specs[name]
        if not -spec.ndim <= self.axis < spec.ndim:
            raise ArgumentError("axis", str(self.axis), f"one of {spec.ndim} dimensions")
        axis = self.axis % spec.ndim
        last = self.start + (self.length - 1) * self.step
        if last >= spec.dims[axis]:
            raise ShapeError("start", f"index {last}", f"below {spec.dims[axis]}")
        dims, strides = list(spec.dims), list(known(spec))
        offset = self.start * strides[axis] * dtypes.bits(spec.dtype) // 8
        dims[axis] = last + 1 - self.start
        part = TensorSpec(dims, spec.dtype, strides)
        if self.step == 1:
            at.view(dst, name, part, offset)
            return
        if spec.dtype not in {*_BYTES, "f32"}:
            raise DTypeError("src", spec.dtype, "u8, s8 or f32, for a step of more than 1")
        begun = at.fresh(dst)
        at.view(begun, name, part, offset)
        dims[axis] = self.length
        strides[axis] *= self.step
        result = natural(tuple(dims), spec.dtype)
        if spec.dtype == "f32":  # times 1
            steps = (strides, [0] * len(dims), known(result))
            copy = Pass.arithmetic("mul", dims, steps, np.ones(1, np.float32))
        else:
            copy = Pass.look_up(SAME, dims, strides, known(result))
        at.add(copy, (begun,), dst, result)


@dataclass(frozen=True, slots=True)
class Repeat:
    """Elements repeated along each dimension: a nearest-neighbour enlargement.

    Parameters
    ----------
    times : tuple of int
        Number of repeats for each dimension.
    """

    times: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", integers("times", self.times))
        if min(self.times, default=0) < 1:
            raise ArgumentError("times", str(self.times), "1 or more")

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add a pass that reads each element several times."""
        (name,) = src
        spec = at.specs[name]
        if len(self.times) != spec.ndim:
            raise ShapeError("times", str(self.times), f"{spec.ndim} dimensions")
        if spec.dtype not in _BYTES:
            raise DTypeError("src", spec.dtype, "u8 or s8")
        lengths = zip(spec.dims, self.times, strict=True)
        result = natural(tuple(dim * times for dim, times in lengths), spec.dtype)
        # Each dimension as two: of the source, and of the copies of one element.
        dims: list[int] = []
        reads: list[int] = []
        writes: list[int] = []
        for dim, times, read, write in zip(
            spec.dims, self.times, known(spec), known(result), strict=True
        ):
            dims += [dim, times]
            reads += [read, 0]
            writes += [write * times, write]
        at.add(Pass.look_up(SAME, dims, reads, writes), src, dst, result)


def known(spec: TensorSpec) -> tuple[int, ...]:
    """Return strides, which every tensor of a network has."""
    assert spec.strides is not None
    return spec.strides


def dims_together(specs: Sequence[TensorSpec]) -> tuple[int, ...]:
    """Return the dims to which tensors are broadcast, as NumPy's are.

    Raises
    ------
    ShapeError
        Naming src: dims that cannot be.
    """
    try:
        return np.broadcast_shapes(*(spec.dims for spec in specs))
    except ValueError:
        got = " and ".join(str(spec.dims) for spec in specs)
        raise ShapeError("src", got, "dimensions that can be broadcast") from None


def strides_along(spec: TensorSpec, dims: tuple[int, ...]) -> list[int]:
    """Return strides for dims to which a tensor is broadcast."""
    before = [0] * (len(dims) - spec.ndim)
    steps = zip(spec.dims, known(spec), strict=True)
    return before + [0 if dim == 1 else step for dim, step in steps]
