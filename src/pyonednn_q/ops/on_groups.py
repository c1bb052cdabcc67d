"""OnGroups: how an operator with weights in groups runs, on one kernel of ours for all shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, SelfCheckError, ShapeError
from pyonednn_q.native.arrays import aligned, check_out
from pyonednn_q.native.group_product import GroupProduct
from pyonednn_q.native.passes import as_rows
from pyonednn_q.native.runtime import Lock
from pyonednn_q.ops.arrays import as_output
from pyonednn_q.ops.grouped_weights import PackedWeights
from pyonednn_q.ops.source import OFFSET, Codes
from pyonednn_q.predict.grouped_sums import grouped_sums
from pyonednn_q.qparams import QParams
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyonednn_q.native.program import Pass
    from pyonednn_q.ops.on_primitives import OnPrimitives

    Hot = Callable[..., Any]

Dims = tuple[int, ...]

_CHECKED_ROWS = 5  # of seeded data: one block of rows, and one row

# A definition's private methods are called by what runs it, not by users of an operator.
# ruff: noqa: SLF001


class OnGroups:
    """Packed weights of one operator, made at its first call; then they are the only copy.

    Parameters
    ----------
    wei_q : QParams
        Scales and zero points of groups along the input channels.
    """

    def __init__(self, wei_q: QParams) -> None:
        self.wei_q = wei_q
        self._product: GroupProduct | None = None
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[OnGroups], tuple[QParams]]:
        # What is packed belongs to a process.
        return type(self), (self.wei_q,)

    def __copy__(self) -> OnGroups:
        twin = OnGroups(self.wei_q)
        twin._product = self._product
        return twin

    def __call__(
        self,
        definition: OnPrimitives,
        src: Array,
        out: object,
        residual: object,
        operands: Mapping[str, Any],
    ) -> tuple[Array, Hot | None]:
        """Return the result, and the fast path for later calls, where C++ makes the codes."""
        wanted = "none: nothing follows sums of groups"
        if residual is not None:
            raise ArgumentError("residual", "an array", wanted)
        for name in operands:
            raise ArgumentError("operands", shown(name), wanted)
        dims = _dst_dims(definition, src.shape)
        definition.settings.check_src(definition._src_dtype(src))
        target = None if out is None else _checked(as_output("out", out), dims, src)
        product = self.product(definition)
        is_in_place = target is not None and target.flags.carray
        dst = target if target is not None and is_in_place else aligned(dims, np.dtype(np.float32))
        self._run(definition, product, src, dst)
        if target is not None and not is_in_place:
            np.copyto(target, dst)
        dynamic = definition.settings.dynamic
        if dynamic is None or dynamic.extent == "per_tensor":
            return dst, None
        return dst, product.hot_call(dynamic, 0 if definition.axis == -1 else 2)

    def product(self, definition: OnPrimitives) -> GroupProduct:
        """Return the packed weights; pack them if they are new."""
        if self._product is None:
            with self._lock.held:
                if self._product is None:
                    codes, wei_q = definition.weights.values, self.wei_q
                    if definition.axis == -1:
                        codes, wei_q = codes.T, turned(wei_q)
                    product = GroupProduct(
                        codes, wei_q, definition.bias, has_src_point=_has_point(definition)
                    )
                    if definition.settings.self_check is True:
                        self._verify(definition, product)
                    is_turned = definition.axis == -1
                    definition.weights = PackedWeights(
                        definition.weights, product, is_turned=is_turned
                    )
                    self._product = product
        return self._product

    def as_pass(self, definition: OnPrimitives, src_dims: Dims) -> Pass | None:
        """Return the step of a program for float32 sources without gaps; None if Python does more.

        Parameters
        ----------
        definition : OnPrimitives
            Operator that has the weights.
        src_dims : tuple of int
            Dims of the source.
        """
        dynamic, rows = definition.settings.dynamic, int(np.prod(src_dims[:-1]))
        if dynamic is None or dynamic.extent == "per_tensor" or not rows:
            return None
        return self.product(definition).as_pass(rows, dynamic)

    def model(self, definition: OnPrimitives, src: Array) -> Array:
        """Return the result of a call, in NumPy: see `predict.grouped_sums`."""
        dims = _dst_dims(definition, src.shape)
        codes, scale, point = _codes_of(definition, src, self.wei_q.block[0])
        wei, wei_q = definition.weights.values, self.wei_q
        if definition.axis != -1:
            wei, wei_q = wei.T, turned(wei_q)
        return grouped_sums(codes, scale, point, wei, wei_q, definition.bias).reshape(dims)

    def prepare(self, *_: object) -> NoReturn:
        """Refuse: there is no primitive, and no plan.

        Raises
        ------
        ArgumentError
            Always.
        """
        wanted = "one on a primitive: groups run on a kernel of ours, which has no plan"
        raise ArgumentError("operator", "weights in groups", wanted)

    def clear(self) -> None:
        """Keep what is packed: there is no other copy of the weights."""

    @property
    def shapes(self) -> tuple[Dims, ...]:
        """Sources that primitives are ready for: none, one kernel takes all."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on work beside the kernel: none."""
        return ()

    @property
    def wei_bytes(self) -> int:
        """Bytes of packed weights."""
        return 0 if self._product is None else self._product.nbytes

    def _run(self, definition: OnPrimitives, product: GroupProduct, src: Array, dst: Array) -> None:
        rows = dst.size // dst.shape[-1]
        if not rows:
            return
        dynamic, inner = definition.settings.dynamic, src.shape[-1]
        to = dst.reshape(rows, -1)
        if dynamic is not None and dynamic.extent != "per_tensor":
            product.run(as_rows(src.reshape(rows, inner), rows), dynamic, to)
            return
        codes, scale, point = _codes_of(definition, src, product.group)
        product.run_codes(codes, scale, point, to)

    def _verify(self, definition: OnPrimitives, product: GroupProduct) -> None:
        rng = np.random.default_rng(0)
        inner = definition.weights.dims[0 if definition.axis == -1 else 1]
        src = rng.standard_normal((_CHECKED_ROWS, inner)).astype(np.float32)
        right, dst = self.model(definition, src), np.empty((_CHECKED_ROWS, product.dims[0]), "f4")
        self._run(definition, product, src, dst)
        wrong = np.argwhere(dst != right)
        if len(wrong):
            place = tuple(map(int, wrong[0]))
            ends = (float(right[place]),) * 2
            text = definition.weights.note
            raise SelfCheckError(
                text, "groups", place, float(dst[place]), ends, len(wrong), right.size
            )


