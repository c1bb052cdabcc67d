"""Commands on models that somebody tampered with: exit codes and a line, nothing else."""

from __future__ import annotations

import functools
import io
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
from onnx import helper

from pyonednn_q.commands import cli
from support.hostile import public
from support.hostile.models import mutant, valid_models
from support.hostile.verdict import Verdict

if TYPE_CHECKING:
    from support.hostile.chunk import Report

COMMANDS = (("run",), ("diff", "--json"), ("explain", "--html", "page.html"))
_CODES = {"run": {0, 2}, "explain": {0, 2}, "diff": {0, 1, 2}}
_MOST_SECONDS = 20.0
_MOST_MEGABYTES = 512
_LONGEST = 600  # characters of the line of an error, the command's name among them


@functools.cache
def _models() -> tuple[bytes, ...]:
    """Return the models that are only read elsewhere; layers fit each other in two of them."""
    first, layers, *others = valid_models()
    model = onnx.ModelProto.FromString(layers)
    (up,) = [node for node in model.graph.node if node.op_type == "ConvTranspose"]
    up.attribute.append(helper.make_attribute("output_padding", [1, 1]))
    fits = bytes(model.SerializeToString())
    return first, fits, fits, *others


def one_command(seed: int, report: Report) -> None:
    """Judge what commands do with the model of a seed."""
    data, ways = mutant(seed, _models())
    path = Path("model.onnx")
    path.write_bytes(data)
    for name, *options in COMMANDS:
        before, start = public._most_memory(), time.monotonic()
        verdict = _judged([name, str(path), *options])
        took = time.monotonic() - start
        if took > _MOST_SECONDS:
            verdict = Verdict("WRONG", f"{took:.0f} seconds")
        if (taken := public._most_memory() - before) > _MOST_MEGABYTES:
            verdict = Verdict("WRONG", f"{taken} MB more than ever before")
        outcome = f"{name}: {verdict.outcome}"
        report.outcomes[outcome] += 1
        if not ways:
            report.plain[outcome] += 1
        if not verdict.is_allowed:
            done = ", ".join(ways) or "a valid model"
            report.wrong.append(f"seed {seed}: {done}: {name}: {verdict.text}")
    report.ways.update(ways)


def _judged(words: list[str]) -> Verdict:
    said, complaint = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(complaint):
            code = cli.main(words)
    except BaseException as error:  # whatever comes out is a fault
        return Verdict("WRONG", f"{type(error).__name__}: {error}"[:500])
    lines = [line for line in complaint.getvalue().splitlines() if line.startswith("pyonednn-q")]
    if code not in _CODES[words[0]]:
        return Verdict("WRONG", f"exit code {code}")
    if "Traceback" in complaint.getvalue():
        return Verdict("WRONG", complaint.getvalue()[-500:])
    if code == cli.UNUSABLE:
        fits = len(lines) == 1 and len(lines[0]) <= _LONGEST and not said.getvalue()
        return Verdict("refused") if fits else Verdict("WRONG", f"it said {lines}"[:700])
    return Verdict("right" if code == 0 else "a finding")
