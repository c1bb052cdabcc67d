"""Plan: a value that can be compared, stored and read, and what it hands to a primitive."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.composer import compose
from pyonednn_q.compose.plan import Plan
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Eltwise, Leaf, PRelu, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import PrimitiveFacts, acc_interval
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem, MatMulProblem
from support import oracle
from support.plans import chains
from support.plans.golden import facts

FACTS = PrimitiveFacts("convolution", 2, bias=Vec([3.0, -1.0]), wei_has_min=False)


def every_plan() -> list[Plan]:
    plans = [
        compose(chains.chain(name, dst), facts(dst))
        for name in chains.NAMES
        for dst in ("u8", "f32")
    ]
    leaf = Chain(Eltwise("tanh"), Binary("add", Leaf("r")), Clip(hi=[1, 2]))
    sized = replace(
        FACTS, dst_dims=(1, 2, 3, 3), process=Facts((3, 13, 2), InstructionSet("AVX2"), "OMP")
    )
    return [
        *plans,
        compose(leaf, FACTS),
        compose(leaf, sized),
        compose(Chain(), replace(FACTS, bias=None, bias_later=True)),
    ]


@pytest.mark.parametrize("plan", every_plan(), ids=lambda plan: str(plan.chain))
def test_plan_is_a_value(plan: Plan) -> None:
    for copy in (pickle.loads(pickle.dumps(plan)), Plan.from_json(plan.to_json())):
        assert copy == plan
        assert hash(copy) == hash(plan)
        assert str(copy) == str(plan)
        assert copy.explain() == plan.explain()
    with pytest.raises(AttributeError):
        setattr(plan, "policy", "fast")  # noqa: B010 - what mypy forbids, Python must too


def test_json_is_standard_json() -> None:
    text = compose(Chain(Eltwise("tanh"), Clip(hi=3)), FACTS).to_json()
    json.loads(text, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema": 2, "value": {}}', '{"schema": 1, "value": {"is": "os"}}',
     '{"schema": 1, "value": {"is": "Plan", "attr": 3}}',
     '{"schema": 1, "value": {"is": "Scale", "mask": 0, "color": 1}}',
     '{"schema": 1, "value": 5}'],
)  # fmt: skip
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises((ArgumentError, DTypeError)):
        Plan.from_json(text)


def test_json_that_holds_notes_is_read() -> None:
    """Texts once held them; they follow from the chain and the facts."""
    plan = compose(Chain(Clip(0, 1)), FACTS)
    text = json.loads(plan.to_json())
    text["value"]["notes"] = ["something that was said once"]
    read = Plan.from_json(json.dumps(text))
    assert read == plan
    assert read.notes == plan.notes
    assert "codes of u8" in plan.notes[0]


def test_plans_of_different_constants_differ() -> None:
    assert compose(Chain(Affine(2.0)), FACTS) != compose(Chain(Affine(3.0)), FACTS)


def test_values_are_named_as_prepare_takes_them() -> None:
    chain = Chain(
        PRelu([0.5, 2.0]), Affine([1.0, 3.0], [1.0, 2.0]), Eltwise("tanh"), Affine(2.0, 5)
    )
    plan = compose(chain, replace(FACTS, src_zero_point=3, wei_scale=Vec([0.5, 0.25])))
    problem = plan.problem(ConvProblem.of((1, 2, 4, 4), (2, 2, 1, 1), bias="f32"))
    assert set(plan.values()) == set(plan.attr.runtime_names(problem))
    assert plan.values()["src_zero_point"].dtype == np.int32
    assert plan.values()["wei_scale"].tolist() == [0.5, 0.75]
    assert plan.values()["post_op_1"].shape == (1, 2, 1, 1)


def test_bias_goes_where_it_is_nothing() -> None:
    plan = compose(Chain(Affine(1.0, [-3.0, 1.0])), FACTS)
    assert plan.bias_values() is None
    assert plan.problem(ConvProblem.of((1, 2, 4, 4), (2, 2, 1, 1), bias="f32")).bias is None


def test_bias_comes_where_there_was_none() -> None:
    plan = compose(Chain(Affine(1.0, [-3.0, 1.0])), replace(FACTS, bias=None))
    problem = plan.problem(ConvProblem.of((1, 2, 4, 4), (2, 2, 1, 1)))
    assert problem.bias is not None
    matmul = PrimitiveFacts("matmul", 2, ndims=3, wei_ndims=3)
    of = compose(Chain(Affine(1.0, [-3.0, 1.0])), matmul).problem(
        MatMulProblem.of((2, 4, 3), (2, 3, 2))
    )
    assert of.bias is not None
    assert of.bias.dims == (1, 1, 2)


def test_bias_that_comes_later_is_rescaled() -> None:
    later = replace(FACTS, bias=None, bias_later=True, wei_scale=Vec([0.5, 0.25]))
    plan = compose(Chain(Affine([2.0, -4.0], [1.0, 0.0])), later)
    values = plan.bias_values([3.0, 5.0])
    assert values is not None
    assert values.tolist() == [7.0, -20.0]
    assert plan.wei_factor == Vec([1.0, -1.0])
    with pytest.raises(ArgumentError, match="without them"):
        plan.bias_values()
    with pytest.raises(ArgumentError, match="already"):
        compose(Chain(), FACTS).bias_values([1.0, 2.0])


def test_weights_change_their_sign_and_vanish() -> None:
    facts = replace(FACTS, channels=3, bias=None)
    plan = compose(Chain(Affine([-2.0, 0.0, 0.5])), facts)
    assert plan.wei_factor == Vec([-1.0, 0.0, 1.0])
    assert dict(plan.constants)["wei_scale"] == Vec([2.0, 1.0, 0.5])
    wei = np.full((3, 2, 1, 1), 5, np.int8)
    assert plan.wei(wei)[:, 0, 0, 0].tolist() == [-5, 0, 5]
    assert plan.wei(wei).dtype == np.int8
    with pytest.raises(ArgumentError, match="-128"):
        plan.wei(np.full((3, 2, 1, 1), -128, np.int8))


def test_a_channel_of_scale_0_needs_no_step() -> None:
    """Its weights become 0; nothing has to change its sign, whatever weights there are."""
    facts = PrimitiveFacts("matmul", 2, ndims=2, wei_ndims=2)
    plan = compose(Chain(Affine([2.0, 0.0])), facts)
    assert plan.post_ops == ()
    assert plan.wei(np.full((3, 2), -128, np.int8)).tolist() == [[-128, 0]] * 3


def test_weights_of_nothing_beside_a_zero_point() -> None:
    """A channel of scale 0 gets weights that equal the zero point: a 0 would still be worth 7."""
    facts = PrimitiveFacts("matmul", 3, ndims=2, wei_ndims=2, wei_zero_point=-7)
    plan = compose(Chain(Affine([2.0, 0.0, -1.0])), facts)
    assert plan.wei(np.full((4, 3), 5, np.int8))[:, :2].tolist() == [[5, -7]] * 4


@pytest.mark.parametrize("zero_point", [0, 3])
@pytest.mark.parametrize("least", [-128, -127])
def test_a_scale_of_any_sign_is_a_scale(least: int, zero_point: int) -> None:
    """Whether the weights change their sign, or cannot, and a step does: the same numbers."""
    src = np.array([[3, 200], [0, 7]], np.uint8)
    wei = np.array([[least, 5, -1, 9, 100], [4, least, 2, -60, 0]], np.int8)
    scale, bias = np.array([-2.0, 0.0, 0.25, 4.0, -0.5]), np.array([8.0, 3.0, -1.0, 2.0, 0.25])
    problem = MatMulProblem.of((2, 2), wei.shape, dst="f32")
    facts = PrimitiveFacts.of(problem, wei=wei, bias=bias, wei_zero_point=zero_point)
    plan = compose(Chain(Affine(scale, 1.0)), facts)
    arrays: dict[str, Any] = {"src": src, "wei": plan.wei(wei), **plan.values()}
    values = plan.bias_values()
    if values is not None:
        arrays["bias"] = values
    got = oracle.run(plan.problem(problem), plan.attr, arrays).dst
    acc = src.astype(np.float64) @ (wei.astype(np.float64) - zero_point)
    assert np.array_equal(got, (acc + bias) * scale + 1.0)


def test_weights_of_groups() -> None:
    facts = PrimitiveFacts("convolution", 4, wei_ndims=5, wei_has_min=False)
    plan = compose(Chain(Affine([1.0, -1.0, 1.0, -1.0])), facts)
    wei = np.ones((2, 2, 1, 1, 1), np.int8)
    assert plan.wei(wei).reshape(-1).tolist() == [1, -1, 1, -1]


def test_problem_of_another_shape_is_refused() -> None:
    plan = compose(Chain(), FACTS)
    with pytest.raises(ShapeError, match="2 channels"):
        plan.problem(ConvProblem.of((1, 2, 4, 4), (3, 2, 1, 1)))
    with pytest.raises(ShapeError, match="convolution"):
        plan.problem(DeconvProblem.of((1, 2, 4, 4), (2, 2, 1, 1)))


def test_inner_product_refuses_a_source_zero_point() -> None:
    with pytest.raises(ArgumentError, match="matmul"):
        compose(Chain(), PrimitiveFacts("inner_product", 2, ndims=2, src_zero_point=3))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"kind": "pooling"}, ArgumentError),
        ({"wei": "f32"}, DTypeError),
        ({"src": "f32"}, DTypeError),
        ({"src_scale": 0.0}, ArgumentError),
        ({"wei_scale": Vec([1.0, -1.0])}, ArgumentError),
        ({"wei_scale": Vec([1.0, 2.0, 3.0])}, ShapeError),
        ({"bias": Vec([1.0, 2.0, 3.0])}, ShapeError),
        ({"bias_later": True}, ArgumentError),
        ({"dst_zero_point": 300}, ArgumentError),
        ({"dst": "f32", "dst_zero_point": 3}, ArgumentError),
        ({"dst_dims": (1, 3, 4, 4)}, ShapeError),
    ],
    ids=str,
)
def test_contradictions_are_refused(change: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        replace(FACTS, **change)


@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("zero_point", [0, 5])
def test_acc_interval_is_reached(src: str, zero_point: int) -> None:
    """Both ends are values that some source gives, so the interval is as narrow as it can be."""
    rng = np.random.default_rng(0)
    wei = rng.integers(-9, 9, (3, 4, 1, 1)).astype(np.int8)
    of = ConvProblem.of((1, 4, 2, 2), wei.shape, src=src)
    known = acc_interval(of, wei, zero_point)
    lowest, highest = (0, 255) if src == "u8" else (-128, 127)
    flat = wei.reshape(3, 4).astype(int)
    for sign, ends in ((1, known.hi), (-1, known.lo)):
        best = np.where(sign * flat > 0, highest, lowest) - zero_point
        # A zero point is what padding holds, so a product may also be missing.
        reached = flat * best
        kept = np.where(sign * reached > 0, reached, 0).sum(axis=1)
        assert ends == Vec(kept)


def test_known_weights_prove_a_relu_superfluous() -> None:
    wei = np.ones((2, 2, 1, 1), np.int8)
    of = ConvProblem.of((1, 2, 4, 4), wei.shape, dst="f32")
    assert compose(Chain(Eltwise("relu")), PrimitiveFacts.of(of, wei=wei)).post_ops == ()
    assert len(compose(Chain(Eltwise("relu")), PrimitiveFacts.of(of)).post_ops) == 1


@pytest.mark.parametrize(
    ("chain", "facts", "wanted"),
    [
        (Chain(), FACTS, "--dt=u8:s8:u8 --dir=FWD_B"),
        (
            Chain(Affine([2.0, 3.0]), Eltwise("tanh"), Affine(4.0, 3.0)),
            replace(FACTS, src_zero_point=5),
            (
                "--dt=u8:s8:u8 --dir=FWD_B --attr-scales=wei:per_dim_0+dst:common:0.25 "
                "--attr-zero-points=src:common:5+dst:common:3 --attr-post-ops=tanh"
            ),
        ),
        (
            Chain(Sum(0.5, 3), PRelu([1.0, 2.0]), Eltwise("elu", 2.0), Clip(0, 6), Affine(2, 0.5)),
            replace(FACTS, bias=None, dst="s8"),
            (
                "--dt=u8:s8:s8 --dir=FWD_I "
                "--attr-post-ops=sum:0.5:3+prelu:per_dim_1+elu:2+clip:0:6+linear:2:0.5"
            ),
        ),
        (
            Chain(Binary("add", Leaf("r", "s8"))),
            replace(FACTS, bias=None, dst_dims=(2, 2, 3, 3)),
            "--dt=u8:s8:u8 --dir=FWD_I --attr-post-ops=add:s8:15:axb",
        ),
        (  # one dimension of a tensor lies as it lies, whatever the layout
            Chain(Binary("add", Leaf("r", "s8", "per_channel"))),
            replace(FACTS, bias=None, dst_dims=(2, 2, 3, 3)),
            "--dt=u8:s8:u8 --dir=FWD_I --attr-post-ops=add:s8:2",
        ),
    ],
)
def test_benchdnn_options(chain: Chain, facts: PrimitiveFacts, wanted: str) -> None:
    assert compose(chain, facts).benchdnn() == wanted


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"ndims": 2}, "--dt=u8:s8:u8 --bia_dt=f32"),
        ({"ndims": 3}, "--dt=u8:s8:u8 --bia_dt=f32 --bia_mask=4"),
        ({"ndims": 3, "bias": None}, "--dt=u8:s8:u8"),
    ],
)
def test_benchdnn_names_the_bias_of_a_matmul(changes: dict[str, Any], wanted: str) -> None:
    facts = replace(FACTS, kind="matmul", wei_ndims=changes["ndims"], **changes)
    assert compose(Chain(), facts).benchdnn() == wanted


def test_weights_of_another_type_are_refused() -> None:
    plan = compose(Chain(Affine(2.0)), replace(FACTS, src="f32", wei="f32", dst="f32"))
    with pytest.raises(DTypeError, match="f32"):
        plan.wei(np.ones((2, 1, 1, 1), np.int8))


@pytest.mark.parametrize("zero_point", [None, 5])
def test_a_source_may_have_its_scale_and_zero_point_by_the_call(zero_point: int | None) -> None:
    """All that is known beforehand stays: weights' scales, both other zero points, the bias."""
    src, wei = np.array([[3, 200], [0, 7]], np.uint8), np.array([[2, -5], [4, 1]], np.int8)
    problem = MatMulProblem.of((2, 2), wei.shape, dst="s8")
    facts = PrimitiveFacts.of(
        problem, wei=wei, wei_scale=Vec([0.5, 0.25]), bias=[8.0, -3.0], dst_scale=2.0,
        dst_zero_point=-7, src_zero_point=zero_point, src_later="per_tensor", wei_zero_point=1,
    )  # fmt: skip
    plan = compose(Chain(), facts)
    arrays: dict[str, Any] = {"src": src, "wei": plan.wei(wei), "bias": plan.bias_values()}
    late = {"src_scale": np.array([0.125], np.float32), "src_zero_point": np.array([5], np.int32)}
    assert plan.later == (("src_scale",) if zero_point is None else ("src_scale", "src_zero_point"))
    arrays |= {**plan.values(), **{name: late[name] for name in plan.later}}
    got = oracle.run(plan.problem(problem), plan.attr, arrays).dst
    acc = (src.astype(float) - (zero_point or 0)) @ (wei.astype(float) - 1)
    x = 0.125 * np.array([0.5, 0.25]) * acc + np.array([8.0, -3.0])
    assert got.tolist() == np.clip(np.rint(x / 2.0 - 7.0), -128, 127).tolist()


