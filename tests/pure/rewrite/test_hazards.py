"""Hazards of the reference implementation, each with the answer that is right.

Numbers are those of the list of hazards that this catalogue was written against.
"""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_orders import fake_quantize
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Eltwise, PRelu, Round
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.catalogue import Normal, normalise
from pyonednn_q.rewrite.ends import Acc, Dst, Takes

TAKER = Acc(takes_scale=Takes.PER_CHANNEL, takes_shift=Takes.PER_CHANNEL)


def stored(normal: Normal, acc: np.ndarray) -> np.ndarray:
    """Compute what ends up in dst, from the accumulator on."""
    rows = acc * normal.acc.scale.spread(acc.shape[0])[:, None]
    value = evaluate(normal.chain, rows + normal.acc.shift.spread(acc.shape[0])[:, None], axis=0)
    lo, hi = {"u8": (0, 255), "s8": (-128, 127)}.get(normal.dst.dtype or "", (-np.inf, np.inf))
    return np.clip(np.rint(value) if np.isfinite(lo) else value, lo, hi)


def meant(chain: Chain, acc: np.ndarray) -> np.ndarray:
    return evaluate(chain, acc, axis=0)


ROWS = np.tile(np.arange(-40.0, 41.0), (3, 1))


class TestNegativeMultiplierAcrossRelu:
    """Hazard 1: a negative factor was folded through relu and prelu."""

    @pytest.mark.parametrize("factor", [-30.0, [-30.0, 2.0, 0.5]])
    def test_relu(self, factor: float | list[float]) -> None:
        chain = Chain(Eltwise("relu"), Affine(factor), FakeQuantize(0, 2.55, 0, 255).chain())
        result = normalise(chain, acc=TAKER, dst=Dst("u8"))
        assert (stored(result, ROWS) == meant(chain, ROWS)).all()

    def test_the_example(self) -> None:
        chain = Chain(Eltwise("relu"), Affine(-30.0), FakeQuantize(0, 2.55, 0, 255).chain())
        result = normalise(chain, acc=TAKER, dst=Dst("u8"))
        assert stored(result, np.full((1, 1), -10.0)).item() == 0  # the reference: 255

    def test_relu_of_a_negative_factor_is_a_min(self) -> None:
        result = normalise(Chain(Eltwise("relu"), Affine(-0.5)), acc=TAKER)
        assert result.chain == Chain(Clip(hi=0.0))
        assert result.acc.scale == Vec(-0.5)

    @pytest.mark.parametrize("slope", [0.25, [0.25, 0.5, 4.0]])
    def test_prelu(self, slope: float | list[float]) -> None:
        chain = Chain(PRelu(slope), Affine([-2.0, 0.5, -4.0]), Affine(1.0, 3.0))
        result = normalise(chain, acc=TAKER)
        assert (stored(result, ROWS) == meant(chain, ROWS)).all()
        assert result.acc.scale != Vec(1.0)

    def test_prelu_without_a_right_identity_is_refused(self) -> None:
        chain = Chain(PRelu([0.5, 0.0, 1.0]), Affine([-1.0, -1.0, 1.0]))
        result = normalise(chain, acc=TAKER)
        assert result.chain == chain
        reasons = [event.reason for event in result.trace.refused]
        assert "scale is negative in channel 1 and slope 0 is not above 0" in reasons


def test_scale_that_returns_to_one_is_not_forgotten() -> None:
    """Hazard 2: a published weight scale went stale when the product became exactly 1."""
    taker = Acc(scale=Vec(0.5), takes_scale=Takes.PER_CHANNEL, takes_shift=Takes.PER_CHANNEL)
    result = normalise(Chain(Affine(2.0)), acc=taker)
    assert (result.acc.scale, result.chain) == (Vec(1.0), Chain())


class TestDisjointClampAndFakeQuantize:
    """Hazard 3: clamp [3, 6] before a range of [-1, 1] gave an inverted crop."""

    def test_levels(self) -> None:
        chain = Chain(Clip(3, 6), FakeQuantize(-1, 1, 0, 255).chain())
        result = normalise(chain)
        assert (evaluate(result.chain, ROWS, axis=0) == 255).all()  # the reference: up to 510

    def test_clips(self) -> None:
        result = normalise(Chain(Clip(0, 1), Clip(2, 3)))
        assert result.chain == Chain(Affine(0.0, 2.0))

    def test_clip_below_zero_then_relu(self) -> None:
        result = normalise(Chain(Clip(-5, -2), Eltwise("relu")))
        assert result.chain == Chain(Affine(0.0, 0.0))


def test_bias_is_rescaled_with_the_scale() -> None:
    """Hazard 4: a scale that follows the bias belongs to the bias as well."""
    taker = Acc(shift=Vec(3.0), takes_scale=Takes.PER_CHANNEL, takes_shift=Takes.PER_CHANNEL)
    result = normalise(Chain(Affine(0.5)), acc=taker)
    assert (result.acc.scale, result.acc.shift) == (Vec(0.5), Vec(1.5))


