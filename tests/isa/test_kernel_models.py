"""Kernel models against the kernels themselves, bit for bit, on this process's instruction set.

`pytest -m truth` compares many outputs, and finds the order of operations where none is known:
with PYONEDNN_Q_KERNELS set to a file's name, what was found is written there, for
tools/kernel_models.py.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyonednn_q.compose import guards
from pyonednn_q.compose.implementation import classify
from pyonednn_q.errors import NoModelError, UnsupportedError
from pyonednn_q.native import runtime
from pyonednn_q.predict.float_order import ORDERS, Order, destination
from pyonednn_q.predict.kernel_model import features, kernel_model, proofs
from support import kernel_cases, sum_cases, unguarded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.kernel_cases import KernelCase

# (primitive, source, implementation) -> variant -> what was found.
FOUND: dict[tuple[str, str, str], dict[str, Any]] = defaultdict(dict)


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """Write what was found, when asked."""
    yield
    target = os.environ.get("PYONEDNN_Q_KERNELS")
    if target:
        rows = [[*key, variants] for key, variants in sorted(FOUND.items())]
        version = ".".join(map(str, runtime.version()[:2]))
        head = {"version": version, "runtime": runtime.threading_runtime(), "isa": runtime.isa()}
        Path(target).write_text(json.dumps({**head, "rows": rows}, indent=1))


def executed(case: KernelCase) -> Iterator[tuple[str, Any]]:
    """Give the results of every implementation that is offered, fast and trusted."""
    try:
        for impl, got in unguarded.results(case.problem, case.attr, case.arrays, case.values):
            trusted = not guards.matching(case.problem, case.attr, runtime.facts(), impl)
            if trusted and classify(impl) != "reference":
                yield impl, got
    except UnsupportedError:
        return


class Modelled:
    """What one case's destination is by each order, computed once where orders do not differ."""

    def __init__(self, case: KernelCase) -> None:
        self.case = case
        self._by: dict[Order, Any] = {}

    def by(self, order: Order) -> Any:
        seen = order.seen(self.case.problem, self.case.attr)
        if seen not in self._by:
            self._by[seen] = modelled(self.case, seen)
        return self._by[seen]


def modelled(case: KernelCase, order: Order) -> Any:
    return destination(
        case.problem,
        case.attr,
        case.sums,
        order,
        case.values,
        bias=case.arrays.get("bias"),
        before=case.arrays.get("dst"),
    )


def differing(got: Any, wanted: Any) -> int:
    """Count outputs with other bits."""
    return int(np.count_nonzero(got.view(f"u{got.itemsize}") != wanted.view(f"u{got.itemsize}")))


@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("kind", sum_cases.KINDS)
def test_models_are_their_kernels(kind: str, src: str) -> None:
    minor = ".".join(map(str, runtime.version()[:2]))
    here = [key for key in proofs() if key[:2] == (kind, src) and key[3:] == (runtime.isa(), minor)]
    if not here:
        pytest.skip(f"nothing is proven for {runtime.isa()} of oneDNN {minor}")
    compared: set[str] = set()
    for name, case in kernel_cases.cases(kind, src, kernel_cases.SMALL, seed=1):
        for impl, got in executed(case):
            try:
                model = kernel_model(
                    case.problem, case.attr, impl, runtime.isa(), runtime.version()
                )
            except NoModelError:
                continue
            if impl not in compared:  # the whole model once; its sums are tested elsewhere
                arrays = dict(case.arrays)
                before, bias = arrays.pop("dst", None), arrays.pop("bias", None)
                wanted = model.run(**arrays, bias=bias, values=case.values, before=before)
            else:
                wanted = modelled(case, model.proof.order)
            assert differing(got, wanted) == 0, f"{impl}, {name}, {case.problem.text()}"
            compared.add(impl)
    assert compared == {key[2] for key in here}


@pytest.mark.slow
@pytest.mark.truth
@pytest.mark.parametrize("seed", [2])
@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("kind", sum_cases.KINDS)
def test_very_many_outputs(kind: str, src: str, seed: int) -> None:
    for name, case in kernel_cases.cases(kind, src, kernel_cases.LARGE, seed):
        wanted = Modelled(case)
        asked = features(case.problem, case.attr)
        for impl, got in executed(case):
            counts = {order: differing(got, wanted.by(order)) for order in ORDERS}
            row = FOUND[kind, src, impl].setdefault(
                name, {"features": sorted(asked), "outputs": 0, "differing": {}}
            )
            row["outputs"] += got.size
            for order, count in counts.items():
                row["differing"][order.text()] = row["differing"].get(order.text(), 0) + count
            try:
                model = kernel_model(
                    case.problem, case.attr, impl, runtime.isa(), runtime.version()
                )
            except NoModelError:
                continue
            assert counts[model.proof.order] == 0, f"{impl}, {name}, {case.problem.text()}"
