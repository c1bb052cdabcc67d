"""Another runtime's requantization around operators that give exact s32 sums.

With scales, zero points and bias, oneDNN's sums pass through float32. So it is asked for the bare
products of codes, which are exact (`acc.split`), and here

    acc[oc] = Σ src_q · (wei_q − wei_zp) − src_zp · Σ (wei_q − wei_zp) + bias[oc]

is finished in integers; sums beyond 32 bits saturate, where that is allowed. But oneDNN's own
dialects add the bias after the scales, in float32, as its primitives do: a real one, or
bias · src_scale · wei_scale of an integer one. The second sum is over the weights that meet the
source, not its padding: it is the same product with a source of ones, made once for a shape.

The arithmetic of "onnxruntime" is oneDNN's, too, with a round before the zero point. One primitive
computes it where float32 holds all of its sums, whatever the source: where for every output channel

    255 · max(Σ w⁺, Σ w⁻) + 255 · K · |z| + |bias| <= 2^24                  w, z: stored weights
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.pairs import exact_range
from pyonednn_q.acc.split import CODES, centred, terms
from pyonednn_q.dtypes import F32_LEAST, F32_WHOLE, Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from pyonednn_q.native import runtime
from pyonednn_q.native.arrays import check_out, lie_alike, memory_order
from pyonednn_q.native.passes import requantize
from pyonednn_q.ops.arrays import as_output
from pyonednn_q.ops.shapes import Shapes
from pyonednn_q.ops.source import Codes
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.qparams import QParams, along
from pyonednn_q.requantize import requantizer
from pyonednn_q.requantize.statement import apply
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from typing_extensions import Self

    from pyonednn_q.dtypes import DType
    from pyonednn_q.ops.on_primitives import OnPrimitives
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.settings import Settings
    from pyonednn_q.ops.verification import Asked
    from pyonednn_q.requantize.value import Requantizer

Dims = tuple[int, ...]


class _AfterSums(NamedTuple):
    """Parts for one shape: the map that sums lose, and the arithmetic that follows."""

    map: Array | None
    last: Requantizer


_S32 = np.iinfo(np.int32)


class Requantized:
    """An operator with `requantize=`: products of codes, and arithmetic that makes codes of them.

    It holds no operator but those of the products; or one that makes the codes by itself.

    Parameters
    ----------
    definition : OnPrimitives
        Operator whose settings name a dialect.
    wei : ndarray
        Codes.
    wei_q : QParams
        Scale and zero point of the weights.
    groups : int
        Number of groups of channels, as the caller has them.

    Raises
    ------
    ArgumentError, DTypeError
        Sums that may leave 32 bits, or a bias that the dialect does not add.
    """

    def __init__(self, definition: OnPrimitives, wei: Array, wei_q: QParams, groups: int) -> None:
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
        whole = centred(wei, wei_q.zero_point, definition.axis)
        largest = CODES * _load(whole, definition.axis)  # no code is further from a zero point
        most = largest
        if bias is not None and bias.dtype.kind in "iu":
            most += int(np.abs(bias.astype(np.int64)).max())
        self.is_wide = most > _S32.max
        if self.is_wide and settings.saturation == "refuse":
            wanted = "weights and bias whose sums fit into 32 bits for every source"
            raise ArgumentError("wei", f"sums of up to {most}", wanted)
        # More kernels store large sums of u8 as they are than of s8; and without VNNI only products
        # of u8 are exact.
        exact = runtime.isa().has_vnni() and largest < F32_WHOLE
        self.shift = 0 if settings.src_q.dtype == "u8" or exact else 128
        self.dtype = "u8" if self.shift else settings.src_q.dtype
        self._groups = groups
        self._ready: Shapes[Dims, tuple[tuple[Any, ...], _AfterSums | None]] = Shapes()
        self.fused = self._rounding_operator(definition, wei, wei_q)
        self._later = None if self.fused is None else (wei.copy(), wei_q.zero_point)
        self._bare = () if self.fused is not None else self._bare_products(definition, whole)

    def _rounding_operator(self, definition: OnPrimitives, wei: Array, wei_q: QParams) -> Any:  # noqa: ANN401 - an operator
        """Return what makes the codes in one primitive, if the dialect is oneDNN's with a round."""
        settings, bias = definition.settings, definition.bias
        assert isinstance(settings.src_q, QParams)
        assert settings.dst_q is not None
        if settings.requantize != "onnxruntime" or settings.code_bounds() != (None, None):
            return None
        if settings.dst == "s32" or not _float32_holds(definition):
            return None
        multiplier = self._arithmetic(settings, None).multiplier
        if multiplier.min() < F32_LEAST:  # kernels take smaller scales for 0
            return None
        scale: Any = multiplier if len(multiplier) > 1 else multiplier[0]
        is_one = np.ndim(scale) == np.ndim(wei_q.zero_point) == 0
        axis = None if is_one else definition.axis
        dst_point = int(np.max(settings.dst_q.zero_point))
        options = settings.bare(settings.src_q.dtype) | {
            "src_q": QParams(1.0, settings.src_q.zero_point, settings.src_q.dtype),
            "wei_q": QParams(scale, wei_q.zero_point, wei_q.dtype, axis=axis),
            "dst_q": QParams(1.0, dst_point, settings.dst),
            "dst": None,
            "exact_rounding": True,
        }
        return definition.alike(wei, bias, self._groups, options)

    def _bare_products(self, definition: OnPrimitives, wei: Array) -> tuple[Any, ...]:
        """Return operators of products with s8 weights, whose sum is the products with `wei`."""
        limits = exact_range(runtime.isa())
        while limits[1] > 1 and CODES * _load(np.clip(wei, *limits), definition.axis) > _S32.max:
            limits = limits[0] // 2, limits[1] // 2
        options = definition.settings.bare(self.dtype)
        weights = terms(wei, limits)
        return tuple(definition.alike(term, None, self._groups, options) for term in weights)

    def products(self, definition: OnPrimitives, src_dims: Dims) -> tuple[Any, ...]:
        """Return the operators that run for a shape: one that makes the codes, or bare products."""
        ready = self._ready.get(src_dims)
        if ready is not None:
            return ready[0]
        if self.fused is not None:
            try:
                self.fused.prepare(src_dims)
            except UnsupportedError:  # no kernel for the shape with a round, or no VNNI
                if not self._bare:
                    assert self._later is not None
                    wei, point = self._later
                    whole = centred(wei, point, definition.axis)
                    self._bare = self._bare_products(definition, whole)
            else:
                return (self.fused,)
        return self._bare

    @property
    def _all(self) -> tuple[Any, ...]:
        return self._bare if self.fused is None else (self.fused, *self._bare)

    def __copy__(self) -> Self:
        twin: Self = object.__new__(type(self))
        own = {"fused": copy(self.fused), "_bare": tuple(copy(product) for product in self._bare)}
        twin.__dict__.update(self.__dict__, **own, _ready=Shapes())
        return twin

    def __call__(
        self,
        definition: OnPrimitives,
        src: Array,
        out: object,
        residual: object,
        operands: Mapping[str, Any],
    ) -> tuple[Array, Callable[..., Any] | None]:
        """Return the result, and the fast path for later calls, where one primitive does all."""
        wanted = "none: with requantize nothing comes between sums and codes"
        if residual is not None:
            raise ArgumentError("residual", "an array", wanted)
        for name in operands:
            raise ArgumentError("operands", shown(name), wanted)
        codes, ready = self.codes(definition, src), self._ready.get(src.shape)
        acc = None
        if ready is None:
            products, after = self.products(definition, src.shape), None
            if products[0] is not self.fused:
                acc = self._total(codes, products)
                after = self._after_sums(definition, src.shape, acc, products)
            if definition.asked is not None:
                self._verify(definition, definition.asked, src.shape, products, after)
            nbytes = 0 if after is None or after.map is None else after.map.nbytes
            ready = self._ready.add(src.shape, (products, after), nbytes)
        products, after = ready
        if after is None:
            return products[0](codes, out=out), products[0]._hot if codes is src else None  # noqa: SLF001
        return _finished(self._total(codes, products) if acc is None else acc, after, out), None

    def prepare(self, definition: OnPrimitives, src_dims: Dims, _src_dtype: DType) -> Planned:
        """Return the first product's primitive for a shape."""
        if definition.asked is not None and self._ready.get(src_dims) is None:
            params = definition.settings.src_q
            assert params is not None
            src = TensorSpec.dense(src_dims, params.dtype)  # which refuses what no array can be
            zeros = np.zeros(src.dims, dtypes.numpy_dtype(params.dtype))
            self(definition, zeros, None, None, {})
        return cast("Planned", self.products(definition, src_dims)[0].prepare(src_dims))

    def clear(self) -> None:
        """Let go of what was made for the shapes of sources."""
        self._ready.clear()
        for product in self._all:
            product.clear()

    @property
    def shapes(self) -> tuple[Dims, ...]:
        """Sources that primitives are ready for."""
        return tuple(dict.fromkeys(dims for product in self._all for dims in product.shapes))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on work that is not one primitive."""
        if not self._bare:
            return ()
        done = f"exact s32 sums, rounded by a pass of ours: requantized as {self.dialect}"
        many = f"weights as the sum of {len(self._bare)}: their range is beyond the products'"
        many += "" if runtime.isa().has_vnni() else " without VNNI"
        wide = "sums may exceed 32 bits: they saturate"
        notes = (done, many if len(self._bare) > 1 else "", wide if self.is_wide else "")
        return tuple(filter(None, notes))

    @property
    def wei_bytes(self) -> int:
        """Bytes of packed weights, of all products."""
        return sum(product.wei_bytes for product in self._all)

    def stated(
        self, definition: OnPrimitives, src: Array, products: Sequence[Callable[[Array], Array]]
    ) -> Array:
        """Return the same by other products, one for each of ours, and NumPy's statement."""
        acc = self._total(self.codes(definition, src), products)
        after = self._after_sums(definition, src.shape, acc, products)
        return apply(_in_32_bits(acc, after), after.last)

    def _verify(
        self,
        definition: OnPrimitives,
        asked: Asked,
        src_dims: Dims,
        products: tuple[Any, ...],
        after: _AfterSums | None,
    ) -> None:
        params = definition.settings.src_q
        assert params is not None

        def run(src: Array, *_: object) -> Iterator[Array]:
            codes = self.codes(definition, src)
            if after is None:
                yield products[0](codes)
            else:
                yield _finished(self._total(codes, products), after)

        asked.verify(src_dims, params.dtype, products[0].prepare(src_dims), run)

    @staticmethod
    def codes(definition: OnPrimitives, src: Array) -> Array:
        """Return the codes of a source."""
        codes = definition._codes(src, None) or Codes(src)  # noqa: SLF001 - of what runs
        values: Array = codes.values
        settings = definition.settings
        settings.check_src(dtypes.from_numpy(values.dtype, "src", settings.src_wanted))
        return values if values.shape == src.shape else values.reshape(src.shape)

    def _total(self, codes: Array, products: Sequence[Callable[[Array], Array]]) -> Array:
        """Return the sums of products; of 64 bits where they may leave 32."""
        if self.shift:
            codes = codes.view(np.uint8) ^ np.uint8(self.shift)
        return self._added(codes, products)

    def _added(self, codes: Array, products: Sequence[Callable[[Array], Array]]) -> Array:
        first, *rest = (product(codes) for product in products)
        acc = first.astype(np.int64) if self.is_wide else first
        for more in rest:
            acc += more
        return acc

    def _after_sums(
        self,
        definition: OnPrimitives,
        src_dims: Dims,
        acc: Array,
        products: Sequence[Callable[[Array], Array]],
    ) -> _AfterSums:
        settings, bias = definition.settings, definition.bias
        assert isinstance(settings.src_q, QParams)
        point = int(settings.src_q.zero_point) + self.shift
        # Where sums leave 32 bits, so do those with a bias.
        adds_first = self.is_wide and bias is not None and not self.adds_real
        if not acc.size or (point == 0 and not adds_first):
            return _AfterSums(None, self._arithmetic(settings, bias))
        ones = np.ones((1, *src_dims[1:]) if self.axis == 1 else src_dims)
        share = self._added(ones.astype(dtypes.numpy_dtype(self.dtype)), products) * point
        by_channel = np.moveaxis(share, self.axis, -1).reshape(-1, share.shape[self.axis])
        if not (self.adds_real or self.is_wide or (by_channel != by_channel[0]).any()):
            added = np.zeros(1, np.int32) if bias is None else bias
            return _AfterSums(None, self._arithmetic(settings, added - by_channel[0]))
        if adds_first:
            assert bias is not None
            share = share - along(bias, self.axis, share.ndim)
            bias = None
        # In memory as the sums are: subtracting runs through both in order.
        same = np.empty_like(acc[:1] if len(share) == 1 else acc)
        same[...] = share
        return _AfterSums(same, self._arithmetic(settings, bias))

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


