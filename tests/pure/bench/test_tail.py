"""Tails: a name is a chain, and what is stored is worth what the chain says."""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q import dtypes
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.tail import ADDED, WORDS, Tail, residual_scale
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.steps import Binary, Eltwise, PRelu, Sum

CHANNELS = 16
NAMES = ["none", "relu", "fq_u8", "fq_s8", "fq_u8_per_channel", "sum_relu_fq", "gelu_tanh_fq",
         "mul_add_relu6_fq_per_channel", "prelu_fq", "residual_relu"]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none", ()),
        ("relu6", ("relu6",)),
        ("leaky_relu_fq", ("leaky_relu", "fq")),
        ("sum_relu_fq_u8_per_channel", ("sum", "relu", "fq_u8_per_channel")),
        ("fq_relu_fq_per_channel", ("fq", "relu", "fq_per_channel")),
        ("gelu_tanh_tanh", ("gelu_tanh", "tanh")),
    ],
)
def test_words(name: str, words: tuple[str, ...]) -> None:
    assert Tail(name).words == words


@pytest.mark.parametrize("word", WORDS)
def test_every_word_stands_alone(word: str) -> None:
    assert Tail(word).words == (word,)
    assert len(Tail(word).ending(CHANNELS, Precision.parse("u8s8u8")).chain) >= 1


@pytest.mark.parametrize("name", ["", "Relu", "relu_", "relu__fq", "fq_u4", "relu7"])
def test_unknown_words_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="none"):
        Tail(name)


def test_floats_run_the_tail_without_its_quantization() -> None:
    steps = Tail("sum_relu_fq").ending(CHANNELS, Precision.parse("bf16")).chain.steps
    assert steps == (Sum(1.0), Eltwise("relu"))


def test_constants_are_per_channel_where_the_word_says_so() -> None:
    ending = Tail("mul_prelu").ending(CHANNELS, Precision.parse("u8s8u8"))
    mul, prelu = ending.chain.steps
    assert isinstance(mul, Binary)
    assert isinstance(prelu, PRelu)
    assert (mul.channels, prelu.channels) == (CHANNELS, CHANNELS)


@pytest.mark.parametrize("dtype", ["u8s8u8", "u8s8s8", "s8s8s8", "u8s8s32", "u8s8f32"])
@pytest.mark.parametrize("name", NAMES)
def test_stored_values_are_worth_what_the_float_chain_gives(name: str, dtype: str) -> None:
    precision = Precision.parse(dtype)
    rng = np.random.default_rng(0)
    x = np.clip(rng.standard_normal((500, CHANNELS)), -3, 3)
    residual = np.minimum(np.abs(rng.standard_normal(x.shape)), 3)
    ending = Tail(name).ending(CHANNELS, precision)
    exact = Tail(name).ending(CHANNELS, Precision.parse("f32"))
    wanted = evaluate(exact.chain, x, dst_before=residual, operands={ADDED: residual})

    stored_before = residual / residual_scale(precision.dst)
    if dtypes.is_integer(precision.dst):
        stored_before = np.rint(stored_before)
    real = evaluate(ending.chain, x, dst_before=stored_before, operands={ADDED: residual})
    stored = real / ending.dst_scale + ending.dst_zero_point
    if dtypes.is_integer(precision.dst):
        stored = np.clip(np.rint(stored), dtypes.qmin(precision.dst), dtypes.qmax(precision.dst))
    worth = stored * ending.scale.values() + ending.shift.values()

    # Half a level of the residual, of the chain's own quantization, and of the store.
    level = max(ending.scale.greatest, residual_scale(precision.dst) if "sum" in name else 0.0)
    levels = 1.5 if "fq" in name and precision.dst in {"s32", "f32"} else 1.01
    step = max(level, 8.0 * 2 / 255) if levels == 1.5 else level
    inside = np.abs(wanted - worth) <= levels * step + 1e-9
    # Per channel, some ranges are narrower than the values: those saturate.
    assert inside.mean() > (0.97 if "per_channel" in name else 0.9999)
