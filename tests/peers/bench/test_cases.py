"""What `bench --peers` times computes what we compute: each peer on cases of every kind."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.bench.case import LAYOUTS, Case
from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.peers import PEERS, PeerError, ready
from pyonednn_q.bench.peers.case_layer import layer_of
from pyonednn_q.bench.peers.contest import Contest
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.tail import Tail
from pyonednn_q.bench.trial import Trial
from pyonednn_q.native.timing import Budget
from pyonednn_q.primitive.windowed import Layout

SHAPES = (
    "conv 2x16x9x8 24x16x3x3 stride=2 padding=1",
    "conv 1x32x9x9 32x1x1x3x3 padding=1",
    "conv 1x8x5x6x7 16x8x3x3x3 padding=1",
    "conv 1x8x20 16x8x5 dilation=2",
    "conv 1x8x6x6 16x8x3x3 padding=0:1",
    "deconv 1x16x5x5 32x16x4x4 stride=2 padding=1",
    "deconv 1x16x5x5 8x16x3x3 stride=2 padding=1 out=10x10",
    "ip 3x16x2x2 32x16x2x2",
    "matmul 5x64 64x32",
    "matmul 3x8x64 3x64x16",
    "matmul 3x8x64 3x64x16 wei=transposed",
)
TAILS = ("none", "relu", "relu_fq_u8", "sum", "sum_relu", "gelu_tanh")
DTYPES = ("f32", "u8s8u8", "s8s8s8", "u8s8f32")
# By runtime and what it lacks: every refusal is one of these.
REASONS = (
    "is not asked for the tail",
    "is compared in f32 and INT8 only",
    "is not asked for groups of transposed convolutions",
    "has no INT8 kernel for ConvTranspose",
    "adds no residual",
    "stores uint8 here",
    "stores int8 here",
    "fuses a relu only where",
    "has no INT8 transposed convolution",
    "multiplies by packed weights only",
    "convolves u8 sources only",
    "pads both sides alike only",
    "adds to convolutions of two dimensions only",
    "fuses no relu into convolutions of three dimensions",
    "runs the ",
    "fails: ",
)


@pytest.fixture(scope="module", params=PEERS)
def peer(request: pytest.FixtureRequest) -> str:
    """Each peer, skipped by name where it is missing; ours starts first, see docs/peers.md."""
    name = str(request.param)
    for package in PEERS[name]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    trial_of(Case(Shape.parse(SHAPES[8]), Precision.parse("f32"))).real_result()
    return name


def trial_of(case: Case) -> Trial:
    return Trial.of(case, Sample.of(case.shape, with_residual=case.tail.has_residual))


def compare(case: Case, theirs: Any) -> None:
    """Integers are at most one level apart, FP32 by no more than its roundings."""
    trial = trial_of(case)
    if trial.saturates:
        pytest.skip("without VNNI these weights are not summed exactly, and `bench` says so")
    ours = trial.result()
    assert theirs.dtype == ours.dtype
    assert theirs.shape == ours.shape
    apart = np.abs(theirs.astype(np.float64) - ours.astype(np.float64))
    if case.precision.dst != "f32":
        # A bias in whole units of the accumulator, and ties.
        assert apart.max() <= 1
        assert (apart == 0).mean() > 0.98
        return
    magnitudes = Case(case.shape, Precision.parse("f32"), case.tail)
    sample = Sample.of(case.shape, with_residual=case.tail.has_residual)
    sizes = Sample(*(np.abs(a) for a in (sample.src, sample.wei, sample.bias, sample.residual)))
    terms = case.shape.macs // int(np.prod(case.shape.dst)) + 3
    bound = Trial.of(magnitudes, sizes).real_result() * terms * 2.0**-23
    assert (apart <= bound).all()


def computed(peer: str, case: Case) -> tuple[Any, str]:
    """What a peer computes, or why it does not."""
    sample = Sample.of(case.shape, with_residual=case.tail.has_residual)
    try:
        return ready(peer, layer_of(peer, case, sample), 1).result(), ""
    except PeerError as error:
        return None, error.why


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_peers_compute_the_case(peer: str, shape: str, dtype: str, layout: Layout) -> None:
    for tail in TAILS:
        # Ours has the layout that its kernels have: the values are the same.
        case = Case(Shape.parse(shape), Precision.parse(dtype), Tail(tail))
        theirs, why = computed(peer, replace(case, layout=layout))
        if theirs is None:
            assert why.startswith(REASONS), why
        else:
            compare(case, theirs)


def test_peers_take_part(peer: str) -> None:
    cases = [
        Case(Shape.parse(SHAPES[0]), Precision.parse("u8s8u8")),
        Case(Shape.parse(SHAPES[0]), Precision.parse("bf16")),
        Case(Shape.parse(SHAPES[7]), Precision.parse("f32")),
    ]
    with Contest((peer,), threads=1) as contest:
        found = contest.run(cases, Budget(rounds=6))
    for case, rivals in zip(cases, found, strict=True):
        (theirs,) = (rival for rival in rivals if rival.name == peer)
        if case.precision.name == "bf16":
            assert theirs.refused == "is compared in f32 and INT8 only"
        else:
            assert len(theirs.samples_us) == 6
