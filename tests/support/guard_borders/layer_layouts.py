"""On which layers the layout of dst, or of weights, shows faults, and where these end."""

from __future__ import annotations

from dataclasses import replace

from pyonednn_q.faults.guards import layer_layouts
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from support.guard_borders.make import (
    PLAIN,
    Border,
    Dims,
    after,
    conv,
    deconv,
    inner,
    matmul,
    operand,
)


def from_gaps(dtype: str, strides: Dims) -> ConvProblem:
    """Return a convolution of a src of (2, 4, 5, 5) that lies so."""
    problem = conv((2, 4, 5, 5), (8, 4, 3, 3), dtype, wei=dtype, dst="f32")
    return replace(problem, src=TensorSpec((2, 4, 5, 5), dtype, strides))


def in_steps(stride: int, src: Dims | None, dst: Dims | None = None) -> DeconvProblem:
    """Return a deconvolution of two images that lie so."""
    problem = deconv((2, 4, 5, 5), (8, 4, 1, 1), stride=(stride, 1))
    stored = problem.dst if dst is None else TensorSpec(problem.dst.dims, "u8", dst)
    return replace(problem, src=TensorSpec((2, 4, 5, 5), "u8", src), dst=stored)


def spread(strides: Dims | None) -> DeconvProblem:
    """Return a deconvolution into a dst of (1, 8, 3, 3)."""
    problem = deconv((1, 4, 3, 3), (8, 4, 1, 1))
    return replace(problem, dst=TensorSpec((1, 8, 3, 3), "u8", strides))


def tapped(strides: Dims | None, taps: int = 1) -> DeconvProblem:
    """Return a deconvolution of floats by (8, 4, taps, taps)."""
    wei = (8, 4, taps, taps)
    problem = DeconvProblem.of((1, 4, 5, 5), wei, src="f32", wei="f32", dst="f32", layout="dense")
    return replace(problem, wei=TensorSpec(wei, "f32", strides))


def turned(dims: Dims, src: Dims, wei: Dims | None) -> InnerProductProblem:
    """Return an inner product of tensors that lie so."""
    return inner(dims, 5, wei, strides=src)


def apart(dtype: str, strides: Dims | None) -> ConvProblem:
    """Return a convolution into a dst of (1, 8, 3, 3) that lies so."""
    problem = conv((1, 4, 5, 5), (8, 4, 3, 3), "bf16", wei="bf16", dst=dtype)
    return replace(problem, dst=TensorSpec((1, 8, 3, 3), dtype, strides))


def pointwise(dst: Dims, strides: Dims | None, dtype: str = "f32") -> ConvProblem:
    """Return a 1x1 convolution of 3 channels into that dst."""
    n, oc, *places = dst
    problem = conv((n, 3, *places), (oc, 3, *(1,) * len(places)), dtype, wei=dtype, dst="f32")
    return replace(problem, dst=TensorSpec(dst, "f32", strides))


def beside(problem: MatMulProblem, *dims: int) -> tuple[MatMulProblem, Attr]:
    """Return a product with a sum of an operand behind it."""
    return problem, after(operand("add", *dims))


def product(dst: Dims, strides: Dims | None) -> MatMulProblem:
    """Return a product of 5 rows into that dst."""
    *batch, m, n = dst
    problem = matmul((*batch, m, 5), (*(1 for _ in batch), 5, n), dst="f32")
    return replace(problem, dst=TensorSpec(dst, "f32", strides))


def heads(wei: Dims, strides: Dims | None, dtype: str = "f32") -> MatMulProblem:
    """Return a product with weights that lie so."""
    src = "u8" if dtype == "s8" else dtype
    problem = matmul((*wei[:-2], 4, wei[-2]), wei, src=src, wei=dtype, dst="f32")
    return replace(problem, wei=TensorSpec(wei, dtype, strides))


def crossed(wei: Dims | None, dims: Dims = (4, 8, 2, 3), outputs: int = 5) -> InnerProductProblem:
    """Return an inner product of a source that is channels last."""
    last = TensorSpec.channels_last(dims, "u8").strides
    return inner(dims, outputs, wei, strides=last)


