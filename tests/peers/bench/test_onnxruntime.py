"""ONNX Runtime on the same numbers: equal with exact_rounding, without it each difference named."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from pyonednn_q.bench.case import Case
from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.grouped_trial import GroupedTrial
from pyonednn_q.bench.peers import ready
from pyonednn_q.bench.peers.case_layer import layer_of
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.expr.steps import Chain, Eltwise
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.group_codes import group_codes
from support.calls.call import Call
from support.peers.arithmetic import Arithmetic, onnx
from support.peers.differences import FOLDED, POINT_LAST, UNEXPLAINED, explained
from support.peers.draw import tied
from support.peers.layers import refusal, run

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx, which writes models, is not installed")

PEER = "onnxruntime"
TYPES = (("u8", "s8"), ("u8", "u8"), ("s8", "s8"))
SEEDS = range(12)
SIDES = {"padding": ((1, 0), (0, 1))}


def compared(call: Call) -> Counter[str]:
    """Compare both forms of ours: the exact one must be equal, the other explained."""
    theirs = run(PEER, call)
    np.testing.assert_array_equal(call.but(exact_rounding=True).run(), theirs)
    return explained(Arithmetic(call), theirs, onnx)


@pytest.mark.parametrize(("src", "wei"), TYPES)
def test_qlinear_conv(src: str, wei: str) -> None:
    found: Counter[str] = Counter()
    for seed in SEEDS:
        bias = "s32" if seed % 4 else None
        found += compared(tied("conv", seed, src, wei, src, bias).but(window=SIDES))
    assert found[UNEXPLAINED] == 0, found
    # The data meets what is looked for: else nothing was shown.
    assert found[POINT_LAST] > 0
    assert found[FOLDED] > 0


def test_grouped_qlinear_conv() -> None:
    found: Counter[str] = Counter()
    for seed in SEEDS:
        call = tied("conv", seed, bias="s32")
        call = call.but(wei=call.wei[:, :4], window={"groups": 2, "padding": 1})
        found += compared(call)
    assert found[UNEXPLAINED] == 0, found
    assert found[POINT_LAST] > 0


@pytest.mark.parametrize(("src", "wei"), TYPES)
def test_qlinear_matmul(src: str, wei: str) -> None:
    found: Counter[str] = Counter()
    for seed in SEEDS:
        found += compared(tied("matmul", seed, src, wei, src))
    assert found[UNEXPLAINED] == 0, found
    assert found[POINT_LAST] > 0


@pytest.mark.parametrize("kind", ["matmul", "inner_product"])
@pytest.mark.parametrize(("src", "wei"), TYPES)
def test_qgemm(src: str, wei: str, kind: str) -> None:
    found: Counter[str] = Counter()
    for seed in SEEDS:
        found += compared(tied(kind, seed, src, wei, src, "s32"))
    assert found[UNEXPLAINED] == 0, found
    assert found[POINT_LAST] > 0


@pytest.mark.parametrize(("src", "wei"), [("u8", "s8"), ("u8", "u8")])
@pytest.mark.parametrize("kind", ["conv", "matmul"])
def test_integer_operators(src: str, wei: str, kind: str) -> None:
    """Sums of integers: there is nothing to round."""
    for seed in SEEDS:
        call = tied(kind, seed, src, wei)
        assert call.src_q is not None
        q: dict[str, Any] = {
            "src_q": QParams(1.0, int(call.src_q.zero_point), src),
            "wei_q": QParams(1.0, (128 if wei == "u8" else 0) + seed % 3, wei),
        }
        call = call.but(**q, dst_q=None, dst="s32")
        theirs = run(PEER, call)
        np.testing.assert_array_equal(call.run(), theirs)
        np.testing.assert_array_equal(call.accumulators(), theirs)


def test_what_it_refuses_works_here() -> None:
    """Deconvolution, a relu above the lowest code, another type of result, s8 by u8."""
    relu = Chain(Eltwise("relu"))
    for call, why in (
        (tied("deconv", 1), "no INT8 kernel for ConvTranspose"),
        (tied("conv", 1).but(post=relu), "fuses a relu only where"),
        (tied("conv", 1, "u8", "s8", "s8"), "stores uint8 here, not s8"),
        (tied("conv", 1, "s8", "u8", "s8"), "multiplies no int8 by uint8"),
    ):
        assert why in refusal(PEER, call)
        call.meaning().check(call.run())


@pytest.mark.parametrize("dtype", ["s4g16", "s8g32"])
def test_products_with_weights_in_groups_are_of_the_same_codes(dtype: str) -> None:
    """What `bench` times beside ours: sources have a range a group there, and a row here."""
    for problem in ("matmul 5x64 64x32", "ip 3x64 48x64"):
        case = Case(Shape.parse(problem), Precision.parse(dtype))
        sample = Sample.of(case.shape, with_residual=False)
        ours = GroupedTrial.of(case, sample)
        theirs = ready(PEER, layer_of(PEER, case, sample), 1).result()
        real_wei = sample.wei if case.shape.kind == "matmul" else sample.wei.T
        bits = 4 if dtype.startswith("s4") else 8
        codes, wei_q = group_codes(real_wei, case.precision.group, bits, axis=-1)
        wei = wei_q.dequantize(codes).astype(float)
        real = ours.src.astype(float) @ wei + sample.bias
        # A code is half a step off at most: 1 in 254 of its row's largest.
        most = np.abs(ours.src).max(1, keepdims=True) / 254 * np.abs(wei).sum(0) + 1e-5
        assert (np.abs(ours.real_result() - real) < most).all()
        assert (np.abs(theirs - real) < most).all()
