"""Write what the composer's pages take from the code: docs/rules.md, and a table of composer.md.

python tools/composer_pages.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyonednn_q.compose.absorb import RIGHT_END
from pyonednn_q.compose.composer import NO_RULES
from pyonednn_q.compose.record import Record
from pyonednn_q.explain import Description, presets, read
from pyonednn_q.rewrite import catalogue
from pyonednn_q.rewrite.ends import Acc, Dst
from pyonednn_q.rewrite.rule import RUN, Rule, RuleSet
from pyonednn_q.rewrite.rules import carry
from refusals import reasons

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- chains: tools/composer_pages.py -->\n", "<!-- end -->"

SECTIONS: tuple[tuple[str, str, RuleSet], ...] = (
    (
        "One form for each step",
        "These come first, so that all others meet few kinds of step.",
        catalogue.CANONICAL,
    ),
    (
        "Merging and moving",
        "Constants are folded in float64; scales and shifts go left, to the weights and the bias.",
        catalogue.SIMPLIFY,
    ),
    (
        "What the ends make superfluous",
        "From what is known of the value that enters a step, and from what the store does anyway.",
        catalogue.KNOWLEDGE,
    ),
    ("Approximations", 'Policy "fast" only. Each reports what it dropped.', catalogue.APPROXIMATE),
    (
        "Into the store",
        "Last of all, what is left at its side goes into dst's scale and zero point.",
        RIGHT_END,
    ),
)

HEAD = """\
# The rules of the composer

Written by `tools/composer_pages.py` from the rules themselves; do not edit. A rule looks at
neighbouring steps and either replaces them, or refuses with a reason, or is not concerned. They are
tried in this order until none fires; `plan.explain()` and `pyonednn-q explain LAYER --trace` tell
what happened. How to read a plan is in [composer.md](composer.md).

| label | promise | policies |
|---|---|---|
| BITWISE | equal float32 values for every finite input | bitwise, real, fast |
| REAL | equal in real arithmetic, ties included; float32 may differ in the last bit | real, fast |
| BOUNDED(n) | at most n levels of the next rounding, at the rate that the rule reports | fast |

x is the value, acc the accumulator, `store` the store to dst, round to nearest and ties to even."""

WORDS = {Acc: "accumulator", Dst: "store", RUN: "one or more steps"}


def rules_page() -> Iterator[str]:
    """Give the lines of docs/rules.md."""
    yield from HEAD.splitlines()
    fired = examples()
    told: set[str] = set()
    for title, about, rules in SECTIONS:
        yield f"\n## {title}\n"
        yield about
        for rule in rules:
            if rule.name not in told:
                yield from _rule(rule, fired.get(rule.name))
            told.add(rule.name)
    yield "\n## What passes what\n"
    yield "`carry_affine_left` knows this of each step:\n"
    yield "```text"
    table = (carry.__doc__ or "").partition("\n")[2].strip("\n")
    yield from (line.removeprefix("    ") for line in table.splitlines())
    yield "```"


def _rule(rule: Rule, example: tuple[str, Record] | None) -> Iterator[str]:
    yield f"\n### {rule.name}\n"
    yield f"    {rule.identity}\n"
    window = ", ".join(" or ".join(_word(kind) for kind in place) for place in rule.pattern)
    asks = "; asks what is known of the value that enters" if rule.ranged else ""
    yield f"{rule.exactness}. Window: {window}{asks}."
    if rule.argument:
        yield f"\n{rule.argument}"
    refusals = reasons(rule)
    if refusals:
        yield "\nRefuses with:\n"
        yield from (f"- {reason}" for reason in refusals)
    if example is not None:
        preset, record = example
        yield f"\nIn the preset `{preset}`:\n"
        yield f"    {record.before}"
        yield f"    -> {record.after}"


def _word(kind: type) -> str:
    return WORDS.get(kind, kind.__name__.lower())


def examples() -> dict[str, tuple[str, Record]]:
    """Return for each rule the first preset in which it fires, and how."""
    firings: dict[str, tuple[str, Record]] = {}
    for policy in ("real", "fast"):
        for name in presets.names():
            for record in read({**presets.get(name), "policy": policy}).plan().records:
                if record.fired:
                    firings.setdefault(record.rule, (name, record))
    return firings


def chains_table() -> Iterator[str]:
    """Give the lines of the table of known chains: post-ops step by step, and composed."""
    yield "| chain | to u8: step by step | composed | to f32: step by step | composed |"
    yield "|---|--:|--:|--:|--:|"
    for name in presets.names("chains"):
        cells = [f"`{name}`: {presets.get(name)['title']}"]
        for dst in ("u8", "f32"):
            layer = with_dst(presets.get(name), dst)
            naive, plan = layer.plan(rules=NO_RULES), layer.plan(strict=True)
            cells += [str(len(naive.post_ops)), f"**{len(plan.post_ops)}**"]
        yield f"| {' | '.join(cells)} |"


def with_dst(tables: dict[str, Any], dtype: str) -> Description:
    """Return a layer that stores another data type."""
    return read({**tables, "dst": {**tables.get("dst", {}), "dtype": dtype}})


def with_table(page: str) -> str:
    """Return docs/composer.md with the table as it is now."""
    block = BEGIN + "\n" + "\n".join(chains_table()) + "\n\n" + END
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    return re.sub(pattern, lambda _: block, page, flags=re.DOTALL)


def main() -> int:
    """Write both."""
    (DOCS / "rules.md").write_text("\n".join(rules_page()) + "\n", "utf-8")
    composer = DOCS / "composer.md"
    composer.write_text(with_table(composer.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
