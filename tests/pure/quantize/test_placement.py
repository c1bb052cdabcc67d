"""Where quantizers stand in networks drawn by hand, and that no way of drawing them matters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.quantize import (
    GraphOperator,
    QuantizationTarget,
    QuantizerSpec,
    onednn_target,
    place_quantizers,
    read_config,
    scoped,
)

TARGET = onednn_target("AVX512_CORE_VNNI")


def op(kind: str, sources: str, result: str) -> GraphOperator:
    return GraphOperator(kind, tuple(sources.split()), result)


def where(*graph: GraphOperator, **options: Any) -> dict[str, tuple[str, ...]]:
    target = options.pop("target", TARGET)
    return {p.tensor: p.readers for p in place_quantizers(graph, target, **options)}


def test_a_fused_sequence_is_free_of_quantizers_inside() -> None:
    graph = op("conv", "x", "a"), op("batch_norm", "a", "b"), op("relu", "b", "c")
    assert where(*graph, op("conv", "c", "d")) == {"x": ("a",), "c": ("d",)}


def test_quantizers_move_through_what_only_moves_values() -> None:
    graph = op("relu", "x", "a"), op("max_pool", "a", "b"), op("reshape", "b", "c")
    assert where(*graph, op("matmul", "c", "d")) == {"a": ("d",)}


def test_one_quantizer_serves_all_that_read_alike() -> None:
    """As the two ways of a residual block; the add is fused behind the second convolution."""
    graph = (
        *(op("conv", "x", "a"), op("relu", "a", "b"), op("conv", "b", "c")),
        *(op("add", "c b", "d"), op("relu", "d", "e"), op("conv", "e", "f"), op("conv", "e", "g")),
    )
    (x, b, e) = place_quantizers(graph, TARGET)
    assert (x.tensor, b.tensor, e.tensor) == ("x", "b", "e")
    assert e.readers == ("f", "g")
    assert b.readers == ("c",)
    assert b.reason == "the result of relu, which d read as floats"


def test_a_softmax_reads_floats_and_stops_what_comes_from_below() -> None:
    graph = op("conv", "x", "a"), op("max_pool", "a", "b"), op("softmax", "b", "c")
    assert where(*graph, op("conv", "b", "d")) == {"x": ("a",), "b": ("d",)}
    assert where(*graph[:2], op("conv", "b", "d")) == {"x": ("a",), "a": ("d",)}


def test_operands_of_a_concat_share_a_scale() -> None:
    graph = (
        *(op("conv", "x", "a"), op("relu", "x", "b"), op("concat", "a b", "c")),
        *(op("concat", "c b", "d"), op("conv", "d", "e")),
    )
    placed = {p.tensor: p for p in place_quantizers(graph, TARGET)}
    assert set(placed) == {"x", "a", "b"}
    assert placed["a"].group == placed["b"].group is not None
    assert placed["x"].group is None
    assert placed["a"].readers == placed["b"].readers == ("e",)


def test_groups_that_meet_become_one() -> None:
    graph = (
        *(op("relu", "x", "a"), op("relu", "x", "b"), op("relu", "x", "c")),
        *(op("concat", "a b", "d"), op("concat", "b c", "e")),
        *(op("conv", "d", "f"), op("conv", "e", "g")),
    )
    placed = place_quantizers(graph, TARGET)
    assert [p.tensor for p in placed] == ["a", "b", "c"]
    assert len({p.group for p in placed}) == 1
    assert placed[1].readers == ("f", "g")


def test_ignored_operators_stay_float_and_let_nothing_through() -> None:
    graph = op("relu", "x", "a"), op("max_pool", "a", "pool"), op("conv", "pool", "head/conv")
    assert where(*graph) == {"a": ("head/conv",)}
    assert where(*graph, ignored=["pool"]) == {"pool": ("head/conv",)}
    assert where(*graph, ignored=["{re}head/"]) == {}
    (placed,) = place_quantizers(graph, TARGET, ignored=["pool"])
    assert placed.reason == "the result of max_pool, which is ignored"
    with pytest.raises(ArgumentError, match=r"^scopes: .*a regular expression"):
        scoped("x", ["{re}("])


def test_scopes_match_anywhere_in_a_name_or_are_it() -> None:
    assert scoped("net/block1/conv", ["{re}conv$"])
    assert scoped("net/block1/conv", ["head", "{re}block[12]"])
    assert not scoped("net/block1/conv", ["conv", "{re}^conv"])


def test_readers_without_a_common_way_have_quantizers_of_their_own() -> None:
    u8, s8 = QuantizerSpec("u8", symmetric=False), QuantizerSpec("s8", symmetric=True)
    target = QuantizationTarget((("conv", (u8, s8)), ("lstm", (s8,)), ("gru", (u8,))), ())
    graph = op("relu", "x", "a"), op("conv", "a", "b"), op("lstm", "a", "c")
    (both,) = place_quantizers(graph, target)
    assert (both.spec, both.readers) == (s8, ("b", "c"))
    apart = place_quantizers((*graph[::2], op("gru", "a", "d")), target)
    assert {p.spec: p.readers for p in apart} == {s8: ("c",), u8: ("d",)}
    assert apart[0].reason.endswith("quantized in several ways")


def test_what_runs_on_codes_reads_them_where_its_result_has_a_quantizer() -> None:
    u8, s8 = QuantizerSpec("u8", symmetric=False), QuantizerSpec("s8", symmetric=True)
    quantized = ("conv", (u8, s8)), ("lstm", (s8,))
    target = QuantizationTarget(quantized, (), fused=(), on_codes=("add", "relu"))
    graph = op("relu", "x", "a"), op("add", "a y", "b"), op("max_pool", "b", "c")
    below = op("conv", "c", "d"), op("relu", "d", "e")
    assert where(*graph, *below, target=target) == {
        "x": ("a",),
        "y": ("b",),
        "a": ("b",),
        "b": ("d",),
    }
    assert where(*graph, op("softmax", "c", "d"), target=target) == {}
    assert where(*graph, *below, target=target, ignored=["b"]) == {"b": ("d",)}
    placed = place_quantizers((*graph, op("lstm", "c", "d")), target)
    assert {p.tensor: p.spec for p in placed} == {"x": u8, "y": u8, "a": u8, "b": s8}
    still = QuantizationTarget(quantized, (), agnostic=(), fused=(), on_codes=("add", "max_pool"))
    assert where(*graph, *below, target=still) == {
        "y": ("b",),
        "a": ("b",),
        "b": ("c",),
        "c": ("d",),
    }


def test_scales_that_must_agree_by_hand() -> None:
    graph = op("conv", "x", "a"), op("conv", "y", "b")
    placed = place_quantizers(graph, TARGET, linked=[("x", "y")])
    assert placed[0].group == placed[1].group == 0
    with pytest.raises(ArgumentError, match=r"^linked: got \['z'\]"):
        place_quantizers(graph, TARGET, linked=[("x", "z")])


def test_the_target_says_what_is_exact() -> None:
    old = onednn_target(InstructionSet.of("AVX2"))
    assert dict(old.weights)["conv"].note == "saturating beyond half of the range"
    assert dict(TARGET.weights)["conv"].note == "exact"
    assert [spec.dtype for spec in dict(TARGET.quantized)["matmul"]] == ["u8", "s8"]
    assert dict(old.quantized)["conv"][1].note == "odd weights lose a bit"


def test_every_source_of_what_runs_quantized_is_quantized_once() -> None:
    """Of random networks: walking up from each through what is agnostic meets one quantizer."""
    rng = np.random.default_rng(0)
    kinds = ["conv", "relu", "max_pool", "concat", "softmax", "matmul", "reshape", "add"]
    for _ in range(200):
        names, graph = ["x", "y"], []
        for at in range(12):
            kind = str(rng.choice(kinds))
            many = 2 if kind in {"concat", "add"} else 1
            sources = tuple(str(s) for s in rng.choice(names, many, replace=False))
            graph.append(GraphOperator(kind, sources, f"t{at}"))
            names.append(f"t{at}")
        placed = place_quantizers(graph, TARGET)
        producer = {each.result: each for each in graph}

        def met(tensor: str, reader: str, made: Any = producer, found: Any = placed) -> bool:
            if any(p.tensor == tensor and reader in p.readers for p in found):
                return True
            above = made.get(tensor)
            if above is None or above.kind not in TARGET.agnostic:
                return False
            return all(met(source, reader) for source in above.sources)

        for each in graph:
            if each.kind in {"conv", "matmul"}:
                assert all(met(source, each.result) for source in each.sources), graph
        assert placed == place_quantizers(list(graph), TARGET)


def test_graphs_that_are_none() -> None:
    with pytest.raises(ArgumentError, match=r"^graph: got 'a' of "):
        place_quantizers([op("relu", "x", "a"), op("conv", "x", "a")], TARGET)
    with pytest.raises(ArgumentError, match=r"^graph: "):
        place_quantizers([op("relu", "b", "a"), op("conv", "x", "b")], TARGET)


def test_inputs_and_outputs_are_quantized_where_that_is_wanted() -> None:
    """The places that NNCF 2.18 has for this network, with the same two keys."""
    graph = (
        *(op("conv", "x", "a"), op("relu", "a", "relu"), op("max_pool", "relu", "pool")),
        *(op("conv", "pool", "b"), op("relu", "b", "relu_1"), op("max_pool", "relu_1", "first")),
        op("softmax", "pool", "second"),
    )
    assert where(*graph) == {"x": ("a",), "pool": ("b",)}
    assert where(*graph, quantize_inputs=False) == {"pool": ("b",)}
    placed = where(*graph, quantize_outputs=True)
    assert placed == {"x": ("a",), "pool": ("b",), "relu_1": (), "second": ()}
    (last,) = place_quantizers(graph[3:6], TARGET, quantize_inputs=False, quantize_outputs=True)
    assert str(last) == "relu_1 -> output: u8 asymmetric (fast, exact); the result of relu"


def test_linked_sets_do_not_overlap() -> None:
    graph = [op("conv", "x", "a"), op("conv", "a", "b"), op("conv", "b", "c")]
    with pytest.raises(ArgumentError, match=r"^linked: got \['a'\]; wanted sets that do not over"):
        place_quantizers(graph, TARGET, linked=[("x", "a"), ("a", "b")])


def test_a_configuration_decides_where_quantizers_go() -> None:
    section = {
        "algorithm": "quantization",
        "quantize_inputs": False,
        "quantize_outputs": True,
        "ignored_scopes": ["{re}^b$"],
        "activations": {"unified_scale_ops": [["a", "d"]]},
    }
    graph = [op("conv", s, r) for s, r in (("x", "a"), ("a", "b"), ("a", "c"), ("c", "d"))]
    placed = {each.tensor: each for each in read_config(section).placements(graph, TARGET)}
    assert list(placed) == ["a", "b", "c", "d"]
    assert (placed["a"].readers, placed["b"].readers) == (("c",), ())
    assert placed["a"].group == placed["d"].group is not None
    assert placed["c"].group is None
    linked = {"activations": {"unified_scale_ops": [["a", "b"], ["b", "c"]]}}
    with pytest.raises(ArgumentError, match=r"unified_scale_ops: got \['b'\]; wanted sets that"):
        read_config({"algorithm": "quantization", **linked})
