"""Operators of decoders that onnxruntime has, as models of one node, beside onnxruntime itself."""

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
Arrays = dict[str, Array]
_NUMBERS = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32}

RNG = np.random.default_rng(0)
B, S, HEADS, GROUPS, DEPTH = 2, 5, 6, 2, 16
HEADED: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": GROUPS}
RESULTS = ["y", "present_k", "present_v"]


def normal(*dims: int) -> Array:
    return RNG.standard_normal(dims).astype(np.float32)


def model_of(
    kind: str,
    inputs: dict[str, Array | None],
    outputs: list[str],
    constants: tuple[str, ...] = (),
    domain: str = "com.microsoft",
    **told: Any,
) -> tuple[Any, Arrays]:
    """Return a model of one node, and what is fed to it."""
    names = [name if value is not None else "" for name, value in inputs.items()]
    node = helper.make_node(kind, names, outputs, "node", domain=domain, **told)
    known = {name: value for name, value in inputs.items() if value is not None}
    fed = {name: value for name, value in known.items() if name not in constants}
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(name, _NUMBERS[each.dtype.name], each.shape)
            for name, each in fed.items()
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs if name],
        [numpy_helper.from_array(known[name], name) for name in constants],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), fed


def results_of(model: Any, fed: Arrays) -> Arrays:
    """Return what onnxruntime says."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, fed), strict=True))


def compare(model: Any, fed: Arrays, most: float = 2e-6) -> Any:
    """Compare all results of a model, and return ours as it is loaded."""
    theirs = results_of(model, fed)
    loaded = pq.load(model)
    ours = loaded.run(fed)
    assert ours.keys() == theirs.keys()
    for name, real in theirs.items():
        assert ours[name].shape == real.shape
        assert np.abs(ours[name] - real).max() <= most * max(1.0, np.abs(real).max())
    return loaded


@pytest.mark.parametrize("epsilon", [None, 1e-3])
def test_norms_without_a_mean(epsilon: float | None) -> None:
    told: dict[str, Any] = {} if epsilon is None else {"epsilon": epsilon}
    inputs: dict[str, Array | None] = {"x": normal(B, S, 48) * 1e-3, "gain": normal(48)}
    kind = "SimplifiedLayerNormalization"
    model, fed = model_of(kind, inputs, ["y"], ("gain",), "", axis=-1, **told)
    assert {node.how for node in compare(model, fed).nodes} == {"floats"}


def test_a_norm_in_the_domain_of_onnx_needs_no_other_domain() -> None:
    inputs: dict[str, Array | None] = {"x": normal(B, S, 48), "gain": normal(48)}
    kind = "SimplifiedLayerNormalization"
    model, fed = model_of(kind, inputs, ["y"], ("gain",), "", axis=-1)
    del model.opset_import[1]
    compare(model, fed)


@pytest.mark.parametrize("epsilon", [None, 1e-3])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("has_sum", [False, True])
@pytest.mark.parametrize("is_centered", [False, True])
def test_norms_of_sums(
    *, is_centered: bool, has_sum: bool, has_bias: bool, epsilon: float | None
) -> None:
    told: dict[str, Any] = {} if epsilon is None else {"epsilon": epsilon}
    inputs: dict[str, Array | None] = {
        "x": normal(B, S, 48) * 1e-3,
        "skip": normal(B, S, 48) * 1e-3,
        "gain": normal(48),
    }
    if is_centered:
        inputs["shift"] = normal(48)
    if has_bias:
        inputs["bias"] = normal(48)
    kind = "SkipLayerNormalization" if is_centered else "SkipSimplifiedLayerNormalization"
    constants = tuple(name for name in inputs if name not in {"x", "skip"})
    outputs = ["y", "", "", "sum"] if has_sum else ["y"]
    loaded = compare(*model_of(kind, inputs, outputs, constants, **told))
    assert {node.how for node in loaded.nodes} == {"floats"}


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("form", ["flat", "heads", "part"])
def test_rotary_embedding(form: str, interleaved: int) -> None:
    turns = np.arange(20)[:, None] / 100 ** (np.arange(DEPTH // 2) / DEPTH)
    half = DEPTH // 4 if form == "part" else DEPTH // 2
    cos, sin = (each(turns[:, :half]).astype(np.float32) for each in (np.cos, np.sin))
    dims = (B, S, HEADS * DEPTH) if form == "flat" else (B, HEADS, S, DEPTH)
    places = RNG.integers(0, 20, (B, S))
    inputs: dict[str, Array | None] = {"x": normal(*dims), "places": places}
    inputs |= {"cos": cos, "sin": sin}
    told: dict[str, Any] = {"interleaved": interleaved}
    if form == "part":
        told |= {"rotary_embedding_dim": 2 * half, "num_heads": HEADS}
    loaded = compare(*model_of("RotaryEmbedding", inputs, ["y"], ("cos", "sin"), **told))
    assert {node.how for node in loaded.nodes} == {"floats"}


def queries(
    past: int, batch: int = B, tokens: int = S, *, is_packed: bool = False
) -> dict[str, Array | None]:
    """Return the inputs of a GroupQueryAttention."""
    parts = [normal(batch, tokens, heads * DEPTH) for heads in (HEADS, GROUPS, GROUPS)]
    if is_packed:
        q, k, v = np.concatenate(parts, 2), None, None
    else:
        q, k, v = parts
    cache = (batch, GROUPS, past, DEPTH)
    angles = np.arange(40)[:, None] / 100 ** (np.arange(DEPTH // 2) / DEPTH)
    return {
        "q": q,
        "k": k,
        "v": v,
        "past_k": normal(*cache),
        "past_v": normal(*cache),
        "lengths": np.full(batch, past + tokens - 1, np.int32),
        "total": np.array(past + tokens, np.int32),
        "cos": np.cos(angles).astype(np.float32),
        "sin": np.sin(angles).astype(np.float32),
    }


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"do_rotary": 1},
        {"do_rotary": 1, "rotary_interleaved": 1},
        {"scale": 0.3},
        {"softcap": 2.0},
        {"local_window_size": 3},
        {"smooth_softmax": 1},
        {"sinks": True},
        {"bias": True, "softcap": 2.0, "local_window_size": 4},
        {"do_rotary": 1, "places": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("case", [(0, 2, 5), (7, 1, 5), (7, 2, 1)], ids=str)
def test_attention_of_groups(
    case: tuple[int, int, int], told: dict[str, Any], *, is_packed: bool
) -> None:
    inputs, told = queries(*case, is_packed=is_packed), dict(told)
    past, batch, tokens = case
    more: dict[str, Any] = {
        "places": np.arange(past, past + tokens)[None].repeat(batch, 0),
        "bias": normal(1, HEADS, tokens, past + tokens),
        "sinks": normal(HEADS),
    }
    inputs |= {name: each if told.pop(name, False) else None for name, each in more.items()}
    if not told.get("do_rotary"):
        inputs |= {"cos": None, "sin": None}
    compare(*model_of("GroupQueryAttention", inputs, RESULTS, ("total",), **HEADED, **told))


@pytest.mark.parametrize("told", [{}, {"local_window_size": 3, "do_rotary": 1}], ids=str)
def test_sequences_of_a_batch_may_be_shorter(told: dict[str, Any]) -> None:
    inputs = queries(7, 3, 1)
    lengths = np.array([7, 4, 6], np.int32)
    inputs["lengths"] = lengths
    model, fed = model_of("GroupQueryAttention", inputs, RESULTS, ("total",), **HEADED, **told)
    ours, theirs = pq.load(model).run(fed), results_of(model, fed)
    assert np.abs(ours["y"] - theirs["y"]).max() < 2e-6
    for name in RESULTS[1:]:
        for one, two, last in zip(ours[name], theirs[name], lengths, strict=True):
            assert np.abs(one - two)[:, : last + 1].max() < 2e-6


def test_prompts_of_a_batch_may_be_shorter() -> None:
    inputs = queries(0, 2, 5)
    inputs["lengths"] = np.array([4, 2], np.int32)
    model, fed = model_of("GroupQueryAttention", inputs, RESULTS, ("total",), **HEADED, do_rotary=1)
    ours, theirs = pq.load(model).run(fed), results_of(model, fed)
    for at, end in ((0, 5), (1, 3)):
        assert np.abs(ours["y"] - theirs["y"])[at, :end].max() < 2e-6


@pytest.mark.parametrize("rows", [4, 7])
@pytest.mark.parametrize("parts", [(3, 1, 1, 1, 1, 1, 1, 1), (9, 1, 6)], ids=str)
def test_a_cache_of_a_window(parts: tuple[int, ...], rows: int) -> None:
    """Rows of before, moved as tokens become too many, at each step beside onnxruntime's."""
    told: dict[str, Any] = {"sliding_window_cache": 1, "local_window_size": 4, "do_rotary": 1}
    past, end = {f"past_{n}": np.zeros((1, GROUPS, rows, DEPTH), np.float32) for n in "kv"}, 0
    for count in parts:
        inputs = queries(end, 1, count) | past
        end += count
        model, fed = model_of("GroupQueryAttention", inputs, RESULTS, ("total",), **HEADED, **told)
        ours, theirs = pq.load(model).run(fed), results_of(model, fed)
        gone = rows - 3
        held = end if end <= rows else end - gone * -(-(end - rows) // gone)
        assert np.abs(ours["y"] - theirs["y"]).max() < 2e-6
        for name in RESULTS[1:]:
            assert np.abs(ours[name] - theirs[name])[:, :, :held].max() < 2e-6
        past = {f"past_{n}": theirs[f"present_{n}"] for n in "kv"}


def test_what_is_beyond_the_definition_is_refused() -> None:
    model, _ = model_of("GroupQueryAttention", queries(7), RESULTS, ("total",), **HEADED, causal=0)
    with pytest.raises(UnsupportedError, match="causal"):
        pq.load(model)


@pytest.mark.parametrize("last", [12, 3])
def test_lengths_that_no_sequence_has_are_refused(last: int) -> None:
    inputs = queries(7) | {"lengths": np.array([11, last], np.int32)}
    model, fed = model_of("GroupQueryAttention", inputs, RESULTS, ("total",), **HEADED)
    with pytest.raises(UnsupportedError, match="where 12 are the longest"):
        pq.load(model).run(fed)


def test_places_of_tokens_that_do_not_follow_are_refused() -> None:
    inputs = queries(7) | {"places": np.zeros((B, S), np.int64)}
    told: dict[str, Any] = {**HEADED, "do_rotary": 1}
    model, fed = model_of("GroupQueryAttention", inputs, RESULTS, ("total",), **told)
    with pytest.raises(UnsupportedError, match="at places"):
        pq.load(model).run(fed)
