"""Write docs/reference/outside_suites.md: suites of others, and how many of their outputs are ours.

    python tools/pages/outside_suites.py --conformance all.npz > docs/reference/outside_suites.md

The numbers of tests/data are compared again, and those of TOSA's whole conformance suite, which
tools/vectors/tosa_vectors.py packs from what its generator writes: see there.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.outside import gemmlowp, stablehlo, tosa
from support.outside.tally import REFUSALS, compared
from support.outside.vectors import DATA, Case, load

Array = np.ndarray[Any, Any]
REFUSED = (*REFUSALS, ArgumentError)  # the last: sums that may leave 32 bits
Answer = Callable[[Case], tuple[Array, Array]]

HEAD = """\
# Suites that nobody here wrote

Written by `tools/pages/outside_suites.py`; do not edit.

Somebody who writes both the code and its tests can misread a definition in both. So the inputs and
expected outputs below come from others, and each output is compared for equality with the result of
our call. `tests/others/outside` does this in seconds, with compact files in `tests/data`. The node
cases of ONNX are compared if `onnx` is installed (`tests/peers`).

- [TOSA](https://www.mlplatform.org/tosa)'s integer profile: what the generator of its conformance
  tests gives, against its reference model ({tosa}; {tosa_licence}). We compute sums of products
  with `dst="s32"`, and with `requantize="exact"` and an s32 result, which needs no VNNI to be
  exact. Around its result, a TRANSPOSE_CONV2D has places that hold only the bias; they are not
  compared. RESCALE is `tosa_single_round` and `tosa_double_round` of the [dialects](dialects.md),
  or the same arithmetic with a multiplier that no scales give. INEXACT_ROUND leaves the result
  open; the reference model rounds as `onnxruntime`.
- [StableHLO](https://github.com/openxla/stablehlo)'s quantized test data ({stablehlo_licence}):
  quantize, one operator, quantize again. We compute a product and the quantize after it in one call
  with `dst_q`, in oneDNN's arithmetic, and in another with exact sums and
  `requantize="onednn_one_scale"`.
- [gemmlowp](https://github.com/google/gemmlowp)'s GEMM vectors
  ({gemmlowp_licence}), the large one captured from a network: one
  `MatMul` with `requantize="tosa_single_round"`.
"""
# What answers where a sum of products does not.
CALLS = {
    "RESCALE": "`requantizer`",
    "AVG_POOL2D": "`average_pool`",
    "MAX_POOL2D": "`max_pool`",
    "CLAMP": "`EltwiseProblem`",
    "MUL": "`BinaryProblem`",
    "add": "`add`",
    "gather": "`requantize` of slices",
    "uniform_quantize": "`quantize`",
}
PRODUCTS = ("convolution", "dot_general")
COLUMNS = "| suite | operator | call | cases | outputs | wrong |\n|---|---|---|---:|---:|---:|"
LEFT = """
## What there is no operator for

| suite | cases | why |
|---|---|---|"""
WHOLE = """
## The whole conformance suite

The {count:,} positive tests of TOSA's integer profile, with DOUBLE_ROUND and INEXACT_ROUND, that
`tosa_verif_conformance_generator` makes for these operators; ADD and MUL as above. A call refuses
weights and a bias whose sums could leave 32 bits for some source, even if the sums of the test do
not. Left out: {long} TRANSPOSE_CONV2D with kernels of 8,192 taps, whose code oneDNN generates for
minutes.
"""


def lines(cases: list[Case], suite: str, answers: dict[str, dict[str, Answer]]) -> Iterator[str]:
    """Give a row for every operator and call."""
    for op, calls in answers.items():
        ours = [case for case in cases if case.op == op]
        for call, answer in calls.items():
            tally = compared(ours, answer, REFUSED)
            refused = f" + {tally.refused} refused" if tally.refused else ""
            row = (suite, op, call, f"{tally.cases:,}{refused}", f"{tally.outputs:,}")
            yield f"| {' | '.join(row)} | {len(tally.wrong)} |"


def tosa_answers() -> dict[str, dict[str, Answer]]:
    """Return the calls for each of TOSA's operators."""
    calls: dict[str, dict[str, Answer]] = {op: {CALLS[op]: tosa.answer} for op in tosa.OPERATORS}
    for op in tosa.SUMS:
        calls[op] = {f"`{form}`": partial(tosa.answer, form=form) for form in tosa.FORMS}
    return calls


def stablehlo_answers() -> dict[str, dict[str, Answer]]:
    """Return the calls for each of StableHLO's operators."""
    exact = partial(stablehlo.answer, requantize="onednn_one_scale")
    products: dict[str, Answer] = {"`dst_q`": stablehlo.answer, "`requantize`": exact}
    return {
        op: products if op in PRODUCTS else {CALLS[op]: stablehlo.answer} for op in stablehlo.OURS
    }


def is_long(case: Case) -> bool:
    """Whether a transposed convolution's kernel is longer than a library expects."""
    return case.op == "TRANSPOSE_CONV2D" and max(case.tensors["wei"].shape[1:3]) > 1000


def grouped(reasons: Iterable[str | None]) -> dict[str, Counter[str]]:
    """Return how many cases of each operator a reason leaves out."""
    groups: dict[str, Counter[str]] = {}
    for reason in filter(None, reasons):
        op, why = reason.split(": ")
        groups.setdefault(why, Counter())[op] += 1
    return groups


def page(conformance: Path | None) -> Iterator[str]:
    """Give the lines of the page."""
    loaded = {name: load(DATA / f"{name}.npz") for name in ("tosa", "stablehlo", "gemmlowp")}
    names = {f"{name}_licence": origin["licence"] for name, (origin, _) in loaded.items()}
    yield HEAD.format(tosa=loaded["tosa"][0]["source"], **names)
    version, isa = ".".join(map(str, runtime.version())), runtime.isa().text()
    yield f"Compared with oneDNN {version}, {runtime.threading_runtime()}, on {isa}:\n"
    yield COLUMNS
    cases = {name: suite_cases for name, (_, suite_cases) in loaded.items()}
    ours = [case for case in cases["tosa"] if tosa.left_out(case) is None]
    yield from lines(ours, "TOSA", tosa_answers())
    yield from lines(cases["stablehlo"], "StableHLO", stablehlo_answers())
    yield from lines(cases["gemmlowp"], "gemmlowp", {"gemm": {"`requantize`": gemmlowp.answer}})
    yield LEFT
    for suite, reasons in (
        ("TOSA", map(tosa.left_out, cases["tosa"])),
        ("StableHLO", map(stablehlo.left_out, cases["stablehlo"])),
    ):
        for why, of in sorted(grouped(reasons).items()):
            which = ", ".join(f"{count} {op}" for op, count in sorted(of.items()))
            yield f"| {suite} | {which} | {why} |"
    if conformance is not None:
        _, whole = load(conformance)
        asked = [case for case in whole if not is_long(case)]
        ours = [case for case in asked if tosa.left_out(case) is None]
        yield WHOLE.format(count=len(whole), long=len(whole) - len(asked))
        yield COLUMNS
        yield from lines(ours, "TOSA", tosa_answers())


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conformance", type=Path, help="of tools/vectors/tosa_vectors.py")
    for line in page(parser.parse_args().conformance):
        print(line)


if __name__ == "__main__":
    main()
