"""Nearest variants: what an Unsupported suggests is made, as suggested, and runs."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q import native
from pyonednn_q.faults.variants import MOST_FOUND, MOST_PROBES, MOST_SECONDS, nearest

CONV = pq.primitive.ConvProblem.of((1, 8, 9, 9), (16, 8, 3, 3))
DENSE = pq.primitive.ConvProblem.of((1, 8, 9, 9), (16, 8, 3, 3), layout="dense")
PRODUCT = pq.primitive.MatMulProblem.of((4, 16), (16, 8))
INNER = pq.primitive.InnerProductProblem.of((4, 16), 8)
HALF = pq.primitive.MatMulProblem.of((3, 16), (16, 32), src="f32", wei="f32", dst="u8")
POINT = pq.primitive.Attr(src_zero_point=pq.primitive.ZeroPoint())
REFUSED: dict[str, tuple[Any, pq.primitive.Attr, dict[str, Any], str]] = {
    "a zero point per input channel": (
        CONV,
        pq.primitive.Attr(src_zero_point=pq.primitive.ZeroPoint(2)),
        {"src_zero_point": np.zeros(8, np.int32)},
        "zero point",
    ),
    "inner product with a zero point": (INNER, POINT, {"src_zero_point": 3}, "matmul"),
    "rows of channels": (DENSE, pq.primitive.Attr(), {}, "channels-last"),
    "a scale per row of weights": (
        PRODUCT,
        pq.primitive.Attr(wei_scale=pq.primitive.Scale(1)),
        {"wei_scale": np.ones(16)},
        "one wei scale per output channel",
    ),
    "u8 of floats": (HALF, pq.primitive.Attr(), {}, "dst"),
}


def refusal(name: str) -> tuple[pq.UnsupportedError, Any, pq.primitive.Attr]:
    problem, attr, values, _ = REFUSED[name]
    dtype = np.float32 if problem.wei.dtype == "f32" else np.int8
    with pytest.raises(pq.UnsupportedError) as caught:
        native.prepare(problem, attr, wei=np.ones(problem.wei.dims, dtype), values=values)
    return caught.value, problem, attr


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_what_would_run(name: str) -> None:
    error, _, _ = refusal(name)
    assert REFUSED[name][3] in " ".join(error.variants[0].changes)
    assert 1 <= len(error.variants) <= MOST_FOUND
    shown = str(error).partition("nearest variants that run here:")[2]
    assert [line.strip() for line in shown.splitlines() if line] == list(map(str, error.variants))


@pytest.mark.parametrize("name", REFUSED)
def test_every_suggestion_was_made_by_the_library(name: str) -> None:
    """The very problem and attributes of a suggestion get the implementation that it names."""
    error, problem, attr = refusal(name)
    made: dict[tuple[str, str], str] = {}

    def runs(changed: Any, attributes: pq.primitive.Attr) -> str | None:
        try:
            impl = native.selection.select(changed, attributes).impl
        except pq.Error:
            return None
        made[changed.text(), attributes.text()] = impl
        return impl

    assert nearest(problem, attr, runs) == error.variants
    for near in error.variants:
        assert made[near.problem, near.attributes] == near.implementation
        assert (near.problem, near.attributes) != (problem.text(), attr.text())


def test_pairs_of_changes_are_tried_where_one_is_not_enough() -> None:
    attr = pq.primitive.Attr(
        src_zero_point=pq.primitive.ZeroPoint(2), wei_scale=pq.primitive.Scale(1)
    )

    def runs(problem: Any, attributes: pq.primitive.Attr) -> str | None:
        done = problem.dst.dtype == "f32" and attributes.src_zero_point is None
        return "both" if done else None

    found = nearest(CONV, attr, runs)
    assert [near.changes for near in found] == [("no src zero point", "dst f32")]


def test_the_nearer_comes_first_and_nothing_that_holds_it_follows() -> None:
    attr = pq.primitive.Attr(
        post_ops=(pq.primitive.EltwisePostOp("relu"), pq.primitive.EltwisePostOp("tanh"))
    )

    def runs(problem: Any, attributes: pq.primitive.Attr) -> str | None:
        return "fewer" if len(attributes.post_ops) < 2 or problem.dst.dtype == "s32" else None

    changes = [near.changes for near in nearest(CONV, attr, runs)]
    assert changes == [
        ("the last 1 post-op(s) after it, dst f32",),
        ("the last 2 post-op(s) after it, dst f32",),
        ("dst s32",),
    ]


def test_probing_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    attr = pq.primitive.Attr(
        src_zero_point=pq.primitive.ZeroPoint(2),
        wei_scale=pq.primitive.Scale(1),
        post_ops=(pq.primitive.EltwisePostOp("relu"),) * 32,
    )
    probes = []

    def nothing(problem: Any, attributes: pq.primitive.Attr) -> None:
        probes.append((problem, attributes))

    assert nearest(CONV, attr, nothing) == ()
    assert 20 < len(probes) <= MOST_PROBES
    clock = iter(np.arange(0, 100, MOST_SECONDS / 4))
    monkeypatch.setattr("pyonednn_q.faults.variants.time.monotonic", lambda: next(clock))
    probes.clear()
    nearest(CONV, attr, nothing)
    assert len(probes) < 5


def test_a_refusal_starts_no_child_for_who_only_catches(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def why(*problem: object) -> tuple[()]:
        asked.append(problem)
        return ()

    monkeypatch.setattr("pyonednn_q.native.child.why", why)
    error, _, _ = refusal("rows of channels")
    assert not asked
    assert str(error)
    assert len(asked) == 1


def test_variants_survive_a_pickle() -> None:
    error, _, _ = refusal("rows of channels")
    again = pickle.loads(pickle.dumps(error))
    assert again.variants == error.variants
    assert str(again) == str(error)


def test_other_kinds_have_none() -> None:
    spec = pq.primitive.TensorSpec.dense((4, 8), "f32")
    assert (
        nearest(
            pq.primitive.EltwiseProblem(spec, spec, "relu"), pq.primitive.Attr(), lambda *_: "any"
        )
        == ()
    )
