"""Codes never run in the library's slow loops where generated code takes the same numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.dtypes import has_bf16
from pyonednn_q.faults import guards
from pyonednn_q.native import prepare, runtime
from pyonednn_q.native.selection import implementations, slow_loop
from pyonednn_q.ops.source import SLOW
from pyonednn_q.primitive.attr import Attr, ZeroPoint
from pyonednn_q.primitive.problem import DeconvProblem
from support.calls.call import Call, Layer, odd_call

RNG = np.random.default_rng(29)
WEI_Q = pq.QParams(0.25, 0, "s8")
LAYERS: dict[str, Layer] = {
    "matmul": ("matmul", (48, 64), (5, 48), {}),
    "batches of one matrix": ("matmul", (48, 64), (3, 5, 48), {}),
    "inner product": ("inner_product", (64, 48), (5, 48), {}),
    "depthwise in steps": (
        *("deconv", (32, 1, 4, 4), (1, 32, 7, 6)),
        {"padding": 1, "stride": 2, "groups": 32},
    ),
    "depthwise": ("deconv", (32, 1, 3, 3), (2, 32, 7, 6), {"padding": 1, "groups": 32}),
    "in one dimension": ("deconv", (16, 1, 3), (1, 16, 9), {"stride": 3, "groups": 16}),
    "deconvolution": ("deconv", (16, 16, 4, 4), (1, 16, 7, 6), {"padding": 1, "stride": 2}),
}


def call_of(layer: str, src_dtype: str, point: int, **options: Any) -> Call:
    return odd_call(LAYERS[layer], RNG, src_dtype, point, **options)


def stays(planned: Any, src_dtype: str) -> bool:
    """Tell whether codes of s8 stay in a slow loop, which is told of.

    So they do where the guard table has a zero point of u8 carried by a map, which rounds.
    """
    is_told = any(note == SLOW for note in planned.notes)
    problem = planned.primitive.problem
    rows = guards.matching(
        replace(problem, src=replace(problem.src, dtype="u8")),
        Attr(src_zero_point=ZeroPoint()),
        runtime.facts(),
        "",
    )
    return src_dtype == "s8" and is_told and bool(rows)


def test_the_strided_kernel_is_slow_for_single_channels() -> None:
    depthwise = DeconvProblem.of((1, 8, 5, 5), (8, 1, 3, 3), groups=8, stride=2)
    grouped = DeconvProblem.of((1, 8, 5, 5), (8, 2, 3, 3), groups=4, stride=2)
    strided = "brg_deconv:avx512_core_vnni+brgconv_strided:avx512_core_vnni"
    assert "many times slower" in slow_loop(depthwise, strided)
    assert not slow_loop(depthwise, "jit_deconvolution:avx512_core_vnni")
    assert not slow_loop(grouped, strided)


# -128 is that of TFLite behind a relu: as u8, there is none.
@pytest.mark.parametrize(
    ("src_dtype", "point"), [("u8", 0), ("u8", 7), ("s8", 0), ("s8", 7), ("s8", -128)]
)
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_are_exact_and_generated(layer: str, src_dtype: str, point: int) -> None:
    call = call_of(layer, src_dtype, point)
    operator = call.operator()
    call.meaning().check_equal(call.run(operator))
    planned = operator.prepare(call.src.shape)
    primitive = planned.primitive
    assert not slow_loop(primitive.problem, primitive.impl)
    if call.kind in {"matmul", "inner_product"} and runtime.isa().is_beyond_avx2():
        return  # the library's own products
    assert primitive.kind == "jit" or stays(planned, src_dtype)
    said = any("s8 source as u8" in note for note in planned.notes)
    assert said == (src_dtype == "s8" and primitive.problem.tensors["src"].dtype == "u8")


@pytest.mark.parametrize("extent", ["per_tensor", "per_row"])
def test_ranges_of_each_call_follow_where_that_is_as_exact(extent: Any) -> None:
    """Zero points of rows are a map, which rounds: s8 rows have none, stay, and are told of."""
    wei = (RNG.integers(-16, 16, (48, 64)) * 2 + 1).astype(np.int8)
    operator = pq.MatMul(wei, src_q=pq.Dynamic("s8", extent), wei_q=WEI_Q)
    src = RNG.integers(-127, 128, (5, 48)).astype(np.float32)
    src[:, 0] = 127  # so that codes are the numbers themselves
    expected = 0.25 * (src.astype(np.float64) @ wei.astype(np.float64))
    np.testing.assert_array_equal(operator(src), expected.astype(np.float32))
    planned = operator.prepare(src.shape)
    is_slow = any("s8 runs in loops over gemm" in note for note in planned.notes)
    dtype = planned.primitive.problem.tensors["src"].dtype
    if runtime.isa().is_beyond_avx2():
        assert (dtype, is_slow) == ("s8", False) or planned.primitive.kind == "gemm"
    else:
        assert (dtype, is_slow) == ("u8" if extent == "per_tensor" else "s8", True)


@pytest.mark.skipif(not has_bf16(), reason="ml_dtypes is not installed")
@pytest.mark.parametrize("point", [0, 7])
@pytest.mark.parametrize("src_dtype", ["u8", "s8"])
@pytest.mark.parametrize("layer", LAYERS)
def test_bf16_is_stored_by_generated_code_or_a_cast(layer: str, src_dtype: str, point: int) -> None:
    call = call_of(layer, src_dtype, point, dst="bf16")
    operator = call.operator()
    dst = call.run(operator)
    # Sums of these codes, times 2^-3, have less than 24 bits: f32 holds them, and rounds once.
    real = Call(call.kind, call.src, call.wei, None, call.src_q, WEI_Q, window=call.window).run()
    np.testing.assert_array_equal(dst, real.astype(dst.dtype))
    planned = operator.prepare(call.src.shape)
    is_product = call.kind in {"matmul", "inner_product"}
    assert planned.primitive.kind == "jit" or is_product or stays(planned, src_dtype)


def test_a_loop_is_taken_where_it_is_asked_for_or_all_there_is() -> None:
    problem = DeconvProblem.of((1, 16, 5, 5), (16, 1, 4, 4), groups=16, stride=2, padding=1)
    slow = [each.impl for each in implementations(problem) if slow_loop(problem, each.impl)]
    if not slow:
        pytest.skip("no AVX-512")
    wei = RNG.integers(-16, 16, problem.wei.dims).astype(np.int8)
    usual = prepare(problem, wei=wei)
    assert usual.impl not in slow
    assert f"passed over {slow[0]}: loops over channels here" in usual.notes[0]
    asked = prepare(problem, wei=wei, implementation=slow[0])
    src = RNG.integers(0, 100, problem.src.dims).astype(np.uint8)
    np.testing.assert_array_equal(usual(src), asked(src))


def test_who_allows_saturation_gets_exact_codes_of_u8_or_s8_as_it_is() -> None:
    """Depthwise sums are made in 32 bits, so that u8 is exact whatever the weights are."""
    kind, wei_dims, src_dims, window = LAYERS["depthwise"]
    wei = RNG.integers(-128, 128, wei_dims).astype(np.int8)
    src = RNG.integers(-128, 128, src_dims).astype(np.int8)
    src_q, options = pq.QParams(0.5, -3, "s8"), {"saturation": "allow"}
    call = Call(kind, src, wei, None, src_q, WEI_Q, window=window, options=options)
    operator = call.operator()
    call.meaning().check_equal(call.run(operator))
    assert operator.prepare(src_dims).primitive.kind == "jit"


@pytest.mark.skipif(not has_bf16(), reason="ml_dtypes is not installed")
def test_exact_loops_are_not_left_for_sums_that_saturate() -> None:
    if runtime.isa().is_beyond_avx2() and not runtime.isa().has_vnni():
        pytest.skip("the kernel that runs saturates itself, as it may")
    kind, wei_dims, src_dims, window = LAYERS["deconvolution"]
    wei = (RNG.integers(-63, 64, wei_dims) | 1).astype(np.int8)
    src = RNG.integers(-128, 128, src_dims).astype(np.int8)
    options: dict[str, Any] = {"dst": "bf16", "saturation": "allow"}
    call = Call(kind, src, wei, None, pq.QParams(0.5, 0, "s8"), WEI_Q, window=window)
    dst = call.but(options=options).run().astype(np.float64)
    wei_f32, src_f32 = (0.125 * wei).astype(np.float32), src.astype(np.float32)
    exact = pq.Deconv(wei_f32, **window)(src_f32)
    np.testing.assert_allclose(dst, exact, rtol=2.0**-8)


@pytest.mark.skipif(not has_bf16(), reason="ml_dtypes is not installed")
@pytest.mark.parametrize("kind", ["inner_product", "matmul"])
def test_who_allows_reference_loops_gets_none_where_others_are_had(kind: str) -> None:
    wei_dims = (64, 48) if kind == "inner_product" else (48, 64)
    wei = RNG.integers(-64, 65, wei_dims).astype(np.int8)
    src = RNG.integers(-128, 128, (5, 48)).astype(np.int8)
    options: dict[str, Any] = {"dst": "bf16", "allow_reference": True}
    call = Call(kind, src, wei, None, pq.QParams(0.5, 0, "s8"), WEI_Q, options=options)
    assert call.operator().prepare(src.shape).primitive.kind != "reference"


def test_a_loop_is_called_slow_only_where_u8_is_faster() -> None:
    wei = np.full((16, 16, 3, 3), 2, np.int8)
    window: dict[str, Any] = {"dilation": 2, "stride": 2}
    for dtype in ("s8", "u8"):
        operator = pq.Deconv(wei, src_q=pq.QParams(0.5, 7, dtype), wei_q=WEI_Q, **window)
        planned = operator.prepare((1, 16, 6, 6))
        if dtype == "s8":
            is_told = SLOW in planned.notes
        else:
            assert not (is_told and planned.primitive.kind == "gemm")


@pytest.mark.skipif(not has_bf16(), reason="ml_dtypes is not installed")
def test_gemm_is_not_preferred_to_a_slow_loop() -> None:
    wei = RNG.integers(-63, 64, (64, 1, 4, 4)).astype(np.int8)
    q: dict[str, Any] = {"src_q": pq.QParams(0.5, 0, "u8"), "wei_q": WEI_Q, "dst": "bf16"}
    window: dict[str, Any] = {"groups": 64, "stride": 2, "padding": 1}
    problem = DeconvProblem.of((1, 64, 7, 7), (64, 1, 4, 4), dst="bf16", **window)
    has_loop = any(slow_loop(problem, each.impl) for each in implementations(problem))
    strict = pq.Deconv(wei, strict=True, **q, **window).prepare((1, 64, 7, 7)).primitive
    assert bool(slow_loop(strict.problem, strict.impl)) == has_loop


def test_other_sizes_of_codes_that_run_as_u8_are_not_tried_as_s8() -> None:
    wei = (RNG.integers(-16, 16, (48, 64)) * 2 + 1).astype(np.int8)
    one = pq.MatMul(wei, src_q=pq.QParams(0.5, 5, "s8"), wei_q=WEI_Q)
    other = pq.MatMul(wei, src_q=pq.QParams(0.5, 133, "u8"), wei_q=WEI_Q)
    for rows in (1, 2, 5):
        src = RNG.integers(-128, 128, (rows, 48)).astype(np.int8)
        np.testing.assert_array_equal(one(src), other((src.astype(int) + 128).astype(np.uint8)))
        if one.prepare((rows, 48)).primitive.problem.tensors["src"].dtype == "u8":
            assert one.wei_bytes == other.wei_bytes
