"""The page of a run: whole by itself, and what it shows and sorts in a browser."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pyonednn_q.bench.run_page import html
from support.bench_runs import row, run, samples
from support.browser import FITS, asked, needs_browser

ROWS = (
    row("first", "f32", 40.0),
    row("first", "u8s8u8", 10.0),
    row("second", "f32", 20.0),
    row("second", "u8s8u8", 20.0, samples_us=samples(20.0)[::-1]),
    row("third", "f32", 1000.0, disturbed=11),
    row("third", "u8s8u8", 100.0),
    row("<i>&fourth", "f32", 9.0),
    row("<i>&fourth", "u8s8u8", None),
)
PAGE = html(run(*ROWS, warnings=("too <loud>",)))
VOID = {"meta"}


class Balance(HTMLParser):
    """Whether every element that begins ends, and what attributes and words there are."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def drawings(page: str) -> list[ET.Element]:
    return [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def test_a_page_needs_nothing_else() -> None:
    page = Balance(PAGE)
    assert not page.open
    assert not [name for _, name, _ in page.attributes if name in {"src", "href", "srcset"}]
    assert not re.search(r"https?:|@import|url\((?!#)|fetch\(|XMLHttp", PAGE)


def test_what_is_said_is_escaped() -> None:
    assert "too &lt;loud&gt;" in PAGE
    assert "<i>" not in PAGE
    assert "&lt;i&gt;&amp;fourth" in PAGE


def test_bars_say_what_is_not_significant_and_what_was_disturbed() -> None:
    bars, _ = drawings(PAGE)
    groups = {group[0].text: group for group in bars.findall("g")}
    assert len(groups) == 3
    (sure,) = [title for title in groups if title and title.startswith("first")]
    assert re.fullmatch(r"first: u8s8u8 4\.00x, 4\.00 within \d\.\d+ and \d\.\d+", sure)
    for title, group in groups.items():
        (bar,) = group.findall("rect")
        is_hollow, is_hatched = bar.get("class") == "hollow", "hatched" in bar.get("fill", "")
        assert is_hollow == ("not significant" in str(title))
        assert is_hatched == (title == "third: u8s8u8 disturbed")


def test_the_roofline_has_a_dot_for_each_row_and_both_peaks() -> None:
    _, roofline = drawings(PAGE)
    assert len(roofline.findall("circle")) == len(ROWS) - 1
    texts = [text.text for text in roofline.findall("text")]
    assert {"f32 measured", "f32 on paper", "u8s8u8 measured", "u8s8u8 on paper"} <= set(texts)


def test_totals_name_what_they_leave_out() -> None:
    assert "<td>third</td>" in PAGE.split("Whole suites")[1].split("<h2>")[0]


def test_empty_and_refused_runs_are_pages_too() -> None:
    for made in (run(), run(row("a", "u8s8u8", None)), run(row("a", "u8s8u8", 3.0))):
        assert not Balance(html(made)).open


ASK = """
const heads = [...document.querySelectorAll("table")].at(-1).tHead.rows[0].cells;
const rows = () => [...document.querySelectorAll("table")].at(-1).tBodies[0].rows;
const column = name => [...heads].findIndex(head => head.innerText === name);
const cells = name => [...rows()].map(each => each.cells[column(name)].innerText);
const said = {};
for (const name of ["us", "line", "over f32"]) {
  said[name] = [1, 2].map(() => {
    heads[column(name)].firstChild.click();
    return [heads[column(name)].getAttribute("aria-sort"), cells(name)];
  });
}
said.sorted = [...heads].filter(head => head.hasAttribute("aria-sort")).length;
said.tables = document.querySelectorAll("table").length;
return said;
"""


@needs_browser
def test_tables_sort_in_a_browser(tmp_path: Path) -> None:
    """Numbers by value, words by letter, each both ways; what is no number comes last."""
    said = asked(PAGE, ASK, tmp_path)
    times = ["9.0", "10.0", "20.0", "20.0", "40.0", "100.0", "1000!", "-"]
    assert said["us"] == [
        ["ascending", times],
        ["descending", [*times[-2::-1], "-"]],
    ]
    names = [name for name in ("<i>&fourth", "first", "second", "third") for _ in range(2)]
    assert said["line"] == [["ascending", names], ["descending", names[::-1]]]
    (_, rising), (_, falling) = said["over f32"]
    assert rising[0].startswith("4.00x")
    assert falling[0].startswith("4.00x")
    assert {"disturbed", "not significant", ""} <= set(rising[1:])
    assert (said["sorted"], said["tables"]) == (1, 2)


@needs_browser
@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("width", [400, 1900])
def test_pages_fit_and_can_be_read(width: int, tmp_path: Path, *, is_dark: bool) -> None:
    """No page is wider than its window, and text stands out as WCAG's level AA asks: 4.5 to 1."""
    said = asked(PAGE, FITS, tmp_path, width=width, is_dark=is_dark)
    assert said["scrolls"] == 0
    assert said["count"] > 40
    assert min(said["contrasts"])[0] >= 4.5, min(said["contrasts"])