BORDERS: list[Border] = [
    (
        layer_layouts.deconvolved_into_gaps,
        [(spread((216, 24, 8, 2)), PLAIN), (spread((144, 1, 48, 16)), PLAIN)],
        [(spread((72, 9, 3, 1)), PLAIN), (spread((72, 1, 24, 8)), PLAIN), (spread(None), PLAIN)],
    ),
    (
        layer_layouts.pointwise_plain_wei,
        [(tapped((4, 1, 1, 1)), PLAIN), (tapped((4, 1, 4, 4)), PLAIN)],
        [(tapped(None), PLAIN), (tapped((1, 8, 1, 1)), PLAIN), (tapped((36, 9, 3, 1), 3), PLAIN)],
    ),
    (
        layer_layouts.spatial_orders_differ,
        [(crossed((48, 6, 3, 1), outputs=1), PLAIN), (crossed((1, 30, 15, 5)), PLAIN)],
        [
            (crossed((48, 6, 3, 1)), PLAIN),
            (crossed((48, 1, 24, 8), outputs=1), PLAIN),
            (crossed((48, 1, 24, 8)), PLAIN),
            (crossed((1, 5, 120, 40)), PLAIN),
            (crossed(None), PLAIN),
            (crossed((8, 1, 1, 1), (4, 8, 1, 1)), PLAIN),
        ],
    ),
    (
        layer_layouts.innermost_images,
        [(turned((4, 8, 3), (1, 12, 4), (1, 15, 5)), PLAIN)],
        [
            (turned((4, 8, 3), (1, 12, 4), (24, 3, 1)), PLAIN),
            (turned((4, 8, 3), (24, 3, 1), (1, 15, 5)), PLAIN),
            (turned((4, 8, 3), (1, 12, 4), None), PLAIN),
            (turned((4, 8), (1, 4), (1, 5)), PLAIN),
        ],
    ),
    (
        layer_layouts.convolved_with_gaps,
        [
            (apart("bf16", (144, 2, 48, 16)), PLAIN),
            (apart("bf16", (72, 1, 30, 10)), PLAIN),
            (from_gaps("bf16", (108, 1, 20, 4)), PLAIN),
            (from_gaps("f32", (101, 25, 5, 1)), PLAIN),
        ],
        [
            (apart("bf16", (72, 1, 24, 8)), PLAIN),
            (apart("bf16", None), PLAIN),
            (from_gaps("f32", (100, 1, 20, 4)), PLAIN),
            (from_gaps("f32", (100, 25, 5, 1)), PLAIN),
        ],
    ),
    (
        layer_layouts.deconvolved_in_steps_with_gaps,
        [(in_steps(2, (108, 1, 20, 4)), PLAIN), (in_steps(2, None, (720, 2, 80, 16)), PLAIN)],
        [
            (in_steps(1, (108, 1, 20, 4)), PLAIN),
            (in_steps(2, (100, 1, 20, 4)), PLAIN),
            (in_steps(2, None), PLAIN),
        ],
    ),
    (
        layer_layouts.column_with_gaps,
        [(product((7, 1), (2, 1)), PLAIN), (product((3, 7, 1), (21, 3, 1)), PLAIN)],
        [
            (product((7, 1), (1, 1)), PLAIN),
            (product((1, 1), (2, 1)), PLAIN),
            (product((7, 2), (3, 1)), PLAIN),
            (product((7, 1), None), PLAIN),
        ],
    ),
    (
        layer_layouts.single_channel_laid_last,
        [
            (pointwise((2, 1, 9), (9, 1, 1)), PLAIN),
            (pointwise((3, 1, 1, 9), (9, 1, 9, 1)), PLAIN),
        ],
        [
            (pointwise((2, 1, 9), (9, 9, 1)), PLAIN),
            (pointwise((1, 1, 9), (9, 1, 1)), PLAIN),
            (pointwise((2, 1, 1), (1, 1, 1)), PLAIN),
            (pointwise((2, 2, 9), (18, 1, 2)), PLAIN),
            (pointwise((2, 1, 9), None), PLAIN),
            (pointwise((2, 1, 9), (9, 1, 1), "bf16"), PLAIN),
        ],
    ),
    (
        layer_layouts.batches_swapped,
        [
            beside(product((2, 3, 15, 2), (30, 60, 2, 1)), 1, 1, 1, 2),
            beside(product((3, 2, 1, 2), (2, 6, 2, 1)), 1, 1, 1, 2),
        ],
        [
            (product((2, 3, 15, 2), (30, 60, 2, 1)), PLAIN),
            beside(product((2, 3, 15, 2), (30, 60, 2, 1)), 2, 3, 15, 2),
            beside(product((2, 3, 15, 2), (90, 30, 2, 1)), 1, 1, 1, 2),
            beside(product((1, 3, 15, 2), (30, 60, 2, 1)), 1, 1, 1, 2),
            beside(product((2, 3, 15, 2), None), 1, 1, 1, 2),
        ],
    ),
    (
        layer_layouts.row_declared_short,
        [(product((3, 1, 9), (9, 1, 1)), PLAIN)],
        [
            (product((3, 1, 9), (9, 9, 1)), PLAIN),
            (product((3, 2, 9), (18, 9, 1)), PLAIN),
            (product((3, 1, 9), None), PLAIN),
        ],
    ),
    (
        layer_layouts.batches_within_rows,
        [(product((2, 8, 16), (16, 32, 1)), PLAIN)],
        [
            (product((2, 8, 16), (128, 16, 1)), PLAIN),
            (product((1, 8, 16), (16, 32, 1)), PLAIN),
            (product((2, 8, 16), None), PLAIN),
        ],
    ),
    (
        layer_layouts.float_wei_batches_within,
        [
            (heads((1, 2, 16, 8), (256, 8, 16, 1)), PLAIN),
            (heads((1, 2, 16, 8), (256, 16, 1, 32)), PLAIN),
            (heads((3, 2, 16, 8), (256, 8, 16, 1), "bf16"), PLAIN),
        ],
        [
            (heads((2, 16, 8), (8, 16, 1)), PLAIN),
            (heads((1, 2, 16, 8), (256, 128, 8, 1)), PLAIN),
            (heads((1, 2, 16, 8), (256, 128, 1, 16)), PLAIN),
            (heads((1, 1, 16, 8), (256, 8, 16, 1)), PLAIN),
            (heads((1, 2, 16, 8), (256, 8, 16, 1), "s8"), PLAIN),
            (heads((1, 2, 16, 8), None), PLAIN),
        ],
    ),
]
