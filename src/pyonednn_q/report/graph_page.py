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
:root { --int8: #2f8f5b; --codes: #4477aa; --computed: #b58a1d; --float: #c8503c; --end: #888; }
body { margin: 1rem 1.2rem; max-width: none; padding: 0; }
.told h2 { margin: 0 0 .4rem; }
.both { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
.graph, .told { border: 1px solid var(--line); border-radius: .4rem; overflow: auto; }
.graph, .told { box-sizing: border-box; }
.told { padding: .6rem; }
.graph { cursor: grab; touch-action: pan-x pan-y; }
.graph.held { cursor: grabbing; user-select: none; }
.graph svg { margin: 0 auto; max-width: none; }
.js .graph, .js .told { height: calc(100vh - 15.2rem); min-height: 22rem; }
@media (max-width: 60rem) {
  .both { grid-template-columns: minmax(0, 1fr); }
  .js .graph { height: 55vh; } .js .told { height: auto; min-height: 0; }
}
.js section[hidden] { display: none; }
section { margin-bottom: 2rem; }
dl { display: grid; gap: .1rem .9rem; margin: 0; }
dl { grid-template-columns: max-content minmax(0, 1fr); }
dt { opacity: .75; }
dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 30rem) { dl { display: block; } dd { margin: 0 0 .4rem .8rem; } }
.tools { display: flex; flex-wrap: wrap; gap: .4rem; margin: .5rem 0; }
html:not(.js) .tools { display: none; }
.tools input { flex: 0 1 22rem; font: inherit; min-width: 8rem; padding: .15rem .5rem; }
.tools button { font: inherit; min-width: 2.1rem; padding: .1rem .5rem; }
.tools output { align-self: center; opacity: .8; }
.legend span { margin-right: 1rem; white-space: nowrap; }
.legend i { border-radius: .2rem; display: inline-block; height: .8em; width: .8em; }
.legend i { background: var(--of); margin-right: .35em; }
svg .box text { font-size: 12.5px; text-anchor: middle; }
svg .box .name { font-size: 10.5px; opacity: .8; }
svg .box .measured { font-weight: 600; opacity: 1; }
svg .made { font-size: 10.5px; opacity: .8; paint-order: stroke; stroke: Canvas; }
svg .made { stroke-linejoin: round; stroke-width: 4px; }
svg .way { fill: none; stroke: var(--line); stroke-width: 1.6; }
svg .box { cursor: pointer; outline: none; }
svg .box rect { fill: var(--of); fill-opacity: .16; stroke: var(--of); stroke-width: 1.4; }
svg .box .share { fill-opacity: .9; stroke: none; }
svg .box:hover rect, svg .box:focus-visible rect { fill-opacity: .32; }
svg .box[aria-pressed=true] rect { fill-opacity: .45; stroke-width: 3; }
svg .box[aria-pressed=true] .share, svg .box:hover .share { fill-opacity: .9; stroke: none; }
svg .box.other { opacity: .25; }
.int8 { --of: var(--int8); } .codes { --of: var(--codes); } .computed { --of: var(--computed); }
.float { --of: var(--float); } .end { --of: var(--end); }
"""
_SCRIPT = """
document.documentElement.classList.add("js");
const all = (what, within = document) => [...within.querySelectorAll(what)];
const boxes = all(".box"), told = all("section"), words = told.map(each => each.textContent);
const graph = document.querySelector(".graph"), svg = graph.querySelector("svg");
const search = document.querySelector("#search"), count = document.querySelector("output");
let zoom = 1, shown = -1, found = [];
const show = at => {
  shown = at;
  boxes.forEach((box, each) => box.setAttribute("aria-pressed", each === at));
  told.forEach((section, each) => { section.hidden = each !== at; });
  document.querySelector(".told").scrollTop = 0;
};
const goTo = at => {
  const [a, b] = [boxes[at].getBoundingClientRect(), graph.getBoundingClientRect()];
  graph.scrollBy(a.x + a.width / 2 - b.x - b.width / 2, a.y + a.height / 2 - b.y - b.height / 2);
  show(at);
};
const zoomTo = (to, x = graph.clientWidth / 2, y = graph.clientHeight / 2) => {
  to = Math.min(Math.max(to, .1), 4);
  const [left, top] = [(graph.scrollLeft + x) / zoom, (graph.scrollTop + y) / zoom];
  svg.style.width = svg.getAttribute("width") * to + "px";
  zoom = to;
  graph.scrollTo(left * to - x, top * to - y);
};
const fit = () => Math.min(graph.clientWidth / svg.getAttribute("width"),
                           graph.clientHeight / svg.getAttribute("height"));
const buttons = {out: () => zoom / 1.25, in: () => zoom * 1.25, fit, whole: () => 1};
all(".tools button").forEach(each => each.addEventListener("click", () =>
  zoomTo(buttons[each.value]())));
graph.addEventListener("wheel", event => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const at = graph.getBoundingClientRect();
  zoomTo(zoom * 2 ** (-event.deltaY / 300), event.clientX - at.x, event.clientY - at.y);
}, {passive: false});
let held = null, moved = false;
graph.addEventListener("pointerdown", event => {
  if (event.pointerType === "mouse" && event.button === 0)
    held = [event.clientX + graph.scrollLeft, event.clientY + graph.scrollTop];
  moved = false;
});
addEventListener("pointermove", event => {
  if (!held) return;
  const [x, y] = [held[0] - event.clientX, held[1] - event.clientY];
  moved ||= Math.hypot(x - graph.scrollLeft, y - graph.scrollTop) > 4;
  if (moved) { graph.classList.add("held"); graph.scrollTo(x, y); }
});
addEventListener("pointerup", () => { held = null; graph.classList.remove("held"); });
const look = () => {
  const parts = search.value.toLowerCase().split(/\\s+/).filter(Boolean);
  const has = text => parts.every(part => text.toLowerCase().includes(part));
  found = parts.length ? [...boxes.keys()].filter(at => has(words[at])) : [];
  const isOther = at => parts.length > 0 && !found.includes(at);
  boxes.forEach((box, at) => box.classList.toggle("other", isOther(at)));
  count.value = parts.length ? `${found.length} of ${boxes.length}` : "";
};
search.addEventListener("input", () => { look(); if (found.length) goTo(found[0]); });
search.addEventListener("keydown", event => {
  if (event.key === "Escape") { search.value = ""; look(); }
  if (event.key !== "Enter" || !found.length) return;
  const step = event.shiftKey ? -1 : 1, at = found.indexOf(shown);
  goTo(found[(at + step + found.length) % found.length]);
});
boxes.forEach((box, at) => {
  box.addEventListener("click", () => {
    if (moved) return;
    show(at);
    if (graph.offsetWidth > innerWidth * .7)
      document.querySelector(".told").scrollIntoView({block: "nearest"});
  });
  box.addEventListener("keydown", event => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step) {
      const next = boxes[Math.min(Math.max(at + step, 0), boxes.length - 1)];
      next.focus(); show(boxes.indexOf(next)); event.preventDefault();
    } else if (event.key === "Enter" || event.key === " ") { show(at); event.preventDefault(); }
  });
});
addEventListener("keydown", event => {
  if (event.key === "/" && event.target !== search) { search.focus(); event.preventDefault(); }
});
zoomTo(Math.min(1, Math.max(.75, graph.clientWidth / svg.getAttribute("width"))));
show(boxes.findIndex(box => box.classList.contains("int8")));
"""
_BODY = """\
{about}
<p class="legend">{legend}</p>
<div class="tools">
<input id="search" type="search" placeholder="name, operator, kernel, dims" aria-label="search">
<button value="out" title="smaller">−</button><button value="in" title="larger">+</button>
<button value="fit" title="all of the graph">fit</button><button value="whole">1:1</button>
<output></output>
</div>
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
            f'<span class="{look}"><i></i>{words}</span>' for look, words in looks.items()
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
