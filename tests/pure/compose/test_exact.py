"""The exact form, by oneDNN's formula, against ONNX Runtime's rule in float32."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.compose.composer import compose
from pyonednn_q.errors import ArgumentError, DTypeError, UnsupportedError
from pyonednn_q.expr.vec import Vec
from support import oracle

F = np.float32
SRC = np.array([[200, 7, 3], [0, 31, 90]], np.uint8)
WEI = np.array([[5, -3], [-2, 7], [11, 1]], np.int8)
ACC = SRC.astype(int) @ WEI.astype(int)
SCALES = (0.0371, (0.0123, 0.0456), 0.0293)
MULTIPLIER = F(SCALES[0]) * np.array(SCALES[1], F) / F(SCALES[2])


def facts(dst: str = "s8", wei: Any = WEI, **more: Any) -> pq.primitive.PrimitiveFacts:
    src, each, out = SCALES
    problem = pq.primitive.MatMulProblem.of((2, len(wei)), wei.shape, dst=dst)
    given = {"src_scale": src, "wei_scale": Vec(each), "dst_scale": out, **more}
    return pq.primitive.PrimitiveFacts.of(problem, wei=wei, **given)


@pytest.mark.parametrize("zero_point", [0, 3, -20])
@pytest.mark.parametrize("bias", [None, (40, -300)])
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("lo", [-128.0, -0.5, 0.0])
def test_the_rule(lo: float, later: bool, bias: Any, zero_point: int) -> None:
    """Clips of real values are clips of levels, before the zero point is added.

    A bias that comes with each call is the same number of sums as one that is known.
    """
    later = later and bias is not None
    given: Any = {"bias": None if later else bias, "bias_in_acc": True}
    known = replace(facts(dst_zero_point=zero_point, **given), bias_later=later)
    chains = {
        -128.0: pq.Chain(),
        -0.5: pq.Chain(pq.Clip(-0.5, 1.5)),
        0.0: pq.Chain(pq.Eltwise("relu"), pq.Clip(hi=1.5)),
    }
    plan = compose(chains[lo], known, exact_rounding=True)
    total = ACC if bias is None else ACC + np.array(bias)
    levels = np.rint(total.astype(F) * MULTIPLIER)
    if lo > -128.0:
        levels = np.clip(levels, np.rint(lo / SCALES[2]), np.rint(1.5 / SCALES[2]))
    arrays: dict[str, Any] = {"src": SRC, "wei": plan.wei(WEI), **plan.values()}
    if plan.has_bias:
        arrays["bias"] = plan.bias_values(bias if later else None)
    problem: Any = pq.primitive.MatMulProblem.of((2, 3), (3, 2), dst="s8")
    got = oracle.run(plan.problem(problem), plan.attr, arrays).dst
    assert got.tolist() == np.clip(levels + zero_point, -128, 127).tolist()


def test_a_zero_point_that_a_primitive_does_not_take_is_a_post_op() -> None:
    """An inner product has no zero point of dst; a matmul has."""
    for kind, has_attribute in (("matmul", True), ("inner_product", False)):
        known = pq.primitive.PrimitiveFacts(kind, 2, ndims=2, wei_ndims=2, dst_zero_point=7)
        attr = compose(pq.Chain(), known, exact_rounding=True).attr
        assert (attr.dst_zero_point is not None) is has_attribute


def test_an_exact_form_is_refused_where_there_is_none() -> None:
    def asked(chain: pq.Chain, known: pq.primitive.PrimitiveFacts) -> None:
        compose(chain, known, exact_rounding=True)

    with pytest.raises(DTypeError, match=r"^exact_rounding: got s8 to f32"):
        asked(pq.Chain(), facts("f32"))
    with pytest.raises(ArgumentError, match=r"^bias: got a bias in real units"):
        asked(pq.Chain(), facts(bias=3.0))
    with pytest.raises(ArgumentError, match=r"^bias: got .*; wanted whole numbers"):
        asked(pq.Chain(), facts(bias=0.5, bias_in_acc=True))
    for other in (pq.Eltwise("relu", 0.5), pq.Eltwise("abs"), pq.Affine(2.0)):
        with pytest.raises(UnsupportedError, match="only clips and relu"):
            asked(pq.Chain(other), facts())


@pytest.mark.parametrize(
    ("name", "value"), [("src_scale", 1e-40), ("dst_scale", 1e38), ("src_scale", 3e38)]
)
def test_the_multiplier_stays_in_float32(name: str, value: float) -> None:
    more: Any = {"wei_scale": Vec(1e3 if value == 3e38 else 1.0), name: value}
    with pytest.raises(ArgumentError, match=r"^exact_rounding: got .*float32 can hold"):
        compose(pq.Chain(), facts(**more), exact_rounding=True)


@pytest.mark.parametrize(
    ("bias", "fits"), [(2**24 - 1 - 255 * 100, True), (2**24 - 255 * 100, False)]
)
def test_sums_with_a_bias_stay_below_2_to_24(bias: int, fits: bool) -> None:
    known = facts(wei=np.full((1, 2), 100, np.int8), bias=bias, bias_in_acc=True)
    if fits:
        assert compose(pq.Chain(), known, exact_rounding=True).bias_dtype == "s32"
        return
    with pytest.raises(UnsupportedError, match=r"sums can reach 16777216, and float32 is exact"):
        compose(pq.Chain(), known, exact_rounding=True)
