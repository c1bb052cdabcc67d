r"""Write the table of proven kernel models, and docs/kernel_models.md.

Each part is what tests/isa/test_kernel_models.py found in one process:

    for isa in SSE41 AVX2 AVX2_VNNI AVX512_CORE AVX512_CORE_VNNI AVX512_CORE_AMX; do
        ONEDNN_MAX_CPU_ISA=$isa PYONEDNN_Q_KERNELS=part-$isa.json \
            pytest -m truth tests/isa/test_kernel_models.py      # with each oneDNN
    done
    python tools/kernel_models.py part*.json

The table is data of the package: after it has changed, run the tests again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "src/pyonednn_q/predict/kernel_models.toml"
PAGE = ROOT / "docs/kernel_models.md"
KEYS = ("primitive", "src", "impl", "isa", "version")
ORDER = ("together", "fused", "divided", "zeros")

HEAD = """\
# Kernel models

Written by `tools/kernel_models.py`; do not edit.

    from pyonednn_q.predict.kernel_model import kernel_model

    impl, isa = "brg_conv_fwd:avx512_core_vnni", "AVX512_CORE_VNNI"
    model = kernel_model(problem, attr, impl, isa, (3, 13))
    model.run(src, wei, bias=bias, values={"wei_scale": scale})     what it stores, bit for bit

A model is the kernel's sum ([saturation.md](saturation.md)) and its operations in float32:

1. the sum, converted to float32; a bare s32 destination is the sum itself;
2. times the scales of source and weights: their product (together) or one after the other
   (apart). With weight scales alone there is no difference: plans fold the source's into them;
3. plus the bias;
4. post-ops in order; linear and sum with one rounding (fused) or two;
5. times the float32 reciprocal of the destination's scale; plus its zero point;
6. rounded half to even and saturated, or cast.

A row stands for what was compared with execution, bit for bit, without one difference. Anything
else has no model and `kernel_model` says so: other implementations, instruction sets, versions, and
features that a row does not name.
"""

# What each word of an order decides on.
DECIDES = ({"src scale"}, {"linear", "sum"}, {"dst scale"}, {"relu", "round", "hardswish"})


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
        }


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Give the lines of the table."""
    yield "# Written by tools/kernel_models.py; do not edit."
    for row in rows:
        yield "\n[[kernel]]"
        for key in KEYS + ORDER + ("outputs",):
            yield f"{key} = {json.dumps(row[key])}"
        yield "features = [" + ", ".join(json.dumps(name) for name in row["features"]) + "]"


def page(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Give the lines of the page."""
    yield from HEAD.splitlines()
    every = sorted({name for row in rows for name in row["features"]})
    yield f"\n{sum(row['outputs'] for row in rows):,} outputs compared in all.\n"
    yield "All features: " + ", ".join(every) + ".\n"
    yield "| primitive | src | implementation | ISA | oneDNN | order | outputs | features but |"
    yield "|---|---|---|---|---|---|---:|---|"
    for row in rows:
        order = "together" if row["together"] else "apart"
        order += "" if row["fused"] else ", not fused"
        order += ", divided" if row["divided"] else ""
        order += "" if row["zeros"] == "kept" else f", zeros {row['zeros']}"
        missing = ", ".join(name for name in every if name not in row["features"])
        yield (
            f"| {row['primitive']} | {row['src']} | `{row['impl']}` | {row['isa']} | "
            f"{row['version']} {row['runtime']} | {order} | {row['outputs']:,} | {missing} |"
        )


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", type=Path, help="written by test_kernel_models.py")
    parts = [json.loads(path.read_text()) for path in parser.parse_args().parts]
    rows = sorted(
        (row for part in parts for row in found(part)), key=lambda r: [r[k] for k in KEYS]
    )
    TABLE.write_text("\n".join(table(rows)) + "\n")
    PAGE.write_text("\n".join(page(rows)) + "\n")


if __name__ == "__main__":
    main()
