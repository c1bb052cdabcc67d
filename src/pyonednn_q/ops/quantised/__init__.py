"""Quantised operators of other runtimes, from codes to codes, in the arithmetic of each.

`ARITHMETIC` says which dialects an operator has, and what each computes.
"""

from __future__ import annotations

from pyonednn_q.ops.quantised.activations import leaky_relu, prelu, relu
from pyonednn_q.ops.quantised.add import add
from pyonednn_q.ops.quantised.catalogue import ARITHMETIC
from pyonednn_q.ops.quantised.floats import bias_add, power, sigmoid, softmax
from pyonednn_q.ops.quantised.pooling import average_pool, max_pool
from pyonednn_q.ops.quantised.requantising import requantize
from pyonednn_q.ops.quantised.sampling import arg_max, resize_bilinear
from pyonednn_q.ops.quantised.shaping import concat, pad

__all__ = [
    "ARITHMETIC",
    "add",
    "arg_max",
    "average_pool",
    "bias_add",
    "concat",
    "leaky_relu",
    "max_pool",
    "pad",
    "power",
    "prelu",
    "relu",
    "requantize",
    "resize_bilinear",
    "sigmoid",
    "softmax",
]
