"""``pyonednn-q explain``: how a layer becomes attributes and post-ops, and why.

LAYER is a preset, a TOML or JSON file, or - for standard input; docs/explain.md has all keys. Or it
is an ONNX model, whose nodes are told one by one: docs/from_onnx.md.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyonednn_q.commands.option_table import is_model
from pyonednn_q.commands.words import reading_of
from pyonednn_q.errors import ArgumentError
from pyonednn_q.explain import description_text, presets
from pyonednn_q.explain.description import read
from pyonednn_q.explain.plan_report import Report
from pyonednn_q.faults.guards.guard import FLOOR
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    import argparse

_CEILING = (4, 0, 0)
_HEADINGS = {"layers": "layers", "subgraphs": "subgraphs", "chains": "chains behind a convolution"}


def run(options: argparse.Namespace) -> int:
    """Run the command.

    Parameters
    ----------
    options : Namespace
        Parsed options of the command line.

    Returns
    -------
    int
        0.

    Raises
    ------
    Error, OSError
        The description cannot be used, or not be read.
    """
    if options.list:
        print(_list(as_json=options.json))
        return 0
    if options.layer is None:
        wanted = "a preset (--list), a file, or - for standard input"
        raise ArgumentError("LAYER", "nothing", wanted)
    if is_model(options):
        return _run_model(options)
    tables = _tables(options.layer)
    if isinstance(tables, dict):
        tables = _changed(tables, options)
    if options.show:
        print(json.dumps(tables, indent=1) if options.json else description_text.dumps(tables))
        return 0
    description = read(tables).on(_process(options))
    report = Report.of(description, strict=options.strict)
    if options.html is not None:
        options.html.write_text(report.html(), "utf-8", "replace")
    if options.json:
        print(report.json())
    else:
        print(report.text(trace=options.trace, benchdnn=options.benchdnn))
    return 0


def _run_model(options: argparse.Namespace) -> int:
    """Print the report of a model, and write its page."""
    from pyonednn_q.models.model_file import arrays_of, inputs_of, read
    from pyonednn_q.models.model_page import page
    from pyonednn_q.models.model_report import ModelReport

    arrays = None if options.input is None else arrays_of(options.input)
    file = read(Path(options.layer), arrays, **reading_of(options))
    inputs = None if arrays is None else inputs_of(file.graph.inputs, arrays, 0)
    report = ModelReport.of(file if inputs is None else file.chosen(inputs), inputs)
    if options.html is not None:
        options.html.write_text(page(report), "utf-8", "replace")
    print(report.json() if options.json else report.text(trace=options.trace))
    return 0


def _list(*, as_json: bool) -> str:
    titles = {
        file: {name: presets.get(name)["title"] for name in presets.names(file)}
        for file in presets.FILES
    }
    if as_json:
        return json.dumps(titles, indent=1, ensure_ascii=False)
    lines = []
    for file, of_file in titles.items():
        cells = [[name, title] for name, title in of_file.items()]
        table = Table([Column("name"), Column("title")], cells)
        lines += [_HEADINGS[file], table.text(head=False, margin="  ")]
    return "\n".join(lines)


def _tables(layer: str) -> Any:  # noqa: ANN401 - whatever the text says
    if layer == "-":
        return description_text.parse(
            _decoded(sys.stdin.buffer.read(), "standard input"), "standard input"
        )
    path = Path(layer)
    if path.suffix in {".toml", ".json"} or len(path.parts) > 1 or path.is_file():
        return description_text.parse(_decoded(path.read_bytes(), layer), layer)
    return presets.get(layer)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ArgumentError(name, str(problem), "text in UTF-8") from problem


def _changed(tables: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return the description with what the command line says instead."""
    changed = dict(tables)
    if options.policy is not None:
        changed["policy"] = options.policy
    if options.dst is not None:
        dst = tables.get("dst")
        changed["dst"] = {**(dst if isinstance(dst, dict) else {}), "dtype": options.dst}
    return changed


def _process(options: argparse.Namespace) -> Facts | None:
    if options.here:
        if options.isa or options.version:
            raise ArgumentError("--here", "--isa or --version", "one of the two ways to say where")
        return _facts_here()
    if options.isa is None and options.version is None:
        return None
    for name, value in (("--isa", options.isa), ("--version", options.version)):
        if value is None:
            raise ArgumentError(name, "nothing", "both --isa and --version, or neither")
    return Facts(_version(options.version), _isa(options.isa), runtime="OMP")


def _facts_here() -> Facts:
    from pyonednn_q.native import runtime

    return runtime.facts()


def _isa(text: str) -> InstructionSet:
    try:
        return InstructionSet.of(text.upper())
    except ArgumentError as error:
        raise ArgumentError("--isa", error.got, error.wanted) from error


def _version(text: str) -> tuple[int, int, int]:
    match = re.fullmatch(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", text)
    if match is not None:
        major, minor, patch = (int(part or 0) for part in match.groups())
        if FLOOR <= (major, minor, patch) < _CEILING:
            return major, minor, patch
    raise ArgumentError("--version", shown(text), "3.7 or a later 3.x, as in 3.7 or 3.13.2")
