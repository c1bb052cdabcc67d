"""Weights of groups come as `Conv` takes them, or with their groups first, and mean the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q import predict
from pyonednn_q.errors import ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.primitive import ConvProblem, DeconvProblem, PrimitiveFacts

Array = np.ndarray[Any, Any]
Problem = ConvProblem | DeconvProblem

RNG = np.random.default_rng(4)
FLAT = RNG.integers(-60, 61, (32, 16, 3, 3)).astype(np.int8)
FIRST = FLAT.reshape(2, 16, 16, 3, 3)
LARGE = np.where(RNG.random(FLAT.shape) < 0.1, 127, FLAT).astype(np.int8)
SRC = RNG.integers(0, 9, (1, 32, 5, 5)).astype(np.uint8)
FQ = pq.FakeQuantize(-1, 1.55, -1, 1.55)


def planned(problem: Problem, wei: Array) -> Array:
    chain = pq.Chain(pq.Affine(np.arange(-16.0, 16.0), 0.0), pq.Eltwise("relu"))
    plan = pq.compose_chain(chain, PrimitiveFacts.of(problem, wei=wei, src_zero_point=3))
    return pq.prepare_plan(plan, problem, wei=wei, saturation="allow")(SRC)


def composed(carrier: Any) -> Callable[[Problem, Array], Array]:
    def layer(problem: Problem, wei: Array) -> Array:
        made = pq.compose_layer(problem, wei / 64, src_fq=FQ, zero_point=carrier, wei_levels=129)
        return pq.prepare_layer(made)(SRC)

    return layer


def plan_model(problem: Problem, wei: Array) -> Array:
    plan = pq.compose_chain(pq.Chain(pq.Affine(-0.5)), PrimitiveFacts.of(problem, wei=wei))
    ran = pq.prepare_plan(plan, problem, wei=wei, saturation="allow").primitive
    model = predict.plan_model(plan, problem, ran.impl, runtime.isa(), runtime.version())
    return model.run(SRC, wei)


def found_witness(problem: Problem, wei: Array) -> tuple[Any, ...]:
    verdict = predict.saturation(problem, wei, "AVX2", src_range=(0, 255))
    channel = verdict.flagged[0]
    found = predict.witness(verdict, wei, channel)
    assert found is not None
    return found.src.tobytes(), found.exact, found.computed


READERS: dict[str, Callable[[Problem, Array], Any]] = {
    "prepare": lambda p, w: pq.prepare(p, wei=w, saturation="allow")(SRC),
    "prepare_plan": planned,
    "compose_layer attribute": composed("attribute"),
    "compose_layer map": composed("map"),
    "PrimitiveFacts.of": lambda p, w: PrimitiveFacts.of(p, wei=w, src_zero_point=3).acc,
    "saturation": lambda p, w: predict.saturation(p, w, "AVX2").text(),
    "as_if": lambda p, w: predict.as_if(p, SRC, w, "AVX2"),
    "counts": lambda p, w: predict.counts(p, SRC, w, "AVX2"),
    "repair": lambda p, w: predict.repair(p, w, "AVX2", unrounded=w * 1.0).wei.ravel(),
    "witness": found_witness,
}  # fmt: skip


@pytest.mark.parametrize("kind", [ConvProblem, DeconvProblem])
@pytest.mark.parametrize("name", READERS)
def test_both_forms_mean_the_same(name: str, kind: type[Problem]) -> None:
    wei = LARGE if name in {"saturation", "as_if", "counts", "repair", "witness"} else FLAT
    problem = kind.of(SRC.shape, FLAT.shape, groups=2, dst="f32")
    read = READERS[name]
    flat, first = read(problem, wei), read(problem, wei.reshape(FIRST.shape))
    if isinstance(flat, np.ndarray):
        np.testing.assert_array_equal(flat, first)
        assert flat.any()
    else:
        assert flat == first
    with pytest.raises(ShapeError, match=r"^wei: got \(16, 32, 3, 3\)"):
        read(problem, wei.reshape(16, 32, 3, 3))


def test_a_model_takes_both_forms() -> None:
    problem = ConvProblem.of(SRC.shape, FLAT.shape, groups=2, dst="s32")
    try:
        flat = plan_model(problem, FLAT)
    except pq.errors.NoModelError as error:
        pytest.skip(str(error))
    np.testing.assert_array_equal(flat, plan_model(problem, FIRST))


def test_a_repair_has_the_dims_of_what_it_repairs() -> None:
    problem = ConvProblem.of(SRC.shape, FLAT.shape, groups=2)
    for wei in (LARGE, LARGE.reshape(FIRST.shape)):
        found = predict.repair(problem, wei, "AVX2")
        assert found.wei.shape == wei.shape
        assert found.changed


def test_an_operator_and_a_primitive_compute_the_same() -> None:
    problem = ConvProblem.of(SRC.shape, FLAT.shape, groups=2, dst="f32")
    q: dict[str, Any] = {"src_q": pq.QParams(1.0, 0, "u8"), "wei_q": pq.QParams(1.0, 0, "s8")}
    wanted = pq.conv(SRC, FLAT, **q, groups=2)
    np.testing.assert_array_equal(pq.prepare(problem, wei=FLAT)(SRC), wanted)
