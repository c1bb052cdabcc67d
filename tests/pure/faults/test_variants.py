"""Nearest variants: which changes are tried, in which order, and what each makes of a problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.faults import variants
from pyonednn_q.faults.variants import MOST_FOUND, MOST_PROBES, MOST_SECONDS, nearest
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import EltwisePostOp, SumPostOp
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    EltwiseProblem,
    InnerProductProblem,
    MatMulProblem,
    Problem,
)
from pyonednn_q.primitive.tensor import TensorSpec

Asked = tuple[Any, Attr]
CONV = ConvProblem.of((1, 8, 9, 9), (16, 8, 3, 3))
GROUPED = ConvProblem.of((1, 8, 9, 9), (2, 8, 4, 3, 3))
DECONV = DeconvProblem.of((1, 8, 9, 9), (2, 8, 4, 3, 3))
PRODUCT = MatMulProblem.of((4, 16), (16, 8))
INNER = InnerProductProblem.of((4, 3, 5), 8, bias="f32")
RELU, TANH = EltwisePostOp("relu"), EltwisePostOp("tanh")


def asked(problem: Problem, attr: Attr = Attr()) -> list[Asked]:  # noqa: B008 - a value
    """Return what is asked of the library, in order, where nothing runs."""
    probes: list[Asked] = []

    def nothing(changed: Any, attributes: Attr) -> None:
        probes.append((changed, attributes))

    assert nearest(problem, attr, nothing) == ()
    return probes


def first(problem: Problem, attr: Attr, wanted: Asked) -> tuple[str, ...]:
    """Return the changes that make the wanted one, the first and only one that runs."""
    found = nearest(problem, attr, lambda *made: "it" if made == wanted else None)
    assert [(near.problem, near.attributes, near.implementation) for near in found] == [
        (wanted[0].text(), wanted[1].text(), "it")
    ]
    return found[0].changes


def stored(problem: Any, dtype: str) -> Any:
    return replace(problem, dst=replace(problem.dst, dtype=dtype))


def of_floats(dtype: str) -> Any:
    return MatMulProblem.of((4, 16), (16, 8), src=dtype, wei=dtype, dst="f32")


HALF = of_floats("f16")
MIXED = MatMulProblem.of((4, 16), (16, 8), src="f16", wei="bf16", dst="f32")
ANY_PRODUCT = replace(PRODUCT, wei=TensorSpec.dense((16, 8), "s8"))
ROWS = replace(PRODUCT, src=TensorSpec((4, 16), "u8", (20, 1)), dst=TensorSpec((4, 8), "u8"))
PLAIN = ConvProblem.of((1, 8, 9, 9), (16, 8, 3, 3), layout="dense")
BIASED = ConvProblem.of((1, 8, 9, 9), (16, 8, 3, 3), bias="s32")
FLAT = InnerProductProblem.of((4, 6), 8, layout="dense")
POINT, ONE = ZeroPoint(), Scale()
AS_MATMUL = MatMulProblem.of((4, 15), (15, 8), bias="f32")

ALONE: list[tuple[str, Any, Attr, Asked]] = [
    ("packed weights", ANY_PRODUCT, Attr(), (PRODUCT, Attr())),
    ("channels-last src and dst", PLAIN, Attr(), (CONV, Attr())),
    ("row-major src and dst", ROWS, Attr(), (PRODUCT, Attr())),
    ("a matmul of the same numbers, weights transposed", INNER, Attr(), (AS_MATMUL, Attr())),
    (
        "a matmul of the same numbers, weights transposed",
        INNER,
        Attr(wei_scale=Scale(1, "bf16")),
        (AS_MATMUL, Attr(wei_scale=Scale(2, "bf16"))),
    ),
    (
        "a matmul of the same numbers, weights transposed",
        INNER,
        Attr(wei_scale=Scale()),
        (AS_MATMUL, Attr(wei_scale=Scale())),
    ),
    ("source and weights cast to f32", HALF, Attr(), (of_floats("f32"), Attr())),
    ("source and weights cast to bf16", HALF, Attr(), (of_floats("bf16"), Attr())),
    ("source and weights cast to f32", of_floats("bf16"), Attr(), (of_floats("f32"), Attr())),
    ("source and weights cast to bf16", MIXED, Attr(), (of_floats("bf16"), Attr())),
    (
        "s8 source with a zero point 128 lower",
        CONV,
        Attr(),
        (replace(CONV, src=replace(CONV.src, dtype="s8")), Attr(src_zero_point=POINT)),
    ),
    (
        "u8 source with a zero point 128 higher",
        ConvProblem.of((1, 8, 9, 9), (16, 8, 3, 3), src="s8"),
        Attr(src_zero_point=ZeroPoint(2)),
        (CONV, Attr(src_zero_point=ZeroPoint(2))),
    ),
    (
        "the last 1 post-op(s) after it, dst f32",
        CONV,
        Attr(dst_scale=ONE, dst_zero_point=POINT, post_ops=(RELU, TANH)),
        (stored(CONV, "f32"), Attr(post_ops=(RELU,))),
    ),
    (
        "the last 2 post-op(s) after it, dst f32",
        CONV,
        Attr(post_ops=(RELU, TANH)),
        (stored(CONV, "f32"), Attr()),
    ),
    (
        "the last 1 post-op(s) after it, dst f32",
        CONV,
        Attr(post_ops=(SumPostOp(0.5, 3, "s8"), TANH)),
        (stored(CONV, "f32"), Attr(post_ops=(SumPostOp(0.5, 3),))),
    ),
    ("an f32 bias", BIASED, Attr(), (replace(BIASED, bias=TensorSpec.dense((16,), "f32")), Attr())),
    (
        "one src zero point in s32",
        CONV,
        Attr(src_zero_point=ZeroPoint(2)),
        (CONV, Attr(src_zero_point=POINT)),
    ),
    ("no src zero point", CONV, Attr(src_zero_point=POINT), (CONV, Attr())),
    ("no dst zero point", CONV, Attr(dst_zero_point=POINT), (CONV, Attr())),
    (
        "one wei scale per output channel",
        PRODUCT,
        Attr(wei_scale=Scale(1)),
        (PRODUCT, Attr(wei_scale=Scale(2))),
    ),
    (
        "one wei scale per output channel",
        CONV,
        Attr(wei_scale=Scale(2)),
        (CONV, Attr(wei_scale=Scale(1))),
    ),
    (
        "one wei scale per output channel",
        GROUPED,
        Attr(wei_scale=Scale(1)),
        (GROUPED, Attr(wei_scale=Scale(3))),
    ),
    (
        "one wei scale per output channel",
        DECONV,
        Attr(wei_scale=Scale(1)),
        (DECONV, Attr(wei_scale=Scale(3))),
    ),
    ("one wei scale in f32", CONV, Attr(wei_scale=Scale(1)), (CONV, Attr(wei_scale=ONE))),
    ("one src scale in f32", CONV, Attr(src_scale=Scale(2)), (CONV, Attr(src_scale=ONE))),
    ("dst s32", CONV, Attr(dst_scale=ONE), (stored(CONV, "s32"), Attr(dst_scale=ONE))),
    ("dst bf16", CONV, Attr(dst_zero_point=POINT), (stored(CONV, "bf16"), Attr())),
]  # fmt: skip


@pytest.mark.parametrize(("change", "problem", "attr", "wanted"), ALONE)
def test_one_change_makes_one_thing_of_a_problem(
    change: str, problem: Any, attr: Attr, wanted: Asked
) -> None:
    assert first(problem, attr, wanted) == (change,)


def test_matmul_and_inner_product_need_no_channels_last() -> None:
    images = MatMulProblem.of((3, 4, 16), (3, 16, 8))
    for problem in (images, FLAT, CONV):
        layouts = {made[0].src.strides for made in asked(problem)}
        assert layouts == {problem.src.strides}


def test_channels_last_reaches_a_dst_of_channels_only_where_it_has_places() -> None:
    apart = TensorSpec((4, 8), "u8", (12, 1))
    rows = replace(INNER, src=TensorSpec.dense((4, 3, 5), "u8"), dst=apart)
    last = replace(rows, src=TensorSpec.channels_last((4, 3, 5), "u8"))
    assert first(rows, Attr(), (last, Attr())) == ("channels-last src and dst",)


@pytest.mark.parametrize(
    "problem",
    [
        MatMulProblem.of((4, 16), (16, 8), src="f32", wei="f32", dst="f32"),
        MatMulProblem.of((4, 16), (16, 8), src="u8", wei="f32", dst="f32"),
    ],
    ids=str,
)
def test_only_products_of_integers_change_the_sign_of_their_source(problem: Any) -> None:
    assert {made[0].src.dtype for made in asked(problem)} == {problem.src.dtype}


def test_what_is_absent_is_not_taken_away() -> None:
    """With neither bias, points, scales nor post-ops there are a sign and four types to change."""
    signed = replace(CONV.src, dtype="s8")
    singles = [(replace(CONV, src=signed), Attr(src_zero_point=POINT))]
    singles += [(stored(CONV, dtype), Attr()) for dtype in ("f32", "s32", "s8", "bf16")]
    assert asked(CONV)[: len(singles)] == singles
    names = [near.changes for near in nearest(BIASED, Attr(), lambda *_: "all")]
    assert ("an f32 bias",) in names
    floats = replace(BIASED, bias=TensorSpec.dense((16,), "f32"))
    assert all(made[0].bias == floats.bias for made in asked(floats))


def test_the_nearest_change_comes_first() -> None:
    """The order of the list at the head of the module."""
    problem = replace(INNER, src=TensorSpec.dense((4, 3, 5), "u8"), bias=TensorSpec((8,), "s32"))
    attr = Attr(
        src_zero_point=ZeroPoint(2), wei_scale=Scale(2), dst_zero_point=POINT, post_ops=(TANH,)
    )
    order = [
        "channels-last src and dst",
        "a matmul of the same numbers, weights transposed",
        "s8 source with a zero point 128 lower",
        "the last 1 post-op(s) after it, dst f32",
        "an f32 bias",
        "one src zero point in s32",
        "no src zero point",
        "no dst zero point",
        "one wei scale per output channel",
        "one wei scale in f32",
        "dst f32",
    ]
    seen: list[str] = []
    for made in asked(problem, attr):
        found = nearest(problem, attr, lambda *now, made=made: "it" if now == made else None)
        seen += [near.changes[0] for near in found if len(near.changes) == 1]
    assert list(dict.fromkeys(seen))[: len(order)] == order


def test_pairs_of_changes_are_tried_where_one_is_not_enough() -> None:
    attr = Attr(src_zero_point=ZeroPoint(2), wei_scale=Scale(1))
    wanted = (stored(CONV, "f32"), replace(attr, src_zero_point=None))
    assert first(CONV, attr, wanted) == ("no src zero point", "dst f32")


def test_nothing_that_holds_what_runs_already_follows() -> None:
    attr = Attr(post_ops=(RELU, TANH))

    def runs(problem: Any, attributes: Attr) -> str | None:
        return "fewer" if len(attributes.post_ops) < 2 or problem.dst.dtype == "s32" else None

    assert [near.changes for near in nearest(CONV, attr, runs)] == [
        ("the last 1 post-op(s) after it, dst f32",),
        ("the last 2 post-op(s) after it, dst f32",),
        ("dst s32",),
    ]


def test_changes_that_do_not_go_together_are_passed_over() -> None:
    def refuses(problem: Any, _: Attr) -> str:
        if problem.dst.dtype == "f32":
            raise ArgumentError("dst", "f32", "anything else")
        return "runs"

    assert ("dst f32",) not in [near.changes for near in nearest(CONV, Attr(), refuses)]


def test_no_more_than_a_few_are_offered() -> None:
    assert len(nearest(CONV, Attr(), lambda *_: "all")) == MOST_FOUND == 4


MANY = Attr(src_zero_point=ZeroPoint(2), wei_scale=Scale(2), post_ops=(RELU,) * 32)


def test_no_more_than_sixty_are_tried() -> None:
    assert len(asked(PLAIN, MANY)) == MOST_PROBES == 60


@pytest.mark.parametrize(("late", "probes"), [(0.0, 2), (1e-9, 1)])
def test_nothing_is_tried_after_a_second(
    monkeypatch: pytest.MonkeyPatch, late: float, probes: int
) -> None:
    """The clock is read before each probe; one that is due at the last moment is made still."""
    readings = iter([5.0, 5.0, 5.0 + MOST_SECONDS + late, *np.full(9, 7.0)])
    monkeypatch.setattr(f"{variants.__name__}.time.monotonic", lambda: next(readings))
    assert len(asked(PLAIN, MANY)) == probes
    assert MOST_SECONDS == 1.0


def test_other_kinds_have_none() -> None:
    spec = TensorSpec.dense((4, 8), "f32")
    assert nearest(EltwiseProblem(spec, spec, "relu"), Attr(), lambda *_: "any") == ()
