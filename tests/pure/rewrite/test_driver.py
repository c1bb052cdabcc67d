"""The driver: order, fixpoint, progress, events; and the rules' decorator."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.expr.interval import Interval
from pyonednn_q.expr.steps import Affine, Chain, Clip, Eltwise, Round
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.catalogue import CATALOGUE, normalise
from pyonednn_q.rewrite.driver import rewrite
from pyonednn_q.rewrite.ends import Acc, Dst, Item, Takes
from pyonednn_q.rewrite.rule import (
    BITWISE,
    REAL,
    RUN,
    Outcome,
    Refusal,
    Rewrite,
    Rule,
    RuleSet,
    bounded,
    permits,
    rule,
)


@rule("round(x) = x, to test with.", Round, exactness=BITWISE)
def drop_round(_: Round) -> Outcome:
    return ()


@rule("round(s*x + t) = round(s*x), to test with.", Affine, Round, exactness=bounded(2))
def approximate_affine(affine: Affine, rnd: Round) -> Outcome:
    return Rewrite((Affine(affine.scale), rnd), "dropped", 0.25) if affine.shift.least else None


@rule("clip(f(clip(x))) = itself, to test with.", Clip, RUN, Clip, exactness=REAL)
def refuse_clips(_: Clip, run: tuple[Item, ...], __: Clip) -> Outcome:
    return Refusal(f"{len(run)} between")


def run(*items: Item, rules: tuple[Rule, ...]) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    new, trace = rewrite(items, RuleSet(rules), "fast")
    return new, tuple(f"{e.rule.name}@{e.at}{'' if e.fired else ' refused'}" for e in trace)


class TestDecorator:
    def test_keeps_the_identity(self) -> None:
        assert drop_round.identity == "round(x) = x, to test with."
        assert drop_round.name == "drop_round"
        assert drop_round(Round()) == ()

    def test_wants_an_identity(self) -> None:
        with pytest.raises(ArgumentError, match=r"identity: got type; wanted str"):
            rule(cast("Any", Round), exactness=BITWISE)

    @pytest.mark.parametrize("pattern", [(), (RUN, Clip, Clip), (Clip, RUN), (RUN,)])
    def test_wants_a_run_between_two(self, pattern: tuple[type, ...]) -> None:
        with pytest.raises(ArgumentError, match="pattern"):
            rule("x = x.", *pattern, exactness=BITWISE)

    def test_every_rule_of_the_catalogue_states_an_equation(self) -> None:
        for each in CATALOGUE:
            assert " = " in each.identity, each.name
            assert each.identity.endswith("."), each.name
            assert len(each.identity) <= 97, each.name


class TestRuleSet:
    def test_refuses_a_name_twice(self) -> None:
        with pytest.raises(ArgumentError, match="drop_round more than once"):
            RuleSet((drop_round, drop_round))

    def test_policy_decides_what_may_fire(self) -> None:
        rules = RuleSet((drop_round, refuse_clips, approximate_affine))
        names = {
            policy: [r.name for r in rules.tables(policy)[-1].rules]
            for policy in ("bitwise", "real", "fast")
        }
        assert names == {
            "bitwise": ["drop_round"],
            "real": ["drop_round", "refuse_clips"],
            "fast": ["drop_round", "refuse_clips", "approximate_affine"],
        }

    def test_unknown_policy_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="policy: got 'exact'; wanted one of bitwise, real"):
            permits(cast("Any", "exact"), BITWISE)

    def test_labels_are_ordered(self) -> None:
        assert BITWISE < REAL < bounded(1) < bounded(2)
        assert [str(e) for e in (BITWISE, REAL, bounded(3))] == ["BITWISE", "REAL", "BOUNDED(3)"]


class TestDriver:
    def test_first_rule_wins_and_later_places_follow(self) -> None:
        new, events = run(Affine(2, 1), Round(), rules=(approximate_affine, drop_round))
        assert new == (Affine(2),)
        assert events == ("approximate_affine@0", "drop_round@1")

    def test_steps_back_to_what_a_change_touches(self) -> None:
        # The second relu becomes a clip only after the first has been passed.
        new = normalise(Chain(Clip(-1, 1), Round(), Eltwise("relu"))).chain
        assert new == Chain(Round(), Clip(0, 1))

    def test_a_rule_without_progress_dies_with_its_name(self) -> None:
        @rule("clip(x) = clip(x), for ever.", Clip, exactness=BITWISE)
        def shuffle(clip: Clip) -> Outcome:
            return (Clip(clip.lo, clip.hi),)

        with pytest.raises(AssertionError, match="shuffle makes no progress"):
            run(Clip(0, 1), rules=(shuffle,))

    def test_a_limit_ends_what_does_not_end(self) -> None:
        with pytest.raises(Error, match="drop_round still fires after 1 rewrites"):
            rewrite((Round(), Round()), RuleSet((drop_round,)), limit=1)

    def test_leading_rules_have_a_sweep_of_their_own(self) -> None:
        rules = RuleSet((approximate_affine, drop_round), leading=(drop_round,)) + RuleSet(())
        new, trace = rewrite((Affine(2, 1), Round()), rules, "fast")
        assert new == (Affine(2, 1),)
        assert [event.rule.name for event in trace] == ["drop_round"]

    def test_equal_refusals_are_recorded_once(self) -> None:
        clip = Clip(0, 1)
        _, events = run(
            clip,
            Eltwise("tanh"),
            clip,
            Eltwise("tanh"),
            clip,
            Round(),
            rules=(refuse_clips, drop_round),
        )
        assert events == ("refuse_clips@0 refused", "drop_round@5")

    def test_a_run_needs_something_between(self) -> None:
        _, events = run(Clip(0, 1), Clip(0, 2), rules=(refuse_clips,))
        assert events == ()

    def test_a_ranged_rule_sees_what_enters_its_window(self) -> None:
        seen: list[Interval] = []

        @rule("round(x) = round(x), but seen.", Round, exactness=BITWISE, ranged=True)
        def look(x: Interval, _: Round) -> Outcome:
            seen.append(x)
            return None

        acc = Acc(Interval(Vec(0.0), Vec(4.0), integer=True), scale=Vec(0.5), shift=Vec(1.0))
        run(acc, Affine(2.0), Round(), rules=(look,))
        assert [str(x) for x in seen] == ["[2, 6]"]

    def test_knowledge_is_renewed_after_a_change(self) -> None:
        acc = Acc(Interval(Vec(0.0), Vec(4.0)))
        result = normalise(Chain(Affine(-1.0), Affine(-1.0), Eltwise("relu")), acc=acc)
        assert result.chain == Chain()


class TestTrace:
    def test_text_tells_everything(self) -> None:
        _, trace = rewrite((Affine(2, 1), Round()), RuleSet((approximate_affine,)), "fast")
        assert trace.text() == (
            "approximate_affine [BOUNDED(2)] fired at 0\n"
            "    round(s*x + t) = round(s*x), to test with.\n"
            "    before: 2*x + 1 > round(x)\n"
            "    after:  2*x > round(x)\n"
            "    note:   dropped; changes at most 0.25 of evenly spread inputs"
        )
        assert (trace.exactness, trace.rate) == (bounded(2), 0.25)

    def test_a_refusal_tells_its_reason(self) -> None:
        _, trace = rewrite((Clip(0), Round(), Clip(0)), RuleSet((refuse_clips,)))
        assert trace.refused[0].lines()[-1] == "    reason: 1 between"
        assert (trace.fired, trace.exactness) == ((), BITWISE)

    def test_levels_of_bounded_rewrites_add_up(self) -> None:
        items = (Affine(2, 1), Round(), Affine(2, 1), Round())
        _, trace = rewrite(items, RuleSet((approximate_affine,)), "fast")
        assert (str(trace.exactness), trace.rate) == ("BOUNDED(4)", 0.5)


class TestEnds:
    def test_acc_takes_a_scale_and_leaves_a_shift(self) -> None:
        acc = Acc(takes_scale=Takes.PER_CHANNEL)
        result = normalise(Chain(Affine([2.0, 3.0], 1.0)), acc=acc)
        assert (result.acc.scale, result.chain) == (Vec([2.0, 3.0]), Chain(Affine(1.0, 1.0)))

    def test_acc_takes_no_finer_scale_than_it_can(self) -> None:
        acc = Acc(takes_scale=Takes.PER_TENSOR, takes_shift=Takes.PER_TENSOR)
        result = normalise(Chain(Affine([2.0, 3.0])), acc=acc)
        assert result.chain == Chain(Affine([2.0, 3.0]))
        assert result.trace.refused[0].reason == "the primitive takes no scale [2, 3]"

    def test_store_of_a_scaled_dst_keeps_the_round(self) -> None:
        result = normalise(Chain(Round()), dst=Dst("u8", zero_point=3))
        assert result.chain == Chain(Round())

    @pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
    def test_dst_scale_is_positive(self, scale: float) -> None:
        with pytest.raises(ArgumentError, match="scale"):
            Dst("u8", scale=scale)

    def test_they_print_as_formulas(self) -> None:
        assert str(Acc(scale=Vec(0.5), shift=Vec(-1.0))) == "0.5*acc - 1"
        assert str(Dst("u8", 0.5, -3)) == "u8(x/0.5 -3)"
        assert str(Dst()) == "end"
