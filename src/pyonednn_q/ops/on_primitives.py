"""OnPrimitives: what an operator computes, and how: by a plan on its primitive, for each shape."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, Error, LibraryError, ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.native.runtime import Lock
from pyonednn_q.native.trial import lost_channels
from pyonednn_q.ops.arrays import as_array, as_output, asked_array, asked_output
from pyonednn_q.ops.asking import Asking
from pyonednn_q.ops.grouped_weights import weights_in_groups
from pyonednn_q.ops.shapes import Shapes
from pyonednn_q.ops.source import (
    SLOW_AS_S8,
    Codes,
    as_unsigned,
    dynamic_codes,
    hot_call_for,
    static_codes,
)
from pyonednn_q.ops.verification import Asked
from pyonednn_q.ops.ways import choose, is_product_by_gemm, product_as_image
from pyonednn_q.ops.weights import Weights, checked_bias
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from typing_extensions import Self

    from pyonednn_q.check.places import Kind
    from pyonednn_q.dtypes import DType
    from pyonednn_q.ops.asking import Composition, CompositionKey
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.settings import Settings
    from pyonednn_q.primitive.dense_facts import DenseProblem

    Hot = Callable[..., Any]

Dims = tuple[int, ...]

_AS_MATMUL = "an inner product takes no zero point and no scale of rows: runs as a matmul"


class OnPrimitives:
    """Weights, bias and settings, the problem that they make with a source, and what runs it.

    Attributes
    ----------
    settings : Settings
        Settings of the operator.
    weights : Weights
        Codes, scale and zero point of the weights, in oneDNN's dims.
    bias : ndarray or None
        One value per output channel: real values if floating, else in units of the accumulator.
    asked : Asked or None
        Values that the caller wrote, for `self_check`.
    """

    axis: ClassVar[int] = 0  # of the output channels, in the caller's weights
    groups = 1
    kind: ClassVar[Kind]
    window: Mapping[str, Any] = MappingProxyType({})
    _takes_wei_point: ClassVar[bool] = False

    def __init__(self, wei: Array, bias: object, wei_q: QParams | None, settings: Settings) -> None:
        self._begin()
        self._check_wei_dims(wei)
        if not wei.size:
            raise ShapeError("wei", str(wei.shape), "no empty dimension")
        channels = settings.post.channels
        if channels not in {None, wei.shape[self.axis]}:
            wanted = f"{wei.shape[self.axis]}, or constants of the whole tensor"
            raise ShapeError("post", f"constants of {channels} channels", wanted)
        self.settings = settings
        groups = self.groups
        self.asked = None
        if isinstance(wei_q, QParams) and wei_q.block:
            self.weights = weights_in_groups(wei, wei_q, self.kind, self.axis, settings)
            self.bias = None if bias is None else checked_bias(bias, wei.shape[self.axis])
            self._check_real_bias()
            return
        self.weights = Weights.of(
            wei,
            wei_q,
            self.axis,
            is_int8=settings.src_q is not None,
            takes_zero_point=self._takes_wei_point,
            groups=groups,
            limits=settings.wei_limits,
        )
        if self.weights.parts is not None:
            self.groups = self.weights.parts.groups
        self.bias = None if bias is None else checked_bias(bias, wei.shape[self.axis])
        if isinstance(settings.src_q, Dynamic):
            if settings.src_q.extent == "per_group":
                wanted = "'per_row'; or wei_q with a block, the size of a group"
                raise ArgumentError("src_q", "a range per group", wanted)
            self._check_dynamic(settings.src_q)
        if settings.self_check is True:
            window = {**self.window, "groups": groups} if self.window else {}
            self.asked = Asked(self.kind, wei.copy(), self.bias, wei_q, settings, window)

    def _begin(self) -> None:
        """Keep nothing yet: what is ready for shapes, plans and packed weights are a process's."""
        self._ready: Shapes[tuple[Dims, str], Planned] = Shapes()
        self._compositions: dict[CompositionKey, Composition] = {}
        self._as_u8 = False  # whether codes of s8 run as u8, which is faster
        self._lock = Lock()

    # --- what a kind of operator says of itself --------------------------------------------------

    def alike(self, wei: Array, bias: Array | None, groups: int, options: dict[str, Any]) -> Self:
        """Return an operator of the same kind and window for other weights and options."""
        raise NotImplementedError

    def _check_wei_dims(self, wei: Array) -> None:
        raise NotImplementedError

    def _problem(self, src_dims: Dims, src_dtype: str) -> DenseProblem:
        raise NotImplementedError

    @property
    def _some_dims(self) -> Dims:
        """Dims of a source that has a result, with channels as the weights have them."""
        raise NotImplementedError

    def _wei_of(self, problem: DenseProblem) -> Array:
        """Return the weights in the problem's dims."""
        return self.weights.values.reshape(problem.wei.dims)

    def _check_dynamic(self, dynamic: Dynamic) -> None:
        if dynamic.extent == "per_row":
            wanted = "one per tensor; only products have rows"
            raise ArgumentError("src_q", "a range per row", wanted)
        self._check_real_bias()

    def _check_real_bias(self) -> None:
        if self.bias is not None and self.bias.dtype.kind in "iu":
            raise DTypeError("bias", "s32", "f32: units of the sums change with sources or groups")

    def _settings_for(self, _src_dims: Dims) -> Settings:
        """Return what a source of a shape asks for, where that is simpler than what any does."""
        return self.settings

    def _rows(self, src_dims: Dims) -> int:
        """Return the number of rows of a source."""
        raise NotImplementedError

    def _dst_dims(self, _src_dims: Dims, planned: Planned) -> Dims:
        """Return the caller's dims of a result."""
        return planned.dst.dims

    # --- a call ----------------------------------------------------------------------------------

    def _src_dtype(self, src: Array) -> str:
        """Return the type of what the primitive takes for a source."""
        try:
            dtype = dtypes.from_numpy(src.dtype, "src")
        except DTypeError:  # again, with what would do here
            dtype = dtypes.from_numpy(src.dtype, "src", self.settings.src_wanted)
        if self.settings.src_q is not None and dtype == "f32":
            return self.settings.src_q.dtype
        if self.settings.dynamic is not None:
            raise DTypeError("src", dtype, "f32: each call makes codes of it")
        return dtype

    def _codes(self, src: Array, planned: Planned | None) -> Codes | None:
        """Return the codes that the primitive takes for a source; None if it takes that itself."""
        params, is_unsigned = self.settings.src_q, planned is not None and planned.is_unsigned
        if isinstance(params, Dynamic):
            rows = None if params.extent == "per_tensor" else self._rows(src.shape)
            codes = dynamic_codes(src, params, rows)
        elif params is not None and src.dtype == np.float32:
            codes = static_codes(src, params, planned)
        elif is_unsigned:
            codes = Codes(src)
        else:
            return None
        return codes.unsigned() if is_unsigned else codes

    def _run(
        self,
        ready: Planned,
        src: Array,
        out: object = None,
        residual: object = None,
        operands: Mapping[str, Any] = MappingProxyType({}),
    ) -> tuple[Array, Hot | None]:
        """Return the result of a source on what is ready for it, and what calls alike may run."""
        planned, parts = self._for_arrays(ready, src, out), self.weights.parts
        asked, run = self._dst_dims(src.shape, planned), planned.dst.dims
        codes, values, of_codes = self._codes(src, ready), src, {}
        if codes is not None:
            values, of_codes = codes.values, codes.operands(ready)
        arrays = dict(operands)
        for name in operands:
            if name in of_codes:
                raise ArgumentError("operands", shown(name), "the names of the chain's leaves")
            if name in planned.leaves:
                arrays[name] = asked_array(name, as_array(name, arrays[name]), asked, run)
        before = target = to = None
        if residual is not None:
            before = asked_array("residual", as_array("residual", residual), asked, run)
        if out is not None:
            target = as_output("out", out)
            read = {"src": src, **({} if before is None else {"residual": before})}
            to = asked_output(target, planned.dst, asked, read)
        if parts is not None:
            values = parts.of(values.reshape(src.shape))
        dst = planned(
            values.reshape(planned.src_dims), out=to, residual=before, **arrays, **of_codes
        )
        hot, as_it_is = None, self._stays(src, planned)
        if as_it_is:
            params = self.settings.src_q
            hot = planned.hot if codes is None else hot_call_for(planned, params, src, codes, asked)
        dst = dst if asked == run else dst.reshape(asked)
        if target is not None:
            if to is not target and not np.may_share_memory(dst, target):
                np.copyto(target, dst)
            return target, hot
        return dst if as_it_is else np.ascontiguousarray(dst), hot

    def _for_arrays(self, planned: Planned, src: Array, out: object) -> Planned:
        """Return what takes arrays as they lie; only in-place results may be copied in Python."""
        is_last = self.settings.layout == "channels_last"
        if is_last or self.weights.parts is not None or not src.flags.c_contiguous:
            return planned
        is_row_major = isinstance(out, np.ndarray) and out.flags.c_contiguous
        return planned.row_major() if out is None or is_row_major else planned

    def _stays(self, src: Array, planned: Planned) -> bool:
        """Tell whether a new result may lie in memory as the primitive stores it."""
        layout, dst = self.settings.layout, planned.dst
        if layout == "channels_last" or (layout == "preserve" and not src.flags.c_contiguous):
            return True
        return dst.ndim < 3 or dst.strides == TensorSpec.dense(dst.dims, dst.dtype).strides

    # --- what is ready for shapes ----------------------------------------------------------------

    def _ready_for(self, src_dims: Dims, src_dtype: DType) -> Planned:
        """Return what is ready for a shape; make it if it is new."""
        key = (src_dims, self.settings.check_src(src_dtype))
        ready = self._ready.get(key)
        if ready is None:
            with self._lock.held:
                ready = self._ready.get(key) or self._make_ready(*key)
                unit = ready.unit_map
                # Beside weights, which other shapes share.
                nbytes = ready.nbytes + (0 if unit is None else unit.nbytes)
                return self._ready.add(key, ready, nbytes)
        return ready

    def _make_ready(self, src_dims: Dims, src_dtype: str) -> Planned:
        parts = self.weights.parts
        asking = self._asking(src_dims if parts is None else parts.dims(src_dims), src_dtype)
        ready = choose(asking)
        ready.tried = tuple(asking.tried)
        is_faster = ready.is_unsigned and SLOW_AS_S8 in ready.decided
        if is_faster and is_product_by_gemm(ready):
            self._as_u8 = True  # of any size: other sizes need not be tried as s8
            for key in tuple(self._compositions):
                if key.src == "s8":
                    del self._compositions[key]
        if self.asked is not None:
            self._verify(self.asked, ready, src_dims, src_dtype)
        return ready

    def _compose_ahead(self) -> None:
        """Compose ahead of the first source, in the form that will run, where no size matters.

        Not without oneDNN, which is asked what it has: what is missing is said when something runs.
        """
        try:
            runtime.facts()
        except LibraryError:
            return
        src_q = self.settings.src_q
        try:
            asking = self._asking(self._some_dims, src_q.dtype if src_q else self.weights.dtype)
        except ShapeError as error:
            if error.argument not in {"dims", "strides"}:
                raise
            return  # a window that takes larger sources than memory holds
        for form in product_as_image(asking, None):
            with suppress(Error):  # with these weights, or this chain
                if not form.depends_on_size:
                    form.composition()
                return
        if not asking.depends_on_size:
            asking.composition()

    def _asking(self, src_dims: Dims, src_dtype: str, *notes: str) -> Asking:
        weights, settings = self.weights, self._settings_for(src_dims)
        problem = self._problem(src_dims, src_dtype)
        if problem.kind != self.kind:
            notes = (*notes, _AS_MATMUL)

        def unsigned(note: str) -> Asking:
            other = self._unsigned()._asking(src_dims, "u8", note)  # noqa: SLF001 - of its own
            return replace(other, is_unsigned=True)

        return Asking(
            problem=problem,
            wei=self._wei_of(problem),
            weights=weights,
            bias=self.bias,
            settings=settings,
            compositions=self._compositions,
            notes=(weights.note, *notes) if weights.note else notes,
            unsigned=unsigned if src_dtype == "s8" and settings.src_q is not None else None,
            is_faster_as_u8=self._as_u8,
        )

    def _unsigned(self) -> Self:
        """Return the same for u8 codes, 128 more than those of the s8 source."""
        settings = self.settings
        assert settings.src_q is not None
        # How to carry a zero point was asked of the caller's own: where there is none, 128 goes
        # where it costs no rounding.
        carrier = settings.zero_point if settings.has_src_point else "auto"
        src_q = as_unsigned(settings.src_q)
        unsigned = copy(self)
        unsigned.settings = replace(settings, src_q=src_q, zero_point=carrier)
        unsigned._compositions = self._compositions  # noqa: SLF001
        return unsigned

    def _verify(self, asked: Asked, ready: Planned, src_dims: Dims, src_dtype: str) -> None:
        """Compare what is ready for a shape with what was asked: called, and without this frame.

        Raises
        ------
        SelfCheckError
            Results differ.
        """
        if ready.primitive.kind == "none":
            return

        def run(
            src: Array, residual: Array | None, operands: Mapping[str, Array]
        ) -> Iterator[Array]:
            yield self._run(ready, src, None, residual, operands)[0]
            for hot in (ready.hot, *ready.making_codes):
                dst = NotImplemented if hot is None else hot(src, residual, None)
                if dst is not NotImplemented:
                    yield dst

        lost: tuple[int, ...] = ()
        if self.settings.saturation == "allow":
            wei = self._wei_of(ready.form.asked)
            lost = lost_channels(ready.primitive, ready.form.wei(wei))
        asked.verify(src_dims, src_dtype, ready, run, lost)
