"""Programs and their passes: what does not lie in memory is refused before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, DTypeError, Error, LayoutError, ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.native.program import Pass, program
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.primitive.window import Window
from pyonednn_q.qparams import QParams

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

ONE, TWO = bytes(256), bytes(1 << 16)
FAR = 1 << 62
SAME = np.arange(256).astype(np.uint8)


def look_up(dims: list[int], *strides: list[int], table: bytes = ONE) -> Any:
    return runtime.core.lookup_pass(table, dims, list(strides))


@pytest.mark.parametrize(
    ("dims", "strides"),
    [
        ([FAR, 4], [[4, 1], [4, 1]]),  # 2^64 bytes: 0, if it wraps
        ([3, 2], [[FAR, 1], [2, 1]]),
        ([1 << 32, 1 << 32], [[1 << 32, 1], [1 << 32, 1]]),
        ([FAR, 2, 2], [[1, 0, 0], [2, FAR, 1]]),
        ([2, 2], [[2, 1], [1]]),
        ([2, 2], [[2, -1], [2, 1]]),
        # Elements of dst that share memory, of which there are 2^64 in 2^32 bytes, or 4 in 2.
        ([1 << 31, 1 << 31, 4], [[0, 0, 0], [1, 1, 1]]),
        ([2, 2], [[2, 1], [1, 1]]),
        ([4, 3], [[3, 1], [2, 1]]),
        ([2], [[1], [0]]),
    ],
)
def test_tables_over_what_is_no_memory_are_refused(
    dims: list[int], strides: list[list[int]]
) -> None:
    with pytest.raises(LayoutError, match=r"^strides: "):
        look_up(dims, *strides)


@pytest.mark.parametrize("dims", [[0], [-1, 2], [2, -FAR]])
def test_tables_over_no_elements_are_refused(dims: list[int]) -> None:
    with pytest.raises(ShapeError, match=r"^dims: "):
        look_up(dims, [1] * len(dims), [1] * len(dims))


@pytest.mark.parametrize(
    ("table", "sources"), [(ONE[1:], 1), (ONE, 2), (TWO, 1), (b"", 1), (ONE, 0), (TWO, 3)]
)
def test_tables_of_other_sizes_are_refused(table: bytes, sources: int) -> None:
    with pytest.raises(ShapeError, match=r"^table: "):
        look_up([2], *[[1]] * (sources + 1), table=table)


def _places(places: list[int]) -> NDArray[np.int64]:
    return np.array(places, np.int64)


def _compared(
    core: Any, alg: str, dtype: str = "s32", constant: bytes = b"", by: Any = (1,)
) -> Any:
    return core.comparison_pass(alg, dtype, [2], [[1], [1], list(by)], constant, False)


def _largest(core: Any, dim: tuple[int, ...] = (3, 1, 1, 1, 1, 0), dtype: str = "u8") -> Any:
    return core.largest_pass(dtype, 1, 1, [dim])


SPACE = ([2], [[1], [1], [1]])  # dims, and strides of three tensors


@pytest.mark.parametrize(
    ("make", "error", "argument"),
    [
        (lambda core: core.quantize_pass(1, 1, 0, (1.0, 0, "u8")), ShapeError, "places"),
        (lambda core: core.quantize_pass(1, 1, FAR, (1.0, 0, "u8")), ShapeError, "places"),
        (lambda core: core.quantize_pass(0, 1, 4, (1.0, 0, "u8")), ShapeError, "images"),
        (lambda core: core.quantize_pass(FAR, 3, 4, (1.0, 0, "u8")), ShapeError, "images"),
        (lambda core: core.quantize_pass(1, 0, 4, (1.0, 0, "u8")), ShapeError, "channels"),
        (lambda core: core.quantize_pass(1, 5, 4, (1.0, 0, "u8")), ShapeError, "channels"),
        (lambda core: core.quantize_pass(1, 1, 4, (0.0, 0, "u8")), ArgumentError, "scale"),
        (lambda core: core.quantize_pass(1, 1, 4, (-1.0, 0, "u8")), ArgumentError, "scale"),
        (lambda core: core.quantize_pass(1, 1, 4, (float("nan"), 0, "u8")), ArgumentError, "scale"),
        (lambda core: core.quantize_pass(1, 1, 4, (1.0, -1, "u8")), ArgumentError, "zero_point"),
        (lambda core: core.quantize_pass(1, 1, 4, (1.0, 128, "s8")), ArgumentError, "zero_point"),
        (
            lambda core: core.quantize_pass(1, 1, 4, (1.0, 2**30, "s8")),
            ArgumentError,
            "zero_point",
        ),
        (lambda core: core.quantize_pass(1, 1, 4, (1.0, 0, "s32")), ArgumentError, "dtype"),
        (
            lambda core: core.layer_norm_pass(2, 1e-5, [1.0] * 3, [0.0] * 2, True),
            ShapeError,
            "shift",
        ),
        (
            lambda core: core.layer_norm_pass(2, 1e-5, [1.0] * 2, [0.0] * 3, True),
            ShapeError,
            "shift",
        ),
        (lambda core: core.layer_norm_pass(2, 1e-5, [], [], True), ShapeError, "shift"),
        (lambda core: core.layer_norm_pass(0, 1e-5, [1.0], [0.0], True), ShapeError, "rows"),
        (
            lambda core: core.layer_norm_pass(FAR, 1e-5, [1.0] * 4, [0.0] * 4, True),
            ShapeError,
            "rows",
        ),
        (lambda core: core.layer_norm_pass(2, -1.0, [1.0], [0.0], True), ArgumentError, "epsilon"),
        (
            lambda core: core.layer_norm_pass(2, float("nan"), [1.0], [0.0], True),
            ArgumentError,
            "eps",
        ),
        (lambda core: core.arithmetic_pass("pow", *SPACE[:2], [], False), ArgumentError, "alg"),
        (lambda core: core.arithmetic_pass("add", [0], SPACE[1], [], False), ShapeError, "dims"),
        (lambda core: core.arithmetic_pass("add", [2], [[1], [1]], [], False), LayoutError, "str"),
        (lambda core: core.arithmetic_pass("add", *SPACE[:2], [1.0], False), ShapeError, "const"),
        (
            lambda core: core.arithmetic_pass("add", [2, 2], [[1, 1], [1, 1], [1, 1]], [], False),
            LayoutError,
            "strides",
        ),
        (lambda core: core.select_pass(*SPACE[:2], [[], []]), LayoutError, "strides"),
        (lambda core: core.select_pass([2], [[1]] * 4, [[]]), ShapeError, "known"),
        (lambda core: core.select_pass([2], [[1]] * 4, [[], [1.0]]), ShapeError, "known"),
        (lambda core: core.is_nan_pass(FAR), ShapeError, "count"),
        (lambda core: core.conversion_pass(FAR, "s64", "f32"), ShapeError, "count"),
        (lambda core: core.conversion_pass(2, "f16", "f32"), DTypeError, "src"),
        (lambda core: core.conversion_pass(2, "f32", "f64"), DTypeError, "dst"),
        (lambda core: core.interpolation_pass(1, 2, 3, [0], [1.0], 0), ShapeError, "index"),
        (lambda core: core.interpolation_pass(1, 2, 3, [0, 1], [1.0], 1), ShapeError, "weights"),
        (lambda core: core.interpolation_pass(1, 2, 3, [2], [1.0], 1), ArgumentError, "index"),
        (lambda core: core.interpolation_pass(1, 2, 3, [-1], [1.0], 1), ArgumentError, "index"),
        (lambda core: core.interpolation_pass(FAR, 2, 3, [0], [1.0], 1), ShapeError, "outer"),
        (lambda core: core.interpolation_pass(1, 2, 0, [0], [1.0], 1), ShapeError, "length"),
        (lambda core: core.reduction_pass("min", 1, 2, 3), ArgumentError, "alg"),
        (lambda core: core.reduction_pass("sum", 0, 2, 3), ShapeError, "outer"),
        (lambda core: core.reduction_pass("sum", 1, FAR, 3), ShapeError, "outer"),
        (lambda core: core.reduction_pass("sum", 1, 2, 0), ShapeError, "terms"),
        (lambda core: _largest(core, dtype="f16"), DTypeError, "dtype"),
        (lambda core: _largest(core, (3, 4, 1, 1, 1, 0)), ShapeError, "window"),
        (lambda core: _largest(core, (3, 1, 2, 1, 0, 0)), ShapeError, "window"),
        (lambda core: _largest(core, (FAR, 1, 1, 1, 1, 0)), ShapeError, "src"),
        (lambda core: _largest(core, (3, FAR, 1, 1, 1, 0)), ShapeError, "dst"),
        (lambda core: core.largest_pass("u8", 1, 1, []), ShapeError, "dims"),
        (lambda core: _compared(core, "more"), ArgumentError, "alg"),
        (lambda core: _compared(core, "less", dtype="u8"), DTypeError, "dtype"),
        (lambda core: _compared(core, "less", constant=b"1234"), ShapeError, "constant"),
        (lambda core: _compared(core, "less", by=[0]), LayoutError, "strides"),
        (lambda core: core.pick_pass(2, 4, _places([]), b""), ShapeError, "places"),
        (lambda core: core.pick_pass(2, 4, _places([2]), b""), ArgumentError, "places"),
        (lambda core: core.pick_pass(2, 4, _places([-1]), b"12"), ArgumentError, "places"),
        (lambda core: core.pick_pass(2, 17, _places([0]), b""), ShapeError, "item"),
        (lambda core: core.rows_pass(FAR, np.ones((2, 2), np.float32)), ShapeError, "count"),
        (lambda core: core.rows_pass(2, np.ones(2, np.float32)), LayoutError, "table"),
    ],
)
def test_passes_of_impossible_sizes_and_values_are_refused(
    make: Callable[[Any], Any], error: type[Exception], argument: str
) -> None:
    with pytest.raises(error, match=f"^{argument}"):
        make(runtime.core)


def of_one(
    step: Pass, places: tuple[tuple[int, int], ...], arena: int, **more: tuple[int, int]
) -> None:
    spec = TensorSpec.dense((64,), "u8")
    program([(step, places, more.get("residual"), ())], arena, [spec], [spec])


PASSES = {  # bytes of each tensor
    "largest": (
        Pass.largest(
            "u8", (1, 3, 4, 5), (1, 3, 2, 5), Window((2, 2), (1, 1), (2, 1), (0, 0), (0, 1))
        ),
        (60, 30),
    ),
    "table": (Pass.look_up(SAME, (4, 16), (16, 1), (16, 1)), (64, 64)),
    "gaps": (Pass.look_up(SAME, (4, 8), (16, 2), (8, 1)), (63, 32)),
    "two": (
        Pass.look_up(np.zeros((256, 256), np.uint8), (4, 8), (0, 1), (1, 0), (8, 1)),
        (8, 4, 32),
    ),
    "quantize": (Pass.quantize((1, 1, 16), QParams(1.0, 0, "u8")), (64, 16)),
    "quantize, channels last": (Pass.quantize((2, 3, 5), QParams(1.0, 0, "u8")), (120, 30)),
    "rows": (Pass.layer_norm(4, 1e-5, np.ones(4, np.float32), np.zeros(4, np.float32)), (64, 64)),
}


@pytest.mark.parametrize("name", PASSES)
def test_passes_stay_within_the_memory_placed_for_them(name: str) -> None:
    """To the byte: what fits runs, and one byte less is refused, for each of its tensors."""
    step, extents = PASSES[name]
    arena = 4 * 64 * len(extents)
    for at, extent in enumerate(extents):
        item = 4 if name == "rows" or (name.startswith("quantize") and at == 0) else 1
        last = (arena - extent) // item * item
        places = [(0, 64 * each) for each in range(len(extents))]
        places[at] = (0, last)
        of_one(step, tuple(places), last + extent)
        for size in (last + extent - 1, 0):
            with pytest.raises(ArgumentError, match=r"^places: got one beyond its buffer"):
                of_one(step, tuple(places), size)
        for offset in (last + item, arena + 64, 2**64 - item):
            places[at] = (0, offset)
            with pytest.raises(ArgumentError, match=r"^places: got one beyond its buffer"):
                of_one(step, tuple(places), last + extent)
        places[at] = (9, 0)
        with pytest.raises(ArgumentError, match=r"^places: got one beyond its buffer"):
            of_one(step, tuple(places), arena)
        if item > 1:
            places[at] = (0, 2)
            with pytest.raises(ArgumentError, match=r"^places: got byte 2; wanted a multiple of 4"):
                of_one(step, tuple(places), arena)


def test_passes_have_as_many_places_as_tensors() -> None:
    step, _ = PASSES["table"]
    for count in (0, 1, 3, 9):
        with pytest.raises(ArgumentError, match=rf"^places: got {count}; wanted 2"):
            of_one(step, ((0, 0),) * count, 64)
    with pytest.raises(ArgumentError, match=r"^places: got dst in an input"):
        of_one(step, ((0, 0), (1, 0)), 64)


def test_a_residual_is_a_primitive_s() -> None:
    """A pass, or a function, adds to nothing: the tensor would be left out."""
    step, _ = PASSES["table"]
    with pytest.raises(ArgumentError, match=r"^residual: .*; wanted none: only primitives"):
        of_one(step, ((1, 0), (2, 0)), 64, residual=(0, 0))
    spec = TensorSpec.dense((64,), "u8")
    row = (np.copyto, ((1, 0), (2, 0)), (0, 0), (spec, spec))
    with pytest.raises(ArgumentError, match=r"^residual: "):
        program([row], 64, [spec], [spec])


def test_arrays_of_functions_have_strides() -> None:
    """A layout that the library may choose has none to reckon with."""
    core = runtime.core
    for spec in (((4,), "u8", None), ((3, 2), "u8", (FAR, 1)), ((1 << 32, 1 << 32), "u8", None)):
        with pytest.raises(Error):
            core.Program([(print, [(0, 0)], None, [spec])], 64, [], 0)
        with pytest.raises(Error):
            core.Program([(print, [(1, 0)], None, [((4,), "u8", (1,))])], 64, [spec], 0)


def test_inputs_are_among_the_arrays() -> None:
    with pytest.raises(ArgumentError, match=r"^inputs: got 2; wanted 0 to 1"):
        runtime.core.Program([], 0, [((4,), "u8", (1,))], 2)


def test_empty_results_are_arrays() -> None:
    made = runtime.core.Program([], 0, [((4,), "u8", (1,)), ((3, 0, 2), "f32", (2, 2, 1))], 1)
    (empty,) = made.run(np.zeros(4, np.uint8))
    assert (empty.shape, empty.dtype) == ((3, 0, 2), np.float32)


def test_arrays_of_a_call_are_aligned() -> None:
    spec = TensorSpec.dense((16,), "f32")
    step, _ = PASSES["quantize"]
    made = program([(step, ((1, 0), (2, 0)), None, ())], 0, [spec], [TensorSpec.dense((16,), "u8")])
    values = np.arange(16, dtype=np.float32)
    (codes,) = made.run(values)
    np.testing.assert_array_equal(codes, np.arange(16))
    shifted = np.zeros(65, np.uint8)[1:].view(np.float32)
    assert not shifted.flags.aligned
    for others in ((shifted,), (values, codes), (), (values[::-1],), (values > 0,), (values[:8],)):
        assert made.run(*others) is NotImplemented
        for run in (made.run_checked, made.run_timed):
            with pytest.raises(ArgumentError, match=r"^arrays"):
                run(*others)
    alike = values.view(np.memmap), values.astype(np.dtype("f4", metadata={"of": 1}))
    for other in (values, *alike):
        np.testing.assert_array_equal(made.run_checked(other)[0], codes)
        assert len(made.run_timed(other)) == 1
    assert [made.run(other) is NotImplemented for other in alike] == [True, True]


def test_a_prepared_primitive_and_a_program_refuse_masks() -> None:
    values = np.arange(6, dtype=np.uint8).reshape(2, 3)
    x = np.ma.masked_array(values, values > 3)
    problem = pq.primitive.MatMulProblem.of((2, 3), (3, 2), dst="f32")
    with pytest.raises(ArgumentError, match=r"^src: got a masked array"):
        pq.prepare(problem, wei=np.ones((3, 2), np.int8))(x)
    step, _ = PASSES["quantize"]
    f32, u8 = (TensorSpec.dense((16,), dtype) for dtype in ("f32", "u8"))
    made = program([(step, ((1, 0), (2, 0)), None, ())], 0, [f32], [u8])
    for run in (made.run_checked, made.run_timed):
        with pytest.raises(ArgumentError, match=r"^arrays\[0\]: got a masked array"):
            run(np.ma.masked_array(np.zeros(16, np.float32), True))
