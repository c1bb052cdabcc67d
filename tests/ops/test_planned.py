"""Plans ready to run: what a primitive leaves over, residuals, operands, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.composer import NO_RULES, compose
from pyonednn_q.errors import AliasError, ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.steps import Affine, Binary, Chain, Eltwise, Leaf, PRelu, Round, Step, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.ops.planned import Planned, prepare_plan
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.primitive.tensor import TensorSpec
from support.oracle_numbers import numpy_dtype
from support.plans import chains
from support.plans.problems import BIAS, C, facts_of, problem
from support.plans.runs import Layer, assert_equal, assert_near

AVX2 = Facts((3, 13, 2), InstructionSet("AVX2"), "OMP")
OLD = Facts((3, 7, 2), InstructionSet("AVX2"), "OMP")
SLOPE = np.resize([0.5, 2.0, -1.0, 1.0, 0.0], C)
ADD = np.resize([1.0, -2.5, 0.5], C)


@dataclass(frozen=True)
class Left:
    """A chain that leaves something over, and why."""

    row: str
    steps: tuple[Step | Chain, ...]
    kind: str = "convolution"
    process: Facts | None = None
    dst: tuple[str, ...] = ("u8", "s8", "s32", "f32", "bf16")
    rules: bool = True

    def chain(self) -> Chain:
        return Chain(*self.steps)


# Every row of the never-ask table that can stop a chain of steps, on the machine where it does.
LEFT = {
    "32 steps": Left("more_than_32", (Affine(-1.0, 1.0),) * 40, rules=False),
    "100 steps": Left("more_than_32", (Affine(-1.0, ADD), PRelu(SLOPE)) * 9 + (Round(),) * 60,
                      rules=False),
    "two sums": Left("sums_that_differ", (Sum(), Sum(0.5))),
    "prelu after": Left("sums_that_differ", (Sum(), Sum(0.5), PRelu(SLOPE), Affine(SLOPE, 1.0))),
    "fq after": Left("sums_that_differ", (Sum(), Sum(0.5), chains.fq(chains.STEP_PC))),
    "grouped": Left("sums_that_differ", (Sum(), Sum(-0.5), Binary("max", ADD)), "grouped"),
    "float": Left("float_sum_with_zero_point", (Sum(1.0, 3),), dst=("f32",)),
    "late": Left("late_sum", (Eltwise("relu"), Sum(0.5, 0)), "matmul", AVX2),
    "late, zero point": Left("late_sum", (Eltwise("relu"), Sum(0.5, 3), Affine(SLOPE, ADD)),
                             "batched", AVX2, ("u8", "s8", "s32")),
    "bits": Left("sum_with_dtype", (Sum(1.0, 3, "s8"),), "matmul", AVX2, ("u8",)),
    "bits of s32": Left("sum_with_dtype", (Sum(1.0, 3, "s32"),), "deconvolution", AVX2, ("f32",)),
    "inner product": Left("sum_zero_point_in_inner_product", (Sum(2.0, 3),), "inner_product", OLD,
                          ("u8", "s8", "s32")),
    "f16": Left("half_operand", (Binary("add", Leaf("r", "f16")),), process=AVX2),
    "f16 channels": Left("half_operand", (Binary("mul", Leaf("r", "f16", "per_channel")),),
                         "deconvolution", AVX2),
    "f16 number": Left("half_operand", (Binary("sub", Leaf("r", "f16", "per_tensor")), Round()),
                       "batched", AVX2),
    "rows": Left("late_sum", (Eltwise("relu"), Sum(), Binary("mul", Leaf("r", "f32", "per_row"))),
                 "batched", AVX2),
    "rows of codes": Left("sums_that_differ",
                          (Sum(), Sum(0.5), Binary("add", Leaf("r", "s8", "per_row"))), "batched"),
    "rows of a matrix": Left("sums_that_differ",
                             (Sum(), Sum(0.5), Binary("max", Leaf("r", "f32", "per_row"))),
                             "matmul"),
    "deconvolution": Left("full_operand_of_deconvolution", (Binary("add", Leaf("r", "s8")),),
                          "deconvolution", AVX2),
    "deconvolution f32": Left("full_operand_of_deconvolution",
                              (Binary("max", Leaf("r")), Affine(SLOPE)), "deconvolution", AVX2),
}  # fmt: skip
CASES = [(name, dst) for name, left in LEFT.items() for dst in left.dst]

IN_PLACE = [(name, dst) for name, dst in CASES if "sum" in LEFT[name].row and name != "bits of s32"]


def operands(chain: Chain, layer: Layer) -> dict[str, Any]:
    """Draw small whole numbers for the leaves."""
    rng = np.random.default_rng(5)
    found: dict[str, Any] = {}
    for step in chain:
        if isinstance(step, Binary) and isinstance(step.operand, Leaf):
            leaf = step.operand
            dst = layer.problem.dst.dims
            dims = {"full": dst, "per_channel": (C,), "per_row": dst[-2:-1], "per_tensor": ()}
            drawn = rng.integers(-9, 9, dims[leaf.extent])
            found[leaf.name] = np.asarray(drawn).astype(numpy_dtype(leaf.dtype))
    return found


def reads(chain: Chain, layer: Layer) -> dict[str, Any]:
    """Return the residual for a chain with a Sum, in the type that the Sum names."""
    for step in chain:
        if isinstance(step, Sum):
            dtype = step.dtype or layer.problem.dst.dtype
            return {"residual": layer.before.astype(numpy_dtype(dtype))}
    return {}


def prepared(name: str, dst: str, **more: Any) -> tuple[Layer, Any, Planned]:
    left = LEFT[name]
    layer = Layer.of(problem(left.kind, dst), seed=3)
    layer = replace(layer, operands=operands(left.chain(), layer))
    facts = facts_of(layer, **more)
    if left.process is not None:
        facts = replace(facts, process=left.process)
    rules: dict[str, Any] = {} if left.rules else {"rules": NO_RULES}
    plan = compose(left.chain(), facts, **rules)
    return layer, plan, prepare_plan(plan, layer.problem, wei=layer.wei)


@pytest.mark.parametrize(("name", "dst"), CASES)
def test_leftovers_complete_the_chain(name: str, dst: str) -> None:
    layer, plan, planned = prepared(name, dst)
    assert plan.because.startswith(LEFT[name].row)
    got = planned(layer.src, **reads(plan.chain, layer), **layer.operands)
    assert_equal(layer, plan, got)
    assert any(plan.because in note for note in planned.notes)


@pytest.mark.parametrize(("name", "dst"), IN_PLACE)
def test_a_sum_left_over_reads_out(name: str, dst: str) -> None:
    """In place, in whatever layout `out` has."""
    layer, plan, planned = prepared(name, dst)
    out = np.empty(planned.dst.dims, numpy_dtype(dst))
    for array in (out, planned.empty()):
        np.copyto(array, layer.before)
        assert planned(layer.src, out=array, **layer.operands) is array
        assert_equal(layer, plan, array)


@pytest.mark.parametrize("name", ["two sums", "late", "deconvolution", "32 steps"])
def test_leftovers_of_a_quantized_dst(name: str) -> None:
    """The store that comes after them has dst's scale and zero point."""
    layer, plan, planned = prepared(name, "u8", dst_scale=0.5, dst_zero_point=18)
    got = planned(layer.src, **reads(plan.chain, layer), **layer.operands)
    assert_equal(layer, plan, got)


