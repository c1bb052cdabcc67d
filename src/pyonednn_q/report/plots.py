"""Drawings of measurements as SVG: bars of ratios, and the roofline.

What is not significant is an outline, what was disturbed is hatched, and each says so where the
pointer rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

__all__ = ["Bar", "Dot", "bars", "roofline"]

_WIDTH, _LABELS, _BAR, _GAP = 900, 300, 14, 8
_OF_BARS = "outline: not significant; hatched: disturbed"
_OF_DOTS = "outline: disturbed"
_CEILING = 1.08  # of the longest interval


class Bar(NamedTuple):
    """A ratio and its interval, with `words` as its label; bars of one name form a group."""

    name: str
    kind: str
    value: float
    lo: float
    hi: float
    words: str
    is_significant: bool
    is_disturbed: bool


class Dot(NamedTuple):
    """Computation of `gops` operations a nanosecond, `intensity` of them for each byte it moves."""

    name: str
    kind: str
    intensity: float
    gops: float
    is_disturbed: bool


def bars(ratios: Sequence[Bar], name: str) -> str:
    """Return an SVG element of bars, each with the interval of its ratio; nothing without any."""
    if not ratios:
        return ""
    kinds = list(dict.fromkeys(bar.kind for bar in ratios))
    ends = [min(bar.hi, 2 * bar.value) for bar in ratios if not bar.is_disturbed]
    longest = _CEILING * max([*ends, *(bar.value for bar in ratios if not ends), 1.2])
    scale = (_WIDTH - _LABELS - 110) / longest
    drawn, y, above = [], 30.0, ""
    for bar in ratios:
        label = bar.name if bar.name != above else ""
        y += _GAP if label else 2
        above = bar.name
        colour = f"var(--c{kinds.index(bar.kind) % 7})"
        drawn.append(_bar(bar, y, label, colour, scale))
        y += _BAR
    height = y + 30
    grid = "".join(
        f'<line class="grid" x1="{_x(tick, scale)}" x2="{_x(tick, scale)}" y1="28" '
        f'y2="{height - 24:.0f}"/><text x="{_x(tick, scale)}" y="{height - 8:.0f}" '
        f'text-anchor="middle">{tick:g}×</text>'
        for tick in _ticks(longest)
    )
    at = _x(1, scale)
    one = f'<line class="axis" x1="{at}" x2="{at}" y1="28" y2="{height - 24:.0f}"/>'
    return _svg(height, _key(kinds, _OF_BARS) + grid + "".join(drawn) + one, name)


def _bar(bar: Bar, y: float, label: str, colour: str, scale: float) -> str:
    most = (_WIDTH - _LABELS - 110) / scale
    value = min(bar.value, most)
    verdict = "disturbed" if bar.is_disturbed else bar.words
    tip = f"{label or bar.kind}: {bar.kind} {verdict}"
    if not bar.is_disturbed and bar.hi != math.inf:
        tip += f", {bar.value:.2f} within {bar.lo:.2f} and {bar.hi:.2f}"
    look = f'fill="{colour}"'
    if bar.is_disturbed:
        look = 'fill="url(#hatched)"'
    elif not bar.is_significant:
        look = f'class="hollow" stroke="{colour}"'
    width = value * scale
    place = f'x="{_LABELS - 8}" y="{y + _BAR - 3:.1f}" text-anchor="end"'
    parts = [
        f"<text {place}>{escape(_short(label))}</text>",
        f'<rect x="{_LABELS}" y="{y:.1f}" width="{width:.1f}" height="{_BAR}" {look}/>',
    ]
    end = _LABELS + width
    if not bar.is_disturbed:
        lo, hi = _x(bar.lo, scale), _x(min(bar.hi, most), scale)
        middle = y + _BAR / 2
        parts.append(
            f'<line class="interval" x1="{lo}" x2="{hi}" y1="{middle:.1f}" y2="{middle:.1f}"/>'
        )
        end = max(end, float(hi))
    parts.append(f'<text x="{end + 6:.1f}" y="{y + _BAR - 3:.1f}">{escape(verdict)}</text>')
    return f"<g><title>{escape(tip)}</title>{''.join(parts)}</g>"


def roofline(
    dots: Sequence[Dot],
    roofs: Mapping[str, Sequence[tuple[str, float]]],
    rate: float,
    highest: float,
) -> str:
    """Return an SVG element: operations a nanosecond over operations a byte, both logarithmic.

    Parameters
    ----------
    dots : sequence of Dot
        Measured points, at least one.
    roofs : mapping of str to sequence of (str, float)
        Words of a peak, and the peak, for each kind of dots. The second and later ones are dashed.
    rate : float
        Bytes a nanosecond, of the slope.
    highest : float
        Operations a nanosecond that the axis has at the least.
    """
    height, left, bottom = 420.0, 60.0, 50.0
    xs = [dot.intensity for dot in dots]
    ys = [dot.gops for dot in dots]
    x_axis = _Log(min(xs) / 2, max(xs) * 2, left, _WIDTH - 150)
    y_axis = _Log(min(ys) / 2, max(*ys, highest) * 1.5, height - bottom, 40)
    parts = [_key(list(roofs), _OF_DOTS)]
    for tick in x_axis.ticks():
        at = x_axis.at(tick)
        parts.append(
            f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="40" y2="{height - bottom}"/>'
            f'<text x="{at:.1f}" y="{height - bottom + 16}" text-anchor="middle">{tick:g}</text>'
        )
    for tick in y_axis.ticks():
        at = y_axis.at(tick)
        parts.append(
            f'<line class="grid" x1="{left}" x2="{_WIDTH - 150}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{tick:g}</text>'
        )
    labels: list[tuple[float, str]] = []
    for index, (kind, peaks) in enumerate(roofs.items()):
        colour = f"var(--c{index % 7})"
        for word, peak in peaks:
            corner = peak / rate
            points = [(x_axis.lo, x_axis.lo * rate), (corner, peak), (x_axis.hi, peak)]
            if corner <= x_axis.lo:
                points = [(x_axis.lo, peak), (x_axis.hi, peak)]
            line = " ".join(
                f"{x_axis.at(x):.1f},{y_axis.at(max(y, y_axis.lo)):.1f}" for x, y in points
            )
            faint = "" if word == peaks[0][0] else ' class="faint"'
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}"{faint}/>')
            labels.append((y_axis.at(peak), f"{kind} {word}"))
        for dot in (dot for dot in dots if dot.kind == kind):
            tip = f"{dot.name} {kind}: {dot.gops:.0f} GOPS, {dot.intensity:.0f} operations a byte"
            look = f'fill="{colour}"'
            if dot.is_disturbed:
                tip, look = f"{tip}, disturbed", f'class="hollow" stroke="{colour}"'
            parts.append(
                f'<circle cx="{x_axis.at(dot.intensity):.1f}" cy="{y_axis.at(dot.gops):.1f}" '
                f'r="4.5" {look}><title>{escape(tip)}</title></circle>'
            )
    lowest = 0.0
    for at, name in sorted(labels):
        lowest = max(at + 4, lowest + 13)  # no name on another
        parts.append(f'<text x="{_WIDTH - 144}" y="{lowest:.1f}">{escape(name)}</text>')
    parts.append(
        f'<text x="{(left + _WIDTH - 150) / 2}" y="{height - 12}" text-anchor="middle">'
        'operations a byte</text><text x="14" y="34">GOPS</text>'
    )
    return _svg(height, "".join(parts), "roofline")


class _Log:
    """A logarithmic axis from `lo` to `hi`, drawn between two places."""

    def __init__(self, lo: float, hi: float, begin: float, end: float) -> None:
        self.lo, self.hi, self._begin, self._end = lo, hi, begin, end

    def at(self, value: float) -> float:
        """Return the place of a value."""
        part = math.log(value / self.lo) / math.log(self.hi / self.lo)
        return self._begin + part * (self._end - self._begin)

    def ticks(self) -> Iterator[float]:
        """Yield powers of ten, and 2 and 5 of them where there are few."""
        decades = range(math.floor(math.log10(self.lo)), math.ceil(math.log10(self.hi)) + 1)
        digits = (1, 2, 5) if self.hi / self.lo < 1000 else (1,)
        for tick in (digit * 10.0**decade for decade in decades for digit in digits):
            if self.lo <= tick <= self.hi:
                yield tick


def _svg(height: float, content: str, name: str) -> str:
    hatch = (
        '<defs><pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" stroke="#888" '
        'stroke-width="3"/></pattern></defs>'
    )
    return (
        f'<div class="wide"><svg viewBox="0 0 {_WIDTH} {height:.0f}" width="{_WIDTH}" role="img" '
        f'aria-label="{name}">{hatch}{content}</svg></div>'
    )


def _key(kinds: Sequence[str], marks: str) -> str:
    parts, x = [], 60.0
    for index, kind in enumerate(kinds):
        parts.append(f'<rect x="{x:.0f}" y="4" width="12" height="12" fill="var(--c{index % 7})"/>')
        parts.append(f'<text x="{x + 18:.0f}" y="15">{escape(kind)}</text>')
        x += 40 + 7.5 * len(kind)
    parts.append(f'<text x="{x:.0f}" y="15" opacity=".7">{marks}</text>')
    return "".join(parts)


def _short(label: str) -> str:
    return label if len(label) <= 44 else label[:30] + " … " + label[-11:]


def _x(value: float, scale: float) -> str:
    return f"{_LABELS + value * scale:.1f}"


def _ticks(longest: float) -> list[float]:
    step = next(
        step for step in (0.25, 0.5, 1, 2, 5, 10, 25, 100, 1e3, 1e4, 1e9) if longest <= 8 * step
    )
    return [step * index for index in range(1, int(longest / step) + 1)]
