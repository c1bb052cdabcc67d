"""Operations on floats, and what picks elements: compiled, with the values of onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from pyonednn_q.errors import ArgumentError
from support.peers.small_models import Case, compiled, floats, make, model, ready

Array = np.ndarray[Any, Any]

IMAGE = floats(2, 6, 5, 4)
INT64, BOOL = 7, 9


ONE = {"x": IMAGE}
TWO = {"x": IMAGE, "z": floats(6, 1, 4)}
WINDOWS: dict[str, dict[str, Any]] = {
    "ceil": {"ceil_mode": 1, "strides": [3, 3]},
    "same": {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    "same, lower": {"auto_pad": "SAME_LOWER", "strides": [2, 1]},
    "valid": {"auto_pad": "VALID"},
    "padded on one side": {"pads": [0, 0, 1, 1], "strides": [2, 1]},
    "dilated": {"dilations": [2, 3]},
    "dilated, with pads": {"dilations": [2, 1], "pads": [1, 0, 2, 1], "strides": [1, 2]},
}
# What is rounded once, or moved: the same bits.
EXACT: dict[str, Case] = {
    **{
        f"{operator} of a constant of {'x'.join(map(str, dims))}": (
            [make(operator, ["x", "c"], ["y"])], ONE, {"c": floats(*dims)},
        )
        for operator in ("Add", "Sub", "Mul", "Div")
        for dims in ((1,), (4,), (6, 1, 1), (5, 1), (2, 6, 5, 4), (2, 1, 1, 4), (3, 1, 1, 1, 1))
    },
    **{
        f"{operator} from a constant": (
            [make(operator, ["c", "x"], ["y"])], ONE, {"c": floats(6, 1, 1)},
        )
        for operator in ("Sub", "Div")
    },
    **{
        f"{operator} of two": ([make(operator, names, ["y"])], TWO, {})
        for operator in ("Add", "Sub", "Mul", "Div")
        for names in (["x", "z"], ["z", "x"])
    },
    "of itself": ([make("Mul", ["x", "x"], ["y"])], ONE, {}),
    **{
        f"{operator} of {', '.join(names)}": (
            [make(operator, names, ["y"])], TWO, {"c": floats(4), "d": np.float32(0.25)},
        )
        for operator in ("Max", "Min", "Sum")
        for names in (["x", "c", "z"], ["c", "x", "z", "d"])
    },
    **{
        f"{operator} of one": (
            [make("Neg", ["x"], ["n"]), make(operator, ["n"], ["y"])], ONE, {},
        )
        for operator in ("Max", "Min", "Sum", "Mean")
    },
    "halves to even": (
        [make("Mul", ["x", "two"], ["d"]), make("Round", ["d"], ["y"])],
        {"x": np.arange(-12, 12, dtype=np.float32).reshape(2, 3, 4) / 4}, {"two": np.float32(2)},
    ),
    **{
        f"Clip of {', '.join(names)}": (
            [make("Clip", names, ["y"])], ONE, {"a": np.float32(-0.5), "b": np.float32(0.25)},
        )
        for names in (["x", "a", "b"], ["x", "", "b"], ["x", "a"])
    },
    "opposite": ([make("Neg", ["x"], ["y"])], ONE, {}),
    "root": ([make("Abs", ["x"], ["a"]), make("Sqrt", ["a"], ["y"])], ONE, {}),
    "turned, then cut": (
        [make("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]),
         make("Slice", ["t", "from", "to", "axes", "steps"], ["s"]),
         make("Add", ["s", "c"], ["y"])],
        ONE,
        {"from": np.array([0, 1]), "to": np.array([5, 6]), "axes": np.array([1, -1]),
         "steps": np.array([2, 3]), "c": np.float32(1)},
    ),
    "parts": (
        [make("Split", ["x", "sizes"], ["a", "b", "c"], axis=1),
         make("Sub", ["c", "a"], ["d"]), make("Concat", ["d", "b", "a"], ["y"], axis=-3)],
        ONE,
        {"sizes": np.array([2, 2, 2])},
    ),
    "padded": (
        [make("Pad", ["x", "pads", "value"], ["y"])], ONE,
        {"pads": np.array([0, 1, 0, 2, 0, 0, 3, 0]), "value": np.float32(-1.5)},
    ),
    "mirrored": (
        [make("Pad", ["x", "pads"], ["y"], mode="reflect")], ONE,
        {"pads": np.array([0, 0, 2, 1, 0, 0, 1, 3])},
    ),
    "tiled": ([make("Tile", ["x", "t"], ["y"])], ONE, {"t": np.array([1, 2, 1, 3])}),
    "spread": ([make("Expand", ["z", "d"], ["y"])], {"z": TWO["z"]}, {"d": np.array([3, 6, 5, 4])}),
    "taken": (
        [make("Gather", ["x", "at"], ["y"], axis=2)], ONE, {"at": np.array([[4, -1], [0, 0]])},
    ),
    "enlarged": (
        [make("Resize", ["x", "", "s"], ["y"], mode="nearest",
              coordinate_transformation_mode="asymmetric", nearest_mode="floor")],
        ONE, {"s": np.array([1, 1, 2, 1.5], np.float32)},
    ),
    "space": ([make("SpaceToDepth", ["x"], ["y"], blocksize=2)], {"x": floats(1, 3, 4, 6)}, {}),
    "depth": ([make("DepthToSpace", ["x"], ["y"], blocksize=2, mode="CRD")],
              {"x": floats(1, 8, 2, 3)}, {}),
    **{
        f"the largest, {name}": (
            [make("MaxPool", ["x"], ["y"], kernel_shape=[3, 2], **more)], ONE, {},
        )
        for name, more in WINDOWS.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_what_is_rounded_once_has_the_same_bits(name: str) -> None:
    result, wanted, _ = compiled(EXACT[name])
    np.testing.assert_array_equal(result, wanted)


def test_conditions_choose() -> None:
    x = IMAGE.copy()
    x[0, 0] = np.nan
    nodes = [
        make("IsNaN", ["x"], ["n"]),
        make("Where", ["n", "c", "x"], ["a"]),
        make("Where", ["n", "a", "c"], ["b"]),
        make("Sub", ["a", "b"], ["y"]),
    ]
    result, wanted, _ = compiled((nodes, {"x": x}, {"c": np.float32(-np.inf)}))
    np.testing.assert_array_equal(result, wanted)


def test_masks_are_made_of_indices_and_constants() -> None:
    mask = np.array([[1, 0, 2, -(2**40)], [0, 0, 0, 1]])
    nodes = [
        make("Cast", ["m"], ["b"], to=BOOL),
        make("GatherND", ["b", "at"], ["g"]),
        make("And", ["lower", "g"], ["a"]),
        make("Where", ["a", "zero", "least"], ["w"]),
        make("Add", ["w", "x"], ["y"]),
    ]
    rows, columns = np.meshgrid([0, 1], [3, 0, 2, 1], indexing="ij")
    known = {
        "at": np.stack([rows, columns], -1)[:, None],
        "lower": np.tri(4, dtype=np.bool_)[None],
        "zero": np.float32(0),
        "least": np.float32(-100),
    }
    result, wanted, _ = compiled((nodes, {"m": mask, "x": floats(2, 4, 4)}, known), m=INT64)
    np.testing.assert_array_equal(result, wanted)


def test_rows_of_a_table_are_taken_by_indices() -> None:
    case: Case = (
        [make("Gather", ["t", "i"], ["y"])],
        {"i": np.array([[3, -1], [0, 6]])},
        {"t": floats(7, 5)},
    )
    result, wanted, own = compiled(case, i=INT64)
    np.testing.assert_array_equal(result, wanted)
    for index in (7, -8):
        with pytest.raises(ArgumentError, match=f"indices: got {index}; wanted -7 to 6"):
            own.run({"i": np.full((2, 2), index)})


@pytest.mark.parametrize("dims", [((3, 4), (4, 5)), ((2, 3, 7, 4), (2, 3, 4, 6))])
def test_products_of_two_tensors(dims: Any) -> None:
    case: Case = (
        [make("MatMul", ["x", "z"], ["y"])],
        {"x": floats(*dims[0]), "z": floats(*dims[1])},
        {},
    )
    result, wanted, _ = compiled(case)
    # Four products of numbers below 5, in another order.
    np.testing.assert_allclose(result, wanted, rtol=0, atol=4 * 25 * 2.0**-23)


@pytest.mark.parametrize("axis", [1, -1])
def test_softmax_of_floats(axis: int) -> None:
    result, wanted, _ = compiled(([make("Softmax", ["x"], ["y"], axis=axis)], ONE, {}))
    np.testing.assert_allclose(result, wanted, rtol=0, atol=16 * 2.0**-24)


@pytest.mark.parametrize("operator", ["Sigmoid", "Tanh", "HardSigmoid", "Elu", "Exp"])
def test_functions_of_floats(operator: str) -> None:
    result, wanted, _ = compiled(([make(operator, ["x"], ["y"])], ONE, {}))
    # 8 units of the value, or of 1: what `tools/measure/function_errors.py` finds of the worst.
    assert np.all(np.abs(result - wanted) <= 8 * 2.0**-24 * np.maximum(1, np.abs(wanted)))


def test_means_of_tensors() -> None:
    case: Case = ([make("Mean", ["x", "z", "c"], ["y"])], TWO, {"c": floats(6, 1, 1)})
    result, wanted, _ = compiled(case)
    # A sum of three numbers below 5 and a quotient, or a product with 1/3.
    np.testing.assert_allclose(result, wanted, rtol=0, atol=4 * 15 * 2.0**-24)


@pytest.mark.parametrize("dims", [(2, 6), (2, 6, 5), (2, 6, 5, 4), (1, 6, 2, 3, 2)])
def test_a_batch_norm_of_its_own(dims: tuple[int, ...]) -> None:
    x, gain, shift, mean = floats(*dims), floats(6), floats(6), floats(6)
    var = np.square(floats(6)) + np.float32(0.1)
    held = {"g": gain, "s": shift, "m": mean, "v": var}
    node = make("BatchNormalization", ["r", "g", "s", "m", "v"], ["y"], epsilon=1e-3)
    result, wanted, _ = compiled(([make("Relu", ["x"], ["r"]), node], {"x": x}, held))
    along = (-1, *(1,) * (len(dims) - 2))
    wide = [each.astype(np.float64).reshape(along) for each in (gain, shift, mean, var)]
    gains = np.abs(wide[0]) / np.sqrt(wide[3] + 1e-3)
    # Roundings of the gain, a product, the shift, and the sum of both.
    off = 6 * 2.0**-24 * (gains * (np.abs(x) + np.abs(wide[2])) + np.abs(wide[1]))
    exact = (np.maximum(x, 0) - wide[2]) * wide[0] / np.sqrt(wide[3] + 1e-3) + wide[1]
    assert np.all(np.abs(result - exact) <= off)
    assert np.all(np.abs(wanted - exact) <= off)


def test_softplus_is_right_where_it_is_small() -> None:
    """OneDNN's is 8e-6 at -68, where it is 1e-30."""
    x = np.linspace(-80, 20, 60, dtype=np.float32).reshape(3, 4, 5)
    proto = model([make("Softplus", ["x"], ["y"])], {"x": x.shape}, {}, types={})
    y = ready(proto).run({"x": x})["y"]
    np.testing.assert_allclose(y, np.log1p(np.exp(x.astype(np.float64))), rtol=2.0**-20)


