"""oneDNN's INT8 primitives from Python: call, compose, predict and measure them.

Importing this package imports nothing else. Each public name brings in its own room when it is
first used, so that the algebra works without the extension, and ``doctor`` without NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyonednn_q import compose as compose
    from pyonednn_q import emulate as emulate
    from pyonednn_q import errors as errors
    from pyonednn_q import expr as expr
    from pyonednn_q import graph as graph
    from pyonednn_q import inspection as inspection
    from pyonednn_q import native as native
    from pyonednn_q import network as network
    from pyonednn_q import onnx as onnx
    from pyonednn_q import ops as ops
    from pyonednn_q import predict as predict
    from pyonednn_q import primitive as primitive
    from pyonednn_q import quantize as quantize
    from pyonednn_q import requantize as requantize
    from pyonednn_q import torch as torch
    from pyonednn_q.compose import compose_chain as compose_chain
    from pyonednn_q.compose import compose_layer as compose_layer
    from pyonednn_q.errors import ArgumentError as ArgumentError
    from pyonednn_q.errors import Error as Error
    from pyonednn_q.errors import UnsupportedError as UnsupportedError
    from pyonednn_q.expr import Affine as Affine
    from pyonednn_q.expr import Binary as Binary
    from pyonednn_q.expr import Chain as Chain
    from pyonednn_q.expr import Clip as Clip
    from pyonednn_q.expr import Eltwise as Eltwise
    from pyonednn_q.expr import FakeQuantize as FakeQuantize
    from pyonednn_q.expr import Leaf as Leaf
    from pyonednn_q.expr import PRelu as PRelu
    from pyonednn_q.expr import Round as Round
    from pyonednn_q.expr import Sum as Sum
    from pyonednn_q.inspection import explain_difference as explain_difference
    from pyonednn_q.inspection import inspect as inspect
    from pyonednn_q.models.decoder import Decoder as Decoder
    from pyonednn_q.models.loaded_model import load as load
    from pyonednn_q.native import prepare as prepare
    from pyonednn_q.native import threads as threads
    from pyonednn_q.onnx import calibrate as calibrate
    from pyonednn_q.ops import Conv as Conv
    from pyonednn_q.ops import Deconv as Deconv
    from pyonednn_q.ops import InnerProduct as InnerProduct
    from pyonednn_q.ops import MatMul as MatMul
    from pyonednn_q.ops import model_of as model_of
    from pyonednn_q.ops import prepare_layer as prepare_layer
    from pyonednn_q.ops import prepare_plan as prepare_plan
    from pyonednn_q.ops.functional import conv as conv
    from pyonednn_q.ops.functional import deconv as deconv
    from pyonednn_q.ops.functional import inner_product as inner_product
    from pyonednn_q.ops.functional import matmul as matmul
    from pyonednn_q.qparams import QParams as QParams
    from pyonednn_q.quantize import Dynamic as Dynamic

    __version__: str

# The imports above, as data for __getattr__; tests/pure/house/test_house.py keeps the two equal.
_NAMES = {
    "compose": "compose_chain compose_layer",
    "errors": "ArgumentError Error UnsupportedError",
    "expr": "Affine Binary Chain Clip Eltwise FakeQuantize Leaf PRelu Round Sum",
    "inspection": "explain_difference inspect",
    "models.decoder": "Decoder",
    "models.loaded_model": "load",
    "native": "prepare threads",
    "onnx": "calibrate",
    "ops": "Conv Deconv InnerProduct MatMul model_of prepare_layer prepare_plan",
    "ops.functional": "conv deconv inner_product matmul",
    "qparams": "QParams",
    "quantize": "Dynamic",
}
_HOME = {name: room for room, names in _NAMES.items() for name in names.split()}
_ROOMS = (
    "compose",
    "emulate",
    "errors",
    "expr",
    "graph",
    "inspection",
    "native",
    "network",
    "onnx",
    "ops",
    "predict",
    "primitive",
    "quantize",
    "requantize",
)

# Its names need a package of its own name, and say so where that is not.
_WITH_FRAMEWORK = ("torch",)

__all__ = ["__version__", *_HOME, *_ROOMS, *_WITH_FRAMEWORK]  # noqa: PLE0604 (the starred names are strings)


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = import_module(f"{__name__}.shown").package_version()
    elif name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name in _ROOMS or name in _WITH_FRAMEWORK:
        value = import_module(f"{__name__}.{name}")
    else:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
