"""A page of a graph: a click on a node shows its details beside the graph.

Names in a model are anybody's: all text is escaped, and nodes are known by their numbers alone.
Without JavaScript all of it stands below the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from pyonednn_q.report.graph_drawing import Box, drawing
from pyonednn_q.report.page import html_page, paragraphs

__all__ = ["graph_page", "section"]

_STYLE = """
:root { color-scheme: light dark; --line: rgba(128,128,128,.4); --int8: #2f8f5b; --codes: #4477aa;
  --computed: #b58a1d; --float: #c8503c; --end: #888; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0; padding: 1rem 1.2rem; }
h1 { font-size: 1.4rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0 0 .4rem; overflow-wrap: anywhere; }
p { margin: .15rem 0; overflow-wrap: anywhere; }
.both { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
.graph, .told { border: 1px solid var(--line); border-radius: .4rem; padding: .6rem; }
.graph, .told { overflow: auto; }
.js .graph, .js .told { height: 78vh; }
@media (max-width: 60rem) { .both { grid-template-columns: minmax(0, 1fr); } }
.js section[hidden] { display: none; }
section { margin-bottom: 2rem; }
dl { display: grid; gap: .1rem .9rem; margin: 0; }
dl { grid-template-columns: max-content minmax(0, 1fr); }
dt { opacity: .75; }
dd { margin: 0; overflow-wrap: anywhere; }
.legend span { margin-right: 1rem; white-space: nowrap; }
.legend i { border-radius: .2rem; display: inline-block; height: .8em; width: .8em; }
.legend i { margin-right: .35em; }
svg text { fill: currentColor; font-size: 12.5px; text-anchor: middle; }
svg .name { font-size: 10.5px; opacity: .75; }
svg .way { fill: none; stroke: var(--line); stroke-width: 1.6; }
svg .box { cursor: pointer; outline: none; }
svg .box rect { fill: var(--of); fill-opacity: .16; stroke: var(--of); stroke-width: 1.4; }
svg .box:hover rect, svg .box:focus-visible rect { fill-opacity: .32; }
svg .box[aria-pressed=true] rect { fill-opacity: .45; stroke-width: 3; }
.int8 { --of: var(--int8); } .codes { --of: var(--codes); } .computed { --of: var(--computed); }
.float { --of: var(--float); } .end { --of: var(--end); }
"""
_SCRIPT = """
document.documentElement.classList.add("js");
const boxes = [...document.querySelectorAll(".box")];
const told = [...document.querySelectorAll("section")];
const show = at => {
  boxes.forEach((box, each) => box.setAttribute("aria-pressed", each === at));
  told.forEach((section, each) => { section.hidden = each !== at; });
  document.querySelector(".told").scrollTop = 0;
};
boxes.forEach((box, at) => {
  box.addEventListener("click", () => show(at));
  box.addEventListener("keydown", event => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step) {
      const next = boxes[Math.min(Math.max(at + step, 0), boxes.length - 1)];
      next.focus(); show(boxes.indexOf(next)); event.preventDefault();
    } else if (event.key === "Enter" || event.key === " ") { show(at); event.preventDefault(); }
  });
});
show(boxes.findIndex(box => box.classList.contains("int8")));
"""
_BODY = """\
{about}
<p class="legend">{legend}</p>
<div class="both">
<div class="graph">
{graph}
</div>
<div class="told">
{told}
</div>
</div>"""


def graph_page(
    title: str, about: Sequence[str], looks: Mapping[str, str], parts: Sequence[tuple[Box, str]]
) -> str:
    """Return a page of boxes with their details.

    Parameters
    ----------
    title : str
        Plain text.
    about : sequence of str
        Lines of plain text above the graph.
    looks : mapping of str to str
        Classes of CSS that boxes have, and what each means.
    parts : sequence of (Box, str)
        Boxes, and the `section` of each.
    """
    boxes, sections = zip(*parts, strict=True)
    body = _BODY.format(
        about=paragraphs(about),
        legend=" ".join(
            f'<span class="{look}"><i style="background: var(--of)"></i>{words}</span>'
            for look, words in looks.items()
        ),
        graph=drawing(boxes),
        told="\n".join(_with_one_style(sections)),
    )
    return html_page(title, body, style=_STYLE, script=_SCRIPT)


def section(name: str, lines: Sequence[tuple[str, str]], more: str = "") -> str:
    """Return the details of a box: pairs of a word and its value, and HTML below them."""
    rows = "\n".join(f"<dt>{escape(word)}</dt><dd>{escape(text)}</dd>" for word, text in lines)
    return f"<section>\n<h2>{escape(name)}</h2>\n<dl>\n{rows}\n</dl>\n{more}\n</section>"


def _with_one_style(sections: tuple[str, ...]) -> Iterator[str]:
    """Yield sections of which only the first plan has its style: they all share it."""
    has_style = False
    for section in sections:
        begin, end = section.find("<style>"), section.find("</style>")
        if begin < 0 or not has_style:
            has_style |= begin >= 0
            yield section
        else:
            yield section[:begin] + section[end + len("</style>") :]
