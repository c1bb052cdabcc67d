"""Probe what the loaded oneDNN does with INT8 attributes, and write docs/support_matrix.md.

Every row is one problem with one attribute. Per instruction set (each in a process of its own, for the
limit can be set once) the implementations the library offers are asked for, unguarded, and the first is
classified: J just-in-time kernel, G GEMM and separate post-processing, r reference loop, x refused, a refused
by the attribute itself. `known` is what an earlier study measured on an AMX machine, in the order AMX,
AVX512_CORE_VNNI, AVX512_CORE, AVX2_VNNI, AVX2; a cell that differs from it is marked.

    python tools/support_matrix.py probe > part.json        # on each runtime
    python tools/support_matrix.py write part*.json > docs/support_matrix.md
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyonednn_q.compose.attr import Attr, Scale, ZeroPoint
from pyonednn_q.compose.implementation import classify
from pyonednn_q.compose.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.compose.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
    Problem,
)
from pyonednn_q.compose.tensor import TensorSpec
from pyonednn_q.errors import OneDNNError, UnsupportedError
from pyonednn_q.native import runtime

LEVELS = ("AVX512_CORE_AMX", "AVX512_CORE_VNNI", "AVX512_CORE", "AVX2_VNNI", "AVX2")
LETTERS = {"jit": "J", "gemm": "G", "reference": "r", "unknown": "?"}

SCALED = Attr(src_scale=Scale(), wei_scale=Scale(), dst_scale=Scale())


@dataclass(frozen=True)
class Row:
    """A question to the library, and what is known of the answer (3.13, then 3.7)."""

    title: str
    problem: Callable[[], Problem]
    attr: Attr = SCALED
    known: tuple[str, str] | None = None


def conv(**kw: object) -> Callable[[], Problem]:
    return lambda: ConvProblem.of((2, 64, 14, 14), (64, 64, 3, 3), padding=1, **kw)  # type: ignore[arg-type]


def depthwise(**kw: object) -> Callable[[], Problem]:
    return lambda: ConvProblem.of((2, 64, 14, 14), (64, 1, 1, 3, 3), padding=1, **kw)  # type: ignore[arg-type]


def grouped(**kw: object) -> Callable[[], Problem]:
    return lambda: ConvProblem.of((2, 64, 14, 14), (4, 16, 16, 3, 3), padding=1, **kw)  # type: ignore[arg-type]


def deconv(**kw: object) -> Callable[[], Problem]:
    return lambda: DeconvProblem.of((2, 64, 14, 14), (64, 64, 4, 4), strides=2, padding=1, **kw)  # type: ignore[arg-type]


def inner(**kw: object) -> Callable[[], Problem]:
    return lambda: InnerProductProblem.of((32, 64), 64, **kw)  # type: ignore[arg-type]


def matmul(**kw: object) -> Callable[[], Problem]:
    return lambda: MatMulProblem.of((32, 64), (64, 64), **kw)  # type: ignore[arg-type]


PRIMITIVES = {
    "conv": conv,
    "depthwise": depthwise,
    "grouped": grouped,
    "deconv": deconv,
    "inner product": inner,
    "matmul": matmul,
}
CONV_FAMILY = ("conv", "depthwise", "grouped", "deconv")
WEI_MASK = {"grouped": 3, "depthwise": 3, "matmul": 2}
DENSE = "JJJJG"
ALL = "JJJJJ"


def rows() -> Iterator[Row]:
    """Every row, primitive by primitive."""
    for name, make in PRIMITIVES.items():
        base = ALL if name in CONV_FAMILY else DENSE
        ndim = 4 if name in CONV_FAMILY else 2
        dims = {4: (2, 64, 14, 14), 2: (32, 64)}[ndim]
        if name == "deconv":
            dims = (2, 64, 28, 28)
        per_channel = (1, 64, 1, 1)[:ndim]
        mask = WEI_MASK.get(name, 1)
        yield from _dtype_rows(name, make, base)
        yield Row(
            f"{name}: wei scale per channel", make(), Attr(wei_scale=Scale(mask)), (base, base)
        )
        yield Row(
            f"{name}: dst scale per channel",
            make(),
            Attr(dst_scale=Scale(2)),
            {"matmul": ("GGGGG", "xxxxx"), "conv": ("xxxxx", ALL)}.get(name),
        )
        zero = ("xxxxx", "xxxxx") if name == "inner product" else (base, base)
        yield Row(f"{name}: src zero point", make(), Attr(src_zero_point=ZeroPoint()), zero)
        yield Row(f"{name}: dst zero point", make(), Attr(dst_zero_point=ZeroPoint()), zero)
        wei_zero = {"matmul": (base, base), "depthwise": ("xxxxx", "JJxJx")}
        yield Row(
            f"{name}: wei zero point",
            make(),
            Attr(wei_zero_point=ZeroPoint()),
            wei_zero.get(name, ("xxxxx", "xxxxx")),
        )
        yield from _post_op_rows(name, make, base, dims, per_channel)


def _dtype_rows(name: str, make: Callable[..., Callable[[], Problem]], base: str) -> Iterator[Row]:
    for src in ("u8", "s8"):
        for dst in ("u8", "s8", "s32", "f32"):
            known = (base, base)
            yield Row(f"{name}: {src} src, {dst} dst", make(src=src, dst=dst), SCALED, known)
    for bias in ("f32", "s32", "bf16"):
        known = (base, base) if bias != "bf16" else None
        yield Row(f"{name}: {bias} bias", make(bias=bias), SCALED, known)
    for dst in ("bf16", "f16"):
        yield Row(f"{name}: {dst} dst", make(dst=dst), SCALED)
    refused = ("rrrrr", "rrrrr") if name == "matmul" else ("xxxxx", "xxxxx")
    yield Row(f"{name}: u8 weights", make(wei="u8"), Attr(), refused)


def _post_op_rows(
    name: str,
    make: Callable[..., Callable[[], Problem]],
    base: str,
    dims: tuple[int, ...],
    per_channel: tuple[int, ...],
) -> Iterator[Row]:
    def attr(*ops: object) -> Attr:
        return Attr(src_scale=Scale(), wei_scale=Scale(), dst_scale=Scale(), post_ops=ops)  # type: ignore[arg-type]

    relu, clip = EltwisePostOp("relu"), EltwisePostOp("clip", 0.0, 6.0)
    linear, rounded = EltwisePostOp("linear", 2.0, 1.0), EltwisePostOp("round")
    mul = BinaryPostOp("mul", TensorSpec.dense(per_channel, "f32"))
    add = BinaryPostOp("add", TensorSpec.dense(per_channel, "f32"))
    layout = TensorSpec.channels_last if len(dims) > 2 else TensorSpec.dense
    full = BinaryPostOp("add", layout(dims, "u8"))
    both = (base, base)
    yield Row(f"{name}: relu", make(), attr(relu), both)
    yield Row(
        f"{name}: linear, round, clip, linear", make(), attr(linear, rounded, clip, linear), both
    )
    yield Row(f"{name}: mul, add per channel", make(), attr(mul, add), both)
    yield Row(f"{name}: prelu per channel", make(), attr(PReluPostOp(2)), both)
    full_known = ("JJJJG", "JJJJG") if name == "deconv" else both
    yield Row(f"{name}: add of a whole tensor", make(), attr(full), full_known)
    yield Row(f"{name}: sum, relu", make(), attr(SumPostOp(0.5), relu), both)
    with_zero = ("JJJJG", "GGGGG") if name == "inner product" else both
    yield Row(f"{name}: sum with zero point", make(), attr(SumPostOp(0.5, 3)), with_zero)
    late = both if name in CONV_FAMILY else ("JJJJr", "JJJJr")
    yield Row(f"{name}: relu, sum", make(), attr(relu, SumPostOp(0.5)), late)


def classify_row(row: Row) -> tuple[str, str]:
    """Return the letter of the first implementation offered, and its name."""
    try:
        problem = row.problem()
        candidate = runtime.core().Candidate(problem.boundary(), row.attr.boundary())
    except UnsupportedError:
        return "x", ""
    except OneDNNError as error:
        return ("a" if "attr" in error.call else "x"), ""
    impl = candidate.impl or (candidate.impl if candidate.next() else "")
    return LETTERS[classify(impl)], impl


def probe_here() -> dict[str, object]:
    """Return the letters of every row in this process."""
    cells = {row.title: classify_row(row) for row in rows()}
    return {"isa": runtime.isa(), "version": runtime.version(), "cells": cells}


def probe() -> dict[str, object]:
    """Return the letters of every row at every level this machine has."""
    found = {}
    for level in LEVELS:
        environment = os.environ | {"ONEDNN_MAX_CPU_ISA": level}
        answer = subprocess.run(
            [sys.executable, __file__, "here"],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        part = json.loads(answer.stdout)
        if part["isa"] == level:
            found[level] = part["cells"]
    return {
        "version": list(runtime.version()),
        "runtime": runtime.threading_runtime(),
        "levels": found,
    }


def write(parts: list[dict[str, object]]) -> Iterator[str]:
    """Yield the lines of the Markdown table."""
    yield "# What oneDNN does with INT8 attributes"
    yield ""
    yield "Written by `tools/support_matrix.py`; do not edit. First implementation offered, unguarded:"
    yield "J just-in-time kernel, G GEMM and separate post-processing, r reference loop, x refused, a refused"
    yield "by the attribute. **Bold** differs from what an earlier study measured on an AMX machine."
    yield "Some of what is accepted is wrong: see [guards](guards.md)."
    columns = [(part, level) for part in parts for level in part["levels"]]  # type: ignore[attr-defined]
    heads = [
        f"{'.'.join(map(str, part['version']))} {part['runtime']} {level}"  # type: ignore[arg-type]
        for part, level in columns
    ]
    yield ""
    yield f"| problem | {' | '.join(heads)} |"
    yield "|---" * (len(heads) + 1) + "|"
    differing = []
    for row in rows():
        cells = []
        for part, level in columns:
            letter, impl = part["levels"][level][row.title]  # type: ignore[index]
            known = _known(row, part["version"], level)  # type: ignore[arg-type]
            differs = known not in {None, letter}
            cells.append(f"**{letter}** (was {known})" if differs else letter)
            if differs:
                differing.append(
                    f"- {row.title}, {level}, {part['version']}: `{impl}`, was {known}"
                )
        yield f"| {row.title} | {' | '.join(cells)} |"
    yield ""
    yield f"Cells that differ from the earlier study: {len(differing)}."
    yield from differing


def _known(row: Row, version: list[int], level: str) -> str | None:
    if row.known is None:
        return None
    newer, older = row.known
    return (older if tuple(version[:2]) <= (3, 8) else newer)[LEVELS.index(level)]


def main() -> int:
    """Run one of the three verbs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["probe", "here", "write"])
    parser.add_argument("parts", nargs="*", type=Path)
    options = parser.parse_args()
    if options.verb == "write":
        parts = [json.loads(path.read_text()) for path in options.parts]
        sys.stdout.write("\n".join(write(parts)) + "\n")
    else:
        json.dump(probe() if options.verb == "probe" else probe_here(), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
