"""Models of grouped scales beside oneDNN 3.13 itself: every bit, over shapes drawn at random."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, NoModelError, ShapeError, UnsupportedError
from pyonednn_q.native import runtime
from pyonednn_q.predict.grouped_kernels import grouped_kernel
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.problem import MatMulProblem

F = np.float32
IMPL = "brg_matmul:avx512_core_vnni"
RANGES = {"s8": (-127, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16)}


def codes(rng: np.random.Generator, dtype: str, *dims: int) -> Any:
    return rng.integers(*RANGES[dtype], dims).astype(np.int8 if dtype[0] == "s" else np.uint8)


def as_held(array: Any, dtype: str) -> Any:
    """Return codes of 4 bits as the library takes them."""
    if dtype not in {"s4", "u4"}:
        return array
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    return array.astype({"s4": ml_dtypes.int4, "u4": ml_dtypes.uint4}[dtype])


def drawn(rng: np.random.Generator, src: str, wei: str) -> tuple[Any, ...]:
    """Return a problem, its attributes, arrays and values."""
    size = int(rng.choice([32, 64, 128, 256]))
    groups = int(rng.integers(1, 6000 // size))
    inner = size * groups
    rows = int(rng.choice([1, 2, 3, 7, 16, 33, 100, 257]))
    columns = int(rng.choice([1, 3, 16, 17, 48, 64, 100, 200, 513]))
    own = [None, Scale(3, groups=(1, inner)), Scale(3, groups=(1, size))][int(rng.integers(3))]
    bias = rng.standard_normal(columns).astype(F) if rng.integers(2) else None
    has_points = wei in {"s4", "u4"} and rng.integers(2)
    point = ZeroPoint(3, wei, (size, 1)) if has_points else None
    problem = MatMulProblem.of(
        (rows, inner), (inner, columns), src=src, wei=wei, dst="f32",
        bias=None if bias is None else "f32",
    )  # fmt: skip
    attr = Attr(wei_scale=Scale(3, groups=(size, 1)), src_scale=own, wei_zero_point=point)
    values = {"wei_scale": rng.uniform(0.01, 0.1, (groups, columns)).astype(F)}
    if point is not None:
        values["wei_zero_point"] = as_held(codes(rng, wei, groups, columns), wei)
    if own is not None:
        each = (rows, inner // own.groups[1])
        values["src_scale"] = rng.uniform(0.01, 0.1, each).astype(F)
    return (
        problem,
        attr,
        codes(rng, src, rows, inner),
        codes(rng, wei, inner, columns),
        bias,
        values,
    )


@pytest.mark.executed
@pytest.mark.parametrize(
    ("src", "wei"), [("u8", "s8"), ("s8", "s4"), ("s8", "u4"), ("u8", "s4"), ("u8", "u4")]
)
def test_every_bit_is_the_models(src: str, wei: str, pytestconfig: pytest.Config) -> None:
    if runtime.version()[:2] != (3, 13):
        pytest.skip(f"oneDNN {runtime.version()} is not 3.13, which the model is of")
    rng = np.random.default_rng([*src.encode(), *wei.encode()])
    compared, wanted = 0, pytestconfig.getoption("--compared-outputs")
    for at in itertools.count():
        if compared >= wanted:
            break
        if at == 50 and not compared:
            pytest.skip(f"no generated code for {src} by {wei} here")
        problem, attr, x, w, bias, values = drawn(rng, src, wei)
        try:
            primitive = pq.prepare(
                problem, attr, wei=as_held(w, wei), bias=bias, values=values, self_check=False
            )
        except (UnsupportedError, ArgumentError):  # reference loops, odd columns of 4 bits
            continue
        model = grouped_kernel(problem, attr, primitive.impl, runtime.version())
        got = primitive(x)
        np.testing.assert_array_equal(got, model.run(x, w, bias=bias, values=values))
        compared += got.size
    print(f"{src} {wei}: {compared:,} outputs")  # noqa: T201


def problem_of(**changes: Any) -> tuple[MatMulProblem, Attr]:
    told = {"src": "s8", "wei": "s8", "dst": "f32", **changes}
    return MatMulProblem.of((2, 128), (128, 3), **told), Attr(wei_scale=Scale(3, groups=(64, 1)))


def test_terms_of_groups_are_added_in_order() -> None:
    """The formula, written here once more; a row's scale is in each term."""
    rng = np.random.default_rng(0)
    problem, plain = problem_of(bias="f32")
    attr = Attr(wei_scale=plain.wei_scale, src_scale=Scale(3, groups=(1, 128)))
    x, w = codes(rng, "s8", 2, 128), codes(rng, "s8", 128, 3)
    values = {
        "wei_scale": rng.uniform(0.01, 0.1, (2, 3)).astype(F),
        "src_scale": rng.uniform(0.01, 0.1, (2, 1)).astype(F),
    }
    bias = rng.standard_normal(3).astype(F)
    total = np.zeros((2, 3), F)
    for at in range(2):
        part = slice(64 * at, 64 * at + 64)
        acc = (x[:, part].astype(int) @ w[part].astype(int)).astype(F)
        total = total + (acc * values["wei_scale"][at]) * values["src_scale"]
    model = grouped_kernel(problem, attr, IMPL, (3, 13, 2))
    np.testing.assert_array_equal(model.run(x, w, bias=bias, values=values), total + bias)


