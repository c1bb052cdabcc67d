"""Sources that every call quantizes by its own range, against the same numbers as constants."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.plan import Plan
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Binary, Chain, Eltwise, Leaf, PRelu, Sum
from pyonednn_q.inspection.inspector import inspect
from pyonednn_q.native import runtime
from pyonednn_q.ops import ways
from pyonednn_q.ops.dense import MatMul
from pyonednn_q.ops.functional import matmul
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic, Extent
from support.calls.call import Call
from support.calls.float_layers import SHAPES, C
from support.calls.rows import Rows, with_own_range

F = np.float32
PRODUCTS = [name for name in SHAPES if name[0] in "im"]
SCALE = np.resize([0.25, 0.5, 1.0], C)
POST = Chain(Affine(np.linspace(0.5, 2.0, C), 0.25), PRelu(np.resize([0.25, 0.5], C)))
STORES: dict[str, dict[str, Any]] = {
    "f32": {"dst": "f32"},
    "u8": {"dst_q": QParams(0.25, 18, "u8")},
    "bf16": {"dst": "bf16"},
    "f16": {"dst": "f16"},
}


def drawn(shape: str, src: Any = None, **more: Any) -> tuple[Any, Call]:
    """A float source, and the call on codes that are still to be made of it."""
    rng = np.random.default_rng(11)
    src_dims, wei_dims, window = SHAPES[shape]
    kind = shape.partition(" ")[0]
    values = rng.normal(0.3, 1, src_dims).astype(F) if src is None else src
    given: dict[str, Any] = {
        "wei": 2 * rng.integers(-31, 32, wei_dims).astype(np.int8),
        "bias": rng.normal(size=C).astype(F),
        "wei_q": QParams(SCALE / 64, 0, "s8", axis=-1 if kind == "matmul" else 0),
        "window": window,
        **more,
    }
    return values, Call(kind, values, **given)


def run(call: Call, dynamic: Dynamic, **more: Any) -> Any:
    return call.but(src_q=dynamic).run(**more)


def as_constants(call: Call, dtype: str) -> Call:
    return with_own_range(call, dtype).but(in_parts=False)


def check_rows(call: Call, dtype: str, got: Any, *, equal: bool = False) -> None:
    meaning = Rows(call, dtype).meaning()
    (meaning.check_equal if equal else meaning.check)(got)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_range_for_the_source(shape: str, dtype: str, store: str) -> None:
    _, call = drawn(shape, post=POST, **STORES[store])
    got = run(call, Dynamic(dtype))
    as_constants(call, dtype).meaning().check(got)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("shape", PRODUCTS)
def test_a_range_for_each_row(shape: str, dtype: str, store: str) -> None:
    values, call = drawn(shape, post=POST, **STORES[store])
    columns = call.wei.shape[-2] if call.kind == "matmul" else call.wei[0].size
    rows = values.reshape(-1, columns)
    rows *= 10.0 ** np.linspace(-3, 1, len(rows))[:, None].astype(F)
    got = run(call, Dynamic(dtype, "per_row"))
    if shape != "matmul one source":
        assert got.shape == (*values.shape[: 1 if call.kind[0] == "i" else -1], C)
    check_rows(call, dtype, got)


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_where_float32_is_exact_so_is_the_result(shape: str, dtype: str) -> None:
    """Ranges whose scale is a power of two, small weights: no rounding anywhere."""
    src_dims = SHAPES[shape][0]
    rng = np.random.default_rng(1)
    top, bottom = (127.0, -127.0) if dtype == "s8" else (155.0, -100.0)
    values = rng.integers(-100, 100, src_dims).astype(F) / 16
    values.reshape(-1)[[0, -1]] = np.array([top, bottom], F) / 16
    wei = 2 * rng.integers(-3, 4, SHAPES[shape][1]).astype(np.int8)
    _, call = drawn(shape, values, wei=wei, bias=np.arange(C).astype(F), dst="f32")
    constants = as_constants(call, dtype)
    assert constants.src_q is not None
    assert constants.src_q.scale == 1 / 16
    constants.meaning().check_equal(run(call, Dynamic(dtype)))
    if shape in PRODUCTS:
        columns = wei.shape[-2] if call.kind == "matmul" else wei[0].size
        rows = values.reshape(-1, columns)
        rows[:, 0], rows[:, 1] = top / 16, bottom / 16
        check_rows(call, dtype, run(call, Dynamic(dtype, "per_row")), equal=True)


@pytest.mark.parametrize("extent", ["per_tensor", "per_row"])
@pytest.mark.parametrize("shape", ["matmul", "matmul shared", "matmul batched", "inner_product"])
def test_chains_with_operands_and_residuals(shape: str, extent: Extent) -> None:
    rng = np.random.default_rng(4)
    dims = (*SHAPES[shape][0][:-1], C)
    post = Chain(Sum(0.5), Binary("add", Leaf("other", "s8")), Eltwise("relu"))
    residual = rng.normal(size=dims).astype(F)
    other = {"other": rng.integers(-9, 9, dims).astype(np.int8)}
    _, call = drawn(shape, post=post, dst="f32", residual=residual, operands=other)
    dynamic = Dynamic("s8", extent)
    wanted = run(call, dynamic)
    if extent == "per_row":
        check_rows(call, "s8", wanted)
    else:
        as_constants(call, "s8").meaning().check(wanted)
    out = residual.copy()
    assert run(call.but(residual=None), dynamic, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    wide = np.zeros((*dims[:-1], 2 * C), F)[..., ::2]
    assert run(call, dynamic, out=wide) is wide
    np.testing.assert_array_equal(wide, wanted)


@pytest.mark.parametrize("extent", ["per_tensor", "per_row"])
@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_every_call_finds_its_own_range(dtype: str, extent: Extent) -> None:
    _, call = drawn("matmul", dst="f32")
    dynamic = Dynamic(dtype, extent)
    operator = call.but(src_q=dynamic).operator()
    for again in (operator, copy.copy(operator), pickle.loads(pickle.dumps(operator))):
        for size in (1.0, 1e-3, 1e4, -3.0):
            values = call.src * F(size)
            one = call.but(src=values)
            got = again(values)
            if extent == "per_row":
                check_rows(one, dtype, got)
            else:
                as_constants(one, dtype).meaning().check(got)
    assert len(operator.shapes) == 1


def test_functional_calls_and_float_weights() -> None:
    values, call = drawn("matmul", dst="f32")
    dynamic = Dynamic("s8", "per_row")
    got = matmul(values, call.wei, call.bias, src_q=dynamic, wei_q=call.wei_q)
    check_rows(call, "s8", got)
    dynamic = Dynamic("u8", "per_row")
    layer = MatMul.from_float(call.wei.astype(F) / 64, call.bias, src_q=dynamic, wei_levels=129)
    exact = values @ (call.wei / 64.0) + call.bias
    assert 0 < np.abs(layer(values) - exact).max() < 0.05 * np.abs(exact).max()


def test_a_fake_quantize_behind_a_dynamic_source() -> None:
    high = np.linspace(1.0, 4.0, C)
    post = FakeQuantize(-high, high, -high, high, 255).chain()
    for shape in ("conv", "matmul"):
        _, call = drawn(shape, post=post, dst="f32")
        as_constants(call, "u8").meaning().check(run(call, Dynamic("u8")))
    check_rows(call, "u8", run(call, Dynamic("u8", "per_row")))


def test_the_plan_says_how_rows_are_scaled() -> None:
    _, call = drawn("inner_product", post=POST, dst="f32")
    operator = call.but(src_q=Dynamic("u8", "per_row")).operator()
    planned = operator.prepare((5, 24))
    assert "runs as a matmul" in " ".join(planned.notes)
    assert "source zero point of each call by map" in planned.describe()
    assert planned.primitive.kind != "reference"
    assert "binary_mul" in planned.plan.attr.text()


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("shape", ["matmul", "inner_product", "inner_product 2-D"])
def test_one_row_runs_as_one_tensor(shape: str, dtype: str) -> None:
    _, call = drawn(shape, post=POST, dst="f32")
    one = call.but(src=call.src[:1])
    row, tensor = (one.but(src_q=Dynamic(dtype, e)).operator() for e in ("per_row", "per_tensor"))
    dims = one.src.shape
    assert row.prepare(dims).describe() == tensor.prepare(dims).describe()
    np.testing.assert_array_equal(row(one.src), tensor(one.src))
    if shape == "matmul":  # whatever is in front of the row
        got = row(one.src[None, None])
        np.testing.assert_array_equal(got, tensor(one.src)[None, None])
        assert row.prepare((1, 1, *dims)).primitive.problem.wei.ndim == 2


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("extent", ["per_tensor", "per_row"])
def test_nothing_but_zeros_and_no_rows(dtype: str, extent: Extent) -> None:
    _, call = drawn("matmul", dst="f32")
    dynamic = Dynamic(dtype, extent)
    zeros = run(call.but(src=np.zeros((4, 24), F)), dynamic)
    np.testing.assert_array_equal(zeros, np.tile(np.asarray(call.bias), (4, 1)))
    assert run(call.but(src=np.zeros((0, 24), F)), dynamic).shape == (0, C)


@pytest.mark.parametrize("shape", ["conv", "conv groups", "deconv", "matmul"])
def test_a_map_carries_the_zero_point_of_a_call(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "wrong_with_zero_point", lambda *_: ("a guard",))
    _, call = drawn(shape, post=POST, dst="f32")
    operator = call.but(src_q=Dynamic("u8")).operator()
    got = operator(call.src)
    as_constants(call, "u8").but(in_parts=True).meaning().check(got)
    assert "not by attribute: a guard" in operator.prepare(call.src.shape).notes


WRONG: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "exact rounding": (ArgumentError, "exact_rounding", {"exact_rounding": True}),
    "a bias of units": (DTypeError, "bias", {"bias": np.zeros(C, np.int32)}),
    "a bias for the zero point": (ArgumentError, "zero_point", {"zero_point": "bias"}),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_contradicts_a_dynamic_source(what: str) -> None:
    error, name, change = WRONG[what]
    call = drawn("matmul")[1]
    given = {"bias": None, "wei_q": call.wei_q, "src_q": Dynamic(), **change}
    with pytest.raises(error, match=name):
        MatMul(call.wei, **given)


def test_rows_only_of_products() -> None:
    for shape in ("conv", "deconv"):
        call = drawn(shape)[1]
        with pytest.raises(ArgumentError, match="src_q: got a range per row"):
            call.but(src_q=Dynamic("s8", "per_row")).operator()


@pytest.mark.parametrize("extent", ["per_tensor", "per_row"])
def test_wrong_sources_are_refused_by_name(extent: Extent) -> None:
    call = drawn("matmul", dst="f32")[1]
    dynamic = Dynamic("u8", extent)
    layer = call.but(src_q=dynamic).operator()
    good = np.ones((7, 24), F)
    for bad in (np.nan, np.inf, -np.inf):
        src = good.copy()
        src[3, 3] = bad
        with pytest.raises(ArgumentError, match="src: got values that are not finite"):
            layer(src)
    src = good * F(3e38)
    src[0, 0] = -3e38
    with pytest.raises(ArgumentError, match="a range that float32 can span"):
        layer(src)
    for dtype in (np.uint8, np.int8, np.float16, np.float64):
        with pytest.raises(DTypeError, match="src"):
            layer(good.astype(dtype))
    for dims in ((7, 25), (24,), (), (1, 1, 24, 7)):
        with pytest.raises(ShapeError, match=r"src|wei"):
            layer(np.ones(dims, F))
    for out in (np.empty((1, 1, 7, C), F), np.empty((7, C + 1), F), np.empty((1, 7, C), F)):
        with pytest.raises(ShapeError, match="out"):
            layer(good, out=out)
    with pytest.raises(DTypeError, match="out"):
        layer(good, out=np.empty((7, C), np.uint8))
    with pytest.raises(ArgumentError, match="operands"):
        layer(good, src_scale=np.ones(1, F))
    with pytest.raises(ArgumentError):
        MatMul(
            call.wei, wei_q=call.wei_q, src_q=dynamic, post=Chain(Binary("mul", Leaf("src_scale")))
        )(good)


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("name", list(SHAPES))
def test_it_is_told_what_each_call_brings(name: str, dtype: str) -> None:
    call = drawn(name)[1]
    layer = call.but(src_q=Dynamic(dtype)).operator()
    dims = call.src.shape
    plan, planned = layer.plan(dims), layer.prepare(dims)
    described, runs = planned.describe(), planned.primitive.problem.tensors["src"].dtype
    # Without VNNI, products of s8 run as u8, 128 more.
    assert runs == dtype or not runtime.isa().has_vnni()
    brought = ["src_scale", *(["src_zero_point"] if runs == "u8" else [])]
    for text in (described, str(plan)):
        rows = [line.split() for line in text.splitlines() if line.endswith("of each call")]
        assert [row[0] for row in rows] == brought
    for word in brought:
        assert f"<td>{word}</td>" in plan._repr_html_()
    assert Plan.from_json(plan.to_json()) == plan
    assert "src:common:0.5" in inspect(layer, dims).benchdnn
