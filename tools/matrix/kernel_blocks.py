"""The table of kernel models in blocks: each fact once, with all kernels that it is true of.

What `predict.kernel_table` reads, `tools/matrix/kernel_models.py` writes with this.
"""

from __future__ import annotations

import json
import string
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyonednn_q.predict.float_order import Order
from pyonednn_q.predict.region import Key

KEYS = ("primitive", "src", "impl", "isa", "version")
ORDER = ("together", "fused", "divided", "zeros")
WIDTH = 100

Row = dict[str, Any]

HEAD = """\
# Written by tools/matrix/kernel_models.py, read by predict/region.py; do not edit.
#
# A block of kernels is sources | implementations | versions | instruction sets: all of each with
# all of the others. What is said of a block is proven of each of them: with the order, all features
# of its primitive but those that it is without (in parentheses: run, but not decided), on shapes of
# the classes that its region lists, with the traits whose letters stand behind them.\
"""


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Give the lines of the table: each fact once, with the blocks of kernels it is true of."""
    yield from HEAD.splitlines()
    yield "\n[features]"
    every = every_feature(rows)
    for primitive, proven in every.items():
        yield from _list(primitive, sorted(proven))
    lacks: dict[tuple[str, ...], str] = {}
    facts: dict[tuple[str, str, str], list[Key]] = defaultdict(list)
    for row in rows:
        missing = sorted(every[row["primitive"]].difference(row["features"], row["open"]))
        names = (*missing, *(f"({name})" for name in row["open"]))
        letter = lacks.setdefault(names, letter_of(len(lacks)))
        facts[row["primitive"], order_text(row), letter].append(key_of(row))
    yield "\n[without]"
    for names, letter in lacks.items():
        yield from _list(letter, names)
    for (primitive, order, letter), keys in facts.items():
        yield f'\n[[kernel]]\nprimitive = "{primitive}"\norder = "{order}"\nwithout = "{letter}"'
        yield from _lines("at", _wrapped(blocks(keys)))
    yield from _regions(rows)


def _regions(rows: Sequence[Row]) -> Iterator[str]:
    shared: dict[Any, list[Key]] = defaultdict(list)
    every: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        visited = row["region"].visited
        every[row["primitive"]].update(*visited.values())
        shared[row["primitive"], tuple(sorted(visited.items(), key=lambda one: one[0]))].append(
            key_of(row)
        )
    letters = {
        primitive: dict(zip(sorted(names), string.ascii_letters, strict=False))
        for primitive, names in every.items()
    }
    for primitive, of in sorted(letters.items()):
        yield f"\n[traits.{primitive}]"
        yield from (f'{letter} = "{name}"' for name, letter in of.items())
    for (primitive, visited), keys in shared.items():
        yield f'\n[[region]]\nprimitive = "{primitive}"'
        yield from _lines("at", _wrapped(blocks(keys)))
        of = letters[primitive]
        width = max((len(name) for name, _ in visited), default=0)
        marks = (
            f"{name:{width}} | "
            + "".join(letter if trait in names else "." for trait, letter in of.items())
            for name, names in visited
        )
        yield from _lines("visited", marks)


def blocks(keys: Iterable[Key]) -> list[list[str]]:
    """Return kernels as blocks: (sources, implementations, versions, instruction sets)."""
    cells = {
        tuple(frozenset([name]) for name in (src, impl, version, isa))
        for _, src, impl, isa, version in keys
    }
    for axis in (3, 0, 2, 1) * 2:
        joint: dict[Any, set[str]] = defaultdict(set)
        for cell in cells:
            joint[cell[:axis] + cell[axis + 1 :]] |= cell[axis]
        cells = {(*rest[:axis], frozenset(names), *rest[axis:]) for rest, names in joint.items()}
    return sorted([" ".join(sorted(names)) for names in cell] for cell in cells)


def _wrapped(kernels: Iterable[Sequence[str]]) -> Iterator[str]:
    for block in kernels:
        yield from textwrap.wrap(
            " | ".join(block), WIDTH, subsequent_indent="    ", break_on_hyphens=False
        )


def _lines(name: str, lines: Iterable[str]) -> Iterator[str]:
    yield f'{name} = """'
    yield from lines
    yield '"""'


def _list(name: str, items: Sequence[str]) -> Iterator[str]:
    whole = f"{name} = {json.dumps(list(items))}"
    if len(whole) <= WIDTH:
        yield whole
        return
    yield f"{name} = ["
    words = " ".join(f"{json.dumps(item).replace(' ', '~')}," for item in items)
    yield from (f"    {line.replace('~', ' ')}" for line in textwrap.wrap(words, WIDTH - 4))
    yield "]"


def every_feature(rows: Iterable[Row]) -> dict[str, set[str]]:
    """Return all that is proven of some kernel, by primitive."""
    every: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        every[row["primitive"]].update(row["features"])
    return every


def order_text(row: Row) -> str:
    """Return the order of a row, as `Order.text` does."""
    return Order(*(row[name] for name in ORDER)).text()


def key_of(row: Row) -> Key:
    """Return what `predict.kernel_table.proofs` finds a row by."""
    return row["primitive"], row["src"], row["impl"], row["isa"], row["version"]


def letter_of(number: int) -> str:
    """Return a, b, ... z, aa, ab, ..."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return (
        letters[number]
        if number < len(letters)
        else f"{letters[number // 26 - 1]}{letters[number % 26]}"
    )
