"""Program: steps in a row over one block of memory, in one call of the extension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pyonednn_q.errors import ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.native.prepared import Prepared
from pyonednn_q.primitive.tensor import cross

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyonednn_q._core import Pass as CorePass
    from pyonednn_q._core import Program as CoreProgram
    from pyonednn_q.dtypes import Array
    from pyonednn_q.primitive.tensor import TensorSpec
    from pyonednn_q.primitive.window import Window
    from pyonednn_q.qparams import QParams


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass of C++ over memory: what lies between primitives and is none.

    Attributes
    ----------
    core : _core.Pass
        The extension's half.
    text : str
        Description of the pass.
    """

    core: CorePass
    text: str

    @classmethod
    def quantize(cls, dims: tuple[int, int, int], params: QParams) -> Pass:
        """Return codes of float32 values without gaps, as `passes.quantize` has them.

        Parameters
        ----------
        dims : tuple of int
            Images, channels (at most 4) and places of each; codes have channels last.
        params : QParams
            Scale and zero point of the codes, per tensor, of 8 bits.
        """
        core = runtime.core.quantize_pass(*dims, _codes(params))
        return cls(core, f"{prod(dims)} values to {params.dtype}")

    @classmethod
    def codes_by_range(
        cls,
        primitive: Prepared,
        count: int,
        inputs: tuple[str, ...],
        *,
        is_symmetric: bool,
        offset: int,
        rows: int,
        unit: Sequence[float],
    ) -> tuple[Pass, list[int]] | None:
        """Return what makes codes of float32 values by their own range, for a primitive.

        Its dst is bytes: codes first, which lie as the values do, then what they are worth. With
        it, the byte at which each input of the primitive begins, and how many there are. None where
        the primitive reads more.

        Parameters
        ----------
        primitive : Prepared
            Primitive that reads the codes.
        count : int
            Number of values.
        inputs : tuple of str
            Role of each of its inputs: as in `hot_making_codes`, or ``"operand"``, of which this
            makes nothing.
        is_symmetric, offset, rows, unit
            Arguments of `hot_making_codes`.
        """
        if primitive.core is None:
            return None
        taken = primitive.core.code_pass(
            count, inputs=inputs, is_symmetric=is_symmetric, offset=offset, rows=rows, unit=unit
        )
        if taken is None:
            return None
        core, places = taken
        text = f"{count} values to codes by their range"
        return cls(core, text), places

    @classmethod
    def look_up(
        cls,
        table: Array,
        dims: Sequence[int],
        *strides: Sequence[int],
        product: CodeProduct | None = None,
        total: CodeSum | None = None,
    ) -> Pass:
        """Return dst = table[src], or table[first, second], by the codes' bytes.

        Parameters
        ----------
        table : (256,) or (256, 256) ndarray of 8 bits
            The byte of dst for each byte of a source.
        dims : sequence of int
            Dims of the index space.
        *strides : sequence of int
            Strides of each source, 0 where it is the same along a dimension, and of dst, which has
            no 0.
        product, total : CodeProduct and CodeSum, optional
            Arithmetic that equals the table for all pairs, and is faster.
        """
        steps = [list(each) for each in strides]
        core = runtime.core.lookup_pass(table.tobytes(), list(dims), steps, product, total)
        return cls(core, f"table of {'x'.join(map(str, table.shape))} for {cross(dims)}")

    @classmethod
    def mean(cls, dims: Sequence[int], src_q: QParams, dst_q: QParams) -> Pass:
        """Return codes of the mean over all places of each channel.

        Parameters
        ----------
        dims : sequence of int
            (N, C, spatial) of the source, which lies with channels last and without gaps.
        src_q, dst_q : QParams
            Scales and zero points of source and result, per tensor, of 8 bits.
        """
        images, channels, *lengths = dims
        core = runtime.core.mean_pass(images, prod(lengths), channels, _codes(src_q), _codes(dst_q))
        return cls(core, f"mean of {cross(dims)} to {dst_q.dtype}")

    @classmethod
    def largest(cls, dtype: str, src: Sequence[int], dst: Sequence[int], window: Window) -> Pass:
        """Return the largest value of each window, which may be dilated.

        Parameters
        ----------
        dtype : {"f32", "u8", "s8"}
            Data type of both ends.
        src, dst : sequence of int
            (N, C, spatial) of both, of one to three spatial dims, channels last and without gaps.
        window : Window
            Window; each of its positions holds a value of the source.
        """
        (images, channels, *lengths), counts = src, dst[2:]
        of_window = (window.kernel, window.stride, window.dilation, window.padding_lo)
        dims = list(zip(lengths, counts, *of_window, strict=True))
        core = runtime.core.largest_pass(dtype, images, channels, dims)
        return cls(core, f"the largest of {cross(window.kernel)} for {cross(dst)}")

    @classmethod
    def layer_norm(
        cls, rows: int, epsilon: float, gain: Array, shift: Array, *, is_centered: bool = True
    ) -> Pass:
        """Return float32 rows without gaps, normalized: one of `gain` and `shift` a column."""
        core = runtime.core.layer_norm_pass(
            rows, epsilon, gain.tolist(), shift.tolist(), is_centered
        )
        return cls(core, f"normalization of {rows} rows of {gain.size}")

    @classmethod
    def arithmetic(
        cls,
        alg: str,
        dims: Sequence[int],
        strides: Sequence[Sequence[int]],
        constant: Array | None = None,
        *,
        is_first: bool = False,
    ) -> Pass:
        """Return dst = alg(first, second) of float32 values.

        Parameters
        ----------
        alg : {"add", "sub", "mul", "div", "max", "min"}
            Operation.
        dims : sequence of int
            Dims of the index space.
        strides : sequence of sequence of int
            Strides of both sources, 0 where they are the same along a dimension, and of dst.
        constant : ndarray of float32, optional
            A source that is no tensor, without gaps.
        is_first : bool
            Whether the constant is the first source.
        """
        known = [] if constant is None else constant.ravel().tolist()
        core = runtime.core.arithmetic_pass(
            alg, list(dims), [list(each) for each in strides], known, is_first
        )
        return cls(core, f"{alg} of {cross(dims)} values")

    @classmethod
    def select(
        cls,
        dims: Sequence[int],
        strides: Sequence[Sequence[int]],
        known: Sequence[Array | None],
    ) -> Pass:
        """Return dst = condition ? first : second, of bytes and float32 values.

        Parameters
        ----------
        dims : sequence of int
            Dims of the index space.
        strides : sequence of sequence of int
            Strides of condition, first, second, 0 where they are the same along a dimension, and of
            dst.
        known : sequence of (ndarray of float32 or None)
            First and second, where they are constants without gaps and no tensors.
        """
        steps = [list(each) for each in strides]
        held = [[] if each is None else each.ravel().tolist() for each in known]
        core = runtime.core.select_pass(list(dims), steps, held)
        return cls(core, f"one of two for {cross(dims)}")

    @classmethod
    def pick(cls, count: int, item: int, places: Array, fill: bytes) -> Pass:
        """Return dst[i] = src[places[i]], or `fill` for -1: items of so many bytes, of `count`."""
        core = runtime.core.pick_pass(count, item, places.ravel(), fill)
        return cls(core, f"{places.size} items of {count}")

    @classmethod
    def rows(cls, count: int, table: Array) -> Pass:
        """Return rows of a float32 table by `count` indices of int64."""
        return cls(runtime.core.rows_pass(count, table), f"{count} rows of {table.shape[0]}")

    @classmethod
    def recurrence(
        cls,
        steps: int,
        batch: int,
        wei: Array,
        shift: Array | None,
        is_lstm: bool,
        is_backward: Sequence[bool],
        *,
        states: str,
        scale: Array | None,
    ) -> Pass:
        """Return the steps of an LSTM or a GRU: see `network.Recurrence`."""
        hidden = wei.shape[2]
        shifts = [] if shift is None else shift.ravel().tolist()
        begins = ("h" in states, "c" in states)
        codes: Array = np.empty(0, np.int8)
        scales: list[float] = []
        if scale is not None:
            codes, wei, scales = wei, np.empty(0, np.float32), scale.ravel().tolist()
        core = runtime.core.recurrence_pass(
            steps, batch, hidden, is_lstm, is_backward, wei, codes, scales, shifts, *begins
        )
        name = ("" if scale is None else "INT8 ") + ("LSTM" if is_lstm else "GRU")
        return cls(core, f"{name} of {steps} steps, {len(is_backward)} directions, {hidden} wide")

    @classmethod
    def is_nan(cls, count: int) -> Pass:
        """Return a byte of 1 for each float32 value that is NaN, of 0 for others."""
        return cls(runtime.core.is_nan_pass(count), f"which of {count} are NaN")

    @classmethod
    def comparison(
        cls,
        alg: str,
        dtype: str,
        dims: Sequence[int],
        strides: Sequence[Sequence[int]],
        constant: Array | None = None,
        *,
        is_first: bool = False,
    ) -> Pass:
        """Return a byte of 1 where a comparison of two numbers holds, of 0 elsewhere.

        Parameters
        ----------
        alg : {"equal", "less", "less_or_equal"}
            Comparison.
        dtype : {"s32", "s64", "f32"}
            Data type of both sources.
        dims, strides, constant, is_first
            Arguments of `arithmetic`; strides count numbers.
        """
        held = b"" if constant is None else constant.tobytes()
        steps = [list(each) for each in strides]
        core = runtime.core.comparison_pass(alg, dtype, list(dims), steps, held, is_first)
        return cls(core, f"which of {cross(dims)} are {alg.replace('_', ' ')}")

    @classmethod
    def conversion(cls, count: int, src: str, dst: str) -> Pass:
        """Return `count` numbers without gaps in another type."""
        return cls(runtime.core.conversion_pass(count, src, dst), f"{count} {src} as {dst}")

    @classmethod
    def interpolation(
        cls, outer: int, length: int, inner: int, index: Array, weights: Array
    ) -> Pass:
        """Return weighted sums along the middle of (outer, length, inner) float32 values.

        Parameters
        ----------
        outer, length, inner : int
            Extents of the source: before, along and behind the interpolated dimension.
        index : (results, taps) ndarray of int64
            Indices of the source values of each result.
        weights : (results, taps) ndarray of float32
            Factors of these values.
        """
        flat = (index.ravel().tolist(), weights.ravel().tolist())
        core = runtime.core.interpolation_pass(outer, length, inner, *flat, index.shape[1])
        return cls(core, f"{index.shape[0]} of {length}, from {index.shape[1]} each")

    @classmethod
    def reduction(cls, alg: str, outer: int, terms: int, inner: int) -> Pass:
        """Return what `network.Reduction` is of (outer, terms, inner) float32 values over terms."""
        core = runtime.core.reduction_pass(alg, outer, terms, inner)
        return cls(core, f"{alg} of {terms} for {outer}x{inner} values")


