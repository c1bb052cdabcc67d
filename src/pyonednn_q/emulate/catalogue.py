"""Arithmetic of each dialect's operators: the sentences of their tables, which docs print.

z is a zero point, s a scale, x a code less its zero point. "D2" is TFLite's multiplication by a
31-bit multiplier with two roundings, see docs/reference/dialects.md; "half up", "half away" and
"even" say where halves go. r is s_src / s_dst as one float32. "Floats" means: dequantize,
compute in float32, quantize by the dialect's own rule.
"""

from __future__ import annotations

from pyonednn_q.emulate.activations import LEAKY_RELU, PRELU, RELU
from pyonednn_q.emulate.add import ADD
from pyonednn_q.emulate.float_functions import BIAS_ADD, POWER, SIGMOID, SOFTMAX
from pyonednn_q.emulate.operands import Dialects
from pyonednn_q.emulate.pooling import AVERAGE_POOL, MAX_POOL, MEAN
from pyonednn_q.emulate.requantize import REQUANTIZE
from pyonednn_q.emulate.sampling import RESIZE_BILINEAR
from pyonednn_q.emulate.shaping import CONCAT, PAD

_TABLES: dict[str, Dialects] = {
    "add": ADD,
    "max_pool": MAX_POOL,
    "average_pool": AVERAGE_POOL,
    "mean": MEAN,
    "leaky_relu": LEAKY_RELU,
    "prelu": PRELU,
    "relu": RELU,
    "concat": CONCAT,
    "pad": PAD,
    "bias_add": BIAS_ADD,
    "power": POWER,
    "requantize": REQUANTIZE,
    "sigmoid": SIGMOID,
    "softmax": SOFTMAX,
    "resize_bilinear": RESIZE_BILINEAR,
}

ARITHMETIC: dict[str, dict[str, str]] = {
    operator: {dialect: each.says for dialect, each in table.items()}
    for operator, table in _TABLES.items()
}
