r"""Write the table of proven kernel models, and docs/reference/kernel_models.md.

Each part is what tests/isa/test_kernel_models.py found in one process:

    for isa in SSE41 AVX2 AVX2_VNNI ALL AVX512_CORE AVX512_CORE_{VNNI,BF16,FP16,AMX}; do
        ONEDNN_MAX_CPU_ISA=$isa PYONEDNN_Q_KERNELS=part-$isa.json \
            pytest -m truth tests/isa/test_kernel_models.py      # with each oneDNN
    done
    python tools/matrix/kernel_models.py part*.json

Orders and regions are found apart: `-k regions` compares the shapes alone, by the orders that the
table has. Rows of instruction sets and versions that no part is about stay as they are: processors
differ. How many outputs a row stands for is evidence, and on the page only, where it is read from
again. The table is data of the package: after it has changed, run the tests again.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kernel_blocks import KEYS, ORDER, Row, every_feature, key_of, letter_of, table
from pyonednn_q.predict.float_bounds import BOUNDS, EXP_LOSES, LEVELS, SMALL_ALPHA
from pyonednn_q.predict.region import Key, Region, read

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "src/pyonednn_q/predict/kernel_models.toml"
PAGE = ROOT / "docs/reference/kernel_models.md"
PROCESS = ("isa", "version", "runtime")

sys.path.insert(0, str(ROOT / "tests"))  # for `support`, whose problems earlier proofs compared

HEAD = """\
# Kernel models

Written by `tools/matrix/kernel_models.py`; do not edit.

A kernel model computes in NumPy, bit for bit, what a call will return:

```python
import numpy as np
import pyonednn_q as pq

rng = np.random.default_rng(0)
conv = pq.Conv(
    rng.integers(-64, 64, (64, 32, 3, 3)).astype(np.int8),
    src_q=pq.QParams(0.02, 3, "u8"),
    wei_q=pq.QParams(0.01, 0, "s8"),
    dst_q=pq.QParams(0.5, 10, "u8"),
    post=pq.Chain(pq.Eltwise("relu")),
)
src = rng.integers(0, 256, (1, 32, 9, 9)).astype(np.uint8)
try:
    print(np.array_equal(pq.model_of(conv, src.shape).run(src), conv(src)))  # True
except pq.errors.NoModelError as error:
    print(error)  # on an instruction set or a version of which nothing is proven
```

`model_of` takes the kernel that runs on this machine. It models float sources, too, with the
operator's range or with that of each call (`Dynamic`), and forms that `tune` chose. With
`requantize=`, the sums are those of the kernel, and the dialect is computed as its definition says.
A cast to 16 bits after the primitive is part of the model; other primitives after it have no model.

Two more functions model kernels of other machines, and need no extension.
`predict.plan_model.plan_model(plan, problem, impl, isa, version)` models a plan from
`compose_chain`; `predict.kernel_model.kernel_model(problem, attr, impl, isa, version)` models a
bare problem. All three raise `NoModelError`, with the reason, where nothing is proven.

A model is the kernel's sum ([saturation.md](saturation.md)) and its operations in float32:

1. the sum, converted to float32; a bare s32 destination is the sum itself;
2. times the scales of source and weights: their product (together) or one after the other
   (apart). With weight scales alone there is no difference: plans fold the source's into them;
3. plus the bias;
4. post-ops in order; linear and sum with one rounding (fused) or two; hardsigmoid and hardswish
   with two on every kernel;
5. times the float32 reciprocal of the destination's scale, or divided by it; plus its zero point;
6. rounded half to even and saturated, or cast.

