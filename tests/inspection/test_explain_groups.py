"""explain_difference on weights in groups: whose arithmetic gives somebody else's float32."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.inspection import GroupDifference
from pyonednn_q.quantize import group_codes, to_matmul_nbits

pytestmark = pytest.mark.executed

F = np.float32
K, N, GROUP = 256, 40, 32
ROW = pq.Dynamic("s8", "per_row")


def layer_of(kind: Any = pq.MatMul, src_q: Any = ROW) -> tuple[Any, Any, Any, pq.QParams]:
    """Return a layer, a source whose rows have outliers, and the weights."""
    rng = np.random.default_rng(0)
    codes, wei_q = group_codes(rng.standard_normal((K, N)), GROUP, axis=-1)
    x = rng.standard_normal((6, K)).astype(F)
    x[:, 5] *= 30
    bias = rng.standard_normal(N).astype(F)
    if kind is pq.MatMul:
        return pq.MatMul(codes, bias, src_q=src_q, wei_q=wei_q), x, codes, wei_q
    turned = pq.QParams(np.transpose(wei_q.scale), 0, "s4", axis=1, block=(GROUP,))
    layer = pq.InnerProduct(np.ascontiguousarray(codes.T), bias, src_q=src_q, wei_q=turned)
    return layer, x, codes, wei_q


def explained(layer: Any, x: Any, theirs: Any) -> GroupDifference:
    why = pq.explain_difference(layer, x, theirs)
    assert isinstance(why, GroupDifference)
    return why


def onnxruntimes(level: int, layer: Any, x: Any, codes: Any, wei_q: pq.QParams) -> Any:
    """Return the results of a MatMulNBits of an accuracy level."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install .[oracles]")
    runtime = pytest.importorskip(
        "onnxruntime", reason="onnxruntime is not installed: pip install .[oracles]"
    )
    helper = onnx.helper
    b, scales, _ = to_matmul_nbits(codes, wei_q)
    arrays = {"b": b, "s": scales.reshape(-1), "c": layer.bias}
    node = helper.make_node(
        "MatMulNBits", ["x", "b", "s", "", "", "c"], ["y"], domain="com.microsoft", K=K, N=N,
        bits=4, block_size=GROUP, accuracy_level=level,
    )  # fmt: skip
    ends = [helper.make_tensor_value_info(name, 1, None) for name in "xy"]
    held = [onnx.numpy_helper.from_array(each, name) for name, each in arrays.items()]
    graph = helper.make_graph([node], "one", ends[:1], ends[1:], held)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


@pytest.mark.needs_isa("AVX512_CORE_VNNI")
@pytest.mark.parametrize("kind", [pq.MatMul, pq.InnerProduct])
@pytest.mark.parametrize(("level", "name"), [(4, 4), (1, 1), (0, 1)])
def test_accuracy_levels_of_onnxruntime_are_named(kind: Any, level: int, name: int) -> None:
    layer, x, codes, wei_q = layer_of(kind)
    why = explained(layer, x, onnxruntimes(level, layer, x, codes, wei_q))
    assert [each.name for each in why.explained_by] == [f"ort_matmulnbits_{name}"]
    assert why.explained_by[0].frameworks == ("onnxruntime",)
    text = str(why)
    assert f"theirs: ort_matmulnbits_{name} [onnxruntime], all {6 * N}" in text
    # Ranges of rows, whose outliers are far, move results; the order of sums does not.
    assert why.apart["ours"] > 1e-4
    if level == 4:
        assert why.apart["ours_per_group"] < 1e-5
        assert why.agreements[0].name == "ort_matmulnbits_4"


def test_our_own_results_are_ours() -> None:
    for src_q in (ROW, pq.Dynamic("s8", "per_group")):
        layer, x, _, _ = layer_of(src_q=src_q)
        why = explained(layer, x, layer(x))
        assert (why.equal, why.differing, why.turned, why.largest) == (6 * N, 0, 0, 0)
        names = {each.name for each in why.explained_by}
        assert {"ours", "ours_per_row" if src_q == ROW else "ours_per_group"} <= names


def test_rows_with_another_largest_output_are_counted() -> None:
    layer, x, _, _ = layer_of()
    theirs = layer(x).copy()
    lowest = theirs[2].argmin()
    theirs[2, lowest] = theirs[2].max() + 1
    theirs[0, 0] = np.nextafter(theirs[0, 0], F(np.inf))
    why = explained(layer, x, theirs)
    assert (why.rows, why.turned, why.differing) == (6, 1, 2)
    assert (why.higher, why.lower, why.further) == (1, 0, 1)
    assert not why.is_explained
    assert "1 of 6 rows have another largest output" in str(why)
    assert "none of" in str(why)


def test_the_real_product_is_named() -> None:
    layer, x, codes, wei_q = layer_of()
    real = (x.astype(float) @ wei_q.dequantize(codes) + layer.bias).astype(F)
    why = explained(layer, x.reshape(2, 3, K), real.reshape(2, 3, N))
    assert [each.name for each in why.explained_by] == ["real"]
    np.testing.assert_array_equal(why.values.astype(F), real.reshape(2, 3, N))
    content = json.loads(why.to_json())
    assert (content["explained"], content["rows"]) == (True, 6)


def test_a_rows_scale_within_each_term_is_onednns() -> None:
    layer, x, codes, wei_q = layer_of()
    largest = np.abs(x).max(axis=1, keepdims=True)
    rows, scale = np.rint(x * (F(127) / largest)), largest / F(127)
    total = np.zeros((6, N), F)
    for at in range(K // GROUP):
        part = slice(GROUP * at, GROUP * at + GROUP)
        acc = (rows[:, part].astype(int) @ codes[part].astype(int)).astype(F)
        total = total + (acc * np.asarray(wei_q.scale)[at].astype(F)) * scale
    why = explained(layer, x, total + layer.bias)
    assert [each.name for each in why.explained_by] == ["onednn_per_row"]
    assert why.apart["ours_per_row"] < 1e-5


def test_what_cannot_be_compared_is_refused() -> None:
    layer, x, _, _ = layer_of()
    theirs = layer(x)
    with pytest.raises(ShapeError, match=r"^theirs: got"):
        pq.explain_difference(layer, x, theirs[:2])
    with pytest.raises(ArgumentError, match=r"^theirs: got values that are not finite"):
        pq.explain_difference(layer, x, theirs * np.nan)
    with pytest.raises(DTypeError, match=r"^src: got float64"):
        pq.explain_difference(layer, x.astype(float), theirs)
    with pytest.raises(ArgumentError, match=r"^operands: got some"):
        pq.explain_difference(layer, x, theirs, residual=theirs)
