"""Fills keep their promises: clean ones leave one answer, dirty ones sit on ties."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings

from pyonednn_q.primitive.attr import Attr, Scale
from pyonednn_q.primitive.post_ops import EltwisePostOp
from pyonednn_q.primitive.problem import MatMulProblem
from pyonednn_q.primitive.tensor import TensorSpec
from support import fills, parity, parity_plain, parity_post_ops, random_cases, strategies
from support.cases import Recipe, laid_out
from support.oracle_convolution import convolve

if TYPE_CHECKING:
    from support.cases import Case

f32 = np.float32


def check_clean(case: Case) -> None:
    """One answer, or a measured kernel error of the last step; weights safe on every ISA."""
    expected = case.expected()
    if not expected.is_exact:
        assert fills.ends_transcendental(case.problem, case.attr), case.text()
    assert expected.accepts(expected.dst).all()
    wei = case.arrays["wei"]
    assert not np.any(wei % 2)
    assert np.abs(wei.astype(int)).max() <= 64  # no pair can saturate without VNNI
    for name, values in case.arrays.items():
        if name.endswith("_scale"):
            assert (np.frexp(values.astype(np.float64))[0] == 0.5).all(), name
        if name.endswith("_zero_point"):
            assert not np.any(values % 2), name
            assert np.any(values != 0), name


@pytest.mark.parametrize("kind", parity.KINDS)
def test_every_parity_fill_is_clean(kind: str) -> None:
    for cell in parity.cells():
        if cell[0] == kind:
            for recipe in islice(parity.recipes(*cell), 0, None, 5):
                check_clean(recipe.build())


@pytest.mark.parametrize("kind", parity.KINDS)
def test_every_post_op_fill_is_clean_and_finishes_its_chain(kind: str) -> None:
    for recipe in parity_post_ops.all_recipes():
        if recipe.name.startswith(f"{kind}-"):
            check_clean(recipe.build())


def test_random_cases_are_clean() -> None:
    for case in random_cases.stream(7, 150):
        check_clean(case)


def test_random_case_is_rebuilt_from_its_name() -> None:
    first, again = (random_cases.random_case(np.random.default_rng(5)) for _ in range(2))
    assert first.text() == again.text()
    seed = int(first.name.partition("(")[2].partition(")")[0])
    rebuilt = random_cases.from_seed(seed)
    assert rebuilt.arrays.keys() == first.arrays.keys()
    for name, values in rebuilt.arrays.items():
        np.testing.assert_array_equal(values, first.arrays[name])


def test_random_cases_cover_the_space() -> None:
    cases = list(random_cases.stream(3, 400))
    assert {case.problem.kind for case in cases} == set(parity.KINDS)
    words = {op.boundary()[0] for case in cases for op in case.attr.post_ops}
    assert words == {"sum", "eltwise", "binary", "prelu"}
    for name in ("src_zero_point", "wei_zero_point", "dst_zero_point", "src_scale", "dst_scale"):
        assert sum(name in case.arrays for case in cases) > 10, name
    ranks = {len(c.problem.tensors["src"].dims) for c in cases if c.problem.kind == "convolution"}
    assert ranks == {3, 4, 5}
    grouped = [c for c in cases if len(c.problem.tensors["wei"].dims) > 5]
    assert grouped


def test_parity_results_are_not_all_the_same() -> None:
    # A test whose results are one constant compares nothing.
    dull = []
    for cell in islice(parity.cells(), 0, None, 7):
        for recipe in parity.recipes(*cell):
            dst = recipe.build().expected().dst
            if len(np.unique(dst)) < 3 and dst.size > 20:
                dull.append(recipe.name)
    assert len(dull) <= 3, dull


def test_eq_and_ne_see_both_outcomes() -> None:
    for kind in parity.KINDS:
        for recipe in parity_post_ops.binary_recipes(kind):
            if "binary_eq" in recipe.name or "binary_ne" in recipe.name:
                assert len(np.unique(recipe.build().expected().real)) == 2, recipe.name


def test_names_are_unique() -> None:
    names = [recipe.name for recipe in parity.all_recipes()]
    names += [recipe.name for recipe in parity_post_ops.all_recipes()]
    names += [recipe.name for recipe in parity_plain.all_recipes()]
    assert len(names) == len(set(names))
    assert len(names) > 4000


def test_matrix_covers_what_it_promises() -> None:
    recipes = list(parity_post_ops.all_recipes())
    algs = {
        (op.boundary()[0], getattr(op, "alg", ""))
        for recipe in recipes
        for op in recipe.attr.post_ops
    }
    assert {alg for word, alg in algs if word == "eltwise"} == set(parity_post_ops.ELTWISE)
    assert {alg for word, alg in algs if word == "binary"} == set(parity_post_ops.BINARY)
    assert len(parity_post_ops.ELTWISE) == 21


def test_primitives_without_weights_have_clean_fills() -> None:
    for recipe in parity_plain.all_recipes():
        case = recipe.build()
        expected = case.expected()
        assert expected.is_exact or fills.ends_transcendental(case.problem, case.attr), case.text()
        assert expected.accepts(expected.dst).all()
        assert len(np.unique(expected.dst)) > 1, case.text()


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_float_problems_have_clean_fills(dtype: str) -> None:
    for kind in parity.KINDS:
        for recipe in parity.float_recipes(kind, dtype):
            assert recipe.build().expected().is_exact, recipe.name


def test_a_chain_that_must_round_has_no_clean_fill() -> None:
    problem = MatMulProblem.of((4, 8), (8, 4), dst="f32")
    attr = Attr(wei_scale=Scale(), post_ops=(EltwisePostOp("linear", 0.1, 0.0),))
    with pytest.raises(fills.NotCleanError, match="linear"):
        fills.clean(problem, attr, np.random.default_rng(0))


def simulate(case: Case, order: str) -> Any:
    """Compute a convolution without post-ops in float32, in one of the kernels' orders."""
    arrays = case.arrays
    shifted = arrays["src"].astype(np.float64) - arrays["src_zero_point"][0]
    problem: Any = case.problem
    acc = convolve(shifted, arrays["wei"].astype(np.float64), problem)
    x = acc.astype(f32)
    s, w = arrays["src_scale"][0], arrays["wei_scale"].reshape(1, -1, 1, 1)
    x = (x * s) * w if order == "separate" else x * (s * w)
    x = x + arrays["bias"].reshape(1, -1, 1, 1)
    d = arrays["dst_scale"][0]
    x = x / d if order == "divide" else x * (f32(1) / d)
    x = x + f32(arrays["dst_zero_point"][0])
    return np.clip(np.rint(x), 0, 255).astype(np.uint8)


