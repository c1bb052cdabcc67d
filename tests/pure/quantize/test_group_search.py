"""The least group that does, beside all groups that there are."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from pyonednn_q.quantize.group_search import most_questions, smallest_group

ORDERS = st.integers(1, 40).map(lambda count: [f"layer {at}" for at in range(count)])


@given(order=ORDERS, data=st.data())
def test_what_is_needed_together_is_found(order: list[str], data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.sampled_from(order), max_size=6))
    asked: list[tuple[str, ...]] = []

    def suffices(group: tuple[str, ...]) -> bool:
        asked.append(group)
        return needed <= set(group)

    assert set(smallest_group(order, suffices)) == needed
    assert len(set(asked)) == len(asked)
    assert len(asked) <= min(most_questions(len(order)), 2 * len(order) + 12)


@given(data=st.data(), count=st.integers(1, 7))
def test_of_several_groups_that_do_one_is_found(data: st.DataObject, count: int) -> None:
    order = [f"layer {at}" for at in range(count)]
    least = data.draw(st.lists(st.sets(st.sampled_from(order)), min_size=1, max_size=4))

    def suffices(group: tuple[str, ...]) -> bool:
        return any(each <= set(group) for each in least)

    found = smallest_group(order, suffices)
    assert suffices(found)
    assert not any(
        suffices(group) for group in combinations(found, max(len(found) - 1, 0)) if found
    )


@given(data=st.data(), count=st.integers(1, 7))
def test_what_more_names_may_spoil_suffices_all_the_same(data: st.DataObject, count: int) -> None:
    order = [f"layer {at}" for at in range(count)]
    groups = [g for size in range(count) for g in combinations(order, size)]
    good = {group for group in groups if data.draw(st.booleans())} | {tuple(order)}
    asked: list[tuple[str, ...]] = []

    def suffices(group: tuple[str, ...]) -> bool:
        asked.append(group)
        return group in good

    assert smallest_group(order, suffices) in good
    assert len(asked) <= most_questions(count)


@given(order=ORDERS, tries=st.integers(1, 12), data=st.data())
def test_after_some_tries_the_least_that_was_seen_is_taken(
    order: list[str], tries: int, data: st.DataObject
) -> None:
    needed = data.draw(st.sets(st.sampled_from(order), max_size=6))
    asked: list[tuple[str, ...]] = []

    def suffices(group: tuple[str, ...]) -> bool:
        asked.append(group)
        return needed <= set(group)

    found = smallest_group(order, suffices, tries)
    assert len(asked) <= tries
    seen = [len(group) for group in asked if needed <= set(group)]
    assert needed <= set(found)
    assert len(found) == min([len(order), *seen])
