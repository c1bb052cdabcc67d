"""MultiHeadAttention and Attention of onnxruntime, as models of one node, beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.errors import UnsupportedError

Array = np.ndarray[Any, Any]
Inputs = dict[str, Array | None]
_NUMBERS = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32}

RNG = np.random.default_rng(0)
B, S, L, P, HEADS, DEPTH, WIDTH = 2, 5, 7, 3, 4, 16, 12


def normal(*dims: int) -> Array:
    return RNG.standard_normal(dims).astype(np.float32)


def model_of(
    kind: str, inputs: Inputs, outputs: list[str], constants: tuple[str, ...] = (), **told: Any
) -> tuple[Any, dict[str, Array]]:
    """Return a model of one node, and what is fed to it."""
    names = [name if value is not None else "" for name, value in inputs.items()]
    told = {"num_heads": HEADS, **told}
    node = helper.make_node(kind, names, outputs, "node", domain="com.microsoft", **told)
    known = {name: value for name, value in inputs.items() if value is not None}
    fed = {name: value for name, value in known.items() if name not in constants}
    values = [
        helper.make_tensor_value_info(name, _NUMBERS[each.dtype.name], each.shape)
        for name, each in fed.items()
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    held = [numpy_helper.from_array(known[name], name) for name in constants]
    graph = helper.make_graph([node], "g", values, results, held)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), fed


def compare(model: Any, fed: dict[str, Array]) -> Any:
    """Compare all results of a model, and return ours as it is loaded."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_outputs()]
    theirs = dict(zip(names, session.run(None, fed), strict=True))
    loaded = pq.load(model)
    ours = loaded.run(fed)
    for name, real in theirs.items():
        assert ours[name].shape == real.shape
        assert np.abs(ours[name] - real).max() <= 2e-6 * max(1.0, np.abs(real).max())
    return loaded


def padding(keys: int, *dims: int) -> Array:
    mask = np.ones((*dims, keys), np.int32)
    mask[0, ..., -2:] = 0
    return mask


HEADED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "scale": ({}, {"scale": 0.4}),
    "causal": ({"keys": S}, {"unidirectional": 1}),
    "bias": ({"bias": normal(HEADS * (2 * DEPTH + WIDTH))}, {}),
    "padding": ({"padding": padding(L, B)}, {}),
    "another low": ({"padding": padding(L, B)}, {"mask_filter_value": -1.5}),
    "padding of rows": ({"padding": padding(L, B, S)}, {}),
    "lengths": ({"padding": np.array([5, 7], np.int32)}, {}),
    "lengths and bias": (
        {"padding": np.array([5, 7], np.int32), "bias": normal(HEADS * (2 * DEPTH + WIDTH))},
        {},
    ),
    "more": ({"more": normal(B, HEADS, S, L)}, {}),
    "more of all": ({"more": normal(1, 1, S, L), "padding": padding(L, B)}, {}),
    "past": ({"past": P}, {}),
    "causal past": ({"past": P, "keys": S}, {"unidirectional": 1}),
    "padded past": (
        {"past": P, "padding": padding(L + P, B), "more": normal(1, HEADS, S, L + P)},
        {},
    ),
    "heads": ({"is_crossed": True}, {}),
    "padded heads": ({"is_crossed": True, "padding": padding(L, B)}, {}),
}


@pytest.mark.parametrize("name", HEADED)
def test_attention_of_heads(name: str) -> None:
    parts, told = HEADED[name]
    keys, past = parts.get("keys", L), parts.get("past", 0)
    width = DEPTH if past else WIDTH  # theirs takes no others behind a past
    inputs: Inputs = {
        "q": normal(B, S, HEADS * DEPTH),
        "k": normal(B, keys, HEADS * DEPTH),
        "v": normal(B, keys, HEADS * width),
        **{each: parts.get(each) for each in ("bias", "padding", "more")},
        "past_k": normal(B, HEADS, past, DEPTH) if past else None,
        "past_v": normal(B, HEADS, past, width) if past else None,
    }
    if parts.get("is_crossed"):
        inputs |= {"k": normal(B, HEADS, L, DEPTH), "v": normal(B, HEADS, L, DEPTH)}
    constants = ("bias",) if "bias" in parts else ()
    outputs = ["y", "present_k", "present_v"] if past else ["y"]
    loaded = compare(*model_of("MultiHeadAttention", inputs, outputs, constants, **told))
    assert "floats" in {node.how for node in loaded.nodes}


ONE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "causal": ({}, {"unidirectional": 1}),
    "sizes": ({}, {"qkv_hidden_sizes": [64, 64, 48]}),
    "lengths": ({"mask": np.array([5, 3], np.int32)}, {}),
    "padding": ({"mask": padding(S, B)}, {"scale": 0.2}),
    "past": ({"past": P}, {"unidirectional": 1}),
    "padded past": ({"past": P, "mask": padding(S + P, B)}, {"unidirectional": 1}),
    "more": ({"more": normal(B, HEADS, S, S)}, {}),
}


@pytest.mark.parametrize("name", ONE)
def test_attention_of_one_source(name: str) -> None:
    parts, told = ONE[name]
    columns, past = sum(told.get("qkv_hidden_sizes", [64] * 3)), parts.get("past", 0)
    inputs: Inputs = {
        "x": normal(B, S, 48),
        "weights": normal(48, columns) / np.float32(7),
        "bias": normal(columns),
        "mask": parts.get("mask"),
        "past": normal(2, B, HEADS, past, 16) if past else None,
        "more": parts.get("more"),
    }
    outputs = ["y", "present"] if past else ["y"]
    compare(*model_of("Attention", inputs, outputs, ("weights", "bias"), **told))


def test_masks_that_are_not_known_are_refused_by_name() -> None:
    """Of ends and starts of sequences, which onnxruntime has for GPUs alone."""
    inputs: Inputs = {name: normal(B, S, 64) for name in "qkv"}
    inputs |= {"bias": normal(192), "padding": np.zeros(3 * B + 2, np.int32)}
    model, fed = model_of("MultiHeadAttention", inputs, ["y"], ("bias",))
    with pytest.raises(UnsupportedError, match="MultiHeadAttention"):
        pq.load(model).run(fed)


def test_what_is_not_known_is_refused_by_name() -> None:
    inputs: Inputs = {"x": normal(B, S, 48), "weights": normal(48, 192), "bias": normal(192)}
    model, fed = model_of("Attention", inputs, ["y"], ("weights", "bias"), do_rotary=1)
    with pytest.raises(UnsupportedError, match="Attention"):
        pq.load(model).run(fed)
