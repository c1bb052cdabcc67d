"""In which cases an operator does not run by its definition in Python, though others do.

tests/peers/onnx/test_reference_drawn.py draws attributes for each kind that is `compared`, of opset
7 to the newest that onnxruntime knows. Others have been compared by nobody, and are refused; so are
cases in which runtimes or opsets disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode

__all__ = ["DOUBTS"]

_OF_OLD = 2  # inputs of a Resize of opset 10, and of Upsample
_ROUNDED = 1e-6  # of scales, which are float32


def _resize(node: GraphNode, values: Mapping[str, Array]) -> str:
    """Say where runtimes disagree: which element is nearest, and how long a part of one is."""
    is_old = len(node.inputs) == _OF_OLD
    how = node.attributes.get("coordinate_transformation_mode", "half_pixel")
    is_nearest = node.attributes.get("mode", "nearest") == "nearest"
    if how == "tf_crop_and_resize":
        return "nobody compared crops with another runtime's"
    if node.attributes.get("antialias", 0):
        is_whole = values[node.inputs[0]].dtype.kind != "f"
        if is_nearest or is_whole or how == "pytorch_half_pixel":
            why = "the nearest" if is_nearest else "integers" if is_whole else how
            return f"antialias of {why}: runtimes disagree"
    dims = values[node.inputs[0]].shape
    scales = values.get(node.input(1 if is_old else 2))
    axes = node.attributes.get("axes") or range(len(dims))
    known = [] if scales is None else [*zip(axes, scales.tolist(), strict=False)]
    others = [by for axis, by in known if by != 1]
    if others and all(
        int(np.float32(dims[axis]) * np.float32(by)) == dims[axis] for axis, by in known
    ):
        return f"{others[0]:g} times leaves all dims: onnxruntime copies there; leave it out"
    if not (is_nearest or is_old or how == "align_corners"):
        return ""
    for length, by in ((dims[axis], by) for axis, by in known):
        if abs(length * by - round(length * by)) > _ROUNDED * length:
            return f"{by:g} times {length} is no whole length: runtimes disagree; give sizes"
    is_symmetric = is_nearest and how == "half_pixel_symmetric"
    return "half_pixel_symmetric: runtimes disagree; half_pixel would do" if is_symmetric else ""


_ACTIVATIONS = {kinds.RNN: ("tanh",), kinds.GRU: ("sigmoid", "tanh")}
_OF_LSTM = ("sigmoid", "tanh", "tanh")


def _recurrent(node: GraphNode, values: Mapping[str, Array]) -> str:
    """Say what `onnx.reference` does not look at."""
    attributes = node.attributes
    for name in ("clip", "activation_alpha", "activation_beta"):
        if name in attributes:
            return f"{name}, which onnx.reference does not look at"
    if attributes.get("input_forget", 0):
        return "input_forget, which onnx.reference does not look at"
    both = 2 if attributes.get("direction", "forward") == "bidirectional" else 1
    usual = _ACTIVATIONS.get(node.row, _OF_LSTM) * both
    functions = tuple(str(each).lower() for each in attributes.get("activations", usual))
    if functions != usual:
        return f"activations {', '.join(functions)}: others than onnx.reference takes"
    lengths, dims = values.get(node.input(4)), values[node.inputs[0]].shape
    steps = dims[1 if attributes.get("layout", 0) else 0]
    if lengths is not None and (lengths != steps).any():
        return "sequence_lens, which onnx.reference does not look at"
    return ""


def _loss(node: GraphNode, _values: Mapping[str, Array]) -> str:
    is_negative = node.attributes.get("ignore_index", 0) < 0
    return "ignore_index below 0: runtimes disagree in means" if is_negative else ""


def _dropout(node: GraphNode, values: Mapping[str, Array]) -> str:
    ratio, is_training = (values.get(node.input(at)) for at in (1, 2))
    if is_training is None or not is_training.any() or (ratio is not None and not ratio.any()):
        return ""
    return "random numbers of training: no runtime has another's"


def _roi_align(node: GraphNode, _values: Mapping[str, Array]) -> str:
    is_max = str(node.attributes.get("mode", "avg")).lower() == "max"
    return "mode max: runtimes disagree in what is the largest" if is_max else ""


def _attention(node: GraphNode, _values: Mapping[str, Array]) -> str:
    """Say which parts are newer than what others have, or differ there."""
    if any(node.outputs[3:]):
        return "qk_matmul_output: runtimes disagree"
    windows = ("left_window_size", "right_window_size")
    is_local = any(node.attributes.get(name, -1) != -1 for name in windows)
    return "nobody compared local windows with another runtime's" if is_local else ""


DOUBTS: Mapping[str, Callable[[GraphNode, Mapping[str, Array]], str]] = MappingProxyType(
    {
        kinds.RESIZE.name: _resize,
        kinds.UPSAMPLE.name: _resize,
        **dict.fromkeys((kinds.GRU.name, kinds.LSTM.name, kinds.RNN.name), _recurrent),
        **dict.fromkeys((kinds.LOSS.name, kinds.CROSS_ENTROPY.name), _loss),
        kinds.DROPOUT.name: _dropout,
        kinds.ATTENTION.name: _attention,
        kinds.ROI_ALIGN.name: _roi_align,
    }
)
