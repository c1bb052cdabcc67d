"""Models whose products get weights in groups: what others run of them, and what was lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
helper = onnx.helper
Array = np.ndarray[Any, Any]
F = np.float32
IC, GROUP = 64, 32
SPREAD = np.exp(np.linspace(-3, 3, IC)).astype(F)
METHODS: tuple[Any, ...] = ("rtn", "search", "awq", "gptq", "awq+gptq")


def proto(whole: bool = False, rows: Any = "rows", opset: int = 21) -> Any:
    """Return norm -> q, k, v -> their mean -> Gemm -> Gemm -> MatMul of 40 inputs.

    Whole: weights are codes of 4 bits times 1/4, and there is no norm.
    """
    rng = np.random.default_rng(0)

    def weights(*dims: int, along: int = 0) -> Array:
        if not whole:
            return rng.standard_normal(dims).astype(F) / 8
        codes = rng.integers(-8, 8, dims).astype(F)
        np.moveaxis(codes, along, 0)[::GROUP] = -8
        return codes / 4

    arrays = {name: weights(IC, IC) for name in "qkv"}
    arrays |= {"g": weights(96, IC, along=1), "h": weights(96, 40), "m": weights(40, 8)}
    arrays |= {"gb": rng.integers(-4, 4, 96).astype(F), "gain": SPREAD, "shift": SPREAD[::-1] / 9}
    if whole:  # so that no sum has more than 24 bits
        arrays["m"] = np.sign(arrays["m"])
    arrays = {k: v for k, v in arrays.items() if not (whole and k in {"gain", "shift"})}
    if not whole:  # channels between the two differ, and weights make up for it
        wide = np.exp(np.linspace(-2, 2, 96)).astype(F)[:, None]
        arrays |= {
            "g": arrays["g"] * wide,
            "h": arrays["h"] / wide,
            "gb": arrays["gb"] * wide[:, 0],
        }
    nodes = [
        helper.make_node("Identity" if whole else "LayerNormalization", ends, ["n"], "norm")
        for ends in ([["x"]] if whole else [["x", "gain", "shift"]])
    ]
    nodes += [helper.make_node("MatMul", ["n", name], [f"{name}o"], name) for name in "qkv"]
    nodes += [
        helper.make_node("Sum", ["qo", "ko", "vo"], ["s"], "sum"),
        helper.make_node("Gemm", ["s", "g", "gb"], ["go"], "wide", transB=1),
        helper.make_node("Relu", ["go"], ["r"], "relu"),
        helper.make_node("Gemm", ["r", "h"], ["ho"], "narrow", alpha=1.0),
        helper.make_node("MatMul", ["ho", "m"], ["y"], "odd"),
    ]
    held = [onnx.numpy_helper.from_array(np.ascontiguousarray(v), k) for k, v in arrays.items()]
    ends = [helper.make_tensor_value_info("x", 1, [rows, IC])]
    ends.append(helper.make_tensor_value_info("y", 1, [rows, 8]))
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], held)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def theirs(model: Any, x: Array) -> Array:
    content = model if isinstance(model, str) else model.SerializeToString()
    options = onnxruntime.SessionOptions()
    # Else it makes MatMulNBits of level 4 of a DequantizeLinear of 4-bit blocks.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "0")
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {"x": x})
    return np.asarray(result)


def samples(seed: int, count: int = 4) -> list[Array]:
    """Return batches of correlated rows."""
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(99).standard_normal((IC // 4, IC))
    return [
        (rng.standard_normal((64, IC // 4)) @ mix + rng.standard_normal((64, IC)) / 8).astype(F)
        for _ in range(count)
    ]


@pytest.mark.parametrize("form", ["matmul_nbits", "dequantize"])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_others_run_what_is_written(form: Any, bits: int, symmetric: bool, tmp_path: Path) -> None:
    """Without errors of codes, and in whole numbers, all orders of sums give the same bits."""
    rng = np.random.default_rng(1)
    x = rng.integers(-2, 3, (5, IC)).astype(F)
    model, file = proto(whole=True), str(tmp_path / "small.onnx")
    small = pq.onnx.grouped_weights(
        model, groups=GROUP, bits=bits, symmetric=symmetric, method="rtn", form=form,
        accuracy_level=0,
    )  # fmt: skip
    small.save(file)
    names = {node.op_type for node in onnx.load(file).graph.node}
    assert ("MatMulNBits" in names) == (form == "matmul_nbits")
    assert [each.name for each in small.layers] == ["q", "k", "v", "wide", "narrow"]
    assert dict(small.floats) == {"odd": "40 inputs, no multiple of 32"}
    if symmetric and bits == 4:
        assert [each.error for each in small.layers] == [0.0] * 5
        np.testing.assert_array_equal(theirs(file, x), theirs(model, x))
        floats = pq.load(file, blocks="f32")
        np.testing.assert_array_equal(floats(x), theirs(model, x))
    else:  # steps of 1/15 and the like: sums differ in their last bits
        want = theirs(model, x)
        assert np.abs(theirs(file, x) - want).max() < np.abs(want).max() / 8


@pytest.mark.parametrize("rows", ["rows", 7])
@pytest.mark.parametrize("form", ["matmul_nbits", "dequantize"])
@pytest.mark.parametrize("method", ["search", "awq+gptq"])
def test_a_file_is_loaded_as_what_was_written(
    method: Any, form: Any, rows: Any, tmp_path: Path
) -> None:
    small = pq.onnx.grouped_weights(
        proto(rows=rows), [each[:7] for each in samples(0, 40)], groups=GROUP, method=method,
        symmetric=False, form=form,
    )  # fmt: skip
    file = tmp_path / "small.onnx"
    small.save(file)
    loaded, own = pq.load(file), small.model()
    x = samples(3)[0][:7]
    np.testing.assert_array_equal(loaded(x), own(x))
    assert loaded.report().count("INT4 matmul") == 5
    assert str(small) == "<ModelInGroups of 5 layers, 4.00 bits a weight>"
    assert small.report().splitlines()[-1] == "odd: floats, 40 inputs, no multiple of 32"


def test_outputs_of_other_samples_err_less_from_method_to_method() -> None:
    model, others = proto(), samples(7)
    want = [theirs(model, x) for x in others]
    errors = {}
    for method in METHODS:
        small = pq.onnx.grouped_weights(
            model, samples(0, 12), groups=GROUP, method=method, accuracy_level=0
        )
        run = small.model()
        pairs = zip(others, want, strict=True)
        errors[method] = sum(float(np.square(run(x) - y).sum()) for x, y in pairs)
    assert errors["gptq"] < errors["search"] < errors["rtn"]
    assert errors["awq"] < errors["rtn"]
    assert errors["awq+gptq"] < errors["awq"]


def test_sources_are_divided_where_a_norm_or_a_layer_can() -> None:
    model = proto()
    small = pq.onnx.grouped_weights(model, samples(0, 12), groups=GROUP, method="awq")
    methods = {each.name: each.method for each in small.layers}
    # A sum of three layers is no layer's own result; relu's is.
    assert methods == {"q": "awq", "k": "awq", "v": "awq", "wide": "search", "narrow": "awq"}
    (norm,) = (node for node in small.graph.nodes if node.name == "norm")
    gain = small.graph.constants[norm.inputs[1]]
    assert (SPREAD / gain).std() > 0
    plain = pq.onnx.grouped_weights(model, samples(0, 12), groups=GROUP, method="rtn")
    for mine, other in zip(small.layers, plain.layers, strict=True):
        assert mine.error < other.error


def test_a_mean_of_bits_goes_where_errors_are() -> None:
    model, batches = proto(), samples(0, 8)
    options: dict[str, Any] = {"groups": GROUP, "method": "search"}
    four, eight = (pq.onnx.grouped_weights(model, batches, bits=bits, **options) for bits in (4, 8))
    mixed = pq.onnx.grouped_weights(model, batches, bits=(4, 8), mean_bits=5.0, **options)
    assert mixed.mean_bits <= 5.0
    assert {each.bits for each in mixed.layers} == {4, 8}

    def error(each: Any) -> float:
        return float(sum(layer.error for layer in each.layers))

    assert error(eight) < error(mixed) < error(four)
    # All other choices within 5 bits lose as much, or more.
    sizes = [each.dims[0] * each.dims[1] for each in four.layers]
    pairs = list(zip(four.layers, eight.layers, strict=True))
    for choice in range(1 << len(sizes)):
        picked = [pair[choice >> at & 1] for at, pair in enumerate(pairs)]
        bits = sum(size * one.bits for size, one in zip(sizes, picked, strict=True))
        if bits <= 5.0 * sum(sizes):
            assert sum(one.error for one in picked) >= error(mixed)
    bound = (error(four) + error(eight)) / 2 / len(sizes)
    within = pq.onnx.grouped_weights(model, batches, bits=(4, 8), mean_error=bound, **options)
    assert error(within) / len(sizes) <= bound
    assert within.mean_bits < 8.0


def test_products_may_stay_in_floats() -> None:
    small = pq.onnx.grouped_weights(proto(), groups=GROUP, floats=["[qk]"])
    assert small.floats["q"] == "as asked for"
    assert [each.name for each in small.layers] == ["v", "wide", "narrow"]
    assert "error of weights" in small.report()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"method": "best"}, "^method: got 'best'"),
        ({"method": "gptq"}, "^batches: got none; wanted one at least, with method='gptq'"),
        ({"groups": 24}, "^groups: got 24; wanted one of"),
        ({"groups": 128}, "^model: got products: .*96 inputs"),
        ({"bits": 3}, "^bits: got 3; wanted 4, 8 or"),
        ({"bits": (4, 8)}, "^bits: got .*; wanted bits=.4, 8. with mean_bits or mean_error"),
        ({"mean_bits": 5.0}, "^bits: got"),
        ({"bits": (4, 8), "mean_bits": 3.0}, "^limit: got"),
        ({"bits": (4, 8), "mean_bits": 5.0, "mean_error": 1.0}, "^mean_error: got 1.0"),
        ({"accuracy_level": 2}, "^accuracy_level: got 2"),
        ({"form": "qdq"}, "^form: got 'qdq'"),
        ({"floats": ["none"]}, "^floats: got 'none'"),
        ({"batches": [np.full((2, IC), np.nan, F)]}, "^n: batch: got values that are not finite"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], says: str) -> None:
    batches = options.pop("batches", ())
    with pytest.raises(ArgumentError, match=says):
        pq.onnx.grouped_weights(proto(), batches, **{"groups": GROUP, **options})


def test_blocks_need_their_opset() -> None:
    with pytest.raises(ArgumentError, match=r"^form: got 'dequantize' in opset 17"):
        pq.onnx.grouped_weights(proto(opset=17), groups=GROUP, form="dequantize")
    pq.onnx.grouped_weights(proto(opset=17), groups=GROUP).model()
