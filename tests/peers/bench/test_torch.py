"""torch.ops.onednn on the same numbers, and its faults as calls that we refuse or get right."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.steps import Chain, Eltwise, Sum
from pyonednn_q.ops.conv import Conv
from pyonednn_q.qparams import QParams
from support.calls.call import Call
from support.calls.draw import dst_dims, random_values
from support.oracle_numbers import numpy_dtype
from support.peers.arithmetic import Arithmetic, combined, separate
from support.peers.differences import FLOAT32, FOLDED, UNEXPLAINED, explained
from support.peers.draw import tied
from support.peers.layers import refusal, run

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
if "onednn" not in torch.backends.quantized.supported_engines:
    pytest.skip("torch was built without its oneDNN operators", allow_module_level=True)

PEER = "torch"
SEEDS = range(12)
POSTS = {"none": (), "relu": (Eltwise("relu"),)}


def compared(call: Call) -> Counter[str]:
    """Compare with the one order of operations that torch's kernel follows in all elements."""
    theirs = run(PEER, call)
    numbers = Arithmetic(call)
    order = combined if (combined(numbers) == theirs).all() else separate
    return explained(numbers, theirs, order)


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("dst", ["u8", "s8"])
@pytest.mark.parametrize("kind", ["conv", "inner_product", "matmul"])
def test_pointwise(kind: str, dst: str, post: str) -> None:
    found: Counter[str] = Counter()
    for seed in SEEDS:
        call = tied(kind, seed, dst=dst, bias="f32" if seed % 2 else None)
        found += compared(call.but(post=Chain(*POSTS[post])))
    assert found[UNEXPLAINED] == 0, found
    # The data meets what is looked for: else nothing was shown.
    assert found[FOLDED] + found[FLOAT32] > 0


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("kind", ["conv", "inner_product"])
def test_sum(kind: str, post: str) -> None:
    found: Counter[str] = Counter()
    for seed in SEEDS:
        call = tied(kind, seed, bias="f32" if seed % 2 else None)
        residual = random_values(np.random.default_rng(seed), dst_dims(call), "u8", 200)
        assert call.dst_q is not None
        # Of a scale that keeps the sums near ties.
        added = Sum(float(np.float32(float(call.dst_q.scale) * (1 + seed % 3) / 16)), 11)
        found += compared(call.but(post=Chain(added, *POSTS[post]), residual=residual))
    assert found[UNEXPLAINED] == 0, found
    assert found[FOLDED] + found[FLOAT32] > 0


# What torch's operators accept, and we do not, or get right.


def test_scales_of_the_wrong_length() -> None:
    """There, reading goes on past the end of the vector."""
    call = tied("conv", 0)
    with pytest.raises(ShapeError, match="wei_q: got 7 channels"):
        Conv(call.wei, src_q=call.src_q, wei_q=QParams(np.full(7, 0.1), 0, "s8", axis=0))


def test_zero_points_of_weights() -> None:
    """There, they are ignored."""
    call = tied("conv", 0)
    assert call.wei_q is not None
    shifted = call.but(wei_q=QParams(call.wei_q.scale, 5, "s8", axis=0))
    assert "no zero points of weights" in refusal(PEER, shifted)
    got = shifted.run()
    shifted.meaning().check(got)
    assert (got != call.run()).any()


@pytest.mark.parametrize(
    ("scale", "point"), [(0.0, 0), (-1.0, 0), (np.inf, 0), (0.1, 300), (0.1, -1)]
)
def test_parameters_out_of_range(scale: float, point: int) -> None:
    """There, an output zero point of 300 for u8 is taken, and a scale of 0."""
    with pytest.raises(ArgumentError):
        QParams(scale, point, "u8")


def test_what_torch_refuses_works() -> None:
    """s8 sources of a convolution, four-sided padding, activations, s32 results, deconvolution."""
    assert "no INT8 transposed convolution" in refusal(PEER, tied("deconv", 1))
    call = tied("conv", 1, dst="s8", bias="f32")
    src = (call.src.astype(np.int16) - 128).astype(numpy_dtype("s8"))
    assert call.src_q is not None
    sides = {"padding": ((1, 0), (0, 2))}
    assert "both sides alike" in refusal(PEER, call.but(window=sides))
    call = call.but(src=src, src_q=QParams(call.src_q.scale, -5, "s8"), window=sides)
    assert "u8 sources only" in refusal(PEER, call)
    for alg in ("relu", "tanh", "abs", "hardswish", "elu", "logistic"):
        alphas = {"hardswish": (1 / 6, 0.5), "elu": (1.0,), "relu": (0.25,)}
        one = call.but(post=Chain(Eltwise(alg, *alphas.get(alg, ()))))
        one.meaning().check(one.run())
    whole = call.but(dst_q=None, dst="s32")
    whole.meaning().check(whole.run())
