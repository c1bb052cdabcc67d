"""Operators of opsets 18 to 26, written out or compiled: by the standard's text and onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import pyonednn_q as pq
from pyonednn_q.network import PythonCall

Array = np.ndarray[Any, Any]
UNIT = 2.0**-24
DEPTH, WIDTH = 8, 6
RNG = np.random.default_rng(11)

pytestmark = pytest.mark.executed


def floats(*dims: int) -> Array:
    return RNG.normal(0, 1, dims).astype(np.float32)


def proto(
    node: Any,
    inputs: Mapping[str, Array],
    constants: Mapping[str, Array],
    opset: int,
    *,
    is_open: bool = False,
) -> onnx.ModelProto:
    held = [numpy_helper.from_array(each, name) for name, each in constants.items()]
    starts = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(each.dtype),
            ["batch", *each.shape[1:-2], f"{name}_length", each.shape[-1]]
            if is_open and each.ndim == 4 and each.dtype != bool
            else each.shape,
        )
        for name, each in inputs.items()
    ]
    ends = [helper.make_tensor_value_info(n, 1, None) for n in node.output if n]
    graph = helper.make_graph([node], "graph", starts, ends, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def compiled(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return our results, in which no node runs in Python."""
    own = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))
    results = own.run(inputs)
    network = own.network()
    assert not [node.dst for node in network.nodes if isinstance(node.runs, PythonCall)]
    return results