def _has_point(definition: OnPrimitives) -> bool:
    """Tell whether a source has zero points as s8, which the kernel makes of u8: 128 less."""
    src_q = definition.settings.src_q
    if isinstance(src_q, QParams) and src_q.dtype == "u8":
        return src_q.zero_point != OFFSET
    return definition.settings.has_src_point


def turned(wei_q: QParams) -> QParams:
    """Return the parameters of transposed weights."""
    scale, point = np.asarray(wei_q.scale).T, np.asarray(wei_q.zero_point).T
    assert wei_q.axis is not None
    return QParams(scale, point, wei_q.dtype, axis=1 - wei_q.axis % 2, block=wei_q.block)


def _codes_of(definition: OnPrimitives, src: Array, group: int) -> tuple[Array, Array, Array]:
    """Return codes of rows, and scales and zero points: one a row, or one a group of it."""
    dynamic, inner = definition.settings.dynamic, src.shape[-1]
    by_group = dynamic is not None and dynamic.extent == "per_group"
    parts = inner // group if by_group else 1
    source = src.reshape(-1, group) if by_group else src
    codes = definition._codes(source, None) or Codes(source)
    values = np.ascontiguousarray(codes.values).reshape(-1, inner)
    scale, point = codes.scale, codes.zero_point
    if scale is None or point is None:
        params = definition.settings.src_q
        assert isinstance(params, QParams)
        scale, point = np.array([params.scale], "f4"), np.array([params.zero_point], "i4")
    shape = (len(values), parts)
    each = (-1, parts) if scale.size > 1 else (1, 1)
    scale, point = (np.broadcast_to(value.reshape(each), shape) for value in (scale, point))
    return values, np.ascontiguousarray(scale), np.ascontiguousarray(point)


def _dst_dims(definition: OnPrimitives, src_dims: Dims) -> Dims:
    """Return dims of a result.

    Raises
    ------
    ShapeError
        A source of other dims.
    """
    wei = definition.weights.dims
    is_matmul = definition.axis == -1
    inner, columns = wei if is_matmul else wei[::-1]
    fits = len(src_dims) >= 2 if is_matmul else len(src_dims) == 2
    if not fits or src_dims[-1] != inner:
        rows = "..., M" if is_matmul else "N"
        raise ShapeError("src", str(src_dims), f"({rows}, {inner}), as wei has input channels")
    return (*src_dims[:-1], columns)


def _checked(target: Array, dims: Dims, src: Array) -> Array:
    if target.dtype != np.float32:
        raise DTypeError("out", str(target.dtype), "float32")
    if target.shape != dims:
        raise ShapeError("out", str(target.shape), str(dims))
    check_out(target, {"src": src})
    return target
