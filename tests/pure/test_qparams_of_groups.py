"""Quantization parameters of groups: blocks of neighbours along an axis."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, Error, ShapeError
from pyonednn_q.expr.fq_qparams import dequantize_chain
from pyonednn_q.graph.graph import Graph, Value
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize import from_onnx, quality, to_onnx, to_torch

SCALE = np.array([[0.5, 1.0, 2.0], [0.25, 4.0, 8.0]])
POINT = np.array([[0, 1, -2], [3, -8, 7]])
GROUPS = QParams(SCALE, POINT, "s4", axis=0, block=(2,))


def test_every_group_has_its_own_scale_and_zero_point() -> None:
    codes = np.array([[1, 2, 3], [-8, 7, 0], [5, 5, 5], [-1, -2, -3]], np.int8)
    real = GROUPS.dequantize(codes)
    for k in range(4):
        for n in range(3):
            assert real[k, n] == SCALE[k // 2, n] * (int(codes[k, n]) - POINT[k // 2, n])
    turned = QParams(-SCALE, POINT, "s4", axis=0, block=(2,))
    assert np.array_equal(turned.dequantize(codes), -real)
    eight = QParams(SCALE.T, 3, "s8", axis=-1, block=(2,))
    values = np.arange(12, dtype=float).reshape(3, 4)
    wanted = np.clip(np.rint(values / np.repeat(SCALE.T, 2, axis=1)) + 3, -128, 127)
    np.testing.assert_array_equal(eight.quantize(values), wanted)


def test_a_group_is_part_of_the_value() -> None:
    assert QParams(SCALE.tolist(), POINT.tolist(), "s4", 0, (2,)) == GROUPS
    twin = pickle.loads(pickle.dumps(GROUPS))
    assert twin == GROUPS
    assert hash(twin) == hash(GROUPS)
    assert not twin.scale.flags.writeable
    flat = [[0.5, 1.0, 2.0, 0.25, 4.0, 8.0]]
    others = (
        QParams(SCALE, POINT, "s4", axis=0, block=(4,)),
        QParams(SCALE, POINT, "s4", axis=1, block=(2,)),
        QParams(SCALE, 0, "s4", axis=0, block=(2,)),
        QParams(flat, POINT.reshape(1, -1), "s4", axis=0, block=(2,)),
    )
    assert GROUPS not in others
    assert repr(GROUPS).endswith("dtype='s4', axis=0, block=(2,))")
    assert repr(QParams(1.0, 0, "u8")) == "QParams(scale=1.0, zero_point=0, dtype='u8', axis=None)"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((SCALE, 0, "s4", 0, (0,)), r"^block: got \(0,\)"),
        ((SCALE, 0, "s4", 0, (2, 2)), r"^block: got \(2, 2\)"),
        ((SCALE, 0, "s4", None, (2,)), r"^scale: got shape \(2, 3\) and axis None"),
        ((SCALE, 0, "s4", 2, (2,)), r"^scale: got shape \(2, 3\) and axis 2"),
        ((0.5, 0, "s4", 0, (2,)), r"^scale: got shape \(\)"),
        ((SCALE, [0, 0, 0], "s4", 0, (2,)), r"^zero_point: got shape \(3,\)"),
        ((SCALE, 8, "s4", 0, (2,)), r"^zero_point: got 8"),
        ((0.0 * SCALE, 0, "s4", 0, (2,)), r"^scale: got 0\.0; wanted finite values other than 0"),
    ],
)
def test_what_are_no_groups_is_refused(arguments: Any, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        QParams(*arguments)


def test_arrays_of_other_shapes_are_refused() -> None:
    for shape in ((3, 3), (4, 2), (4,), (1, 4, 3)):
        with pytest.raises(ShapeError, match=r"^x: got shape .*; wanted \(4, 3\)"):
            GROUPS.dequantize(np.zeros(shape, np.int8))


def test_onnx_has_groups_and_torch_has_not() -> None:
    eight = QParams(SCALE.astype(np.float32), POINT, "s8", axis=0, block=(2,))
    constants = to_onnx(eight)
    assert (constants["axis"], constants["block_size"]) == (0, 2)
    assert from_onnx(**constants) == eight
    assert from_onnx(SCALE, POINT.astype(np.int8), axis=0, block_size=2) == QParams(
        SCALE, POINT, "s8", axis=0, block=(2,)
    )
    with pytest.raises(ArgumentError, match=r"^qparams: got groups of 2"):
        to_torch(eight)


def test_quality_is_that_of_the_groups() -> None:
    rng = np.random.default_rng(0)
    real = rng.standard_normal((8, 3)) * np.repeat([[1.0], [50.0]], 4, axis=0)
    ends = np.abs(real.reshape(2, 4, 3)).max(axis=1)
    groups = quality(real, q=QParams(ends / 127, 0, "s8", axis=0, block=(4,)))
    channels = quality(real, q=QParams(ends.max(axis=0) / 127, 0, "s8", axis=1))
    codes = np.rint(real / np.repeat(ends / 127, 4, axis=0))
    lost = np.square(real - codes * np.repeat(ends / 127, 4, axis=0)).sum()
    assert groups.sqnr == 10 * np.log10(np.square(real).sum() / lost)
    assert groups.sqnr > channels.sqnr
    assert groups.clipped == 0.0
    with pytest.raises(ShapeError, match=r"^q: got"):
        quality(real[:6], q=QParams(ends, 0, "s8", axis=0, block=(4,)))


def test_a_graph_keeps_groups() -> None:
    value = Value("int8", (4, 3), QParams(SCALE, 0, "s8", axis=0, block=(2,)))
    graph = Graph((), {}, {}, {}, {}, {"w": value})
    assert Graph.from_json(graph.to_json()).tensors["w"].qparams == value.qparams


def test_what_takes_one_scale_takes_no_groups() -> None:
    with pytest.raises(Error):
        dequantize_chain(GROUPS)
