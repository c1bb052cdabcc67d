"""What an error of a data type says would do is done, and is then taken."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import DTypeError

CODES: dict[str, Any] = {"src_q": pq.QParams(0.5, 3, "u8"), "wei_q": pq.QParams(0.25, 0, "s8")}
OTHERS = [
    *("int16", "uint16", "int32", "uint32", "int64", "uint64", "bool", "longdouble"),
    *(">i2", ">i4", ">i8", ">f2", ">f4", ">f8", "float16", "float64", "int8", "uint8", "S1"),
]
MAKERS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "conv": (pq.Conv, (4, 8, 3, 3), (1, 8, 6, 6)),
    "deconv": (pq.Deconv, (4, 8, 3, 3), (1, 8, 6, 6)),
    "inner_product": (pq.InnerProduct, (4, 8), (2, 8)),
    "matmul": (pq.MatMul, (8, 4), (2, 8)),
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "conv": pq.conv,
    "deconv": pq.deconv,
    "inner_product": pq.inner_product,
    "matmul": pq.matmul,
}


def as_advised(array: Any, advice: str) -> Any:
    """Follow the first thing that a message says would do."""
    _, _, wanted = advice.partition("; wanted ")
    match = re.search(r"astype\('(\w+)'\)|\b(u?int(?:8|16|32|64)|float(?:16|32))\b", wanted)
    if match is not None:
        return array.astype(match[1] or match[2])
    match = re.search(r"\b(u8|s8|f32|f16)\b", wanted)
    assert match is not None, advice
    return array.astype({"u8": "u1", "s8": "i1", "f32": "f4", "f16": "f2"}[match[1]])


def taken_as_advised(call: Callable[[Any], object], array: Any) -> int:
    """Call with an array; where its type is refused, with what the message says. Count these."""
    try:
        call(array)
    except DTypeError as error:
        call(as_advised(array, str(error)))
        return 1
    except pq.UnsupportedError:  # a type that the library knows, and has no kernel for here
        assert array.dtype == np.float16
    return 0


@pytest.mark.parametrize("options", [{}, CODES], ids=["floats", "codes"])
@pytest.mark.parametrize("kind", MAKERS)
def test_weights_sources_and_biases_are_taken_once_converted(
    kind: str, options: dict[str, Any]
) -> None:
    make, wei_dims, src_dims = MAKERS[kind]
    call = FUNCTIONS[kind]
    wei = np.ones(wei_dims, np.int8 if options else np.float32)
    src = np.ones(src_dims, np.uint8 if options else np.float32)
    operator, refused = make(wei, **options), 0
    ones = [np.ones(wei_dims).astype(name) for name in OTHERS]
    refused += sum(taken_as_advised(lambda w: make(w, **options)(src), w) for w in ones)
    refused += sum(taken_as_advised(lambda w: call(src, w, **options), w) for w in ones)
    ones = [np.ones(src_dims).astype(name) for name in OTHERS]
    refused += sum(taken_as_advised(operator, x) for x in ones)
    ones = [np.ones(4).astype(name) for name in OTHERS]
    refused += sum(taken_as_advised(lambda b: make(wei, b, **options)(src), b) for b in ones)
    assert refused > 3 * len(OTHERS)


@pytest.mark.parametrize("kind", MAKERS)
def test_float_layers_say_what_they_quantize(kind: str) -> None:
    make: Any = MAKERS[kind][0]
    _, wei_dims, src_dims = MAKERS[kind]
    src = np.ones(src_dims, np.float32)

    def layer(wei: Any, bias: Any = None) -> Any:
        return make.from_float(wei, bias, src_q=pq.QParams(0.5, 3, "u8"), wei_levels=129)(src)

    weights = [np.ones(wei_dims).astype(name) for name in OTHERS]
    assert sum(taken_as_advised(layer, wei) for wei in weights) >= 12
    biases = [np.ones(4).astype(name) for name in OTHERS]
    assert sum(taken_as_advised(lambda b: layer(weights[-5].astype("f4"), b), b) for b in biases)


def test_prepared_primitives_say_what_they_take() -> None:
    problem = pq.primitive.MatMulProblem.of((2, 8), (8, 4))

    def run(wei: Any) -> Any:
        return pq.prepare(problem, wei=wei)(np.ones((2, 8), np.uint8))

    weights = [np.ones((8, 4)).astype(name) for name in OTHERS]
    assert sum(taken_as_advised(run, wei) for wei in weights) == len(OTHERS) - 1  # int8
