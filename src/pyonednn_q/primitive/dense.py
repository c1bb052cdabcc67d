"""Inner product and matmul."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pyonednn_q.argument import instance, integers, whole
from pyonednn_q.errors import ShapeError
from pyonednn_q.primitive.dense_operation import DenseKind, DenseOperation, numeric
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.primitive.windowed import Layout, bias_spec, laid_out

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyonednn_q.dtypes import Array, DType

Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InnerProductProblem(DenseOperation):
    """dst[n, oc] = Σ src[n, ic, s] · wei[oc, ic, s].

    No implementation takes a zero point; `MatMulProblem` does.

    Parameters
    ----------
    src : TensorSpec
        (N, IC) or (N, IC, spatial).
    wei : TensorSpec
        (OC, IC) or (OC, IC, spatial), as src.
    dst : TensorSpec
        (N, OC).
    bias : TensorSpec or None
        (OC,).

    Raises
    ------
    ShapeError
        Anything that does not fit.
    """

    kind: ClassVar[DenseKind] = "inner_product"

    src: TensorSpec
    wei: TensorSpec
    dst: TensorSpec
    bias: TensorSpec | None

    def __post_init__(self) -> None:
        for name in ("src", "wei", "dst"):
            instance(name, getattr(self, name), TensorSpec)
        src, wei, dst = self.src, self.wei, self.dst
        if not 2 <= src.ndim <= 5:
            wanted = "(N, C, up to 3 spatial dimensions)"
            raise ShapeError(argument="src", got=str(src.dims), wanted=wanted)
        if wei.dims[1:] != src.dims[1:]:
            wanted = f"(OC, {', '.join(map(str, src.dims[1:]))}), as in src"
            raise ShapeError(argument="wei", got=str(wei.dims), wanted=wanted)
        wanted_dims = (src.dims[0], wei.dims[0])
        if dst.dims != wanted_dims:
            raise ShapeError(argument="dst", got=str(dst.dims), wanted=str(wanted_dims))
        if self.bias is None:
            return
        instance("bias", self.bias, TensorSpec)
        if self.bias.dims != wei.dims[:1]:
            raise ShapeError(argument="bias", got=str(self.bias.dims), wanted=str(wei.dims[:1]))

    @classmethod
    def of(
        cls,
        src_dims: Iterable[int],
        oc: int,
        *,
        src: DType = "u8",
        wei: DType = "s8",
        dst: DType = "u8",
        bias: DType | None = None,
        layout: Layout = "channels_last",
    ) -> InnerProductProblem:
        """Return the problem of these dimensions.

        Parameters
        ----------
        src_dims : (N, IC) or (N, IC, spatial)
            Dims of the source.
        oc : int
            Output channels.
        src, wei, dst : str
            Data types.
        bias : str, optional
            Data type of the bias; None: no bias.
        layout : {"channels_last", "dense"}
            Layout of src. The weights are packed as the implementation wants them.
        """
        src_dims = integers("src", src_dims)
        oc = whole("oc", oc, lo=1)
        return cls(
            src=laid_out(src_dims, src, layout),
            wei=TensorSpec((oc, *src_dims[1:]), wei),
            dst=TensorSpec.dense((*src_dims[:1], oc), dst),
            bias=bias_spec(oc, bias),
        )

    @property
    def product(self) -> tuple[int, int, int]:
        """(M, K, N) of the matrix product over the same memory."""
        return self.src.dims[0], self.terms, self.oc

    @property
    def macs(self) -> int:
        """Multiplications."""
        return self.dst.size * self.terms


@dataclass(frozen=True, slots=True)
class MatMulProblem(DenseOperation):
    """dst[..., m, n] = Σ src[..., m, k] · wei[..., k, n].

    Parameters
    ----------
    src, wei, dst : TensorSpec
        (..., M, K), (..., K, N) and (..., M, N), all of one rank. A leading dimension of 1 in src
        or wei is broadcast.
    bias : TensorSpec or None
        Tensor with as many dimensions as dst, each 1 or as in dst. Only (1, ..., N) has a fast
        kernel.

    Raises
    ------
    ShapeError
        Anything that does not fit.
    """

    kind: ClassVar[DenseKind] = "matmul"

    src: TensorSpec
    wei: TensorSpec
    dst: TensorSpec
    bias: TensorSpec | None

    def __post_init__(self) -> None:
        for name in ("src", "wei", "dst"):
            instance(name, getattr(self, name), TensorSpec)
        src, wei, dst = self.src, self.wei, self.dst
        wanted_dims = _product_dims(src.dims, wei.dims)
        if dst.dims != wanted_dims:
            raise ShapeError(argument="dst", got=str(dst.dims), wanted=str(wanted_dims))
        if self.bias is None:
            return
        instance("bias", self.bias, TensorSpec)
        bias = self.bias.dims
        if len(bias) != dst.ndim or any(
            have not in (1, want) for have, want in zip(bias, dst.dims, strict=True)
        ):
            wanted = f"{dst.ndim} dimensions, each 1 or as in {dst.dims}"
            raise ShapeError(argument="bias", got=str(bias), wanted=wanted)

    @classmethod
    def of(
        cls,
        src_dims: Iterable[int],
        wei_dims: Iterable[int],
        *,
        src: DType = "u8",
        wei: DType = "s8",
        dst: DType = "u8",
        bias: DType | None = None,
    ) -> MatMulProblem:
        """Return the problem of these dimensions: src and dst row-major, wei packed.

        Parameters
        ----------
        src_dims : (..., M, K)
            Dims of the source.
        wei_dims : (..., K, N)
            Dims of the weights.
        src, wei, dst : str
            Data types.
        bias : str, optional
            Data type of a bias of one value per column; None: no bias.
        """
        src_dims, wei_dims = integers("src", src_dims), integers("wei", wei_dims)
        dst_dims = _product_dims(src_dims, wei_dims)
        bias_dims = (1,) * (len(dst_dims) - 1) + dst_dims[-1:]
        return cls(
            src=TensorSpec.dense(src_dims, src),
            wei=TensorSpec(wei_dims, wei),
            dst=TensorSpec.dense(dst_dims, dst),
            bias=None if bias is None else TensorSpec.dense(bias_dims, bias),
        )

    @property
    def channel_axis(self) -> int:
        """The axis of columns."""
        return self.dst.ndim - 1

    @property
    def terms(self) -> int:
        """Number of products in the sum of a result."""
        return self.k

    @property
    def wei_channel_axis(self) -> int:
        """The axis of the rows of wei, which are the input channels."""
        return self.wei.ndim - 2

    @property
    def row_axis(self) -> int:
        """The axis of rows."""
        return self.dst.ndim - 2

    @property
    def wei_mask(self) -> int:
        """The mask of a value for each column of wei."""
        return 1 << (self.wei.ndim - 1)

    @property
    def product(self) -> tuple[int, int, int] | None:
        """(M, K, N) of the matrix product over the same memory, if all batches have one wei."""
        if not self.meets_everywhere():
            return None
        return math.prod(self.src.dims[:-1]), self.k, self.n

    def channel_rows(self, wei: Array) -> Array:
        """Return weights as (columns, rest)."""
        wei = self._wei(wei)
        return np.moveaxis(wei, -1, 0).reshape(self.n, wei.size // max(self.n, 1))

    def from_channel_rows(self, rows: Array) -> Array:
        """Return weights in the problem's dims; the inverse of `channel_rows`."""
        dims, rows = self.wei.dims, numeric("rows", rows, self.wei.size)
        return np.ascontiguousarray(np.moveaxis(rows.reshape(dims[-1], *dims[:-1]), 0, -1))

    def meets_everywhere(self) -> bool:
        """Tell whether all of a batch is multiplied by the same weights."""
        return max(self.wei.dims[:-2], default=1) == 1

    def wei_sums(self, wei: Array) -> Array:
        """Return the sum of each column."""
        return np.asarray(self._wei(wei).astype(np.float64).sum(axis=-2, keepdims=True))

    def _wei(self, wei: object) -> Array:
        array = numeric("wei", wei, self.wei.size)
        if array.shape != self.wei.dims:
            raise ShapeError("wei", str(array.shape), str(self.wei.dims))
        return array

    @property
    def m(self) -> int:
        """Rows of src and dst."""
        return self.src.dims[-2]

    @property
    def k(self) -> int:
        """Columns of src, rows of wei: the dimension summed over."""
        return self.src.dims[-1]

    @property
    def n(self) -> int:
        """Columns of wei and dst."""
        return self.wei.dims[-1]

    @property
    def oc(self) -> int:
        """Columns, which are the output channels."""
        return self.n

    @property
    def macs(self) -> int:
        """Multiplications."""
        return self.dst.size * self.k

    @property
    def batch(self) -> Dims:
        """Leading dimensions of dst."""
        return self.dst.dims[:-2]


def _product_dims(src: Dims, wei: Dims) -> Dims:
    if len(src) < 2:
        raise ShapeError(argument="src", got=str(src), wanted="(..., M, K)")
    # Who calls an operator brings src alone: of two that do not fit, it is the one to change.
    if len(wei) != len(src):
        wanted = f"{len(wei)} dimensions, as in wei {wei}"
        raise ShapeError(argument="src", got=str(src), wanted=wanted)
    if wei[-2] != src[-1]:
        wanted = f"{wei[-2]} columns, as many as wei {wei} has rows"
        raise ShapeError(argument="src", got=str(src), wanted=wanted)
    pairs = list(zip(src[:-2], wei[:-2], strict=True))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        wanted = f"leading dimensions 1 or as in wei {wei}"
        raise ShapeError(argument="src", got=str(src), wanted=wanted)
    batch = tuple(b if a == 1 else a for a, b in pairs)
    return (*batch, src[-2], wei[-1])
