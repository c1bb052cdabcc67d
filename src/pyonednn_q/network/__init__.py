"""network: operators that feed each other, compiled to one program over one block of memory.

Tensors between operators stay quantized and channels-last; no Python runs between primitives.
`pyonednn_q.calibrate` makes an INT8 network from float operators. Every constructor raises
`ArgumentError`, `DTypeError` or `ShapeError` with the name of the argument that is wrong.
"""

from __future__ import annotations

from pyonednn_q.network.cached_attention import CachedAttention, CacheShape, KeyValueCache
from pyonednn_q.network.compiled import Compiled
from pyonednn_q.network.conditions import Compare, NumberCast
from pyonednn_q.network.floats import (
    Elementwise,
    FloatArithmetic,
    FloatMatMul,
    Interpolation,
    Reduction,
)
from pyonednn_q.network.graph import Network, Node
from pyonednn_q.network.moves import Lookup, Repeat, Slice, Transpose
from pyonednn_q.network.operations import (
    Concat,
    Convert,
    Dequantize,
    PythonCall,
    Quantize,
    Reshape,
)
from pyonednn_q.network.recurrence import Recurrence
from pyonednn_q.network.rows import CodeMatMul, LayerNorm, Softmax
from pyonednn_q.network.selections import IsNaN, Pick, TableRows, Where
from pyonednn_q.network.sequence import sequential
from pyonednn_q.network.window_pools import Pool

__all__ = [
    "CacheShape",
    "CachedAttention",
    "CodeMatMul",
    "Compare",
    "Compiled",
    "Concat",
    "Convert",
    "Dequantize",
    "Elementwise",
    "FloatArithmetic",
    "FloatMatMul",
    "Interpolation",
    "IsNaN",
    "KeyValueCache",
    "LayerNorm",
    "Lookup",
    "Network",
    "Node",
    "NumberCast",
    "Pick",
    "Pool",
    "PythonCall",
    "Quantize",
    "Recurrence",
    "Reduction",
    "Repeat",
    "Reshape",
    "Slice",
    "Softmax",
    "TableRows",
    "Transpose",
    "Where",
    "sequential",
]
