"""The parity matrix: every dense primitive, dtype, bias, scale, zero point and shape.

Shapes avoid what the library is known to get wrong or to run on reference kernels only, so that
a refusal here is a finding. Names are stable: they are test ids and seeds.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from support.cases import Recipe

if TYPE_CHECKING:
    from collections.abc import Iterator

    DenseProblem = ConvProblem | DeconvProblem | InnerProductProblem | MatMulProblem

SRC_DTYPES = ("u8", "s8")
DST_DTYPES = ("u8", "s8", "s32", "f32")
BIASES = (None, "f32")
SCALES = ("per_tensor", "per_channel")
KINDS = ("convolution", "deconvolution", "inner_product", "matmul")
# Which zero points a primitive takes.
ZERO_POINTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "convolution": ((), ("src",), ("dst",), ("src", "dst")),
    "deconvolution": ((), ("src",), ("dst",), ("src", "dst")),
    "inner_product": ((),),
    "matmul": ((), ("src",), ("dst",), ("src", "dst"), ("src", "wei", "dst")),
}
CONV_SHAPES: dict[str, dict[str, Any]] = {
    "1x1": {"src_dims": (2, 16, 7, 7), "wei_dims": (32, 16, 1, 1)},
    "3x3_pad1": {"src_dims": (2, 16, 9, 8), "wei_dims": (32, 16, 3, 3), "padding": 1},
    "strided": {
        "src_dims": (2, 16, 11, 9),
        "wei_dims": (16, 16, 3, 3),
        "stride": 2,
        "padding": 1,
    },
    "dilated": {
        "src_dims": (1, 16, 11, 10),
        "wei_dims": (16, 16, 3, 3),
        "dilation": 2,
        "padding": 2,
    },
    "asymmetric": {
        "src_dims": (2, 16, 8, 9),
        "wei_dims": (16, 16, 3, 3),
        "padding": ((0, 2), (1, 0)),
    },
    "grouped": {"src_dims": (2, 32, 8, 7), "wei_dims": (2, 16, 16, 3, 3), "padding": 1},
    "depthwise": {"src_dims": (2, 16, 9, 8), "wei_dims": (16, 1, 1, 3, 3), "padding": 1},
    "conv1d": {"src_dims": (2, 16, 15), "wei_dims": (32, 16, 3), "padding": 1},
    "conv3d": {"src_dims": (1, 16, 5, 6, 4), "wei_dims": (16, 16, 3, 3, 3), "padding": 1},
    "odd_channels": {"src_dims": (1, 3, 9, 9), "wei_dims": (5, 3, 3, 3)},
}
DECONV_SHAPES: dict[str, dict[str, Any]] = {
    "1x1": {"src_dims": (2, 16, 7, 7), "wei_dims": (32, 16, 1, 1)},
    "3x3_pad1": {"src_dims": (2, 16, 9, 8), "wei_dims": (32, 16, 3, 3), "padding": 1},
    "strided": {
        "src_dims": (2, 16, 6, 5),
        "wei_dims": (16, 16, 4, 4),
        "stride": 2,
        "padding": 1,
    },
    "dilated": {
        "src_dims": (1, 16, 7, 6),
        "wei_dims": (16, 16, 3, 3),
        "dilation": 2,
        "padding": 2,
    },
    "asymmetric": {
        "src_dims": (2, 16, 8, 9),
        "wei_dims": (16, 16, 3, 3),
        "padding": ((0, 2), (1, 0)),
    },
    "grouped": {"src_dims": (2, 32, 6, 7), "wei_dims": (2, 16, 16, 3, 3), "padding": 1},
    "depthwise": {"src_dims": (2, 16, 7, 6), "wei_dims": (16, 1, 1, 3, 3), "padding": 1},
    "deconv1d": {"src_dims": (2, 16, 9), "wei_dims": (16, 16, 4), "stride": 2, "padding": 1},
    "deconv3d": {"src_dims": (1, 16, 4, 3, 4), "wei_dims": (16, 16, 3, 3, 3), "padding": 1},
}
INNER_PRODUCT_SHAPES: dict[str, dict[str, Any]] = {
    "2d": {"src_dims": (5, 48), "oc": 32},
    "one_row": {"src_dims": (1, 64), "oc": 17},
    "spatial1d": {"src_dims": (3, 16, 5), "oc": 24},
    "spatial2d": {"src_dims": (3, 16, 4, 3), "oc": 24},
    "spatial3d": {"src_dims": (2, 8, 2, 3, 2), "oc": 16},
}
MATMUL_SHAPES: dict[str, dict[str, Any]] = {
    "2d": {"src_dims": (13, 32), "wei_dims": (32, 48)},
    "one_row": {"src_dims": (1, 64), "wei_dims": (64, 32)},
    "odd": {"src_dims": (7, 13), "wei_dims": (13, 9)},
    "3d": {"src_dims": (3, 5, 16), "wei_dims": (3, 16, 24)},
    "3d_broadcast": {"src_dims": (3, 5, 16), "wei_dims": (1, 16, 24)},
    "4d": {"src_dims": (2, 3, 5, 16), "wei_dims": (2, 3, 16, 24)},
}
SHAPES: dict[str, dict[str, dict[str, Any]]] = {
    "convolution": CONV_SHAPES,
    "deconvolution": DECONV_SHAPES,
    "inner_product": INNER_PRODUCT_SHAPES,
    "matmul": MATMUL_SHAPES,
}
PROBLEMS: dict[str, Any] = {
    "convolution": ConvProblem,
    "deconvolution": DeconvProblem,
    "inner_product": InnerProductProblem,
    "matmul": MatMulProblem,
}


def problem(kind: str, shape: str, src: str, dst: str, bias: str | None) -> DenseProblem:
    """One problem of the matrix."""
    made: DenseProblem = PROBLEMS[kind].of(**SHAPES[kind][shape], src=src, dst=dst, bias=bias)
    return made


def channel_mask(of: DenseProblem) -> int:
    """Weight mask that gives every output channel (or column) its own value."""
    if of.kind == "matmul":
        return 1 << (len(of.wei.dims) - 1)
    grouped = of.kind != "inner_product" and len(of.wei.dims) > len(of.src.dims)
    return 3 if grouped else 1


def attribute(of: DenseProblem, scales: str, zero_points: tuple[str, ...]) -> Attr:
    """Scales on src, wei and dst, and the zero points named."""
    points: dict[str, Any] = {f"{name}_zero_point": ZeroPoint() for name in zero_points}
    mask = channel_mask(of) if scales == "per_channel" else 0
    return Attr(src_scale=Scale(), wei_scale=Scale(mask=mask), dst_scale=Scale(), **points)


def recipes(kind: str, shape: str, src: str, dst: str) -> Iterator[Recipe]:
    """One cell of the matrix: all biases, scales and zero points, and the bare primitive."""
    start = f"{kind}-{shape}-{src}-{dst}"
    for bias, scales, points in product(BIASES, SCALES, ZERO_POINTS[kind]):
        of = problem(kind, shape, src, dst, bias)
        name = "-".join([start, bias or "nobias", scales, "+".join(points) or "nozp"])
        yield Recipe(name, of, attribute(of, scales, points))
    yield Recipe(f"{start}-bare", problem(kind, shape, src, dst, None), Attr())


def float_recipes(kind: str, dtype: str = "f32") -> Iterator[Recipe]:
    """Every shape with floating src, wei and dst: what a float layer beside ours runs."""
    for shape, bias in product(SHAPES[kind], BIASES):
        types = {"src": dtype, "wei": dtype, "dst": dtype, "bias": bias}
        of: DenseProblem = PROBLEMS[kind].of(**SHAPES[kind][shape], **types)
        yield Recipe(f"{kind}-{shape}-{dtype}-{bias or 'nobias'}", of, Attr())


def cells() -> Iterator[tuple[str, str, str, str]]:
    """Yield the (kind, shape, src, dst) cells: one test each."""
    for kind in KINDS:
        yield from product([kind], SHAPES[kind], SRC_DTYPES, DST_DTYPES)


def all_recipes() -> Iterator[Recipe]:
    """Yield the whole matrix."""
    for cell in cells():
        yield from recipes(*cell)
