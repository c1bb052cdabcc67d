# The extension, as type checkers see it; tests/native/test_stub.py holds it to the real one.

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str

# The library.

def load(path: str) -> None: ...
def version() -> dict[str, Any]: ...
def effective_isa() -> str: ...
def cpu_flags() -> list[str]: ...
def limit_isa(isa: str) -> None: ...
def get_num_threads() -> int: ...
def set_num_threads(n: int) -> None: ...
def vector_bits() -> int: ...
def clock_hz() -> float: ...
def register_dtype(name: str, dtype: np.dtype[Any]) -> None: ...

# Memory.

@final
class Layout:
    @property
    def dims(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def strides(self) -> tuple[int, ...] | None: ...  # None: only oneDNN can read it
    @property
    def nbytes(self) -> int: ...

@final
class Memory:
    @property
    def layout(self) -> Layout: ...
    @property
    def nbytes(self) -> int: ...
    def to_numpy(self) -> NDArray[Any]: ...

@final
class BufferStatistics:
    @property
    def taken(self) -> int: ...
    @property
    def reused(self) -> int: ...
    @property
    def held(self) -> int: ...
    @property
    def held_bytes(self) -> int: ...
    @property
    def limit(self) -> int: ...

def buffer_statistics() -> BufferStatistics: ...
def limit_buffers(nbytes: int) -> None: ...
def clear_buffers() -> None: ...
def same_bytes(one: NDArray[Any], other: NDArray[Any], /) -> bool: ...
def sampled_sums(
    src: NDArray[Any],
    wei: NDArray[Any],
    src_at: ArrayLike,
    taps: ArrayLike,
    wei_at: ArrayLike,
    *,
    inner: int,
    src_step: int,
    wei_step: int,
    src_point: int,
    wei_point: int,
    sums: NDArray[np.float64],
    sizes: NDArray[np.float64],
) -> None: ...

# Primitives.

@final
class Candidate:
    def __init__(self, problem: tuple[Any, ...], attr: dict[str, Any], text: str = "") -> None: ...
    @property
    def impl(self) -> str: ...
    @property
    def scratchpad_bytes(self) -> int: ...
    def next(self) -> bool: ...
    def layout(self, name: str) -> Layout: ...
    def attr_readback(self) -> dict[str, Any]: ...
    def pack(self, name: str, array: NDArray[Any]) -> Memory: ...
    def pack_nibbles(self, name: str, data: NDArray[Any]) -> Memory: ...
    def hold(self, name: str, values: NDArray[Any]) -> Memory: ...

@final
class Prepared:
    def __init__(
        self,
        candidate: Candidate,
        per_call: Sequence[str],
        bound: Mapping[str, Memory],
        arrays: dict[str, Any] = {},
    ) -> None: ...
    @property
    def hot_call(self) -> Callable[..., Any]: ...
    @property
    def hot_call_with_residual(self) -> Callable[..., Any]: ...
    def hot_call_making_codes(
        self,
        *,
        inputs: Sequence[str],
        params: tuple[float, int] | None,
        is_symmetric: bool,
        offset: int,
        rows: int,
        unit: Sequence[float],
        is_s8: bool,
    ) -> Callable[..., Any] | None: ...
    def code_pass(
        self,
        count: int,
        *,
        inputs: Sequence[str],
        is_symmetric: bool,
        offset: int,
        rows: int,
        unit: Sequence[float],
    ) -> tuple[Pass, list[int]] | None: ...
    @property
    def scratchpad_bytes(self) -> int: ...
    @property
    def copied(self) -> dict[str, Layout]: ...
    @property
    def frames(self) -> int: ...
    def run(self, *args: NDArray[Any]) -> None: ...
    def time_calls(self, arrays: tuple[Any, ...], calls: int) -> float: ...
    def time_copies(self, calls: int) -> dict[str, float]: ...

@final
class Pass:
    @property
    def grows(self) -> list[int]: ...

def quantize_pass(images: int, channels: int, places: int, dst: tuple[float, int, str]) -> Pass: ...
def layer_norm_pass(
    rows: int, epsilon: float, gain: Sequence[float], shift: Sequence[float], is_centered: bool
) -> Pass: ...
def arithmetic_pass(
    alg: str,
    dims: Sequence[int],
    strides: Sequence[Sequence[int]],
    constant: Sequence[float],
    is_first: bool,
) -> Pass: ...
def select_pass(
    dims: Sequence[int], strides: Sequence[Sequence[int]], known: Sequence[Sequence[float]]
) -> Pass: ...
def is_nan_pass(count: int) -> Pass: ...
def comparison_pass(
    alg: str,
    dtype: str,
    dims: Sequence[int],
    strides: Sequence[Sequence[int]],
    constant: bytes,
    is_first: bool,
) -> Pass: ...
def conversion_pass(count: int, src: str, dst: str) -> Pass: ...
def interpolation_pass(
    outer: int,
    length: int,
    inner: int,
    index: Sequence[int],
    weights: Sequence[float],
    taps: int,
) -> Pass: ...
def reduction_pass(alg: str, outer: int, terms: int, inner: int) -> Pass: ...
def pick_pass(count: int, item: int, places: NDArray[np.int64], fill: bytes) -> Pass: ...
def recurrence_pass(
    steps: int,
    batch: int,
    hidden: int,
    is_lstm: bool,
    is_backward: Sequence[bool],
    weights: NDArray[np.float32],
    codes: NDArray[np.int8],
    scales: Sequence[float],
    shift: Sequence[float],
    has_h: bool,
    has_c: bool,
) -> Pass: ...
def attention_pass(
    rows: Sequence[int],
    cache: Sequence[int],
    are_codes: bool,
    is_packed: bool,
    strides: Sequence[Sequence[int]],
    scale: float,
    window: int,
    softcap: float,
    sinks: Sequence[float],
    cos: NDArray[np.float32],
    sin: NDArray[np.float32],
    is_paired: bool,
) -> Pass: ...
def attention_bytes(
    layers: int, heads: int, depth: int, width: int, capacity: int, are_codes: bool
) -> int: ...
def rows_pass(count: int, table: NDArray[np.float32]) -> Pass: ...
def largest_pass(
    dtype: str,
    images: int,
    channels: int,
    dims: Sequence[tuple[int, int, int, int, int, int]],
) -> Pass: ...
def mean_pass(
    images: int,
    places: int,
    channels: int,
    src: tuple[float, int, str],
    dst: tuple[float, int, str],
) -> Pass: ...
def lookup_pass(
    table: bytes,
    dims: Sequence[int],
    strides: Sequence[Sequence[int]],
    product: tuple[float, tuple[int, int, int], tuple[bool, bool, bool]] | None = None,
    sum: tuple[tuple[float, float, float], tuple[int, int, int], tuple[bool, bool, bool]]
    | None = None,
) -> Pass: ...

@final
class GroupedWeights:
    def __init__(
        self,
        *,
        codes: NDArray[np.uint8],
        scales: NDArray[np.float32],
        points: NDArray[np.uint8],
        bias: NDArray[np.float32],
        group: int,
        are_nibbles: bool,
        keeps_sums: bool,
    ) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def codes(self) -> NDArray[np.uint8]: ...
    def run(
        self,
        src: NDArray[np.float32],
        dst: NDArray[np.float32],
        *,
        is_symmetric: bool,
        is_by_group: bool,
    ) -> None: ...
    def run_codes(
        self,
        codes: NDArray[Any],
        scales: NDArray[np.float32],
        zero_points: NDArray[np.int32],
        dst: NDArray[np.float32],
    ) -> None: ...
    def hot_call(
        self, *, is_symmetric: bool, is_by_group: bool, ndim: int
    ) -> Callable[..., Any]: ...

def grouped_pass(
    weights: GroupedWeights, rows: int, is_symmetric: bool, is_by_group: bool
) -> Pass: ...

@final
class Program:
    def __init__(
        self,
        steps: list[Any],
        arena_bytes: int,
        arrays: list[Any],
        inputs: int,
    ) -> None: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def scratchpad_bytes(self) -> int: ...
    def run(self, *args: NDArray[Any]) -> Any: ...  # noqa: ANN401 - or NotImplemented
    def run_checked(self, *args: NDArray[Any]) -> tuple[NDArray[Any], ...]: ...
    def run_timed(self, *args: NDArray[Any]) -> list[float]: ...

class HotCallable:
    _hot: Callable[..., Any] | None
    def __init_subclass__(cls, *, hot: bool = False) -> None: ...

# Passes over memory.

@final
class Requantizer:
    def __init__(
        self,
        *,
        kind: str,
        rounding: str,
        dtype: str,
        lo: int,
        hi: int,
        multiplier: ArrayLike,
        factor: ArrayLike,
        shift: ArrayLike,
        then: ArrayLike,
        last: ArrayLike,
        bias: ArrayLike,
        real_bias: ArrayLike,
        zero_point: ArrayLike,
    ) -> None: ...
    def run(self, acc: NDArray[Any], dst: NDArray[Any], outer: int, inner: int) -> None: ...

def quantize(
    values: ArrayLike, scales: ArrayLike, zero_points: ArrayLike, codes: NDArray[Any]
) -> bool: ...
def ranges(values: ArrayLike, lo: NDArray[np.float32], hi: NDArray[np.float32]) -> None: ...
def narrow(type: str, values: NDArray[np.float32], halves: NDArray[np.uint16]) -> None: ...
def widen(type: str, halves: NDArray[np.uint16], values: NDArray[np.float32]) -> None: ...
