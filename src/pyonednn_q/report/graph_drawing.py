"""The graph of a model as SVG: each node below those that it reads, long ways around the others.

A node stands on the row behind the last of its sources. A way over several rows passes one free
place in each of them, so that no node lies on it; where it is longer than `_LONGEST` rows, it runs
beside the graph. Rows are put in order by where their neighbours stand, a few times down and up.
Nothing takes longer than in proportion to nodes, ways and `_LONGEST`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from pyonednn_q.shown import shortened

__all__ = ["Box", "drawing", "figure"]

_WIDTH, _HEIGHT = 188.0, 40.0  # of a box
_ACROSS, _DOWN = 204.0, 74.0  # from one to the next
_NARROW = 26.0  # what a way takes that passes a row
_LONGEST = 24  # rows that a way passes one by one
_SWEEPS = 4
_LETTERS = 26
_LINE = 14.0  # what one more line of text adds to all boxes
_STYLE = """<style>.graph rect{fill:none;stroke:currentColor}.graph text{fill:currentColor;
font:11px sans-serif;text-anchor:middle}.graph .way{fill:none;stroke:currentColor;opacity:.5}
.graph .end rect{stroke-dasharray:3}</style>"""


@dataclass(frozen=True, slots=True)
class Box:
    """A node to draw.

    Attributes
    ----------
    title, line : str
        Texts in the box: title and name.
    look : str
        A class of CSS.
    tip : str
        Text that is shown under the pointer.
    reads : tuple of int
        Indices of the boxes that it reads, all before it.
    makes : str
        Text at the edges that leave the box: data type and dims.
    measured : str
        A third line in it: what was measured.
    share : float
        Part of the whole that it takes, 0 to 1, drawn as a bar at its foot.
    """

    title: str
    line: str
    look: str
    tip: str
    reads: tuple[int, ...]
    makes: str = ""
    measured: str = ""
    share: float = 0.0


def drawing(boxes: Sequence[Box]) -> str:
    """Return an SVG element; group number i has the attribute ``data-at="i"``.

    Parameters
    ----------
    boxes : sequence of Box
        Each behind those that it reads.
    """
    rows = _Rows(boxes)
    xs = rows.places()
    tall = _HEIGHT + (_LINE if any(box.measured for box in boxes) else 0.0)
    down = _DOWN + tall - _HEIGHT
    left = min(xs, default=0.0) - _WIDTH / 2
    ways = rows.long_ways
    right = max(xs, default=0.0) + _WIDTH / 2 + 14.0 * len(ways)
    width, height = right - left + 24, rows.count * down + 24
    at = [(xs[i] - left + 12, rows.row[i] * down + 12) for i in range(len(rows.row))]
    parts = [_way([at[i] for i in path], tall) for path in rows.paths]
    edge = right - left + 12
    parts += [
        _beside(at[src], at[dst], edge - 14.0 * index, tall)
        for index, (src, dst) in enumerate(ways)
    ]
    parts += [_box(index, box, *at[index], tall) for index, box in enumerate(boxes)]
    parts += [_made(box, *at[index], tall) for index, box in enumerate(boxes) if box.makes]
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="group" aria-label="graph">{"".join(parts)}</svg>'
    )


class _Rows:
    """Row of each place, and the order within rows: boxes first, then where edges pass."""

    def __init__(self, boxes: Sequence[Box]) -> None:
        self.row: list[int] = []
        for box in boxes:
            self.row.append(1 + max((self.row[src] for src in box.reads), default=-1))
        _near_their_readers(boxes, self.row)
        self._boxes = len(boxes)
        self.paths: list[list[int]] = []
        self.long_ways: list[tuple[int, int]] = []
        for dst, box in enumerate(boxes):
            for src in dict.fromkeys(box.reads):
                if self.row[dst] - self.row[src] > _LONGEST:
                    self.long_ways.append((src, dst))
                else:
                    self.paths.append(self._path(src, dst))
        self.count = 1 + max(self.row, default=-1)
        self._above: list[list[int]] = [[] for _ in self.row]
        self._below: list[list[int]] = [[] for _ in self.row]
        for path in self.paths:
            for upper, lower in pairwise(path):
                self._above[lower].append(upper)
                self._below[upper].append(lower)

    def _path(self, src: int, dst: int) -> list[int]:
        passed = range(self.row[src] + 1, self.row[dst])
        first = len(self.row)
        self.row.extend(passed)
        return [src, *range(first, len(self.row)), dst]

    def places(self) -> list[float]:
        """Return the middle of each place, across."""
        order: list[list[int]] = [[] for _ in range(self.count)]
        for place, row in enumerate(self.row):
            order[row].append(place)
        xs = [0.0] * len(self.row)
        for members in order:
            self._spread(members, xs, lambda _: 0.0)
        for _ in range(_SWEEPS):
            for members in order[1:]:
                self._spread(members, xs, self._mean(self._above, xs))
            for members in reversed(order[:-1]):
                self._spread(members, xs, self._mean(self._below, xs))
        return xs

    @staticmethod
    def _mean(neighbours: list[list[int]], xs: list[float]) -> Callable[[int], float]:
        def wanted(place: int) -> float:
            near = neighbours[place]
            return sum(xs[each] for each in near) / len(near) if near else xs[place]

        return wanted

    def _spread(self, members: list[int], xs: list[float], wanted: Callable[[int], float]) -> None:
        """Put a row's members near where each wants to be, none on another."""
        wishes = {place: wanted(place) for place in members}
        members.sort(key=lambda place: wishes[place])
        edge, off = 0.0, 0.0
        for index, place in enumerate(members):
            half = (_ACROSS if place < self._boxes else _NARROW) / 2
            xs[place] = wishes[place] if index == 0 else max(wishes[place], edge + half)
            edge = xs[place] + half
            off += wishes[place] - xs[place]
        for place in members:
            xs[place] += off / len(members)