def test_means_of_windows_and_places() -> None:
    more = {"kernel_shape": [2, 3], "ceil_mode": 1, "strides": [2, 2]}
    for node in (
        make("AveragePool", ["x"], ["y"], **more),
        make("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], auto_pad="SAME_UPPER"),
        make("ReduceMean", ["x"], ["y"], axes=[2, 3], keepdims=0),
    ):
        result, wanted, _ = compiled(([node], ONE, {}))
        # Sums of at most 20 numbers below 5.
        np.testing.assert_allclose(result, wanted, rtol=0, atol=20 * 5 * 2.0**-23)


@pytest.mark.parametrize("seed", range(40))
def test_comparisons_and_casts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    operators = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
    number = (1, 6, INT64)[seed % 3]
    dtype = {1: np.float32, 6: np.int32, INT64: np.int64}[number]
    dims = [(3, 1, 4), (2, 3, 5, 1), (4,), (1, 1)]
    first, second = (rng.integers(-3, 4, dims[at]).astype(dtype) for at in rng.integers(0, 4, 2))
    if dtype is np.float32:
        first.reshape(-1)[:1] = np.nan
    names = [["x", "z"], ["x", "c"], ["c", "x"]][int(rng.integers(3))]
    nodes = [make(operators[seed % 5], names, ["b"]), make("Cast", ["b"], ["y"], to=1)]
    inputs = {"x": first, **({"z": second} if "z" in names else {})}
    held = {"c": second} if "c" in names else {}
    types = dict.fromkeys(inputs, number)
    result, wanted, _ = compiled((nodes, inputs, held), **types)
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("to", [1, 6, INT64, BOOL])
@pytest.mark.parametrize("of", [1, 2, 3, 6, INT64, BOOL])
def test_numbers_of_one_type_as_those_of_another(of: int, to: int) -> None:
    dtype = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, INT64: np.int64, BOOL: np.bool_}
    rng = np.random.default_rng(of)
    x: Array = rng.normal(0, 40, (3, 5)).astype(dtype[of])
    x.reshape(-1)[:2] = 0, 1
    if of == INT64:
        x[1] = [2**24 + 1, -(2**24) - 3, 2**31 - 1, -(2**31), 2**30 + 64]
    nodes = [make("Cast", ["x"], ["y"], to=to)]
    if of == to:  # which is nothing at all
        nodes = [make("Cast", ["x"], ["z"], to=to), make("Expand", ["z", "d"], ["y"])]
    held = {"d": np.array([2, 3, 5])} if of == to else {}
    result, wanted, _ = compiled((nodes, {"x": x}, held), x=of, y=to)
    assert result.dtype == wanted.dtype
    np.testing.assert_array_equal(result, wanted)