def test_a_table_has_no_zero_below_zero() -> None:
    problem = MatMulProblem.of((1, 4), (4, 2), dst="f32", bias="f32")
    for bias, shown in (([-1.0, -0.0], "-1 .. 0 "), ([-0.0, 1.0], " 0 .. 1 ")):
        plan = compose(Chain(), PrimitiveFacts.of(problem, bias=np.array(bias)))
        assert shown in str(plan)


@pytest.mark.parametrize(("scale", "zero_point"), [(1.0, 5), (2.0, 0), (2.0, 5)])
def test_either_of_scale_and_zero_point_of_dst_is_enough(scale: float, zero_point: int) -> None:
    problem = MatMulProblem.of((1, 4), (4, 2), dst="u8")
    facts = PrimitiveFacts.of(problem, dst_scale=scale, dst_zero_point=zero_point)
    plan = compose(Chain(), facts)
    assert plan.is_whole
    assert not plan.post_ops
    of = {name: vec.least for name, vec in plan.constants}
    bias = 0.0 if plan.bias is None else plan.bias.least
    for acc in (0, 7, 100):
        real = (acc * of.get("wei_scale", 1.0) + bias) / of.get("dst_scale", 1.0)
        assert real + of.get("dst_zero_point", 0) == acc / scale + zero_point


def test_scales_that_leave_float32_before_that_of_each_source_are_refused() -> None:
    problem = MatMulProblem.of((1, 4), (4, 2))
    most = float(np.finfo(np.float32).max) / 2.0**31
    for scale in (most, [1.0, most]):
        compose(Chain(), PrimitiveFacts.of(problem, wei_scale=scale, src_later="per_tensor"))
        compose(Chain(), PrimitiveFacts.of(problem, wei_scale=np.multiply(2.0, scale)))
        later = PrimitiveFacts.of(
            problem, wei_scale=np.multiply(2.0, scale), src_later="per_tensor"
        )
        with pytest.raises(ArgumentError, match=r"^wei_scale: got 3\.17e\+29"):
            compose(Chain(), later)
