"""evaluate_bounded: float32, in any order, stays within the bound; the bound is no wide guess."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.check.meaning import evaluate_bounded
from pyonednn_q.expr.evaluate import evaluate, evaluate_f32
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Eltwise, Leaf, Round, Sum
from support.plans.random_chains import dirty_chain


@pytest.mark.parametrize("seed", range(100))
def test_float32_stays_within(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = dirty_chain(rng, 3)
    x = rng.normal(0, 5, (64, 3)).astype(np.float32)
    before = rng.normal(0, 2, x.shape).astype(np.float32)
    y, error = evaluate_bounded(chain, x, 0.0, dst_before=before)
    np.testing.assert_array_equal(y, evaluate(chain, x, dst_before=before))
    off = np.abs(evaluate_f32(chain, x, dst_before=before) - y)
    assert (off <= error).all()


def test_the_bound_of_plain_steps_is_a_few_roundings() -> None:
    x = np.linspace(-4, 4, 64)[:, np.newaxis]
    _, error = evaluate_bounded(Chain(Affine(3.0, 1.0), Clip(0, 6), Affine(0.5)), x, 0.0)
    assert 0 < error.max() < 16 * 12 * 2.0**-24


@pytest.mark.parametrize("step", [Sum(0.3), Binary("add", Leaf("more", "f32", "full"))])
def test_what_cancels_was_rounded_as_large_as_it_was(step: Sum | Binary) -> None:
    rng = np.random.default_rng(0)
    before = rng.uniform(-1e6, 1e6, (64, 3)).astype(np.float32)
    more = before if isinstance(step, Binary) else before * np.float32(0.3)
    x = (-more + rng.uniform(-0.5, 0.5, more.shape)).astype(np.float32)
    given: dict[str, Any] = {"dst_before": before, "operands": {"more": before}}
    y, error = evaluate_bounded(Chain(step), x, 0.0, **given)
    off = np.abs(evaluate_f32(Chain(step), x, **given) - y)
    assert (off <= error).all()
    assert (error > 2.0**-25 * np.abs(x)).all()


def test_an_error_is_what_is_left_of_it_behind_a_step() -> None:
    """To either side, whichever is more."""
    for step, wanted in (
        (Clip(0, 9), [0.5, 1.0]),
        (Clip(-9, 0), [1.0, 0.5]),
        (Eltwise("relu"), [0.5, 1.0]),
    ):
        y, error = evaluate_bounded(Chain(step), [[-0.5, 0.5]], 1.0)
        assert np.allclose(error, [wanted], rtol=0.0, atol=2.0**-23)
    for step in (Clip(0, 6), Eltwise("clip", 0.0, 6.0)):
        y, error = evaluate_bounded(Chain(step), [[1e6]], 0.0)
        assert (y.item(), error.item()) == (6.0, 6.0 * 2.0**-24)


def test_a_function_is_off_by_parts_of_what_is_largest() -> None:
    """Its value, its argument, its parameters, or 1."""
    for step, x, largest in (
        (Eltwise("tanh"), 0.5, 1.0),
        (Eltwise("tanh"), -64.0, 64.0),
        (Eltwise("elu", 4.0), 0.5, 4.0),
    ):
        _, error = evaluate_bounded(Chain(step), [[x]], 0.0)
        assert error.item() == largest * 2.0**-16


def test_a_round_is_exact_away_from_ties() -> None:
    y, error = evaluate_bounded(Chain(Round()), [[0.2, 0.5, 1.4]], 1e-4)
    assert y.tolist() == [[0.0, 0.0, 1.0]]
    assert error.tolist() == [[0.0, 1.0, 0.0]]


def test_what_leaves_float32_is_not_judged() -> None:
    _, error = evaluate_bounded(Chain(Eltwise("exp")), [[100.0, 1.0]], 0.0)
    assert np.isinf(error[0, 0])
    assert error[0, 1] < 1e-3
