"""Without VNNI, products run as 1x1 convolutions by default: the same bits, and it is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.bench.case import Case
from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.trial import Trial
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.vec import Vec
from pyonednn_q.native import runtime
from pyonednn_q.ops import ways
from pyonednn_q.ops.asking import Asking
from pyonednn_q.ops.form import AS_ASKED, Form
from pyonednn_q.ops.settings import Settings
from pyonednn_q.ops.ways import LEVELS, choose, forms
from pyonednn_q.ops.weights import Weights
from pyonednn_q.primitive.isa import InstructionSet
from support.frames import frames
from support.oracle_numbers import convert

RNG = np.random.default_rng(17)
RELU = pq.Chain(pq.Eltwise("relu"))
MATMUL = pq.primitive.MatMulProblem.of((5, 64), (64, 24))
IP = pq.primitive.InnerProductProblem.of((5, 64), 24)
HERE = not runtime.isa().is_beyond_avx2()
WHY = "without VNNI a matmul runs on gemm"


def faster(problem: Any, chain: pq.Chain, isa: str, patch: pytest.MonkeyPatch) -> list[Form]:
    """Return the faster form on an instruction set, if there is one."""
    patch.setattr(runtime, "isa", lambda: InstructionSet(isa))
    settings = Settings(src_q=None, dst_q=None, dst=problem.dst.dtype, post=chain)
    wei: Any = np.broadcast_to(np.int8(0), problem.wei.dims)
    weights = Weights(wei, problem.wei.dtype, Vec(1.0), Vec(0.0))
    asking = Asking(problem, wei, weights, None, settings, {})
    forms_of = (one.form for one in ways.product_as_image(asking, None))
    return [form for form in forms_of if form is not None]


@pytest.mark.parametrize("isa", ["AVX2", "AVX", "SSE41"])
@pytest.mark.parametrize(
    "problem",
    [MATMUL, IP, pq.primitive.MatMulProblem.of((2, 5, 64), (1, 64, 24), bias="f32", dst="f32")],
)
def test_products_have_a_faster_form(
    problem: Any, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (form,) = faster(problem, RELU, isa, monkeypatch)
    assert (form.problem.kind, form.asked, form.chain) == ("convolution", problem, RELU)
    assert form.problem.macs == problem.macs
    assert form.problem.src.nbytes == problem.src.nbytes
    assert form.problem.dst.nbytes == problem.dst.nbytes


@pytest.mark.parametrize(
    ("problem", "isa"),
    [
        (MATMUL, "AVX2_VNNI"),
        (MATMUL, "AVX512_CORE_VNNI"),
        (MATMUL, "AVX512_CORE"),  # not measured
        (pq.primitive.MatMulProblem.of((5, 64), (64, 24), src="f32", wei="f32", dst="f32"), "AVX2"),
        (pq.primitive.MatMulProblem.of((3, 5, 64), (3, 64, 24)), "AVX2"),
        (pq.primitive.MatMulProblem.of((1000, 1), (1, 8)), "AVX2"),  # not always faster
        (pq.primitive.MatMulProblem.of((0, 4), (4, 8)), "AVX2"),
        (pq.primitive.MatMulProblem.of((2**20 + 1, 4), (4, 8)), "AVX2"),
        (pq.primitive.InnerProductProblem.of((2, 8, 3, 3), 24), "AVX2"),
        (pq.primitive.ConvProblem.of((1, 8, 3, 3), (8, 8, 1, 1)), "AVX2"),
    ],
)
def test_others_have_none(problem: Any, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert faster(problem, RELU, isa, monkeypatch) == []


def test_rows_of_another_form_are_not_those_of_a_leaf(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = pq.Chain(pq.Binary("mul", pq.Leaf("scales", "f32", "per_row")))
    for problem in (MATMUL, pq.primitive.MatMulProblem.of((2, 5, 64), (1, 64, 24))):
        assert faster(problem, chain, "AVX2", monkeypatch) == []
        assert [form.name for form in forms(problem, chain)] == [AS_ASKED]


SCALED_ROWS = (
    (pq.Eltwise("relu"), pq.Sum(), pq.Binary("mul", pq.Leaf("rows", "f32", "per_row"))),
    (
        pq.Sum(),
        pq.Binary("add", pq.Leaf("rows", "s8", "per_row")),
        pq.Sum(2.0),
        pq.Clip(-90.0, 90.0),
    ),
)


@pytest.mark.parametrize("dst", ["u8", "s8", "s32", "f32"])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("steps", SCALED_ROWS)
def test_rows_are_scaled_after_what_is_left_over(
    steps: tuple[Any, ...], batched: bool, dst: str
) -> None:
    """In an operator and in a layer: the second sum, or any behind a relu on AVX2, is left over."""
    q, code = pq.QParams(1.0, 0, "u8"), {"u8": "u1", "s8": "i1", "s32": "i4", "f32": "f4"}[dst]
    lead = (2,) if batched else ()
    src = RNG.integers(0, 9, (*lead, 5, 64)).astype(np.uint8)
    wei = RNG.integers(-4, 5, (*lead, 64, 24)).astype(np.int8)
    residual = RNG.integers(0, 50, (*lead, 5, 24)).astype(code)
    leaf = next(step.operand for step in steps if isinstance(step, pq.Binary))
    assert isinstance(leaf, pq.Leaf)
    rows = np.array([1, 2, -1, 3, 0], np.dtype("f4" if leaf.dtype == "f32" else "i1"))
    chain = pq.Chain(*steps)
    wanted = evaluate(
        chain,
        src.astype(np.float64) @ wei.astype(np.float64),
        axis=-1,
        dst_before=residual.astype(np.float64),
        operands={"rows": rows.astype(np.float64)},
    )
    # Two dimensions with a value for each row are a reference loop where all of it is carried.
    more: dict[str, Any] = {"dst": dst, "post": chain, "allow_reference": not batched}
    product = pq.MatMul(wei, src_q=q, wei_q=pq.QParams(1.0, 0, "s8"), **more)
    got = product(src, residual=residual, rows=rows)
    np.testing.assert_array_equal(got, convert(wanted, dst))
    fq = pq.FakeQuantize(0.0, 255.0, 0.0, 255.0), pq.FakeQuantize(-127.0, 127.0, -127.0, 127.0, 255)
    layer = pq.compose_layer(
        pq.primitive.MatMulProblem.of(src.shape, wei.shape, dst=dst),
        wei.astype(np.float64),
        src_fq=fq[0],
        wei_fq=fq[1],
        chain=chain,
        process=runtime.facts(),
    )
    ready = pq.prepare_layer(layer, allow_reference=not batched)
    got = ready(src, residual=residual, rows=rows)
    np.testing.assert_array_equal(got, convert(wanted, dst))


KINDS: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...]]] = {
    "matmul": (pq.MatMul, (64, 24), (5, 64)),
    "one row": (pq.MatMul, (64, 24), (1, 64)),
    "batched": (pq.MatMul, (64, 24), (2, 3, 64)),
    "batch like an image": (pq.MatMul, (64, 24), (1, 24, 1, 64)),
    "inner product": (pq.InnerProduct, (24, 64), (5, 64)),
    "square": (pq.InnerProduct, (32, 32), (5, 32)),
}
POSTS = {
    "relu": RELU,
    "sum": pq.Chain(pq.Sum(1.0), pq.Eltwise("relu")),
    "leaf": pq.Chain(pq.Binary("add", pq.Leaf("r", "f32")), pq.Round()),
}


@pytest.mark.parametrize("points", [(0, 0), (9, 3)])
@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("kind", KINDS)
def test_it_gives_the_bits_of_what_was_asked(kind: str, post: str, points: tuple[int, int]) -> None:
    make, wei_dims, dims = KINDS[kind]
    axis = -1 if make is pq.MatMul else 0
    channels = wei_dims[axis]
    operator = make(
        RNG.integers(-60, 61, wei_dims).astype(np.int8),
        RNG.normal(0, 30, channels).astype(np.float32),
        src_q=pq.QParams(0.0173, points[0], "u8"),
        wei_q=pq.QParams(RNG.uniform(1e-3, 3e-3, channels), np.zeros(channels, int), "s8", axis),
        dst_q=pq.QParams(0.731, points[1], "u8"),
        post=POSTS[post],
    )
    problem = operator._problem(dims, "u8")
    wei = operator._wei_of(problem)
    layer = Asking(problem, wei, operator.weights, operator.bias, operator.settings, {})
    asked, planned = choose(layer, LEVELS[2:]), operator.prepare(dims)
    assert planned.form.is_image is HERE
    assert any(WHY in note for note in planned.notes) is HERE
    src = RNG.integers(0, 256, dims).astype(np.uint8)
    given: dict[str, Any] = {}
    if post == "sum":
        given["residual"] = RNG.integers(0, 99, asked.dst.dims).astype(np.uint8)
    elif post == "leaf":
        given["r"] = RNG.normal(0, 30, asked.dst.dims).astype(np.float32)
    expected = asked(src, **given)
    assert len(np.unique(expected)) > 5
    np.testing.assert_array_equal(operator(src, **given), expected)
    out = np.zeros_like(expected)
    assert operator(src, out=out, **given) is out
    np.testing.assert_array_equal(out, expected)
    if post == "sum":
        out[...] = given["residual"]
        assert frames(lambda: operator(src, out=out)) == []
        np.testing.assert_array_equal(out, expected)
        assert frames(lambda: operator(src, **given)) == []
    if not given:
        assert frames(lambda: operator(src, out=out)) == []


@pytest.mark.parametrize("dtype", ["u8s8u8", "f32"])
@pytest.mark.parametrize("text", ["matmul 5x64 64x24", "ip 5x64 24x64", "matmul 2x5x64 2x64x24"])
def test_what_operators_run_is_measured(text: str, dtype: str) -> None:
    case = Case(Shape.parse(text), Precision.parse(dtype))
    sample = Sample.of(case.shape, with_residual=False)
    is_image = HERE and case.precision.is_int8 and not case.shape.has_two_sources
    assert Trial.of(case, sample).way.form.is_image is is_image


@pytest.mark.skipif(not HERE, reason="VNNI, or AVX512: products run as they were asked")
def test_inspection_tells_what_runs_and_copies_nothing() -> None:
    one = pq.QParams(1.0, 0, "u8")
    operator = pq.MatMul(np.ones((64, 24), np.int8), src_q=one, wei_q=pq.QParams(1.0, 0, "s8"))
    found = pq.inspect(operator, (5, 64))
    assert found.problem.startswith("convolution")
    assert [copy.tensor for copy in found.reorders] == ["wei"]
    assert found.macs == 5 * 64 * 24
    assert any(WHY in note for note in found.notes)


def test_weights_are_packed_once_for_all_sources_of_a_rank() -> None:
    one = pq.QParams(1.0, 0, "u8")
    operator = pq.MatMul(np.ones((64, 24), np.int8), src_q=one, wei_q=pq.QParams(1.0, 0, "s8"))
    sizes = set()
    for rows in (5, 6, 7, 1):
        operator.prepare((rows, 64))
        sizes.add(operator.wei_bytes)
    assert len(sizes) <= 2  # the library may like another layout for one row


@pytest.mark.skipif(not HERE, reason="VNNI, or AVX512: products run as they were asked")
def test_weights_that_only_gemm_sums_right_stay_with_gemm() -> None:
    """Of s8 sources the convolution halves the weights: odd ones would lose a bit."""
    one = pq.QParams(1.0, 0, "s8")
    src = RNG.integers(-128, 128, (5, 8)).astype(np.int8)
    for odd in (0, 1):
        wei = 2 * RNG.integers(-3, 4, (8, 4)).astype(np.int8) + np.int8(odd)
        operator = pq.MatMul(wei, src_q=one, wei_q=one)
        wanted = src.astype(np.float32) @ wei.astype(np.float32)
        np.testing.assert_array_equal(operator(src), wanted)
