"""What the kinds of sources, weights and results of a call cost, one beside the other.

One convolution and one product, channels last, with ``out=``; every kind is called in turn, and the
median of the rounds counts. Run ``python benchmarks/call_kinds.py``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

import pyonednn_q as pq

RNG = np.random.default_rng(0)
KINDS = (
    "symmetric, codes",
    "source zero point by attribute",
    "by map; matmul: by bias",
    "asymmetric weights in 2 parts",
    "one zero point of weights",
    "bf16 result",
    "f16 result",
    "float source, zero point 117",
    '`Dynamic("u8")`',
    '`Dynamic("s8")`',
    '`Dynamic("u8", "per_row")`',
    '`Dynamic("s8", "per_row")`',
)


def settings(kind: str, *, product: bool) -> dict[str, Any] | None:
    """Return what a kind is made with, beside symmetric codes; ``None`` where there is none."""
    point = pq.QParams(0.02, 117, "u8")
    last, count = (1, 768) if product else (0, 64)
    scales = np.full(count, 0.01)
    asymmetric = pq.QParams(scales, RNG.integers(120, 136, count), "u8", axis=last)
    options: dict[str, dict[str, Any] | None] = {
        "symmetric, codes": {},
        "source zero point by attribute": {"src_q": point, "zero_point": "attribute"},
        "by map; matmul: by bias": {"src_q": point, "zero_point": "bias" if product else "map"},
        "asymmetric weights in 2 parts": {"wei_q": asymmetric},
        "one zero point of weights": {"wei_q": pq.QParams(0.01, 120, "u8")} if product else None,
        "bf16 result": {"dst_q": None, "dst": "bf16"},
        "f16 result": {"dst_q": None, "dst": "f16"},
        "float source, zero point 117": {"src_q": point},
        '`Dynamic("u8")`': {"src_q": pq.Dynamic("u8")},
        '`Dynamic("s8")`': {"src_q": pq.Dynamic("s8")},
        '`Dynamic("u8", "per_row")`': {"src_q": pq.Dynamic("u8", "per_row")} if product else None,
        '`Dynamic("s8", "per_row")`': {"src_q": pq.Dynamic("s8", "per_row")} if product else None,
    }
    return options[kind]


def made(kind: str, *, product: bool) -> tuple[Any, Any] | None:
    """Return an operator of a kind and its source."""
    more = settings(kind, product=product)
    if more is None:
        return None
    dst = {"dst": "f32"} if product else {"dst_q": pq.QParams(0.1, 10, "u8")}
    options: dict[str, Any] = {
        "src_q": pq.QParams(0.02, 0, "u8"),
        "wei_q": pq.QParams(0.01, 0, "s8"),
        **dst,
    }
    options = {name: value for name, value in {**options, **more}.items() if value is not None}
    dims = (768, 768) if product else (64, 64, 3, 3)
    if options["wei_q"].dtype == "u8":
        wei = RNG.integers(0, 256, dims).astype(np.uint8)
    else:
        wei = RNG.integers(-30, 31, dims).astype(np.int8)
    src: Any = RNG.integers(0, 256, (128, 768) if product else (1, 56, 56, 64)).astype(np.uint8)
    if kind.startswith(("float", "`Dynamic")):
        src = (0.02 * (src.astype(np.float32) - 117)).astype(np.float32)
    if product:
        return pq.MatMul(wei, **options), src
    return pq.Conv(wei, padding=1, **options), src.transpose(0, 3, 1, 2)


def measured(*, product: bool, rounds: int, calls: int) -> dict[str, float]:
    """Return median microseconds of a call by kind, all kinds in turn."""
    ready: dict[str, tuple[Any, Any, Any]] = {}
    for kind in KINDS:
        try:
            one = made(kind, product=product)
        except pq.UnsupportedError:
            continue
        if one is not None:
            operator, src = one
            ready[kind] = (operator, src, operator(src).copy(order="K"))
    samples: dict[str, list[float]] = {kind: [] for kind in ready}
    for _ in range(rounds):
        for kind, (operator, src, out) in ready.items():
            start = time.perf_counter()
            for _ in range(calls):
                operator(src, out=out)
            samples[kind].append(1e6 * (time.perf_counter() - start) / calls)
    return {kind: statistics.median(times) for kind, times in samples.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="(default: 60)")
    parser.add_argument("--calls", type=int, default=10, help="of a round (default: 10)")
    options = parser.parse_args()
    columns = [
        measured(product=product, rounds=options.rounds, calls=options.calls)
        for product in (False, True)
    ]
    print("| microseconds a call | conv 1x64x56x56 3x3 64, u8 | matmul 128x768 768x768, f32 |")
    print("|---|---:|---:|")
    for kind in KINDS:
        cells = (f"{column[kind]:.0f}" if kind in column else "" for column in columns)
        print(f"| {kind} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
