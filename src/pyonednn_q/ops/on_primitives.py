"""OnPrimitives: how an operator runs, on a plan and its primitive for each shape of its source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.errors import ArgumentError, LibraryError, ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.native.runtime import Lock
from pyonednn_q.native.trial import lost_channels
from pyonednn_q.ops.arrays import Reshaped, as_array, as_output
from pyonednn_q.ops.asking import Asking
from pyonednn_q.ops.shapes import Shapes
from pyonednn_q.ops.source import SLOW_AS_S8, hot_call_for
from pyonednn_q.ops.ways import choose, compose_ahead, is_product_by_gemm
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyonednn_q.dtypes import DType
    from pyonednn_q.ops.asking import Composition, CompositionKey, Ready
    from pyonednn_q.ops.definition import Definition
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.verification import Asked

    Hot = Callable[..., Any]

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]

_AS_MATMUL = "an inner product takes no zero point and no scale of rows: runs as a matmul"

# A definition's private methods are called by what runs it, not by users of an operator.
# ruff: noqa: SLF001


class OnPrimitives:
    """What one operator keeps of a process: what is ready for shapes, plans, and packed weights.

    It holds no operator, so that both go as soon as nothing refers to the operator.
    """

    def __init__(self) -> None:
        self._ready: Shapes[tuple[Dims, str], Ready] = Shapes()
        self._compositions: dict[CompositionKey, Composition] = {}
        self._as_u8 = False  # whether codes of s8 run as u8, which is faster
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[OnPrimitives], tuple[()]]:
        # Primitives belong to a process; a copy starts with nothing.
        return type(self), ()

    def __call__(
        self,
        definition: Definition,
        src: Array,
        out: object,
        residual: object,
        operands: Mapping[str, Any],
    ) -> tuple[Array, Hot | None]:
        """Return the result, and the fast path for later calls of the same layout, if any."""
        ready = self.ready_for(definition, src.shape, definition._src_dtype(src))
        return run_on(definition, ready, src, out, residual, operands)

    def prepare(self, definition: Definition, src_dims: Dims, src_dtype: DType) -> Planned:
        """Return what runs for a shape."""
        return self.ready_for(definition, src_dims, src_dtype).planned

    def ready_for(self, definition: Definition, src_dims: Dims, src_dtype: DType) -> Ready:
        """Return what is ready for a shape; make it if it is new."""
        key = (src_dims, definition.settings.check_src(src_dtype))
        ready = self._ready.get(key)
        if ready is None:
            with self._lock.held:
                ready = self._ready.get(key) or self._make_ready(definition, *key)
                unit = ready.unit_map
                # Beside weights, which other shapes share.
                nbytes = ready.planned.nbytes + (0 if unit is None else unit.nbytes)
                return self._ready.add(key, ready, nbytes)
        return ready

    def clear(self) -> None:
        """Let go of primitives, plans and packed weights."""
        self._ready.clear()
        self._compositions.clear()
        self._as_u8 = False

    @property
    def shapes(self) -> tuple[Dims, ...]:
        """Sources that primitives are ready for."""
        return tuple(dims for dims, _ in self._ready)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is done beside primitives: nothing."""
        return ()

    @property
    def wei_bytes(self) -> int:
        """Bytes of packed weights, over all layouts that primitives asked for."""
        compositions = tuple(self._compositions.values())  # other threads may add some
        packed = {id(one.packed): one.packed for one in compositions}
        return sum(one.nbytes for one in packed.values())

    def compose(self, definition: Definition) -> None:
        """Compose ahead of the first source, where its size does not matter.

        Not without oneDNN, which is asked what it has: what is missing is said when something runs.
        """
        try:
            runtime.facts()
        except LibraryError:
            return
        src_q = definition.settings.src_q
        src = src_q.dtype if src_q else definition.weights.dtype
        try:
            asking = self._asking(definition, definition._some_dims, src)
        except ShapeError as error:
            if error.argument not in {"dims", "strides"}:
                raise
            return  # a window that takes larger sources than memory holds
        compose_ahead(asking)

    def _make_ready(self, definition: Definition, src_dims: Dims, src_dtype: str) -> Ready:
        parts = definition.weights.parts
        dims = src_dims if parts is None else parts.dims(src_dims)
        asking = self._asking(definition, dims, src_dtype)
        ready = choose(asking)
        ready.planned.tried = tuple(asking.tried)
        is_faster = ready.is_unsigned and SLOW_AS_S8 in ready.planned.decided
        if is_faster and is_product_by_gemm(ready):
            self._as_u8 = True  # of any size: other sizes need not be tried as s8
            for key in tuple(self._compositions):
                if key.src == "s8":
                    del self._compositions[key]
        if definition.asked is not None:
            verify(definition, definition.asked, ready, src_dims, src_dtype)
        return ready

    def _asking(
        self, definition: Definition, src_dims: Dims, src_dtype: str, *notes: str
    ) -> Asking:
        weights, settings = definition.weights, definition._settings_for(src_dims)
        problem = definition._problem(src_dims, src_dtype)
        if problem.kind != definition.kind:
            notes = (*notes, _AS_MATMUL)

        def unsigned(note: str) -> Asking:
            other = self._asking(definition._unsigned(), src_dims, "u8", note)
            return replace(other, is_unsigned=True)

        return Asking(
            problem=problem,
            wei=definition._wei_of(problem),
            weights=weights,
            bias=definition.bias,
            settings=settings,
            compositions=self._compositions,
            notes=(weights.note, *notes) if weights.note else notes,
            unsigned=unsigned if src_dtype == "s8" and settings.src_q is not None else None,
            is_faster_as_u8=self._as_u8,
        )


