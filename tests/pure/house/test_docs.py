"""Pages that tools write are what the tools would write now; maps of tests name what there is."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

import dialects
import hunt_page
import kernel_blocks
import kernel_models
import support
import support_matrix
from pyonednn_q.faults import guards
from pyonednn_q.predict.region import proofs
from pyonednn_q.requantize import quantize_rules

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PROBE = "probe both runtimes again: see the top of tools/matrix/support_matrix.py"


def test_the_guard_page_is_the_guard_table() -> None:
    page = "\n".join(support_matrix.guards_page()) + "\n"
    current = (REFERENCE / "guards.md").read_text() == page
    assert current, "run: python tools/matrix/support_matrix.py guards > docs/reference/guards.md"


def test_the_page_of_the_hunt_tells_of_nothing_wrong() -> None:
    page = (REFERENCE / "hunt.md").read_text()
    assert page.startswith(hunt_page.HEAD), "write it again: see the top of tools/hunt/hunt_page.py"
    rows = [
        line.split(" | ") for line in page.splitlines() if re.match(r"\| (layers|plain) ", line)
    ]
    assert len(rows) >= 12 + 10
    assert {row[6] for row in rows} == {"0"}
    named = set(re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", hunt_page.HEAD))
    assert named <= {guard.id for guard in guards.GUARDS}


def test_the_support_matrix_answers_every_question() -> None:
    page = (REFERENCE / "support_matrix.md").read_text()
    lines = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    answered = {(line[0].removeprefix("| "), line[-1].removesuffix(" |")) for line in lines}
    asked = {(row.title, row.known) for row in support_matrix.rows()}
    assert asked <= answered, PROBE
    assert len(asked) == len({title for title, _ in asked}), "two rows of one title"


def test_every_difference_is_explained() -> None:
    assert support_matrix.NOT_EXPLAINED not in (REFERENCE / "support_matrix.md").read_text()
    titles = {row.title for row in support_matrix.rows()}
    assert set(support_matrix.EXPLAINED) <= titles


def test_the_page_of_kernel_models_is_the_table() -> None:
    """Both are made from each other: what is proven from the table, the counts from the page."""
    page = (REFERENCE / "kernel_models.md").read_text()
    rows = kernel_models.rows_of(kernel_models.TABLE.read_text(), page)
    advice = "run: python tools/matrix/kernel_models.py, with parts as it says"
    assert "\n".join(kernel_models.page(rows)) + "\n" == page, advice
    assert "\n".join(kernel_blocks.table(rows)) + "\n" == kernel_models.TABLE.read_text(), advice
    assert len(rows) == len(proofs()) > 1000
    assert min(row["outputs"] for row in rows) > 0


def test_the_table_of_kernel_models_can_be_read() -> None:
    lines = kernel_models.TABLE.read_text().splitlines()
    assert len(lines) < 2000
    assert max(map(len, lines)) <= kernel_blocks.WIDTH


def test_the_page_of_dialects_is_the_catalogue() -> None:
    page = "\n".join(dialects.static_page()) + "\n" + dialects.STUDIES
    current = (REFERENCE / "dialects.md").read_text().startswith(page)
    assert current, "run: python tools/pages/dialects.py"


def test_the_page_of_dialects_names_every_rule_of_quantizing() -> None:
    for rule in quantize_rules.RULES:
        assert f"| `{rule}` | " in dialects.QUANTIZE_HEAD


def test_the_page_of_tests_names_every_folder() -> None:
    named = re.findall(r"`tests/(\w+)(?!\.)\b", (DOCS / "testing.md").read_text())
    assert {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")} <= set(named)
    assert [name for name in named if not (ROOT / "tests" / name).is_dir()] == ["ROOM"]


def test_the_map_of_support_names_every_module() -> None:
    names = re.findall(r"^[\w*, ]+(?=  )", support.__doc__ or "", re.MULTILINE)
    patterns = ", ".join(names).replace(" ", "").split(",")
    folder = Path(str(support.__file__)).parent
    there = [path.stem for path in folder.iterdir() if path.stem[0] != "_" and path.name != "data"]
    assert len(patterns) > 30
    assert [name for name in there if not any(fnmatch(name, each) for each in patterns)] == []
    assert [each for each in patterns if not any(fnmatch(name, each) for name in there)] == []


def test_the_table_of_words_is_that_of_the_code() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text().partition("## Words")[2].partition("## How")[0]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert 30 < len(rows[1:]) <= 40
    for word, _, file in rows[1:]:
        source = (ROOT / "src" / "pyonednn_q" / file.strip("`")).read_text()
        for name in re.findall(r"`([A-Z]\w+)`", word):
            assert re.search(rf"^(class |from .*import .*\b|){name}\b", source, re.MULTILINE), name


def test_the_index_names_every_page() -> None:
    linked = {path for path, _ in links(DOCS / "index.md")}
    assert {*DOCS.glob("**/*.md")} - {DOCS / "index.md", DOCS / "site" / "contents.md"} <= linked
    assert {*(ROOT / "examples").glob("*.ipynb")} <= linked


def test_a_guide_is_short() -> None:
    """What is longer has a second subject, or is a log: that goes to docs/reference."""
    for page in (*DOCS.glob("*.md"), ROOT / "CONTRIBUTING.md"):
        assert len(page.read_text().splitlines()) <= 250, page.name
        long = [line for line in sentences(page).splitlines() if len(line) > 140]
        assert long == [], page.name


# What stands between two full stops, colons or semicolons, or at the ends of an item of a list.
ENDS = re.compile(r"(?<=[.:;!?])[)*]*\s+(?=\W*[A-Z`\w])|\n\s*\n|\n\s*(?:[-*]|\d+\.) ")
MOST_WORDS = 30


def test_a_sentence_is_read_once() -> None:
    """Of guides and of the pages at the front; pages of docs/reference are logs and tables."""
    pages = [*DOCS.glob("*.md"), *ROOT.glob("*.md")]
    parts = [part for page in pages for part in ENDS.split(unlinked(sentences(page)))]
    assert len(parts) > 2000
    counts = {part: len(re.findall(r"\S*\w\S*", part)) for part in parts}
    assert [part for part, count in counts.items() if count > MOST_WORDS] == []


GLOSSARY = [
    head.lower()
    for head in re.findall("^## (.*)$", (DOCS / "glossary.md").read_text(), re.MULTILINE)
]
FORMS = {"codes": "(?<!exit )codes", "map": r"(?<=\ba )map", "saturation": r"saturat\w+"}


def test_the_glossary_has_fifteen_words() -> None:
    assert len(GLOSSARY) == 15


GUIDES = [page for page in sorted(DOCS.glob("*.md")) if page.stem not in {"glossary", "index"}]


@pytest.mark.parametrize("page", GUIDES, ids=lambda p: p.stem)
def test_a_word_of_the_glossary_is_a_link_where_it_first_stands(page: Path) -> None:
    """In sentences: not in headings, tables, code and other links."""
    text = re.sub(r"`[^`]*`", "", sentences(page))
    text = re.sub(r"\[[^\]]*\]\(glossary\.md#([\w-]+)\)", r"\n#\1\n", text)
    text = re.sub(r"!?\[[^\]]*\]\([^)]*\)", "", text)
    for word in GLOSSARY:
        form = FORMS.get(word, f"{word}s?")
        found = re.search(rf"(?<![\w#-]){form}(?![\w-])", text, re.IGNORECASE)
        linked = text.find(f"\n#{word.replace(' ', '-')}\n")
        assert found is None or -1 < linked < found.start(), word


def sentences(page: Path) -> str:
    """Return a page without code, headings and tables."""
    outside = re.sub(r"^(#|\||    +\S).*$", "", prose(page), flags=re.MULTILINE)
    return re.sub(r"^  ```.*?^  ```$", "", outside, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *REFERENCE.glob("*.md")], ids=lambda p: p.name
)
def test_links_lead_somewhere(page: Path) -> None:
    """Without Sphinx, which checks the same of the site."""
    for path, anchor in links(page):
        assert path.exists(), path
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), (path.name, anchor)


def test_the_image_installs_what_the_page_says() -> None:
    page, image = (DOCS / "install.md").read_text(), (ROOT / "Dockerfile").read_text()
    debian = page.partition("## Debian 13")[2].partition("\n## ")[0]
    (packages,) = re.findall(r"apt install (.*)", debian)
    (built,) = re.findall(r"no-install-recommends \\\n\s+(.*) \\\n", image)
    assert built.split() == packages.split()
    for line in re.findall(r"\$ pip install (.*)", debian):
        assert " ".join(line.split()[:-1]) in image
    soname = re.findall(r"soname `(libdnnl\.so\.[\d.]+)`", debian)
    assert soname == re.findall(r"PYONEDNN_Q_LIBDNNL=(\S+)", image)


def unlinked(text: str) -> str:
    """Return the words of links without where they lead."""
    return re.sub(r"\]\([^)]*\)", "]", text)


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[tuple[Path, str]]:
    """Return file and anchor of each link of a page that stays in the repository."""
    found = re.findall(r"\]\(([^)\s:#]*)(?:#([^)\s]*))?\)", prose(page))
    return [((page.parent / path).resolve() if path else page, anchor) for path, anchor in found]


def anchors(page: Path) -> set[str]:
    """Return a page's anchors, as code hosts make them of headings."""
    heads = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
