"""PrimitiveFacts: each argument's borders, what is refused by name, and the accumulator's bound."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.interval import ANYTHING, Interval
from pyonednn_q.expr.steps import Leaf
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import PrimitiveFacts, acc_interval
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)

CONV = PrimitiveFacts("convolution", 3)
MATMUL = PrimitiveFacts("matmul", 3, ndims=2, wei_ndims=2)
FLOATS = PrimitiveFacts("convolution", 3, src="f32", wei="f32", dst="f32")
INF = float("inf")


@pytest.mark.parametrize(
    ("facts", "changes", "argument"),
    [
        (CONV, {"kind": "pooling"}, "kind"),
        (CONV, {"channels": 0}, "channels"),
        (CONV, {"ndims": 1}, "ndims"),
        (CONV, {"ndims": 13}, "ndims"),
        (CONV, {"src": "f64"}, "src"),
        (CONV, {"dst": "u16"}, "dst"),
        (CONV, {"wei": "f64"}, "wei"),
        (CONV, {"src": "f32"}, "src"),
        (CONV, {"wei": "f32"}, "src"),
        (CONV, {"src": "s32"}, "src"),
        (CONV, {"src": "s4"}, "src"),
        (CONV, {"src_scale": 0.0}, "src_scale"),
        (CONV, {"src_scale": -1.0}, "src_scale"),
        (CONV, {"src_scale": INF}, "src_scale"),
        (CONV, {"dst_scale": 0.0}, "dst_scale"),
        (CONV, {"wei_scale": 0.0}, "wei_scale"),
        (CONV, {"wei_scale": [1.0, 2.0, -1.0]}, "wei_scale"),
        (CONV, {"wei_scale": [1.0, 2.0, INF]}, "wei_scale"),
        (CONV, {"wei_scale": [1.0, 2.0]}, "wei_scale"),
        (CONV, {"src_scale": 1e-200, "wei_scale": 1e-200}, "src_scale"),
        (CONV, {"bias": [1.0, 2.0]}, "bias"),
        (CONV, {"bias": INF}, "bias"),
        (CONV, {"bias": [1.0, 2.0, 3.0], "bias_later": True}, "bias_later"),
        (CONV, {"dst_zero_point": -1}, "dst_zero_point"),
        (CONV, {"dst_zero_point": 256}, "dst_zero_point"),
        (CONV, {"dst": "s8", "dst_zero_point": -129}, "dst_zero_point"),
        (CONV, {"dst": "s32", "dst_zero_point": -(2**31) - 1}, "dst_zero_point"),
        (CONV, {"dst": "s32", "dst_zero_point": 2**31}, "dst_zero_point"),
        (CONV, {"dst": "f32", "dst_zero_point": 1}, "dst_zero_point"),
        (CONV, {"acc": 3}, "acc"),
        (CONV, {"dst_dims": (1, 3, 4)}, "dst_dims"),
        (CONV, {"dst_dims": (3, 1, 4, 4)}, "dst_dims"),
        (MATMUL, {"dst_dims": (3, 4)}, "dst_dims"),
        (CONV, {"src_later": "per_channel"}, "src_later"),
        (CONV, {"src_later": "per_tensor", "src_scale": 2.0}, "src_later"),
        (CONV, {"src_later": "per_tensor", "acc": Interval(integer=True)}, "src_later"),
        (CONV, {"src_later": "per_tensor", "bias": 1.0, "bias_in_acc": True}, "src_later"),
        (FLOATS, {"src_later": "per_tensor"}, "src_later"),
        (CONV, {"src_later": "per_row"}, "src_later"),
        (CONV, {"src_later": "per_row_of_batch"}, "src_later"),
        (MATMUL, {"src_later": "per_row", "bias_later": True}, "src_later"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    facts: PrimitiveFacts, changes: dict[str, Any], argument: str
) -> None:
    with pytest.raises((ArgumentError, DTypeError, ShapeError)) as caught:
        replace(facts, **changes)
    assert caught.value.argument == argument


@pytest.mark.parametrize(("value", "shown"), [(INF, "inf"), (-1.0, "-1"), (0.0, "0")])
def test_the_scale_that_does_not_fit_is_shown(value: float, shown: str) -> None:
    with pytest.raises(ArgumentError, match=rf"^wei_scale: got {shown} in channel 1; "):
        replace(CONV, wei_scale=Vec([1.0, value, 2.0]))


@pytest.mark.parametrize(
    ("facts", "changes"),
    [
        (CONV, {"channels": 1}),
        (CONV, {"ndims": 12}),
        (MATMUL, {"ndims": 2}),
        (CONV, {"src": "s8", "wei": "u8"}),
        (CONV, {"wei": "s4"}),
        (FLOATS, {"src": "bf16", "wei": "f32", "dst": "u8"}),
        (CONV, {"src_scale": 5e-324}),
        (CONV, {"wei_scale": [5e-324, 1.0, 1e308]}),
        (CONV, {"bias": [1.0, 2.0, -3.0], "bias_in_acc": True}),
        (CONV, {"dst_zero_point": 255}),
        (CONV, {"dst": "s8", "dst_zero_point": -128}),
        (CONV, {"dst": "s32", "dst_zero_point": -(2**31)}),
        (CONV, {"dst": "s32", "dst_zero_point": 2**31 - 1}),
        (CONV, {"dst_dims": (9, 3, 1, 2)}),
        (MATMUL, {"dst_dims": (4, 3)}),
        (CONV, {"src_later": "per_tensor", "bias_later": True}),
        (MATMUL, {"src_later": "per_row", "bias": 1.0}),
        (MATMUL, {"src_later": "per_row_of_batch"}),
    ],
)
def test_the_last_that_fits_is_taken(facts: PrimitiveFacts, changes: dict[str, Any]) -> None:
    made = replace(facts, **changes)
    for name, value in changes.items():
        assert getattr(made, name) == (Vec(value) if name in {"wei_scale", "bias"} else value)


def test_a_scale_of_rows_is_an_operand() -> None:
    assert CONV.row_scale is None
    assert replace(CONV, src_later="per_tensor").row_scale is None
    assert replace(MATMUL, src_later="per_row").row_scale == Leaf("src_scale", "f32", "per_row")
    of_batch = replace(MATMUL, src_later="per_row_of_batch").row_scale
    assert of_batch == Leaf("src_scale", "f32", "full")


def test_facts_of_a_problem() -> None:
    problem = ConvProblem.of((1, 4, 5, 5), (2, 3, 2, 3, 3), src="s8", dst="f32", bias="f32")
    facts = PrimitiveFacts.of(problem)
    assert (facts.kind, facts.channels, facts.axis) == ("convolution", 6, 1)
    assert (facts.src, facts.wei, facts.dst) == ("s8", "s8", "f32")
    assert (facts.ndims, facts.wei_ndims, facts.dst_dims) == (4, 5, (1, 6, 3, 3))
    assert (facts.bias_later, facts.has_bias) == (True, True)
    assert facts.acc == Interval(integer=True)
    assert facts.wei_has_min
    assert PrimitiveFacts.of(problem, bias=2.0).bias_later is False
    assert PrimitiveFacts.of(problem, src_later="per_tensor").acc == ANYTHING
    product = PrimitiveFacts.of(MatMulProblem.of((2, 4, 5), (2, 5, 7), bias=None))
    assert (product.channels, product.axis, product.has_bias) == (7, 2, False)
    floats = PrimitiveFacts.of(MatMulProblem.of((4, 5), (5, 7), src="f32", wei="f32", dst="f32"))
    assert (floats.acc, floats.wei_has_min, floats.is_int8) == (ANYTHING, False, False)


def test_known_weights_tell_whether_the_lowest_is_among_them() -> None:
    problem = MatMulProblem.of((4, 2), (2, 2))
    for lowest, has in ((-128, True), (-127, False)):
        wei = np.array([[1, 2], [lowest, 0]], np.int8)
        assert PrimitiveFacts.of(problem, wei=wei).wei_has_min is has


@pytest.mark.parametrize(
    ("facts", "mask"),
    [
        (CONV, 1),
        (replace(CONV, wei_ndims=5), 3),
        (replace(CONV, kind="inner_product", ndims=2, wei_ndims=4), 1),
        (MATMUL, 2),
        (replace(MATMUL, ndims=3, wei_ndims=3), 4),
    ],
)
def test_masks_of_weight_scales(facts: PrimitiveFacts, mask: int) -> None:
    assert facts.wei_mask(Vec([1.0, 2.0, 3.0])) == mask
    assert facts.wei_mask(Vec(2.0)) == 0


def test_text_names_what_matters() -> None:
    assert CONV.text() == "convolution u8 · s8 -> u8, 3 channels"
    process = Facts((3, 13, 2), InstructionSet("AVX2"), "OMP")
    assert replace(MATMUL, bias_later=True, process=process).text() == (
        "matmul u8 · s8 -> u8, 3 channels with bias, oneDNN 3.13.2 on AVX2"
    )


# --- the accumulator ------------------------------------------------------------------------------

SOURCES: tuple[tuple[str, int, tuple[int, int] | None], ...] = (
    ("u8", 0, None),
    ("u8", 3, None),
    ("s8", -5, None),
    ("u8", 0, (10, 20)),
    ("s8", 2, (-3, 7)),
)
PROBLEMS: tuple[tuple[Any, int], ...] = (
    (ConvProblem.of((1, 3, 1), (2, 3, 1)), 2),
    (ConvProblem.of((1, 4, 1), (2, 3, 2, 1)), 6),
    (DeconvProblem.of((1, 4, 1), (2, 3, 2, 1)), 6),
    (InnerProductProblem.of((1, 3, 1), 2), 2),
    (MatMulProblem.of((1, 3), (3, 2)), 2),
    (MatMulProblem.of((2, 1, 3), (2, 3, 2)), 2),
)


@pytest.mark.parametrize(("src", "zero_point", "known"), SOURCES)
@pytest.mark.parametrize(("problem", "channels"), PROBLEMS, ids=str)
def test_the_accumulator_reaches_its_ends_and_no_further(
    problem: Any, channels: int, src: str, zero_point: int, known: tuple[int, int] | None
) -> None:
    """Against the ends of every term: each code is at an end of its range, or is padding."""
    problem = replace(problem, src=replace(problem.src, dtype=src))
    wei = np.random.default_rng(1).integers(-9, 10, problem.wei.dims).astype(np.int8)
    found = acc_interval(problem, wei, zero_point, 2, known)
    ends = known or {"u8": (0, 255), "s8": (-128, 127)}[src]
    if problem.kind == "matmul":
        groups = [list(wei[..., column].reshape(-1, problem.k)) for column in range(channels)]
    else:
        groups = [[row] for row in wei.reshape(channels, -1)]
    for channel, rows in enumerate(groups):
        sums = [
            sum(max(sign * (end - zero_point) * (int(w) - 2) for end in ends) if met else 0
                for w, met in zip(row, some, strict=True)) * sign
            for row in rows
            for sign in (-1, 1)
            for some in itertools.product((False, True), repeat=len(row))
        ]  # fmt: skip
        assert found.lo.spread(channels)[channel] == min(sums)
        assert found.hi.spread(channels)[channel] == max(sums)
    assert found.integer


def test_fractional_points_make_no_whole_numbers() -> None:
    problem, wei = MatMulProblem.of((1, 2), (2, 2)), np.ones((2, 2), np.int8)
    assert not acc_interval(problem, wei, 0.5).integer
    assert not acc_interval(problem, wei, 0, 0.5).integer
    with pytest.raises(ShapeError, match="wei"):
        acc_interval(problem, wei[:1])
