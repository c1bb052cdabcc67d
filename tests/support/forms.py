"""Layers and the forms that mean the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import pyonednn_q as pq
from pyonednn_q.ops.asking import Asking
from pyonednn_q.ops.form import Form
from pyonednn_q.ops.planned import Planned
from pyonednn_q.ops.ways import forms, in_form

RNG = np.random.default_rng(4)
Q: dict[str, Any] = {
    "src_q": pq.QParams(0.5, 0, "u8"),
    "wei_q": pq.QParams(0.25, 0, "s8"),
    "dst_q": pq.QParams(2.0, 0, "u8"),
}
CHECKED: dict[str, Any] = {**Q, "self_check": True}
SUM = pq.Chain(pq.Sum(1.0), pq.Eltwise("relu"))
LEAF = pq.Chain(pq.Binary("mul", pq.Leaf("r", "f32")), pq.Sum(1.0))


def codes(*dims: int) -> Any:
    return RNG.integers(-4, 5, dims).astype(np.int8)


CASES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "3x3": (pq.Conv(codes(16, 8, 3, 3), **CHECKED, padding=1, post=SUM), (2, 8, 6, 5)),
    "1x1": (pq.Conv(codes(16, 8, 1, 1), **CHECKED, post=SUM), (2, 8, 6, 5)),
    "1x1 with a leaf": (pq.Conv(codes(16, 8, 1, 1), **CHECKED, post=LEAF), (2, 8, 6, 5)),
    "1x1 over one dimension": (pq.Conv(codes(16, 8, 1), **CHECKED), (2, 8, 6)),
    "of an RGB image": (pq.Conv(codes(16, 3, 3, 3), **CHECKED, stride=2, padding=1), (2, 3, 9, 7)),
    "floats": (
        pq.Conv(codes(16, 8, 3, 3).astype(np.float32), padding=1, self_check=True),
        (2, 8, 6, 5),
    ),
    "strided": (pq.Conv(codes(16, 8, 1, 1), **CHECKED, stride=2), (2, 8, 6, 5)),
    "inner product": (pq.InnerProduct(codes(16, 8), **CHECKED), (3, 8)),
    "of an image": (pq.InnerProduct(codes(16, 8, 3, 3), **CHECKED, post=SUM), (2, 8, 3, 3)),
    "matmul": (pq.MatMul(codes(8, 16), **CHECKED, post=SUM), (5, 8)),
    "batched matmul": (pq.MatMul(codes(8, 16), **CHECKED, post=SUM), (3, 5, 8)),
    "matmul of many": (pq.MatMul(codes(3, 8, 16), **CHECKED), (3, 5, 8)),
    "deconv": (pq.Deconv(codes(16, 8, 2, 2), **CHECKED, stride=2), (1, 8, 5, 4)),
}


def asked(name: str) -> Asking:
    """What an operator has to make ready for a case."""
    operator, dims = CASES[name]
    problem = operator._problem(dims, "u8" if operator.settings.is_int8 else "f32")
    wei = operator._wei_of(problem)
    return Asking(problem, wei, operator.weights, None, operator.settings, {}, ())


def verified(name: str, planned: Planned) -> None:
    """Compare what runs with what the caller of a case wrote."""
    operator, dims = CASES[name]
    assert operator.asked is not None
    src_dtype = "u8" if operator.settings.is_int8 else "f32"
    operator._verify(operator.asked, planned, dims, src_dtype)


def made(name: str) -> Iterator[tuple[Form, Any]]:
    """Every form of a case, made ready."""
    layer = asked(name)
    for form in forms(layer.problem, layer.settings.post):
        try:
            yield form, in_form(layer, form, None)
        except pq.UnsupportedError:
            continue