def test_transcendental_leftovers() -> None:
    layer = Layer.of(problem("convolution", "u8"), seed=3)
    chain = Chain(Sum(), Sum(0.5), Eltwise("elu", 2.0), chains.fq(Vec(0.25), stored=True))
    plan = compose(chain, facts_of(layer))
    got = prepare_plan(plan, layer.problem, wei=layer.wei)(layer.src, residual=layer.before)
    assert_near(layer, plan, got)


def test_an_operand_of_dst_s_size_needs_no_size_when_it_is_left_over() -> None:
    layer = Layer.of(problem("convolution", "s8"), seed=3)
    chain = Chain(Binary("add", Leaf("r", "s8")))
    layer = replace(layer, operands=operands(chain, layer))
    plan = compose(chain, replace(facts_of(layer), dst_dims=None))
    assert "dst_dims" in plan.because
    planned = prepare_plan(plan, layer.problem, wei=layer.wei)
    assert_equal(layer, plan, planned(layer.src, **layer.operands))


@pytest.mark.parametrize("kind", ["convolution", "matmul", "deconvolution"])
def test_a_residual_is_left_as_it_is(kind: str) -> None:
    layer = Layer.of(problem(kind, "u8"), seed=3)
    plan = compose(Chain(Sum(0.5, 3)), facts_of(layer))
    planned = prepare_plan(plan, layer.problem, wei=layer.wei)
    kept = layer.before.copy()
    assert_equal(layer, plan, planned(layer.src, residual=layer.before))
    np.testing.assert_array_equal(layer.before, kept)
    out = np.empty_like(layer.before)
    assert planned(layer.src, residual=layer.before, out=out) is out
    assert_equal(layer, plan, out)
    assert planned(layer.src, out=layer.before) is layer.before
    np.testing.assert_array_equal(layer.before, out)