def test_conditions_are_joined() -> None:
    x = np.array([[0.0, 1, -1], [2, np.nan, -2]], np.float32)
    nodes = [
        make("Greater", ["x", "zero"], ["a"]),
        make("Less", ["x", "one"], ["b"]),
        make("Not", ["a"], ["n"]),
        make("Or", ["n", "b"], ["o"]),
        make("And", ["o", "row"], ["w"]),
        make("Or", ["w", "column"], ["v"]),
        make("Xor", ["v", "a"], ["e"]),
        make("And", ["e", "b"], ["f"]),
        make("Where", ["f", "x", "table"], ["y"]),
    ]
    held = {
        "zero": np.float32(0), "one": np.array([1.5], np.float32),
        "row": np.array([True, False, True]),
        "column": np.array([[False], [True]]), "table": floats(4, 1, 3),
    }  # fmt: skip
    result, wanted, _ = compiled((nodes, {"x": x}, held))
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("names", [["m", "x", "c"], ["m", "c", "x"], ["m", "x", "z"]])
def test_constant_conditions_choose(names: list[str]) -> None:
    held = {"m": np.tri(5, 4, dtype=np.bool_), "c": np.float32(-np.inf)}
    inputs = TWO if "z" in names else ONE
    known = {name: each for name, each in held.items() if name in names}
    result, wanted, _ = compiled(([make("Where", names, ["y"])], inputs, known))
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("constant", [{}, {"z": TWO["z"]}])
@pytest.mark.parametrize("operator", ["Max", "Min"])
def test_the_larger_and_the_smaller(operator: str, constant: dict[str, Array]) -> None:
    x = IMAGE.copy()
    x[0, 1] = np.nan
    inputs = {"x": x} if constant else {"x": x, "z": TWO["z"]}
    result, wanted, _ = compiled(([make(operator, ["x", "z"], ["y"])], inputs, constant))
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("exponent", [np.float32(2), np.array([3], np.float32), np.int64(2)])
def test_powers_are_products(exponent: Any) -> None:
    case: Case = ([make("Pow", ["x", "c"], ["y"])], ONE, {"c": exponent})
    result, wanted, _ = compiled(case)
    np.testing.assert_array_equal(result, wanted)