Zeros of a floating destination keep their signs. relu of a negative value is 0, and max, min and
clip give their bound where both are zeros. Two kinds of kernels differ. Plain code ("zeros
negative") makes -0 of negative values in relu and of 0 in abs, and keeps -0 where clip ends at 0.
Kernels that add 0 at the end ("zeros positive") never give -0. prelu multiplies values below 0
(plain code), values with a minus sign (up to AVX2), or values that are not above 0 (AVX-512).

## Functions

Two kernels that compute tanh do not agree in the last bit. So the model is exact up to such a
function, and has bounds from there on: `bounds` returns the least and the greatest value that may
be stored, and `run` raises `NoModelError`. For an integer destination both bounds are the same
nearly everywhere. Let y be the exact value and u = 2^-24. Then the distance of a kernel's value
from y is at most this, for every finite x:

BOUNDS

Half of any of these is too little (`tests/native/test_eltwise_bounds.py`), and no output of the
comparisons below was outside.

## What is proven

A row of the table below was compared with execution, bit for bit, and nothing differed (functions:
no value was out of bounds). Nothing else has a model, and `kernel_model` says so: other
implementations, instruction sets and versions, features that a row does not name, and shapes
outside of its region. Problems that the [guard table](guards.md) knows to be wrong have none
either. Data are random, with scales that use all their bits. A part of the data is steered to
results around halves, where each rounding decides.

### Regions

Kernels have separate code for many shapes. A kernel that is right on all shapes that were tried may
be wrong on the next one. So each problem has a class and traits (`predict.region` has them all).
The class is the number of dimensions, the kind of groups (one, depthwise, of one channel, of
several) and the kind of batches. Traits are, for example, a single image, channels that fill
blocks, the width of the kernel, strides, dilation, padding, layouts, and rows and columns of
products. A proof is a set of classes, each with the traits that its problems had. A problem with
another class, or with a trait that no problem of its class had, has no model, and the error names
it.

A region comes from two runs. The first run compared sums on random problems
(`tests/support/sum_cases.py`) and orders of operations on some usual problems
(`tests/support/kernel_cases.py`). It did not record which implementation was offered for which
problem, so its part of a region is the same for all implementations. Machines with AMX and some
others had only this run. The second run drew problems for every trait of every class, with random
attributes (`tests/support/region_cases.py`). It recorded the problems of each implementation. A row
has the traits that all of these processes visited with its implementation, from u8 and from s8
sources:

VISITED

This run found three faults of oneDNN: `operand-of-one-place`, `operand-of-gapped-rows` and
`depthwise-to-bf16`. With their guards in place, nothing differed. Two shapes were computed wrong
before there were guards: a 3-D convolution of one channel on a single plane, and groups of one
channel with 33 to 48 outputs. They are in no region of these kernels.

These features are missing, since oneDNN does not offer them:

- f16 destinations, below AVX512_CORE_FP16 and in most kernels of 3.7;
- bf16 destinations, below AVX-512; and for some kernels above, which leave them to others:
  `jit_int8:avx512_core_vnni` is called `jit_int8:avx512_core_bf16` when it stores them, and under
  that name was not compared with functions;
- zero points in inner products, and s32 biases in deconvolutions by `conv:any+x64:gemm`;
- anything but eltwise and sum, and more than one eltwise, in `jit_deconvolution` with AMX;
- operands of the destination's size in deconvolutions by `jit_uni_int8`;
- binary post-ops in `gemm:jit` of 3.13 where there is a `brg_matmul`;
- comparisons in many kernels of 3.7 with AVX-512: their code generation fails
  ([guards.md](guards.md)).

The table has no reference loops, which run only when asked for. It has no weights with a zero
point, 4-bit weights or scales in groups either: their models are other functions, and
[another page](test_runs.md#outputs-of-models) says what was compared.
"""

# Processes whose parts with regions were merged.
VISITED = (
    "3.13 SYCL: SSE41, AVX2, AVX2_VNNI, AVX512_CORE, AVX512_CORE_{VNNI,BF16,BF16+AVX_VNNI}",
    "3.7 OMP: SSE41, AVX2, AVX2_VNNI, AVX512_CORE, AVX512_CORE_{VNNI,BF16,BF16+AVX_VNNI}",
)

SIZES = {
    "exp": f"u · abs(y), and {', '.join(map(str, EXP_LOSES))} more for each unit of abs(x)",
    "pow": "u · abs(y)",
    "elu": "u · abs(alpha); nothing where x is positive",
    "soft_relu": "u · max(1 / abs(alpha), abs(y)); 130 where alpha · x is below -16",
    "swish": f"u · max(1, abs(y)); with abs(alpha) below {SMALL_ALPHA}, as exp but of 6",
}
# What each word of an order decides on.
DECIDES = (
    {"src scale"},
    {"linear", "sum"},
    {"dst scale"},
    {"relu", "abs", "clip", "round", "hardswish"},
)


def joined(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one part for each process: those that compared other variants there, together."""
    processes: dict[tuple[str, ...], dict[tuple[str, ...], dict[str, Any]]] = {}
    for part in parts:
        process = processes.setdefault(tuple(part[key] for key in PROCESS), {})
        for primitive, src, impl, variants in part["rows"]:
            process.setdefault((primitive, src, impl), {}).update(variants)
    return [
        dict(zip(PROCESS, process, strict=True))
        | {"rows": [(*key, variants) for key, variants in rows.items()]}
        for process, rows in processes.items()
    ]


def found(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give a row for each implementation of a part whose order could be told."""
    for primitive, src, impl, variants in part["rows"]:
        orders = list(next(iter(variants.values()))["differing"])
        wrong = {
            order: [one for one in variants.values() if one["differing"][order]] for order in orders
        }
        best = min(orders, key=lambda order: len(wrong[order]))
        right = [one for one in variants.values() if not one["differing"][best]]
        features = {name for one in right for name in one["features"]}
        executed = {name for one in variants.values() for name in one["features"]}
        # A difference that no feature of its own explains leaves nothing proven.
        if not right or any(set(one["features"]) <= features for one in wrong[best]):
            continue
        # Where no compared problem tells the orders apart, the features in question are not proven.
        undecided = [order for order in orders if len(wrong[order]) == len(wrong[best])]
        for at, needs in enumerate(DECIDES):
            if len({order.split(", ")[at] for order in undecided}) > 1:
                features -= needs
        together, fused, divided, zeros = best.split(", ")
        yield {
            "primitive": primitive,
            "src": src,
            "impl": impl,
            "isa": part["isa"],
            "version": part["version"],
            "runtime": part["runtime"],
            "together": together == "together",
            "fused": fused == "fused",
            "divided": divided == "divided",
            "zeros": zeros.removeprefix("zeros "),
            "outputs": sum(one["outputs"] for one in right),
            "features": sorted(features),
            "open": sorted(executed - features),
        }


def rows_of(text: str, page_text: str = "") -> list[Row]:
    """Return the rows of a table, with the evidence that a page tells of."""
    told = {}
    for line in page_text.splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if len(cells) == 8 and cells[2].startswith("`"):
            first = cells[0].removeprefix("| ")
            version, runtime = cells[4].split()
            key = first, cells[1], cells[2].strip("`"), cells[3], version
            told[key] = runtime, int(cells[6].replace(",", ""))
    rows = []
    for key, proof in read(text).items():
        runtime, outputs = told.get(key, ("", 0))
        order = {name: getattr(proof.order, name) for name in ORDER}
        sets = {"features": sorted(proof.features), "open": sorted(proof.undecided)}
        evidence = {"runtime": runtime, "outputs": outputs, "region": proof.region}
        rows.append(dict(zip(KEYS, key, strict=True)) | order | sets | evidence)
    return sorted(rows, key=lambda row: [row[key] for key in KEYS])


def merged(before: Iterable[Row], parts: Sequence[dict[str, Any]]) -> list[Row]:
    """Return the rows of a table, those of each part's instruction set and version replaced."""
    before = list(before)
    again = {(part["isa"], part["version"]) for part in parts if part["rows"]}
    rows = [dict(row) for row in before if (row["isa"], row["version"]) not in again]
    rows += (row for part in joined(parts) for row in found(part))
    regions = {key_of(row): row["region"] for row in before} | seen(parts)
    for row in rows:
        key = key_of(row)
        known = former(row["primitive"], row["src"])
        row["region"] = known.joined(regions[key]) if key in regions else known
    return sorted(rows, key=lambda row: [row[key] for key in KEYS])


@functools.cache
def former(primitive: str, src: str) -> Region:
    """Return what was visited before regions were recorded, by kernels that may be gone from here.

    The problems of sums and of orders were the same in every process; which of them an
    implementation was offered for was not written down, so the region is that of all.
    """
    from support import kernel_cases, sum_cases

    counts = {0: 25} | dict.fromkeys(range(1, 6), 100)
    visited = [
        case.problem
        for seed, count in counts.items()
        for case in sum_cases.stream(primitive, src, count, seed)
    ]
    for size in (kernel_cases.SMALL, kernel_cases.LARGE):
        visited += (
            make(*dims, src=src, dst="s32", **more)
            for make, dims, more in kernel_cases.problems(primitive, size)
        )
    return Region.of(visited)


def seen(parts: Sequence[dict[str, Any]]) -> dict[Key, Region]:
    """Return the region of each kernel: what was visited in every process that has the kernel."""
    visited: dict[Key, dict[str, frozenset[str]]] = {
        (primitive, src, impl, part["isa"], part["version"]): {
            of: frozenset(names) for of, names in classes.items()
        }
        for part in parts
        for primitive, src, impl, classes in part.get("regions", ())
    }
    common: dict[Any, dict[str, frozenset[str]]] = {}
    for key, classes in visited.items():
        so_far = common.setdefault((key[0], key[2]), classes)
        common[key[0], key[2]] = {of: so_far[of] & classes[of] for of in so_far if of in classes}
    return {key: Region(common[key[0], key[2]]) for key in visited}


def page(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Give the lines of the page."""
    head = HEAD.replace("BOUNDS", "\n".join(functions()))
    yield from head.replace("VISITED", "\n".join(f"- {one}" for one in VISITED)).splitlines()
    every = every_feature(rows)
    yield f"\n{sum(row['outputs'] for row in rows):,} outputs compared in all.\n"
    yield f"All features: {', '.join(short(set().union(*every.values())))}.\n"
    yield "Only products have operands per row. The last column names features that are missing:"
    yield "oneDNN does not offer them, or the guard table forbids them. In parentheses are"
    yield "features that ran, but whose outputs could not distinguish two orders of operations.\n"
    letters: dict[tuple[str, ...], str] = {}
    lines = []
    for row in rows:
        missing = every[row["primitive"]] - set(row["features"])
        lacks = (
            *short(missing - set(row["open"])),
            *(f"({name})" for name in short(missing & set(row["open"]))),
        )
        letter = letters.setdefault(lacks, letter_of(len(letters))) if lacks else ""
        lines.append(
            f"| {row['primitive']} | {row['src']} | `{row['impl']}` | {row['isa']} | "
            f"{row['version']} {row['runtime']} | {order_of(row)} | {row['outputs']:,} | {letter} |"
        )
    for lacks, letter in letters.items():
        yield f"- {letter}: {', '.join(lacks)}"
    yield "\n| primitive | src | implementation | ISA | oneDNN | order | outputs | without |"
    yield "|---|---|---|---|---|---|---:|---|"
    yield from lines


def short(names: Iterable[str]) -> list[str]:
    """Return features; binary algorithms and types of operands of one extent together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in sorted(names):
        first, _, rest = name.partition(" ")
        middle, _, extent = rest.removeprefix("of ").partition(" ")
        if first in {"binary", "operand"}:
            groups.setdefault((first, extent), []).append(middle)
        else:
            groups[name, ""] = []
    return [
        f"{first} {'/'.join(middles)} {extent}" if middles else first
        for (first, extent), middles in groups.items()
    ]


def functions() -> Iterator[str]:
    """Give the table of bounds."""
    yield "| function | " + " | ".join(LEVELS) + " | |"
    yield "|---|---:|---:|---:|---|"
    for alg, bound in BOUNDS.items():
        units = " | ".join(f"{one:g}" for one in bound.units)
        yield f"| {alg} | {units} | {SIZES.get(alg, 'u · max(1, abs(y))')} |"


def order_of(row: dict[str, Any]) -> str:
    """Return the order of a row where it is not that of most."""
    words = ["together" if row["together"] else "apart"]
    words += [] if row["fused"] else ["not fused"]
    words += ["divided"] if row["divided"] else []
    words += [] if row["zeros"] == "kept" else [f"zeros {row['zeros']}"]
    return ", ".join(words)


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", type=Path, help="written by test_kernel_models.py")
    parts = [json.loads(path.read_text()) for path in parser.parse_args().parts]
    rows = merged(rows_of(TABLE.read_text(), PAGE.read_text()), parts)
    TABLE.write_text("\n".join(table(rows)) + "\n")
    PAGE.write_text("\n".join(page(rows)) + "\n")


if __name__ == "__main__":
    main()
