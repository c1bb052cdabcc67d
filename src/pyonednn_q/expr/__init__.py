"""The algebra of one value: constants, steps, chains, FakeQuantize, and what they mean.

What may not enter: oneDNN's attributes and masks (compose), rewriting (rewrite), the extension.
Everything here is a frozen value or a pure function of NumPy arrays.
"""

from __future__ import annotations

from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.interval import Interval
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Eltwise, Leaf, PRelu, Round, Sum
from pyonednn_q.expr.vec import Vec

__all__ = [
    "Affine",
    "Binary",
    "Chain",
    "Clip",
    "Eltwise",
    "FakeQuantize",
    "Interval",
    "Leaf",
    "PRelu",
    "Round",
    "Sum",
    "Vec",
]
