"""Sums that must stay integers: when, in which parts, and what a caller is told otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyonednn_q as pq
from pyonednn_q.acc.split import (
    STORES_SUMS,
    beyond_32_bits,
    parts,
    stores_sums,
)
from pyonednn_q.compose.composer import added_to_sums, compose
from pyonednn_q.expr.vec import Vec

Array = np.ndarray[Any, Any]
NOTHING = pq.Chain()
PROBLEMS: dict[str, Any] = {
    "matmul": pq.primitive.MatMulProblem.of((3, 300), (300, 5), dst="s32"),
    "matmul of batches": pq.primitive.MatMulProblem.of((2, 3, 300), (2, 300, 5), dst="s32"),
    "inner product": pq.primitive.InnerProductProblem.of((3, 300), 5, dst="s32"),
    "inner product of images": pq.primitive.InnerProductProblem.of((3, 40, 3, 2), 5, dst="s32"),
    "convolution": pq.primitive.ConvProblem.of((1, 40, 6, 6), (5, 40, 3, 3), dst="s32", padding=1),
    "convolution of groups": pq.primitive.ConvProblem.of(
        (1, 40, 6, 6), (2, 4, 20, 3, 3), dst="s32"
    ),
    "deconvolution": pq.primitive.DeconvProblem.of(
        (1, 40, 6, 6), (5, 40, 3, 3), dst="s32", padding=1
    ),
    "one channel": pq.primitive.ConvProblem.of((1, 1, 20, 20), (5, 1, 17, 17), dst="s32"),
}


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("name", PROBLEMS)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), most=st.integers(255 * 128 + 1, 2**23))
def test_parts_add_up_and_stay_below(name: str, narrow: bool, seed: int, most: int) -> None:
    problem = PROBLEMS[name]
    wei = np.random.default_rng(seed).integers(-128, 128, problem.wei.dims).astype(np.int8)
    src = np.random.default_rng(seed).integers(0, 256, problem.src.dims).astype(np.uint8)
    found = parts(problem, wei, most, narrow=narrow)
    axis = problem.wei.ndim - 2 if problem.kind == "matmul" else 1 + ("groups" in name)
    total = np.zeros(problem.wei.dims, np.int64)
    for part in found:
        taken = part.source(src)
        assert taken.shape == part.problem.src.dims
        assert part.wei.shape == part.problem.wei.dims
        assert part.problem.dst == problem.dst
        own = slice(part.start, part.stop)
        along = -1 if problem.kind == "matmul" else 1
        if part.wei.shape == wei.shape:
            total += part.wei
            assert taken is src
        else:
            np.moveaxis(total, axis, 0)[own] += np.moveaxis(part.wei, axis, 0)
            assert np.array_equal(taken, np.moveaxis(np.moveaxis(src, along, 0)[own], 0, along))
        sizes = np.abs(part.wei.astype(np.int64))
        if problem.kind == "matmul":
            largest = sizes.sum(axis=-2).max()
        else:
            largest = sizes.reshape(problem.dst.dims[1], -1).sum(axis=1).max()
        assert 255 * largest < most
    assert np.array_equal(total, wei)


def test_a_part_takes_as_many_channels_as_stay_below() -> None:
    """255 · 128 · 2 is less than the most by one, or is the most."""
    wei = np.full((4, 1), -128, np.int8)
    problem = pq.primitive.MatMulProblem.of((1, 4), wei.shape, dst="s32")
    for most, ends in ((255 * 256 + 1, [0, 2, 4]), (255 * 256, [0, 1, 2, 3, 4])):
        found = parts(problem, wei, most)
        assert [part.start for part in found] + [found[-1].stop] == ends


def facts(**given: Any) -> pq.primitive.PrimitiveFacts:
    """Sums of up to 255 · 64 · 1000 = 16 320 000, just below 2^24, unless the weights differ."""
    size = given.pop("size", 64)
    wei = np.full((1000, 2), size, np.int8)
    problem = pq.primitive.MatMulProblem.of(
        (1, 1000), wei.shape, src=given.pop("src", "u8"), dst="s32"
    )
    return pq.primitive.PrimitiveFacts.of(problem, wei=wei, **given)


def test_one_primitive_does_where_float32_holds_all_that_can_come() -> None:
    fits = [
        facts(),
        facts(bias=Vec([457_216.0, 0.0]), bias_in_acc=True),  # 2^24 in the end
        facts(bias=Vec(400_000.0)),  # real, with scales of 1
        facts(dst_zero_point=1000),
        facts(src_zero_point=9),
        facts(src="s8", src_zero_point=-3),
    ]
    assert {added_to_sums(NOTHING, one) for one in fits} == {None}
    beyond = [
        facts(size=66),
        facts(bias=Vec([457_217.0, 0.0]), bias_in_acc=True),
        facts(dst_zero_point=457_217),
        facts(size=66, src_zero_point=128),  # the sums of codes, though not what is left of them
        facts(size=66, src="s8"),
        facts(src_scale=0.5, wei_scale=2.5, dst_scale=1.25),  # scales of 1 are none
        replace(facts(), bias_later=True, bias_in_acc=True),
        pq.primitive.PrimitiveFacts(
            "matmul", 2, dst="s32", ndims=2, wei_ndims=2
        ),  # of unknown weights
    ]
    assert None not in {added_to_sums(NOTHING, one) for one in beyond}


def test_what_is_no_integer_is_not_asked_for() -> None:
    others = [
        facts(size=127, bias=Vec([0.5, 1.0])),
        facts(size=127, src_scale=0.5),
        facts(size=127, wei_scale=[1.0, 2.0]),
        replace(facts(size=127), dst="f32"),
        replace(facts(size=127), acc_map=True),
        replace(facts(), bias_later=True),
    ]
    assert {added_to_sums(NOTHING, one) for one in others} == {None}
    assert None is added_to_sums(pq.Chain(pq.Eltwise("relu")), facts(size=127))


def test_a_plan_of_sums_is_a_value_that_says_what_is_added() -> None:
    plan = compose(NOTHING, facts(size=127, src_zero_point=3, bias=Vec([5.0, -5.0])), "bitwise")
    assert plan.sums
    assert not plan.attr.text()
    assert not plan.has_bias
    assert type(plan).from_json(plan.to_json()) == plan
    assert "added               in s32: -3 · Σ wei + bias" in str(plan)
    assert "in s32: -3 · Σ wei + bias" in plan._repr_html_()
    assert plan.bias_values().tolist() == [5, -5]  # type: ignore[union-attr]


def test_sums_to_which_nothing_is_added_have_no_bias() -> None:
    assert compose(NOTHING, facts(size=127), "bitwise").bias is None
    cancelled = facts(size=127, dst_zero_point=3, bias=Vec(-3.0))
    assert compose(NOTHING, cancelled, "bitwise").bias is None


@pytest.mark.parametrize("exact_rounding", [False, True])
def test_exact_rounding_has_nothing_to_round(exact_rounding: bool) -> None:
    one = facts(size=127, bias=Vec(3.0), bias_in_acc=True)
    assert compose(NOTHING, one, exact_rounding=exact_rounding).sums


@pytest.mark.parametrize(
    ("bias", "channels"),
    [
        (0, ()),
        (2**31 - 1 - 255 * 127_000, ()),
        (2**31 - 255 * 127_000, (0,)),
        (255 * 128_000 - 2**31, ()),
        (255 * 128_000 - 2**31 - 1, (1,)),
    ],
)
def test_a_sum_and_its_bias_have_32_bits_or_not(bias: int, channels: tuple[int, ...]) -> None:
    """Weights of 127 in one column and of -128 in the other, under sources up to 255."""
    wei = np.repeat(np.array([[127, -128]], np.int8), 1000, axis=0)
    problem = pq.primitive.MatMulProblem.of((1, 1000), wei.shape, dst="s32")
    added = np.array([bias, bias], np.int64)
    assert beyond_32_bits(problem, wei, added) == channels


def test_a_zero_point_takes_its_share_of_32_bits() -> None:
    """Sums from 0 to 2^31 - 2 for codes up to 255, and to 2^31 if codes start at -2."""
    wei, bias = np.array([[1]], np.int8), np.array([2**31 - 256])
    problem = pq.primitive.MatMulProblem.of((1, 1), wei.shape, dst="s32")
    for zero_point, leaves in ((0, False), (1, False), (-1, True)):
        assert beyond_32_bits(problem, wei, bias, zero_point) == ((0,) if leaves else ())


def test_integers_through_float32_say_how_inexact() -> None:
    relu = pq.Chain(pq.Eltwise("relu"))
    (note,) = compose(relu, facts(size=127)).notes  # up to 32 385 000, below 2^25
    assert "up to 3.24e+07 are multiples of 2:" in note
    assert not compose(relu, facts()).notes
    (note,) = compose(relu, pq.primitive.PrimitiveFacts("convolution", 2, dst="s32")).notes
    assert "which has 24 bits" in note
    clipped = pq.Chain(pq.Clip(0, 1000.0))
    assert not compose(clipped, pq.primitive.PrimitiveFacts("convolution", 2, dst="s32")).notes


@pytest.mark.parametrize("dst", ["u8", "s8"])
def test_a_fake_quantize_in_reals_uses_few_codes(dst: str) -> None:
    """As a model gives it: values from 0 to 8, of which 9 are whole."""
    chain = pq.FakeQuantize(0.0, 8.0, 0.0, 8.0).chain()
    plan = compose(chain, pq.primitive.PrimitiveFacts("convolution", 2, dst=dst))
    (note,) = plan.notes
    assert note.startswith(f"results take at most 9 of the 256 codes of {dst} (0 to 8): dst_fq,")
    assert note in str(plan)
    assert note in plan._repr_html_()
    scaled = compose(
        chain, pq.primitive.PrimitiveFacts("convolution", 2, dst=dst, dst_scale=8 / 127)
    )
    assert not scaled.notes  # 128 codes: half of them


def test_few_codes_by_weights_alone() -> None:
    wei = np.array([[1], [-2]], np.int8)
    problem = pq.primitive.MatMulProblem.of((1, 2), wei.shape, dst="s8")
    known = pq.primitive.PrimitiveFacts.of(problem, wei=wei, dst_scale=100.0)
    (note,) = compose(NOTHING, known).notes  # -510 to 255 by 100: -5 to 3
    assert "at most 9 of the 256 codes of s8 (-5 to 3)" in note
    assert not compose(NOTHING, replace(known, dst_scale=4.0)).notes


def test_implementations_that_store_sums_are_known_by_name_source_and_version() -> None:
    conv, product = PROBLEMS["convolution"], PROBLEMS["matmul"]
    for name, impl, since in (
        ("convolution", "brg_conv_fwd:avx512_core_vnni", (3, 13, 0)),
        ("convolution", "brgconv_1x1:avx512_core", (3, 7, 0)),
        ("deconvolution", "brg_deconv:avx512_core", (3, 13, 0)),
        ("matmul", "brg_matmul:avx2_vnni", (3, 7, 0)),
        ("inner product", "brg_matmul:avx2_vnni", (3, 7, 0)),
        ("inner product", "brgemm:avx2_vnni", (3, 7, 0)),
        ("inner product", "x64:gemm_s8u8s32:jit", (3, 7, 0)),
    ):
        assert stores_sums(PROBLEMS[name], impl, since)
        assert not stores_sums(PROBLEMS[name], impl, (3, since[1] - 1, 99))
    assert not stores_sums(conv, "jit_uni_int8:avx2", (3, 13, 2))
    assert not stores_sums(product, "gemm:jit", (3, 13, 2))
    signed = pq.primitive.MatMulProblem.of((3, 300), (300, 5), src="s8", dst="s32")
    assert not stores_sums(signed, "brg_matmul:avx2_vnni", (3, 13, 2))
    assert not stores_sums(product, "brg_matmul:avx10_1_512_amx", (3, 13, 2))
    assert all(since >= (3, 7, 0) for _, _, since in STORES_SUMS)
