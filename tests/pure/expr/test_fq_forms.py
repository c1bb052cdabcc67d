"""Recognisers, the Q+DQ view, splitting, and the way to and from QParams."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_forms import (
    binarising_threshold,
    codes,
    dequantizes_from,
    fq_params,
    pure_scale,
    quantizes_to,
)
from pyonednn_q.expr.fq_qparams import (
    Side,
    dequantize_chain,
    fq_from_qparams,
    qparams_from_fq,
    quantize_chain,
)
from pyonednn_q.expr.steps import Chain
from pyonednn_q.expr.vec import Vec
from pyonednn_q.qparams import QParams

X = np.arange(-400, 400)[None] / 64  # ties of every range below are among them
ROWS = np.repeat(X, 2, axis=0)


class TestParams:
    def test_view(self) -> None:
        p = fq_params(FakeQuantize(-1, 3, 0, 8, 5))
        assert (p.scale_in, p.zero_in, p.scale_out, p.zero_out) == tuple(map(Vec, (1, 1, 2, 0)))
        assert (p.zero_in_is_integer, p.zero_out_is_integer) == (True, True)

    def test_fractional_zero_points_are_told(self) -> None:
        p = fq_params(FakeQuantize([-1.5, -1], [2.5, 3], 1, 9, 5))
        assert (p.zero_in, p.zero_in_is_integer) == (Vec([1.5, 1.0]), False)
        assert (p.zero_out, p.zero_out_is_integer) == (Vec(-0.5), False)

    def test_tolerance_is_the_callers(self) -> None:
        fq = FakeQuantize(-1 - 2**-15, 3 - 2**-15, 0, 8, 5)
        assert fq_params(fq).zero_in_is_integer
        assert not fq_params(fq, tolerance=2**-16).zero_in_is_integer

    def test_signed_form_subtracts_half_the_levels(self) -> None:
        p = fq_params(FakeQuantize.symmetric(127), signed=True)
        assert (p.offset, p.zero_in, p.zero_out) == (128, Vec(0), Vec(0))

    @pytest.mark.parametrize("levels", [255, 254, 6])
    def test_odd_offset_is_refused(self, levels: int) -> None:
        with pytest.raises(ArgumentError, match="levels divisible by 4: an even offset"):
            fq_params(FakeQuantize(-1, 1, -1, 1, levels), signed=True)

    def test_constant_output_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="output_low != output_high"):
            fq_params(FakeQuantize(0, 1, [2, 0], [2, 1]))


class TestSplit:
    @pytest.mark.parametrize("signed", [False, True])
    @pytest.mark.parametrize("levels", [5, 9, 17, 4, 3, 7])
    def test_producer_then_consumer_is_the_whole(self, levels: int, signed: bool) -> None:
        size = (levels - 1) / 4
        fq = FakeQuantize([-1, -0.5], [size - 1, size - 0.5], [2, -4], size + [2, -4][0], levels)
        cut = codes(fq, signed=signed)
        q = evaluate(Chain(*cut.quantize), ROWS, axis=0)
        assert (q == np.rint(q)).all()
        assert (q.min(), q.max()) == (cut.qmin, cut.qmax)
        if levels in {5, 9, 17}:  # a power of two of steps: exact in float64
            assert np.array_equal(evaluate(Chain(*cut.dequantize), q, axis=0), fq(ROWS, axis=0))

    def test_signed_codes_are_unsigned_codes_less_the_offset(self) -> None:
        for levels in (255, 256):
            fq = FakeQuantize(-1, (levels - 1) / 64 - 1, 0, 1, levels)
            plain, signed = (
                evaluate(Chain(*codes(fq, signed=s).quantize), X) for s in (False, True)
            )
            assert np.array_equal(plain - levels // 2, signed)


class TestRecognisers:
    @pytest.mark.parametrize(
        ("fq", "wanted"),
        [
            (FakeQuantize(0, 1, 0, 255), "u8"),
            (FakeQuantize(-1, 1, -128, 127), "s8"),
            (FakeQuantize(-1, 1, -127, 127, 255), "s8"),
            (FakeQuantize([0, 1], [2, 3], 0, 255), "u8"),
            (FakeQuantize(0, 1, 0, 15, 16), "u4"),
            (FakeQuantize(0, 1, -8, 7, 16), "s4"),
            (FakeQuantize(0, 1, 0, 254), None),
            (FakeQuantize(0, 1, 0.5, 255.5), None),
            (FakeQuantize(0, 1, 1, 256), None),
            (FakeQuantize(0, 1, -129, 126), None),
            (FakeQuantize(0, 1, 0, [255, 254]), None),
            (FakeQuantize(0, 1, 255, 0), None),
            (FakeQuantize(0, 1, 0, 255 + 1e-9), None),
        ],
        ids=str,
    )
    def test_quantize_only(self, fq: FakeQuantize, wanted: str | None) -> None:
        assert quantizes_to(fq) == wanted

    def test_tolerance_is_asked_for(self) -> None:
        fq = FakeQuantize(0, 1, 0, 255 + 1e-9)
        assert quantizes_to(fq, tolerance=1e-6) == "u8"
        assert dequantizes_from(FakeQuantize(0, 255 + 1e-9, 0, 1), tolerance=1e-6) == "u8"

    @pytest.mark.parametrize(
        ("fq", "wanted"),
        [
            (FakeQuantize(0, 255, 0, 1), "u8"),
            (FakeQuantize(-128, 127, 0, 1), "s8"),
            (FakeQuantize(0, 256, 0, 1), None),
            (FakeQuantize(0.5, 255.5, 0, 1), None),
            (FakeQuantize(1, 1, 0, 1, 2), None),
        ],
        ids=str,
    )
    def test_dequantize_only(self, fq: FakeQuantize, wanted: str | None) -> None:
        assert dequantizes_from(fq) == wanted

    def test_pure_scale(self) -> None:
        assert pure_scale(FakeQuantize([-1, 0], 1, [-2, 0], [2, 3])) == Vec([2, 3])
        assert pure_scale(FakeQuantize(-1, 1, 2, -2)) == Vec(-2)
        assert pure_scale(FakeQuantize(0, 1, 0.01, 1)) is None
        assert pure_scale(FakeQuantize(0, 1, 0.01, 1), tolerance=0.1) == Vec(0.99)
        assert pure_scale(FakeQuantize(0, 1, 2, 2)) is None
        assert pure_scale(FakeQuantize(1, 1, 0, 1, 2)) is None

    def test_binarising(self) -> None:
        assert binarising_threshold(FakeQuantize([1, 2], [1, 2], 0, 1, 2)) == Vec([1, 2])
        assert binarising_threshold(FakeQuantize(0, 1, 1, 0, 2)) == Vec(0.5)
        assert binarising_threshold(FakeQuantize(0, 1, 0, 1, 3)) is None
        assert binarising_threshold(FakeQuantize(0, 1, 0, 2, 2)) is None
        assert binarising_threshold(FakeQuantize(0, 1, 1, 1, 2)) is None

    def test_threshold_is_where_it_changes(self) -> None:
        for low, high in ((0.25, 1.25), (0.5, 0.5)):
            fq = FakeQuantize(low, high, 0, 1, 2)
            threshold = binarising_threshold(fq)
            assert threshold is not None
            assert np.array_equal(fq(X), (threshold.least < X).astype(float))


class TestQParams:
    @pytest.mark.parametrize("zero_point", [0, 128, 3, 255])
    def test_round_trip(self, zero_point: int) -> None:
        q = QParams(0.25, zero_point, "u8")
        back = qparams_from_fq(fq_from_qparams(q), "u8")
        assert (back.qparams, back.first) == (q, 0)
        assert back.residue == Vec(0)

    def test_round_trip_per_channel(self) -> None:
        q = QParams([0.25, 0.5], [0, -3], "s8", axis=1)
        back = qparams_from_fq(fq_from_qparams(q), "s8")
        assert (back.qparams, back.first, back.is_exact()) == (q, -128, True)
        narrow = qparams_from_fq(fq_from_qparams(q, levels=255), "s8", side="input")
        assert (narrow.qparams, narrow.first) == (q, -127)

    def test_a_range_has_two_levels_at_least(self) -> None:
        q = QParams(0.25, 0, "s8")
        assert fq_from_qparams(q, levels=2).levels == 2
        with pytest.raises(ArgumentError, match=r"^levels: got 1; "):
            fq_from_qparams(q, levels=1)

    def test_residue_is_reported(self) -> None:
        found = qparams_from_fq(FakeQuantize(0, 1, [-0.3, -1], [2.25, 4.1]), "u8")
        assert np.array_equal(found.qparams.zero_point, [30, 50])
        assert found.is_exact()
        found = qparams_from_fq(FakeQuantize(0, 1, -0.305, 2.245), "u8")
        assert not found.is_exact()
        assert abs(found.residue.least) == pytest.approx(0.5, abs=1e-9)

    @pytest.mark.parametrize(
        ("fq", "dtype", "problem"),
        [
            (FakeQuantize(0, 1, 1, 2), "u8", "a zero point of -255"),
            (FakeQuantize(0, 1, 1, 0), "u8", "a scale of -0.0039"),
            (FakeQuantize(0, 1, 0, [1, 0]), "u8", "a scale of 0 in channel 1"),
            (FakeQuantize(0, 1, 0, 1, 257), "u8", "u8 for 257 levels"),
            (FakeQuantize(0.5, 0.5, 0, 1, 2), "u8", "threshold"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, fq: FakeQuantize, dtype: str, problem: str) -> None:
        side: Side = "input" if fq.is_threshold else "output"
        with pytest.raises(ArgumentError, match=problem):
            qparams_from_fq(fq, dtype, side=side)

    def test_unknown_side_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="side"):
            qparams_from_fq(FakeQuantize(0, 1, 0, 1), "u8", side=cast("Any", "both"))

    @pytest.mark.parametrize(
        "q", [QParams(0.25, 3, "u8"), QParams([0.25, 0.5], [0, -3], "s8", axis=0)]
    )
    def test_chains_are_quantize_and_dequantize(self, q: QParams) -> None:
        stored = q.quantize(ROWS)
        assert np.array_equal(evaluate(quantize_chain(q), ROWS, axis=0), stored)
        assert np.array_equal(evaluate(dequantize_chain(q), stored, axis=0), q.dequantize(stored))

    def test_ties_differ_for_an_odd_zero_point_only(self) -> None:
        for zero_point, differ in ((2, False), (3, True)):
            q = QParams(0.25, zero_point, "u8")
            inside = X[(-0.25 * zero_point < X) & (X < 60)]
            by_fq = fq_from_qparams(q, dequantize=False)(inside, axis=0)
            assert (not np.array_equal(by_fq, q.quantize(inside))) == differ
