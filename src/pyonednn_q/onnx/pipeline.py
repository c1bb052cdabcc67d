"""PASSES: all that a model goes through from its file to what runs, in order.

Each is a function from a graph to a graph; the first line of its docstring is what it promises.
They run from these lists. Those of `load` run once, and those of `prepared` until nothing changes.
Those of `calibrate` run on graphs of floats, with ranges and settings. The last ones make the
operations of a network. `Network.compile` decides on layouts and memory, for the dims and strides
of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable

from pyonednn_q.graph.graph import Graph
from pyonednn_q.onnx import calibration, model, model_reader, passes
from pyonednn_q.onnx.float_form import float_form
from pyonednn_q.onnx.float_model import with_float_calls
from pyonednn_q.onnx.fusion import with_calls
from pyonednn_q.onnx.quantized_form import with_norms_as_layers

__all__ = ["PASSES"]

PASSES: dict[str, tuple[Callable[..., Graph], ...]] = {
    "load": model_reader.PASSES,
    "prepared": passes.PASSES,
    "calibrate": (with_norms_as_layers, *calibration.PASSES),
    "fuse": (with_calls,),
    "floats": (float_form, with_float_calls),
    "run": model.PASSES,
}
