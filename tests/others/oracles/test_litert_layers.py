"""LiteRT's kernels, by name: which rule each requantizes with, to the last output.

Every cell of `which_method`'s table for the version that installs. Sums are put where rules part,
so that each cell speaks for its rule and against all others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.requantize import requantizer
from pyonednn_q.requantize.catalogue import DialectName
from pyonednn_q.requantize.method import VECTOR, Method, which_method
from support.oracles import litert, litert_layers
from support.oracles.judgement import Judgement
from support.oracles.layers import KINDS, Layer, drawn

pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed: pip install .[oracles]")
pytest.importorskip("flatbuffers", reason="flatbuffers is not installed: pip install .[oracles]")

Array = np.ndarray[Any, Any]

FRAMEWORKS = {
    "reference": "tflite_reference",
    "optimised": "tflite_optimised",
    "xnnpack": "xnnpack",
}
CELLS = [
    (op, dtype, granularity)
    for op in ("conv", "pointwise", "depthwise", "deconv", "inner_product")
    for dtype, granularity in (("s8", "per_tensor"), ("s8", "per_channel"), ("u8", "per_tensor"))
]


def method(op: str, dtype: str, granularity: str, resolver: str) -> Method:
    return which_method(
        FRAMEWORKS[resolver],
        op if op in {"deconv", "inner_product"} else "conv",
        dtype,
        granularity,
        depthwise=op == "depthwise",
        pointwise=op == "pointwise",
    )


def expected(layer: Layer, rule: Method) -> Array:
    """The rule's result; the tail's where channels fill no whole vector."""
    result = layer.expected(rule.dialect)
    if rule.tail is None:
        return result
    whole = layer.channels // VECTOR * VECTOR
    return np.concatenate([result[:, :whole], layer.expected(rule.tail)[:, whole:]], axis=1)


@pytest.mark.parametrize("resolver", litert.RESOLVERS)
@pytest.mark.parametrize(("op", "dtype", "granularity"), CELLS)
def test_every_kernel_requantizes_by_its_named_rule(
    op: str, dtype: str, granularity: str, resolver: str
) -> None:
    rule = method(op, dtype, granularity, resolver)
    judgement = Judgement()
    for kind in KINDS:
        for seed in range(10 if op == "inner_product" else 4):
            rng = np.random.default_rng([seed, len(op), len(granularity), *kind.encode()])
            layer = drawn(rng, op, dtype, granularity, rule.dialect, kind)
            judgement.add(layer, litert_layers.run(layer, resolver), expected(layer, rule))
    assert judgement.wrong == 0, f"{judgement}"
    assert judgement.not_told_apart((rule.dialect,)) == []


@pytest.mark.parametrize("op", ["depthwise", "deconv"])
@pytest.mark.parametrize("channels", [1, 7, 8, 9, 15, 16, 23, 24, 40])
def test_vectors_and_tails_have_rules_of_their_own(op: str, channels: int) -> None:
    rule = method(op, "s8", "per_channel", "optimised")
    judgement = Judgement()
    for seed in range(4):
        rng = np.random.default_rng([seed, channels])
        layer = drawn(rng, op, "s8", "per_channel", rule.dialect, channels=channels)
        judgement.add(layer, litert_layers.run(layer, "optimised"), expected(layer, rule))
    assert judgement.wrong == 0
    assert rule.tail is not None
    absent = {rule.dialect: channels < VECTOR, rule.tail: channels % VECTOR == 0}
    for name, missing in absent.items():
        other = next(each for each in absent if each != name)
        assert (judgement.from_rule[other] == 0) == missing, name


@pytest.mark.executed
@pytest.mark.parametrize("resolver", litert.RESOLVERS)
def test_the_loops_in_cpp_give_the_same(resolver: str) -> None:
    from pyonednn_q.native.passes import requantize

    rule = method("pointwise", "s8", "per_channel", resolver)
    for kind in KINDS:
        rng = np.random.default_rng([1, *kind.encode()])
        layer = drawn(rng, "pointwise", "s8", "per_channel", rule.dialect, kind, channels=64)
        loops = requantizer(rule.dialect, **layer.constants)
        assert np.array_equal(requantize(layer.acc, loops), litert_layers.run(layer, resolver))


@pytest.mark.executed
@pytest.mark.parametrize("dtype", ["s8", "u8"])
@pytest.mark.parametrize(
    ("activation", "bounds"), [(1, (0.0, np.inf)), (2, (-1.0, 1.0)), (3, (0.0, 6.0))]
)
def test_a_clip_is_the_fused_activation_of_a_call(
    dtype: str, activation: int, bounds: tuple[float, float]
) -> None:
    """RELU, RELU_N1_TO_1 and RELU6 by their numbers in TFLite."""
    rule: Any = method("conv", dtype, "per_tensor", "reference")
    clamped = 0
    for seed in range(8):
        rng = np.random.default_rng([seed, activation])
        layer = drawn(rng, "conv", dtype, "per_tensor", rule.dialect)
        # The same multipliers, with steps of a size that both bounds lie within the codes.
        up = np.float32(2.0 ** np.round(np.log2(0.03 / float(layer.dst_scale))))
        layer = replace(layer, src_scale=layer.src_scale * up, dst_scale=layer.dst_scale * up)
        call = pq.Conv(
            layer.wei,
            layer.bias,
            src_q=pq.QParams(float(layer.src_scale), layer.src_zero_point, dtype),
            wei_q=pq.QParams(float(layer.wei_scale[0]), layer.wei_zero_point, dtype),
            dst_q=pq.QParams(float(layer.dst_scale), layer.dst_zero_point, dtype),
            post=pq.Chain(pq.Clip(*bounds)),
            requantize=cast(DialectName, rule.dialect),
            self_check=True,
        )
        got = call(layer.src)
        np.testing.assert_array_equal(got, litert_layers.run(layer, "reference", activation))
        clamped += int((got != layer.expected(rule.dialect)).sum())
    assert clamped > 100
