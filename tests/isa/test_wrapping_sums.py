"""Sums of codes that leave 32 bits wrap in every kernel: weights that lead there are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import SaturationError
from pyonednn_q.native import prepare, runtime
from pyonednn_q.primitive.attr import Attr, ZeroPoint
from pyonednn_q.primitive.problem import ConvProblem, MatMulProblem

# 255 * 64 * K passes 2^31 from 131 587 rows on; pairs of products stay within 16 bits.
FEW, MANY = 131_500, 131_700
WEI_Q = pq.QParams(1.0, 0, "s8")


def layer(kind: str, rows: int, wei: int, **options: Any) -> Any:
    q: dict[str, Any] = {"src_q": pq.QParams(1.0, 0, "u8"), "wei_q": WEI_Q, **options}
    column = np.full(rows, wei, np.int8)
    if kind == "matmul":
        return pq.MatMul(np.stack([column, column // 2], axis=1), **q)
    if kind == "inner_product":
        return pq.InnerProduct(np.stack([column, column // 2]), **q)
    taps = np.stack([column, column // 2]).reshape(2, rows // 10, 10)
    return pq.Conv(taps, **q)


def source(kind: str, rows: int, value: int, dtype: type = np.uint8) -> Any:
    src: Any = np.full((1, rows), value, dtype)
    return src.reshape(1, rows // 10, 10) if kind == "conv" else src


@pytest.mark.parametrize("wei", [64, -64])
@pytest.mark.parametrize("kind", ["matmul", "inner_product", "conv"])
def test_the_last_that_fits_is_exact_and_the_next_is_refused(kind: str, wei: int) -> None:
    dst = np.asarray(layer(kind, FEW, wei)(source(kind, FEW, 255)), np.float64).reshape(-1)
    exact = 255.0 * wei * FEW * np.array([1.0, 0.5])
    np.testing.assert_allclose(dst, exact, rtol=2.0**-22)
    with pytest.raises(SaturationError, match="exceed 32 bits") as caught:
        layer(kind, MANY, wei)(source(kind, MANY, 255))
    assert caught.value.channels == (0,)


@pytest.mark.parametrize(
    "options",
    [{"dst": "u8"}, {"dst": "s32"}, {"dst": "bf16"}, {"post": pq.Chain(pq.Clip(0, 6))}],
)
def test_whatever_is_stored(options: dict[str, Any]) -> None:
    if options.get("dst") == "bf16":
        pytest.importorskip("ml_dtypes")
    with pytest.raises(SaturationError, match="exceed 32 bits"):
        layer("matmul", MANY, 64, **options)(source("matmul", MANY, 255))


@pytest.mark.parametrize(
    "options",
    [
        {"wei_q": pq.QParams(2.0**-10, 0, "s8")},
        {"dst_q": pq.QParams(2.0**10, 0, "s32"), "dst": None},
        {"post": pq.Chain(pq.Eltwise("relu"))},
        {"post": pq.Chain(pq.Clip(-9.0, 2.0**30))},
        {
            "src_q": pq.QParams(1.0, 9, "u8"),
            "bias": np.array([0.5, 0.5], np.float32),
        },  # no whole numbers
    ],
)
def test_32_bits_are_no_excuse_where_more_than_sums_is_stored(options: dict[str, Any]) -> None:
    with pytest.raises(SaturationError, match="32 bits"):
        layer("matmul", MANY, 64, **{"dst": "s32", **options})(source("matmul", MANY, 255))


def test_stored_sums_that_are_allowed_saturate() -> None:
    if not runtime.isa().has_vnni():
        pytest.skip("needs VNNI: without, such weights are refused for their pairs of products")
    operator = layer("matmul", MANY, 64, dst="s32", saturation="allow")
    assert operator(source("matmul", MANY, 255)).tolist() == [[2**31 - 1, 255 * 32 * MANY]]
    assert "saturates" in operator.prepare((1, MANY)).notes[-1]


@pytest.mark.parametrize("kind", ["matmul", "inner_product", "conv"])
def test_integers_that_were_asked_for_are_those_or_an_error(kind: str) -> None:
    """70 000 products: of weights of 120 they fit into 32 bits, of 127 they do not."""
    if not runtime.isa().has_vnni():
        pytest.skip("needs VNNI: without, such weights are refused for their pairs of products")
    dst = layer(kind, 70_000, 120, dst="s32")(source(kind, 70_000, 255))
    assert dst.reshape(-1).tolist() == [255 * 120 * 70_000, 255 * 60 * 70_000]
    with pytest.raises(SaturationError, match="exceed 32 bits") as caught:
        layer(kind, 70_000, 127, dst="s32")(source(kind, 70_000, 255))
    assert caught.value.channels == (0,)


def test_functional_calls_refuse_them() -> None:
    wei = np.full((70_000, 1), 127, np.int8)
    with pytest.raises(SaturationError, match="exceed 32 bits"):
        pq.matmul(
            source("matmul", 70_000, 255),
            wei,
            src_q=pq.QParams(1.0, 0, "u8"),
            wei_q=WEI_Q,
            dst="s32",
        )


def test_who_allows_it_is_told_and_gets_what_wraps() -> None:
    operator = layer("matmul", MANY, 64, saturation="allow")
    dst = operator(source("matmul", MANY, 255))
    wrapped = (255 * 64 * MANY + 2**31) % 2**32 - 2**31
    np.testing.assert_allclose(dst[0, 0], wrapped, rtol=1e-6)
    assert any("exceed 32 bits" in note for note in operator.prepare((1, MANY)).notes)


def test_signed_sources_count_as_kernels_sum_them() -> None:
    """Some kernels sum 128 more than each code: 1x1 convolutions wrap though their results fit."""
    problem = ConvProblem.of((1, MANY, 3), (2, MANY, 1), src="s8", dst="f32")
    wei = np.zeros(problem.wei.dims, np.int8)
    wei[:, ::2] = 127  # even ones for s8 without VNNI: neither pairs nor halves lose anything
    wei[:, ::2] -= 63
    with pytest.raises(SaturationError, match="exceed 32 bits"):
        prepare(problem, wei=np.full(problem.wei.dims, 64, np.int8))
    half = prepare(problem, wei=wei)
    src = np.full(problem.src.dims, 127, np.int8)
    np.testing.assert_allclose(half(src), 127.0 * 64 * (MANY // 2), rtol=2.0**-22)


def test_zero_points_of_weights_may_be_any() -> None:
    if not runtime.isa().has_vnni():
        pytest.skip("without VNNI, pairs of such products exceed 16 bits")
    problem = MatMulProblem.of((1, MANY), (MANY, 2))
    attr = Attr(wei_zero_point=ZeroPoint())
    wei = np.ones(problem.wei.dims, np.int8)
    with pytest.raises(pq.errors.UnsupportedError):  # or no kernel takes it
        prepare(problem, attr, wei=wei, values={"wei_zero_point": np.int32(-127)})
    with pytest.raises(pq.errors.UnsupportedError):
        prepare(problem, attr, wei=wei, later=["wei_zero_point"])
    codes = np.full((MANY, 1), 121, np.uint8)
    codes[:2, 0] = 255, 0  # differences to 120 that are no s8 codes
    wei_q = pq.QParams(1.0, 120, "u8")
    operator = pq.MatMul(codes, src_q=pq.QParams(1.0, 0, "u8"), wei_q=wei_q)
    exact = 255.0 * (MANY - 2 + 135 - 120)
    np.testing.assert_allclose(operator(np.full((1, MANY), 255, np.uint8)), exact, rtol=2.0**-22)


@pytest.mark.parametrize("dst_dtype", ["f32", "s32"])
def test_weights_of_each_call_are_looked_at(dst_dtype: str) -> None:
    multiply = prepare(MatMulProblem.of((1, MANY), (MANY, 1), dst=dst_dtype))
    src = np.full((1, MANY), 255, np.uint8)
    with pytest.raises(SaturationError, match="exceed 32 bits"):
        multiply(src, np.full((MANY, 1), 64, np.int8))
    dst = multiply(src, np.full((MANY, 1), 32, np.int8))
    np.testing.assert_allclose(dst, 255.0 * 32 * MANY, rtol=2.0**-22)
