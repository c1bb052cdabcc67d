"""Descriptions as text: both formats are read, and what is wrong with a text is said."""

from __future__ import annotations

import json

import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.explain.description_text import dumps, parse

TABLES = {
    "op": "matmul",
    "title": 'a "quoted" name, 3 µs',
    "src": {"dims": [2, 3], "scale": 1e-3},
    "chain": [{"step": "clip", "lo": float("-inf"), "hi": 6}, "relu"],
    "exact_rounding": False,
}


def test_both_formats_say_the_same() -> None:
    assert parse(dumps(TABLES), "x") == TABLES
    assert parse(json.dumps(TABLES), "x") == TABLES
    assert parse("\n  " + json.dumps(TABLES), "x") == TABLES
    assert parse("[src]\ndims = [1]\n", "x") == {"src": {"dims": [1]}}


BAD = [
    ("op = ", "layer: got Invalid value.*wanted TOML"),
    ('{"op": }', "layer: got .*line 1.*wanted JSON"),
    ("op = 1\nop = 2", "layer: got .*overwrite"),
    ('{"op": 1, "op": 2}', "layer: got 'op' twice; wanted each key of a table once"),
    ('{"a":' * 100_000, "layer: got values in values"),
    ("a = " + "[" * 100_000, "layer: got"),
    ('{"op": 1' + "0" * 5000 + "}", "layer: got .*digits"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=range(7))
def test_a_text_without_a_name_is_called_text(text: str, message: str) -> None:
    for name in ("", "text"):
        with pytest.raises(ArgumentError, match=message.replace("layer", "text")):
            parse(text, name)


@pytest.mark.parametrize(
    ("text", "message"),
    BAD,
    ids=range(7),
)
def test_bad_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parse(text, "layer")
