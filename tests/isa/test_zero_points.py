"""Source zero points executed where oneDNN computes them right, and where it is known not to.

There the layer carries the zero point in another way: in the bias, or as a map that is added at
every place. Numbers are clean, so one answer is right. Where the table speaks against the
attribute differs between instruction sets and versions; the answer does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Chain, Eltwise, PRelu, Sum
from pyonednn_q.faults import guards
from pyonednn_q.native import runtime
from pyonednn_q.ops.prepared_layer import prepare_layer
from pyonednn_q.primitive.attr import Attr, ZeroPoint
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from support.plans.quantized import FloatLayer

CONV, DECONV = ConvProblem.of, DeconvProblem.of
STEP, ZERO = 2.0**-4, 100

PROBLEMS: dict[str, Any] = {
    "conv": lambda t: CONV((2, 8, 6, 5), (16, 8, 3, 3), padding=1, **t),
    "conv without padding": lambda t: CONV((2, 8, 6, 5), (16, 8, 3, 3), **t),
    "depthwise": lambda t: CONV((2, 16, 6, 5), (16, 1, 1, 3, 3), padding=1, **t),
    "ragged groups": lambda t: CONV((1, 12, 7, 7), (2, 8, 6, 3, 3), padding=1, **t),
    "ragged groups, stride": lambda t: CONV((2, 24, 9, 8), (2, 8, 12, 3, 3), stride=2, **t),
    "ragged groups, 1d": lambda t: CONV((2, 20, 9), (4, 4, 5, 3), padding=1, **t),
    "ragged groups, deconv": lambda t: DECONV((1, 12, 5, 5), (2, 8, 6, 3, 3), padding=1, **t),
    "deconv": lambda t: DECONV((2, 16, 5, 4), (16, 16, 4, 4), stride=2, padding=1, **t),
    "deconv 1 by 2": lambda t: DECONV((1, 16, 5, 4), (16, 16, 1, 1), stride=2, **t),
    "deconv 5 by 2": lambda t: DECONV((1, 16, 5, 4), (16, 16, 5, 5), stride=2, padding=2, **t),
    "deconv 3 by 3": lambda t: DECONV((2, 16, 5, 5), (16, 16, 3, 3), stride=3, **t),
    "deconv 5 by 4": lambda t: DECONV((1, 16, 5, 5), (16, 16, 5, 5), stride=4, **t),
    "deconv 2 by 4": lambda t: DECONV((1, 16, 5, 5), (16, 16, 2, 2), stride=4, padding=1, **t),
    "deconv 1 by 3": lambda t: DECONV((1, 16, 4, 5), (16, 16, 1, 1), stride=3, **t),
    "grouped deconv": lambda t: DECONV((1, 32, 5, 4), (2, 8, 16, 3, 3), stride=2, **t),
    "inner product": lambda t: InnerProductProblem.of((5, 24), 16, **t),
    "matmul": lambda t: MatMulProblem.of((7, 24), (24, 16), **t),
}
CHAINS = {
    "none": Chain(),
    "relu": Chain(Eltwise("relu")),
    "scale": Chain(Affine([0.5, -2.0] * 8, [1.0, -3.0] * 8), PRelu([0.5, 0.25] * 8)),
    "residual": Chain(Sum(0.5, 3), Eltwise("relu")),
}


def layer(name: str, chain: Chain, dst: str) -> FloatLayer:
    """Return weights from -2 to 2 behind a source whose real 0 is the code 100."""
    rng = np.random.default_rng(len(name))
    problem = PROBLEMS[name]({"dst": dst})
    low, high = -ZERO * STEP, (255 - ZERO) * STEP
    ends = -20.0, 235.0
    return FloatLayer(
        problem=problem,
        wei=rng.integers(-2, 3, problem.wei.dims).astype(np.float64),
        bias=rng.integers(-64, 64, 16) / 8.0,
        src_fq=FakeQuantize(low, high, low, high),
        wei_fq=FakeQuantize(-2, 2, -2, 2, 5),
        chain=chain,
        dst_fq=FakeQuantize(*ends, *ends) if dst == "u8" else None,
    )


def wrong_by_attribute(problem: Any) -> set[str]:
    """Name the faults that a zero point of src brings up in this process."""
    found = [
        {guard.id for guard in guards.matching(problem, attr, runtime.facts(), "")}
        for attr in (Attr(src_zero_point=ZeroPoint()), Attr())
    ]
    return found[0] - found[1]


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_one_answer_however_it_is_carried(name: str, chain: str) -> None:
    for dst in ("u8", "f32"):
        steps = CHAINS[chain]
        if dst == "f32":
            steps = Chain(*(Sum(0.5) if isinstance(step, Sum) else step for step in steps))
        asked = layer(name, steps, dst)
        made = asked.compose(process=runtime.facts())
        wrong = wrong_by_attribute(asked.problem)
        assert not wrong or made.zero_point.by in {"bias", "map"}
        assert all(any(row in note for note in made.notes) for row in wrong)
        rng = np.random.default_rng(1)
        src = (rng.integers(0, 256, asked.problem.src.dims) - ZERO) * STEP
        before = rng.integers(0, 200, asked.problem.dst.dims).astype({"u8": "u1", "f32": "f4"}[dst])
        _, want = asked.meaning(src, before)
        residual = before if chain == "residual" else None
        # Without VNNI there is no fast kernel for ragged groups, with or without a zero point.
        slow = name.startswith("ragged") and not runtime.isa().has_vnni()
        prepared = prepare_layer(made, allow_reference=slow)
        got = prepared(src.astype(np.float32), residual=residual)
        np.testing.assert_array_equal(got, want)
