"""Layers of a language model at 1 to 512 tokens: microseconds beside errors, and onnxruntime's.

Runs ``pyonednn-q bench SUITE`` on one suite of layers (llama_layers or qwen_layers), in all types,
with onnxruntime as a peer, and prints a table of it: for each layer microseconds of a call and, in
decibels of signal over noise against float32, how near it is; beside weights in groups the time of
onnxruntime's MatMulNBits over ours, on the same codes, where nothing else on the machine disturbed
either; ~ stands before times that were. Needs onnx and onnxruntime.
Run ``python benchmarks/language_layers.py llama_layers --threads 1``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
from pathlib import Path

from pyonednn_q.bench.bench_run import Run
from pyonednn_q.bench.row import Row
from pyonednn_q.commands import cli

TYPES = ("f32", "bf16", "s8s8f32", "s8g128", "s4g128", "s4g32")
PEER = "onnxruntime"


def measured(suite: str, threads: int, seconds: float, wanted: str) -> Run:
    """Return a run of a suite."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.json"
        words = ["bench", suite, "--dtype", ",".join(TYPES), "--peers", PEER]
        words += ["--threads", str(threads), "--min-time", str(seconds), "--save", str(file)]
        words += ["--filter", wanted] if wanted else []
        with contextlib.redirect_stdout(io.StringIO()):
            cli.main(words)
        return Run.from_json(file.read_text())


def cell(row: Row) -> str:
    """Return microseconds, the error, and how much longer onnxruntime takes."""
    if not row.samples_us:
        return "-"
    parts = [f"{'~' if row.is_disturbed else ''}{row.median_us:.0f}"]
    if row.sqnr_db is not None:
        parts.append(f"{row.sqnr_db:.0f} dB")
    lead = row.lead(PEER)
    is_sure = not any(rival.is_disturbed for rival in row.rivals)
    if lead is not None and is_sure:
        parts.append(f"{lead.value:.2f}")
    return ", ".join(parts)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suite", choices=("llama_layers", "qwen_layers"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--min-time", type=float, default=0.05, help="seconds of each")
    parser.add_argument("--filter", default="", help="a part of the names of lines")
    told = parser.parse_args()
    run = measured(told.suite, told.threads, told.min_time, told.filter)
    lines: dict[str, dict[str, Row]] = {}
    for row in run.rows:
        lines.setdefault(row.name, {})[row.dtype] = row
    print(f"| layer, tokens | {' | '.join(TYPES)} |")
    print(f"|---|{'---|' * len(TYPES)}")
    for name, rows in lines.items():
        print(f"| {name} | {' | '.join(cell(rows[dtype]) for dtype in TYPES)} |")
    for warning in run.warnings:
        print(f"\n{warning}")


if __name__ == "__main__":
    main()
