"""The composer's pages say what the code does: what they show runs, what they list is complete."""

from __future__ import annotations

import doctest
import io
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import composer_pages
from pyonednn_q.commands import cli
from pyonednn_q.compose.absorb import RIGHT_END
from pyonednn_q.explain import presets, read
from pyonednn_q.explain.description import POLICIES
from pyonednn_q.explain.description_text import parse
from pyonednn_q.explain.layer_tables import AnyLayer
from pyonednn_q.explain.step_tables import STEPS
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.rewrite.catalogue import CATALOGUE
from refusals import reasons

REFERENCE = composer_pages.REFERENCE
DOCS = REFERENCE.parent
PAGES = sorted(DOCS.glob("*.md"))
SESSIONS = [page for page in PAGES if "```pycon" in page.read_text()]
WRITE = "run: python tools/pages/composer_pages.py"


def blocks(language: str, page: Path) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_page_of_rules_is_current() -> None:
    page = "\n".join(composer_pages.rules_page()) + "\n"
    assert page == (REFERENCE / "rules.md").read_text(), WRITE


def test_every_rule_has_its_paragraph() -> None:
    page = (REFERENCE / "rules.md").read_text()
    told = re.findall(r"^### (\w+)$", page, re.MULTILINE)
    assert sorted(told) == sorted({rule.name for rule in (*CATALOGUE, *RIGHT_END)})
    for rule in (*CATALOGUE, *RIGHT_END):
        assert f"    {rule.identity}\n" in page
        assert rule.argument in page


def test_the_table_of_chains_is_current() -> None:
    page = (REFERENCE / "composed_chains.md").read_text()
    assert page == "\n".join(composer_pages.chains_page()) + "\n", WRITE
    assert page.count("\n| `") == len(presets.names("chains"))


def matches(reason: str, template: str) -> bool:
    pattern = ".*".join(map(re.escape, template.split("…")))
    return re.fullmatch(pattern, reason, re.DOTALL) is not None


def test_every_refusal_that_is_seen_is_listed() -> None:
    """The reasons of the page are read from the source; these come from traces."""
    rules = {rule.name: rule for rule in (*CATALOGUE, *RIGHT_END)}
    layers = [
        composer_pages.with_dst({**presets.get(name), "policy": policy}, dst)
        for name in presets.names("chains")
        for policy in POLICIES
        for dst in ("u8", "s8", "f32")
    ]
    refused = [record for layer in layers for record in layer.plan().records if record.reason]
    assert len(refused) > 100
    for record in refused:
        listed = reasons(rules[record.rule])
        assert any(matches(record.reason, template) for template in listed), record


def test_reasons_are_found_through_tables_and_calls() -> None:
    """The deepest way: a rule, a function, a table of functions, a closure, a function."""
    listed = reasons(next(rule for rule in CATALOGUE if rule.name == "carry_affine_left"))
    assert "… passes one sign, and the scale is …" in listed
    assert "scale is …: only 1 and -1 pass a round" in listed
    assert "it would not save a constant" in listed
    assert "… would be beyond float32" in listed
    assert "scale is not known" not in listed


@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: page.stem)
def test_sessions_give_what_they_show(page: Path) -> None:
    """A page is one session: its blocks know the names of those before them."""
    told = io.StringIO()
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks("pycon", page)):
        session = doctest.DocTestParser().get_doctest(block, names, f"block {number}", None, None)
        assert session.examples
        runner = doctest.DocTestRunner(verbose=False)
        failed, _ = runner.run(session, out=told.write, clear_globs=False)
        names = session.globs
        assert not failed, told.getvalue()


def test_there_is_a_session() -> None:
    assert DOCS / "composer.md" in SESSIONS


@pytest.mark.parametrize("block", blocks("console", DOCS / "explain.md"))
def test_commands_print_what_is_shown(
    block: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, _, shown = block.partition("\n")
    piped, _, call = command.removeprefix("$ ").rpartition("pyonednn-q explain ")
    text = piped.removeprefix("echo '").removesuffix("' | ")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code = cli.main(["explain", *call.split()])
    printed = capsys.readouterr()
    assert code == (2 if printed.err else 0)
    assert printed.out + printed.err == shown


@pytest.mark.parametrize("block", blocks("toml", DOCS / "explain.md"))
def test_descriptions_can_be_used(block: str) -> None:
    assert read(parse(block, "block")).plan().is_whole


def test_every_key_and_step_is_documented() -> None:
    page = (DOCS / "explain.md").read_text()
    for kind in set(STEPS) - set(ALGS):
        assert f"`{kind}`" in page
    _, tables = msgspec.json.schema_components([AnyLayer])
    keys = {key for table in tables.values() for key in table["properties"]}
    assert {"unit", "slope", "extent", "symmetric", "cycle", "groups", "has_min"} <= keys
    for key in keys:
        assert re.search(rf"`(\w+\.)?{key}`|{key} = ", page), key