def test_what_was_not_compared_has_no_model() -> None:
    problem, attr = problem_of()
    with pytest.raises(NoModelError, match=r"oneDNN 3\.13"):
        grouped_kernel(problem, attr, IMPL, (3, 12, 0))
    with pytest.raises(NoModelError, match="compared were"):
        grouped_kernel(problem, attr, "ref:any", (3, 13, 2))
    with pytest.raises(NoModelError, match="float32 results"):
        grouped_kernel(problem_of(dst="s8")[0], attr, IMPL, (3, 13, 2))
    changed = Attr(wei_scale=attr.wei_scale, src_zero_point=ZeroPoint())
    with pytest.raises(NoModelError, match="nothing else"):
        grouped_kernel(problem, changed, IMPL, (3, 13, 2))
    changed = Attr(wei_scale=attr.wei_scale, wei_zero_point=ZeroPoint(3, "s8", (64, 1)))
    with pytest.raises(NoModelError, match="zero points of groups of 4-bit"):
        grouped_kernel(problem, changed, IMPL, (3, 13, 2))
    changed = Attr(wei_scale=attr.wei_scale, src_scale=Scale(0))
    with pytest.raises(NoModelError, match="a scale for each row"):
        grouped_kernel(problem, changed, IMPL, (3, 13, 2))
    x, w = np.zeros((2, 128), np.int8), np.zeros((128, 3), np.int8)
    narrow = problem_of(wei="u4")[0]
    changed = Attr(wei_scale=attr.wei_scale, wei_zero_point=ZeroPoint(3, "u4", (64, 1)))
    values: dict[str, Any] = {
        "wei_scale": np.ones((2, 3), F),
        "wei_zero_point": np.ones((2, 1), np.uint8),
    }
    with pytest.raises(ShapeError, match=r"^wei_zero_point: got"):
        grouped_kernel(narrow, changed, IMPL, (3, 13, 2)).run(x, w, values=values)
    model = grouped_kernel(problem, attr, IMPL, (3, 13, 2))
    with pytest.raises(ArgumentError, match=r"^wei_scale: got nothing"):
        model.run(x, w)
    with pytest.raises(ShapeError, match=r"^wei_scale: got"):
        model.run(x, w, values={"wei_scale": np.ones((1, 3), F)})
    with pytest.raises(ArgumentError, match=r"^bias: got an array"):
        model.run(x, w, bias=np.ones(3, F), values={"wei_scale": np.ones((2, 3), F)})
