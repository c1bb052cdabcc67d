"""Suites: every line is a problem, and the networks have the multiplications of their papers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyonednn_q.bench import suite
from pyonednn_q.bench.shape import KINDS
from pyonednn_q.errors import ArgumentError, ShapeError

ROOT = Path(__file__).parents[3]
WITH_GMACS = [name for name in suite.names() if suite.find(name).gmacs]

GOOD = """
title = "mine"
source = "here"
lines = [
    { name = "a", problem = "conv 1x4x5x5 4x4x3x3 padding=1", times = 2 },
    { name = "b", problem = "matmul 2x3 3x4" },
]
"""


def test_the_asked_networks_are_there() -> None:
    wanted = {
        "resnet50", "mobilenet_v1", "mobilenet_v2", "efficientnet_b0", "vgg16", "yolo_v3", "unet",
        "ssd300", "unet3d", "dlrm", "bert_base", "bert_large", "vit_b16", "llm_decode",
        "llm_prefill", "deconvolutions", "tails",
    }  # fmt: skip
    assert wanted <= set(suite.names())


@pytest.mark.parametrize("name", suite.names())
def test_suite_parses_and_says_where_it_is_from(name: str) -> None:
    found = suite.find(name)
    assert found.title
    assert len(found.source) > 10
    assert all(line.suite == name and line.name for line in found.lines)
    assert name not in KINDS


@pytest.mark.parametrize("name", WITH_GMACS)
def test_multiplications_are_those_published(name: str) -> None:
    found = suite.find(name)
    assert found.gmacs is not None
    assert found.macs / 1e9 == pytest.approx(found.gmacs, rel=0.015)


def test_most_networks_are_checked_so() -> None:
    assert len(WITH_GMACS) >= 8


def test_the_folder_of_benchmarks_shows_the_same_files() -> None:
    linked = sorted(path.stem for path in (ROOT / "benchmarks" / "suites").glob("*.toml"))
    assert linked == list(suite.names())


def test_times_count() -> None:
    found = suite.parse("mine", GOOD)
    assert [line.times for line in found.lines] == [2, 1]
    assert found.macs == 2 * (4 * 4 * 9 * 25) + 2 * 3 * 4


def test_a_file_is_a_suite(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(GOOD)
    assert [line.suite for line in suite.find(str(path)).lines] == ["own", "own"]
    with pytest.raises(ArgumentError, match="a file that exists"):
        suite.find(str(tmp_path / "other.toml"))


@pytest.mark.parametrize(
    "word",
    [
        "conv 1x4x5x5 4x4x3x3 padding=1",
        "conv mb1ic4oc4ih5kh3ph1",
        "matmul 2x3:3x4",
        "matmul 2x3 3x4",
    ],
)
def test_a_problem_is_a_suite_of_one_line(word: str) -> None:
    (line,) = suite.find(word).lines
    assert (line.suite, line.name, line.label) == ("", "", line.shape.text())


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (
            "lines =",
            "lime =",
            r"mine.lime: got an unknown key; wanted one of .*did you mean lines\?",
        ),
        (
            'title = "mine"',
            'titel = "mine"',
            r"mine.titel: got an unknown key; .*did you mean title\?",
        ),
        (
            "times = 2",
            "times = 0",
            r"mine.lines\[0\].times of a: got 0; wanted a whole number from 1 to",
        ),
        (
            "times = 2",
            "count = 2",
            r"mine.lines\[0\].count of a: got an unknown key; wanted one of problem, name, times",
        ),
        ("times = 2", 'times = "2"', r"lines\[0\].times of a: got '2'; wanted a whole number"),
        ("times = 2", "times = 1e999", r"lines\[0\].times of a: got inf; wanted a whole number"),
        ("times = 2", "times = 2, times = 3", "wanted TOML"),  # the same key twice
        ('name = "b"', "name = 7", r"lines\[1\].name: got 7; wanted a text"),
        ('"b"', '"a"', "'a' twice"),
        ("3x3 pad", "3x3 pda", "mine, line a.*pda"),
        ("2x3 3x4", "2x3 4x4", "mine, line b.*wei"),
        ("source", "=", "wanted TOML"),
    ],
)
def test_mistakes_are_named_with_their_line(old: str, new: str, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        suite.parse("mine", GOOD.replace(old, new))


def test_a_suite_needs_its_shapes_only() -> None:
    found = suite.parse("mine", 'lines = ["ip 2x3 4x3", {problem = "conv mb1ic4oc4ih5kh3ph1"}]')
    assert (found.title, found.source, found.gmacs) == ("mine", "", None)
    assert [(line.name, line.times) for line in found.lines] == [
        ("ip 2x3 4x3", 1), ("conv 1x4x5x5 4x4x3x3 padding=1", 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "lines = []", "lines = [3]", "lines = 3", "a = " + "[" * 9999]
)
def test_no_suite_is_refused_in_a_short_line(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"^mine") as caught:
        suite.parse("mine", text)
    assert len(str(caught.value)) <= 500


@pytest.mark.parametrize("word", ["resnet51", "", "conv 1x4x5x5 4x4x9x9", "conv nonsense"])
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises((ArgumentError, ShapeError)):
        suite.find(word)
