"""Write docs/reference/support_matrix.md and guards.md: what oneDNN does, and what it does wrong.

Every row of the matrix is a few problems that should be answered alike. Per instruction set (each
in a process of its own, for the limit can be set once) the library is asked for its first
implementation, unguarded, and the name is classified.

    python tools/matrix/support_matrix.py probe > part.json        # with each oneDNN
    python tools/matrix/support_matrix.py write part*.json > docs/reference/support_matrix.md
    python tools/matrix/support_matrix.py guards > docs/reference/guards.md
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import support_rows
import support_shapes
from pyonednn_q.errors import OneDNNError
from pyonednn_q.faults import guards
from pyonednn_q.native import runtime
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.isa import InstructionSet, classify
from pyonednn_q.primitive.problem import Problem
from support_rows import Row

DECONV_GEMM = (
    "A deconvolution falls back to a GEMM with separate post-processing, which takes operands of "
    "any type in 3.7. The study's row does not tell deconvolutions apart."
)

GUARDED = (
    "A row of the [guard table](guards.md) that is newer than the study, or that errs on the side "
    "of matching, steps over it."
)
GAPS = (
    "The study has one row for all convolutions. The GEMM takes a src with gaps for groups, and "
    "only the reference loop a dst."
)

# The order of the letters in `Row.known`; SSE41 behaves as AVX2.
STUDIED = ("AVX512_CORE_AMX", "AVX512_CORE_VNNI", "AVX512_CORE", "AVX2_VNNI", "AVX2")
LEVELS = (*STUDIED, "SSE41")
ZEN5 = InstructionSet("AVX512_CORE_BF16", vex_vnni=True)
STUDIED_VERSIONS = ((3, 13), (3, 7))
LETTERS = {"jit": "J", "gemm": "G", "reference": "r", "unknown": "?"}
SETTERS = ("dnnl_primitive_attr_set", "dnnl_post_ops_append")
SECTIONS = (
    "Shapes",
    "Data types",
    "Scales",
    "Zero points",
    "Post-ops",
    "Sum",
    "Operands",
    "Layouts",
)


# Why a row differs from the study, by its title. Reasons are the library's own dispatch log.
EXPLAINED = {
    "inner product, 4-D source": (
        "The wrapper of matmul that packs these weights wrongly is not offered on SSE41, where "
        "its matmul cannot be made. The GEMM behind it is right."
    ),
    "deconv: f32 to u8, f32 bias": (
        "The float convolutions inside a deconvolution need AVX2 at least. Without a bias there is "
        "none on AVX2 either: see the row below it."
    ),
    "matmul: f32 src, s8 weights as floats, fpmath strict or any": (
        "3.13 has `brg_matmul:avx2` for this, but not for fpmath bf16 and f16, where the reference "
        "loop is left as in the study. The study does not say which mode it asked for."
    ),
    "matmul: weight scale per element": (
        "The study gives one letter for all levels. On AVX2 brgemm refuses 8-bit matmuls of any "
        "kind, and the GEMM takes these scales, wrongly as well."
    ),
    "matmul: weight scale, groups of 1 x 1": (
        "3.7: on AVX2 brgemm refuses 8-bit matmuls and the GEMM refuses groups. The reference loop "
        "that is left is right in 3.7. In 3.13 it is wrong, which was found after the study."
    ),
    "matmul: weight scale, groups of 32 x 1": (
        "On AVX2 brgemm refuses 8-bit matmuls and the GEMM refuses groups. The reference loop that "
        "is left is right."
    ),
    "inner product: reading dst as another type of its size": (
        "AVX2 does it in the wrapper of matmul, which SSE41 does not have; the GEMM behind it "
        "refuses the type of the sum."
    ),
    **dict.fromkeys(
        (
            "conv 3x3, 1 channel",
            "conv 3x3, padding 3",
            "deconv 1-D",
            "deconv depthwise, s8",
            "deconv: u8 or s8 to u8, s8, s32 or f32; no bias or f32, s32, s8, u8",
            "deconv: src",
            "deconv: src and dst, linear, round, clip, linear",
            "depthwise: scalar or per channel, f32, s32, s8, u8, prelu",
        ),
        GUARDED,
    ),
    "depthwise: gaps between images": GAPS,
    "grouped: gaps between images": GAPS,
    "deconv: bf16, per channel": DECONV_GEMM,
    "deconv: f16, per channel": DECONV_GEMM,
    "deconv: gaps between images": (
        "The GEMM inside a deconvolution takes a src with gaps, though not a dst. The study has "
        "one row for convolutions and deconvolutions."
    ),
}


@dataclass(frozen=True)
class Cell:
    """What a row gets: a letter for each kind of answer, and the implementations behind them."""

    letters: tuple[str, ...]
    impls: tuple[str, ...]

    def text(self) -> str:
        """Return the letters; several when the row's problems are not answered alike."""
        return " ".join(self.letters)