def _codes(params: QParams) -> tuple[float, int, str]:
    """Return what codes are worth, as the extension takes it."""
    return float(params.scale), int(params.zero_point), params.dtype


CodeProduct: TypeAlias = tuple[float, tuple[int, int, int], tuple[bool, bool, bool]]
"""scale, zero points of two factors and dst, and which of them are s8."""

CodeSum: TypeAlias = tuple[
    tuple[float, float, float], tuple[int, int, int], tuple[bool, bool, bool]
]
"""scales and zero points of two terms and dst, and which of them are s8."""

Place: TypeAlias = tuple[int, int]
"""Beginning of a tensor: buffer (0 the arena, 1 and on the arrays of a call), and byte in it."""

Runs: TypeAlias = "Prepared | Pass | Callable[..., Any]"
"""A primitive; a pass; or f(*arrays), which writes its last array and keeps none."""

Step: TypeAlias = "tuple[Runs, tuple[Place, ...], Place | None, tuple[TensorSpec, ...]]"
"""Function or primitive; places of its sources, in order, and of dst; a place that is copied to dst
before; shapes, data types and strides of a function's arrays."""


def program(
    steps: Iterable[Step],
    arena_bytes: int,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
) -> CoreProgram:
    """Return steps as a program that runs in one call, safe from many threads at once.

    Its `run` gives NotImplemented unless arrays fit as they are, its `run_checked` checks them. It
    points to what runs: whoever has it keeps `steps`.

    Parameters
    ----------
    steps : iterable of Step
        Steps in the order in which they run.
    arena_bytes : int
        Bytes of the block that their results share.
    inputs, outputs : sequence of TensorSpec
        The arrays of a call, in the layouts that they must have.
    """
    arrays = [spec.boundary() for spec in (*inputs, *outputs)]
    rows = [_boundary(*step) for step in steps]
    return runtime.core.Program(rows, arena_bytes, arrays, len(inputs))


def _boundary(
    runs: Runs,
    places: tuple[Place, ...],
    residual: Place | None,
    specs: tuple[TensorSpec, ...],
) -> tuple[Any, ...]:
    """Return a step as the extension takes it."""
    if isinstance(runs, (Pass, Prepared)):
        if runs.core is None:
            raise ShapeError("dst", "an empty result", "at least one element")
        return runs.core, list(places), residual, []
    return runs, list(places), residual, [spec.boundary() for spec in specs]
