"""``pyonednn-q saturation``: which output channels can be wrong on a CPU without VNNI.

There two products of 8-bit codes are added in 16 bits. WHAT is a .npy file with the codes of
weights, s8, in the operator's dims; a .npz file with wei and, if errors shall be counted, src; a
problem in quotes; or a suite. Of problems and suites, whose weights nobody knows, Gaussian weights
of the largest code 127 in each channel stand for them.

pyonednn-q saturation weights.npy --src u8 --isa AVX2
pyonednn-q saturation resnet50 --filter 3x3

The exit code is 0 if every channel is exact for every source, 1 if some source makes one wrong.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from pyonednn_q.acc.verdict import Counts, Verdict, counts, saturation
from pyonednn_q.argument import one_of
from pyonednn_q.bench import suite
from pyonednn_q.bench.case import Case
from pyonednn_q.bench.data import Sample, quantize
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.commands.problem_options import OPERATORS
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.inspection.layer_file import arrays_of
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.report.page import document, preformatted, wide
from pyonednn_q.report.progress import counted
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import shown

__all__ = ["run"]

SATURATES = 1
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class _Found:
    name: str
    verdict: Verdict
    counts: Counts | None


def run(options: argparse.Namespace) -> int:
    """Print verdicts; 1 where a channel can be wrong."""
    judged: list[_Found] = []
    left_out: list[str] = []  # products of two sources
    for word in options.what:
        if word.endswith((".npy", ".npz")):
            judged.append(_of_file(Path(word), options))
            continue
        lines = suite.chosen(word, options.filter)
        without = [line.label for line in lines if line.shape.has_two_sources]
        if len(without) == len(lines):
            raise ArgumentError("what", shown(word), "weights that are known beforehand")
        left_out += without
        judged += [
            _of_shape(line.label, line.shape, options)
            for line in counted(lines, f"judging {word}")
            if not line.shape.has_two_sources
        ]
    if options.json:
        verdicts = [_plain(each) for each in judged]
        plain = {"schema": SCHEMA, "verdicts": verdicts, "left_out": left_out}
        print(json.dumps(plain, indent=1))
    elif len(judged) == 1:
        print(_text(judged[0]))
    else:
        print(_table(judged).text())
        if left_out:
            print(f"without weights that are known beforehand: {', '.join(left_out)}")
    if options.html is not None:
        parts = [("Verdicts", wide(_table(judged)))]
        parts += [(each.name, preformatted(_text(each))) for each in judged]
        page = document("pyonednn-q saturation", " ".join(options.what), parts)
        options.html.write_text(page, "utf-8", "replace")
    return 0 if all(each.verdict.is_exact for each in judged) else SATURATES


def _of_shape(name: str, shape: Shape, options: argparse.Namespace) -> _Found:
    precision = Precision(options.src or "u8", "s8", "s32")
    codes = quantize(Case(shape, precision), Sample.of(shape, with_residual=False))
    problem = shape.problem(precision, "channels_last")
    return _Found(name, saturation(problem, codes.wei, options.isa), None)


def _of_file(file: Path, options: argparse.Namespace) -> _Found:
    src: Array | None = None
    arrays: dict[str, Array] = {}
    if file.suffix == ".npz":
        arrays = arrays_of(file, ("wei",))
        wei, src = arrays["wei"], arrays.get("src")
    else:
        wei = _codes(file)
    if not 2 <= wei.ndim <= 6:
        raise ShapeError("wei", f"shape {wei.shape} in {file}", "2 to 6 dimensions")
    if wei.dtype != np.int8:
        raise ArgumentError("wei", f"{shown(wei)} in {file}", "codes of int8")
    kind = options.op or str(arrays.get("op", "conv" if wei.ndim > 2 else "inner_product"))
    kind = OPERATORS[one_of("--op", kind, tuple(OPERATORS))]
    names = {"uint8": "u8", "int8": "s8"}
    dtype = options.src or ("u8" if src is None else names.get(str(src.dtype), str(src.dtype)))
    one_of("src", dtype, ("u8", "s8"))
    groups = int(arrays["groups"]) if "groups" in arrays else 1
    shape = _least_shape(kind, wei, groups) if src is None else _shape(kind, src, wei, arrays)
    problem = shape.problem(Precision(dtype, "s8", "s32"), "channels_last")
    verdict = saturation(problem, wei, options.isa)
    counted = None if src is None else counts(problem, src, wei, options.isa)
    return _Found(str(file), verdict, counted)


def _codes(file: Path) -> Array:
    try:
        loaded = np.load(file, allow_pickle=False)
    except (ValueError, EOFError, MemoryError) as problem:
        raise ArgumentError(str(file), shown(str(problem)), "what numpy.save writes") from None
    if not isinstance(loaded, np.ndarray):
        raise ArgumentError(str(file), shown(loaded), "one array, as numpy.save writes")
    return loaded


def _least_shape(kind: str, wei: Array, groups: int) -> Shape:
    """Return the least problem that has these weights: the verdict does not depend on its size."""
    if kind == "matmul":
        return Shape(kind, (1, wei.shape[-2]), wei.shape)
    if kind == "ip":
        return Shape(kind, (1, *wei.shape[1:]), wei.shape)
    inputs = wei.shape[1] * groups
    words = f"{kind} 1x{inputs}x{_x(wei.shape[2:])} {_x(wei.shape)}"
    return Shape.parse(words + (f" groups={groups}" if groups > 1 else ""))


def _shape(kind: str, src: Array, wei: Array, arrays: dict[str, Array]) -> Shape:
    if src.ndim < 2 or (kind in {"conv", "deconv"} and src.ndim != wei.ndim):
        raise ShapeError("src", f"shape {src.shape}", f"as many dimensions as wei, {wei.ndim}")
    words = [kind, _x(src.shape), _x(wei.shape)]
    spatial = src.ndim - 2
    for name in ("stride", "dilation", "padding"):
        if name in arrays:
            values = [int(value) for value in np.atleast_1d(arrays[name]).reshape(-1)]
            sides = [f"{value}" for value in values]
            if name == "padding" and len(values) == 2 * spatial:  # ONNX's: all low, then all high
                pairs = zip(values[:spatial], values[spatial:], strict=True)
                sides = [f"{lo}:{hi}" for lo, hi in pairs]
            words.append(f"{name}={'x'.join(sides)}")
    if "groups" in arrays and int(arrays["groups"]) > 1:
        words.append(f"groups={int(arrays['groups'])}")
    return Shape.parse(" ".join(words))


def _x(dims: tuple[int, ...]) -> str:
    return "x".join(map(str, dims))


def _text(judged: _Found) -> str:
    lines = [judged.verdict.text()]
    if judged.counts is not None:
        each = judged.counts
        lines.append(
            f"of this source: {each.wrong} of {each.outputs} sums wrong, by {each.largest} at most"
        )
    return "\n".join(lines)


def _table(judged: list[_Found]) -> Table:
    columns = [Column("line"), Column("channels", right=True), Column("flagged", right=True)]
    columns += [Column("sums from", right=True), Column("to", right=True), Column("verdict")]
    cells = []
    for each in judged:
        channels = each.verdict.channels
        lo, hi = min(c.lo for c in channels), max(c.hi for c in channels)
        reasons = dict.fromkeys(c.reason for c in channels if c.reason)
        verdict = ", ".join(reasons) or "exact"
        flagged = str(len(each.verdict.flagged))
        cells.append([each.name, str(len(channels)), flagged, str(lo), str(hi), verdict])
    return Table(columns, cells)


def _plain(judged: _Found) -> dict[str, object]:
    verdict = judged.verdict
    return {
        "name": judged.name,
        "problem": verdict.problem.text(),
        "isa": InstructionSet.of(verdict.isa).text(),
        "source": verdict.source,
        "is_exact": verdict.is_exact,
        "channels": [asdict(channel) for channel in verdict.channels],
        "counts": None if judged.counts is None else asdict(judged.counts),
    }