def theirs(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return [np.asarray(each) for each in session.run(None, dict(inputs))]


def by_the_text(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    offset: int | None,
    window: tuple[int, int, int] | None = None,
    softcap: float = 0.0,
) -> tuple[Array, Array]:
    """Return attention of heads in float64, and how far float32 may be off.

    A window: how many places stand before, and how many a query sees on its left and right.
    """
    q, k, v = (each.astype(np.float64) for each in (q, k, v))
    k, v = (np.repeat(each, q.shape[1] // each.shape[1], axis=1) for each in (k, v))
    scale = 1 / np.sqrt(q.shape[-1])
    scores = scale * (q @ np.swapaxes(k, 2, 3))
    off = (DEPTH + 4) * UNIT * scale * (np.abs(q) @ np.swapaxes(np.abs(k), 2, 3))
    if softcap:  # whose tanh is off by a unit or two, and no steeper than 1
        scores = softcap * np.tanh(scores / softcap)
        off = off + 8 * UNIT * softcap
    if mask is not None:
        scores = scores + (np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask)
        off = off + UNIT * np.where(np.isfinite(scores), np.abs(scores), 0)
    if offset is not None:
        rows, columns = np.indices(scores.shape[-2:])
        scores = np.where(columns <= rows + offset, scores, -np.inf)
    if window is not None:
        rows, columns = np.indices(scores.shape[-2:])
        past, left, right = window
        seen = (columns >= rows + past - left) & (columns <= rows + past + right)
        scores = np.where(seen, scores, -np.inf)
    powers = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
    shares = powers / np.maximum(powers.sum(-1, keepdims=True), 1e-300)
    moved = np.expm1(2 * off.max(-1, keepdims=True)) + (2 * k.shape[2] + 40) * UNIT
    return shares @ v, moved * (shares @ np.abs(v))


def in_heads(x: Array, heads: int) -> Array:
    return np.moveaxis(x.reshape(*x.shape[:2], heads, -1), 2, 1)


FIRST = np.arange(7) == 0  # no row without a place
MASKS = {
    "none": None,
    "bools": (RNG.random((2, 1, 5, 7)) < 0.7) | FIRST,
    "bools of places": (RNG.random((5, 7)) < 0.7) | FIRST,
    "floats": floats(2, 1, 5, 7),
    "floats of heads": floats(1, 4, 5, 7),
    "heads alone": floats(4, 5, 7),
}


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("groups", [4, 2])
@pytest.mark.parametrize("has_heads", [False, True])
@pytest.mark.parametrize("mask", MASKS)
def test_attention(mask: str, has_heads: bool, groups: int, is_causal: bool) -> None:
    if has_heads:
        q, k, v = floats(2, 4, 5, DEPTH), floats(2, groups, 7, DEPTH), floats(2, groups, 7, WIDTH)
        heads, told = (q, k, v), {}
    else:
        q, k, v = (
            floats(2, 5, 4 * DEPTH),
            floats(2, 7, groups * DEPTH),
            floats(2, 7, groups * WIDTH),
        )
        heads = in_heads(q, 4), in_heads(k, groups), in_heads(v, groups)
        told = {"q_num_heads": 4, "kv_num_heads": groups}
    known = MASKS[mask]
    inputs = {"q": q, "k": k, "v": v, **({} if known is None else {"mask": known})}
    node = helper.make_node("Attention", [*inputs], ["y"], is_causal=int(is_causal), **told)
    model = proto(node, inputs, {}, 23)
    exact, apart = by_the_text(*heads, known, 0 if is_causal else None)
    if not has_heads:
        exact, apart = (e.transpose(0, 2, 1, 3).reshape(2, 5, -1) for e in (exact, apart))
    if known is not None and groups != 4 and 4 in known.shape:
        y = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model))).run(inputs)["y"]
    else:
        y = compiled(model, inputs)["y"]
    assert (np.abs(y - exact) <= apart).all()
    (other,) = theirs(model, inputs)
    assert (np.abs(other - exact) <= apart).all()


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_behind_a_past(is_causal: bool) -> None:
    inputs = {
        "q": floats(2, 4, 3, DEPTH),
        "k": floats(2, 4, 3, DEPTH),
        "v": floats(2, 4, 3, WIDTH),
        "past_k": floats(2, 4, 5, DEPTH),
        "past_v": floats(2, 4, 5, WIDTH),
    }
    reads = ["q", "k", "v", "", "past_k", "past_v"]
    node = helper.make_node("Attention", reads, ["y", "keys", "values"], is_causal=int(is_causal))
    for is_open in (False, True):
        results = compiled(proto(node, inputs, {}, 23, is_open=is_open), inputs)
        keys = np.concatenate([inputs["past_k"], inputs["k"]], 2)
        values = np.concatenate([inputs["past_v"], inputs["v"]], 2)
        np.testing.assert_array_equal(results["keys"], keys)
        np.testing.assert_array_equal(results["values"], values)
        exact, apart = by_the_text(inputs["q"], keys, values, None, 5 if is_causal else None)
        assert (np.abs(results["y"] - exact) <= apart).all()


@pytest.mark.parametrize(
    "told",
    [
        {"softcap": 0.7},
        {"is_causal": 1, "softcap": 2.0},
        {"is_causal": 1, "left_window_size": 2},
        {"left_window_size": 1, "right_window_size": 3},
        {"right_window_size": 0},
        {"left_window_size": 0, "softcap": 0.5},
    ],
    ids=str,
)
@pytest.mark.parametrize("past", [0, 5])
def test_attention_of_windows_and_of_capped_scores(told: dict[str, Any], past: int) -> None:
    inputs = {name: floats(2, 4, 3, size) for name, size in zip("qkv", (8, 8, 6), strict=True)}
    if past:
        inputs |= {"past_k": floats(2, 4, past, DEPTH), "past_v": floats(2, 4, past, WIDTH)}
    reads = ["q", "k", "v", "", "past_k", "past_v"] if past else ["q", "k", "v"]
    dsts = ["y", "keys", "values"] if past else ["y"]
    node = helper.make_node("Attention", reads, dsts, **told)
    results = compiled(proto(node, inputs, {}, 25, is_open=bool(past)), inputs)
    keys, values = inputs["k"], inputs["v"]
    if past:
        keys = np.concatenate([inputs["past_k"], keys], 2)
        values = np.concatenate([inputs["past_v"], values], 2)
    sides = [told.get(f"{side}_window_size", -1) for side in ("left", "right")]
    left, right = (99 if each < 0 else each for each in sides)
    window, offset = (past, left, right), past if told.get("is_causal") else None
    softcap = told.get("softcap", 0.0)
    exact, apart = by_the_text(inputs["q"], keys, values, None, offset, window, softcap)
    assert (np.abs(results["y"] - exact) <= apart).all()


