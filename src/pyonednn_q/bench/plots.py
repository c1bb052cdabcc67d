"""Drawings of a run as SVG, for `page`: speed-up by line, and the roofline.

What is not significant is an outline, what was disturbed is hatched, and each says so where the
pointer rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.row import Row
from pyonednn_q.bench.run import Run
from pyonednn_q.bench.summary import Ratio

__all__ = ["roofline", "speedups"]

_WIDTH, _LABELS, _BAR, _GAP = 900, 300, 14, 8
_OF_BARS = "outline: not significant; hatched: disturbed"
_OF_DOTS = "outline: disturbed"
_CEILING = 1.08  # of the longest interval


def speedups(run: Run, rows: Sequence[Row]) -> str:
    """Draw a bar for each row that has a like among floats, with the interval of the ratio."""
    if not run.baselines:
        return ""
    base = run.baselines[0]
    bars: list[tuple[Row, Ratio, bool]] = []
    for row in rows:
        ratio = run.over(row, base)
        if row.dtype != base and ratio is not None:
            bars.append((row, ratio, run.is_disturbed(row, base)))
    if not bars:
        return ""
    kinds = list(dict.fromkeys(_kind(row) for row, *_ in bars))
    ends = [min(r.hi, 2 * r.value) for _, r, disturbed in bars if not disturbed]
    longest = _CEILING * max([*ends, *(r.value for _, r, _ in bars if not ends), 1.2])
    scale = (_WIDTH - _LABELS - 110) / longest
    drawn, y, name = [], 30.0, ""
    for row, ratio, disturbed in bars:
        label = row.name if row.name != name else ""
        y += _GAP if label else 2
        name = row.name
        colour = f"var(--c{kinds.index(_kind(row)) % 7})"
        drawn.append(_bar(y, label, _kind(row), ratio, colour, scale, disturbed=disturbed))
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
    return _svg(height, _key(kinds, _OF_BARS) + grid + "".join(drawn) + one, "speed-up by line")


def _bar(
    y: float, label: str, kind: str, ratio: Ratio, colour: str, scale: float, *, disturbed: bool
) -> str:
    most = (_WIDTH - _LABELS - 110) / scale
    value = min(ratio.value, most)
    verdict = "disturbed" if disturbed else str(ratio)
    tip = f"{label or kind}: {kind} {verdict}"
    if not disturbed and ratio.hi != math.inf:
        tip += f", {ratio.value:.2f} within {ratio.lo:.2f} and {ratio.hi:.2f}"
    look = f'fill="{colour}"'
    if disturbed:
        look = 'fill="url(#hatched)"'
    elif not ratio.is_significant:
        look = f'class="hollow" stroke="{colour}"'
    width = value * scale
    place = f'x="{_LABELS - 8}" y="{y + _BAR - 3:.1f}" text-anchor="end"'
    parts = [
        f"<text {place}>{escape(_short(label))}</text>",
        f'<rect x="{_LABELS}" y="{y:.1f}" width="{width:.1f}" height="{_BAR}" {look}/>',
    ]
    end = _LABELS + width
    if not disturbed:
        lo, hi = _x(ratio.lo, scale), _x(min(ratio.hi, most), scale)
        middle = y + _BAR / 2
        parts.append(
            f'<line class="interval" x1="{lo}" x2="{hi}" y1="{middle:.1f}" y2="{middle:.1f}"/>'
        )
        end = max(end, float(hi))
    parts.append(f'<text x="{end + 6:.1f}" y="{y + _BAR - 3:.1f}">{escape(verdict)}</text>')
    return f"<g><title>{escape(tip)}</title>{''.join(parts)}</g>"


def roofline(run: Run, rows: Sequence[Row]) -> str:
    """Draw operations a nanosecond over operations a byte, both on logarithmic scales."""
    limits = run.limits_of(rows[0])
    assert limits is not None
    height, left, bottom = 420.0, 60.0, 50.0
    types = list(dict.fromkeys(row.dtype for row in rows))
    roofs = [dict(limits.peak_gops), dict(limits.paper_gops)]
    rates = [rate for _, rate in limits.bandwidth_gbs]
    xs = [row.intensity for row in rows]
    ys = [row.gops for row in rows]
    x_axis = _Log(min(xs) / 2, max(xs) * 2, left, _WIDTH - 150)
    tops = [*ys, *(gops for roof in roofs for gops in roof.values())]
    y_axis = _Log(min(ys) / 2, max(tops) * 1.5, height - bottom, 40)
    parts = [_key(types, _OF_DOTS)]
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
    for index, dtype in enumerate(types):
        colour = f"var(--c{index % 7})"
        precision = Precision.parse(dtype)
        for peak, word in ((limits.peak(precision), ""), (limits.paper(precision), "paper")):
            if peak is None:
                continue
            corner = peak / max(rates)
            points = [(x_axis.lo, x_axis.lo * max(rates)), (corner, peak), (x_axis.hi, peak)]
            if corner <= x_axis.lo:
                points = [(x_axis.lo, peak), (x_axis.hi, peak)]
            line = " ".join(
                f"{x_axis.at(x):.1f},{y_axis.at(max(y, y_axis.lo)):.1f}" for x, y in points
            )
            faint = ' class="faint"' if word else ""
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}"{faint}/>')
            labels.append((y_axis.at(peak), f"{dtype} on paper" if word else f"{dtype} measured"))
        for row in (row for row in rows if row.dtype == dtype):
            tip = f"{row.name} {dtype}: {row.gops:.0f} GOPS, {row.intensity:.0f} operations a byte"
            look = f'fill="{colour}"'
            if row.is_disturbed:
                tip, look = f"{tip}, disturbed", f'class="hollow" stroke="{colour}"'
            parts.append(
                f'<circle cx="{x_axis.at(row.intensity):.1f}" cy="{y_axis.at(row.gops):.1f}" '
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
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" width="{_WIDTH}" role="img" '
        f'aria-label="{name}">{hatch}{content}</svg>'
    )


def _key(kinds: Sequence[str], marks: str) -> str:
    parts, x = [], 60.0
    for index, kind in enumerate(kinds):
        parts.append(f'<rect x="{x:.0f}" y="4" width="12" height="12" fill="var(--c{index % 7})"/>')
        parts.append(f'<text x="{x + 18:.0f}" y="15">{escape(kind)}</text>')
        x += 40 + 7.5 * len(kind)
    parts.append(f'<text x="{x:.0f}" y="15" opacity=".7">{marks}</text>')
    return "".join(parts)


def _kind(row: Row) -> str:
    return row.dtype + ("" if row.tail == "none" else f" {row.tail}")


def _short(label: str) -> str:
    return label if len(label) <= 44 else label[:30] + " … " + label[-11:]


def _x(value: float, scale: float) -> str:
    return f"{_LABELS + value * scale:.1f}"


def _ticks(longest: float) -> list[float]:
    step = next(
        step for step in (0.25, 0.5, 1, 2, 5, 10, 25, 100, 1e3, 1e4, 1e9) if longest <= 8 * step
    )
    return [step * index for index in range(1, int(longest / step) + 1)]
