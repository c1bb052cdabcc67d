"""Reductions of floats: compiled, with the values of onnxruntime, on any number of threads."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from pyonednn_q.native import runtime
from support.peers.small_models import compiled, floats, make, model, ready

REDUCED = ("Sum", "Mean", "Max", "Min", "L1", "L2", "SumSquare")


@pytest.mark.parametrize("seed", range(84))
def test_reductions_over_any_axes(seed: int) -> None:
    """Of whole numbers sums are exact; of others one rounding of ours, some of theirs."""
    rng = np.random.default_rng(seed)
    dims = tuple(int(each) for each in rng.integers(1, 8, rng.integers(2, 6)))
    count = int(rng.integers(1, len(dims)))
    axes = [int(axis) for axis in rng.choice(len(dims), count, replace=False)]
    axes = [axis - len(dims) if rng.integers(2) else axis for axis in axes]
    operator = f"Reduce{REDUCED[seed % len(REDUCED)]}"
    is_whole = bool(rng.integers(2))
    x = rng.normal(0, 1, dims).astype(np.float32)
    x = np.rint(8 * x).astype(np.float32) if is_whole else x
    how = {"keepdims": int(rng.integers(2))}
    nodes, held = [make(operator, ["x"], ["y"], axes=axes, **how)], {}
    if operator == "ReduceSum":
        nodes, held = [make(operator, ["x", "a"], ["y"], **how)], {"a": np.array(axes)}
    result, wanted, _ = compiled((nodes, {"x": x}, held))
    is_sum = operator in {"ReduceSum", "ReduceL1", "ReduceSumSquare"}
    if operator in {"ReduceMax", "ReduceMin"} or (is_whole and is_sum):
        np.testing.assert_array_equal(result, wanted)
    else:
        terms = float(np.prod([dims[axis] for axis in axes]))
        most = np.square(x).max() if operator == "ReduceSumSquare" else np.abs(x).max()
        off = (terms + 2) * 2.0**-24 * terms * most
        np.testing.assert_allclose(result, wanted, rtol=0, atol=off)


@pytest.mark.parametrize("axes", [None, [0], [1], [2], [0, 1], [0, 2], [1, 2]])
@pytest.mark.parametrize("operator", ["ReduceProd", "ReduceLogSum"])
def test_products_and_logarithms_of_sums(operator: str, axes: list[int] | None) -> None:
    """Of these products are exact in float32; of whole numbers sums, too."""
    rng = np.random.default_rng(5)
    x = rng.choice(np.array([1, 1, 1, -1, 2, 0.5], np.float32), (4, 9, 1300))
    if operator == "ReduceLogSum":
        x = np.abs(np.rint(8 * x))
    how = {} if axes is None else {"axes": axes}
    result, wanted, _ = compiled(([make(operator, ["x"], ["y"], **how)], {"x": x}, {}))
    over = None if axes is None else tuple(axes)
    if operator == "ReduceProd":
        np.testing.assert_array_equal(result, wanted)
        np.testing.assert_array_equal(result, x.prod(axis=over, keepdims=True))
        return
    exact = np.log(x.sum(axis=over, keepdims=True, dtype=np.float64)).astype(np.float32)
    np.testing.assert_array_equal(result, exact)
    np.testing.assert_allclose(result, wanted, rtol=4 * 2.0**-24, atol=0)


@pytest.mark.parametrize(
    ("axes", "keepdims"), [(None, 1), *product([[0], [1], [2], [0, 2]], [0, 1])]
)
def test_logarithms_of_sums_of_exponentials(axes: list[int] | None, keepdims: int) -> None:
    """Right where exponentials leave float32, and of what is infinite."""
    x = 300 * floats(4, 9, 13)
    x[0, 0], x[1, 1], x[2, 2, 1:], x[3, 3, :2] = -np.inf, 80, -np.inf, [np.inf, -np.inf]
    how = {"keepdims": keepdims, **({} if axes is None else {"axes": axes})}
    result, wanted, _ = compiled(([make("ReduceLogSumExp", ["x"], ["y"], **how)], {"x": x}, {}))
    over = None if axes is None else tuple(axes)
    exact = np.asarray(np.logaddexp.reduce(x.astype(np.float64).reshape(-1), 0))
    if over is not None:
        rows = np.moveaxis(x.astype(np.float64), over, range(len(over)))
        rows = rows.reshape(-1, *rows.shape[len(over) :])
        exact = np.logaddexp.reduce(rows, 0)
    exact = exact.reshape(result.shape)
    np.testing.assert_allclose(result, exact, rtol=4 * 2.0**-24, atol=0)
    assert wanted.shape == result.shape


@pytest.mark.parametrize("inner", [1, 3, 70])
@pytest.mark.parametrize("operator", ["Prod", "LogSum", "Sum", "Mean", "Max"])
def test_a_few_long_reductions_have_the_same_bits_on_any_number_of_threads(
    operator: str, inner: int
) -> None:
    rng = np.random.default_rng(inner)
    x = np.exp2(rng.normal(0, 0.01, (2, 60_001, inner))).astype(np.float32)
    node = make(f"Reduce{operator}", ["x", "a"] if operator == "Sum" else ["x"], ["y"],
                **({} if operator == "Sum" else {"axes": [1]}))  # fmt: skip
    own = ready(model([node], {"x": x.shape}, {"a": np.array([1])} if operator == "Sum" else {}))
    results = []
    for count in (1, 2, 3):
        with runtime.threads(count):
            results.append(own.run({"x": x})["y"])
    for each in results[1:]:
        np.testing.assert_array_equal(each, results[0])
    wide = x.astype(np.float64)
    total = wide.sum(axis=1, keepdims=True)
    exact = {
        "Prod": lambda: wide.prod(axis=1, keepdims=True),
        "LogSum": lambda: np.log(total),
        "Sum": lambda: total,
        "Mean": lambda: total / x.shape[1],
        "Max": lambda: wide.max(axis=1, keepdims=True),
    }[operator]()
    # 60 001 roundings of float64 are far below one of float32; a mean has two of these.
    np.testing.assert_allclose(results[0], exact, rtol=2 * 2.0**-24, atol=0)


def test_reductions_of_what_is_not_finite() -> None:
    """What the standard's NumPy has; onnxruntime's depends on where the NaN is."""
    x = floats(3, 5, 70)
    x[0, 2] = -np.inf
    x[1, 3, 40] = np.nan
    x[2, 1, 6] = np.inf
    for axis in (1, 2):
        node = make("ReduceMax", ["x"], ["y"], axes=[axis], keepdims=0)
        y = ready(model([node], {"x": x.shape}, {})).run({"x": x})["y"]
        np.testing.assert_array_equal(y, x.max(axis=axis))
