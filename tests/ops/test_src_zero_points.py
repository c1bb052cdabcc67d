"""What carries the zero point of a source: the attribute, the bias, a map; all give one result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.steps import Chain, Eltwise
from pyonednn_q.ops import ways
from pyonednn_q.ops.dense import MatMul
from pyonednn_q.qparams import QParams
from support.calls.call import Call
from support.oracle_numbers import numpy_dtype

C = 16
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "conv": ((2, 8, 6, 5), (C, 8, 3, 3), {"padding": 1}),
    "conv unpadded": ((2, 8, 6, 5), (C, 8, 3, 3), {"stride": 2}),
    "conv groups": ((2, 16, 6, 5), (C, 4, 3, 3), {"groups": 4, "padding": 1}),
    "conv depthwise": ((2, C, 6, 5), (C, 1, 3, 3), {"groups": C, "padding": 1}),
    "deconv": ((2, 8, 5, 4), (C, 8, 2, 2), {"stride": 2}),
    "deconv stride 3": ((2, 8, 5, 4), (C, 8, 5, 5), {"stride": 3}),
    "inner_product": ((5, 24), (C, 24), {}),
    "inner_product 2-D": ((3, 4, 2, 3), (C, 4, 2, 3), {}),
    "matmul": ((7, 24), (24, C), {}),
    "matmul batched": ((3, 5, 24), (3, 24, C), {}),
}
EVERYWHERE = ("conv unpadded", "inner_product", "inner_product 2-D", "matmul")
STORES: dict[str, dict[str, Any]] = {
    "f32": {"dst": "f32"},
    "u8": {"dst_q": QParams(0.5, 18, "u8"), "post": Chain(Eltwise("relu"))},
}


def drawn(shape: str, dtype: str = "u8", clean: bool = True, **more: Any) -> Call:
    """A call on codes around a zero point; small, if float32 is to be exact."""
    rng = np.random.default_rng(9)
    src_dims, wei_dims, window = SHAPES[shape]
    point = 30 if dtype == "u8" else -10
    reach, width = (8, 3) if clean else (25, 31)
    scale = np.resize([0.25, 0.5, 1.0], C) * (1.0 if clean else 0.0123)
    bias = rng.normal(size=C) * (0 if clean else 9) + np.arange(C)
    given: dict[str, Any] = {
        "src": (point + rng.integers(-reach, reach, src_dims)).astype(numpy_dtype(dtype)),
        "wei": 2 * rng.integers(-width, width, wei_dims, endpoint=True).astype(np.int8),
        "bias": bias.astype(np.float32),
        "src_q": QParams(0.5 if clean else 0.37, point, dtype),
        "wei_q": QParams(scale, 0, "s8", axis=-1 if shape[0] == "m" else 0),
        "window": window,
        **more,
    }
    return Call(shape.partition(" ")[0], **given)


def by(call: Call, carrier: str) -> Call:
    return call.but(options={**call.options, "zero_point": carrier})


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("carrier", ["bias", "map"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_carrier_gives_the_same(shape: str, carrier: str, dtype: str, store: str) -> None:
    call = by(drawn(shape, dtype, **STORES[store]), carrier)
    if carrier == "bias" and shape not in EVERYWHERE:
        with pytest.raises(ArgumentError, match="zero_point: got 'bias'; wanted 'map'"):
            call.run()
        return
    operator = call.operator()
    call.meaning().check_equal(call.run(operator))
    dirty = by(drawn(shape, dtype, clean=False, **STORES[store]), carrier).but(in_parts=True)
    dirty.meaning().check(dirty.run())
    planned = operator.prepare(call.src.shape)
    assert planned.plan.attr.src_zero_point is None
    point = 30 if dtype == "u8" else -10
    assert f"source zero point {point} by {carrier}" in planned.notes


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_choice_is_right_and_said(shape: str, dtype: str) -> None:
    """Auto: what the guard table says is wrong by attribute goes by bias or map."""
    call = drawn(shape, dtype, dst="f32")
    operator = call.operator()
    call.meaning().check_equal(call.run(operator))
    planned = operator.prepare(call.src.shape)
    text = " ".join(planned.notes)
    has_attribute = planned.plan.attr.src_zero_point is not None
    assert ("by attribute" in text and "not by attribute" not in text) == has_attribute
    assert ("not by attribute" in text) != has_attribute


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_known_to_be_wrong_is_not_asked_for(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "wrong_with_zero_point", lambda *_: ("a guard",))
    call = drawn(shape, dst="f32")
    operator = call.operator()
    call.meaning().check_equal(call.run(operator))
    planned = operator.prepare(call.src.shape)
    assert planned.plan.attr.src_zero_point is None
    assert "not by attribute: a guard" in planned.notes
    carrier = "bias" if shape in EVERYWHERE else "map"
    assert f"source zero point 30 by {carrier}" in planned.notes


@pytest.mark.parametrize("carrier", ["bias", "map"])
def test_a_bias_in_units_of_the_accumulator(carrier: str) -> None:
    units = (np.arange(C) * 3 - 20).astype(np.int32)
    call = by(drawn("conv unpadded", bias=units, dst="f32"), carrier)
    call.meaning().check_equal(call.run())


def test_an_inner_product_stays_one_with_its_zero_point_in_the_bias() -> None:
    planned = by(drawn("inner_product", dst="f32"), "bias").operator().prepare((5, 24))
    assert planned.form.asked.kind == "inner_product"
    by_attribute = drawn("inner_product", dst="f32").operator().prepare((5, 24))
    assert by_attribute.form.asked.kind == "matmul"


def test_the_exact_form_keeps_its_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bits are promised: a bias or a map would change the roundings."""
    monkeypatch.setattr(ways, "wrong_with_zero_point", lambda *_: ("a guard",))
    call = drawn("matmul", bias=None, dst_q=QParams(0.7, 31, "u8"), exact_rounding=True)
    operator = call.operator()
    call.meaning().check_equal(call.run(operator))
    assert operator.plan(call.src.shape).attr.src_zero_point is not None
    with pytest.raises(ArgumentError, match="zero_point: got 'map'"):
        by(call, "map").operator()


