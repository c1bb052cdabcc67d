"""The notebook form of a plan: one element that needs nothing else, with everything escaped."""

from __future__ import annotations

import pickle

from pyonednn_q.compose.composer import NO_RULES, compose
from pyonednn_q.compose.plan import Plan
from pyonednn_q.expr.steps import Affine, Chain, Clip, Eltwise, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from support.plans import chains
from support.plans.golden import facts

FACTS = PrimitiveFacts("convolution", 2, bias=Vec([1.0, -1.0]))


def test_rows_are_those_of_the_table() -> None:
    for name in chains.NAMES:
        plan = compose(chains.chain(name, "u8"), facts("u8"))
        html = plan._repr_html_()
        assert html.count('<tr class="post-op">') == len(plan.post_ops)
        for constant, _ in plan.constants:
            assert constant.startswith("post_op_") or f"<td>{constant}</td>" in html


def test_what_is_left_over_stands_out() -> None:
    plan = compose(Chain(Sum(2.0), Eltwise("relu"), Sum(3.0)), FACTS)
    assert plan._repr_html_().count('<tr class="left-over">') == 2
    assert "left-over" not in compose(Chain(), FACTS)._repr_html_().rpartition("</style>")[2]


def test_the_promise_is_explained() -> None:
    chain = Chain(Affine(2.0), Clip(0, 255))
    assert 'title="equal in real arithmetic' in compose(chain, FACTS)._repr_html_()
    assert 'title="equal float32 values' in compose(chain, FACTS, rules=NO_RULES)._repr_html_()


def test_steps_are_escaped() -> None:
    html = compose(Chain(Clip(0, 6), Eltwise("tanh")), FACTS)._repr_html_()
    assert "clip(x, 0, 6) &gt; tanh(x)" in html
    assert " > tanh" not in html


def test_a_plan_that_was_stored_looks_the_same() -> None:
    plan = compose(chains.chain("07_fq_pc_sigmoid_fq_pc", "u8"), facts("u8"))
    assert Plan.from_json(plan.to_json())._repr_html_() == plan._repr_html_()
    assert pickle.loads(pickle.dumps(plan))._repr_html_() == plan._repr_html_()


def test_nothing_is_fetched() -> None:
    html = compose(chains.chain("fq_pc", "u8"), facts("u8"))._repr_html_()
    assert not any(word in html for word in ("http", "src=", "href=", "<script", "@import", "url("))
