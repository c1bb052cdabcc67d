"""Operator: weights and settings made ready once, called on sources of any size.

What a call costs: one look at whether the source is the same kind of array as last time, and the
primitive. A source of another shape makes, or finds, another primitive over the same weights; those
used longest ago go (`limit_shapes`).
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import integers
from pyonednn_q.errors import (
    ArgumentError,
    DTypeError,
    SaturationError,
    ShapeError,
    UnsupportedError,
)
from pyonednn_q.native.runtime import HotCallable, Lock
from pyonednn_q.ops.arrays import Reshaped, as_array, as_output
from pyonednn_q.ops.last_stage import LastStage
from pyonednn_q.ops.ready import PackedKey, Ready, Recipe
from pyonednn_q.ops.shapes import Shapes
from pyonednn_q.ops.source import (
    NOTE,
    Codes,
    as_unsigned,
    both_refused,
    dynamic_codes,
    hot_call_for,
    static_codes,
)
from pyonednn_q.ops.verification import Asked, verify
from pyonednn_q.ops.weights import Weights, checked_bias
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.quantize.ranges import Dynamic
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

    from pyonednn_q.check.places import Kind
    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.dtypes import DType
    from pyonednn_q.native import Packed
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.settings import Settings
    from pyonednn_q.primitive.dense_facts import DenseProblem
    from pyonednn_q.qparams import QParams

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


class Operator(HotCallable, hot=True):
    """Base of `Conv`, `Deconv`, `InnerProduct` and `MatMul`. Safe from many threads at once.

    Attributes
    ----------
    settings : Settings
        What it computes.
    weights : Weights
        As oneDNN takes them.
    bias : ndarray or None
        One value per output channel: real values if floating, else in units of the accumulator.
    """

    axis: ClassVar[int] = 0  # of the output channels, in the caller's weights
    groups = 1
    kind: ClassVar[Kind]
    window: Mapping[str, Any] = MappingProxyType({})
    _takes_wei_point: ClassVar[bool] = False

    def __init__(
        self, wei: object, bias: object, wei_q: QParams | None, settings: Settings
    ) -> None:
        wei_array = as_array("wei", wei)
        self._check_wei_dims(wei_array)
        if not wei_array.size:
            raise ShapeError("wei", str(wei_array.shape), "no empty dimension")
        self.settings = settings
        groups = self.groups
        self.weights = Weights.of(
            wei_array,
            wei_q,
            self.axis,
            is_int8=settings.is_int8,
            takes_zero_point=self._takes_wei_point,
            groups=self.groups,
            limits=settings.wei_limits,
        )
        if self.weights.parts is not None:
            self.groups = self.weights.parts.groups
        self.bias = None if bias is None else checked_bias(bias, wei_array.shape[self.axis])
        if settings.dynamic is not None:
            self._check_dynamic(settings.dynamic)
        self.asked = None
        if settings.self_check:
            window = {**self.window, "groups": groups} if self.window else {}
            self.asked = Asked(self.kind, wei_array.copy(), self.bias, wei_q, settings, window)
        self._last = None
        if settings.requantize is not None:
            assert wei_q is not None
            self._last = LastStage(self, wei_array, wei_q, groups)
        self._start()

    def _start(self) -> None:
        self._ready: Shapes[tuple[Dims, str], Ready] = Shapes()
        self._unsigned: Operator | None = None
        self._packed: dict[PackedKey, Packed] = {}
        self._lock = Lock()
        self._hot = None

    def __call__(
        self,
        /,  # so that a leaf may be called self
        src: Any,  # noqa: ANN401 - NumPy, DLPack or a buffer
        *,
        out: Any = None,  # noqa: ANN401
        residual: Any = None,  # noqa: ANN401
        **operands: Any,  # noqa: ANN401
    ) -> Array:
        """Run on one source.

        Parameters
        ----------
        src : ndarray, CPU tensor with __dlpack__, or buffer
            In logical order (N, C, spatial); (..., M, K) for a matmul. Any strides; channels last
            is read where it lies, anything else is copied first.
        out : the same, optional
            Written in place and returned. Without residual, it holds what a Sum of the chain reads.
        residual : the same, optional
            What a Sum reads, left as it is.
        **operands : the same
            The chain's leaves, by name.

        Returns
        -------
        ndarray
            dst, or `out`. Its memory goes back to a pool when the last array over it is gone.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError, LayoutError, AliasError
            Naming the argument, what came and what would do.
        UnsupportedError
            A shape that no implementation takes, with the reasons.
        """
        # Arrays that fit the last primitive as they are went straight there.
        return self._call(src, out, residual, operands)

    def prepare(self, src_dims: Dims, src_dtype: DType | None = None) -> Planned:
        """Make the primitive for a shape ahead of its first call, and return it.

        Parameters
        ----------
        src_dims : tuple of int
            Of the source.
        src_dtype : data type, optional
            Of a floating source; by default that of the weights.
        """
        settings = self.settings
        if src_dtype is None:
            src_dtype = settings.src_q.dtype if settings.src_q else self.weights.dtype
        if self._last is not None:
            return self._last.prepare(integers("src_dims", src_dims))
        return self._ready_for(integers("src_dims", src_dims), src_dtype).planned

    def _ready_for(self, src_dims: Dims, src_dtype: DType) -> Ready:
        key = (src_dims, self.settings.check_src(src_dtype))
        ready = self._ready.get(key)
        if ready is None:
            with self._lock.held:
                ready = self._ready.get(key) or self._make_ready(*key)
                return self._ready.add(key, ready, ready.nbytes)
        return ready

    def clear(self) -> None:
        """Let go of primitives and packed weights; calls that come make them again."""
        self._hot = self._unsigned = None
        self._ready.clear()
        self._packed.clear()
        if self._last is not None:
            self._last.clear()

    def plan(self, src_dims: Dims) -> Plan:
        """Return the plan for a shape: what was folded where, what was refused, how exact it is."""
        return self.prepare(src_dims).plan

    @property
    def shapes(self) -> tuple[Dims, ...]:
        """Sources that primitives are ready for."""
        own = tuple(dims for dims, _ in self._ready)
        return own if self._last is None else self._last.products[0].shapes

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done otherwise than asked for, in other words than a plan's."""
        if self._last is not None:
            return self._last.notes
        return (self.weights.note,) if self.weights.note else ()

    @property
    def wei_bytes(self) -> int:
        """Bytes of packed weights, over all layouts that primitives asked for."""
        if self._last is not None:
            return sum(product.wei_bytes for product in self._last.products)
        own = sum(packed.nbytes for packed in self._packed.values())
        return own + (self._unsigned.wei_bytes if self._unsigned else 0)

    def __copy__(self) -> Self:
        copy = object.__new__(type(self))
        copy.__setstate__(self.__getstate__())
        return copy

    def __getstate__(self) -> dict[str, Any]:
        # Primitives belong to a process; weights and settings are values.
        of_process = {"_ready", "_packed", "_lock", "_unsigned"}
        return {name: value for name, value in self.__dict__.items() if name not in of_process}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def __repr__(self) -> str:
        dims = " x ".join(map(str, self.weights.values.shape))
        return f"<{type(self).__name__} {dims} of {self.weights.dtype}, {len(self._ready)} ready>"

    def bare(self, wei: Array, groups: int, dtype: str) -> Operator:
        """Return the same operator for plain products of codes with s8 weights."""
        raise NotImplementedError

    def _check_wei_dims(self, wei: Array) -> None:
        raise NotImplementedError

    def _problem(self, src_dims: Dims, src_dtype: str) -> DenseProblem:
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
            raise DTypeError("bias", "s32", "f32: units of the sums change with each call's source")

    def _settings_for(self, _src_dims: Dims) -> Settings:
        """Return what a source of a shape asks for, where that is simpler than what any does."""
        return self.settings

    def _rows(self, src_dims: Dims) -> int:
        """Return how many rows a source has."""
        raise NotImplementedError

    def _dst_dims(self, _src_dims: Dims, planned: Planned) -> Dims:
        """Return the caller's dims of a result."""
        return planned.dst.dims

    def _notes(self, _problem: DenseProblem) -> tuple[str, ...]:
        """Return what was decided about the problem."""
        return ()

    def _call(self, src: object, out: Any, residual: object, operands: dict[str, Any]) -> Array:  # noqa: ANN401
        src_array = as_array("src", src)
        if self._last is None:
            ready = self._ready_for(src_array.shape, self._src_dtype(src_array))
            dst = self.run_on(ready, src_array, out, residual, operands)
        else:
            self._last.refuse(residual, operands)
            dst = self._last(self._codes(src_array, None).values.reshape(src_array.shape), out)
        return cast("Array", dst if out is None else out)

    def run_on(
        self, ready: Ready, src: Array, out: object, residual: object, operands: Mapping[str, Any]
    ) -> Array:
        """Return what a call returns, on what is ready for its source."""
        planned = self._for_arrays(ready.planned, src, out)
        dims = Reshaped(self._dst_dims(src.shape, planned), planned.dst.dims)
        codes = self._codes(src, ready)
        src_operands = codes.operands(ready)
        for name in operands:
            if name in src_operands:
                raise ArgumentError("operands", shown(name), "the names of the chain's leaves")
        arrays = {
            name: dims.into(name, as_array(name, value)) if name in planned.leaves else value
            for name, value in operands.items()
        }
        before = None if residual is None else dims.into("residual", as_array("residual", residual))
        target = to = None
        if out is not None:
            target = as_output("out", out)
            read = {"src": src, **({} if before is None else {"residual": before})}
            to = dims.output(target, planned.dst.dtype, read)
        values, parts = codes.values, self.weights.parts
        if parts is not None:
            values = parts.of(values.reshape(src.shape))
        dst = planned(
            values.reshape(planned.src_dims), out=to, residual=before, **arrays, **src_operands
        )
        as_it_is = self._stays(src, planned)
        if as_it_is:
            params = self.settings.src_q
            self._hot = hot_call_for(ready, planned, params, src, codes, dims.asked) or self._hot
        if target is not None:
            if to is not target and not np.may_share_memory(dst, target):
                np.copyto(target, dims.back(dst))
            return target
        dst = dims.back(dst)
        return dst if as_it_is else np.ascontiguousarray(dst)

    def _for_arrays(self, planned: Planned, src: Array, out: object) -> Planned:
        """Return what takes arrays as they lie; only in-place results may be copied in Python."""
        is_usual = self.settings.layout == "channels_last" or self.weights.parts is not None
        if is_usual or not src.flags.c_contiguous:
            return planned
        is_row_major = isinstance(out, np.ndarray) and out.flags.c_contiguous
        return planned.row_major() if out is None or is_row_major else planned

    def _src_dtype(self, src: Array) -> str:
        """Return the type of what the primitive takes for a source."""
        dtype = dtypes.from_numpy(src.dtype, "src", self.settings.src_wanted)
        if self.settings.src_q is not None and dtype == "f32":
            return self.settings.src_q.dtype
        if self.settings.dynamic is not None:
            raise DTypeError("src", dtype, "f32: each call makes codes of it")
        return dtype

    def _codes(self, src: Array, ready: Ready | None) -> Codes:
        """Return a source as the primitive takes it: float values as codes, if it takes those."""
        params = self.settings.src_q
        if isinstance(params, Dynamic):
            rows = None if params.extent == "per_tensor" else self._rows(src.shape)
            codes = dynamic_codes(src, params, rows)
        elif params is None or src.dtype != np.float32:
            codes = Codes(src)
        else:
            codes = static_codes(src, params, ready)
        return codes.unsigned() if ready is not None and ready.is_unsigned else codes

    def _stays(self, src: Array, planned: Planned) -> bool:
        """Tell whether a new result may lie in memory as the primitive stores it."""
        layout, dst = self.settings.layout, planned.dst
        if layout == "channels_last" or (layout == "preserve" and not src.flags.c_contiguous):
            return True
        return dst.ndim < 3 or dst.strides == TensorSpec.dense(dst.dims, dst.dtype).strides

    def _make_ready(self, src_dims: Dims, src_dtype: str) -> Ready:
        ready = self._unchecked(src_dims, src_dtype)
        if self.asked is not None:
            verify(self, self.asked, ready, src_dims, src_dtype)
        return ready

    def _unchecked(self, src_dims: Dims, src_dtype: str) -> Ready:
        try:
            return self._layer(src_dims, src_dtype).ready()
        except SaturationError as error:
            if src_dtype != "s8" or self.settings.src_q is None:
                raise
            refused = error
        other = self._unsigned
        if other is None:
            other = self._unsigned = copy(self)
            # How to carry a zero point was asked of the caller's own: where there is none, 128 goes
            # where it costs no rounding.
            carrier = self.settings.zero_point if self.settings.has_src_point else "auto"
            src_q = as_unsigned(self.settings.src_q)
            other.settings = replace(self.settings, src_q=src_q, zero_point=carrier)
        layer = other._layer(src_dims, "u8", NOTE)  # noqa: SLF001 - of this class
        try:
            return replace(layer.ready(), is_unsigned=True)
        except (UnsupportedError, ArgumentError) as error:
            raise both_refused(refused, error) from None

    def _layer(self, src_dims: Dims, src_dtype: str, *notes: str) -> Recipe:
        parts = self.weights.parts
        problem = self._problem(src_dims if parts is None else parts.dims(src_dims), src_dtype)
        return Recipe(
            problem=problem,
            wei=self._wei_of(problem),
            weights=self.weights,
            bias=self.bias,
            settings=self._settings_for(src_dims),
            packed=self._packed,
            notes=(*filter(None, [self.weights.note]), *notes, *self._notes(problem)),
        )
