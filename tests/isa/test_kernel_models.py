"""Kernel models against the kernels themselves, bit for bit, on this process's instruction set.

`pytest -m truth` compares many outputs, and finds the order of operations where none is known:
with PYONEDNN_Q_KERNELS set to a file's name, what was found is written there, for
tools/matrix/kernel_models.py.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyonednn_q.errors import NoModelError, UnsupportedError
from pyonednn_q.faults import guards
from pyonednn_q.native import runtime
from pyonednn_q.predict.float_bounds import ends, is_bounded, level
from pyonednn_q.predict.float_order import ORDERS, Order, destination
from pyonednn_q.predict.kernel_model import KernelModel, features, kernel_model
from pyonednn_q.predict.region import class_of, proofs, traits
from pyonednn_q.primitive.isa import classify
from pyonednn_q.primitive.post_ops import PReluPostOp
from support import kernel_cases, region_cases, sum_cases, unguarded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.kernel_cases import KernelCase

# (primitive, source, implementation) -> variant -> what was found.
FOUND: dict[tuple[str, str, str], dict[str, Any]] = defaultdict(dict)
# The same -> class -> traits: what was compared by the order that the table has.
VISITED: dict[tuple[str, str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """Write what was found, when asked."""
    yield
    target = os.environ.get("PYONEDNN_Q_KERNELS")
    if target:
        rows = [[*key, variants] for key, variants in sorted(FOUND.items())]
        version = ".".join(map(str, runtime.version()[:2]))
        head = {
            "version": version,
            "runtime": runtime.threading_runtime(),
            "isa": runtime.isa().text(),
        }
        regions = [
            [*key, {of: sorted(traits) for of, traits in sorted(visited.items())}]
            for key, visited in sorted(VISITED.items())
        ]
        Path(target).write_text(json.dumps({**head, "rows": rows, "regions": regions}, indent=1))


def executed(case: KernelCase) -> Iterator[tuple[str, Any]]:
    """Give the results of every implementation that is offered, fast and trusted."""

    def is_trusted(impl: str) -> bool:  # what is not might take the process along
        wrong = guards.matching(case.problem, case.attr, runtime.facts(), impl)
        return not wrong and classify(impl) != "reference"

    try:
        yield from unguarded.results(case.problem, case.attr, case.arrays, case.values, is_trusted)
    except UnsupportedError:
        return


class Modelled:
    """What one case's destination is by each order, computed once where orders do not differ."""

    def __init__(self, case: KernelCase) -> None:
        self.case = case
        self._by: dict[tuple[Order, int], Any] = {}

    def by(self, order: Order, impl: str) -> Any:
        """Return dst; or its ends, where a function is known within bounds only."""
        attr, at = self.case.attr, 0
        if any(is_bounded(one) or isinstance(one, PReluPostOp) for one in attr.post_ops):
            at = level(impl, runtime.isa())
        seen = order.seen(self.case.problem, attr), at
        if seen not in self._by:
            self._by[seen] = modelled(self.case, *seen)
        return self._by[seen]


def modelled(case: KernelCase, order: Order, at: int) -> Any:
    """Return dst; or its ends, where a function is known within bounds only."""
    problem, attr, values = case.problem, case.attr, case.values
    others = {"bias": case.arrays.get("bias"), "before": case.arrays.get("dst")}
    if not any(map(is_bounded, attr.post_ops)):
        return destination(problem, attr, case.sums, order, values, level=at, **others)
    return ends(problem, attr, case.sums, order, values, at, **others)


def differing(got: Any, wanted: Any) -> int:
    """Count outputs with other bits, or out of bounds."""
    if isinstance(wanted, tuple):
        lo, hi = wanted
        return int(np.count_nonzero(~((lo <= got) & (got <= hi))))
    return int(np.count_nonzero(got.view(f"u{got.itemsize}") != wanted.view(f"u{got.itemsize}")))


