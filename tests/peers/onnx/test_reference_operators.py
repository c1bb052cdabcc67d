"""Operators that are not ours, in the opsets whose meanings differ, beside onnxruntime."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
import onnxruntime
from onnx import helper, numpy_helper

import pyonednn_q as pq

DIMS = (2, 4, 6, 6)  # as many channels as there are images would hide what mixes them up
X = np.random.default_rng(0).normal(0, 1, DIMS).astype(np.float32)
OF_OLD = (7, 9, 11, 12)
OF_NEW = (13, 16, 18, 20)


class Case(NamedTuple):
    """A node of x and constants, and the opsets that have it so."""

    kind: str
    opsets: tuple[int, ...]
    given: dict[str, Any] = {}  # noqa: RUF012 - nobody writes it
    constants: tuple[Any, ...] = ()
    outputs: str = "y"


def whole(*values: int) -> Any:
    return np.array(values, np.int64)


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


PADS = [0, 0, 1, 1, 0, 0, 2, 2]
TWICE = floats(1, 1, 2, 2)
NONE = floats()
CASES = [
    *(Case(kind, OF_OLD, {"axes": [1]}) for kind in ("ReduceSum", "ReduceMax", "ReduceL2")),
    Case("ReduceMean", (*OF_OLD, 13, 16), {"axes": [2, 3], "keepdims": 0}),
    Case("ReduceSum", OF_NEW, {"keepdims": 0}, (whole(1, 3),)),
    *(Case(kind, (18, 20), {}, (whole(-1),)) for kind in ("ReduceMean", "ReduceMin", "ReduceL1")),
    Case("Unsqueeze", OF_OLD, {"axes": [0, 2]}),
    Case("Unsqueeze", OF_NEW, {}, (whole(0, -1),)),
    Case("Split", OF_OLD, {"axis": 1, "split": [1, 3]}, (), "yz"),
    Case("Split", OF_NEW, {"axis": 1}, (whole(1, 3),), "yz"),
    Case("Clip", (7, 9), {"min": -0.5, "max": 0.5}),
    Case("Clip", (11, 12, *OF_NEW), {}, (np.float32(-0.5), np.float32(0.5))),
    *(Case("Pad", (7, 9), {"pads": PADS, "mode": mode}) for mode in ("constant", "reflect")),
    *(Case("Pad", (11, *OF_NEW), {"mode": mode}, (whole(*PADS),)) for mode in ("edge", "reflect")),
    Case("Slice", (7, 9), {"axes": [1], "starts": [1], "ends": [3]}),
    Case("Slice", (11, *OF_NEW), {}, (whole(5), whole(0), whole(2), whole(-2))),
    Case("TopK", (7, 9), {"k": 2, "axis": 1}, (), "yz"),
    Case("TopK", (11, *OF_NEW), {"axis": -1}, (whole(2),), "yz"),
    Case("Upsample", (9,), {"mode": "nearest"}, (TWICE,)),
    Case("Upsample", (9,), {"mode": "linear"}, (TWICE,)),
    Case("Upsample", (7,), {"mode": "nearest", "scales": [1.0, 1.0, 2.0, 2.0]}),
    *(Case("Resize", (10,), {"mode": mode}, (TWICE,)) for mode in ("nearest", "linear")),
    *(
        Case("Resize", (11, *OF_NEW), {"mode": mode}, (NONE, floats(1, 1, *by)))
        for mode in ("nearest", "linear")
        for by in ((2, 2), (0.5, 0.5))
    ),
    Case("Dropout", OF_OLD[:2], {"ratio": 0.5}),
    Case("Dropout", (12, *OF_NEW)),
    Case("MaxPool", (*OF_OLD, *OF_NEW), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("MaxPool", (*OF_OLD, 20), {"kernel_shape": [3, 3], "auto_pad": "SAME_LOWER"}),
    Case("MaxPool", (11, 20), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    *(
        Case("AveragePool", (*OF_OLD, *OF_NEW), {"kernel_shape": [3, 3], "pads": [1] * 4, **more})
        for more in ({}, {"count_include_pad": 1})
    ),
    Case("InstanceNormalization", (7, 20), {}, (floats(0, 1, 2, 3), floats(4, 5, 6, 7))),
    Case("Flatten", (*OF_OLD, *OF_NEW), {"axis": 2}),
    Case("DepthToSpace", (*OF_OLD, *OF_NEW), {"blocksize": 2}),
    Case("DepthToSpace", (11, 20), {"blocksize": 2, "mode": "CRD"}),
    Case("SpaceToDepth", (7, 20), {"blocksize": 2}),
    Case("PRelu", (*OF_OLD, *OF_NEW), {}, (np.full((4, 1, 1), 0.2, np.float32),)),
    *(Case(kind, (7, 12, 20)) for kind in ("HardSigmoid", "Selu", "LeakyRelu", "Softsign")),
    Case("LpNormalization", (7, 20), {"axis": 1}),
    Case("MeanVarianceNormalization", (9, 20), {"axes": [0, 2, 3]}),
    Case("CumSum", (11, 20), {"reverse": 1, "exclusive": 1}, (np.array(2, np.int32),)),
    Case("Gather", (11, 20), {"axis": 1}, (whole(0, -1),)),
    Case("Expand", (9, 20), {}, (whole(2, 4, 6, 6),)),
    *(Case(kind, (18, 20)) for kind in ("HardSwish", "Mish")),
    *(Case("Gelu", (20,), {"approximate": how}) for how in ("none", "tanh")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "opset"),
    [
        pytest.param(case, opset, id=f"{case.kind}-{opset}-{at}")
        for at, case in enumerate(CASES)
        for opset in case.opsets
    ],
)
def test_results_are_those_of_the_opset(case: Case, opset: int) -> None:
    names = [f"c{at}" for at in range(len(case.constants))]
    node = helper.make_node(case.kind, ["x", *names], [*case.outputs], **case.given)
    held = [
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in zip(names, case.constants, strict=True)
    ]
    ends = [helper.make_empty_tensor_value_info(name) for name in case.outputs]
    start = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, DIMS)
    graph = helper.make_graph([node], "one", [start], ends, held)
    opsets = [helper.make_opsetid("", opset)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    model = onnx.shape_inference.infer_shapes(made, strict_mode=True).SerializeToString()
    theirs = onnxruntime.InferenceSession(model).run(None, {"x": X})
    ready = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))
    ours = ready.run({"x": X})
    for name, expected in zip(case.outputs, theirs, strict=True):
        assert ours[name].shape == expected.shape
        # Two runtimes, each of which may round after adding each number, and thrice behind that.
        roundings = 2 * (X.size + 3) * 2.0**-24
        apart = np.abs(ours[name].astype(np.float64) - expected)
        assert apart.max(initial=0.0) <= roundings * max(1.0, np.abs(expected).max(initial=0.0))
