"""FakeQuantize: the definition in exact arithmetic, float32 in three orders, its forms as steps."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr import fq_forms
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_orders import FqOrder, fake_quantize
from pyonednn_q.expr.fq_qparams import qparams_from_fq
from pyonednn_q.expr.steps import Affine, Chain, Clip, Round
from pyonednn_q.expr.vec import Vec

Array = np.ndarray[Any, Any]
LEVELS = (2, 3, 15, 16, 255, 256, 65535, 65536)


def defined(x: Fraction, fq: FakeQuantize) -> Fraction:
    """The definition, per tensor, in rational arithmetic."""
    il, ih, ol, oh = (
        Fraction(v.least) for v in (fq.input_low, fq.input_high, fq.output_low, fq.output_high)
    )
    n = fq.levels - 1
    if x <= min(il, ih):
        return ol
    if x > max(il, ih):
        return oh
    return Fraction(round((x - il) / (ih - il) * n)) / n * (oh - ol) + ol


def by_definition(x: Array, ranges: tuple[float, ...], levels: int) -> Array:
    """The definition in float32, one operation at a time, with a loop instead of arrays."""
    f = np.float32
    il, ih, ol, oh = map(f, ranges)
    n = f(levels - 1)
    out = []
    for value in x.astype(f):
        if value <= min(il, ih):
            out.append(ol)
        elif value > max(il, ih):
            out.append(oh)
        else:
            level = np.rint(f(f(f(value - il) / f(ih - il)) * n))
            out.append(f(f(f(level / n) * f(oh - ol)) + ol))
    return np.array(out, f)


dyadic = st.integers(-64, 64).map(lambda v: v / 8)


class TestMeaning:
    @pytest.mark.parametrize("levels", [2, 3, 5, 17, 257, 65])
    @given(
        low=dyadic, size=st.sampled_from([0.5, 1.0, 4.0, 0.0, -0.5, -4.0]), out=dyadic, span=dyadic
    )
    def test_float64_is_exact_on_dyadic_ranges(
        self, levels: int, low: float, size: float, out: float, span: float
    ) -> None:
        # levels - 1 is a power of two, or the range a multiple of it: every operation is exact.
        if levels == 3 or span == 0.0:
            return
        fq = FakeQuantize(low, low + size, out, out + span, levels)
        step = Fraction(size) / (levels - 1)
        edges = (
            Fraction(low) + step * k / 2 for k in range(-3, 2 * levels + 3, max(1, levels // 8))
        )
        for x in edges:
            assert fq(np.array([float(x)])).item() == defined(x, fq)

    @pytest.mark.parametrize("levels", LEVELS)
    @pytest.mark.parametrize("ranges", [(-1.3, 2.1, -3.0, 5.0), (0, 6, 0, 255), (-2, -1, 4, -4)])
    def test_float32_has_the_order_of_the_definition(
        self, levels: int, ranges: tuple[float, ...]
    ) -> None:
        x = np.random.default_rng(levels).uniform(-4, 8, 300).astype(np.float32)
        il, ih, ol, oh = (float(np.float32(v)) for v in ranges)
        fq = FakeQuantize(il, ih, ol, oh, levels)
        assert np.array_equal(fq.evaluate_f32(x), by_definition(x, ranges, levels))

    def test_runs_along_channels(self) -> None:
        fq = FakeQuantize([0, -1], [1, 1], 0, 255, 256)
        x = np.array([[0.5, 0.0], [9.0, -9.0]])
        assert fq(x).tolist() == [[128.0, 128.0], [255.0, 0.0]]
        assert fq(x.T, axis=0).tolist() == [[128.0, 255.0], [128.0, 0.0]]
        with pytest.raises(ShapeError, match="2 channels on axis 0"):
            fq(np.zeros(3), axis=0)
        for axis in (2, -3):
            with pytest.raises(ShapeError, match=f"2 channels on axis {axis}"):
                fq(x, axis=axis)

    def test_special_values(self) -> None:
        x = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
        got = FakeQuantize(-1, 1, -1, 1, 3).evaluate_f32(x)
        assert np.isnan(got[0])
        assert got[1:].tolist() == [1.0, -1.0, 0.0]


class TestOrders:
    ORDERS: tuple[FqOrder, ...] = ("core", "fma", "subgraph")
    X = np.linspace(-3, 3, 4001, dtype=np.float32)

    def codes(self, order: FqOrder) -> Array:
        return fake_quantize(self.X, -1.28, 1.27, 0, 255, levels=256, order=order)

    def test_agree_but_next_to_ties(self) -> None:
        core = self.codes("core")
        position = (self.X.astype(np.float64) + 1.28) / 2.55 * 255
        near_tie = np.abs(position % 1 - 0.5) < 1e-4
        for order in self.ORDERS:
            differs = np.rint(self.codes(order)) != np.rint(core)
            assert not (differs & ~near_tie).any()

    def test_nan_is_the_upper_bound_in_kernels(self) -> None:
        nan = np.array([np.nan], np.float32)
        for order in self.ORDERS[1:]:
            assert fake_quantize(nan, 0, 1, 0, 255, levels=256, order=order) == 255.0

    def test_the_training_tool_subtracts_a_whole_zero_point(self) -> None:
        """0 stays 0 where it is no level; by the definition it moves."""
        x, ends = np.array([0.0, -1.0, 3.0], np.float32), (-0.0015, 1.0)
        got = fake_quantize(x, *ends, *ends, levels=256, order="nncf")
        step = np.float32(1.0015) / np.float32(255)
        assert got.tolist() == pytest.approx([0.0, 0.0, 255 * step], abs=1e-6)
        assert fake_quantize(x, *ends, *ends, levels=256)[0] != 0.0
        with pytest.raises(ArgumentError, match=r"^output_low: got another range"):
            fake_quantize(x, *ends, 0, 255, levels=256, order="nncf")

    @pytest.mark.parametrize(
        ("x", "wanted"), [(-2.0, 0), (-0.5, 191), (0.5, 64), (2.0, 255), (1.0, 0), (-1.0, 0)]
    )
    def test_reversed_range_follows_the_definition(self, x: float, wanted: int) -> None:
        # Levels as the list of hazards has them; the end -1 is in "x <= min".
        assert fake_quantize(np.array([x], np.float32), 1, -1, 0, 255, levels=256).item() == wanted

    @pytest.mark.parametrize("levels", [2, 256])
    def test_empty_range_is_a_threshold(self, levels: int) -> None:
        x = np.array([-1, 0.5, 0.75], np.float32)
        assert fake_quantize(x, 0.5, 0.5, 3, 7, levels=levels).tolist() == [3, 3, 7]

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            (((0, np.inf, 0, 1), 2, "core"), "input_high"),
            (((np.nan, 1, 0, 1), 2, "core"), "input_low"),
            (((0, 1, 0, 1), 1, "core"), "levels: got 1"),
            (((0, 1, 0, 1), True, "core"), "levels"),
            (((0, 1, 0, 1), 2, "exact"), "order: got 'exact'"),
            (((1, 1, 0, 1), 2, "fma"), "input_low: got an empty or reversed range"),
        ],
    )
    def test_nonsense_is_refused(self, arguments: tuple[Any, Any, Any], problem: str) -> None:
        ranges, levels, order = arguments
        with pytest.raises(ArgumentError, match=problem):
            fake_quantize(np.array([0], np.float32), *ranges, levels=levels, order=order)


class TestChain:
    @pytest.mark.parametrize("levels", [3, 5, 17, 257])
    @given(low=dyadic, out=dyadic, span=st.sampled_from([-2.0, 0.5, 4.0]))
    def test_is_the_definition(self, levels: int, low: float, out: float, span: float) -> None:
        fq = FakeQuantize([low, 2.0], [low + 4.0, 6.0], out, out + span, levels)
        x = np.concatenate([np.arange(-80, 80) / 16, np.arange(-8, 9) / 2])
        rows = np.broadcast_to(x, (2, len(x)))
        assert np.array_equal(evaluate(fq.chain(), rows, axis=0), fq(rows, axis=0))

    def test_leaves_out_what_does_nothing(self) -> None:
        assert FakeQuantize(0, 255, 0, 255).chain() == Chain(Clip(0, 255), Round())
        assert FakeQuantize(0, 2, 0, 255).chain() == Chain(Clip(0, 2), Affine(127.5), Round())

    def test_the_lower_crop_is_level_zero_exactly(self) -> None:
        rng = np.random.default_rng(0)
        low, size = rng.normal(size=999), rng.uniform(0.01, 9, 999)
        clip, into, *_ = FakeQuantize(low, low + size, 0, 255).chain()
        assert isinstance(clip, Clip)
        assert isinstance(into, Affine)
        assert (clip.lo * into.scale + into.shift).is_all(0.0)


class TestValue:
    FQ = FakeQuantize([0, -1], 1, 0, 255)

    def test_is_a_value(self) -> None:
        assert pickle.loads(pickle.dumps(self.FQ)) == self.FQ
        assert hash(self.FQ) == hash(FakeQuantize([0, -1], 1, 0, 255, 256))
        assert self.FQ.channels == 2
        assert str(self.FQ) == "fake_quantize(x, [[0, -1], 1] -> [0, 255], 256 levels)"

    REFUSED: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: FakeQuantize(0, float("inf"), 0, 1), "input_high: got inf"),
        (lambda: FakeQuantize(0, 1, 0, float("nan")), "NaN"),
        (lambda: FakeQuantize(0, 5e-324, 0, 1), "width 5e-324"),
        (lambda: FakeQuantize(0, 1e-306, 0, 1), "width 1e-306"),  # 256 / 1e-306 is infinite
        (lambda: FakeQuantize([0, 1], [1e-306, 1], 0, 1), r"width \[1e-306, 0\]"),
        (lambda: FakeQuantize(1e-306, 0, 0, 1), "width -1e-306"),
        (lambda: FakeQuantize(-1.7e308, 1.7e308, 0, 1), "input_high"),
        (lambda: FakeQuantize(0, 1, 0, 1, 1), "levels: got 1"),
        (lambda: FakeQuantize(0, 1, 0, 1, 65537), "levels: got 65537"),
        (lambda: FakeQuantize(0, 1, 0, 1, cast("Any", 2.5)), "levels: got 2.5"),
        (lambda: FakeQuantize([0, 1], [2, 3, 4], 0, 1), "input_high: got 3 channels"),
        (lambda: FakeQuantize.symmetric(1, 2), "two levels have no zero"),
        (lambda: FakeQuantize.symmetric([1, -2]), "high: got -2 in channel 1"),
        (lambda: FakeQuantize.symmetric(0), "high: got 0; wanted numbers above 0"),
    )

    @pytest.mark.parametrize(("make", "problem"), REFUSED)
    def test_degenerate_forms_are_refused(self, make: Callable[[], object], problem: str) -> None:
        with pytest.raises(ArgumentError, match=problem):
            make()

    NO_LEVELS: tuple[tuple[FakeQuantize, str], ...] = (
        (FakeQuantize(1, 1, 0, 1, 2), "a threshold"),
        (FakeQuantize([0, 0], [1, 0], 0, 1), "an empty range, width 0 in channel 1"),
        (FakeQuantize([0, 0], [1, -1], 0, 1), "a reversed range, width -1 in channel 1"),
    )

    @pytest.mark.parametrize(("fq", "problem"), NO_LEVELS)
    def test_what_reads_levels_says_that_there_are_none(
        self, fq: FakeQuantize, problem: str
    ) -> None:
        readers: dict[str, Callable[[], object]] = {
            "scale_in": lambda: fq.scale_in,
            "zero_in": lambda: fq.zero_in,
            "levels_per_unit": lambda: fq.levels_per_unit,
            "input_low": fq.quantize_steps,
            "fq": lambda: fq_forms.fq_params(fq),
            "wei_fq": lambda: fq.check_levels("wei_fq"),
        }
        assert not fq.has_levels
        for name, read in readers.items():
            with pytest.raises(ArgumentError, match=f"^{name}: got {problem}; wanted input_low <"):
                read()
        for read in (
            lambda: fq_forms.codes(fq),
            lambda: qparams_from_fq(fq, "u8", side="input"),
        ):
            with pytest.raises(ArgumentError, match=f"^fq: got {problem}; wanted input_low <"):
                read()
        assert fq_forms.scale_alone(fq, "u8") is None
        assert fq_forms.dequantizes_from(fq) is None
        assert fq_forms.pure_scale(fq) is None

    @pytest.mark.parametrize("ends", [([0.0, 1.0], [1.0, 1.0]), ([0.0, 1.0], [0.0, -1.0])])
    def test_no_chain_is_made_of_ranges_that_are_odd_in_some_channels(
        self, ends: tuple[Any, Any]
    ) -> None:
        with pytest.raises(ArgumentError, match=r"^input_low: got (an empty|a reversed) range"):
            FakeQuantize(*ends, 0, 1, 256).chain()

    def test_two_levels_are_a_threshold_in_every_channel(self) -> None:
        fq = FakeQuantize([0.0, 1.0], [3.0, 1.0], [0.0, 5.0], [1.0, -2.0], 2)
        x = np.array([[1.5, 1.75, 1.0], [1.0, 1.25, -9.0]])
        assert fq(x, axis=0).tolist() == [[0.0, 1.0, 0.0], [5.0, -2.0, 5.0]]
        assert np.array_equal(evaluate(fq.chain(), x, axis=0), fq(x, axis=0))
        assert fq_forms.binarising_threshold(FakeQuantize([0, 1], [3, 1], 0, 1, 2)) == Vec([1.5, 1])
        assert fq_forms.binarising_threshold(FakeQuantize(1, 0, 0, 1, 2)) is None
