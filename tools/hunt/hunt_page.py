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

Written by `tools/hunt/hunt.py --page` from its results; do not edit. Problems are odd on purpose:
sizes around every block of the kernels, groups of one channel, kernels larger than the image, any
padding, stride and dilation, one to three spatial dimensions, batches that are broadcast, gaps
between rows, every data type, scales, zero points, sums and other post-ops. With `--plain` they are
reorders, element-wise operations, sums, pooling and resampling, of tensors whose dimensions lie in
any order, with gaps, beside bytes that must stay as they are. Each was computed as callers do,
through the [guard table](guards.md), with freed memory poisoned, and compared with exact integers.
A seed and a number give the same problem again as long as the hunt itself does not
change:

    python tools/hunt/hunt.py --levels AVX2 --seed 2026327 --only 123

What a processor lacks of AMX and AVX_VNNI can be computed, instruction by instruction, so that
kernels made of them are hunted as well; it takes AVX512_BF16, and says nothing of times:

    python tools/hunt/absent_instructions.py python tools/hunt/hunt.py --levels ALL AVX2_VNNI

It found what these rows of the table guard against: `one-channel-groups-in-odd-blocks`,
`one-channel-one-plane`, `depthwise-window-outside`, `conv-gemm-transposed-wei`,
`conv-1x1-strided-odd-channels`, `conv-dilated-padded-src-zero-point`, `deconv-beyond-taps`,
`matmul-bare-nibbles`, `matmul-batch-of-single-rows`, `matmul-nibbles-of-one-row`; and that
`conv-one-column-out-of-one-channel` shows in f32 and bf16, `operand-in-avx2-vnni` on 3.7,
`matmul-wei-scale-along-k` in groups of one row, `deconv-stride-s8` on a single place of src,
`depthwise-eight-taps` with 192 and 256 taps; and, among layouts, `operand-with-gaps`,
`resampling-of-one-place`, `binary-operand-across-layout`, `pooling-beside-operand`,
`maxima-stored-early`, `prelu-across-layout`, `sum-into-gaps`, `reorder-shifted-bytes`,
`deconv-into-gaps`, `deconv-pointwise-plain-wei`, `inner-product-in-two-orders`,
`inner-product-innermost-images`, `conv-gemm-with-gaps`, `deconv-strided-with-gaps`,
`matmul-column-with-gaps`, `matmul-row-declared-short`, `matmul-batches-within-rows`,
`matmul-4d-wei-batches-within`. Parts of
a run that met one of them were run again behind its row: the counts are those. Layers of the seeds
that are named here had tensors row-major or channels last, but for sources of matmul; operands of
seed 2026327 lay as dst. Since then more layers are volumes and skip rows, one in three is laid in
any order, or as a part of a larger tensor, and processes have one to 16 threads: the numbers of
those seeds draw other problems now.
What a row guards against shows where it is left out:

    python tools/hunt/hunt.py --plain --ignore sum-into-gaps --count 40000"""
