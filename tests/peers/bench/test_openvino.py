"""OpenVINO's INT8 convolution and deconvolution on the same numbers, each difference named."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from collections import Counter

import pytest

from pyonednn_q.expr.steps import Chain, Eltwise
from pyonednn_q.native import runtime
from pyonednn_q.native.child import environment
from support.peers.arithmetic import Arithmetic, openvino
from support.peers.differences import FLOAT32, FOLDED, UNEXPLAINED, explained
from support.peers.draw import tied
from support.peers.layers import refusal, run

if importlib.util.find_spec("openvino") is None:
    pytest.skip("openvino is not installed", allow_module_level=True)

PEER = "openvino"
SEEDS = range(12)
RELU = Chain(Eltwise("relu"))


@pytest.fixture(autouse=True, scope="module")
def _ours_first() -> None:
    """Start our runtime: OpenVINO's libtbb would keep the SYCL build's driver from loading."""
    tied("conv", 0).run()


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("bias", [None, "f32"])
@pytest.mark.parametrize("dst", ["u8", "s8"])
@pytest.mark.parametrize("kind", ["conv", "deconv"])
def test_layers(kind: str, dst: str, bias: str | None, *, relu: bool) -> None:
    found: Counter[str] = Counter()
    for seed in SEEDS:
        point = 0 if kind == "deconv" else None
        call = tied(kind, seed, dst=dst, bias=bias, src_point=point)
        call = call.but(post=RELU) if relu else call
        found += explained(Arithmetic(call), run(PEER, call), openvino)
    assert found[UNEXPLAINED] == 0, found
    # The data meets what is looked for: else nothing was shown.
    assert found[FOLDED] + found[FLOAT32] > 0


@pytest.mark.skipif(runtime.threading_runtime() != "SYCL", reason="needs no driver of its own")
def test_imported_first_it_leaves_an_error_that_says_what_to_do() -> None:
    code = """
        import numpy, openvino
        openvino.Core()
        from pyonednn_q.ops.functional import matmul
        one = numpy.ones((4, 4), numpy.float32)
        matmul(one, one)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "LibraryError" in done.stderr
    assert "run something with pyonednn_q before importing" in done.stderr


def test_what_it_runs_on_floats_is_integer_here() -> None:
    """A source zero point of a deconvolution, one of an s8 source, one of weights."""
    for call in (
        tied("deconv", 1, src_point=3),
        tied("conv", 1, "s8", src_point=5),
        tied("conv", 1, "u8", "u8"),
    ):
        assert "on floats" in refusal(PEER, call)
        call.meaning().check(call.run())
