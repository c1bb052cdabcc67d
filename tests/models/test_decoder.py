"""Decoders as exporters write them: token after token, beside onnxruntime."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
with patch.object(sys, "path", [str(BENCHMARKS), *sys.path]):
    decoders: Any = importlib.import_module("decoder_models")

SIZES = decoders.SMALL
PROMPT = np.array([[3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8]], np.int64)


def logits_of(step: Any, tokens: Array, first: int) -> Array:
    """Return logits of tokens: of the first together, of the others one by one."""
    parts = [tokens[:, :first], *np.split(tokens[:, first:], tokens.shape[1] - first, 1)]
    return np.concatenate([step(each) for each in parts], 1)


def attentions(model: Any) -> list[Any]:
    return [node for node in model.graph.node if node.op_type == "GroupQueryAttention"]


def off(ours: Array, theirs: Array) -> float:
    """Return the largest difference, in parts of how far logits are from their mean."""
    return float(np.abs(ours - theirs).max() / theirs.std())


@pytest.mark.parametrize("bits", [0, 4, 8])
def test_logits_are_those_of_onnxruntime(bits: int) -> None:
    model = decoders.decoder(SIZES, bits=bits)
    theirs = logits_of(decoders.Session(model, SIZES), PROMPT, 7)
    floats, codes = (pq.Decoder(model, capacity=40, cache=cache) for cache in ("f32", "s8"))
    assert off(logits_of(floats, PROMPT, 7), theirs) < 1e-5
    assert 1e-5 < off(logits_of(codes, PROMPT, 7), theirs) < 0.1
    assert floats.cache.length == codes.cache.length == PROMPT.shape[1]
    assert "floats" in floats.report()
    assert "INT8 attention" in codes.report()
    assert "reference" not in codes.report()  # no Python in a step


def test_queries_keys_and_values_may_be_one_tensor() -> None:
    sizes = dataclasses.replace(SIZES, is_packed=True)
    model = decoders.decoder(sizes)
    theirs = logits_of(decoders.Session(model, sizes), PROMPT, 7)
    assert off(logits_of(pq.Decoder(model, capacity=40, cache="f32"), PROMPT, 7), theirs) < 1e-5


def test_attentions_of_the_standard_are_taken_as_well() -> None:
    sizes = dataclasses.replace(SIZES, is_standard=True)
    model = decoders.decoder(sizes)
    theirs = logits_of(decoders.Session(model, sizes), PROMPT, 7)
    decoder = pq.Decoder(model, capacity=40, cache="f32")
    assert off(logits_of(decoder, PROMPT, 7), theirs) < 1e-5
    assert "reference" not in decoder.report()
    with_mask = decoders.decoder(sizes)
    (attention, *_) = [node for node in with_mask.graph.node if node.op_type == "Attention"]
    del attention.attribute[:]
    with pytest.raises(ArgumentError, match="causal"):
        pq.Decoder(with_mask, capacity=40)


def test_attentions_of_the_standard_may_have_caps_and_windows() -> None:
    """A window of the standard is what stands before a token; theirs counts the token, too."""
    sizes = dataclasses.replace(SIZES, is_standard=True)
    model = decoders.decoder(sizes)
    for node in model.graph.node:
        if node.op_type == "Attention":
            node.attribute.append(helper.make_attribute("softcap", 2.0))
    theirs = logits_of(decoders.Session(model, sizes), PROMPT, 7)
    assert off(logits_of(pq.Decoder(model, capacity=40, cache="f32"), PROMPT, 7), theirs) < 1e-5
    for node in model.graph.node:
        if node.op_type == "Attention":
            node.attribute.append(helper.make_attribute("left_window_size", 3))
    model.opset_import[0].version = 25
    same = decoders.decoder(SIZES)
    for node in attentions(same):
        kept = [e for e in node.attribute if e.name not in {"softcap", "local_window_size"}]
        del node.attribute[:]
        node.attribute.extend(kept)
        more = {"softcap": 2.0, "local_window_size": 4}
        node.attribute.extend(helper.make_attribute(*each) for each in more.items())
    theirs = logits_of(decoders.Session(same, SIZES), PROMPT, 7)
    assert off(logits_of(pq.Decoder(model, capacity=40, cache="f32"), PROMPT, 7), theirs) < 1e-5


def test_attentions_of_heads_are_taken_as_well() -> None:
    sizes = dataclasses.replace(SIZES, is_standard=True, groups=SIZES.heads)
    model = decoders.decoder(sizes)
    for node in model.graph.node:
        if node.op_type == "Attention":
            q, k, v, _, *past = node.input
            node.op_type, node.domain = "MultiHeadAttention", "com.microsoft"
            node.input[:] = [q, k, v, "", "", "", *past]
            del node.attribute[:]
            told = {"num_heads": sizes.heads, "unidirectional": 1}
            node.attribute.extend(helper.make_attribute(*each) for each in told.items())
    theirs = logits_of(decoders.Session(model, sizes), PROMPT, 7)
    decoder = pq.Decoder(model, capacity=40, cache="f32")
    assert off(logits_of(decoder, PROMPT, 7), theirs) < 1e-5
    assert "reference" not in decoder.report()


def test_tokens_are_those_of_onnxruntime() -> None:
    model = decoders.decoder(SIZES, bits=4)
    theirs = [token for token, _ in decoders.greedy(decoders.Session(model, SIZES), PROMPT, 20)]
    decoder = pq.Decoder(model, capacity=40, cache="f32")
    assert [int(each) for (each,) in decoder.generate(PROMPT, 20)] == theirs
    decoder.reset()
    assert [int(each) for (each,) in decoder.generate(PROMPT, 20)] == theirs


def test_prompts_give_the_same_bits_in_one_call_and_in_many() -> None:
    decoder = pq.Decoder(decoders.decoder(SIZES, bits=4), capacity=40)
    together = decoder(PROMPT)
    decoder.reset()
    np.testing.assert_array_equal(logits_of(decoder, PROMPT, 1), together)


@pytest.mark.parametrize("bits", [0, 4])
def test_the_last_token_alone_has_the_same_logits(bits: int) -> None:
    model = decoders.decoder(SIZES, bits=bits)
    theirs = logits_of(decoders.Session(model, SIZES), PROMPT, 7)
    decoder = pq.Decoder(model, capacity=40, cache="f32")
    every = decoder(PROMPT)
    decoder.reset()
    last = decoder(PROMPT, last=True)  # of programs of 8, 2 and 1 tokens
    assert last.shape == (1, 1, SIZES.words)
    assert off(last, theirs[:, -1:]) < 1e-5
    if bits:  # whose sums do not depend on how many rows there are
        np.testing.assert_array_equal(last, every[:, -1:])
    (product,) = (node for node in decoder.model(8, last=True).nodes if node.outputs == ("logits",))
    (other,) = (node for node in decoder.model(8).nodes if node.outputs == ("logits",))
    assert product.runs is other.runs or not bits
    assert decoder.model(8, last=True).graph.outputs["logits"].dims == (1, 1, SIZES.words)


def test_behind_a_cap_the_last_token_is_found_as_well() -> None:
    model = decoders.decoder(SIZES)
    (end,) = (node for node in model.graph.node if "logits" in node.output)
    end.output[:] = ["product"]
    cap = numpy_helper.from_array(np.float32(3), "cap")
    model.graph.initializer.append(cap)
    for kind, reads, dst in (
        ("Div", ["product", "cap"], "part"),
        ("Tanh", ["part"], "bent"),
        ("Mul", ["bent", "cap"], "logits"),
    ):
        model.graph.node.append(helper.make_node(kind, reads, [dst], dst))
    theirs = logits_of(decoders.Session(model, SIZES), PROMPT, 7)
    decoder = pq.Decoder(model, capacity=40, cache="f32")
    assert off(decoder(PROMPT, last=True), theirs[:, -1:]) < 1e-5
    assert decoder.model(8, last=True).graph.outputs["logits"].dims == (1, 1, SIZES.words)


def test_a_model_of_the_last_token_alone_returns_that() -> None:
    """As genai exports with `prune_lm_head`."""
    model = decoders.decoder(SIZES)
    at, end = next(each for each in enumerate(model.graph.node) if "logits" in each[1].output)
    reads = [end.input[0], "minus_one", "first"]
    for name, value in (("minus_one", np.array(-1)), ("first", np.array([1]))):
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    gather = helper.make_node("Gather", reads[:2], ["token"], "token", axis=1)
    model.graph.node.insert(at, helper.make_node("Unsqueeze", ["token", "first"], ["row"], "row"))
    model.graph.node.insert(at, gather)
    end.input[0] = "row"
    theirs = decoders.Session(model, SIZES)(PROMPT)
    decoder = pq.Decoder(model, capacity=40, cache="f32")
    assert theirs.shape == (1, 1, SIZES.words)
    assert off(decoder(PROMPT), theirs) < 1e-5
    decoder.reset()
    assert [int(each) for (each,) in decoder.generate(PROMPT, 1)] == [int(theirs[0, -1].argmax())]


def test_sequences_of_a_batch_do_not_meet() -> None:
    model = decoders.decoder(SIZES, bits=4)
    one, two = (pq.Decoder(model, capacity=40, batch=batch) for batch in (1, 2))
    both = np.concatenate([PROMPT, PROMPT[:, ::-1]])
    results = two(both)
    for at in range(2):
        one.reset()
        np.testing.assert_array_equal(one(both[at : at + 1])[0], results[at])


def test_layers_are_shared_by_all_lengths() -> None:
    decoder = pq.Decoder(decoders.decoder(SIZES, bits=4), capacity=40)
    layers = [
        [node.runs for node in decoder.model(count).nodes if isinstance(node.runs, pq.MatMul)]
        for count in (1, 8)
    ]
    assert len(layers[0]) == 7 * SIZES.layers + 1
    assert all(one is two for one, two in zip(*layers, strict=True))


def test_a_full_cache_is_refused_and_stays_as_it_was() -> None:
    decoder = pq.Decoder(decoders.decoder(SIZES), capacity=16)
    before = decoder(PROMPT)
    with pytest.raises(ShapeError, match="6 behind the 11"):
        decoder(PROMPT[:, :6])
    assert decoder.cache.length == 11
    decoder.cache.truncate(0)
    np.testing.assert_array_equal(decoder(PROMPT), before)


def test_what_fails_half_way_leaves_the_cache_as_it_was() -> None:
    decoder = pq.Decoder(decoders.decoder(SIZES), capacity=32)
    decoder(PROMPT[:, :3])
    wrong = PROMPT.copy()
    wrong[0, -1] = SIZES.words  # in the last program of three
    with pytest.raises(ArgumentError):
        decoder(wrong)
    assert decoder.cache.length == 3


def test_what_is_no_tokens_is_refused() -> None:
    decoder = pq.Decoder(decoders.decoder(SIZES), capacity=32)
    with pytest.raises(DTypeError, match="int64"):
        decoder(PROMPT.astype(np.int32))
    with pytest.raises(ShapeError, match="count"):
        decoder(PROMPT[0])


def test_what_is_no_decoder_is_refused() -> None:
    model = decoders.decoder(SIZES)
    for node in attentions(model):
        node.attribute.append(helper.make_attribute("causal", 0))
    with pytest.raises(ArgumentError, match="causal"):
        pq.Decoder(model, capacity=32)


SINKS = np.array([-1, 0, 1, 3], np.float32)


@pytest.mark.parametrize(
    "told",
    [
        {"local_window_size": 4},
        {"softcap": 2.0},
        {"smooth_softmax": 1},
        {"local_window_size": 3, "softcap": 1.0, "head_sink": SINKS},
    ],
    ids="-".join,
)
def test_windows_caps_and_sinks_are_those_of_onnxruntime(told: dict[str, Any]) -> None:
    model = decoders.decoder(SIZES)
    for node in attentions(model):
        kept = [each for each in node.attribute if each.name not in told]
        del node.attribute[:]
        node.attribute.extend(kept)
        for name, value in told.items():
            if name != "head_sink":
                node.attribute.append(helper.make_attribute(name, value))
        node.input.extend(["", "", "head_sink" if "head_sink" in told else ""])
    model.graph.initializer.append(numpy_helper.from_array(SINKS, "head_sink"))
    theirs = logits_of(decoders.Session(model, SIZES), PROMPT, 7)
    plain = logits_of(decoders.Session(decoders.decoder(SIZES), SIZES), PROMPT, 7)
    assert off(plain, theirs) > 0.01
    floats, codes = (pq.Decoder(model, capacity=40, cache=cache) for cache in ("f32", "s8"))
    assert off(logits_of(floats, PROMPT, 7), theirs) < 1e-5
    assert off(logits_of(codes, PROMPT, 7), theirs) < 0.1


def test_heads_whose_length_only_the_queries_tell() -> None:
    """As onnxruntime-genai writes keys and values of before: all dims but one are open."""
    for is_packed in (False, True):
        sizes = dataclasses.replace(SIZES, is_packed=is_packed)
        model = decoders.decoder(sizes)
        theirs = logits_of(decoders.Session(model, sizes), PROMPT, 7)
        for each in (*model.graph.input, *model.graph.output):
            if "key" in each.name or "value" in each.name:
                each.type.tensor_type.shape.dim[3].dim_param = "kv_cache_dim"
        decoder = pq.Decoder(model, capacity=40, cache="f32")
        assert off(logits_of(decoder, PROMPT, 7), theirs) < 1e-5


@pytest.mark.parametrize("bits", [4, 8])
def test_embeddings_of_codes_are_those_of_onnxruntime(bits: int) -> None:
    model = decoders.decoder(SIZES)
    (table,) = (each for each in model.graph.initializer if each.name == "embedding")
    codes, scales = decoders.rounded(numpy_helper.to_array(table).T, bits, 32)
    (gather,) = (node for node in model.graph.node if "embedding" in node.input)
    gather.op_type, gather.domain = "GatherBlockQuantized", "com.microsoft"
    gather.input[:] = ["shaped", "input_ids", "scales"]
    dims = np.array([SIZES.words, -1], np.int64)
    shaped = helper.make_node("Reshape", ["codes", "dims"], ["shaped"], "shaped")
    model.graph.node.insert(0, shaped)
    for name, value in {"codes": codes, "dims": dims, "scales": scales}.items():
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    told = {"bits": bits, "block_size": 32, "gather_axis": 0, "quantize_axis": 1}
    gather.attribute.extend(helper.make_attribute(*each) for each in told.items())
    theirs = logits_of(decoders.Session(model, SIZES), PROMPT, 7)
    decoder = pq.Decoder(model, capacity=40, cache="f32")
    assert off(logits_of(decoder, PROMPT, 7), theirs) < 1e-5
    assert "reference" not in decoder.report()


def test_the_model_as_it_is_runs_by_its_definition() -> None:
    model = decoders.decoder(SIZES)
    loaded, session = pq.load(model), decoders.Session(model, SIZES)
    past = {
        f"past_key_values.{layer}.{which}": np.zeros((1, SIZES.groups, 0, SIZES.depth), np.float32)
        for layer in range(SIZES.layers)
        for which in ("key", "value")
    }
    for begin, end in ((0, 5), (5, 6), (6, 9)):
        tokens = PROMPT[:, begin:end]
        mask = np.ones((1, end), np.int64)
        results = loaded.run({"input_ids": tokens, "attention_mask": mask, **past})
        assert off(results.pop("logits"), session(tokens)) < 1e-5
        past = {n.replace("present", "past_key_values"): each for n, each in results.items()}