def simulated_recipe(shape: str = "3x3_pad1") -> Recipe:
    problem = parity.problem("convolution", shape, "u8", "u8", "f32")
    return Recipe("dirty", problem, parity.attribute(problem, "per_channel", ("src", "dst")))


@pytest.mark.parametrize("order", ["separate", "combined", "divide"])
def test_dirty_fills_allow_every_float32_order(order: str) -> None:
    for seed in range(20):
        case = simulated_recipe().build("dirty", seed=seed)
        case.check(simulate(case, order))


@pytest.mark.parametrize("order", ["separate", "combined", "divide"])
def test_clean_fills_allow_one_answer_in_every_order(order: str) -> None:
    case = simulated_recipe().build()
    np.testing.assert_array_equal(simulate(case, order), case.expected().dst)


@pytest.mark.parametrize("shape", ["3x3_pad1", "grouped", "depthwise"])
def test_dirty_results_touch_ties_and_stay_sharp(shape: str) -> None:
    undecided, total, on_ties = 0, 0, 0
    for seed in range(20):
        expected = simulated_recipe(shape).build("dirty", seed=seed).expected()
        # Few roundings: accumulator, two scales, bias, reciprocal and product, zero point.
        assert expected.error.max() < 8 * 2.0**-24 * (np.abs(expected.real).max() + 256)
        lo, hi = expected.interval()
        assert (hi.astype(int) - lo.astype(int)).max() <= 1
        undecided += int((lo != hi).sum())
        on_ties += int((expected.distance_to_tie < 1e-4).sum())
        total += lo.size
    assert on_ties >= 5  # the aim was at a tie in each of the 20
    assert 0 < undecided < total / 100  # and nearly everything still has one answer


def test_every_post_op_has_a_dirty_fill_with_a_bound() -> None:
    for recipe in islice(parity_post_ops.all_recipes(), 0, None, 3):
        expected = recipe.build("dirty").expected()
        assert np.isfinite(expected.error).all(), recipe.name
        assert np.median(expected.error) < 1e-2, recipe.name


def test_dirty_fill_notices_a_level() -> None:
    case = simulated_recipe().build("dirty", seed=1)
    wrong = case.expected().dst.copy()
    far = np.unravel_index(np.argmax(case.expected().distance_to_tie), wrong.shape)
    wrong[far] ^= 1
    with pytest.raises(AssertionError, match=r"1 of .* elements are wrong"):
        case.check(wrong)


@settings(max_examples=60, deadline=None)
@given(recipe=strategies.dense_recipes(), seed=strategies.seeds)
def test_drawn_problems_have_clean_fills(recipe: Recipe, seed: int) -> None:
    case = recipe.build(seed=seed)
    assert case.expected().is_exact


def test_layout_follows_the_spec() -> None:
    values = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    spec = TensorSpec.channels_last(values.shape, "s32")
    laid = laid_out(values.astype(np.int32), spec)
    np.testing.assert_array_equal(laid, values)
    assert laid.strides == tuple(4 * stride for stride in spec.strides or ())


def test_case_hands_out_what_a_call_needs() -> None:
    case = Recipe("needs", *case_of_sum()).build()
    assert set(case.constants) == {"wei", "bias"}
    assert set(case.values) == {"wei_scale", "dst_scale"}
    assert len(case.inputs) == 1
    np.testing.assert_array_equal(case.out(), case.arrays["dst"])
    case.out()[...] = 0
    assert case.arrays["dst"].any()


def test_dst_is_a_copy_in_every_layout() -> None:
    for kind in parity.KINDS:
        case = next(iter(parity_post_ops.sum_recipes(kind))).build()
        assert not np.shares_memory(case.out(), case.arrays["dst"])


def case_of_sum() -> tuple[Any, Attr]:
    recipe = next(iter(parity_post_ops.sum_recipes("convolution")))
    return recipe.problem, recipe.attr