def test_a_row_that_is_masked_altogether_is_nothing() -> None:
    mask = np.ones((5, 7), bool)
    mask[2] = False
    inputs = {"q": floats(2, 4, 5, 8), "k": floats(2, 4, 7, 8), "v": floats(2, 4, 7, 6), "m": mask}
    model = proto(helper.make_node("Attention", [*inputs], ["y"]), inputs, {}, 23)
    y = compiled(model, inputs)["y"]
    assert (y[:, :, 2] == 0).all()
    (same,) = ReferenceEvaluator(model).run(None, inputs)
    np.testing.assert_allclose(y, same, rtol=0, atol=1e-5)


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_at_any_length(is_causal: bool) -> None:
    """One model, of which nothing is made for a length; layers around it become INT8."""
    rng = np.random.default_rng(3)
    drawn = rng.normal(0, 1, (4, 16, 16)).astype(np.float32) / 4
    wei = dict(zip(("wq", "wk", "wv", "wo"), drawn, strict=True))
    nodes = [helper.make_node("MatMul", ["x", f"w{n}"], [n], n) for n in "qkv"]
    told = {"q_num_heads": 2, "kv_num_heads": 2, "is_causal": int(is_causal)}
    nodes.append(helper.make_node("Attention", ["q", "k", "v"], ["a"], "attention", **told))
    nodes.append(helper.make_node("MatMul", ["a", "wo"], ["y"], "o"))
    held = [numpy_helper.from_array(each, name) for name, each in wei.items()]
    ends = [helper.make_tensor_value_info(n, 1, ["batch", "length", 16]) for n in "xy"]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    sizes = ((2, 9, 16), (1, 4, 16), (3, 12, 16))
    samples = [rng.normal(0, 1, dims).astype(np.float32) for dims in sizes]
    found = pq.calibrate(pq.onnx.load(model), samples)
    codes, real = found.model(), pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))
    for dims, x in zip(sizes, samples, strict=True):
        (want,) = theirs(model, {"x": x})
        assert pq.quantize.quality(want, real.run({"x": x})["y"]).sqnr > 110
        assert pq.quantize.quality(want, codes.run({"x": x})["y"]).sqnr > 25
        network = codes.bound({"x": dims}).network()
        assert not [node.dst for node in network.nodes if isinstance(node.runs, PythonCall)]
    layers = {"q", "k", "v", "o"}
    how = {
        part.name: node.how for node in codes.bound({"x": (2, 9, 16)}).nodes for part in node.parts
    }
    assert {how[name] for name in layers} == {"INT8 matmul"}


@pytest.mark.parametrize("turned", [0, 4])
@pytest.mark.parametrize("is_paired", [0, 1])
@pytest.mark.parametrize("has_heads", [False, True])
@pytest.mark.parametrize("has_places", [False, True])
def test_rotary_embedding(has_places: bool, has_heads: bool, is_paired: int, turned: int) -> None:
    half = (turned or 8) // 2
    x = floats(2, 3, 5, 8) if has_heads else floats(2, 5, 3 * 8)
    lead = (9,) if has_places else (2, 5)
    inputs = {"x": x, "cos": floats(*lead, half), "sin": floats(*lead, half)}
    constants = {"at": RNG.integers(0, 9, (2, 5))} if has_places else {}
    told = {"interleaved": is_paired, "rotary_embedding_dim": turned}
    told |= {} if has_heads else {"num_heads": 3}
    node = helper.make_node("RotaryEmbedding", [*inputs, *constants], ["y"], **told)
    model = proto(node, inputs, constants, 23)
    y = compiled(model, inputs)["y"]
    (same,) = ReferenceEvaluator(model).run(None, inputs)
    # Two products and a sum, each rounded once, as there: the same bits.
    np.testing.assert_array_equal(y, same)


