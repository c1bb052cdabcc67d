"""Calibrated attention with masks, of which no codes are made: beside its formula in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

from onnx import TensorProto, helper, numpy_helper

import pyonednn_q as pq

Array = np.ndarray[Any, Any]

WIDTH, LENGTH, LEAST = 32, 12, np.finfo(np.float32).min
RNG = np.random.default_rng(7)
WEIGHTS = {
    name: (RNG.normal(0, size, (WIDTH, WIDTH)) / np.sqrt(WIDTH)).astype(np.float32)
    for name, size in {"query": 1.5, "key": 1.5, "value": 1.0, "out": 1.0}.items()
}
TOKENS = RNG.normal(size=(4, LENGTH, WIDTH)).astype(np.float32)
CAUSAL = np.tril(np.ones((LENGTH, LENGTH), bool))

# Nodes that make masked scores of scores, and of a mask of int64 that is 0 where tokens are none.
PLAIN = "none"
MASKS: dict[str, tuple[list[tuple[str, list[str], str, dict[str, Any]]], dict[str, Array]]] = {
    "added": (
        [
            ("Cast", ["mask"], "real", {"to": TensorProto.FLOAT}),
            ("Sub", ["one", "real"], "left", {}),
            ("Mul", ["left", "least"], "low", {}),
            ("Unsqueeze", ["low", "axis"], "wide", {}),
            ("Add", ["scores", "wide"], "masked", {}),
        ],
        {"one": np.float32(1), "least": np.float32(LEAST), "axis": np.array([1])},
    ),
    "chosen": (
        [
            ("Cast", ["mask"], "is", {"to": TensorProto.BOOL}),
            ("Unsqueeze", ["is", "axis"], "wide", {}),
            ("Where", ["wide", "scores", "least"], "masked", {}),
        ],
        {"least": np.float32(-np.inf), "axis": np.array([1])},
    ),
    "causal": (
        [("Add", ["scores", "low"], "masked", {})],
        {"low": np.where(CAUSAL, 0, -100).astype(np.float32)},
    ),
}
# Nothing; and numbers that every token adds, as of its place.
OTHERS: dict[str, Any] = {
    PLAIN: ([], {}),
    "near": (
        [("Add", ["scores", "near"], "masked", {})],
        {"near": RNG.normal(size=(LENGTH, LENGTH)).astype(np.float32)},
    ),
}


def attention(kind: str) -> pq.graph.Graph:
    nodes, constants = {**MASKS, **OTHERS}[kind]
    source = "masked" if nodes else "scores"
    parts: list[tuple[str, list[str], str, dict[str, Any]]] = [
        *(("MatMul", ["x", name], name[0], {}) for name in ("query", "key", "value")),
        ("Transpose", ["k"], "turned", {"perm": [0, 2, 1]}),
        ("MatMul", ["q", "turned"], "scores", {}),
        *nodes,
        ("Softmax", [source], "shares", {"axis": -1}),
        ("MatMul", ["shares", "v"], "mixed", {}),
        ("MatMul", ["mixed", "out"], "y", {}),
    ]
    made = [helper.make_node(op, reads, [result], **of) for op, reads, result, of in parts]
    known = {**WEIGHTS, **constants}
    tensors = [numpy_helper.from_array(np.asarray(each), name) for name, each in known.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", LENGTH, WIDTH])]
    if any("mask" in reads for _, reads, *_ in nodes):
        inputs.append(helper.make_tensor_value_info("mask", TensorProto.INT64, ["n", LENGTH]))
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", LENGTH, WIDTH])]
    graph = helper.make_graph(made, "attention", inputs, outputs, tensors)
    opset = helper.make_opsetid("", 17)
    return pq.onnx.load(helper.make_model(graph, opset_imports=[opset], ir_version=8))


def drawn(kind: str, tokens: int) -> dict[str, Array]:
    """Return a batch with so many tokens; always the same, as ranges are not what is tested."""
    if kind in {"causal", *OTHERS}:
        return {"x": TOKENS}
    return {"x": TOKENS, "mask": np.tile(np.arange(LENGTH) < tokens, (4, 1)).astype(np.int64)}


def formula(kind: str, batch: dict[str, Array]) -> Array:
    query, key, value = (batch["x"] @ WEIGHTS[name] for name in ("query", "key", "value"))
    scores = query.astype(np.float64) @ key.swapaxes(1, 2)
    kept = batch["mask"][:, np.newaxis] > 0 if "mask" in batch else CAUSAL | (kind == PLAIN)
    shares = np.where(kept, np.exp(scores - scores.max(-1, keepdims=True)), 0)
    shares /= shares.sum(-1, keepdims=True)
    result: Array = shares @ value @ WEIGHTS["out"]
    return result


def sqnr(kind: str, model: pq.onnx.Model, batch: dict[str, Array]) -> float:
    right = formula(kind, batch)
    error = model.run(batch)["y"] - right
    return 10 * float(np.log10(np.square(right).mean() / np.square(error).mean()))


@pytest.fixture(scope="module")
def plain() -> float:
    """Return what 8 bits leave of attention without a mask, in dB."""
    model = pq.calibrate(attention(PLAIN), [drawn(PLAIN, LENGTH)]).model()
    return sqnr(PLAIN, model, drawn(PLAIN, LENGTH))


@pytest.mark.parametrize("seen", [(LENGTH,), (7,), (LENGTH, 7)], ids=["full", "padded", "both"])
@pytest.mark.parametrize("kind", MASKS)
def test_masks_are_kept_whatever_was_seen_of_them(
    kind: str, seen: tuple[int, ...], plain: float
) -> None:
    """The error is at most twice that without a mask; with codes of masks it is ten times that."""
    found = pq.calibrate(attention(kind), [drawn(kind, tokens) for tokens in seen])
    assert all(np.abs(ends).max() < 1e3 for ends in found.ranges.values())
    model = found.model()
    for tokens in (LENGTH, 7, 3):
        assert sqnr(kind, model, drawn(kind, tokens)) > plain - 6
    whys = [node.how for node in model.nodes]
    assert sum(each.startswith("INT8") for each in whys) == len(WEIGHTS)


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_no_mask_stays_in_codes(kind: str) -> None:
    batch = drawn(kind, LENGTH)
    model = pq.calibrate(attention(kind), [batch]).model()
    model.run(batch)
    how = {part.operator: node.how for node in model.nodes for part in node.parts}
    assert how["Softmax"] == "codes computed"
