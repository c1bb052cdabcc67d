"""Outcome of each step of a chain: an attribute, a post-op, the store, or nothing.

The trace is replayed from its records, beside which every item carries the steps that it stems
from. Of an item that two others replace, each takes the steps of the one of its kind; what is left
goes where a rule of that kind puts it: an affine step into the accumulator's scale and bias, a
round and a clip into the store. A replay that meets other items than the trace tells nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyonednn_q.compose.absorb import left_end
from pyonednn_q.expr.steps import Affine, Clip, Eltwise, Round, Step
from pyonednn_q.expr.vec import Vec

if TYPE_CHECKING:
    from pyonednn_q.compose.record import Record
    from pyonednn_q.expr.steps import Chain
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.dense_facts import PrimitiveFacts

__all__ = ["Became", "became"]

_NUMBER, _VALUES = r"-?[\d.e+-]+", r"\[[^\]]*channels\]"
_KINDS = {
    "affine": rf"(x|({_NUMBER}|{_VALUES})\*x)( [+-] ({_NUMBER}|{_VALUES}))?|constant .*",
    "clip": r"(clip|max|min)\(x, .*",
    "round": r"round\(x\)",
}
# Where the steps of an item go that a rule removes, the first that is there.
_GOES = {"affine": ("acc", "affine", "dst"), "round": ("round", "dst"), "clip": ("clip", "dst")}
_LETTERS = {Affine: "A", Clip: "C", Round: "R"}
_QUANTIZES = re.compile("C?ARC?A?|CRC?A?")  # which steps of a chain are a FakeQuantize
_SCALELESS = (Clip, Round, Eltwise)
_BETWEEN = " > "


class Became(NamedTuple):
    """A step, or the steps of a FakeQuantize, and what became of it.

    Attributes
    ----------
    word, steps : str
        Name of the step in words, and the steps as text.
    ends : tuple of str
        Parts of the plan that do its work: names of attributes, post-ops as text, ``"store"``,
        ``"left over"``; or ``"nothing"`` with the rule that found it superfluous.
    """

    word: str
    steps: str
    ends: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.word} is {', '.join(self.ends)}"


@dataclass(slots=True)
class _Item:
    """An item of the replay: its text, its kind, and the steps that it stems from."""

    text: str
    kind: str
    steps: frozenset[int] = frozenset()


def became(
    chain: Chain,
    facts: PrimitiveFacts,
    attr: Attr,
    records: Sequence[Record],
    leftovers: Chain | None,
    *,
    has_bias: bool,
) -> tuple[Became, ...]:
    """Return the outcome of each step, in order; nothing if the trace is of another chain.

    Parameters
    ----------
    chain, facts, attr, records, has_bias
        Arguments of the composition and its results: see `Plan`.
    leftovers : Chain or None
        Steps that the primitive does not carry, the store's own among them; None if it carries all.
    """
    acc, prefix = left_end(facts)
    point, scale = float(facts.dst_zero_point), facts.dst_scale
    store = () if scale == 1.0 and point == 0.0 else (Affine(Vec(1.0) / Vec(scale), point),)
    steps = chain.steps
    items = [_Item(str(acc), "acc"), *(_item(step) for step in prefix)]
    items += [_Item(str(step), _kind(str(step)), frozenset({at})) for at, step in enumerate(steps)]
    items += [*(_item(step) for step in store), _Item("", "dst")]
    dropped: dict[int, str] = {}
    for record in records:
        if record.fired and not _replay(record, items, dropped):
            return ()
    names = [_ends(attr, item, has_bias=has_bias) for item in items]
    if leftovers is not None:  # then all that is stored is stored behind them
        begin = max(len(items) - 1 - len(leftovers.steps), 1)
        names[begin:] = [("left over",)] * (len(items) - begin)
    return tuple(_told(steps, items, names, dropped))


def _item(step: Step) -> _Item:
    return _Item(str(step), _kind(str(step)))


def _kind(text: str) -> str:
    return next((kind for kind, form in _KINDS.items() if re.fullmatch(form, text)), "other")


def _texts(text: str) -> list[str]:
    return [] if text == "nothing" else text.split(_BETWEEN)


def _replay(record: Record, items: list[_Item], dropped: dict[int, str]) -> bool:
    """Rewrite the items as a record says; tell whether they were those that it names."""
    texts = _texts(record.before)
    begin, end = record.at, record.at + len(texts)
    before = items[begin:end]
    if not texts or [e.text or text for e, text in zip(before, texts, strict=False)] != texts:
        return False
    after = [_Item(text, _kind(text)) for text in _texts(record.after)]
    if after and before[0].kind == "acc":
        after[0].kind = "acc"
    if after and before[-1].kind == "dst":
        after[-1].kind = "dst"
    left = _matched(before, after)
    for each in left:
        homes = [kind for kind in _GOES.get(each.kind, ()) if any(a.kind == kind for a in after)]
        taking = [a for a in after if a.kind == homes[0]][:1] if homes else after
        for home in taking:
            home.steps |= each.steps
        if not after:
            dropped.update(dict.fromkeys(each.steps, record.rule))
    items[begin:end] = after
    return True


def _matched(before: Sequence[_Item], after: Sequence[_Item]) -> list[_Item]:
    """Give each item the steps of the one that it was; return those that are no more."""
    left, unknown = list(before), list(after)
    for name in ("text", "kind"):
        for item in list(unknown):
            same = [each for each in left if getattr(each, name) == getattr(item, name)]
            if same:
                item.steps |= same[0].steps
                left.remove(same[0])
                unknown.remove(item)
                if item.kind == "clip" and name == "kind" and _is_same_store(before, after):
                    after[-1].steps |= item.steps  # which does a part of it from now on
    for item in unknown:  # it may stem from all that is no more
        item.steps |= frozenset().union(*(each.steps for each in left or before))
    return left


def _is_same_store(before: Sequence[_Item], after: Sequence[_Item]) -> bool:
    return after[-1].kind == "dst" and after[-1].text == (before[-1].text or after[-1].text)


def _told(
    steps: Sequence[Step],
    items: Sequence[_Item],
    names: Sequence[tuple[str, ...]],
    dropped: dict[int, str],
) -> Iterator[Became]:
    for word, places in _words(steps):
        is_scaled = not all(isinstance(steps[at], _SCALELESS) for at in places)
        carried = [
            end
            for item, ends in zip(items, names, strict=True)
            if item.steps & places
            for end in ends
            if is_scaled or not end.startswith("dst_")
        ]
        rules = [f"nothing: {dropped[at]}" for at in sorted(places) if at in dropped]
        text = _BETWEEN.join(str(steps[at]) for at in sorted(places))
        yield Became(word, text, tuple(dict.fromkeys(carried or rules)))


def _ends(attr: Attr, item: _Item, *, has_bias: bool) -> tuple[str, ...]:
    """Return the names of what an item is in the plan."""
    if item.kind == "acc":
        scales = ("wei_scale",) if attr.wei_scale is not None else ()
        return (*scales, *(("bias",) if has_bias else ())) or ("weights",)
    if item.kind == "dst":
        names = ("dst_scale", "dst_zero_point")
        return (*(name for name in names if getattr(attr, name) is not None), "store")
    return (item.text,)


def _words(steps: Sequence[Step]) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield the words of users for steps, and their places: those of a FakeQuantize together."""
    letters = "".join(_LETTERS.get(type(step), "-") for step in steps)
    at = 0
    while at < len(steps):
        run = _QUANTIZES.match(letters, at)
        end = at + 1 if run is None else run.end()
        word = str(steps[at]).partition("(")[0] if run is None else "FakeQuantize"
        yield word if word.isidentifier() else str(steps[at]), frozenset(range(at, end))
        at = end
