"""Models of random calls against the calls themselves, bit for bit, signs of zeros included.

What is drawn here knows nothing of the cases by which models were proven.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import Error, NoModelError
from pyonednn_q.native import runtime
from pyonednn_q.ops.predicted import OperatorModel
from pyonednn_q.predict.region import proofs
from support.calls.call import operators
from support.calls.draw import narrowed, random_call
from support.hostile.attempt import Attempt, made

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]

CHUNKS, CALLS = 4, 100


def drawn(seed: int) -> Attempt:
    """Draw a call on codes, or on float values that become codes."""
    rng = np.random.default_rng([seed, 4711])
    call = random_call(rng)
    while call.src_q is None:
        call = random_call(rng)
    return Attempt.of(narrowed(call) if rng.random() < 0.7 else call, rng)


def compared(attempt: Attempt) -> tuple[str, Any]:
    """Compare a call with its model; return what came of it, and the model's operator."""
    settings = {name: made(value) for name, value in attempt.settings.items() if name != "tune"}
    call = dict(attempt.call)
    operands = call.pop("operands", {})
    of = operators()[attempt.kind]
    try:
        operator = (of.from_float if attempt.from_float else of)(
            attempt.wei, attempt.bias, **settings
        )
        with np.errstate(all="ignore"):
            got = np.array(operator(attempt.src, **operands, **call))
    except Error:
        return "refused", None
    try:
        with np.errstate(all="ignore"):
            same = _same(operator, got, attempt.src, {**operands, **call})
    except NoModelError:
        return "no model", operator
    return ("equal" if same else "DIFFERENT"), operator


def _same(operator: Any, got: Array, src: Array, more: Mapping[str, Any]) -> bool:
    model = pq.model_of(operator, src.shape)
    if isinstance(model, OperatorModel) and model.arithmetic.model.bounded:
        lo, hi = model.bounds(src, **more)
        return bool((((lo <= got) & (got <= hi)) | np.isnan(got)).all())
    wanted = model.run(src, **more)
    assert wanted.dtype == got.dtype
    assert wanted.shape == got.shape
    bits = f"u{got.itemsize}"
    nan = np.isnan(got) & np.isnan(wanted) if got.dtype.kind not in "iu" else False
    return bool(((got.view(bits) == wanted.view(bits)) | nan).all())


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_calls_are_as_their_models(chunk: int) -> None:
    minor = ".".join(map(str, runtime.version()[:2]))
    if not any(key[3:] == (runtime.isa().text(), minor) for key in proofs()):
        pytest.skip(f"nothing is proven for {runtime.isa().text()} of oneDNN {minor}")
    found: Counter[str] = Counter()
    for seed in range(chunk * CALLS, (chunk + 1) * CALLS):
        outcome, operator = compared(drawn(seed))
        assert outcome != "DIFFERENT", f"seed {seed}: {operator!r}"
        found[outcome] += 1
    assert found["equal"] > 0.6 * (CALLS - found["refused"]), found
