"""Write docs/reference/saturation.md: how kernels without VNNI sum, and where that was proven.

Each part is what tests/isa/test_sums.py compared in one process:

    for isa in SSE41 AVX2 AVX512_CORE AVX512_CORE_AMX; do       # with each oneDNN
        ONEDNN_MAX_CPU_ISA=$isa PYONEDNN_Q_SUMS=part-$isa.json pytest -m '' tests/isa/test_sums.py
    done
    python tools/pages/saturation.py part*.json > docs/reference/saturation.md
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HEAD = """\
# Saturation without VNNI

Written by `tools/pages/saturation.py`; do not edit.

Kernels without VNNI multiply unsigned source bytes by signed weight bytes and add two neighbouring
products in 16 bits, with saturation. Those are all kernels on SSE4.1, AVX2 and AVX-512 before
Cascade Lake; and on newer processors those with a name that ends in `:avx512_core`, or in `:sse41`
or `:avx2` where there is no AVX-VNNI, which are far down the list but are reached when those before
them are refused.

With u8 sources, a pair of weights (w0, w1) gives sums from −255 · (w0⁻ + w1⁻) to 255 · (w0⁺ + w1⁺);
both ends are reached. oneDNN says nothing when they lie outside of [−32768, 32767].

    from pyonednn_q import predict

    verdict = predict.saturation(problem, wei, "AVX2")
    verdict.flagged                                   channels that some source makes wrong
    predict.witness(verdict, wei, 3).src              such a source
    predict.counts(problem, src, wei, "AVX2").wrong
    predict.as_if(problem, src, wei, "AVX2")
    predict.repair(problem, wei, "AVX2").wei          and what it costs: .sqnr

The verdict needs no data, never calls a channel exact that is not, and flags none without a
witness. Without `impl` it is that of the worst kernel that may be chosen there: with AVX-512, one
input channel has two kernels that sum apart; groups of odd sizes, and of one channel in 3-D, fall
to a matrix product, and so may matmuls of batches, weights in a layout of their own, and sources
and destinations with gaps. `as_if` declines where their sums differ. With VNNI the kernels that use
it are meant. `native.prepare` asks for the kernel it is about to use, and refuses.

## What to do

| source | kernel | exact when | remedy |
|---|---|---|---|
| u8 | all but depthwise | no pair leaves 16 bits: [-64, 64] suffices | `repair`, `repair_source` |
| u8 | depthwise | always; not as a matrix product (3-D, AVX-512) | |
| s8 | matmul, inner product | the same of x + 128 | `repair` |
| s8 | convolution, deconvolution | all weights are even, for they are halved | `repair` |
| s8 | one column, AVX-512 product | no weight above 1, for they are shifted | another kernel |

`repair` scales down the channels that need it, as far as they need it (`fit`) or to [-64, 64]
(`7bit`), or rounds to even where weights are halved. For s8 convolutions it is better to shift the
source to u8 with zero point 128: then no weight loses a bit. `repair_source` keeps u8 sources below
128, which is safe with any weights.

`half_range(layers, "enable" | "first_layer_only" | "disable")` is what training tools do instead:
half of the range for whole tensors, needed or not.

## Who meets whom

| pairing | neighbours |
|---|---|
| channels | input channels 2k and 2k+1 of a group, at one tap or position |
| taps | the same, taps following each other without a gap |
| k | rows 2k and 2k+1 of a matmul's weights |
| dense, last | an inner product's source as it lies in memory |
| row | one input channel: taps 2k and 2k+1 of a kernel row |
| column | one input channel: taps down the columns |
| none | sums in 32 bits |

"In blocks": sums of more than 256 products (384 with AVX-512) are cut in halves, and an odd half
parts neighbours. "Either": a matrix product with AVX-512 in fewer than four columns hands parts of
one column to a kernel of its own, depending on threads; each output is one of two or three sums,
and the verdict covers all. `as_if` declines where they differ. Row and column need AVX512_VBMI,
which the processor is asked for whatever `ONEDNN_MAX_CPU_ISA` says: one with no more than AVX-512
pairs by channels.
A name such as "AVX512_CORE" leaves that open, too; `InstructionSet("AVX512_CORE", vbmi=False)` of
`pyonednn_q.primitive.isa` does not, and `native.runtime.isa()` is what this process has.

## Proof

Emulated sums against executed ones, on random problems with values at the ends of their types.
Every implementation that was offered and is not in the guard table is compared in every output,
with and without a source zero point: no output differs. An instruction set with VNNI is among them
for the kernels that do without it.
"""


def merged(parts: Sequence[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, int]]:
    """Return outputs compared by (primitive, source, implementation, summing) and by column."""
    table: dict[tuple[str, ...], dict[str, int]] = {}
    for part in parts:
        column = f"{part['version']} {part['runtime']} {part['isa']}"
        for kind, src, impl, way, count in part["rows"]:
            # Blocks differ with the length of a sum; one row stands for all.
            row = table.setdefault((kind, src, impl, re.sub(r"blocks of \d+", "blocks", way)), {})
            row[column] = row.get(column, 0) + count
    return table


def page(parts: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Give the lines of the page."""
    yield from HEAD.splitlines()
    table = merged(parts)
    columns = sorted({column for row in table.values() for column in row})
    total = sum(sum(row.values()) for row in table.values())
    yield f"\n{total:,} outputs in all.\n"
    yield f"| primitive | src | implementation | pairs by | {' | '.join(columns)} |"
    yield "|---|---|---|---|" + "---:|" * len(columns)
    for key, row in sorted(table.items()):
        counts = [f"{row[column]:,}" if column in row else "" for column in columns]
        kind, src, impl, way = key
        yield f"| {kind} | {src} | `{impl}` | {way} | {' | '.join(counts)} |"


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", type=Path, help="what tests/isa/test_sums.py wrote")
    arguments = parser.parse_args()
    parts = [json.loads(path.read_text()) for path in arguments.parts]
    sys.stdout.write("\n".join(page(parts)) + "\n")


if __name__ == "__main__":
    main()
