"""Write the pages of docs/reference that the composer's code makes: rules and composed chains.

python tools/pages/composer_pages.py
"""

from __future__ import annotations

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

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"

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

CHAINS_HEAD = """\
# Chains, composed

Written by `tools/pages/composer_pages.py`; do not edit. The chains that OpenVINO's CPU plugin tests
behind a convolution with bias, and some more that are easy to get wrong. Each is lowered twice:
step by step, and [composed](../composer.md). The numbers are post-ops. `pyonednn-q explain NAME`
shows each chain; [measurements](measurements.md#what-composing-is-worth) has the time.

"""

HEAD = """\
# The rules of the composer

Written by `tools/pages/composer_pages.py` from the rules themselves; do not edit. A rule looks at
neighbouring steps and either replaces them, or refuses with a reason, or does not apply. Rules are
tried in this order until none fires; `plan.explain()` and `pyonednn-q explain LAYER --trace` show
which ones fired. How to read a plan is in [composer.md](../composer.md).

| label | promise | policies |
|---|---|---|
| BITWISE | equal float32 values for every finite input | bitwise, real, fast |
| REAL | equal in real arithmetic, ties included; float32 may differ in the last bit | real, fast |
| BOUNDED(n) | at most n levels of the next rounding, at the rate that the rule reports | fast |

x is the value, acc the accumulator, `store` the store to dst, round to nearest and ties to even."""

WORDS = {Acc: "accumulator", Dst: "store", RUN: "one or more steps"}


def rules_page() -> Iterator[str]:
    """Give the lines of docs/reference/rules.md."""
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


def chains_page() -> Iterator[str]:
    """Give the lines of docs/reference/composed_chains.md: post-ops step by step, and composed."""
    yield from CHAINS_HEAD.splitlines()
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


def main() -> int:
    """Write both."""
    for name, lines in {"rules": rules_page(), "composed_chains": chains_page()}.items():
        (REFERENCE / f"{name}.md").write_text("\n".join(lines) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