@dataclass(frozen=True)
class Part:
    """The cells of one oneDNN, by instruction set and title."""

    version: tuple[int, ...]
    runtime: str
    levels: dict[str, dict[str, Cell]]

    @property
    def name(self) -> str:
        """Version and runtime, as a column says them."""
        return f"{'.'.join(map(str, self.version))} {self.runtime}"

    @classmethod
    def read(cls, path: Path) -> Part:
        """Return what `probe` wrote."""
        told: dict[str, Any] = json.loads(path.read_text())
        levels = {
            level: {title: Cell(*map(tuple, cell)) for title, cell in cells.items()}
            for level, cells in told["levels"].items()
        }
        return cls(tuple(told["version"]), told["runtime"], levels)


def rows() -> list[Row]:
    """Return every row, in the order of the page."""
    every = [*support_shapes.rows(), *support_rows.rows()]
    return sorted(every, key=lambda row: SECTIONS.index(row.section))


# --- asking -------------------------------------------------------------------------------------


def cell(row: Row) -> Cell:
    """Ask the library for the first implementation of each problem of a row."""
    answers = {_first(problem, attr): None for problem, attr in row.asked}
    letters = dict.fromkeys(letter for letter, _ in answers)
    return Cell(tuple(letters), tuple(dict.fromkeys(impl for _, impl in answers if impl)))


def _first(problem: Problem, attr: Attr) -> tuple[str, str]:
    try:
        candidate = runtime.core.Candidate(problem.boundary(), attr.boundary())
    except OneDNNError as error:
        return ("a" if error.call.startswith(SETTERS) else "x"), ""
    # A descriptor served from the library's cache can come without its name; the next one has it.
    impl = candidate.impl or (candidate.impl if candidate.next() else "")
    wrong = guards.matching(problem, attr, runtime.facts(), impl)
    return LETTERS[classify(impl)] + ("!" if wrong else ""), impl


def probe_here() -> dict[str, object]:
    """Return every cell at this process's instruction set."""
    cells = {row.title: tuple(asdict(cell(row)).values()) for row in rows()}
    return {"isa": runtime.isa().level, "cells": cells}


def probe() -> dict[str, object]:
    """Return every cell at every level this machine has."""
    levels = {}
    for level in LEVELS:
        child = subprocess.run(
            [sys.executable, __file__, "here"],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=os.environ | {"ONEDNN_MAX_CPU_ISA": level},
        )
        answer = json.loads(child.stdout)
        if answer["isa"] == level:
            levels[level] = answer["cells"]
    version, threading = runtime.version(), runtime.threading_runtime()
    return {"version": version, "runtime": threading, "levels": levels}


# --- telling ------------------------------------------------------------------------------------


def known(row: Row, part: Part, level: str) -> str:
    """Return the studied letter of a cell; empty when it is not known."""
    if part.version[:2] not in STUDIED_VERSIONS:
        return ""
    told = row.known.split(" / ")
    letters = re.findall(r"[JGrxa?]!?", told[-1] if part.version[:2] == (3, 7) else told[0])
    if len(letters) == 1:
        letters *= len(STUDIED)
    letter = str(letters[STUDIED.index("AVX2" if level == "SSE41" else level)])
    return "" if letter == "?" else letter