def test_one_over() -> None:
    result, wanted, _ = compiled(([make("Reciprocal", ["x"], ["y"])], ONE, {}))
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize(
    "dims",
    [((2, 3, 7, 4), (4, 6)), ((7, 4), (2, 3, 4, 6)), ((2, 1, 7, 4), (3, 4, 6)),
     ((1, 7, 4), (3, 4, 6))],
)  # fmt: skip
def test_products_of_stacks_that_broadcast(dims: Any) -> None:
    case: Case = (
        [make("MatMul", ["x", "z"], ["y"])],
        {"x": floats(*dims[0]), "z": floats(*dims[1])},
        {},
    )
    result, wanted, _ = compiled(case)
    # Four products of numbers below 5, in another order.
    np.testing.assert_allclose(result, wanted, rtol=0, atol=4 * 25 * 2.0**-23)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("how", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
@pytest.mark.parametrize("sizes", [(10, 8), (10, 4), (3, 2), (1, 7)])
def test_resizes_by_weights(mode: str, how: str, sizes: tuple[int, int]) -> None:
    node = make("Resize", ["x", "", "", "s"], ["y"], mode=mode, coordinate_transformation_mode=how)
    result, wanted, _ = compiled(([node], ONE, {"s": np.array([2, 6, *sizes])}))
    # A place is off by some 4 roundings of numbers up to 10, a value by 4 of numbers up to 5; the
    # slope of a cubic is below 3 times the largest value.
    most = np.abs(IMAGE).max()
    np.testing.assert_allclose(result, wanted, rtol=0, atol=2 * 8 * 10 * 3 * most * 2.0**-24)


def test_resizes_by_scales() -> None:
    scales = np.array([1, 1, 2, 2.5], np.float32)
    case: Case = ([make("Resize", ["x", "", "s"], ["y"], mode="linear")], ONE, {"s": scales})
    result, wanted, _ = compiled(case)
    np.testing.assert_allclose(result, wanted, rtol=0, atol=2 * 8 * 10 * 5 * 2.0**-24)