def _near_their_readers(boxes: Sequence[Box], row: list[int]) -> None:
    """Move boxes that read nothing down to the row before the first that reads them."""
    first: dict[int, int] = {}
    for dst, box in enumerate(boxes):
        for src in box.reads:
            first[src] = min(first.get(src, row[dst]), row[dst])
    for index, box in enumerate(boxes):
        if not box.reads and index in first:
            row[index] = first[index] - 1


def _way(points: list[tuple[float, float]], tall: float) -> str:
    (x, top), last = points[0], len(points) - 1
    y = top + tall
    words = [f"M{x:.1f} {y:.1f}"]
    for index, (to, row) in enumerate(points[1:], 1):
        end = row if index == last else row + tall / 2
        bend = (end - y) / 2
        words.append(f"C{x:.1f} {y + bend:.1f} {to:.1f} {end - bend:.1f} {to:.1f} {end:.1f}")
        x, y = to, end
    return f'<path class="way" d="{"".join(words)}"/>'


def _beside(src: tuple[float, float], dst: tuple[float, float], x: float, tall: float) -> str:
    (x0, y0), (x1, y1) = src, dst
    begin, end = y0 + tall, y1
    curve = f"C{x:.1f} {begin + 20:.1f} {x:.1f} {begin:.1f} {x:.1f} {begin + 40:.1f}"
    back = f"C{x:.1f} {end:.1f} {x:.1f} {end - 20:.1f} {x1:.1f} {end:.1f}"
    return f'<path class="way" d="M{x0:.1f} {begin:.1f}{curve}L{x:.1f} {end - 40:.1f}{back}"/>'


def _box(index: int, box: Box, x: float, y: float, tall: float) -> str:
    left = x - _WIDTH / 2
    lines = [("title", box.title), ("name", box.line), ("name measured", box.measured)]
    texts = "".join(
        f'<text class="{kind}" x="{x:.1f}" y="{y + (16, 31, 45)[at]:.1f}">'
        f"{escape(shortened(line, _LETTERS))}</text>"
        for at, (kind, line) in enumerate(lines)
        if line
    )
    bar = (
        f'<rect class="share" x="{left:.1f}" y="{y + tall - 4:.1f}" '
        f'width="{_WIDTH * box.share:.1f}" height="4" rx="2"/>'
        if box.share
        else ""
    )
    return (
        f'<g class="box {box.look}" data-at="{index}" tabindex="0" role="button" '
        f'aria-label="{escape(shortened(box.tip, 200))}">'
        f"<title>{escape(box.tip)}</title>"
        f'<rect x="{left:.1f}" y="{y:.1f}" width="{_WIDTH:.0f}" height="{tall:.0f}" rx="5"/>'
        f"{bar}{texts}</g>"
    )


def _made(box: Box, x: float, y: float, tall: float) -> str:
    text = escape(shortened(box.makes, _LETTERS))
    return f'<text class="made" x="{x + 6:.1f}" y="{y + tall + 13:.1f}">{text}</text>'


def figure(boxes: Sequence[Box], note: str = "") -> str:
    """Return a drawing as a notebook shows it, with its own style.

    Parameters
    ----------
    boxes : sequence of Box
        Each behind those that it reads.
    note : str
        Plain text below it.
    """
    below = f"<p>{escape(note)}</p>" if note else ""
    return f'<div class="graph">{_STYLE}{drawing(boxes)}{below}</div>'
