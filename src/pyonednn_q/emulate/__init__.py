"""Quantized operators of other runtimes, from codes to codes, in the arithmetic of each.

`ARITHMETIC` says which dialects an operator has, and what each computes.
"""

from __future__ import annotations

from pyonednn_q.emulate.activations import leaky_relu, prelu, relu
from pyonednn_q.emulate.add import add
from pyonednn_q.emulate.catalogue import ARITHMETIC
from pyonednn_q.emulate.float_functions import bias_add, power, sigmoid, softmax
from pyonednn_q.emulate.pooling import average_pool, max_pool, mean
from pyonednn_q.emulate.requantize import requantize
from pyonednn_q.emulate.sampling import arg_max, resize_bilinear
from pyonednn_q.emulate.shaping import concat, pad

__all__ = [
    "ARITHMETIC",
    "add",
    "arg_max",
    "average_pool",
    "bias_add",
    "concat",
    "leaky_relu",
    "max_pool",
    "mean",
    "pad",
    "power",
    "prelu",
    "relu",
    "requantize",
    "resize_bilinear",
    "sigmoid",
    "softmax",
]
