"""Another runtime's requantization around operators that give exact s32 sums.

With scales, zero points and bias, oneDNN's sums pass through float32. So it is asked for the bare
products of codes, which are exact (`acc.split`), and here

    acc[oc] = Σ src_q · (wei_q − wei_zp) − src_zp · Σ (wei_q − wei_zp) + bias[oc]

is finished in integers; but oneDNN's own dialects add the bias after the scales, in float32, as its
primitives do: a real one, or bias · src_scale · wei_scale of an integer one. The second sum is over
the weights that meet the source, not its padding: it is the same product with a source of ones,
made once for a shape.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import F32_WHOLE
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.native.arrays import check_out, lie_alike, memory_order
from pyonednn_q.native.passes import requantize
from pyonednn_q.ops.arrays import as_output
from pyonednn_q.ops.shapes import Shapes
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.qparams import QParams
from pyonednn_q.requantize import requantizer
from pyonednn_q.requantize.statement import apply
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from typing_extensions import Self

    from pyonednn_q.dtypes import DType
    from pyonednn_q.ops.definition import Definition
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.settings import Settings
    from pyonednn_q.ops.verification import Asked
    from pyonednn_q.requantize.value import Requantizer

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


class _AfterSums(NamedTuple):
    """For one shape: what is subtracted from the sums, and the arithmetic that follows."""

    map: Array | None
    last: Requantizer


class BareOperator(Protocol):
    """An operator for bare products of codes with s8 weights."""

    def __call__(self, src: Array, /) -> Array:
        """Return s32 sums."""

    def prepare(self, src_dims: Dims, /) -> Planned:
        """Return what runs for a shape."""

    def clear(self) -> None:
        """Let go of what is ready for shapes."""

    @property
    def shapes(self) -> tuple[Dims, ...]:
        """Shapes that something is ready for."""

    @property
    def wei_bytes(self) -> int:
        """Bytes of packed weights."""


BareT = TypeVar("BareT", bound=BareOperator)


class Requantized(Generic[BareT]):
    """How an operator with `requantize=` runs: products of codes, and what makes codes of them.

    It holds no operator but those of the products.

    Parameters
    ----------
    definition : Definition
        Its settings name a dialect.
    wei : ndarray
        Codes.
    wei_q : QParams
        Of them.
    bare : callable
        f(s8 weights, dtype of the source): the same operator for plain products.

    Raises
    ------
    ArgumentError, DTypeError
        Sums that may leave 32 bits, or a bias that the dialect does not add.
    """

    def __init__(
        self,
        definition: Definition,
        wei: Array,
        wei_q: QParams,
        bare: Callable[[Array, str], BareT],
    ) -> None:
        settings, bias = definition.settings, definition.bias
        self.wei_scale, self.dialect = wei_q.scale, settings.requantize
        # Of the channels in a result: the last dimension after a matmul, else the second.
        self.axis = -1 if definition.axis == -1 else 1
        assert settings.requantize is not None
        assert isinstance(settings.src_q, QParams)
        self.adds_real = settings.requantize.startswith("onednn")
        if bias is not None and bias.dtype.kind == "f" and not self.adds_real:
            wanted = f"s32, in units of the accumulator: {settings.requantize} adds integers"
            raise DTypeError("bias", "f32", wanted)
        dst_q = settings.dst_q
        if dst_q is not None and dst_q.axis not in {None, self.axis}:
            got = f"scales along axis {dst_q.axis}"
            raise ArgumentError("dst_q", got, f"axis={self.axis}, that of the output channels")
        centred = _centred(wei, wei_q, definition.axis)
        largest = _check_sums(centred, bias, definition.axis)
        # Without VNNI, only products of u8 with seven bits are exact; and more kernels store large
        # sums of u8 as they are than of s8.
        exact = runtime.isa().has_vnni()
        as_it_is = settings.src_q.dtype == "u8" or (exact and largest < F32_WHOLE)
        self.shift = 0 if as_it_is else 128
        self.dtype = "u8" if self.shift else settings.src_q.dtype
        parts = _parts(centred, *((-128, 127) if exact else (-64, 63)))
        self.products = [bare(part, self.dtype) for part in parts]
        self._ready: Shapes[Dims, _AfterSums] = Shapes()

    def __copy__(self) -> Self:
        twin: Self = object.__new__(type(self))
        products = [copy(product) for product in self.products]
        twin.__dict__.update(self.__dict__, products=products, _ready=Shapes())
        return twin

    def __call__(
        self,
        definition: Definition,
        src: Array,
        out: object,
        residual: object,
        operands: Mapping[str, Any],
    ) -> tuple[Array, None]:
        """Return the result; every call comes here again."""
        wanted = "none: with requantize nothing comes between sums and codes"
        if residual is not None:
            raise ArgumentError("residual", "an array", wanted)
        for name in operands:
            raise ArgumentError("operands", shown(name), wanted)
        src = self._shifted(definition, src)
        acc = _total(src, self.products)
        ready = self._ready.get(src.shape)
        if ready is None:
            ready = self._after_sums(definition, src.shape, acc, self.products)
            if definition.asked is not None:
                self._verify(definition, definition.asked, src.shape, ready)
            ready = self._ready.add(src.shape, ready, 0 if ready.map is None else ready.map.nbytes)
        return _finished(acc, ready, out), None

    def prepare(self, definition: Definition, src_dims: Dims, _src_dtype: DType) -> Planned:
        """Return the first product's primitive for a shape."""
        if definition.asked is not None and self._ready.get(src_dims) is None:
            params = definition.settings.src_q
            assert params is not None
            src = TensorSpec.dense(src_dims, params.dtype)  # which refuses what no array can be
            zeros = np.zeros(src.dims, dtypes.numpy_dtype(params.dtype))
            self(definition, zeros, None, None, {})
        return self.products[0].prepare(src_dims)

    def clear(self) -> None:
        """Let go of what was made for the shapes of sources."""
        self._ready.clear()
        for product in self.products:
            product.clear()

    @property
    def shapes(self) -> tuple[Dims, ...]:
        """Sources that primitives are ready for."""
        return self.products[0].shapes

    @property
    def notes(self) -> tuple[str, ...]:
        """What is done otherwise than by one primitive."""
        done = f"exact s32 products, requantized as {self.dialect}"
        many = f"weights as the sum of {len(self.products)}: their range is beyond the products'"
        return (done, many) if len(self.products) > 1 else (done,)

    @property
    def wei_bytes(self) -> int:
        """Bytes of packed weights, of all products."""
        return sum(product.wei_bytes for product in self.products)

    def stated(
        self, definition: Definition, src: Array, products: Sequence[Callable[[Array], Array]]
    ) -> Array:
        """Return the same by other products, one for each of ours, and NumPy's statement."""
        src = self._shifted(definition, src)
        acc = _total(src, products)
        ready = self._after_sums(definition, src.shape, acc, products)
        return apply(acc if ready.map is None else acc - ready.map, ready.last)

    def _verify(
        self, definition: Definition, asked: Asked, src_dims: Dims, ready: _AfterSums
    ) -> None:
        params = definition.settings.src_q
        assert params is not None

        def run(src: Array, *_: object) -> Iterator[Array]:
            acc = _total(self._shifted(definition, src), self.products)
            yield _finished(acc, ready)

        asked.verify(src_dims, params.dtype, self.products[0].prepare(src_dims), run)

    def _shifted(self, definition: Definition, src: Array) -> Array:
        """Return the codes of a source as the products take them."""
        codes: Array = definition._codes(src, None).values.reshape(src.shape)  # noqa: SLF001 - of what runs
        settings = definition.settings
        settings.check_src(dtypes.from_numpy(codes.dtype, "src", settings.src_wanted))
        if self.shift:
            codes = codes.view(np.uint8) ^ np.uint8(self.shift)
        return codes

    def _after_sums(
        self,
        definition: Definition,
        src_dims: Dims,
        acc: Array,
        products: Sequence[Callable[[Array], Array]],
    ) -> _AfterSums:
        settings, bias = definition.settings, definition.bias
        assert isinstance(settings.src_q, QParams)
        point = int(settings.src_q.zero_point) + self.shift
        if point == 0 or not acc.size:
            return _AfterSums(None, self._arithmetic(settings, bias))
        ones = np.ones((1, *src_dims[1:]) if self.axis == 1 else src_dims)
        share = _total(ones.astype(dtypes.numpy_dtype(self.dtype)), products) * point
        by_channel = np.moveaxis(share, self.axis, -1).reshape(-1, share.shape[self.axis])
        if self.adds_real or (by_channel != by_channel[0]).any():
            # In memory as the sums are: subtracting runs through both in order.
            same = np.empty_like(acc[:1] if len(share) == 1 else acc)
            same[...] = share
            return _AfterSums(same, self._arithmetic(settings, bias))
        whole = np.zeros(1, np.int32) if bias is None else bias
        return _AfterSums(None, self._arithmetic(settings, whole - by_channel[0]))

    def _arithmetic(self, settings: Settings, bias: Array | None) -> Requantizer:
        assert settings.requantize is not None
        assert isinstance(settings.src_q, QParams)
        assert settings.dst_q is not None
        lo, hi = settings.code_bounds()
        return requantizer(
            settings.requantize,
            src_scale=settings.src_q.scale,
            wei_scale=self.wei_scale,
            dst_scale=settings.dst_q.scale,
            dst_zero_point=settings.dst_q.zero_point,
            dst_dtype=settings.dst_q.dtype,
            bias=bias,
            lo=lo,
            hi=hi,
            axis=self.axis,
        )


