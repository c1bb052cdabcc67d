"""Stages computed in NumPy give what the chain means; and what they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.stages import DST, RESIDUAL, SRC, Stage, quantizing_reorder, stages
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_forms import codes
from pyonednn_q.expr.steps import Affine, Binary, Chain, Eltwise, Leaf, PRelu, Round, Sum
from pyonednn_q.primitive.attr import Scale, ZeroPoint
from pyonednn_q.primitive.tensor import TensorSpec
from support import oracle
from support.oracle_numbers import convert, numpy_dtype
from support.plans.random_chains import random_chain

C = 6


def run(made: tuple[Stage, ...], given: dict[str, Any]) -> Any:
    """Compute stages by the oracle of primitives."""
    values = dict(given)
    for stage in made:
        arrays = {name: values[value] for name, value in stage.inputs}
        arrays |= {name: vec.values() for name, vec in stage.values}
        arrays["src1"] = np.ones((1,) * len(stage.problem.dst.dims))
        for name, value in arrays.items():
            if name.startswith("post_op_"):
                arrays[name] = np.reshape(value, stage.spec(name).dims)
        values[stage.output] = oracle.run(stage.problem, stage.attr, arrays).dst
    return values[DST]


@pytest.mark.parametrize("dims", [(5, C), (2, C, 3)])
@pytest.mark.parametrize("dst", ["u8", "s8", "s32", "f32", "bf16"])
def test_random_chains(dims: tuple[int, ...], dst: str) -> None:
    rng = np.random.default_rng(11)
    for _ in range(40):
        chain = random_chain(rng, C)
        x = rng.integers(-400, 400, dims).astype(np.float32) / 8
        before = rng.integers(0, 50, dims).astype(numpy_dtype(dst))
        got = run(stages(chain, dims, dst, residual=dst), {SRC: x, RESIDUAL: before})
        want = evaluate(chain, x, dst_before=before.astype(np.float64))
        np.testing.assert_array_equal(got, convert(want, dst))


def test_one_stage_carries_up_to_32_post_ops() -> None:
    made = stages(Chain(*[Affine(-1.0, 1.0)] * 70), (4, C), "u8")
    assert [len(stage.attr.post_ops) for stage in made] == [32, 32, 6]
    assert [stage.problem.dst.dtype for stage in made] == ["f32", "f32", "u8"]


def test_prelu_per_channel_is_two_halves() -> None:
    slope = np.arange(C) - 2.0
    made = stages(Chain(Round(), PRelu(slope)), (4, C), "f32")
    assert [stage.attr.text() for stage in made] == [
        "eltwise_round",
        "eltwise_clip:-inf:0.0 binary_mul:f32:1x6",
        "eltwise_relu binary_add:f32:4x6",
    ]


@pytest.mark.parametrize("extent", ["full", "per_channel", "per_tensor"])
@pytest.mark.parametrize("dtype", ["u8", "s8", "s32", "f32", "bf16", "f16"])
def test_operands_are_converted_to_f32(dtype: str, extent: Any) -> None:
    dims = {"full": (4, C), "per_channel": (C,), "per_tensor": ()}[extent]
    value = np.asarray(np.random.default_rng(1).integers(0, 9, dims)).astype(numpy_dtype(dtype))
    chain = Chain(Binary("mul", Leaf("r", dtype, extent)), Eltwise("relu"))
    made = stages(chain, (4, C), "f32")
    assert [stage.problem.kind for stage in made] == ["reorder"] * (dtype != "f32") + ["binary"]
    x = np.arange(4.0 * C).reshape(4, C).astype(np.float32) - 9
    flat = value.reshape(made[0].spec(made[0].inputs[-1][0]).dims)
    want = evaluate(chain, x, operands={"r": value.astype(np.float64)})
    np.testing.assert_array_equal(run(made, {SRC: x, "r": flat}), want)


def test_an_empty_chain_is_a_store() -> None:
    (stage,) = stages(Chain(), (4, C), "u8")
    assert stage.attr.post_ops == ()
    assert (stage.problem.dst.dtype, stage.output) == ("u8", DST)


@pytest.mark.parametrize("name", [SRC, DST, RESIDUAL])
def test_names_of_the_stages_own_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="another name"):
        stages(Chain(Binary("add", Leaf(name))), (4, C), "f32")


def test_a_leaf_may_look_like_a_stage_s_name() -> None:
    chain = Chain(
        Binary("add", Leaf("stage_0")), PRelu(np.arange(C)), Binary("add", Leaf("stage_1"))
    )
    x = np.random.default_rng(0).integers(-9, 9, (4, C)).astype(np.float32)
    one, other = x + 1, x - 5
    got = run(stages(chain, (4, C), "f32"), {SRC: x, "stage_0": one, "stage_1": other})
    want = evaluate(chain, x, operands={"stage_0": one, "stage_1": other})
    np.testing.assert_array_equal(got, want)


def test_a_sum_needs_a_type() -> None:
    with pytest.raises(ArgumentError, match="residual: got None"):
        stages(Chain(Sum()), (4, C), "f32")


def test_dims_are_flat() -> None:
    with pytest.raises(ShapeError, match="dims"):
        stages(Chain(), (2, C, 3, 4), "f32")


@pytest.mark.parametrize(
    ("fq", "names"),
    [
        (FakeQuantize(-0.5, 0.775, 0, 255), ["dst_scale", "dst_zero_point"]),
        (FakeQuantize(-100, 155, 0, 255), ["dst_zero_point"]),
        (FakeQuantize(0, 0.775, 0, 255), ["dst_scale"]),
        (FakeQuantize(0, 255, 0, 255), []),
    ],
)
def test_a_reorder_is_told_of_what_it_is_given(fq: FakeQuantize, names: list[str]) -> None:
    src, dst = (TensorSpec.dense((2, 3), dtype) for dtype in ("f32", "u8"))
    stage = quantizing_reorder(Chain(*codes(fq).quantize), src, dst)
    assert stage is not None
    assert [name for name, _ in stage.values] == names
    assert stage.attr.dst_scale == (Scale() if "dst_scale" in names else None)
    assert stage.attr.dst_zero_point == (ZeroPoint() if "dst_zero_point" in names else None)
