"""tune: every way gives the bits of the usual one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.native.arrays import empty
from pyonednn_q.ops import tuning
from pyonednn_q.ops.asking import Asking
from pyonednn_q.ops.tuning import way
from pyonednn_q.ops.ways import LEVELS, choose, forms, in_form
from pyonednn_q.primitive.windowed import laid_out

RNG = np.random.default_rng(4)
SUM = pq.Chain(pq.Sum(1.0), pq.Eltwise("relu"))

ODD: dict[str, tuple[Callable[..., Any], Any, tuple[int, ...]]] = {
    "3x3": (pq.Conv, (32, 16, 3, 3), (2, 16, 7, 6)),
    "RGB": (pq.Conv, (16, 3, 3, 3), (1, 3, 12, 9)),
    "1x1": (pq.Conv, (48, 32, 1, 1), (2, 32, 6, 5)),
    "inner product": (pq.InnerProduct, (24, 64), (5, 64)),
    "of an image": (pq.InnerProduct, (24, 8, 3, 3), (2, 8, 3, 3)),
    "matmul": (pq.MatMul, (64, 24), (5, 64)),
    # Weights whose transpose has the same dims.
    "square inner product": (pq.InnerProduct, (64, 64), (5, 64)),
    "square matmul": (pq.MatMul, (64, 64), (5, 64)),
    "batched matmul": (pq.MatMul, (64, 24), (2, 3, 64)),
    "deconv": (pq.Deconv, (32, 32, 3, 3), (2, 32, 7, 6)),
}


@pytest.mark.parametrize("layout", ["preserve", "dense"])
@pytest.mark.parametrize("post", [pq.Chain(pq.Eltwise("relu")), SUM])
@pytest.mark.parametrize("name", ODD)
def test_every_way_gives_the_bits_of_the_usual_one(name: str, post: pq.Chain, layout: Any) -> None:
    """Scales that are no powers of two: float32 rounds, everywhere alike."""
    kind, wei_dims, dims = ODD[name]
    axis = -1 if kind is pq.MatMul else 0
    channels = wei_dims[axis]
    operator = kind(
        RNG.integers(-60, 61, wei_dims).astype(np.int8),
        RNG.normal(0, 30, channels).astype(np.float32),
        src_q=pq.QParams(0.0173, 0, "u8"),
        wei_q=pq.QParams(RNG.uniform(1e-3, 3e-3, channels), np.zeros(channels, int), "s8", axis),
        dst_q=pq.QParams(0.731, 0, "u8"),
        post=post,
        layout=layout,
    )
    problem = operator._problem(dims, "u8")
    wei, bias = operator._wei_of(problem), operator.bias
    layer = Asking(problem, wei, operator.weights, bias, operator.settings, {})
    usual = choose(layer, LEVELS[2:])
    src = RNG.integers(0, 256, dims).astype(np.uint8)
    residual = RNG.integers(0, 99, usual.dst.dims).astype(np.uint8) if post is SUM else None
    expected = usual(src, residual=residual)
    assert len(np.unique(expected)) > 10
    lie = "dense" if layout == "dense" else "channels_last"
    laid = empty(laid_out(dims, "u8", lie)) if src.ndim == 4 else np.empty_like(src)
    laid[...] = src
    ways, hot = 0, 0
    offered = tuple(forms(problem, post, layout))
    for planned in tuning._others(usual, partial(in_form, layer), offered):
        np.testing.assert_array_equal(planned(src, residual=residual), expected, way(planned))
        ways += 1
        if planned.hot is not None and (dst := planned.hot(laid, None, None)) is not NotImplemented:
            np.testing.assert_array_equal(dst, expected, way(planned))
            hot += 1
    assert ways > 0
    assert (hot > 0) is (post is not SUM)


@pytest.mark.parametrize(("dst_scale", "is_offered"), [(1.0, True), (0.731, False)])
def test_a_residual_is_added_only_where_that_rounds_like_the_sum(
    dst_scale: float, is_offered: bool
) -> None:
    """A sum takes the scale of dst into its factors; a binary add leaves it: 1 code in 10^5."""
    rng = np.random.default_rng(150)
    operator = pq.InnerProduct(
        rng.integers(-60, 61, (24, 72)).astype(np.int8),
        rng.normal(0, 30, 24).astype(np.float32),
        src_q=pq.QParams(0.0173, 0, "u8"),
        wei_q=pq.QParams(rng.uniform(1e-3, 3e-3, 24), np.zeros(24, int), "s8", 0),
        dst_q=pq.QParams(dst_scale, 0, "u8"),
        post=SUM,
    )
    problem = operator._problem((500, 72), "u8")
    wei = operator._wei_of(problem)
    layer = Asking(problem, wei, operator.weights, operator.bias, operator.settings, {})
    usual = choose(layer, LEVELS[2:])
    src = rng.integers(0, 256, (500, 72)).astype(np.uint8)
    residual = rng.integers(0, 99, (500, 24)).astype(np.uint8)
    ways = list(tuning._others(usual, partial(in_form, layer), tuple(forms(problem, SUM))))
    assert any(planned.form.has_leaf for planned in ways) is is_offered
    for planned in ways:
        expected = usual(src, residual=residual)
        np.testing.assert_array_equal(planned(src, residual=residual), expected, way(planned))
