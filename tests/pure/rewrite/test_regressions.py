"""What random chains have found, each as the smallest chain that showed it."""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Leaf, Round, Sum
from pyonednn_q.rewrite.catalogue import normalise
from pyonednn_q.rewrite.ends import Dst
from pyonednn_q.rewrite.rule import Rewrite
from pyonednn_q.rewrite.rules.clip import merge_clips_over_affine


class TestOneTensorHasOneType:
    """A dst of 7.5 was read as f32 and as s8, where a rule counts on whole numbers."""

    def test_sums_that_contradict_each_other_make_no_chain(self) -> None:
        wanted = r"steps\[2\]: got dst as s8; wanted its own type, as before it"
        with pytest.raises(DTypeError, match=wanted):
            Chain(Sum(0.5), Round(), Sum(1.0, dtype="s8"), Clip(0.0), Round())

    def test_uses_of_a_leaf_that_contradict_each_other_make_no_chain(self) -> None:
        wanted = r"steps\[1\]: got operand r as full s8; wanted full f32, as before it"
        with pytest.raises(DTypeError, match=wanted):
            Chain(Binary("add", Leaf("r")), Binary("mul", Leaf("r", "s8")))

    @pytest.mark.parametrize("dtype", ["s8", None])
    def test_only_whole_residuals_spare_a_round(self, dtype: str | None) -> None:
        first = (Sum(0.5, dtype=dtype), Round(), Sum(1.0, dtype=dtype), Clip(0.0))
        result = normalise(Chain(*first, Round()), dst=Dst("f32"), policy="bitwise")
        assert (result.chain == Chain(*first)) == (dtype == "s8")
        before = np.arange(-128.0, 128.0) + (0.0 if dtype == "s8" else 0.5)
        x = np.arange(-40.0, 41.0)[:, None] / 8
        want = evaluate(Chain(*first, Round()), x + 0 * before, dst_before=before)
        assert (evaluate(result.chain, x + 0 * before, dst_before=before) == want).all()

    @pytest.mark.parametrize("value", [7.5, 200.0, np.nan])
    def test_values_beyond_the_type_have_no_meaning(self, value: float) -> None:
        with pytest.raises(ArgumentError, match=rf"dst_before: got {value}; wanted values of s8"):
            evaluate(Chain(Sum(dtype="s8")), 0.0, dst_before=value)
        with pytest.raises(ArgumentError, match=rf"operands: got {value}; wanted values of s8"):
            evaluate(Chain(Binary("add", Leaf("r", "s8"))), 0.0, operands={"r": value})


class TestBoundsStayWithinFloat32:
    """A bound of 0.25 went over two large scales and came out as a constant of 4e65."""

    def test_no_clip_passes_a_scale_that_makes_it_infinite(self) -> None:
        chain = Chain(Clip(-(2.0**100), 2.0**100), Affine(2.0**60), Round())
        result = normalise(chain)
        assert result.chain == chain
        assert result.trace.refused[0].reason == "a bound would overflow float32"

    def test_no_clip_moves_left_to_where_it_is_infinite(self) -> None:
        chain = Chain(Clip(0.0), Affine(2.0**-60), Clip(hi=2.0**80))
        assert normalise(chain).chain == Chain(Affine(2.0**-60), Clip(0.0, 2.0**80))

    def test_a_clip_to_one_number_stays_if_float32_cannot_hold_it(self) -> None:
        chain = Chain(Clip(2.0**140, 2.0**140))
        result = normalise(chain)
        assert result.chain == chain
        assert "beyond float32" in result.trace.refused[0].reason


@pytest.mark.parametrize(("scale", "note"), [(2.0, False), (-2.0, False), (2 + 2**-50, True)])
def test_a_moved_clip_says_that_bounds_are_taken_as_levels_only_where_they_are(
    scale: float, note: bool
) -> None:
    """A negative scale swapped bounds before they were compared with those they came from."""
    moved = merge_clips_over_affine(Clip(-8, 7), Affine(scale, 2), Clip(-4, 10))
    assert isinstance(moved, Rewrite)
    assert isinstance(moved.items[0], Clip)
    assert bool(moved.note) == note
    assert str(moved.items[0]) == str(Clip(-4, 3) if scale < 0 else Clip(-3, 4))