@pytest.mark.parametrize("kind", ["convolution", "matmul", "batched"])
def test_operands_come_by_name_or_once_for_all_calls(kind: str) -> None:
    layer = Layer.of(problem(kind, "u8"), seed=3)
    chain = Chain(
        Binary("mul", Leaf("gate", "f32", "per_channel")),
        Binary("add", Leaf("shift", "f32", "per_tensor")),
        Binary("add", Leaf("other", "s8")),
        Binary("max", Leaf("gate", "f32", "per_channel")),
    )
    layer = replace(layer, operands=operands(chain, layer))
    plan = compose(chain, facts_of(layer), strict=True)
    each = prepare_plan(plan, layer.problem, wei=layer.wei)
    assert each.leaves == ("gate", "shift", "other")
    assert_equal(layer, plan, each(layer.src, **layer.operands))
    once = {"gate": layer.operands["gate"]}
    fixed = prepare_plan(plan, layer.problem, wei=layer.wei, operands=once)
    rest = {name: layer.operands[name] for name in ("shift", "other")}
    assert_equal(layer, plan, fixed(layer.src, **rest))
    with pytest.raises(ArgumentError, match="one of shift, other"):
        fixed(layer.src, **layer.operands)


def test_a_bias_that_comes_later() -> None:
    layer = Layer.of(problem("convolution", "u8"), seed=3)
    chain = chains.chain("signed_mul_fq", "u8")
    plan = compose(chain, facts_of(layer, bias=None))
    planned = prepare_plan(plan, layer.problem, wei=layer.wei, bias=BIAS)
    assert_equal(layer, compose(chain, facts_of(layer)), planned(layer.src))


def test_an_empty_batch() -> None:
    problem_ = problem("convolution", "u8")
    empty = type(problem_).of((0, 8, 6, 5), problem_.wei.dims, padding=1, bias="f32")
    layer = Layer.of(empty, seed=3)
    for chain in (Chain(), Chain(Sum(), Sum(0.5))):
        planned = prepare_plan(compose(chain, facts_of(layer)), empty, wei=layer.wei)
        got = planned(layer.src, residual=layer.before if len(chain) else None)
        assert got.shape == empty.dst.dims


def with_operand() -> tuple[Layer, Planned]:
    layer = Layer.of(problem("convolution", "u8"), seed=3)
    chain = Chain(Binary("add", Leaf("r", "s8")), Sum())
    return layer, prepare_plan(compose(chain, facts_of(layer)), layer.problem, wei=layer.wei)


