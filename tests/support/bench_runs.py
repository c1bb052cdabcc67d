"""Runs of the bench room that were made up: no clock, no library."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyonednn_q.bench.bench_run import Run
from pyonednn_q.bench.probe import Limits
from pyonednn_q.bench.row import Row

LIMITS = Limits((("f32", 100.0), ("u8s8", 400.0)), ((1 << 21, 40.0), (1 << 24, 20.0)), 5.0,
                (("f32", 128.0), ("u8s8", 512.0)), 2, 2.0)  # fmt: skip
METADATA = {
    "cpu": "A CPU", "cpus": "2", "isa": "AVX2", "onednn": "3.13.2", "runtime": "OMP",
    "pyonednn_q": "0.1.0", "python": "3.11.7", "numpy": "2.0.0", "system": "Linux",
    "time": "2026-01-01T00:00:00+00:00",
}  # fmt: skip


def samples(median_us: float, spread: float = 0.02, count: int = 21) -> tuple[float, ...]:
    """Samples that lie evenly around a median."""
    return tuple(float(us) for us in median_us * np.linspace(1 - spread, 1 + spread, count))


def row(line: str, dtype: str, median_us: float | None, **changes: Any) -> Row:
    """Return a row; None: it was refused."""
    values: dict[str, Any] = {
        "suite": "made", "line": line, "times": 1, "problem": "ip 8x64 64x64", "dtype": dtype,
        "tail": "none", "layout": "channels_last", "isa": "", "threads": 2, "cache": "warm",
        "ops": 2_000_000, "padded_ops": 2_400_000, "nbytes": 100_000,
        "impl": "brgemm:avx2", "attributes": "",
        "notes": (), "calls": 4, "samples_us": () if median_us is None else samples(median_us),
        "sqnr_db": None if dtype == "f32" else 38.5, "ours": f"ours {line} {dtype}",
        "benchdnn": f"benchdnn {line} {dtype}",
        "refused": "no kernel" if median_us is None else "",
    }  # fmt: skip
    return Row(**(values | changes))


def run(*rows: Row, **changes: Any) -> Run:
    """Return a run of these rows, with limits for every setting among them."""
    settings = dict.fromkeys((each.isa, each.threads) for each in rows)
    limits = tuple((setting, LIMITS) for setting in settings)
    values: dict[str, Any] = {
        "metadata": METADATA, "limits": limits, "warnings": (), "rows": rows
    }  # fmt: skip
    return Run(**(values | changes))