@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("kind", sum_cases.KINDS)
def test_models_are_their_kernels(kind: str, src: str) -> None:
    minor = ".".join(map(str, runtime.version()[:2]))
    here = [
        key
        for key in proofs()
        if key[:2] == (kind, src) and key[3:] == (runtime.isa().text(), minor)
    ]
    if not here:
        pytest.skip(f"nothing is proven for {runtime.isa().text()} of oneDNN {minor}")
    compared: set[tuple[str, bool]] = set()
    asked: list[Any] = []
    for name, case in kernel_cases.cases(kind, src, kernel_cases.SMALL, seed=1):
        others = Modelled(case)
        asked.append((case.problem, case.attr))
        for impl, got in executed(case):
            try:
                model = kernel_model(
                    case.problem, case.attr, impl, runtime.isa(), runtime.version()
                )
            except NoModelError:
                continue
            once = (impl, bool(model.bounded))
            if once not in compared:  # the whole model once; its sums are tested elsewhere
                arrays = dict(case.arrays)
                before, bias = arrays.pop("dst", None), arrays.pop("bias", None)
                whole = model.bounds if model.bounded else model.run
                wanted = whole(**arrays, bias=bias, values=case.values, before=before)
            else:
                wanted = others.by(model.proof.order, impl)
            assert differing(got, wanted) == 0, f"{impl}, {name}, {case.problem.text()}"
            compared.add(once)
    # The others are struck by a guard in all cases.
    for impl in {key[2] for key in here} - {impl for impl, _ in compared}:
        for problem, attr in asked:
            assert any(
                each.matches(problem, attr, runtime.facts(), impl) for each in guards.GUARDS
            ), impl


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
            counts = {order: differing(got, wanted.by(order, impl)) for order in ORDERS}
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


@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("kind", sum_cases.KINDS)
def test_random_shapes_that_have_a_model(kind: str, src: str) -> None:
    """Shapes that no proof visited, but of classes and traits that one did."""
    minor = ".".join(map(str, runtime.version()[:2]))
    if not any(key[3:] == (runtime.isa().text(), minor) for key in proofs()):
        pytest.skip(f"nothing is proven for {runtime.isa().text()} of oneDNN {minor}")
    compared = 0
    for name, case in region_cases.stream(kind, src, seed=5, drawn=60):
        for impl, got in executed(case):
            try:
                model = kernel_model(
                    case.problem, case.attr, impl, runtime.isa(), runtime.version()
                )
            except NoModelError:
                continue
            count = differing_of(model, case, got)
            assert not count, f"{name}: {count} of {got.size}, {impl}, {case.problem.text()}"
            compared += count == 0
    assert compared > 10


@pytest.mark.slow
@pytest.mark.truth
@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("kind", sum_cases.KINDS)
def test_regions(kind: str, src: str) -> None:
    """Compare problems of every class and trait with models that the table has the order of."""
    wrong: list[str] = []
    minor = ".".join(map(str, runtime.version()[:2]))
    for name, case in region_cases.stream(kind, src, seed=4, each=2):
        for impl, got in executed(case):
            proof = proofs().get((kind, src, impl, runtime.isa().text(), minor))
            if proof is None or not features(case.problem, case.attr) <= proof.features:
                continue
            model = KernelModel(
                case.problem, case.attr, impl, runtime.isa(), proof, runtime.version()
            )
            count = differing_of(model, case, got)
            if count:
                wrong.append(f"{name}: {count} of {got.size}, {impl}, {case.problem.text()}")
            elif count == 0:
                VISITED[kind, src, impl][class_of(case.problem)] |= traits(case.problem)
    assert not wrong, "\n".join([str(len(wrong)), *wrong])


def differing_of(model: KernelModel, case: KernelCase, got: Any) -> int | None:
    """Count outputs with other bits than a model's; None where its sums are left open."""
    arrays = dict(case.arrays)
    before, bias = arrays.pop("dst", None), arrays.pop("bias", None)
    whole = model.bounds if model.bounded else model.run
    try:
        return differing(got, whole(**arrays, bias=bias, values=case.values, before=before))
    except NoModelError:
        return None
