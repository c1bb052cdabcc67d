"""Inner product and matmul."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyonednn_q.argument import named
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ShapeError
from pyonednn_q.faults.capability import leading_ones
from pyonednn_q.native import runtime
from pyonednn_q.ops.float_layer import quantized_layer
from pyonednn_q.ops.operator import Operator
from pyonednn_q.ops.options import CodeOptions, FloatDenseOptions, filled, takes
from pyonednn_q.primitive.problem import InnerProductProblem, MatMulProblem

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.settings import Settings
    from pyonednn_q.primitive.dense_facts import DenseProblem
    from pyonednn_q.quantize.ranges import Dynamic

Dims = tuple[int, ...]


class _Dense(Operator):
    """Common part of inner product and matmul."""

    _takes_wei_point = True

    @takes(CodeOptions)
    def __init__(self, /, wei: object, bias: object = None, **options: Unpack[CodeOptions]) -> None:
        super().__init__(wei, bias, filled(type(self).__name__, CodeOptions, options))

    @classmethod
    @takes(FloatDenseOptions)
    def from_float(
        cls, /, wei: object, bias: object = None, **options: Unpack[FloatDenseOptions]
    ) -> Self:
        """Quantize a float layer. It is called on float sources, or on codes of them.

        Parameters
        ----------
        wei, bias, **options
            Arguments of `Conv.from_float`, without a window.
        groups : int, optional
            Size of a group: how many neighbouring input channels share a scale, as language models
            want. The result is float32, and nothing follows in the layer.
        bits : {8, 4}
            Width of the weights' codes in groups; two of 4 bits take a byte.
        symmetric : bool
            Whether groups have no zero points.
        method : {"rtn", "search", "gptq"}
            Method that chooses codes of groups: see `quantize.group_codes`.
        samples : (..., IC) array, optional
            Rows of the real source, which "gptq" needs and "search" weighs errors by.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the argument, what came and what would do.

        Examples
        --------
        >>> wei = np.array([[1.0, -0.5], [0.25, 0.25]], np.float32)
        >>> layer = InnerProduct.from_float(wei, src_q=(0.0, 2.55), wei_levels=129)
        >>> layer(np.array([[1.0, 2.0]], np.float32)).round(6)
        array([[0.  , 0.75]], dtype=float32)

        With a scale for each two weights, of 4 bits, and one for each row of a source:

        >>> from pyonednn_q.quantize.ranges import Dynamic
        >>> src_q = Dynamic("s8", "per_row")
        >>> wei = np.array([[0.7, -0.1, 2.0, -4.0]], np.float32)
        >>> layer = InnerProduct.from_float(wei, src_q=src_q, groups=2, bits=4)
        >>> layer(np.array([[1.0, 0.0, 0.0, 1.0]], np.float32)).round(6)
        array([[-3.3]], dtype=float32)
        """
        values = filled(f"{cls.__name__}.from_float", FloatDenseOptions, options)
        codes, real_bias, values = quantized_layer(wei, bias, cls.axis, values, -1)
        return cls(codes, real_bias, **values)

    def alike(self, wei: Array, bias: Array | None, _groups: int, options: dict[str, Any]) -> Self:
        """Return an operator of the same kind and window for other weights and options."""
        return type(self)(wei, bias, **named("options", options, object))

    @property
    def _is_by_row(self) -> bool:
        dynamic = self.settings.dynamic
        return dynamic is not None and dynamic.extent == "per_row" and not self._is_batched

    @property
    def _is_batched(self) -> bool:
        """Whether there are weights for each of several sources."""
        return self.axis == -1 and max(self.weights.values.shape[:-2], default=1) > 1

    def _check_dynamic(self, _dynamic: Dynamic) -> None:
        self._check_real_bias()

    def _settings_for(self, src_dims: Dims) -> Settings:
        dynamic = self.settings.dynamic
        if dynamic is None or not self._is_by_row or self._rows(src_dims) != 1:
            return self.settings
        return replace(self.settings, src_q=replace(dynamic, extent="per_tensor"))

    def _by_row(self, rows: int, inner: int, src_dtype: str) -> MatMulProblem:
        """Return the matmul that scales each row: of the rank whose operands keep its kernel."""
        channels = self.weights.values.shape[self.axis]
        # One row is scaled as a tensor is, and its weights are packed as a matrix is.
        lead = () if rows == 1 else (1,) * leading_ones(runtime.facts())
        return MatMulProblem.of(
            (*lead, rows, inner),
            (*lead, inner, channels),
            src=src_dtype,
            wei=self.weights.dtype,
            dst=self.settings.dst,
            bias=None if self.bias is None else "f32",
        )


class MatMul(_Dense):
    """A matmul with constant weights: dst[..., M, N] = store(post(... src[..., M, K] · wei[K, N])).

    Parameters
    ----------
    wei : (K, N) or (..., K, N) array
        Integer codes; see `Conv`. Channels are columns.
    bias : (N,) array, optional
        Real values or units of acc; see `Conv`.
    **options
        Options of `Conv`, without a window; `wei_q` per tensor, or along the last axis.

    Examples
    --------
    >>> from pyonednn_q.qparams import QParams
    >>> src_q, wei_q = QParams(0.5, 0, "u8"), QParams([0.25, 0.5], 0, "s8", axis=-1)
    >>> layer = MatMul(np.array([[1, 2], [3, 4]], np.int8), src_q=src_q, wei_q=wei_q)
    >>> layer(np.array([[2, 4]], np.uint8))
    array([[1.75, 5.  ]], dtype=float32)
    """

    axis = -1
    kind = "matmul"

    def _check_wei_dims(self, wei: Array) -> None:
        if not 2 <= wei.ndim <= 12:
            raise ShapeError("wei", str(wei.shape), "(K, N) or (..., K, N)")

    def _problem(self, src_dims: Dims, src_dtype: str) -> MatMulProblem:
        dims = self.weights.values.shape
        if self._is_by_row:
            if len(src_dims) < max(2, len(dims)) or src_dims[-1] != dims[-2]:
                raise ShapeError("src", str(src_dims), f"(..., M, {dims[-2]}), as wei has rows")
            return self._by_row(self._rows(src_dims), dims[-2], src_dtype)
        lead = len(src_dims) - len(dims)
        if lead > 0:
            dims = (1,) * lead + dims
        return MatMulProblem.of(
            src_dims,
            dims,
            src=src_dtype,
            wei=self.weights.dtype,
            dst=self.settings.dst,
            bias=None if self.bias is None else "f32",
        )

    @property
    def _some_dims(self) -> Dims:
        # Two rows: scaled on their own, they are not one tensor.
        return (*self.weights.values.shape[:-2], 2, self.weights.values.shape[-2])

    def _rows(self, src_dims: Dims) -> int:
        return math.prod(src_dims[:-1])

    def _dst_dims(self, src_dims: Dims, planned: Planned) -> Dims:
        if not self._is_by_row:
            return planned.dst.dims
        return (*src_dims[:-1], self.weights.values.shape[-1])


class InnerProduct(_Dense):
    """An inner product made ready: dst[n, oc] = store(post(... Σ src[n, i] · wei[oc, i])).

    Parameters
    ----------
    wei : (OC, IC) or (OC, IC, spatial) array
        Integer codes; see `Conv`.
    bias : (OC,) array, optional
        Real values or units of acc; see `Conv`.
    **options
        Options of `Conv`, without a window; `wei_q` per tensor, or along axis 0.

    Notes
    -----
    oneDNN's inner product takes no zero points. With one, a matmul of the same numbers runs; the
    plan says so.

    Examples
    --------
    >>> from pyonednn_q.qparams import QParams
    >>> src_q, wei_q = QParams(0.5, 0, "u8"), QParams(0.25, 0, "s8")
    >>> layer = InnerProduct(np.array([[1, 2], [3, 4]], np.int8), src_q=src_q, wei_q=wei_q)
    >>> layer(np.array([[2, 4]], np.uint8))
    array([[1.25, 2.75]], dtype=float32)
    """

    kind = "inner_product"

    @property
    def _wants_zero_point(self) -> bool:
        settings = self.settings
        by_attribute = settings.has_src_point and settings.zero_point in {"auto", "attribute"}
        dst_point = settings.dst_q is not None and settings.dst_q.zero_point != 0
        has_wei_point = not self.weights.zero_point.is_all(0.0)
        return by_attribute or dst_point or has_wei_point

    def _check_wei_dims(self, wei: Array) -> None:
        if not 2 <= wei.ndim <= 5:
            raise ShapeError("wei", str(wei.shape), "(OC, IC, up to 3 spatial dimensions)")

    def _problem(self, src_dims: Dims, src_dtype: str) -> DenseProblem:
        dims, settings = self.weights.values.shape, self.settings
        if tuple(src_dims[1:]) != dims[1:]:
            wanted = f"(N, {', '.join(map(str, dims[1:]))}), as wei has"
            raise ShapeError("src", str(src_dims), wanted)
        bias = None if self.bias is None else "f32"
        by_row = self._is_by_row and src_dims[0] != 1
        if not (by_row or self._wants_zero_point):
            return InnerProductProblem.of(
                src_dims,
                dims[0],
                src=src_dtype,
                wei=self.weights.dtype,
                dst=settings.dst,
                bias=bias,
            )
        inner = self.weights.values[0].size
        if by_row:
            return self._by_row(src_dims[0], inner, src_dtype)
        return MatMulProblem.of(
            (src_dims[0], inner),
            (inner, dims[0]),
            src=src_dtype,
            wei=self.weights.dtype,
            dst=settings.dst,
            bias=bias,
        )

    def _wei_of(self, problem: DenseProblem) -> Array:
        values = self.weights.values
        if problem.kind == "inner_product":
            return values
        wei: Array = values.reshape(len(values), -1).T.reshape(problem.wei.dims)
        return wei

    @property
    def _some_dims(self) -> Dims:
        return (2, *self.weights.values.shape[1:])

    def _rows(self, src_dims: Dims) -> int:
        return src_dims[0]

    def _dst_dims(self, src_dims: Dims, planned: Planned) -> Dims:
        return (src_dims[0], planned.dst.dims[-1])
