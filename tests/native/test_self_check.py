"""self_check: right kernels pass, and those that oneDNN computes wrong are caught, unguarded.

Faults come from tests/support/faults.py, each in a process of its own at the level where it shows.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, cast

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.check.draw import Draw
from pyonednn_q.check.meaning import Meaning
from pyonednn_q.check.places import Geometry, Places
from pyonednn_q.faults import guards
from pyonednn_q.native import runtime
from pyonednn_q.native.trial import compare, geometry_of
from support import unguarded
from support.calls.draw import random_call
from support.children import child, run_child, threads
from support.fault import MEASURED, Fault, filled
from support.faults import FAULTS
from support.faults_hunted import ALL, HUNTED_FAULTS
from support.faults_layouts import LAYOUT_FAULTS
from support.isa import LIMIT_VARIABLE, reason_row_is_unavailable

# A step of bf16, which bounds of float arithmetic allow; pairs of large codes, where seeded ones
# stay below what saturates: docs/self_check.md.
NOT_CAUGHT = {"depthwise-to-bf16", "matmul-in-shares"}
CAUGHT = ("self_check: ", "runtime_error", "dnnl_primitive_execute: ")
MODELLED = ("convolution", "deconvolution", "inner_product", "matmul")


def shown() -> list[Any]:
    """One fault for each row that is about a modelled kind."""
    rows: dict[str, Fault] = {}
    for fault in (*FAULTS, *HUNTED_FAULTS, *LAYOUT_FAULTS):
        if fault.problem.kind in MODELLED and fault.row not in NOT_CAUGHT:
            rows.setdefault(fault.row, fault)
    return [pytest.param(fault, id=row) for row, fault in rows.items()]


@pytest.mark.parametrize("fault", shown())
def test_a_wrong_kernel_is_caught(fault: Fault) -> None:
    guard = next(guard for guard in guards.GUARDS if guard.id == fault.row)
    environment = {LIMIT_VARIABLE: fault.level}
    with child(environment) as ask:
        facts = ask(runtime.facts)
        reason = reason_row_is_unavailable(facts.isa, fault.level) if fault.level != ALL else None
        if reason is not None:
            pytest.skip(reason)
        if facts.version < guard.since or (guard.until and facts.version >= guard.until):
            pytest.skip(f"{fault.row}: not in oneDNN {facts.version}")
        found = ask(unguarded.struck, fault.row, fault.problem, fault.attr)
    is_measured = facts.version[:2] in MEASURED
    if found is None and (fault.level == ALL or not is_measured):
        pytest.skip(f"{fault.row}: none of its kernels in oneDNN {facts.version}")
    assert found is not None
    arrays, values = filled(fault)
    work = (unguarded.self_checked, found[0], fault.problem, fault.attr, arrays, values)
    said = run_child(
        *work, environment=environment | {"MALLOC_PERTURB_": "85"} | threads(fault.threads)
    )
    is_caught = said.crashed or any(word in said.value for word in CAUGHT)
    if not (is_caught or is_measured):
        pytest.skip(f"{fault.row}: not shown by oneDNN {facts.version}")
    assert is_caught


@pytest.mark.parametrize("seed", range(60))
def test_right_kernels_pass(seed: int) -> None:
    call = random_call(np.random.default_rng(seed))
    call = call.but(options={**call.options, "self_check": True})
    try:
        call.run()
    except (pq.UnsupportedError, pq.ArgumentError) as error:
        pytest.skip(str(error))


ATTRS = {
    "scales": pq.primitive.Attr(wei_scale=pq.primitive.Scale(1), dst_scale=pq.primitive.Scale()),
    "zero points": pq.primitive.Attr(
        src_zero_point=pq.primitive.ZeroPoint(), dst_zero_point=pq.primitive.ZeroPoint()
    ),
    "sum": pq.primitive.Attr(
        dst_scale=pq.primitive.Scale(), post_ops=(pq.primitive.SumPostOp(0.5, 3, "s8"),)
    ),
    "prelu": pq.primitive.Attr(
        post_ops=(pq.primitive.PReluPostOp(2), pq.primitive.EltwisePostOp("linear", 2, 1))
    ),
    "binary": pq.primitive.Attr(
        dst_scale=pq.primitive.Scale(),
        post_ops=(
            pq.primitive.BinaryPostOp("add", pq.primitive.TensorSpec.dense((1, 16, 1, 1), "f32")),
            pq.primitive.EltwisePostOp("tanh"),
        ),
    ),
}


@pytest.mark.parametrize("attr", ATTRS)
@pytest.mark.parametrize("make", [pq.primitive.ConvProblem, pq.primitive.DeconvProblem])
def test_primitives_pass(attr: str, make: Any) -> None:
    problem = make.of((2, 8, 9, 7), (16, 8, 3, 3), stride=2, padding=1, bias="f32")
    rng = np.random.default_rng(3)
    values = {
        "wei_scale": rng.uniform(0.001, 0.01, 16),
        "dst_scale": 0.5,
        "src_zero_point": 7,
        "dst_zero_point": 100,
        "post_op_0": rng.uniform(0.1, 2, 16).astype(np.float32),
    }
    needed = ATTRS[attr].runtime_names(problem)
    given = {
        "wei": rng.integers(-9, 10, problem.wei.dims).astype(np.int8),
        "bias": rng.normal(0, 3, 16).astype(np.float32),
        "values": {name: value for name, value in values.items() if name in needed},
    }
    try:
        pq.prepare(problem, ATTRS[attr], **given)
    except pq.UnsupportedError as error:
        pytest.skip(str(error))
    pq.prepare(problem, ATTRS[attr], self_check=True, **given)


@pytest.mark.parametrize(("kernel", "stride", "longer"), [(3, 2, (1, 0)), (2, 3, (1, 2))])
def test_a_deconvolution_with_output_padding_passes(
    kernel: int, stride: int, longer: tuple[int, int]
) -> None:
    """A dst may be longer than the least by what frameworks call output padding."""
    wei = (16, 8, kernel, kernel)
    least = pq.primitive.DeconvProblem.of((2, 8, 5, 4), wei, dst="s32", stride=stride)
    dims = (
        2,
        16,
        *(length + more for length, more in zip(least.dst.dims[2:], longer, strict=True)),
    )
    problem = replace(least, dst=pq.primitive.TensorSpec.channels_last(dims, "s32"))
    rng = np.random.default_rng(3)
    codes = rng.integers(-9, 10, wei).astype(np.int8)
    src = rng.integers(0, 9, problem.src.dims).astype(np.uint8)
    call = pq.prepare(problem, wei=codes, self_check=True)
    right = np.zeros(dims, np.int64)  # spread over as much, what is not reached stays 0
    for place, taps in product(np.ndindex(5, 4), np.ndindex(kernel, kernel)):
        row, column = (at * stride + tap for at, tap in zip(place, taps, strict=True))
        at, tap = (np.moveaxis(of, (0, 1), (-2, -1)).astype(np.int64) for of in (src, codes))
        parts = at[place] @ tap[taps].T
        right[:, :, row, column] += parts
    dst = call(src)
    np.testing.assert_array_equal(dst, right)
    places = Places.of(geometry_of(problem))
    band = Meaning(pq.Chain(), "s32").band(places, src, codes)
    compare(places, band, dst, call)
    dst[1, 15, -1, -1] += 1  # where the least would have no place
    with pytest.raises(pq.errors.SelfCheckError, match="1 of ") as caught:
        compare(places, band, dst, call)
    assert caught.value.place == (1, 15, dims[2] - 1, dims[3] - 1)


def test_operands_of_each_call_are_drawn() -> None:
    problem = pq.primitive.MatMulProblem.of((2, 5, 24), (2, 24, 7), dst="f32")
    attr = pq.primitive.Attr(
        post_ops=(
            pq.primitive.BinaryPostOp("mul", pq.primitive.TensorSpec.dense((2, 5, 7), "f32")),
        )
    )
    assert pq.prepare(problem, attr, self_check=True).inputs == ("src", "wei", "post_op_0")


@pytest.mark.parametrize("place", [(0, 3, 0, 0), (1, 15, 4, 2)])
@pytest.mark.parametrize("by", [-1, 1])
def test_one_wrong_level_is_found_where_it_is(place: tuple[int, ...], by: int) -> None:
    """An exact kernel is right to the last level, and one place beside it is named."""
    problem = pq.primitive.ConvProblem.of((2, 8, 5, 4), (16, 8, 3, 3), dst="s32", padding=1)
    wei = np.random.default_rng(1).integers(-9, 10, problem.wei.dims).astype(np.int8)
    ready = pq.prepare(problem, wei=wei)
    src = Draw().source(problem.src.dims, "u8")
    places = Places.of(Geometry.of("convolution", problem.src.dims, problem.wei.dims, padding=1))
    assert places.count == 2 * 5 * 4
    band = Meaning(pq.Chain(), "s32").band(places, src, wei)
    dst = ready(src)
    compare(places, band, dst, ready)
    dst[place] += by
    with pytest.raises(pq.errors.SelfCheckError, match=r"1 of 640 elements differ") as caught:
        compare(places, band, dst, ready)
    error = caught.value
    assert error.place == place
    assert error.got == dst[place]
    assert error.wanted == (dst[place] - by,) * 2
    assert (error.implementation, error.problem) == (ready.impl, problem.text())
    with pytest.raises(
        pq.errors.SelfCheckError, match=r"dims \(1, 16, 5, 4\) and not \(2, 16, 5, 4\)"
    ):
        compare(places, band, dst[:1], ready)


def test_a_result_is_looked_at_after_what_runs_behind_the_primitive() -> None:
    chain = pq.Chain(*(pq.Affine(2.0, 0.5), pq.Eltwise("tanh")) * 20)
    wei = np.ones((8, 16), np.int8)
    q = pq.QParams(0.25, 0, "s8")
    ready = pq.MatMul(wei, src_q=q, wei_q=q, post=chain, self_check=True).prepare((4, 8))
    assert ready.after


def test_what_has_no_model_is_refused() -> None:
    spec = pq.primitive.TensorSpec.dense((4, 8), "f32")
    with pytest.raises(pq.ArgumentError, match="self_check"):
        pq.prepare(pq.primitive.EltwiseProblem(spec, spec, "relu"), self_check=True)
    with pytest.raises(pq.ArgumentError, match="self_check"):
        pq.MatMul(np.ones((8, 16), np.float32), self_check=cast("bool", 1))
