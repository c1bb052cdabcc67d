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
products in 16 bits, with saturation. All kernels do so on SSE4.1, AVX2, and AVX-512 before Cascade
Lake. On newer processors, kernels do so whose name ends in `:avx512_core`, or in `:sse41` or
`:avx2` if there is no AVX-VNNI. They are far down oneDNN's list, but run if the kernels before them
are refused.

With u8 sources, a pair of weights (w0, w1) gives sums from −255 · (w0⁻ + w1⁻) to 255 · (w0⁺ + w1⁺);
some source gives each of the two. oneDNN reports no error if a sum lies outside of [−32768, 32767].

    from pyonednn_q import predict

    verdict = predict.saturation(problem, wei, "AVX2")
    verdict.flagged                                   channels that some source makes wrong
    predict.witness(verdict, wei, 3).src              such a source
    predict.counts(problem, src, wei, "AVX2").wrong
    predict.as_if(problem, src, wei, "AVX2")
    predict.repair(problem, wei, "AVX2").wei          and what it costs: .sqnr

The verdict needs no data. It never calls a channel exact that is not, and for each flagged channel
there is a witness. Without `impl`, it is the verdict for the worst kernel that may be chosen. With
AVX-512, a convolution of one input channel has two kernels with different sums. Groups of odd
sizes, and of one channel in 3-D, may run as a matrix product; so may matmuls of batches, weights in
unusual layouts, and sources and destinations with gaps. `as_if` raises an error where their sums
differ. On a level with VNNI, the verdict is that of kernels with VNNI. `native.prepare` gets the
verdict for the kernel that it is about to use, and refuses if a channel is flagged.

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

Training tools have another remedy, `half_range(layers, "enable" | "first_layer_only" | "disable")`:
it halves the range of whole tensors, whether that is needed or not.

## Which products are paired

| pairing | neighbours |
|---|---|
| channels | input channels 2k and 2k+1 of a group, at one tap or position |
| taps | the same, taps following each other without a gap |
| k | rows 2k and 2k+1 of a matmul's weights |
| dense, last | an inner product's source as it lies in memory |
| row | one input channel: taps 2k and 2k+1 of a kernel row |
| column | one input channel: taps down the columns |
| none | sums in 32 bits |

"In blocks": sums of more than 256 products (384 with AVX-512) are cut in halves. If a half has an
odd length, its last product and the next one are no pair. "Either": a matrix product with AVX-512
and fewer than four columns gives parts of one column to another kernel, depending on the number of
threads. Each output is one of two or three sums, and the verdict covers all of them. `as_if` raises
an error where they differ.

Row and column need AVX512_VBMI. oneDNN asks the processor for it, whatever `ONEDNN_MAX_CPU_ISA`
says; a processor without it pairs by channels. So the name "AVX512_CORE" leaves this open.
`InstructionSet("AVX512_CORE", vbmi=False)` of `pyonednn_q.primitive.isa` does not, and
`native.runtime.isa()` is the instruction set of this process.

## Proof

Emulated sums were compared with executed ones, on random problems with values at the ends of their
types. Every output of every implementation that was offered and is not in the guard table was
compared, with and without a source zero point: no output differs. Instruction sets with VNNI are in
the table because of kernels that do not use it.
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