def _in_32_bits(acc: Array, after: _AfterSums) -> Array:
    """Return sums less what is subtracted from them, in 32 bits; they are overwritten."""
    if after.map is not None:
        acc -= after.map
    return acc if acc.dtype == np.int32 else np.clip(acc, _S32.min, _S32.max).astype(np.int32)


def _finished(acc: Array, after: _AfterSums, out: object = None) -> Array:
    """Return codes for sums, which are overwritten."""
    acc = _in_32_bits(acc, after)
    if out is None:
        return requantize(acc, after.last)
    target = _checked(as_output("out", out), acc.shape, after.last.dtype)
    if memory_order(acc) is not None and lie_alike(target, acc):
        return requantize(acc, after.last, out=target)
    target[...] = requantize(acc, after.last)
    return target


def _load(wei: Array, axis: int) -> int:
    """Return the largest Σ|wei| of an output channel."""
    sizes = np.abs(wei.astype(np.int64))
    return int((sizes.sum(axis=-2) if axis == -1 else sizes.reshape(len(sizes), -1).sum(1)).max())


def _float32_holds(definition: OnPrimitives) -> bool:
    """Tell whether float32 holds all sums on their way, with whatever zero point of the source."""
    weights, axis, bias = definition.weights, definition.axis, definition.bias
    load = max(_load(np.clip(weights.values, *ends), axis) for ends in ((0, 127), (-128, 0)))
    taps = weights.values.shape[-2] if axis == -1 else weights.values[0].size
    point = int(np.abs(weights.zero_point.values()).max())
    added = 0 if bias is None else int(np.abs(bias.astype(np.int64)).max())
    return CODES * (load + int(taps) * point) + added <= F32_WHOLE


def _checked(target: Array, dims: Dims, dtype: str) -> Array:
    if target.dtype != dtypes.numpy_dtype(dtype):
        raise DTypeError("out", str(target.dtype), str(dtypes.numpy_dtype(dtype)))
    if target.shape != dims:
        raise ShapeError("out", str(target.shape), str(dims))
    check_out(target, {})  # the sums are made: nothing is read meanwhile
    return target