def _finished(acc: Array, ready: _AfterSums, out: object = None) -> Array:
    """Return codes for sums, which are overwritten."""
    if ready.map is not None:
        acc -= ready.map
    if out is None:
        return requantize(acc, ready.last)
    target = _checked(as_output("out", out), acc.shape, ready.last.dtype)
    if memory_order(acc) is not None and lie_alike(target, acc):
        return requantize(acc, ready.last, out=target)
    target[...] = requantize(acc, ready.last)
    return target


def _total(src: Array, products: Sequence[Callable[[Array], Array]]) -> Array:
    first, *rest = (product(src) for product in products)
    for more in rest:
        first += more
    return first


def _centred(wei: Array, wei_q: QParams, axis: int) -> Array:
    points = np.asarray(wei_q.zero_point, np.int16)
    if points.ndim:
        aligned = [1] * wei.ndim
        aligned[axis] = -1
        points = points.reshape(aligned)
    return np.asarray(wei.astype(np.int16) - points)


def _parts(centred: Array, lo: int, hi: int) -> list[Array]:
    """Return s8 arrays from lo to hi whose sum is the weights: one, or as many as it takes."""
    parts: list[Array] = []
    rest = centred
    while not parts or rest.any():
        part = np.clip(rest, lo, hi)
        rest = rest - part
        parts.append(part.astype(np.int8))
    return parts


def _check_sums(centred: Array, bias: Array | None, axis: int) -> int:
    """Return the largest sum of products of 8-bit codes; refuse those that may leave 32 bits."""
    sizes = np.abs(centred.astype(np.int64))
    sums = sizes.sum(axis=-2) if axis == -1 else sizes.reshape(len(sizes), -1).sum(axis=1)
    products = largest = int(sums.max()) * 255  # no code is further from a zero point
    if bias is not None and bias.dtype.kind in "iu":
        largest += int(np.abs(bias.astype(np.int64)).max())
    if largest >= 2**31:
        wanted = "weights and bias whose sums fit into 32 bits for every source"
        raise ArgumentError("wei", f"sums of up to {largest}", wanted)
    return products


def _checked(target: Array, dims: Dims, dtype: str) -> Array:
    if target.dtype != dtypes.numpy_dtype(dtype):
        raise DTypeError("out", str(target.dtype), str(dtypes.numpy_dtype(dtype)))
    if target.shape != dims:
        raise ShapeError("out", str(target.shape), str(dims))
    check_out(target, {})  # the sums are made: nothing is read meanwhile
    return target
