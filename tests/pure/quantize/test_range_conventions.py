"""QParams of ranges by convention: closed forms, oneDNN's worked example, and ways to ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize import (
    codes_by_factors,
    from_onnx,
    from_torch,
    qparams_by,
    quantization_factor,
    to_onnx,
    to_torch,
)

F = np.float32


def test_the_worked_example_of_onednn() -> None:
    src, wei = [15, 14, 15, 8, 11], [[-5.1, 6.8, -1.2, 9.8]]
    codes = codes_by_factors(src, wei, [2.4, -5.2, -8.0])
    assert codes.src.tolist() == [255, 238, 255, 136, 187]
    assert codes.wei.tolist() == [[-66, 88, -16, 127]]
    assert codes.bias.tolist() == [529, -1146, -1762]
    assert (codes.src_factor, codes.wei_factor) == (17.0, 127 / 9.8)
    assert (codes.src.dtype, codes.wei.dtype, codes.bias.dtype) == (np.uint8, np.int8, np.int32)
    # The text multiplies by 12.96, rounded: its third value would be one less.
    assert np.rint(-8.0 * 17 * 12.96) == -1763


@pytest.mark.parametrize(
    ("convention", "dtype", "scale", "point"),
    [
        ("onnxruntime", "s8", F(2.0 / 127), 0),
        ("onnxruntime", "u8", F(4.0 / 255), 128),
        ("torch", "s8", F(2.0) / F(127.5), 0),
        ("torch", "u8", F(2.0) / F(127.5), 128),
        ("tflite", "s8", 2.0 / 127, 0),
        ("tpu_mlir", "s8", 2.0 / 127, 0),
        ("onednn", "s8", 2.0 / 127, 0),
    ],
)
def test_symmetric_scales(convention: Any, dtype: str, scale: float, point: int) -> None:
    found = qparams_by(convention, -2.0, 1.0, dtype, symmetric=True)
    assert found == QParams(float(scale), point, dtype)


def test_symmetric_scales_of_the_training_tool() -> None:
    found = qparams_by("nncf", -2.0, 1.0, "s8", symmetric=True)
    assert found.zero_point == 0
    assert found.scale == pytest.approx(2.0 / 127, rel=1e-7)
    with pytest.raises(DTypeError, match=r"^dtype: got u8; wanted s8 for values below 0"):
        qparams_by("nncf", -2.0, 1.0, "u8", symmetric=True)
    with pytest.raises(DTypeError, match=r"^dtype: got s8; wanted u8 where no value is below 0"):
        qparams_by("nncf", 0.0, 1.0, "s8", symmetric=True)


@pytest.mark.parametrize("convention", ["onnxruntime", "torch", "tflite", "nncf"])
@pytest.mark.parametrize(("dtype", "point"), [("u8", 100), ("s8", -28)])
def test_asymmetric_ranges(convention: Any, dtype: str, point: int) -> None:
    found = qparams_by(convention, -1.0, 1.55, dtype)
    assert found.zero_point == point
    assert found.scale == pytest.approx(0.01, rel=1e-6)
    channels = qparams_by(convention, [-1.0, 0.0], [1.55, 2.55], dtype, axis=1)
    assert channels.axis == 1
    np.testing.assert_array_equal(channels.zero_point, [point, point - 100])


def test_nothing_but_zero() -> None:
    assert qparams_by("onnxruntime", 0.0, 0.0) == QParams(1.0, 0, "u8")
    assert qparams_by("torch", 0.0, 0.0).scale == np.finfo(F).eps
    for convention in ("tflite", "onednn"):
        assert qparams_by(convention, 0.0, 0.0, "s8", symmetric=True).scale == 1.0


def test_types_that_a_convention_does_not_have() -> None:
    assert qparams_by("tpu_mlir", -1.0, 1.55, "s8").zero_point == -28
    with pytest.raises(DTypeError, match=r"^dtype: got u8; wanted s8, which this range has"):
        qparams_by("tpu_mlir", -1.0, 1.55, "u8")
    with pytest.raises(DTypeError, match="s8 for values below 0"):
        qparams_by("onednn", -1.0, 1.0, "u8")
    with pytest.raises(ShapeError, match=r"^lo: "):
        qparams_by("torch", [-1.0], [1.0])
    with pytest.raises(ArgumentError, match=r"^values: got -1\.0"):
        quantization_factor([-1.0, 2.0])


PARAMS = [QParams(0.5, 3, "u8"), QParams([0.25, 2.0, 0.125], [0, -5, 9], "s8", axis=1)]


@pytest.mark.parametrize("qparams", PARAMS)
def test_onnx_computes_the_same_codes(qparams: QParams) -> None:
    constants = to_onnx(qparams)
    axis = constants.get("axis", 1)
    assert from_onnx(constants["y_scale"], constants["y_zero_point"], axis) == qparams
    onnx = pytest.importorskip("onnx")
    reference = pytest.importorskip("onnx.reference")
    x = np.random.default_rng(0).normal(0, 40, (4, 3, 5)).astype(F)
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    initializers = [
        numpy_helper.from_array(constants[name], name) for name in ("y_scale", "y_zero_point")
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "y_scale", "y_zero_point"], ["q"], axis=axis),
        helper.make_node("DequantizeLinear", ["q", "y_scale", "y_zero_point"], ["y"], axis=axis),
    ]
    code = onnx.TensorProto.UINT8 if qparams.dtype == "u8" else onnx.TensorProto.INT8
    graph = helper.make_graph(
        nodes,
        "codes",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)],
        [
            helper.make_tensor_value_info("q", code, x.shape),
            helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, x.shape),
        ],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    q, y = reference.ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(qparams.quantize(x), q)
    np.testing.assert_array_equal(qparams.dequantize(q), y)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")  # it will go
@pytest.mark.parametrize("qparams", PARAMS)
def test_torch_computes_the_same_values(qparams: QParams) -> None:
    arguments = to_torch(qparams)
    assert arguments["dtype"] == ("quint8" if qparams.dtype == "u8" else "qint8")
    torch = pytest.importorskip("torch")
    # Away from ties, whose zero point torch adds before it rounds; scales here are powers of two.
    x = np.random.default_rng(0).integers(-300, 300, (4, 3, 5)) * 0.125 * 0.99
    arguments["dtype"] = getattr(torch, arguments["dtype"])
    values = torch.tensor(x.astype(F))
    if qparams.axis is None:
        tensor = torch.quantize_per_tensor(values, **arguments)
    else:
        channels = {name: torch.tensor(arguments.pop(name)) for name in ("scales", "zero_points")}
        tensor = torch.quantize_per_channel(values, **channels, **arguments)
    assert from_torch(tensor) == qparams
    np.testing.assert_array_equal(qparams.quantize(x.astype(F)), tensor.int_repr().numpy())


def test_what_is_no_tensor_of_torch() -> None:
    with pytest.raises(ArgumentError, match=r"^tensor: got 3; wanted a quantized tensor of torch"):
        from_torch(3)