def run_on(
    definition: Definition,
    ready: Ready,
    src: Array,
    out: object,
    residual: object,
    operands: Mapping[str, Any],
) -> tuple[Array, Hot | None]:
    """Return the result of a source on what is ready for it, and what calls alike may run."""
    planned = _for_arrays(definition, ready.planned, src, out)
    dims = Reshaped(definition._dst_dims(src.shape, planned), planned.dst.dims)
    codes = definition._codes(src, ready)
    src_operands = codes.operands(ready)
    for name in operands:
        if name in src_operands:
            raise ArgumentError("operands", shown(name), "the names of the chain's leaves")
    arrays = dict(operands)
    for name in operands:
        if name in planned.leaves:
            arrays[name] = dims.into(name, as_array(name, arrays[name]))
    before = None if residual is None else dims.into("residual", as_array("residual", residual))
    target = to = None
    if out is not None:
        target = as_output("out", out)
        read = {"src": src, **({} if before is None else {"residual": before})}
        to = dims.output(target, planned.dst.dtype, read)
    values, parts = codes.values, definition.weights.parts
    if parts is not None:
        values = parts.of(values.reshape(src.shape))
    dst = planned(
        values.reshape(planned.src_dims), out=to, residual=before, **arrays, **src_operands
    )
    hot, as_it_is = None, definition._stays(src, planned)
    if as_it_is:
        hot = hot_call_for(ready, planned, definition.settings.src_q, src, codes, dims.asked)
    if target is not None:
        if to is not target and not np.may_share_memory(dst, target):
            np.copyto(target, dims.back(dst))
        return target, hot
    dst = dims.back(dst)
    return dst if as_it_is else np.ascontiguousarray(dst), hot


def _for_arrays(definition: Definition, planned: Planned, src: Array, out: object) -> Planned:
    """Return what takes arrays as they lie; only in-place results may be copied in Python."""
    is_last = definition.settings.layout == "channels_last"
    if is_last or definition.weights.parts is not None or not src.flags.c_contiguous:
        return planned
    is_row_major = isinstance(out, np.ndarray) and out.flags.c_contiguous
    return planned.row_major() if out is None or is_row_major else planned


def verify(
    definition: Definition, asked: Asked, ready: Ready, src_dims: Dims, src_dtype: str
) -> None:
    """Compare what is ready for a shape with what was asked: called, and without Python's frame.

    Parameters
    ----------
    definition, asked : Definition and Asked
        What runs, and as its caller wrote it.
    ready : Ready
        What is judged.
    src_dims, src_dtype
        Dims and data type of a source.

    Raises
    ------
    SelfCheckError
        They differ.
    """
    planned = ready.planned
    if planned.primitive.kind == "none":
        return

    def run(src: Array, residual: Array | None, operands: Mapping[str, Array]) -> Iterator[Array]:
        yield run_on(definition, ready, src, None, residual, operands)[0]
        for hot in (planned.hot, *ready.hot_making.values()):
            dst = NotImplemented if hot is None else hot(src, residual, None)
            if dst is not NotImplemented:
                yield dst

    lost: tuple[int, ...] = ()
    if definition.settings.saturation == "allow":
        wei = definition._wei_of(planned.form.asked)
        lost = lost_channels(planned.primitive, planned.form.wei(wei))
    asked.verify(src_dims, src_dtype, planned, run, lost)
