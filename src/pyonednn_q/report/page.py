"""A page of HTML that needs nothing else: no network, no other file, no library.

Tables of `document` are sorted by a click, or by Enter, on a heading.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyonednn_q.report.table import Table

__all__ = ["document", "folded", "html_page", "legend", "paragraphs", "preformatted", "wide"]

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""
_STYLE = """
:root { color-scheme: light dark; --line: rgba(128,128,128,.4); --c0: #4477aa; --c1: #d9596a;
  --c2: #228833; --c3: #b59d2c; --c4: #3aa6c8; --c5: #aa3377; --c6: #888; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.2rem auto; padding: 0 1rem; }
body { max-width: 92rem; }
h1 { font-size: 1.45rem; line-height: 1.25; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 1.8rem 0 .5rem; overflow-wrap: anywhere; }
p { margin: .15rem 0; overflow-wrap: anywhere; }
.where, .legend { opacity: .8; }
.legend { font-size: .88rem; }
.legend p { margin: .3rem 0; }
.doubt { border-left: 4px solid #d08000; margin: .4rem 0; padding: .1rem .8rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .84rem; }
th, td { border-bottom: 1px solid var(--line); padding: .22rem .5rem; text-align: left; }
.wide td { white-space: nowrap; }
.wide td:last-child:not(.right) { min-width: 15rem; overflow-wrap: anywhere; white-space: normal; }
.right { font-variant-numeric: tabular-nums; }
th.right, td.right { text-align: right; }
tbody tr:hover { background: rgba(128,128,128,.12); }
th button { all: unset; cursor: pointer; font-weight: 600; white-space: nowrap; }
th button:focus-visible { outline: 2px solid var(--c0); }
th button::after { content: "\\2195"; opacity: .3; padding-left: .3em; }
th[aria-sort=ascending] button::after { content: "\\2191"; opacity: 1; }
th[aria-sort=descending] button::after { content: "\\2193"; opacity: 1; }
svg { display: block; height: auto; max-width: 100%; }
svg text { fill: currentColor; font-size: 12px; }
svg .axis { stroke: currentColor; stroke-width: 1; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .interval { stroke: currentColor; stroke-width: 1.3; }
svg .faint { stroke-dasharray: 4 3; stroke-width: 1.2; }
svg .hollow { fill: none; stroke-dasharray: 4 3; stroke-width: 1.5; }
pre { font-size: .8rem; overflow-x: auto; }
@media (max-width: 44rem) { .wide svg { min-width: 40rem; } }
"""
_SCRIPT = """
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const number = text => parseFloat(text.replace(/^[^0-9.-]+/, ""));
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button"; button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = row => row.cells[column].textContent;
      const isNumber = head.classList.contains("right");
      const order = (a, b) => {
        if (!isNumber) return value(a).localeCompare(value(b), "en", {numeric: true});
        const [x, y] = [number(value(a)), number(value(b))];
        if (isNaN(x) || isNaN(y)) return (isNaN(x) - isNaN(y)) * (up ? 1 : -1);
        return x - y;
      };
      body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * order(a, b)));
    });
  });
}
"""


def html_page(title: str, body: str, *, style: str = "", script: str = "") -> str:
    """Return a page of HTML that needs nothing else: the frame of all pages.

    Parameters
    ----------
    title : str
        Plain text, which becomes the heading as well.
    body : str
        HTML below the heading.
    style, script : str
        CSS beside that of all pages, and JavaScript that runs when the page has been read.
    """
    if script:
        body = f"{body}\n<script>{script}</script>"
    return _PAGE.format(title=escape(title), style=_STYLE + style, body=body)


def document(
    title: str, where: str, parts: Iterable[tuple[str, str]], doubts: Iterable[str] = ()
) -> str:
    """Return a page of parts in the look of all of them.

    Parameters
    ----------
    title, where : str
        Title of the measurement, and machine.
    parts : iterable of (str, str)
        Heading, and what stands below it: HTML.
    doubts : iterable of str
        Reasons to doubt the numbers.
    """
    written = [f'<p class="where">{escape(where)}</p>']
    written += [f'<p class="doubt">{escape(doubt)}</p>' for doubt in doubts]
    written += [f"<h2>{escape(heading)}</h2>\n{part}" for heading, part in parts]
    return html_page(title, "\n".join(written), script=_SCRIPT)


def wide(table: Table) -> str:
    """Return a table that scrolls where it is wider than the page."""
    return f'<div class="wide">\n{table.html()}\n</div>'


def paragraphs(lines: Iterable[str]) -> str:
    """Return an element for each line of plain text."""
    return "\n".join(f"<p>{escape(line)}</p>" for line in lines)


def legend(lines: Iterable[str]) -> str:
    """Return lines of plain text in small print."""
    return f'<div class="legend">\n{paragraphs(lines)}\n</div>'


def folded(summary: str, text: str) -> str:
    """Return preformatted text that is shown by a click on its summary."""
    return f"<details><summary>{escape(summary)}</summary><pre>{escape(text)}</pre></details>"


def preformatted(text: str) -> str:
    """Return plain text as an element, as notebooks show it."""
    return f"<pre>{escape(text)}</pre>"