def test_bias_of_the_run_time_takes_nothing() -> None:
    taker = Acc(because="the bias is a run-time argument")
    result = normalise(Chain(Affine(0.5)), acc=taker)
    assert result.chain == Chain(Affine(0.5))
    assert [event.reason for event in result.trace.refused] == [taker.because]


class TestOddShift:
    """Hazard 5: an odd integer shift was moved into the round, and ties went the other way."""

    def test_255_levels_keep_their_ties(self) -> None:
        result = normalise(Chain(Affine(0.25), Round(), Affine(1.0, -127.0)), dst=Dst("s8"))
        assert result.chain == Chain(Affine(0.25), Round(), Affine(1.0, -127.0))
        reasons = [event.reason for event in result.trace.refused]
        assert "shift is odd, -127: ties would go the other way" in reasons

    def test_256_levels_lose_the_round(self) -> None:
        result = normalise(Chain(Affine(0.25), Round(), Affine(1.0, -128.0)), dst=Dst("s8"))
        assert result.chain == Chain(Affine(0.25, -128.0))

    def test_policy_fast_moves_it_and_says_so(self) -> None:
        chain = Chain(Affine(0.25), Round(), Affine(1.0, -127.0))
        result = normalise(chain, dst=Dst("s8"), policy="fast")
        assert result.chain == Chain(Affine(0.25, -127.0))
        assert str(result.trace.exactness) == "BOUNDED(1)"


def test_reversed_subtraction_is_not_a_scale_shift() -> None:
    """Hazard 6: const - x was taken for x - const. Here x is always on the left."""
    assert normalise(Chain(Binary("sub", 3.0))).chain == Chain(Affine(1.0, -3.0))
    assert str(Binary("sub", 3.0)) == "x - 3"
    assert evaluate(Chain(Affine(-1.0, 3.0)), [[1.0]]).item() == 2.0


def test_reversed_division_is_not_a_scale() -> None:
    """Hazard 6: const / x was taken for x / const. A constant over x is a power of x."""
    assert normalise(Chain(Binary("div", 4.0))).chain == Chain(Affine(0.25))
    over = Chain(Eltwise("pow", 4.0, -1.0))
    assert normalise(over, acc=TAKER).chain == over
    assert evaluate(over, [[8.0]]).item() == 0.5


@pytest.mark.parametrize("levels", [3, 256])
def test_empty_range_is_a_threshold(levels: int) -> None:
    """Hazard 7: il == ih gave NaN parameters."""
    fq = FakeQuantize(0.5, 0.5, 0, 255, levels)
    x = np.array([[0.25, 0.5, 0.75]], np.float32)
    assert fake_quantize(x, 0.5, 0.5, 0, 255, levels=levels).tolist() == [[0, 0, 255]]
    for found in (fq(x), fq.evaluate_f32(x), evaluate(fq.chain(), x)):
        assert found.tolist() == [[0, 0, 255]]
    with pytest.raises(ArgumentError, match="scale_in: got a threshold"):
        _ = fq.scale_in
    mixed = FakeQuantize([0, 0.5], [1, 0.5], 0, 255, levels)
    assert mixed([[1, 0.5], [2, 0.75]]).tolist() == [[255, 0], [255, 255]]
    with pytest.raises(ArgumentError, match="empty range, width 0 in channel 1"):
        mixed.chain()


def test_reversed_range_never_becomes_a_chain() -> None:
    """Hazard 8: il > ih had four behaviours: falling levels, or one level for all."""
    x = np.array([-2, -0.5, 0.5, 2], np.float32)
    fq = FakeQuantize(1, -1, 0, 255)
    for found in (fake_quantize(x, 1, -1, 0, 255, levels=256), fq(x), fq.evaluate_f32(x)):
        assert found.tolist() == [0, 191, 64, 255]
    with pytest.raises(ArgumentError, match="reversed range, width -2"):
        fq.chain()


def test_threshold_is_the_threshold() -> None:
    """Hazard 9: binarisation was lowered with thresholds of zero."""
    chain = FakeQuantize([0.5, -3.0, 2.0], [0.5, -3.0, 2.0], 0, 1, 2).chain()
    assert chain == Chain(Binary("gt", [0.5, -3.0, 2.0]))
    assert (evaluate(chain, ROWS, axis=0) == (np.array([[0.5], [-3], [2]]) < ROWS)).all()


def test_nothing_is_not_a_post_op() -> None:
    """Hazard 10: multiplications by 1 and shifts by 0 were emitted."""
    nothing = Chain(Affine([1.0, 1.0]), Affine(1.0, [0.0, 0.0]), Binary("mul", 1.0), Clip())
    assert normalise(nothing).chain == Chain()