def differs(row: Row, part: Part, level: str) -> bool:
    """Tell whether a cell is not what the study saw."""
    studied = known(row, part, level)
    return bool(studied) and part.levels[level][row.title].letters != (studied,)


def matrix_page(parts: Sequence[Part]) -> Iterator[str]:
    """Give the lines of docs/reference/support_matrix.md."""
    yield from MATRIX_HEAD.splitlines()
    columns = [(part, level) for part in parts for level in part.levels]
    heads = [f"{part.name} {level}" for part, level in columns]
    for section, members in groupby(rows(), key=lambda row: row.section):
        yield f"\n## {section}\n"
        yield f"| problem | {' | '.join(heads)} | earlier study |"
        yield "|---|" + ":-:|" * (len(heads) + 1)
        for row in members:
            cells = [
                f"**{text}**" if differs(row, part, level) else text
                for part, level in columns
                for text in [part.levels[level][row.title].text()]
            ]
            yield f"| {row.title} | {' | '.join(cells)} | {row.known} |"
    yield from differences(columns)


def differences(columns: Sequence[tuple[Part, str]]) -> Iterator[str]:
    """Give the lines of the last section: each row that differs, and why."""
    yield "\n## Differences\n"
    differing = {row: [column for column in columns if differs(row, *column)] for row in rows()}
    count = sum(len(where) for where in differing.values())
    compared = sum(bool(known(row, *column)) for row in rows() for column in columns)
    yield f"{count} of {compared} cells that the earlier study knows are different now."
    for row, where in differing.items():
        if not where:
            continue
        yield f"\n**{row.title}.** {EXPLAINED.get(row.title, NOT_EXPLAINED)}\n"
        for part, level in where:
            entry = part.levels[level][row.title]
            names = ", ".join(f"`{impl}`" for impl in entry.impls) or "no implementation"
            yield f"- {part.name} {level}: {entry.text()} ({names}), was {known(row, part, level)}"


def guards_page() -> Iterator[str]:
    """Give the lines of docs/reference/guards.md."""
    yield from GUARDS_HEAD.splitlines()
    for guard in guards.GUARDS:
        levels = [level for level in LEVELS if guard.isas(InstructionSet(level))]
        beside = guard.isas(ZEN5) and not guard.isas(InstructionSet(ZEN5.level))
        levels += [ZEN5.text()] if beside else []
        where = ", ".join(levels) if len(levels) < len(LEVELS) else "all instruction sets"
        since, until = (_short(version) for version in (guard.since, guard.until))
        summary = (guard.condition.__doc__ or "").strip().splitlines()[0]
        yield f"\n## {guard.id}\n"
        yield f"- **Where**: {', '.join(guard.kinds).replace('_', ' ')}; {where}"
        yield f"- **Versions**: from {since} " + (f"to before {until}" if until else "on")
        yield f"- **When**: {summary.removeprefix('Match ').rstrip('.')}"
        yield f"- **Effect**: {guard.effect}"
        yield f"- **Remedy**: {guard.remedy}"
        yield f"- **Source**: {guard.source}"
    yield "\n## Read about\n"
    yield from READ.splitlines()


def _short(version: tuple[int, int, int] | None) -> str:
    return ".".join(map(str, version[:2])) if version else ""


NOT_EXPLAINED = "Not explained yet."

MATRIX_HEAD = """\
# What oneDNN does with INT8 problems

Written by `tools/matrix/support_matrix.py`; do not edit. The tables have the first implementation
that each oneDNN offers on each instruction set, before [guards](guards.md) and trust rules choose:

- **J**: generated code; **G**: a matrix product with separate steps around it (15 to 200 times
  slower); **r**: a reference loop (1 000 times slower or more; refused unless allowed);
- **x**: refused; **a**: refused by the attribute;
- **!**: known to be wrong, or not known to be right: passed over or refused.

The columns were measured on an AMD Zen 5, limited to each level. The last column is from an earlier
study on a machine with AMX, by the same rules. It has five letters, for AVX512_CORE_AMX,
AVX512_CORE_VNNI, AVX512_CORE, AVX2_VNNI and AVX2 (and SSE41), or one letter for all. If versions
differ, it has 3.13 / 3.7; a ? means that the study does not tell. **Bold**: not as there."""