@pytest.mark.parametrize("carrier", ["attribute", "bias", "map"])
def test_a_zero_point_of_0_needs_no_carrier(carrier: str) -> None:
    call = by(drawn("conv", src_q=QParams(0.5, 0, "u8"), dst="f32"), carrier)
    operator = call.operator()
    call.meaning().check_equal(call.run(operator))
    assert not operator.prepare(call.src.shape).notes
    assert not operator.plan(call.src.shape).leaves


def test_bitwise_means_the_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "wrong_with_zero_point", lambda *_: ("a guard",))
    operator = drawn("matmul", dst="f32", options={"policy": "bitwise"}).operator()
    assert operator.plan((7, 24)).attr.src_zero_point is not None


@pytest.mark.parametrize("value", ["nothing", None, 3, "", ["map"]])
def test_another_carrier_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match="zero_point"):
        by(drawn("conv"), value).operator()


def test_weights_in_any_order_in_memory() -> None:
    """A batch of transposed matrices: oneDNN does not pack them beside a zero point as they lie."""
    rng = np.random.default_rng(4)
    src = rng.integers(0, 256, (3, 5, 24)).astype(np.uint8)
    wei = rng.integers(-60, 61, (3, 16, 24)).astype(np.int8).transpose(0, 2, 1)
    src_q, wei_q = QParams(1.0, 117, "u8"), QParams(1.0, 0, "s8")
    operator = MatMul(wei, src_q=src_q, wei_q=wei_q, zero_point="attribute")
    np.testing.assert_array_equal(operator(src), (src.astype(int) - 117) @ wei.astype(int))
