"""FakeQuantize with two levels: a threshold, or the nearer of two ends.

Accepted: the definition, element by element: x at most the threshold gives output_low; with a range
that is not empty the middle is the threshold, and the middle itself goes down. As an array
function, as a chain, and as post-ops of a primitive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.expr.evaluate import evaluate, evaluate_f32
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_forms import binarising_threshold
from pyonednn_q.expr.fq_orders import FqOrder, fake_quantize
from pyonednn_q.expr.steps import Affine
from pyonednn_q.expr.vec import Vec
from support.definitions import rational
from support.definitions.composing import SIGNED, along, composed, entering, layer_to, ops
from support.definitions.runs import Run
from support.oracle_numbers import convert
from support.plans.chains import CHANNELS as C

THRESHOLD = np.resize([0.5, -3.0, 2.25, 0.0, 7.0], C)
OUTPUTS = [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (3.0, 3.0), (-2.5, 0.5)]


def around(threshold: float) -> Any:
    at = np.float32(threshold)
    sides = [np.nextafter(at, np.float32(end)) for end in (-np.inf, np.inf)]
    return np.array([at, *sides, at - 1, at + 1, -1e30, 1e30, 0.0, -0.0], np.float32)


@pytest.mark.parametrize("out", OUTPUTS)
@pytest.mark.parametrize("threshold", [0.5, 0.0, -3.25, 1e-40, 1e30])
def test_threshold_is_the_definition(threshold: float, out: tuple[float, float]) -> None:
    x = around(threshold)
    at = np.float32(threshold)
    want = [out[1] if value > at else out[0] for value in x]
    assert fake_quantize(x, at, at, *out, levels=2).tolist() == want
    chain = FakeQuantize(float(at), float(at), *out, 2).chain()
    assert evaluate(chain, x).tolist() == want
    assert evaluate_f32(chain, x).tolist() == want


@pytest.mark.parametrize("out", OUTPUTS)
@pytest.mark.parametrize("ends", [(0.0, 1.0), (-1.3, 2.1), (-4.0, -3.0)])
def test_nearer_end_is_the_definition(ends: tuple[float, float], out: tuple[float, float]) -> None:
    ranges = (*ends, *out)
    x = np.concatenate([around(v) for v in (*ends, sum(ends) / 2)])
    for order, function in rational.ORDERS.items():
        got = fake_quantize(x, *ranges, levels=2, order=_order(order))
        np.testing.assert_array_equal(got, rational.apply(function, x, ranges, 2), err_msg=order)


def _order(name: str) -> FqOrder:
    orders: dict[str, FqOrder] = {"core": "core", "fma": "fma", "subgraph": "subgraph"}
    return orders[name]


@pytest.mark.parametrize("out", [(0.0, 1.0), (1.0, 0.0)])
@pytest.mark.parametrize("ends", [(0.5, 0.5), (0.25, 1.25), (-2.0, 6.0)])
def test_recognised_threshold_is_where_it_changes(
    ends: tuple[float, float], out: tuple[float, float]
) -> None:
    fq = FakeQuantize(*ends, *out, 2)
    threshold = binarising_threshold(fq)
    assert threshold == Vec(sum(ends) / 2)
    x = np.arange(-64, 64)[None] / 16.0
    np.testing.assert_array_equal(fq(x), np.where(x > sum(ends) / 2, out[1], out[0]))


@pytest.mark.parametrize(
    "fq",
    [
        FakeQuantize(0, 1, 0, 1, 3),
        FakeQuantize(0.5, 0.5, 0, 2, 2),
        FakeQuantize(0.5, 0.5, -1, 1, 2),
        FakeQuantize(0.5, 0.5, 1, 1, 2),
        FakeQuantize(0.5, 0.5, 0, [1, 0], 2),
    ],
    ids=str,
)
def test_others_are_not_recognised(fq: FakeQuantize) -> None:
    assert binarising_threshold(fq) is None


@pytest.mark.parametrize("dst", ["u8", "s8", "f32"])
@pytest.mark.parametrize("out", OUTPUTS)
def test_threshold_on_a_primitive(out: tuple[float, float], dst: str, run: Run) -> None:
    """One comparison per channel; values that equal their threshold stay below."""
    layer = layer_to(dst)
    plan = composed(layer, FakeQuantize(THRESHOLD, THRESHOLD, *out, 2).chain())
    x = entering(layer)
    assert (x == along(THRESHOLD)).any()
    if out[0] != out[1]:
        assert ops(plan)[0] == "binary_gt"
    want = np.where(x > along(THRESHOLD), out[1], out[0])
    np.testing.assert_array_equal(run(layer, plan), convert(want, dst))


@pytest.mark.parametrize("dst", ["u8", "f32"])
def test_nearer_end_on_a_primitive(dst: str, run: Run) -> None:
    """A range per channel, met by factors of both signs: middles are hit, and go down."""
    layer, low = layer_to(dst), THRESHOLD - 1.0
    high = low + np.resize([2.0, 4.0, 1.0], C)
    plan = composed(layer, Affine(SIGNED), FakeQuantize(low, high, 0, 1, 2).chain())
    x, middle = along(SIGNED) * entering(layer), along((low + high) / 2)
    assert (x == middle).any()
    np.testing.assert_array_equal(run(layer, plan), (x > middle).astype(float))
