"""The questions of the support matrix about shapes, layouts and broadcast operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from pyonednn_q.primitive.attr import Attr, Scale
from pyonednn_q.primitive.post_ops import BinaryPostOp, DepthwisePostOp, PostOp, PReluPostOp
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
    Problem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.primitive.window import Padding
from support_rows import FAMILIES, INNER, MATMUL, Asked, Family, Row

Dims = tuple[int, ...]

Make = Callable[..., Problem]


def conv(src: Dims, wei: Dims, stride: int = 1, dilation: int = 1, padding: Padding = 0) -> Make:
    """Return what makes a convolution of these dimensions, given its types."""
    window = partial(ConvProblem.of, stride=stride, dilation=dilation, padding=padding)
    return partial(window, src, wei)


def deconv(src: Dims, wei: Dims, stride: int = 1, padding: int = 0) -> Make:
    """Return what makes a deconvolution of these dimensions, given its types."""
    return partial(DeconvProblem.of, src, wei, stride=stride, padding=padding)


inner, matmul = partial(partial, InnerProductProblem.of), partial(partial, MatMulProblem.of)

# title, dimensions, known, mask of weight scales per channel
SHAPES: tuple[tuple[str, Make, str, int], ...] = (
    ("conv 1x1", conv((2, 64, 14, 14), (64, 64, 1, 1)), "J", 1),
    ("conv 1x1, stride 2", conv((2, 64, 14, 14), (64, 64, 1, 1), stride=2), "J", 1),
    ("conv 3x3, stride 2", conv((2, 64, 14, 14), (64, 64, 3, 3), stride=2, padding=1), "J", 1),
    ("conv 5x5", conv((2, 64, 14, 14), (64, 64, 5, 5), padding=2), "J", 1),
    ("conv 7x7, 3 channels", conv((2, 3, 28, 28), (64, 3, 7, 7), stride=2, padding=3), "J", 1),
    ("conv 3x3, 1 channel", conv((2, 1, 14, 14), (64, 1, 3, 3), padding=1), "J", 1),
    ("conv 3x3, 17 to 19 channels", conv((2, 17, 9, 9), (19, 17, 3, 3), padding=1), "J", 1),
    ("conv 3x3, dilation 2", conv((2, 64, 14, 14), (64, 64, 3, 3), dilation=2), "J", 1),
    (
        "conv 3x3, four-sided padding",
        conv((2, 64, 14, 14), (64, 64, 3, 3), padding=((0, 1), (1, 2))),
        "J",
        1,
    ),
    ("conv 3x3, padding 3", conv((2, 64, 14, 14), (64, 64, 3, 3), padding=3), "J", 1),
    ("conv 1x15", conv((2, 64, 14, 20), (64, 64, 1, 15)), "J", 1),
    ("depthwise 5x5, stride 2", conv((2, 64, 14, 14), (64, 1, 1, 5, 5), stride=2), "J", 3),
    ("depthwise 3x3, 33 channels", conv((2, 33, 14, 14), (33, 1, 1, 3, 3)), "J", 3),
    ("depthwise 3x3, dilation 2", conv((2, 64, 14, 14), (64, 1, 1, 3, 3), dilation=2), "J", 3),
    ("depthwise 3x3, 2 outputs each", conv((2, 64, 14, 14), (64, 2, 1, 3, 3)), "JJJJr", 3),
    ("4 channels a group", conv((2, 64, 14, 14), (16, 4, 4, 3, 3)), "J", 3),
    ("16 channels a group, 1x1", conv((2, 64, 14, 14), (4, 16, 16, 1, 1)), "J", 3),
    ("5 channels a group", conv((2, 15, 14, 14), (3, 5, 5, 3, 3)), "JJJJr", 3),
    ("conv 1-D, kernel 1", conv((2, 64, 14), (64, 64, 1)), "J", 1),
    ("conv 1-D, kernel 3", conv((2, 64, 14), (64, 64, 3)), "J", 1),
    ("conv 3-D, kernel 1", conv((2, 32, 6, 6, 6), (32, 32, 1, 1, 1)), "J", 1),
    ("conv 3-D, kernel 3", conv((2, 32, 6, 6, 6), (32, 32, 3, 3, 3), padding=1), "J", 1),
    ("depthwise 3-D", conv((2, 32, 6, 6, 6), (32, 1, 1, 3, 3, 3), padding=1), "JJGJr", 3),
    ("deconv 3x3", deconv((2, 64, 14, 14), (64, 64, 3, 3), padding=1), "J", 1),
    ("deconv 2x2, stride 2", deconv((2, 64, 14, 14), (64, 64, 2, 2), stride=2), "J", 1),
    ("deconv 1x1", deconv((2, 64, 14, 14), (64, 64, 1, 1)), "J", 1),
    ("deconv 17 to 19 channels", deconv((2, 17, 9, 9), (19, 17, 3, 3), padding=1), "J", 1),
    ("deconv 2 groups", deconv((2, 64, 14, 14), (2, 32, 32, 3, 3), padding=1), "J", 3),
    ("deconv 1-D", deconv((2, 64, 14), (64, 64, 4), stride=2, padding=1), "J", 1),
    ("deconv 3-D", deconv((2, 32, 6, 6, 6), (32, 32, 3, 3, 3), padding=1), "J", 1),
    ("inner product, batch 1", inner((1, 64), 64), "JJJJG", 1),
    ("inner product, 128 x 768", inner((128, 768), 768), "JJJJG", 1),
    ("inner product, 4-D source", inner((32, 64, 4, 4), 64), "JJJJG! / JJJJG", 1),
    ("matmul, M = 1", matmul((1, 64), (64, 64)), "JJJJG", 2),
    ("matmul, 7 x 33 x 19", matmul((7, 33), (33, 19)), "JJJJG", 2),
    ("matmul 3-D", matmul((3, 32, 64), (3, 64, 64)), "JJJJG", 4),
    ("matmul 3-D, broadcast weights", matmul((3, 32, 64), (1, 64, 64)), "JJJJG", 4),
    ("matmul 4-D", matmul((2, 3, 32, 64), (2, 3, 64, 64)), "JJJJG", 8),
)


def rows() -> Iterator[Row]:
    """Give every row of shapes, layouts and broadcast operands."""
    for title, make, known, mask in SHAPES:
        attr = Attr(src_scale=Scale(), wei_scale=Scale(mask), dst_scale=Scale())
        variants = [make(src=src, bias=bias) for src in ("u8", "s8") for bias in (None, "f32")]
        yield Row("Shapes", title, known, tuple((problem, attr) for problem in variants))
    deconv_dw = deconv((2, 64, 14, 14), (64, 1, 1, 4, 4), stride=2, padding=1)
    for src, known in (("u8", "J"), ("s8", "JJJJG")):
        yield Row("Shapes", f"deconv depthwise, {src}", known, ((deconv_dw(src=src), Attr()),))
    for family in FAMILIES[:4]:
        yield from conv_layouts(family)
        yield from conv_operands(family)
    fused = Attr(post_ops=(DepthwisePostOp("s8", None, "u8", 3, 1, 1),))
    one = ConvProblem.of((2, 64, 14, 14), (64, 64, 1, 1))
    yield Row("Post-ops", "conv 1x1 and a depthwise post-op", "J", ((one, fused),))
    yield from dense_layouts()
    yield from matmul_operands()


def conv_layouts(family: Family) -> Iterator[Row]:
    """Ask for layouts of src, dst and weights other than channels last and packed."""
    base = family.make()
    assert isinstance(base, (ConvProblem, DeconvProblem))
    src, wei, dst = base.src, base.wei, base.dst
    scaled = family.scaled

    def changed(*, src: TensorSpec = src, wei: TensorSpec = wei, dst: TensorSpec = dst) -> Asked:
        return replace(base, src=src, wei=wei, dst=dst), scaled

    def row(title: str, known: str, *changes: dict[str, TensorSpec]) -> Row:
        asked = tuple(changed(**change) for change in changes)
        return family.row("Layouts", title, known, *asked)

    def either(change: Callable[[TensorSpec], TensorSpec]) -> tuple[dict[str, TensorSpec], ...]:
        return {"src": change(src)}, {"dst": change(dst)}

    def view_of(*wider: int) -> Callable[[TensorSpec], TensorSpec]:
        return lambda spec: replace(spec, strides=_wider(spec, wider).strides)

    left_open = either(lambda spec: replace(spec, strides=None))
    yield row("src, dst or both left to the library", "J", *left_open, left_open[0] | left_open[1])
    dense = either(lambda spec: TensorSpec.dense(spec.dims, spec.dtype))
    yield row("src, dst or both channels first", "r", *dense, dense[0] | dense[1])
    yield row("weights row-major", "r", {"wei": TensorSpec.dense(wei.dims, wei.dtype)})
    if family.name in {"conv", "deconv"}:
        oc, ic, _, width = wei.dims
        hwio = replace(wei, strides=(1, oc, oc * ic * width, oc * ic))
        known = family.known({"deconv": "r", "others": "GGGrr"})
        yield row("weights as HWIO", known, {"wei": hwio})
    yield row("part of the channels of a wider tensor", "r", *either(view_of(0, 64, 0, 0)))
    yield row("gaps between rows", "r", *either(view_of(0, 0, 0, 4)))
    yield row("gaps between images", "JJJ?r", *either(view_of(0, 0, 4, 0)))


def _wider(spec: TensorSpec, wider: Dims) -> TensorSpec:
    dims = tuple(have + more for have, more in zip(spec.dims, wider, strict=True))
    return TensorSpec.channels_last(dims, spec.dtype)


def conv_operands(family: Family) -> Iterator[Row]:
    """Ask for operands of binary that are neither scalar, per channel nor whole."""
    row = partial(family.row, "Operands")
    n, c, h, w = family.dst_dims

    def asked(*post_ops: PostOp) -> Iterator[Asked]:
        return ((family.make(), replace(family.scaled, post_ops=(op,))) for op in post_ops)

    def add(*dims: int) -> BinaryPostOp:
        return BinaryPostOp("add", TensorSpec.channels_last(dims, "f32"))

    known = family.known({"depthwise": "r", "grouped": "JrrJr", "deconv": "G", "others": "JJJJr"})
    yield row("(N, C, 1, 1)", known, *asked(add(n, c, 1, 1), PReluPostOp(3)))
    others = (add(n, 1, 1, 1), add(1, c, h, w), add(n, 1, h, w), add(1, 1, h, w), add(1, 1, 1, w))
    known = family.known({"deconv": "G", "others": "r"})
    yield row("any other broadcast", known, *asked(*others))
    first = BinaryPostOp("add", TensorSpec.dense(family.dst_dims, "f32"))
    yield row("of dst's dimensions, channels first", known, *asked(first))
    left_open = BinaryPostOp("add", TensorSpec(family.dst_dims, "f32"))
    known = family.known({"deconv": "JJJJG"})
    yield row("of dst's dimensions, layout left open", known, *asked(left_open))


def dense_layouts() -> Iterator[Row]:
    """Ask for layouts and biases of inner product and matmul."""
    usual = MatMulProblem.of((32, 64), (64, 64))
    longer = {name: replace(spec, strides=(80, 1)) for name, spec in usual.tensors.items()}
    plain = TensorSpec.dense((64, 64), "s8")
    transposed = replace(plain, strides=(1, 64))

    def row(title: str, known: str, *changes: dict[str, TensorSpec]) -> Row:
        asked = tuple((replace(usual, **change), MATMUL.scaled) for change in changes)
        return MATMUL.row("Layouts", title, known, *asked)

    yield row("weights row-major or transposed", "JJJJG", {"wei": plain}, {"wei": transposed})
    yield row("rows longer than K or N", "JJJJG", *({k: v} for k, v in longer.items()), longer)
    yield row("src transposed", "JJJGG", {"src": replace(usual.src, strides=(1, 32))})
    yield row("dst transposed", "r", {"dst": replace(usual.dst, strides=(1, 32))})
    sparse = [{name: replace(usual.tensors[name], strides=(128, 2))} for name in ("src", "dst")]
    yield row("every other column", "r", *sparse)
    biases = [{"bias": TensorSpec.dense(dims, "f32")} for dims in ((1, 1), (32, 1), (32, 64))]
    yield row("bias per tensor, per row or of dst's dimensions", "r", *biases)
    product = InnerProductProblem.of((32, 64), 64)
    weights = [replace(product, wei=spec) for spec in (plain, transposed)]
    asked = tuple((problem, INNER.scaled) for problem in weights)
    yield INNER.row("Layouts", "weights row-major or transposed", "JJJJG / G", *asked)


# dimensions of src; then title, dims of each operand (one post-op each), known
MATMUL_OPERANDS: tuple[tuple[Dims, tuple[tuple[str, tuple[Dims, ...], str], ...]], ...] = (
    (
        (32, 64),
        (
            ("per row", ((32, 1),), "r"),
            ("per row, and per column", ((32, 1), (1, 64)), "r"),
        ),
    ),
    (
        (3, 32, 64),
        (
            ("scalar", ((1, 1, 1),), "JJJJG"),
            ("(B, M, N)", ((3, 32, 64),), "JJJJG"),
            ("(1, 1, N)", ((1, 1, 64),), "G / JJJJG"),
            ("(1, M, 1)", ((1, 32, 1),), "JJJJG"),
            ("(B, M, 1)", ((3, 32, 1),), "r"),
            ("(1, M, 1), (1, 1, N)", ((1, 32, 1), (1, 1, 64)), "G / JJJJG"),
            ("(B, 1, N)", ((3, 1, 64),), "JJJJG"),
            ("(B, 1, 1)", ((3, 1, 1),), "JJJJr"),
            ("(1, M, N)", ((1, 32, 64),), "JJJJr"),
        ),
    ),
    (
        (2, 3, 32, 64),
        (
            ("scalar", ((1, 1, 1, 1),), "JJJJG"),
            ("(A, B, M, N)", ((2, 3, 32, 64),), "JJJJG"),
            ("(1, 1, 1, N)", ((1, 1, 1, 64),), "JJJJG"),
            ("(1, 1, M, 1)", ((1, 1, 32, 1),), "r"),
            ("(1, B, M, 1)", ((1, 3, 32, 1),), "JJJJr / J!????"),
            ("(A, 1, 1, N)", ((2, 1, 1, 64),), "JJJJG"),
            ("(A, 1, 1, 1)", ((2, 1, 1, 1),), "JJJJr"),
            ("(1, B, M, N)", ((1, 3, 32, 64),), "JJJJr"),
            ("(A, 1, M, N)", ((2, 1, 32, 64),), "JJJJG"),
            ("(1, 1, M, N)", ((1, 1, 32, 64),), "J!JJJr / r"),
            ("(1, B, 1, 1)", ((1, 3, 1, 1),), "G"),
        ),
    ),
)


def matmul_operands() -> Iterator[Row]:
    """Ask for operands of a matmul of 2, 3 and 4 dimensions; and per row of an inner product."""
    for src, operands in MATMUL_OPERANDS:
        problem = MatMulProblem.of(src, (*src[:-2], 64, 64))
        for title, several, known in operands:
            ops = tuple(BinaryPostOp("add", TensorSpec.dense(dims, "f32")) for dims in several)
            attr = Attr(post_ops=ops)
            yield Row("Operands", f"matmul {len(src)}-D: {title}", known, ((problem, attr),))
    per_row = BinaryPostOp("add", TensorSpec.dense((32, 1), "f32"))
    yield INNER.row("Operands", "per row", "r", (INNER.make(), Attr(post_ops=(per_row,))))
