"""Another runtime's requantization as the last stage of a call, on exact s32 sums.

With scales, zero points and bias, oneDNN's sums pass through float32. So it is asked for the bare
products of codes, which are exact (`compose.accumulator`), and here

    acc[oc] = Σ src_q · (wei_q − wei_zp) − src_zp · Σ (wei_q − wei_zp) + bias[oc]

is finished in integers; but oneDNN's own dialects add the bias after the scales, in float32, as its
primitives do: a real one, or bias · src_scale · wei_scale of an integer one. The second sum is over
the weights that meet the source, not its padding: it is the same product with a source of ones,
made once for a shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import F32_WHOLE
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.native.arrays import check_out, lie_alike, memory_order
from pyonednn_q.native.passes import requantize
from pyonednn_q.ops.arrays import as_output
from pyonednn_q.ops.shapes import Shapes
from pyonednn_q.ops.source import static_codes
from pyonednn_q.qparams import QParams
from pyonednn_q.requantize import requantizer
from pyonednn_q.requantize.statement import apply
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyonednn_q.ops.operator import Operator
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.verification import Asked
    from pyonednn_q.requantize.value import Requantizer

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


class _AfterSums(NamedTuple):
    """For one shape: what is subtracted from the sums, and the arithmetic that follows."""

    map: Array | None
    last: Requantizer


class LastStage:
    """The products of an operator, and what makes codes of them.

    Parameters
    ----------
    operator : Operator
        Its settings name a dialect.
    wei : ndarray
        Codes.
    wei_q : QParams
        Of them.
    groups : int
        Of channels.

    Raises
    ------
    ArgumentError, DTypeError
        Sums that may leave 32 bits, or a bias that the dialect does not add.
    """

    def __init__(self, operator: Operator, wei: Array, wei_q: QParams, groups: int) -> None:
        self.settings, self.wei_scale, self.bias = operator.settings, wei_q.scale, operator.bias
        self.asked = operator.asked
        # Of the channels in a result: the last dimension after a matmul, else the second.
        self.axis = -1 if operator.axis == -1 else 1
        name, params = self.settings.requantize, self.settings.src_q
        assert name is not None
        assert isinstance(params, QParams)
        self.adds_real = name.startswith("onednn")
        if self.bias is not None and self.bias.dtype.kind == "f" and not self.adds_real:
            raise DTypeError(
                "bias", "f32", f"s32, in units of the accumulator: {name} adds integers"
            )
        self._check_axis()
        centred = _centred(wei, wei_q, operator.axis)
        largest = _check_sums(centred, self.bias, operator.axis)
        # Without VNNI, only products of u8 with seven bits are exact; and more kernels store large
        # sums of u8 as they are than of s8.
        exact = runtime.isa().has_vnni()
        as_it_is = params.dtype == "u8" or (exact and largest < F32_WHOLE)
        self.shift = 0 if as_it_is else 128
        self.dtype = "u8" if self.shift else params.dtype
        parts = _parts(centred, *((-128, 127) if exact else (-64, 63)))
        self.products = [operator.bare(part, groups, self.dtype) for part in parts]
        self._ready: Shapes[Dims, _AfterSums] = Shapes()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is done otherwise than by one primitive."""
        done = f"exact s32 products, requantized as {self.settings.requantize}"
        many = f"weights as the sum of {len(self.products)}: their range is beyond the products'"
        return (done, many) if len(self.products) > 1 else (done,)

    def __call__(self, src: Array, out: object = None) -> Array:
        """Return codes for a source of codes."""
        src = self._shifted(src)
        acc = _total(src, self.products)
        ready = self._ready.get(src.shape)
        if ready is None:
            ready = self._made(src.shape, acc, self.products)
            if self.asked is not None:
                self._verify(self.asked, src.shape, ready)
            ready = self._ready.add(src.shape, ready, 0 if ready.map is None else ready.map.nbytes)
        return self._finished(acc, ready, out)

    def _finished(self, acc: Array, ready: _AfterSums, out: object = None) -> Array:
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

    def _verify(self, asked: Asked, src_dims: Dims, ready: _AfterSums) -> None:
        params = self.settings.src_q
        assert isinstance(params, QParams)

        def run(src: Array, *_: object) -> Iterator[Array]:
            codes = static_codes(src, params).values if src.dtype == np.float32 else src
            acc = _total(self._shifted(codes.reshape(src.shape)), self.products)
            yield self._finished(acc, ready)

        asked.verify(src_dims, params.dtype, self.products[0].prepare(src_dims), run)

    def stated(self, src: Array, products: Sequence[Callable[[Array], Array]]) -> Array:
        """Return the same by other products, one for each of ours, and NumPy's statement."""
        src = self._shifted(src)
        acc = _total(src, products)
        ready = self._made(src.shape, acc, products)
        return apply(acc if ready.map is None else acc - ready.map, ready.last)

    def _check_axis(self) -> None:
        dst_q = self.settings.dst_q
        assert dst_q is not None
        if dst_q.axis not in {None, self.axis}:
            got = f"scales along axis {dst_q.axis}"
            raise ArgumentError("dst_q", got, f"axis={self.axis}, that of the output channels")

    @staticmethod
    def refuse(residual: object, operands: Iterable[str]) -> None:
        """Refuse arrays for a chain: there is none.

        Raises
        ------
        ArgumentError
            Naming it.
        """
        wanted = "none: with requantize nothing comes between sums and codes"
        if residual is not None:
            raise ArgumentError("residual", "an array", wanted)
        for name in operands:
            raise ArgumentError("operands", shown(name), wanted)

    def prepare(self, src_dims: Dims) -> Planned:
        """Return the first product's primitive for a shape."""
        if self.asked is not None and self._ready.get(src_dims) is None:
            params = self.settings.src_q
            assert params is not None
            self(np.zeros(src_dims, dtypes.numpy_dtype(params.dtype)))
        return self.products[0].prepare(src_dims)

    def clear(self) -> None:
        """Let go of what was made for the shapes of sources."""
        self._ready.clear()
        for product in self.products:
            product.clear()

    def _shifted(self, src: Array) -> Array:
        """Return codes as the products take them."""
        self.settings.check_src(dtypes.from_numpy(src.dtype, "src", self.settings.src_wanted))
        return src.view(np.uint8) ^ np.uint8(self.shift) if self.shift else src

    def _made(
        self, src_dims: Dims, acc: Array, products: Sequence[Callable[[Array], Array]]
    ) -> _AfterSums:
        params = self.settings.src_q
        assert isinstance(params, QParams)
        point = int(params.zero_point) + self.shift
        if point == 0 or not acc.size:
            return _AfterSums(None, self._arithmetic(self.bias))
        ones = np.ones((1, *src_dims[1:]) if self.axis == 1 else src_dims)
        share = _total(ones.astype(dtypes.numpy_dtype(self.dtype)), products) * point
        by_channel = np.moveaxis(share, self.axis, -1).reshape(-1, share.shape[self.axis])
        if self.adds_real or (by_channel != by_channel[0]).any():
            # In memory as the sums are: subtracting runs through both in order.
            same = np.empty_like(acc[:1] if len(share) == 1 else acc)
            same[...] = share
            return _AfterSums(same, self._arithmetic(self.bias))
        bias = np.zeros(1, np.int32) if self.bias is None else self.bias
        return _AfterSums(None, self._arithmetic(bias - by_channel[0]))

    def _arithmetic(self, bias: Array | None) -> Requantizer:
        settings = self.settings
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
