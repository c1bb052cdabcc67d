"""Dims of results where lengths are symbols or not known; what contradicts itself is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.graph import kinds
from pyonednn_q.graph.dims_rule import KnownSources, KnownTensor, Lengths
from pyonednn_q.graph.kind import Kind
from pyonednn_q.graph.kinds import KINDS, kind_of


def of(row: Kind, *tensors: Any, outputs: int = 1, opset: int = 21, **attributes: Any) -> Any:
    """Dims of results of sources: dims, integers as an array, None for what is left out."""
    assert row.dims is not None
    results = row.dims.of(sources(*tensors, outputs=outputs, opset=opset, **attributes))
    assert len(results) == outputs
    return results[0] if outputs == 1 else list(results)


def sources(*tensors: Any, outputs: int = 1, opset: int = 21, **attributes: Any) -> KnownSources:
    return KnownSources(attributes, [known(each) for each in tensors], outputs, opset)


def known(tensor: Any) -> KnownTensor | None:
    if isinstance(tensor, np.ndarray):
        return KnownTensor(tensor.dtype.name, tensor.shape, tensor)
    if tensor is None or isinstance(tensor, KnownTensor):
        return tensor
    return KnownTensor("float32", tensor)


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def reals(values: list[float]) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


OPEN = KnownTensor("float32")
THREE = KnownTensor("int64", (3,))  # integers that nobody knows


@pytest.mark.parametrize(
    ("dims", "wanted"),
    [
        ([("n", 3), (3,)], ("n", 3)),
        ([("n", 1), (1, "m")], ("n", "m")),
        ([("n",), ("n",)], ("n",)),
        ([("n",), ("m",)], ("",)),
        ([("n",), (4,)], (4,)),
        ([("",), (1,)], ("",)),
        ([("",), ("n",)], ("",)),
        ([(0,), (1,)], (0,)),
        ([(2,), (3,)], None),
        ([OPEN, (3,)], None),
    ],
)
def test_broadcast(dims: list[Any], wanted: Lengths | None) -> None:
    assert of(kinds.ADD, *dims) == wanted


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ({}, ("n", 4, "", 6)),
        ({"pads": (1, 1, 1, 1)}, ("n", 4, "h", 8)),
        ({"auto_pad": "SAME_UPPER"}, ("n", 4, "h", 8)),
        ({"auto_pad": "SAME_LOWER", "strides": (2, 3)}, ("n", 4, "", 3)),
        ({"pads": (1, 1, 1, 1), "strides": (1, 2)}, ("n", 4, "h", 4)),
        ({"dilations": (1, 4)}, None),  # reaches over 9 of 8
        ({"strides": (1, 0)}, None),
        ({"strides": (1,)}, None),
        ({"strides": "2x"}, None),
    ],
)
def test_convolution(attributes: dict[str, Any], wanted: Lengths | None) -> None:
    assert of(kinds.CONV, ("n", 3, "h", 8), (4, 3, 3, 3), **attributes) == wanted


def test_windows_that_begin_behind_the_source_are_left_out() -> None:
    # https://onnx.ai/onnx/operators/text_diff_MaxPool_12_22.html; ONNX's inference does so before,
    # too, where such a pool refuses to run.
    told: dict[str, Any] = {"kernel_shape": (1,), "strides": (2,), "ceil_mode": 1, "pads": (0, 1)}
    assert of(kinds.MAX_POOL, (1, 1, 3), opset=22, **told) == (1, 1, 2)
    assert of(kinds.MAX_POOL, (1, 1, 3), opset=21, **told) == (1, 1, 2)
    assert of(kinds.MAX_POOL, (1, 1, 4), opset=21, **told, outputs=2) == [(1, 1, 3)] * 2


def test_transposed_convolution() -> None:
    src, wei = ("n", 6, "h", 5), (6, 2, 3, 3)
    row = kinds.CONV_TRANSPOSE
    assert of(row, src, wei, group=2, strides=(1, 2), pads=(1, 1, 1, 1)) == ("n", 4, "h", 9)
    assert of(row, src, wei, output_shape=(7, 9)) == ("n", 2, 7, 9)
    assert of(row, src, wei, auto_pad="SAME_UPPER", strides=(1, 2)) == ("n", 2, "h", 10)


@pytest.mark.parametrize(
    ("src", "shape", "wanted"),
    [
        (("n", 3, 4), ints(0, -1), ("n", 12)),
        (("n", 3, 4), ints(-1, 12), ("", 12)),
        (("n", 3, 4), ints(0, 2, 6), ("n", 2, 6)),
        ((2, 3, 4), ints(-1, 6), (4, 6)),
        ((2, 3), ints(-1, 4), None),
        ((2, 3), ints(0, 0, 0), None),
        ((2, 3), THREE, ("", "", "")),
        (OPEN, ints(2, -1), (2, "")),
        (OPEN, KnownTensor("int64"), None),
        (("n", 3), KnownTensor("int64", (2,), ("n", -1)), ("n", 3)),
        (("n", "m"), KnownTensor("int64", (1,), (-1,)), ("",)),
        (("n", 1), ints(-1), ("n",)),
    ],
)
def test_reshape(src: Any, shape: Any, wanted: Lengths | None) -> None:
    assert of(kinds.RESHAPE, src, shape) == wanted


def test_reshape_to_nothing() -> None:
    assert of(kinds.RESHAPE, (0, 3), ints(3, 0), allowzero=1) == (3, 0)
    assert of(kinds.RESHAPE, (0, 3), ints(0, -1), allowzero=1) is None


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ((ints(1), ints(1 << 40), ints(1)), ("n", 7)),
        ((ints(0), ints((1 << 63) - 1), ints(0)), ("n", 8)),
        ((ints(1), ints(3), ints(0)), ("", 8)),
        ((ints(-1), ints(-(1 << 63)), ints(1), ints(-3)), ("n", 3)),
        # "clamped to [0, dims[axes[i]]-1] for negative stepping"
        ((ints(-9), ints(-20), ints(1), ints(-1)), ("n", 1)),
        ((KnownTensor("int64", (1,)), ints(3), ints(1)), ("n", "")),
        ((KnownTensor("int64", (1,)), KnownTensor("int64", (1,))), ("", "")),
        ((ints(0), ints(3), ints(5)), None),
    ],
)
def test_slice(told: tuple[Any, ...], wanted: Lengths | None) -> None:
    assert of(kinds.SLICE, ("n", 8), *told) == wanted


def test_what_moves_elements_hands_symbols_on() -> None:
    src = ("n", 3, "m", 1)
    assert of(kinds.TRANSPOSE, src, perm=(2, 0, 1, 3)) == ("m", "n", 3, 1)
    assert of(kinds.TRANSPOSE, src, perm=(2, 0, 0, 3)) is None
    assert of(kinds.SQUEEZE, src, ints(-1)) == ("n", 3, "m")
    assert of(kinds.SQUEEZE, src, ints(1)) is None
    assert of(kinds.SQUEEZE, src) is None  # n may be 1
    assert of(kinds.UNSQUEEZE, ("n",), ints(0, -1)) == (1, "n", 1)
    assert of(kinds.FLATTEN, ("n", 3, 4)) == ("n", 12)
    assert of(kinds.FLATTEN, ("n", 3, 4), axis=2) == ("", 4)
    assert of(kinds.CONCAT, ("n", 3), ("n", 4), axis=-1) == ("n", 7)
    assert of(kinds.CONCAT, ("n", 3), ("m", 3), axis=0) == ("", 3)
    assert of(kinds.CONCAT, ("n", 3), (2, "k"), axis=1) == (2, "")
    assert of(kinds.SPLIT, ("n", 7), ints(3, 4), outputs=2, axis=1) == [("n", 3), ("n", 4)]
    assert of(kinds.SPLIT, ("n", 7), outputs=3, axis=1, num_outputs=3) == [
        ("n", 3),
        ("n", 3),
        ("n", 1),
    ]
    assert of(kinds.SPLIT, ("n", 7), outputs=2) == [("", 7), ("", 7)]
    assert of(kinds.GATHER, ("n", 3), ("k", 2), axis=1) == ("n", "k", 2)
    assert of(kinds.GATHER_ND, ("n", 3, 5), ("k", 2)) == ("k", 5)
    assert of(kinds.PAD, ("n", 3), ints(0, 1, 0, 1)) == ("n", 5)
    assert of(kinds.PAD, ("n", 3), KnownTensor("int64", (4,))) == ("", "")
    assert of(kinds.PAD, ("n", 3), ints(1, 2), None, ints(-1)) == ("n", 6)
    assert of(kinds.EXPAND, ("n", 1), ints(1, 4)) == ("n", 4)
    assert of(kinds.EXPAND, (2, 1), THREE) == ("", 2, "")
    assert of(kinds.TILE, ("n", 3), ints(1, 2)) == ("n", 6)
    assert of(kinds.DEPTH_TO_SPACE, ("n", 8, "h", 3), blocksize=2) == ("n", 2, "", 6)


def test_resize() -> None:
    src = ("n", 3, "h", 5)
    assert of(kinds.RESIZE, src, None, reals([1, 1, 1, 2.5])) == ("n", 3, "h", 12)
    assert of(kinds.RESIZE, src, None, reals([1, 1, 2, 2])) == ("n", 3, "", 10)
    assert of(kinds.RESIZE, src, None, None, ints(1, 3, 7, 9)) == (1, 3, 7, 9)
    assert of(kinds.RESIZE, (10,), None, reals([0.7])) == ("",)  # 6 or 7
    # https://onnx.ai/onnx/operators/onnx__Resize.html: not_larger takes the least of the ratios.
    told: dict[str, Any] = {"axes": (2, 3), "keep_aspect_ratio_policy": "not_larger"}
    assert of(kinds.RESIZE, (1, 3, 4, 8), None, None, ints(8, 8), **told) == (1, 3, 4, 8)


def test_products_and_reductions() -> None:
    assert of(kinds.MATMUL, ("n", "t", 4), (4, 5)) == ("n", "t", 5)
    assert of(kinds.MATMUL, (4,), ("n", 4, 5)) == ("n", 5)
    assert of(kinds.MATMUL, (4,), (4,)) == ()
    assert of(kinds.MATMUL, (2, 4), (5, 4)) is None
    assert of(kinds.GEMM, (4, "n"), (5, 4), transA=1, transB=1) == ("n", 5)
    assert of(kind_of("Einsum"), ("b", 3, 4), ("b", 4, 5), equation="bij,bjk->bik") == ("b", 3, 5)
    assert of(kinds.REDUCE_SUM, ("n", 3, 4), ints(-1)) == ("n", 3, 1)
    assert of(kinds.REDUCE_SUM, ("n", 3, 4), ints(0), keepdims=0) == (3, 4)
    assert of(kinds.REDUCE_SUM, ("n", 3), KnownTensor("int64", (1,))) == ("", "")
    assert of(kinds.REDUCE_SUM, ("n", 3), KnownTensor("int64", (1,)), keepdims=0) is None
    assert of(kinds.REDUCE_MEAN, ("n", 3), axes=(1,), keepdims=0) == ("n",)
    assert of(kinds.LSTM, ("t", "n", 8), outputs=3, hidden_size=5, direction="bidirectional") == [
        ("t", 2, "n", 5),
        (2, "n", 5),
        (2, "n", 5),
    ]


def test_elements_of_what_is_made_of_dims() -> None:
    def elements(row: Kind, *tensors: Any, **attributes: Any) -> Any:
        assert row.dims is not None
        return row.dims.elements(sources(*tensors, **attributes))

    made = KnownTensor("int64", (3,), ("n", 3, 4))
    assert elements(kinds.SHAPE, ("n", 3, 4), start=-2) == (3, 4)
    assert elements(kinds.SIZE, (2, 3)) == (6,)
    assert elements(kinds.GATHER, made, ints(-1, 0)) == (4, "n")
    assert elements(kinds.GATHER, made, ints(5)) is None
    assert elements(kinds.CONCAT, made, ints(7), axis=0) == ("n", 3, 4, 7)
    assert elements(kinds.SLICE, made, ints(0), ints(2), ints(0)) == ("n", 3)
    assert elements(kinds.MUL, made, ints(2)) == ("", 6, 8)
    assert elements(kinds.MUL, made, ints(1)) == ("n", 3, 4)
    assert elements(kinds.DIV, ints(7, 8), ints(2)) == (3, 4)
    assert elements(kinds.DIV, ints(-7), ints(2)) is None
    assert elements(kinds.ADD, reals([1, 2]), reals([1, 2])) is None
    assert elements(kinds.CAST, made, to=7) == ("n", 3, 4)
    assert elements(kinds.CAST, made, to=9) is None  # bool
    assert elements(kinds.CONCAT, *[ints(*range(60))] * 2, axis=0) is None  # too many
    huge = KnownTensor("int64", (1,), (1 << 40,))
    assert elements(kinds.MUL, huge, huge) is None


ODD: list[Any] = [None, (), (1,), ("", -1), "text", b"bytes", -7, 0, 1 << 70, 0.5, float("nan")]
NAMES = (
    "axes", "axis", "auto_pad", "batch_dims", "blocksize", "dilations", "direction", "ends",
    "equation", "group", "hidden_size", "k", "kernel_shape", "keepdims", "num_outputs", "N",
    "output_padding", "output_shape", "pads", "perm", "scales", "split", "start", "starts",
    "strides", "transA",
)  # fmt: skip


@pytest.mark.parametrize(
    "row", [row for row in KINDS.values() if row.dims is not None], ids=lambda row: row.name
)
def test_what_is_no_right_node_has_no_dims(row: Kind) -> None:
    """Attributes and sources that no checker saw: no error, and no length below 0."""
    assert row.dims is not None
    rng = np.random.default_rng(sum(row.name.encode()))
    tensors = [
        None, OPEN, THREE, ints(-5), ints(3, 1 << 62), reals([0.5, np.nan]), (), (2,),
        ("n", 3, 4), (1, 0, 5, 6), (2,) * 130,
    ]  # fmt: skip
    for _ in range(300):
        count = int(rng.integers(0, 5))
        read = [tensors[at] for at in rng.integers(0, len(tensors), count)]
        told = {str(name): ODD[rng.integers(0, len(ODD))] for name in rng.choice(NAMES, 4)}
        seen = sources(*read, outputs=2, **told)
        results = row.dims.of(seen)
        assert len(results) == 2
        for dims in results:
            assert dims is None or all(isinstance(e, str) or e >= 0 for e in dims)
        elements = row.dims.elements(seen)
        assert elements is None or len(elements) <= 64