GUARDS_HEAD = """\
# What oneDNN is known to compute wrong

Written by `tools/matrix/support_matrix.py guards` from `pyonednn_q.faults.guards`; do not edit. If
a row matches an implementation, the next implementation is tried. If none is left, `prepare` raises
`KnownWrongError` with the row's name and its remedy. Versions 3.7.2 and 3.13.2 were measured. For
versions between the two, the faults of both are assumed, unless a fix is known; for later versions,
those of 3.13. In a source, *read* means that the fault was not reproduced, because no processor or
version at hand has it. *Seen* means that it occurs in few of many calls, so no test shows it.
[The hunt](hunt.md) searches for more faults."""

READ = """\
Release notes and threads that were looked up, and tried here where that was possible. Of each of
seven descriptions (int8 and grouped convolutions, 4-D products with a batch of 1, types of
operands, operands per image, types of scales, source strides) 60 problems at random, at each of six
levels of 3.7.2 and 3.13.2, were run by all trusted implementations and compared with exact
integers: 5040 problems, 10657 runs, and one problem wrong, of source strides on 3.7.2.

- 3.9.1, reorder of int8 weights with compensation: seen on 3.7.2, the rows
  `conv-gemm-transposed-wei` and `depthwise-eight-taps`.
- 3.9.2, int8 convolution on AVX2 with DL Boost: the index that was repaired is in no release, in
  3.9.1 and before there is none and in 3.9.2 and 3.10 it is right; 3.7.2 and 3.13.2 were right at
  AVX2_VNNI. Multi-dimensional matmul on AMX: not run, no AMX at hand.
- 3.11.4 and 3.12.2, 4-D matmul with a batch of 1: the row `matmul-4d-broadcast-b`; it shows on
  3.7.2, and the lines that were taken out are in every version from 3.7 to 3.11.3, and in 3.12.0
  and 3.12.1.
- 3.12.1, s8 convolution with padding and AVX-512: the row `one-channel-s8-padding`, on 3.7.2.
- 3.12.2, grouped convolution on AVX10.1: a missing kernel where a source is copied (AMX, f16); its
  case has windows in the padding, which `conv-window-outside` steps over. Crash with certain data
  types of post-ops: of dst and bias types that none of ours are.
- 3.13.1, matmul with non-f32 common scales: AMX only, the row `matmul-half-wei-scale`. Non-trivial
  source strides: `matmul-padded-src-k-tail` on AMX, and `matmul-batches-at-two-steps` on 3.7.2 at
  all levels; other sources with gaps and transposed ones were right below AMX.
- uxlfoundation/oneDNN #5717, NaN of one row of a matmul in another on AMX: integers have no NaN. It
  is probably the same reading past a row as `matmul-plain-b-k-tail`.
- #3803, binary operands per image in an int8 GEMM convolution: on x64 the GEMM takes none, at no
  level of 3.7.2 and 3.13.2; it was found on AArch64.
- #4396, threads and a broadcast 4-D matmul: `matmul-4d-broadcast-b`.
- #3450: not found in any public copy.
- select as a post-op (3.9 and later; with a broadcast condition it reads beyond its end): it cannot
  be asked for."""


def main() -> int:
    """Run one of the verbs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["probe", "here", "write", "guards"])
    parser.add_argument("parts", nargs="*", type=Path, help="what probe wrote, for write")
    options = parser.parse_args()
    if options.verb == "guards":
        print("\n".join(guards_page()))
    elif options.verb == "write":
        print("\n".join(matrix_page([Part.read(path) for path in options.parts])))
    else:
        print(json.dumps(probe() if options.verb == "probe" else probe_here()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
