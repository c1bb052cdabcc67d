"""oneDNN's INT8 primitives from Python: call, compose, predict and measure them.

Importing this package imports nothing else. Each public name brings in its own room when it is
first used, so that the algebra works without the extension, and ``doctor`` without NumPy.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyonednn_q.compose.composer import compose_chain as compose_chain
    from pyonednn_q.compose.layer import Layer as Layer
    from pyonednn_q.compose.layer_composer import compose_layer as compose_layer
    from pyonednn_q.compose.plan import Plan as Plan
    from pyonednn_q.errors import AliasError as AliasError
    from pyonednn_q.errors import ArgumentError as ArgumentError
    from pyonednn_q.errors import DTypeError as DTypeError
    from pyonednn_q.errors import Error as Error
    from pyonednn_q.errors import ForkedError as ForkedError
    from pyonednn_q.errors import KnownWrongError as KnownWrongError
    from pyonednn_q.errors import LayoutError as LayoutError
    from pyonednn_q.errors import LibraryError as LibraryError
    from pyonednn_q.errors import NoModelError as NoModelError
    from pyonednn_q.errors import OneDNNError as OneDNNError
    from pyonednn_q.errors import OutOfMemoryError as OutOfMemoryError
    from pyonednn_q.errors import ReferenceKernelError as ReferenceKernelError
    from pyonednn_q.errors import SaturationError as SaturationError
    from pyonednn_q.errors import SelfCheckError as SelfCheckError
    from pyonednn_q.errors import ShapeError as ShapeError
    from pyonednn_q.errors import UnsupportedError as UnsupportedError
    from pyonednn_q.expr.chain import Chain as Chain
    from pyonednn_q.expr.fake_quantize import FakeQuantize as FakeQuantize
    from pyonednn_q.expr.steps import Affine as Affine
    from pyonednn_q.expr.steps import Binary as Binary
    from pyonednn_q.expr.steps import Clip as Clip
    from pyonednn_q.expr.steps import Eltwise as Eltwise
    from pyonednn_q.expr.steps import Leaf as Leaf
    from pyonednn_q.expr.steps import PRelu as PRelu
    from pyonednn_q.expr.steps import Round as Round
    from pyonednn_q.expr.steps import Sum as Sum
    from pyonednn_q.expr.vec import Vec as Vec
    from pyonednn_q.inspection.inspection import Inspection as Inspection
    from pyonednn_q.inspection.inspector import inspect as inspect
    from pyonednn_q.native import Prepared as Prepared
    from pyonednn_q.native import prepare as prepare
    from pyonednn_q.native.buffers import buffer_statistics as buffer_statistics
    from pyonednn_q.native.buffers import clear_buffers as clear_buffers
    from pyonednn_q.native.buffers import limit_buffers as limit_buffers
    from pyonednn_q.native.runtime import get_num_threads as get_num_threads
    from pyonednn_q.native.runtime import set_num_threads as set_num_threads
    from pyonednn_q.native.runtime import threads as threads
    from pyonednn_q.ops.conv import Conv as Conv
    from pyonednn_q.ops.conv import Deconv as Deconv
    from pyonednn_q.ops.dense import InnerProduct as InnerProduct
    from pyonednn_q.ops.dense import MatMul as MatMul
    from pyonednn_q.ops.functional import conv as conv
    from pyonednn_q.ops.functional import deconv as deconv
    from pyonednn_q.ops.functional import inner_product as inner_product
    from pyonednn_q.ops.functional import matmul as matmul
    from pyonednn_q.ops.functional import operator_cache_clear as operator_cache_clear
    from pyonednn_q.ops.functional import operator_cache_info as operator_cache_info
    from pyonednn_q.ops.functional import operator_cache_limit as operator_cache_limit
    from pyonednn_q.ops.layer import PreparedLayer as PreparedLayer
    from pyonednn_q.ops.layer import prepare_layer as prepare_layer
    from pyonednn_q.ops.planned import Planned as Planned
    from pyonednn_q.ops.planned import prepare_plan as prepare_plan
    from pyonednn_q.ops.predicted import model_of as model_of
    from pyonednn_q.ops.shapes import clear_shapes as clear_shapes
    from pyonednn_q.ops.shapes import limit_shapes as limit_shapes
    from pyonednn_q.ops.shapes import shape_statistics as shape_statistics
    from pyonednn_q.ops.tunings import clear_tuning as clear_tuning
    from pyonednn_q.ops.tunings import load_tuning as load_tuning
    from pyonednn_q.ops.tunings import save_tuning as save_tuning
    from pyonednn_q.primitive.attr import Attr as Attr
    from pyonednn_q.primitive.attr import Scale as Scale
    from pyonednn_q.primitive.attr import ZeroPoint as ZeroPoint
    from pyonednn_q.primitive.dense_facts import PrimitiveFacts as PrimitiveFacts
    from pyonednn_q.primitive.post_ops import BinaryPostOp as BinaryPostOp
    from pyonednn_q.primitive.post_ops import DepthwisePostOp as DepthwisePostOp
    from pyonednn_q.primitive.post_ops import EltwisePostOp as EltwisePostOp
    from pyonednn_q.primitive.post_ops import PReluPostOp as PReluPostOp
    from pyonednn_q.primitive.post_ops import SumPostOp as SumPostOp
    from pyonednn_q.primitive.problem import BinaryProblem as BinaryProblem
    from pyonednn_q.primitive.problem import ConvProblem as ConvProblem
    from pyonednn_q.primitive.problem import DeconvProblem as DeconvProblem
    from pyonednn_q.primitive.problem import EltwiseProblem as EltwiseProblem
    from pyonednn_q.primitive.problem import InnerProductProblem as InnerProductProblem
    from pyonednn_q.primitive.problem import MatMulProblem as MatMulProblem
    from pyonednn_q.primitive.problem import PoolingProblem as PoolingProblem
    from pyonednn_q.primitive.problem import PReluProblem as PReluProblem
    from pyonednn_q.primitive.problem import ReorderProblem as ReorderProblem
    from pyonednn_q.primitive.problem import ResamplingProblem as ResamplingProblem
    from pyonednn_q.primitive.problem import SoftmaxProblem as SoftmaxProblem
    from pyonednn_q.primitive.problem import SumProblem as SumProblem
    from pyonednn_q.primitive.tensor import TensorSpec as TensorSpec
    from pyonednn_q.qparams import Granularity as Granularity
    from pyonednn_q.qparams import QParams as QParams
    from pyonednn_q.quantize.ranges import Dynamic as Dynamic
    from pyonednn_q.quantize.ranges import qparams_from_range as qparams_from_range

    __version__: str

# The imports above, as data for __getattr__; tests/pure/test_house.py keeps the two equal.
_ROOMS = {
    "primitive.attr": "Attr Scale ZeroPoint",
    "compose.composer": "compose_chain",
    "compose.layer": "Layer",
    "compose.layer_composer": "compose_layer",
    "compose.plan": "Plan",
    "primitive.post_ops": "BinaryPostOp DepthwisePostOp EltwisePostOp PReluPostOp SumPostOp",
    "primitive.dense_facts": "PrimitiveFacts",
    "primitive.problem": "BinaryProblem ConvProblem DeconvProblem EltwiseProblem "
    "InnerProductProblem MatMulProblem PReluProblem PoolingProblem ReorderProblem "
    "ResamplingProblem SoftmaxProblem "
    "SumProblem",
    "primitive.tensor": "TensorSpec",
    "errors": "AliasError ArgumentError DTypeError Error ForkedError KnownWrongError "
    "LayoutError LibraryError NoModelError OneDNNError OutOfMemoryError ReferenceKernelError "
    "SaturationError SelfCheckError ShapeError UnsupportedError",
    "expr.chain": "Chain",
    "expr.fake_quantize": "FakeQuantize",
    "expr.steps": "Affine Binary Clip Eltwise Leaf PRelu Round Sum",
    "expr.vec": "Vec",
    "native": "Prepared prepare",
    "native.buffers": "buffer_statistics clear_buffers limit_buffers",
    "native.runtime": "get_num_threads set_num_threads threads",
    "ops.conv": "Conv Deconv",
    "ops.dense": "InnerProduct MatMul",
    "ops.functional": "conv deconv inner_product matmul operator_cache_clear operator_cache_info "
    "operator_cache_limit",
    "inspection.inspection": "Inspection",
    "inspection.inspector": "inspect",
    "ops.layer": "PreparedLayer prepare_layer",
    "ops.planned": "Planned prepare_plan",
    "ops.predicted": "model_of",
    "ops.shapes": "clear_shapes limit_shapes shape_statistics",
    "ops.tunings": "clear_tuning load_tuning save_tuning",
    "qparams": "Granularity QParams",
    "quantize.ranges": "Dynamic qparams_from_range",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604 (the starred names are strings)


def __getattr__(name: str) -> object:
    if name == "__version__":
        try:
            value: object = version(__name__)
        except PackageNotFoundError:  # run from the sources, never installed
            value = "0+uninstalled"
    elif name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    else:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
