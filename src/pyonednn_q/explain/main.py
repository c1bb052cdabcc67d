"""``pyonednn-q explain``: how a layer becomes attributes and post-ops, and why.

LAYER is a preset, a TOML or JSON file, or - for standard input; docs/explain.md has all keys. Or it
is an ONNX model, whose nodes are told one by one: docs/from_onnx.md.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any

from pyonednn_q.errors import ArgumentError
from pyonednn_q.explain import description_text, presets
from pyonednn_q.explain.description import POLICIES, read
from pyonednn_q.explain.plan_report import Report
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import shown

_FLOOR, _CEILING = (3, 7, 0), (4, 0, 0)
_HEADINGS = {"layers": "layers", "subgraphs": "subgraphs", "chains": "chains behind a convolution"}


def run(options: argparse.Namespace, *, here: Callable[[], Facts]) -> int:
    """Run the command.

    Parameters
    ----------
    options : Namespace
        What the parser made of the command line.
    here : callable
        Returns the facts of this process, which only the extension's room knows.

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
        print(_list())
        return 0
    if options.layer is None:
        wanted = "a preset (--list), a file, or - for standard input"
        raise ArgumentError("LAYER", "nothing", wanted)
    tables = _tables(options.layer)
    if isinstance(tables, dict):
        tables = _changed(tables, options)
    if options.show:
        print(description_text.dumps(tables))
        return 0
    description = read(tables).on(_process(options, here))
    report = Report.of(description, strict=options.strict)
    if options.html is not None:
        options.html.write_text(report.html(), "utf-8", "replace")
    if options.json:
        print(report.json())
    else:
        print(report.text(trace=options.trace, benchdnn=options.benchdnn))
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("layer", nargs="?", metavar="LAYER", help="preset, file, - or model")
    parser.add_argument("--list", action="store_true", help="list the presets")
    parser.add_argument("--show", action="store_true", help="print the description, as TOML")
    parser.add_argument("--policy", choices=POLICIES, help="which rewrites may fire")
    parser.add_argument("--dst", metavar="DTYPE", help="store this data type instead")
    parser.add_argument("--strict", action="store_true", help="refuse steps that are left over")
    parser.add_argument("--trace", action="store_true", help="tell every rewrite and refusal")
    parser.add_argument("--benchdnn", action="store_true", help="add the line for benchdnn")
    parser.add_argument("--json", action="store_true", help="print JSON instead")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a page as well")
    parser.add_argument("--isa", help="plan for this instruction set, as in ONEDNN_MAX_CPU_ISA")
    parser.add_argument("--version", help="and for this version of oneDNN: 3.7, 3.13.2")
    parser.add_argument("--here", action="store_true", help="plan for the oneDNN of this process")


def _list() -> str:
    lines = []
    for file in presets.FILES:
        cells = [[name, presets.get(name)["title"]] for name in presets.names(file)]
        table = Table([Column("name"), Column("title")], cells)
        lines += [_HEADINGS[file], indent(table.text(head=False), "  ")]
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


def _process(options: argparse.Namespace, here: Callable[[], Facts]) -> Facts | None:
    if options.here:
        if options.isa or options.version:
            raise ArgumentError("--here", "--isa or --version", "one of the two ways to say where")
        return here()
    if options.isa is None and options.version is None:
        return None
    for name, value in (("--isa", options.isa), ("--version", options.version)):
        if value is None:
            raise ArgumentError(name, "nothing", "both --isa and --version, or neither")
    return Facts(_version(options.version), _isa(options.isa), runtime="OMP")


def _isa(text: str) -> InstructionSet:
    try:
        return InstructionSet.of(text.upper())
    except ArgumentError as error:
        raise ArgumentError("--isa", error.got, error.wanted) from error


def _version(text: str) -> tuple[int, int, int]:
    match = re.fullmatch(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", text)
    if match is not None:
        major, minor, patch = (int(part or 0) for part in match.groups())
        if _FLOOR <= (major, minor, patch) < _CEILING:
            return major, minor, patch
    raise ArgumentError("--version", shown(text), "3.7 or a later 3.x, as in 3.7 or 3.13.2")
