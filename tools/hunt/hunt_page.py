"""The page of the hunt: docs/reference/hunt.md, of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hunt import Tally


def page(tallies: Sequence[Tally]) -> Iterator[str]:
    """Give the lines of docs/reference/hunt.md."""
    yield from HEAD.splitlines()
    yield "\n## Counts\n"
    yield "| problems of | oneDNN | instruction set | number | ran | refused | wrong | seeds |"
    yield "|---|---|---|--:|--:|--:|--:|---|"
    for where in sorted({_where(tally) for tally in tallies}):
        of = [tally for tally in tallies if _where(tally) == where]
        done, wrong = sum(tally.done for tally in of), sum(len(tally.findings) for tally in of)
        ran, refused = (sum(getattr(t, name).total() for t in of) for name in ("ran", "refused"))
        what, onednn, isa = where
        yield f"| {what} | {onednn} | {isa} | {done} | {ran} | {refused} | {wrong} | {_seeds(of)} |"
    yield "\n## What ran\n"
    yield from _listed(item for tally in tallies for item in tally.ran.items())
    yield "\n## What was refused\n"
    yield "Several rows of the guard table may stand behind one refusal.\n"
    yield from _listed(
        (part, count)
        for tally in tallies
        for what, count in tally.refused.items()
        for part in _apart(what)
    )


def _where(tally: Tally) -> tuple[str, str, str]:
    return "plain" if tally.plain else tally.region or "layers", tally.onednn, tally.isa


def _apart(refused: str) -> Iterator[str]:
    """Give each row of the guard table that a refusal names."""
    kind, _, rows = refused.partition(": known wrong: ")
    yield from (f"{kind}: known wrong: {row}" for row in rows.split(", ")) if rows else [refused]


def _listed(counts: Iterable[tuple[str, int]]) -> Iterator[str]:
    total: Counter[str] = Counter()
    for what, count in counts:
        total[what] += count
    yield from (f"- {count} {what}" for what, count in sorted(total.items()))


def _seeds(tallies: Sequence[Tally]) -> str:
    """Return seeds, and which of their numbers: those with the same ones together."""
    texts: dict[str, list[int]] = {}
    for tally in tallies:
        numbers = f"{tally.first} to {tally.first + tally.done - 1}"
        texts.setdefault(numbers, []).append(tally.seed)
    return "; ".join(
        f"{', '.join(map(str, sorted(seeds)))}: {text}" for text, seeds in texts.items()
    )


HEAD = """\
# The hunt

Written by `tools/hunt/hunt.py --page` from its results; do not edit.

The hunt computes problems that are odd on purpose, and compares every result with exact integers.
Layers have sizes around every block of the kernels, groups of one channel, kernels larger than the
image, and any padding, stride and dilation. They have one to three spatial dimensions, broadcast
batches, gaps between rows, every data type, scales, zero points, sums and other post-ops. With
`--plain`, problems are reorders, element-wise operations, sums, pooling and resampling. Their
tensors have dimensions in any order, and gaps whose bytes must not change. Each problem runs as the
call of a user does, through the [guard table](guards.md), while freed memory is poisoned; behind
the arrays of the call lies a page that may not be read. The same seed and number give the same
problem as long as the hunt itself does not change:

    python tools/hunt/hunt.py --levels AVX2 --seed 2026327 --only 123

On a machine without AMX or AVX_VNNI, their instructions can be emulated one by one, so that the
hunt reaches kernels made of them. This needs AVX512_BF16, and times mean nothing there:

    python tools/hunt/absent_instructions.py python tools/hunt/hunt.py --levels ALL AVX2_VNNI

## Findings

The hunt found the faults behind these rows of the table:

- layers: `one-channel-groups-in-odd-blocks`, `one-channel-one-plane`, `depthwise-window-outside`,
  `conv-gemm-transposed-wei`, `conv-1x1-strided-odd-channels`, `conv-dilated-padded-src-zero-point`,
  `deconv-beyond-taps`, `matmul-bare-nibbles`, `matmul-batch-of-single-rows`,
  `matmul-nibbles-of-one-row`, `conv-padding-left-over`;
- layouts: `operand-with-gaps`, `resampling-of-one-place`, `binary-operand-across-layout`,
  `pooling-beside-operand`, `maxima-stored-early`, `prelu-across-layout`, `sum-into-gaps`,
  `reorder-shifted-blocks`, `deconv-into-gaps`, `deconv-pointwise-plain-wei`,
  `inner-product-in-two-orders`, `inner-product-innermost-images`, `conv-gemm-with-gaps`,
  `deconv-strided-with-gaps`, `matmul-column-with-gaps`, `matmul-row-declared-short`,
  `matmul-batches-within-rows`, `matmul-4d-wei-batches-within`, `binary-operand-along-rows`;
- instructions that a CPU does not have: `prelu-beyond-registers`, on one with AVX2 alone. Under the
  limit `ONEDNN_MAX_CPU_ISA=AVX2`, a CPU with AVX-512 executes them.

It also found that faults of older rows reach further:

- `conv-one-column-out-of-one-channel` in f32 and bf16, and `operand-in-avx2-vnni` in 3.7;
- `matmul-wei-scale-along-k` in groups of one row, and `deconv-stride-s8` on a single place of src;
- `depthwise-eight-taps` with 192 and 256 taps.

If a part of a run met such a fault, the part was run again after the row was written; the counts
below are those of the second run. In the seeds below, tensors of layers were row-major or channels
last, except sources of matmul; operands of seed 2026327 had the layout of dst. Since then more
layers are volumes and skip rows. One layer in three has any layout, or is a part of a larger
tensor, and processes have one to 16 threads. One problem in six without sums of products has rows
of up to 199 values. So the numbers of those seeds give other problems now.

To see the fault behind a row, leave the row out:

    python tools/hunt/hunt.py --plain --ignore sum-into-gaps --count 40000"""
