"""A description becomes the problem, the facts and the chain that its keys say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q import dtypes
from pyonednn_q.errors import UnsupportedError
from pyonednn_q.explain import Description, read
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Chain
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem

CONV: dict[str, Any] = {
    "op": "convolution",
    "src": {"dims": [1, 4, 8, 8]},
    "wei": {"dims": [6, 4, 3, 3]},
}


def layer(**changes: object) -> Description:
    return read({**CONV, **changes})


def store(fake_quantize: dict[str, Any], dtype: str) -> Description:
    return layer(dst={"dtype": dtype, "fake_quantize": fake_quantize})


def test_nothing_but_shapes() -> None:
    bare = layer()
    assert bare.problem == ConvProblem.of((1, 4, 8, 8), (6, 4, 3, 3))
    assert (bare.chain, bare.reading, bare.title) == (Chain(), Chain(), "")
    assert (bare.policy, bare.scales, bare.exact_rounding) == ("real", "folded", False)
    assert bare.facts.wei_has_min
    assert not bare.facts.has_bias
    assert bare.facts.process is None


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ({"padding": 1}, {"padding": 1}),
        ({"padding": [1, 2], "stride": [2, 1]}, {"padding": (1, 2), "stride": (2, 1)}),
        ({"padding": [[0, 1], [1, 2]]}, {"padding": ((0, 1), (1, 2))}),
        ({"dilation": 2}, {"dilation": 2}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [ConvProblem, DeconvProblem])
def test_windows(kind: Any, keys: dict[str, Any], options: dict[str, Any]) -> None:
    found = layer(op=kind.kind, **keys).problem
    assert found == kind.of((1, 4, 8, 8), (6, 4, 3, 3), **options)


@pytest.mark.parametrize("wei", [[6, 2, 3, 3], [2, 3, 2, 3, 3]])
def test_groups_are_said_by_number_or_by_dims(wei: list[int]) -> None:
    found = layer(groups=2, wei={"dims": wei})
    assert found.problem == ConvProblem.of((1, 4, 8, 8), (2, 3, 2, 3, 3))
    assert found.facts.channels == 6


def test_dense_primitives() -> None:
    product = read({"op": "inner_product", "src": {"dims": [2, 3, 4]}, "wei": {"dims": [5, 3, 4]}})
    assert product.problem == InnerProductProblem.of((2, 3, 4), 5)
    types = {"src": {"dims": [2, 3, 4], "dtype": "s8"}, "wei": {"dims": [2, 4, 5]}, "dst": "f32"}
    matmul = read({"op": "matmul", "bias": 1, **types})
    assert matmul.problem == MatMulProblem.of((2, 3, 4), (2, 4, 5), src="s8", dst="f32", bias="f32")
    assert matmul.facts.channels == 5


def test_scales_and_zero_points() -> None:
    facts = read(
        {
            "op": "matmul",
            "src": {"dims": [2, 3], "scale": 0.5, "zero_point": 3},
            "wei": {"dims": [3, 4], "scale": [1, 2, 3, 1], "zero_point": 1, "has_min": False},
            "dst": {"scale": 0.25, "zero_point": 9},
        }
    ).facts  # fmt: skip
    assert (facts.src_scale, facts.src_zero_point) == (0.5, 3)
    assert (facts.wei_scale, facts.wei_zero_point) == (Vec([1, 2, 3, 1]), 1)
    assert (facts.dst_scale, facts.dst_zero_point, facts.wei_has_min) == (0.25, 9, False)


def test_biases() -> None:
    values = [1.0, 2, 3, 4, 5, 6]
    for told in (values, {"values": values}, {"values": values, "unit": "acc"}):
        found = layer(bias=told).facts
        assert found.bias == Vec(values)
        assert found.bias_in_acc == (isinstance(told, dict) and "unit" in told)
    assert layer(bias={"cycle": [1, 2]}).facts.bias == Vec([1, 2, 1, 2, 1, 2])
    assert not layer(bias=False).facts.has_bias
    for later in (True, {"unit": "acc"}):
        assert layer(bias=later).facts.bias_later


RANGES = [
    {"input_low": 0, "input_high": 2.5},
    {"input_low": -1, "input_high": {"cycle": [2, 3, 5]}},
    {"input_low": -1, "input_high": 5, "output_low": -5, "output_high": 1},
    {"input_low": -1, "input_high": 1, "output_low": 1, "output_high": -1},
    {"symmetric": 1.27},
    {"symmetric": {"cycle": [1, 2]}, "levels": 255},
    {"symmetric": 3, "levels": 16},
    {"input_low": 0, "input_high": 1, "output_low": 2, "output_high": 2},
]


@pytest.mark.parametrize("dtype", ["u8", "s8", "s32", "f32", "bf16"])
@pytest.mark.parametrize("given", RANGES, ids=str)
def test_what_is_stored_and_read_again_is_the_fake_quantize(
    given: dict[str, Any], dtype: str
) -> None:
    """Whole numbers within the type, which its reading turns into what the definition gives."""
    found = store(given, dtype)
    ends = read({**CONV, "dst": "f32", "chain": [{"step": "fake_quantize", **given}]}).chain
    x = np.linspace(-7.0, 7.0, 6 * 997).reshape(1, 6, 997)
    kept = evaluate(found.chain, x)
    if dtypes.is_integer(dtype):
        np.testing.assert_array_equal(kept, np.rint(kept))
        assert dtypes.qmin(dtype) <= kept.min() <= kept.max() <= dtypes.qmax(dtype)
    off = np.abs(evaluate(found.reading, kept) - evaluate(ends, x))
    assert off.max() <= 4 * np.spacing(7.0)  # two folds of constants up to 7 in float64


def test_levels_that_are_the_type_are_stored_as_they_are() -> None:
    """A FakeQuantize that only quantizes needs no reading; 255 levels of s8 stay symmetric."""
    plain = {"input_low": 0, "input_high": 1, "output_low": 0, "output_high": 255}
    assert store(plain, "u8").chain == FakeQuantize(0, 1, 0, 255).chain()
    assert store(plain, "u8").reading == Chain()
    assert len(store(plain, "s8").reading) == 1
    narrow = {"symmetric": 1.27, "levels": 255, "output_low": -127, "output_high": 127}
    assert store(narrow, "s8").chain == FakeQuantize(-1.27, 1.27, -127, 127, 255).chain()
    bits = {"input_low": 0, "input_high": 0, "output_high": 1, "output_low": 0, "levels": 2}
    assert str(store(bits, "u8").chain) == "x > 0"


def test_a_zero_point_that_is_whole_reads_as_whole() -> None:
    assert str(store({"symmetric": 3.1}, "s8").reading).endswith("*x")
    assert str(layer(dst={"scale": 0.5, "zero_point": 3}).reading) == "0.5*x - 1.5"


def test_where_it_holds() -> None:
    process = Facts((3, 7, 2), InstructionSet("AVX2"), "OMP")
    assert layer().on(process).plan().facts.process == process
    assert layer().on(process).on(None) == layer()


def test_the_word_of_the_description_counts() -> None:
    fast = layer(policy="fast", scales="separate", src={"dims": [1, 4, 8, 8], "scale": 0.5})
    plan = fast.plan()
    assert plan.policy == "fast"
    assert dict(plan.constants)["src_scale"] == Vec(0.5)
    exact = layer(exact_rounding=True, dst={"zero_point": 3})
    assert exact.plan().exact_rounding


def test_strict_refuses_what_is_left_over() -> None:
    sums = [{"step": "sum", "scale": 2}, "relu", {"step": "sum", "scale": 3}]
    two = layer(chain=sums, dst="f32")
    assert not two.plan().is_whole
    with pytest.raises(UnsupportedError, match="sums_that_differ"):
        two.plan(strict=True)