WRONG: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "no operand": (ArgumentError, "r: got nothing", {}),
    "a list": (ArgumentError, "r: got list", {"r": [1]}),
    "another type": (DTypeError, "r: got float32; wanted int8", {"r": np.zeros(1, np.float32)}),
    "another shape": (ShapeError, "r: got", {"r": np.zeros((1, C, 1, 1), np.int8)}),
    "unknown": (ArgumentError, "operands: got 's'", {"s": np.zeros(1, np.int8)}),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_operand_is_refused_by_its_name(name: str) -> None:
    layer, planned = with_operand()
    error, text, given = WRONG[name]
    with pytest.raises(error, match=text):
        planned(layer.src, residual=layer.before, **given)


def test_a_sum_needs_something_to_read() -> None:
    layer, planned = with_operand()
    r = np.zeros(layer.problem.dst.dims, np.int8)
    with pytest.raises(ArgumentError, match="residual: got None"):
        planned(layer.src, r=r)
    with pytest.raises(DTypeError, match="residual: got f32; wanted u8"):
        planned(layer.src, r=r, residual=r.astype(np.float32))
    with pytest.raises(ShapeError, match="residual"):
        planned(layer.src, r=r, residual=layer.before[:1])
    with pytest.raises(DTypeError, match="out: got"):
        planned(layer.src, r=r, residual=layer.before, out=r)


def test_nothing_reads_a_residual_without_a_sum() -> None:
    layer = Layer.of(problem("convolution", "u8"), seed=3)
    planned = prepare_plan(compose(Chain(), facts_of(layer)), layer.problem, wei=layer.wei)
    with pytest.raises(ArgumentError, match="the chain has no Sum"):
        planned(layer.src, residual=layer.before)
    with pytest.raises(ArgumentError, match="no operands"):
        planned(layer.src, r=layer.before)


def test_a_read_only_out_is_refused() -> None:
    layer, _, planned = prepared("two sums", "u8")
    out = layer.before.copy()
    out.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        planned(layer.src, out=out)


def test_an_operand_may_lie_in_out() -> None:
    """Each element is read before it is written; memory that only overlaps is refused."""
    layer = Layer.of(problem("matmul", "f32"), seed=3)
    plan = compose(Chain(Sum(), Sum(0.5), Binary("add", Leaf("r"))), facts_of(layer))
    planned = prepare_plan(plan, layer.problem, wei=layer.wei)
    memory = np.empty((8, C), np.float32)
    out = memory[:7]
    np.copyto(out, layer.before)
    expected = replace(layer, operands={"r": layer.before})
    assert_equal(expected, plan, planned(layer.src, out=out, r=out))
    with pytest.raises(AliasError):
        planned(layer.src, residual=layer.before, out=out, r=memory[1:])


def test_names_of_a_call_s_arguments_are_refused() -> None:
    layer = Layer.of(problem("convolution", "u8"), seed=3)
    plan = compose(Chain(Binary("add", Leaf("out", "s8"))), facts_of(layer))
    with pytest.raises(ArgumentError, match="a leaf called 'out'"):
        prepare_plan(plan, layer.problem, wei=layer.wei)


@pytest.mark.parametrize("name", ["src", "wei", "dst"])
def test_a_problem_of_other_types_is_refused(name: str) -> None:
    layer = Layer.of(problem("convolution", "u8"), seed=3)
    plan = compose(Chain(), facts_of(layer))
    spec: TensorSpec = getattr(layer.problem, name)
    other = replace(layer.problem, **{name: replace(spec, dtype="f32")})
    with pytest.raises(DTypeError, match=f"problem: got {name} of f32"):
        prepare_plan(plan, other, wei=layer.wei)


def test_description_tells_what_runs_after_the_primitive() -> None:
    _, plan, planned = prepared("two sums", "u8")
    text = planned.describe()
    assert str(plan) in text
    assert "binary binary_add" in text
    assert "then 4 more" in repr(planned)
