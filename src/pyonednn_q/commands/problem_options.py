"""Options of commands on problems and suites, and on runs of those."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pyonednn_q.bench.case import LAYOUTS
from pyonednn_q.bench.comparison import CONFIDENCE, THRESHOLD
from pyonednn_q.bench.peers import PEERS
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.processes import LADDER
from pyonednn_q.bench.tail import WORDS, Tail
from pyonednn_q.commands.option_table import FLAG, OptionRow
from pyonednn_q.commands.words import choice, listed, new_file, pattern, percent, positive, single
from pyonednn_q.native.timing import Budget
from pyonednn_q.primitive.isa import ISA_ORDER
from pyonednn_q.shown import install

__all__ = ["OPERATORS", "OPTIONS"]

OPERATORS = {"conv": "conv", "deconv": "deconv", "inner_product": "ip", "matmul": "matmul"}
_LIST = {"metavar": "LIST"}
_FILE = {"type": new_file, "metavar": "FILE"}
_TAIL = f"steps after the products: none, or words joined by _, from {', '.join(WORDS)}"
_LAYOUT = f"layout of src and dst of convolutions: {', '.join(LAYOUTS)} (default: {LAYOUTS[0]})"
_WHAT = partial(OptionRow, commands=("bench",), only="problem", groups={"bench": "what to measure"})
_HOW = partial(OptionRow, commands=("bench",), groups={"bench": "how"})
_REPORT = partial(OptionRow, commands=("bench",), groups={"bench": "report"})
OPTIONS = (
    OptionRow("before", ("compare",), "from bench --save", how={"type": Path, "metavar": "A.json"}),
    OptionRow("after", ("compare",), how={"type": Path, "metavar": "B.json"}),
    *(
        OptionRow(
            name,
            ("compare",),
            f"{meaning} (default: {100 * value:g})",
            how={"type": percent, "default": value, "metavar": "PERCENT"},
        )
        for name, value, meaning in (
            ("--threshold", THRESHOLD, "changes below it never count"),
            ("--confidence", CONFIDENCE, "confidence of the intervals"),
        )
    ),
    OptionRow(
        "what",
        ("inspect",),
        "a problem, a suite, a .toml or a .npz file",
        how={"nargs": "+", "metavar": "WHAT"},
    ),
    OptionRow(
        "what",
        ("saturation",),
        "a .npy or .npz file, a problem, or a suite",
        how={"nargs": "+", "metavar": "WHAT"},
    ),
    OptionRow(
        "what",
        ("bench",),
        "a suite, a .toml file, a problem, an .onnx file; or check, and suites behind it",
        how={"nargs": "*", "metavar": "SUITE|PROBLEM|MODEL"},
    ),
    OptionRow(
        "--dtype",
        ("inspect",),
        "types of src, weights and dst (default: u8s8u8)",
        how={
            "type": listed(Precision.parse),
            "default": (Precision("u8", "s8", "u8"),),
            **_LIST,
        },
    ),
    _WHAT(
        "--dtype",
        help="types of src, weights and dst: f32, bf16, f16, u8s8u8, u8s8f32, s8s8s8, ...; or "
        "weights in groups on float32 rows: s4g128, s8g32, u4g128 "
        "(default: f32,u8s8u8, and s8s8s8 of check; f32 joins where only integer types are named)",
        how={"type": listed(Precision.parse), **_LIST},
    ),
    OptionRow("--tail", ("inspect",), _TAIL, how={"type": single(Tail), "default": Tail("none")}),
    _WHAT(
        "--tail",
        help=f"{_TAIL}; fq only for integer types",
        how={"type": listed(Tail), "default": (Tail("none"),), **_LIST},
    ),
    OptionRow(
        "--layout",
        ("inspect",),
        _LAYOUT,
        how={
            "type": single(choice("layout", LAYOUTS)),
            "default": LAYOUTS[0],
            "metavar": "LAYOUT",
        },
    ),
    _WHAT(
        "--layout",
        help=_LAYOUT,
        how={"type": listed(choice("layout", LAYOUTS)), "default": LAYOUTS[:1], **_LIST},
    ),
    _WHAT(
        "--batch",
        help="factor of the batch size (default: 1)",
        how={"type": listed(positive), "default": (1,), **_LIST},
    ),
    OptionRow(
        "--isa",
        ("saturation",),
        "the instruction set to judge for, as in ONEDNN_MAX_CPU_ISA (default: AVX2)",
        how={"type": single(choice("isa", ISA_ORDER)), "default": "AVX2", "metavar": "ISA"},
    ),
    OptionRow(
        "--src",
        ("saturation",),
        "type of the source (default: that of src in the file, else u8)",
        how={"choices": ("u8", "s8")},
    ),
    OptionRow(
        "--op",
        ("saturation",),
        "operator of a .npy file (default: conv for 3 to 5 dimensions, else inner_product)",
        how={"choices": tuple(OPERATORS)},
    ),
    OptionRow(
        "--filter",
        ("inspect", "saturation", "bench"),
        "only lines whose name or problem has a match",
        only="problem",
        groups={"bench": "what to measure"},
        how={"type": pattern, "metavar": "REGEX"},
    ),
    _HOW(
        "--isa",
        help="limits of the instruction set, each in a process of its own; ladder: "
        + ", ".join(LADDER),
        only="problem",
        how={"type": listed(choice("isa", ("ladder", *ISA_ORDER))), "default": (), **_LIST},
    ),
    _HOW(
        "--threads",
        help="number of threads of the library (default: all)",
        how={"type": listed(positive), **_LIST},
    ),
    _HOW(
        "--cold",
        help="send other memory through the caches before each call",
        only="problem",
        how=FLAG,
    ),
    _HOW(
        "--min-time",
        help="mean time to measure each primitive (default: %(default)s)",
        how={"type": float, "default": Budget().min_time_s, "metavar": "SECONDS"},
    ),
    _HOW(
        "--repeat",
        help="number of samples of each primitive, instead of --min-time",
        how={"type": positive, "metavar": "N"},
    ),
    _HOW(
        "--tune",
        help="measure each case on the fastest implementation instead of the library's first, if "
        "it is surely faster",
        only="problem",
        how=FLAG,
    ),
    _HOW(
        "--peers",
        help=f"other runtimes on the same arrays, in turn: {', '.join(PEERS)} ({install('peers')})",
        how={"type": listed(choice("peers", tuple(PEERS))), "default": (), **_LIST},
    ),
    _REPORT("--save", help="write the run to this file as JSON, with every sample", how=_FILE),
    _REPORT("--csv", help="write a row for each case to this file", how=_FILE),
    _REPORT("--markdown", help="print the table as Markdown, with all columns", how=FLAG),
    _REPORT(
        "--repro",
        help="print how to reproduce each row, here and in benchdnn",
        only="problem",
        how=FLAG,
    ),
)