NORMS: dict[str, tuple[str, int, dict[str, Any], tuple[int, ...]]] = {
    "rms": ("RMSNormalization", 23, {"axis": -1, "epsilon": 1e-6}, (12,)),
    "rms of two dims": ("RMSNormalization", 23, {"axis": 2}, (5, 12)),
    "channels": ("GroupNormalization", 21, {"num_groups": 2}, (6,)),
    "all channels": ("GroupNormalization", 21, {"num_groups": 1}, (6,)),
    "instance": ("InstanceNormalization", 17, {"epsilon": 1e-3}, (6,)),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms(name: str) -> None:
    operator, opset, told, dims = NORMS[name]
    x = floats(2, 6, 5, 12) * 3 + 1
    gain, shift = floats(*dims), floats(*dims)
    parts = {"gain": gain} if operator.startswith("RMS") else {"gain": gain, "shift": shift}
    node = helper.make_node(operator, ["x", *parts], ["y"], **told)
    model = proto(node, {"x": x}, parts, opset)
    y = compiled(model, {"x": x})["y"]
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    y_of_last = compiled(model, {"x": last})["y"]
    wide, epsilon = x.astype(np.float64), told.get("epsilon", 1e-5)
    if operator.startswith("RMS"):
        axes = tuple(range(told["axis"] % 4, 4))
        exact = wide / np.sqrt((wide**2).mean(axes, keepdims=True) + epsilon) * gain
    else:
        rows = wide.reshape(2, told.get("num_groups", 6), -1)
        rows = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(
            rows.var(-1, keepdims=True) + epsilon
        )
        exact = rows.reshape(x.shape) * gain.reshape(6, 1, 1) + shift.reshape(6, 1, 1)
    (others,) = theirs(model, {"x": x})
    assert np.abs(others - exact).max() < 64 * UNIT * np.abs(exact).max()
    assert np.abs(y - exact).max() < 64 * UNIT * np.abs(exact).max()
    assert np.abs(y_of_last - exact).max() < 64 * UNIT * np.abs(exact).max()


@pytest.mark.parametrize("alpha", [1.0, 1.702])
def test_swish_behind_a_layer_and_alone(alpha: float) -> None:
    x, wei = floats(4, 16), floats(16, 8)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], "layer"),
        helper.make_node("Swish", ["h"], ["y"], alpha=alpha),
    ]
    ends = [helper.make_tensor_value_info(n, 1, [4, d]) for n, d in (("x", 16), ("y", 8))]
    held = [numpy_helper.from_array(wei, "w")]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
    h = x.astype(np.float64) @ wei
    exact = h / (1 + np.exp(-alpha * h))
    y = compiled(model, {"x": x})["y"]
    assert np.abs(y - exact).max() < 64 * UNIT * np.abs(x).max() * np.abs(wei).sum(0).max()
    found = pq.calibrate(pq.onnx.load(model), [x])
    (node,) = [n for n in found.model().nodes if any(p.name == "layer" for p in n.parts)]
    assert node.how == "INT8 matmul"
    assert "swish" in str(node)
    assert pq.quantize.quality(exact, found.model().run({"x": x})["y"]).sqnr > 25
    alone = proto(helper.make_node("Swish", ["x"], ["y"], alpha=alpha), {"x": x}, {}, 24)
    wide = x.astype(np.float64)
    y = compiled(alone, {"x": x})["y"]
    assert np.abs(y - wide / (1 + np.exp(-alpha * wide))).max() < 16 * UNIT * np.abs(x).max()
