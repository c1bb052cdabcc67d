"""Many threads: sharing one primitive, preparing different ones, equal to serial every time."""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import EltwisePostOp
from pyonednn_q.primitive.problem import ConvProblem, MatMulProblem
from support.threads import run_together

THREADS = 16
ROUNDS = 1_000
RNG = np.random.default_rng(11)


def conv(channels: int) -> tuple[native.Prepared, np.ndarray]:
    """A convolution whose source zero point and s8 source make it use scratch memory."""
    problem = ConvProblem.of(
        (1, channels, 7, 7), (16, channels, 3, 3), padding=1, src="s8", bias="f32"
    )
    attr = Attr(
        wei_scale=Scale(mask=1),
        dst_scale=Scale(),
        src_zero_point=ZeroPoint(),
        post_ops=(EltwisePostOp("relu"),),
    )
    wei = 2 * RNG.integers(-3, 4, (16, channels, 3, 3)).astype(np.int8)
    values = {"wei_scale": np.full(16, 0.25), "dst_scale": 0.5, "src_zero_point": 2}
    call = native.prepare(problem, attr, wei=wei, bias=np.ones(16, np.float32), values=values)
    src = call.empty("src")
    src[...] = RNG.integers(-9, 10, src.shape)
    return call, src


@pytest.mark.stress
def test_threads_that_share_one_primitive_agree_with_serial() -> None:
    call, first = conv(32)
    sources = [first.copy(order="K") for _ in range(THREADS)]
    for index in range(THREADS):
        sources[index] += np.int8(index % 5)
    serial = [call(src) for src in sources]
    outs = [call.empty() for _ in range(THREADS)]

    def work(index: int) -> bool:
        outs[index][...] = 0
        return bool(np.array_equal(call(sources[index], out=outs[index]), serial[index]))

    results = run_together(THREADS, work, rounds=ROUNDS)
    assert all(all(rounds) for rounds in results)
    assert call._core is not None
    assert call._core.frames <= THREADS


@pytest.mark.stress
def test_threads_that_prepare_different_primitives_agree_with_serial() -> None:
    cases = []
    for index in range(THREADS):
        m, k, n = 1 + index % 5, 8 + index, 16 + 2 * index
        src = RNG.integers(0, 20, (m, k)).astype(np.uint8)
        wei = RNG.integers(-4, 5, (k, n)).astype(np.int8)
        expected = src.astype(np.int64) @ wei.astype(np.int64)
        cases.append((MatMulProblem.of((m, k), (k, n), dst="s32"), src, wei, expected))

    def work(index: int) -> bool:
        problem, src, wei, expected = cases[index]
        return bool(np.array_equal(native.prepare(problem, wei=wei)(src), expected))

    results = run_together(THREADS, work, rounds=ROUNDS)
    assert all(all(rounds) for rounds in results)
