"""FakeQuantize constants in the rank of the tensor: (1, C, 1, 1), (C, 1, 1, 1)."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.layer_composer import compose_layer
from pyonednn_q.errors import ShapeError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.primitive.problem import ConvProblem, InnerProductProblem, MatMulProblem

HIGH = np.array([1.0, 2.0, 4.0])
FLAT = FakeQuantize(-HIGH, HIGH, -HIGH, HIGH, 255)
RNG = np.random.default_rng(3)


def ranked(shape: tuple[int, ...], levels: int = 255) -> FakeQuantize:
    high = HIGH.reshape(shape)
    return FakeQuantize(-high, high, -high, high, levels)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1, 3, 1, 1), -3), ((3, 1, 1, 1), -4), ((3, 1), -2), ((1, 3), -1), ((3, 1, 1), -3)],
)
def test_ranks_are_values_along_an_axis(shape: tuple[int, ...], axis: int) -> None:
    fq = ranked(shape)
    assert (fq.axis, FLAT.axis) == (axis, None)
    assert fq == FLAT
    assert hash(fq) == hash(FLAT)
    assert {pickle.loads(pickle.dumps(fq)).axis, copy.deepcopy(fq).axis} == {axis}
    assert fq.chain() == FLAT.chain()


@pytest.mark.parametrize("shape", [(1, 3, 1, 1), (3, 1, 1, 1), (1, 1, 1, 3)])
def test_the_definition_runs_along_the_channels_of_the_constants(shape: tuple[int, ...]) -> None:
    fq = ranked(shape)
    assert fq.axis is not None
    x = RNG.uniform(-5, 5, (3, 3, 3, 3))
    wanted = FLAT(np.moveaxis(x, fq.axis, 1))
    np.testing.assert_array_equal(np.moveaxis(fq(x), fq.axis, 1), wanted)
    np.testing.assert_array_equal(fq(x, axis=2), FLAT(x, axis=2))
    assert np.array_equal(fq.evaluate_f32(x), FLAT.evaluate_f32(x, axis=fq.axis))


def test_one_value_in_any_rank_is_per_tensor() -> None:
    one = np.full((1, 1, 1, 1), 2.0)
    fq = FakeQuantize(-one, one, -one, one, 255)
    assert (fq.axis, fq.channels) == (None, None)
    mixed = FakeQuantize(-one, HIGH.reshape(1, 3, 1, 1) + 2, 0.0, 1.0)
    assert (mixed.axis, mixed.channels) == (-3, 3)
    symmetric = FakeQuantize.symmetric(HIGH.reshape(3, 1, 1, 1), 255)
    assert (symmetric, symmetric.axis) == (FLAT, -4)


def test_channels_in_two_places_are_refused() -> None:
    high = HIGH.reshape(1, 3, 1, 1)
    with pytest.raises(ShapeError, match="output_low: got channels along dimension -4; wanted -3"):
        FakeQuantize(-high, high, -high.reshape(3, 1, 1, 1), high)
    with pytest.raises(ShapeError, match="input_low: got shape"):
        FakeQuantize(np.zeros((3, 3, 1, 1)), 1.0, 0.0, 1.0)
    with pytest.raises(ShapeError, match="output_low: got channels along dimension -3"):
        FakeQuantize.symmetric(HIGH.reshape(3, 1, 1, 1), output_low=-high, output_high=high)


CASES: list[tuple[Any, tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [
    (ConvProblem.of((1, 2, 4, 4), (3, 2, 1, 1)), (3, 2, 1, 1), (3, 1, 1, 1), (1, 3, 1, 1)),
    (ConvProblem.of((1, 3, 4, 4), (3, 1, 1, 1, 1)), (3, 1, 1, 1, 1), (3, 1, 1, 1), (3, 1, 1)),
    (InnerProductProblem.of((2, 2), 3), (3, 2), (3, 1), (1, 3)),
    (MatMulProblem.of((2, 2), (2, 3)), (2, 3), (1, 3), (3,)),
]


@pytest.mark.parametrize(("problem", "wei_dims", "of_wei", "of_dst"), CASES)
def test_layers_take_ranges_along_output_channels_alone(
    problem: Any, wei_dims: tuple[int, ...], of_wei: tuple[int, ...], of_dst: tuple[int, ...]
) -> None:
    wei = RNG.normal(0, 1, wei_dims)
    src_fq = FakeQuantize(0, 2.55, 0, 2.55)

    def layer(wei_fq: FakeQuantize, dst_fq: FakeQuantize) -> object:
        return compose_layer(problem, wei, src_fq=src_fq, wei_fq=wei_fq, dst_fq=dst_fq)

    assert layer(ranked(of_wei), ranked(of_dst)) == layer(FLAT, FLAT)
    wrong = ranked((3, 1, 1, 1, 1, 1))
    with pytest.raises(ShapeError, match="wei_fq: got ranges along dimension -6"):
        layer(wrong, FLAT)
    with pytest.raises(ShapeError, match="dst_fq: got ranges along dimension -6"):
        layer(FLAT, wrong)
