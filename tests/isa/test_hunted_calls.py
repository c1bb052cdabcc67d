"""Calls that were silently wrong, at the instruction set of this process: now the integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ReferenceKernelError
from pyonednn_q.native import runtime

U8, S8 = pq.QParams(1.0, 0, "u8"), pq.QParams(1.0, 0, "s8")


def test_a_single_plane_of_a_single_channel() -> None:
    src, wei = np.full((1, 1, 1, 6, 6), 10, np.uint8), np.zeros((8, 1, 3, 3, 3), np.int8)
    wei[:, :, 1] = 2
    dst = pq.Conv(wei, src_q=U8, wei_q=S8, padding=1)(src)
    rows = np.array([4, 6, 6, 6, 6, 4])  # taps that meet the source
    assert (dst == 20 * np.outer(rows, rows) / 4).all()


@pytest.mark.parametrize(("outputs", "padding"), [(48, 0), (24, 1), (65, 1)])
@pytest.mark.parametrize("zero_point", [0, -3])
def test_groups_of_a_single_channel(outputs: int, padding: int, zero_point: int) -> None:
    codes = (np.arange(2 * outputs) % 7 - 3).astype(np.int8)
    wei = np.broadcast_to(2 * codes.reshape(-1, 1, 1, 1), (2 * outputs, 1, 3, 3)).copy()
    src_q = pq.QParams(1.0, zero_point, "s8")
    operator = pq.Conv(wei, src_q=src_q, wei_q=S8, groups=2, padding=padding)
    try:
        dst = operator(np.full((1, 2, 4, 4), 10, np.int8))
    except ReferenceKernelError:
        assert not runtime.isa().has_avx512()
        return  # a channel with several outputs of its own has no fast kernel there
    taps = np.full(4, 6) if padding else np.full(2, 6)
    if padding:
        taps[[0, -1]] = 4
    real = (10 - zero_point) * np.outer(taps, taps) / 4
    assert (dst == 2 * codes.reshape(1, -1, 1, 1) * real).all()


@pytest.mark.parametrize("dtype", ["s4", "u4"])
def test_bare_products_with_4_bits(dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    problem = pq.primitive.MatMulProblem.of((3, 8), (8, 16), wei=dtype, dst="f32")
    wei = (np.arange(128).reshape(8, 16) % 7).astype(
        ml_dtypes.int4 if dtype == "s4" else ml_dtypes.uint4
    )
    src = (np.arange(24).reshape(3, 8) % 11).astype(np.uint8)
    prepared: Any = pq.prepare(problem, wei=wei, allow_reference=True)
    assert (prepared(src) == src.astype(np.int64) @ wei.astype(np.int64)).all()


@pytest.mark.parametrize("policy", ["real", "bitwise"])
@pytest.mark.parametrize(("zero_point", "dst"), [(5, "u8"), (5, "f32"), (0, "u8")])
def test_a_sum_beside_zero_points(zero_point: int, dst: str, policy: str) -> None:
    rng = np.random.default_rng(3)
    wei = (2 * rng.integers(-3, 4, (32, 3, 3, 3))).astype(np.int8)
    src = rng.integers(0, 20, (1, 3, 3, 7)).astype(np.uint8)
    before = rng.integers(0, 20, (1, 32, 3, 7)).astype(np.uint8 if dst == "u8" else np.float32)
    post = pq.Chain(pq.Sum(), pq.Eltwise("abs"))
    dst_q = pq.QParams(8.0, 3, "u8") if dst == "u8" else None
    src_q = pq.QParams(1.0, zero_point, "u8")
    options: Any = {"dst": dst, "post": post, "policy": policy, "padding": 1}
    operator = pq.Conv(wei, src_q=src_q, wei_q=S8, dst_q=dst_q, **options)
    got = operator(src, residual=before)
    padded = np.pad(src.astype(np.int64) - zero_point, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    real = np.abs(np.einsum("nchwij,ocij->nohw", windows, wei.astype(np.int64)) + before)
    right = real if dst == "f32" else np.clip(np.rint(real / 8 + 3), 0, 255)
    assert (got == right).all()
