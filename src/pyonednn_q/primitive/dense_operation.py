"""DenseOperation: what the problems with weights share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance
from pyonednn_q.errors import DTypeError, ShapeError
from pyonednn_q.primitive.tensor import Operation

if TYPE_CHECKING:
    from pyonednn_q.dtypes import Array
    from pyonednn_q.primitive.tensor import TensorSpec


DenseKind: TypeAlias = Literal["convolution", "deconvolution", "inner_product", "matmul"]


class DenseOperation(Operation):
    """Base of the problems whose results are sums of products of src and wei.

    Here is what holds where each output channel has a row of weights, and meets them all at every
    place; problems that are otherwise say so.
    """

    __slots__ = ()

    kind: ClassVar[DenseKind]
    src: TensorSpec
    wei: TensorSpec
    dst: TensorSpec
    bias: TensorSpec | None

    @property
    def types(self) -> dict[str, Any]:
        """Data types by tensor, as `of` takes them; None for a bias that is not there."""
        names = ("src", "wei", "dst", "bias")
        tensors = self.tensors
        return {name: tensors[name].dtype if name in tensors else None for name in names}

    @property
    def oc(self) -> int:
        """Output channels."""
        return self.wei.dims[0]

    @property
    def terms(self) -> int:
        """Number of products in the sum of a result whose taps all meet the source."""
        return self.wei.size // self.oc if self.oc else 0

    @property
    def wei_channel_axis(self) -> int:
        """The axis of input channels in wei: those of a group, where there are groups."""
        return 2 if self.has_groups else 1

    @property
    def product(self) -> tuple[int, int, int] | None:
        """(M, K, N) of the one matrix product over the same memory; None where there is none."""
        return None

    def channel_rows(self, wei: Array) -> Array:
        """Return weights as (output channels, rest).

        Examples
        --------
        >>> from pyonednn_q.primitive.problem import MatMulProblem
        >>> problem = MatMulProblem.of((4, 3), (3, 2))
        >>> problem.channel_rows(np.arange(6).reshape(3, 2)).tolist()
        [[0, 2, 4], [1, 3, 5]]
        """
        wei = numeric("wei", wei, self.wei.size)
        return wei.reshape(self.oc, wei.size // max(self.oc, 1))

    def from_channel_rows(self, rows: Array) -> Array:
        """Return weights in the problem's dims; the inverse of `channel_rows`."""
        return numeric("rows", rows, self.wei.size).reshape(self.wei.dims)

    def meets_everywhere(self) -> bool:
        """Tell whether every tap meets the source at every place of dst."""
        return True

    def meets_together(self, index: Array) -> Array:
        """Tell of rows of weights whether some place of dst meets the source through all of them.

        Parameters
        ----------
        index : (rows, any) ndarray of int
            Weights of one output channel, as `channel_rows` numbers them.
        """
        return np.ones(len(indices(index)), np.bool_)

    def wei_sums(self, wei: Array) -> Array:
        """Return, in dst's dims, the sum of the weights that meet the source at each place.

        Exact for integers. Dimensions along which it does not change may be 1.

        Examples
        --------
        >>> from pyonednn_q.primitive.problem import ConvProblem
        >>> problem = ConvProblem.of((1, 1, 3), (1, 1, 3), padding=1)
        >>> problem.wei_sums(np.array([[[1, 2, 4]]])).tolist()
        [[[6.0, 7.0, 3.0]]]
        """
        sums = self.channel_rows(wei).astype(np.float64).sum(axis=1)
        return np.asarray(sums.reshape(1, self.oc))

    def assembled(self, sums: Array) -> Array:
        """Return sums of (images, groups, outputs of a group, places) in dst's dims.

        Rows of a matrix are places, and batches of a matmul are groups.
        """
        sums = numeric("sums", sums, self.dst.size)
        if sums.ndim != 4 or len(sums) != 1:
            raise ShapeError("sums", str(sums.shape), "(1, groups, outputs of a group, places)")
        return np.asarray(np.moveaxis(sums[0], -1, -2).reshape(self.dst.dims))


def numeric(argument: str, values: object, size: int) -> Array:
    """Return an array of so many numbers; refuse anything else.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    instance(argument, values, np.ndarray)
    array = np.asarray(values)  # of no subclass: a matrix would stay one
    if array.dtype.kind not in "biuf":
        dtypes.from_numpy(array.dtype, argument)
    if array.size != size or not array.ndim:
        raise ShapeError(argument, str(array.shape), f"{size} values")
    return array


def indices(index: object) -> Array:
    """Return rows of indices; refuse anything else."""
    instance("index", index, np.ndarray)
    array = np.asarray(index)
    if array.dtype.kind not in "iu":
        raise DTypeError("index", str(array.dtype), "int64")
    if array.ndim != 2:
        raise ShapeError("index", str(array.shape), "(rows, any)")
    return array.astype(np.int64)
