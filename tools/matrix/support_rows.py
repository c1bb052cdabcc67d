"""The questions of the support matrix, family by family, with what an earlier study measured.

`Row.known` is in the notation of that study: five letters for AMX, AVX512_CORE_VNNI, AVX512_CORE,
AVX2_VNNI and AVX2 (SSE41 behaves as AVX2), one letter for the same on all five; a ``!`` after a
letter: accepted and wrong; ``A / B``: oneDNN 3.13 / 3.7 when they differ; ``?``: not told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import (
    ELTWISE_ALGS,
    MAX_POST_OPS,
    BinaryPostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
    Problem,
)
from pyonednn_q.primitive.tensor import TensorSpec

Asked = tuple[Problem, Attr]


@dataclass(frozen=True)
class Row:
    """Problems that should all get the same kind of answer, and what is known of it."""

    section: str
    title: str
    known: str
    asked: tuple[Asked, ...]


@dataclass(frozen=True)
class Family:
    """A primitive on usual dimensions; `base` is what it gets when nothing is in the way."""

    name: str
    make: Callable[..., Problem]
    wei_mask: int
    base: str

    @property
    def dst_dims(self) -> tuple[int, ...]:
        """Dimensions of the result."""
        return self.make().tensors["dst"].dims

    @property
    def per_channel(self) -> tuple[int, ...]:
        """Dimensions of an operand of one value per channel (per column)."""
        return (1, *self.dst_dims[1:2], *(1 for _ in self.dst_dims[2:]))

    @property
    def scaled(self) -> Attr:
        """The usual scales: per tensor, of the weights per channel."""
        return Attr(src_scale=Scale(), wei_scale=Scale(self.wei_mask), dst_scale=Scale())

    def whole(self, dtype: str) -> TensorSpec:
        """Return an operand of dst's dimensions and layout."""
        if len(self.dst_dims) > 2:
            return TensorSpec.channels_last(self.dst_dims, dtype)
        return TensorSpec.dense(self.dst_dims, dtype)

    def known(self, table: Mapping[str, str]) -> str:
        """Return the entry of this family; "conv family" and "others" stand for several."""
        for key in (self.name, "conv family" if self.base == "J" else "dense", "others"):
            if key in table:
                return table[key]
        return self.base

    def row(self, section: str, title: str, known: str, *asked: Asked) -> Row:
        """Return a row whose title starts with the family."""
        return Row(section, f"{self.name}: {title}", known, asked)


CONV = Family("conv", partial(ConvProblem.of, (2, 64, 14, 14), (64, 64, 3, 3), padding=1), 1, "J")
DEPTHWISE = Family(
    "depthwise", partial(ConvProblem.of, (2, 64, 14, 14), (64, 1, 1, 3, 3), padding=1), 3, "J"
)
GROUPED = Family(
    "grouped", partial(ConvProblem.of, (2, 64, 14, 14), (4, 16, 16, 3, 3), padding=1), 3, "J"
)
DECONV = Family(
    "deconv",
    partial(DeconvProblem.of, (2, 64, 14, 14), (64, 64, 4, 4), stride=2, padding=1),
    1,
    "J",
)
INNER = Family("inner product", partial(InnerProductProblem.of, (32, 64), 64), 1, "JJJJG")
MATMUL = Family("matmul", partial(MatMulProblem.of, (32, 64), (64, 64)), 2, "JJJJG")
FAMILIES = (CONV, DEPTHWISE, GROUPED, DECONV, INNER, MATMUL)

RELU, CLIP, ROUND = EltwisePostOp("relu"), EltwisePostOp("clip", 0.0, 6.0), EltwisePostOp("round")
LINEAR, TANH, SWISH = (
    EltwisePostOp("linear", 2.0, 1.0),
    EltwisePostOp("tanh"),
    EltwisePostOp("swish", 1.0),
)
_INT8 = ("u8", "s8")
FAKE_QUANTIZE = (LINEAR, ROUND, CLIP, LINEAR)


def rows() -> Iterator[Row]:
    """Give every row of data types, scales, zero points and post-ops."""
    for of in (data_types, scales, zero_points, chains, sums, operands):
        for family in FAMILIES:
            yield from of(family)


def data_types(family: Family) -> Iterator[Row]:
    """Ask for each type of src, weights, bias and dst."""
    make, scaled, row = family.make, family.scaled, partial(family.row, "Data types")
    usual = product(("u8", "s8"), ("u8", "s8", "s32", "f32"), (None, "f32", "s32", "s8", "u8"))
    problems = [make(src=src, dst=dst, bias=bias) for src, dst, bias in usual]
    yield row(
        "u8 or s8 to u8, s8, s32 or f32; no bias or f32, s32, s8, u8",
        family.base,
        *((problem, scaled) for problem in problems),
    )
    bf16_dst = {"deconv": "JJJGG", "inner product": "JJJxx", "others": "JJJrr"}
    yield row("bf16 dst", family.known(bf16_dst), (make(dst="bf16"), scaled))
    f16_dst = {"depthwise": "x", "deconv": "JGGGG / G", "matmul": "Jrrrr / r"}
    f16_known = family.known(f16_dst | {"others": "Jxxxx / x"})
    yield row("f16 dst", f16_known, (make(dst="f16"), scaled))
    bf16_bias = {"deconv": "G", "inner product": "JJJxx", "matmul": "JJJrr"}
    bf16_known = family.known(bf16_bias | {"others": "G!G!G!rr"})
    yield row("bf16 bias", bf16_known, (make(bias="bf16"), scaled))
    f16_bias = {"deconv": "G", "inner product": "Jxxxx / ?", "matmul": "Jrrrr / r"}
    yield row("f16 bias", family.known(f16_bias | {"others": "x"}), (make(bias="f16"), scaled))
    narrow = [
        (make(src=src, wei=wei), Attr()) for src in ("u8", "s8") for wei in ("u8", "s4", "u4")
    ]
    yield row("u8, s4 or u4 weights", family.known({"matmul": "r", "others": "x"}), *narrow)
    if family is MATMUL:
        yield from _four_bits()
    weight_only = make(src="f32", dst="f32")
    yield row("f32 src, s8 weights", "x", (weight_only, Attr()))
    known = family.known({"matmul": "r", "others": "x"})
    for modes in (("strict", "any"), ("bf16", "f16")):
        attrs = [Attr(fpmath=mode, fpmath_apply_to_int=True) for mode in modes]
        title = f"f32 src, s8 weights as floats, fpmath {' or '.join(modes)}"
        yield row(title, known, *((weight_only, attr) for attr in attrs))
    floats = make(src="f32", wei="f32")
    known = family.known({"matmul": "r / x", "others": "x"})
    yield row("f32 to u8, dst scale", known, (floats, Attr(dst_scale=Scale())))
    known = family.known({"deconv": "J", "inner product": "x", "others": "r / x"})
    yield row("f32 to u8, f32 bias", known, (make(src="f32", wei="f32", bias="f32"), Attr()))
    yield row("f32 to u8, no bias", "?", (floats, Attr()))


def _four_bits() -> Iterator[Row]:
    """Ask for 4-bit and u8 weights with an f32 result, of which the study does not tell."""
    row = partial(MATMUL.row, "Data types")
    scaled = replace(MATMUL.scaled, dst_scale=None)
    for src, weis in product(("u8", "s8"), (("s4", "u4"), ("u8",))):
        problems = [MATMUL.make(src=src, wei=wei, dst="f32") for wei in weis]
        title = f"{src} src, {' or '.join(weis)} weights to f32, scaled"
        yield row(title, "?", *((problem, scaled) for problem in problems))
    bare = [(MATMUL.make(src="u8", wei=wei, dst="f32"), Attr()) for wei in ("s4", "u4")]
    yield row("u8 src, s4 or u4 weights to f32, without a scale", "?", *bare)


def _groups_to_f32() -> Iterator[Row]:
    """Ask for scales in groups with an f32 result, of which the study does not tell."""
    row = partial(MATMUL.row, "Scales")
    for wei, size in product(("s8", "s4"), (16, 32)):
        of_wei = Attr(wei_scale=Scale(3, groups=(size, 1)))
        title = f"weight scale of {wei}, groups of {size} x 1, to f32"
        yield row(title, "?", *((MATMUL.make(src=s, wei=wei, dst="f32"), of_wei) for s in _INT8))
    for size, name in ((32, "groups of 1 x 32"), (64, "per row, as groups of 1 x K")):
        scale = Scale(3, groups=(1, size))
        attrs = Attr(src_scale=scale), Attr(src_scale=scale, wei_scale=Scale(3, groups=(32, 1)))
        asked = [(MATMUL.make(src=s, dst="f32"), attr) for s in _INT8 for attr in attrs]
        yield row(f"src scale, {name}, to f32", "?", *asked)
    by_mask = Attr(src_scale=Scale(1))
    yield row("src scale per row, by mask, to f32", "?", (MATMUL.make(dst="f32"), by_mask))


def scales(family: Family) -> Iterator[Row]:
    """Ask for each scale, per tensor and finer."""
    make, row = family.make, partial(family.row, "Scales")
    per_channel = Scale(family.wei_mask)
    usual = (
        Attr(),
        Attr(src_scale=Scale()),
        Attr(wei_scale=Scale()),
        Attr(wei_scale=per_channel),
        Attr(dst_scale=Scale()),
        family.scaled,
    )
    asked = [(make(dst=dst), attr) for dst in ("u8", "f32") for attr in usual]
    yield row("none, or per tensor, weights per channel", family.base, *asked)
    dst_known = {"deconv": "x", "inner product": "x", "matmul": "G! / x", "others": "x / J!"}
    asked_dst = (make(), Attr(dst_scale=Scale(2)))
    yield row("dst scale per channel", family.known(dst_known), asked_dst)
    yield row("src scale per channel", "x", (make(), Attr(src_scale=Scale(2))))
    if family is not MATMUL:
        along_input = Scale(4 if family.wei_mask == 3 else 2)
        yield row("weight scale per input channel", "x", (make(), Attr(wei_scale=along_input)))
        if family.wei_mask == 3:
            halves = [(make(), Attr(wei_scale=Scale(mask))) for mask in (1, 2)]
            yield row("weight scale per group, or per channel of each group", "x", *halves)
        return
    yield row("src scale per row", "r / x", (make(), Attr(src_scale=Scale(1))))
    yield row("weight scale per row (K)", "G!", (make(), Attr(wei_scale=Scale(1))))
    yield row("weight scale per element", "G! / J!", (make(), Attr(wei_scale=Scale(3))))
    for size, older in ((1, "J!"), (16, "x"), (32, "J!")):
        of_wei = Attr(wei_scale=Scale(3, groups=(size, 1)))
        yield row(f"weight scale, groups of {size} x 1", f"JJJJr / {older}", (make(), of_wei))
    for size, older in ((16, "x"), (32, "?")):
        of_src = Attr(src_scale=Scale(3, groups=(1, size)))
        yield row(f"src scale, groups of 1 x {size}", f"JJJJr / {older}", (make(), of_src))
    halves = [(make(), Attr(wei_scale=Scale(2, dtype))) for dtype in ("bf16", "f16")]
    yield row("weight scale per column in bf16 or f16", "r", *halves)
    yield from _groups_to_f32()


def zero_points(family: Family) -> Iterator[Row]:
    """Ask for each zero point, per tensor and finer."""
    make, row, scaled = family.make, partial(family.row, "Zero points"), family.scaled
    one, one_scale = ZeroPoint(), Scale()
    taken = family.known({"inner product": "x"})
    src = [replace(scaled, src_zero_point=one, post_ops=ops) for ops in ((), (RELU,))]
    asked = [(make(bias=bias), attr) for bias in (None, "f32") for attr in src]
    yield row("src", taken, *asked)
    dst = [Attr(dst_zero_point=one), replace(scaled, dst_zero_point=one)]
    yield row("dst", taken, *((make(dst=to), attr) for to in ("u8", "f32") for attr in dst))
    both = replace(scaled, src_zero_point=one, dst_zero_point=one, post_ops=FAKE_QUANTIZE)
    yield row("src and dst, linear, round, clip, linear", taken, (make(), both))
    src_known = {"depthwise": "JJrJr", "deconv": "G", "inner product": "x", "others": "r"}
    per_channel = Attr(src_zero_point=ZeroPoint(2))
    yield row("src per channel", family.known(src_known), (make(), per_channel))
    yield row("src per row or image", "x", (make(), Attr(src_zero_point=ZeroPoint(1))))
    dst_known = family.known({"deconv": "G", "inner product": "x", "others": "r"})
    yield row("dst per channel", dst_known, (make(), Attr(dst_zero_point=ZeroPoint(2))))
    wei_known = {"depthwise": "x / J!J!xJ!x", "matmul": "JJJJG", "others": "x"}
    yield row("weights", family.known(wei_known), (make(), Attr(wei_zero_point=one)))
    finer = Attr(wei_zero_point=ZeroPoint(family.wei_mask))
    yield row("weights per channel", family.known({"matmul": "r", "others": "x"}), (make(), finer))
    stored = [
        *((make(), Attr(src_zero_point=ZeroPoint(0, dtype))) for dtype in ("u8", "s8")),
        *((make(), Attr(wei_zero_point=ZeroPoint(0, dtype))) for dtype in ("u8", "s8")),
    ]
    known = family.known({"matmul": "JJJJr", "others": "x"})
    yield row("src or weights, stored as u8 or s8", known, *stored)
    if family is MATMUL:
        for size, older in ((16, "x"), (32, "?")):
            grouped = Attr(wei_zero_point=ZeroPoint(3, groups=(size, 1)))
            yield row(f"weights, groups of {size} x 1", f"r / {older}", (make(), grouped))
        for dtype in ("s4", "u4"):
            scale, point = Scale(3, groups=(32, 1)), ZeroPoint(3, dtype, groups=(32, 1))
            attr = Attr(src_scale=one_scale, wei_scale=scale, wei_zero_point=point)
            problem = make(wei=dtype, dst="f32")
            yield row(f"{dtype} weights and points to f32, groups of 32 x 1", "?", (problem, attr))


def chains(family: Family) -> Iterator[Row]:
    """Ask for eltwise algorithms and chains of post-ops."""
    row = partial(family.row, "Post-ops")
    mul, add, low, high = (
        BinaryPostOp(alg, TensorSpec.dense(family.per_channel, "f32"))
        for alg in ("mul", "add", "max", "min")
    )
    parameters = {"clip": (0.0, 6.0), "clip_v2": (0.0, 6.0)}
    algs = [EltwisePostOp(alg, *parameters.get(alg, (1.0, 0.5))) for alg in ELTWISE_ALGS]
    eltwise = [ops for op in algs for ops in ((op,), (RELU, op))]
    yield row("every eltwise algorithm", family.base, *_with(family, eltwise, ("u8", "f32")))
    taken = (
        (RELU, LINEAR),
        FAKE_QUANTIZE,
        (ROUND, CLIP, LINEAR),
        (SumPostOp(0.5), RELU),
        (mul, add),
        (mul, add, ROUND, CLIP, LINEAR),
        (mul, add, ROUND, CLIP, mul, add),
        (low, high),
        (RELU, mul, add, ROUND, CLIP, mul, add, SWISH, ROUND),
        (SumPostOp(0.5), mul, add, RELU),
    )
    yield row(
        "chains of eltwise, sum first, per channel mul, add", family.base, *_with(family, taken)
    )
    full = ((TANH,) * 16, (mul,) * MAX_POST_OPS, (LINEAR,) * MAX_POST_OPS)
    yield row(f"16 tanh, {MAX_POST_OPS} mul or linear", family.base, *_with(family, full))


def sums(family: Family) -> Iterator[Row]:
    """Ask for the sum post-op."""
    row = partial(family.row, "Sum")
    plain, shifted = SumPostOp(0.5), SumPostOp(0.5, 3)
    late = ((RELU, plain), (RELU, plain, LINEAR), (plain, RELU, plain))
    integers = ("u8", "s8", "s32")
    yield row("first", family.base, *_with(family, ((plain,),), (*integers, "f32")))
    known = family.known({"inner product": "JJJJG / G"})
    yield row("first, zero point", known, *_with(family, ((shifted,),), integers))
    known = family.known({"dense": "JJJJr"})
    yield row("not first, or twice the same", known, *_with(family, late, integers))
    known = family.known({"dense": "JJJJr", "inner product": "JJJJr / r"})
    yield row("not first, zero point", known, *_with(family, ((RELU, shifted),), integers))
    yield row("f32 dst, zero point", "x", *_with(family, ((shifted,),), ("f32",)))
    known = family.known({"deconv": "G", "others": "r"})
    yield row("twice, scales differ", known, *_with(family, ((plain, SumPostOp(0.25)),)))
    known = family.known({"deconv": "JJJJG", "inner product": "JJJJG / ????r"})
    pairs = (("u8", "s8"), ("s8", "u8"), ("s32", "f32"), ("f32", "s32"))
    read_as = [
        asked for dst, read in pairs for asked in _with(family, ((SumPostOp(dtype=read),),), (dst,))
    ]
    yield row("reading dst as another type of its size", known, *read_as)
    yield row("reading u8 as s32", "x", *_with(family, ((SumPostOp(dtype="s32"),),)))


def operands(family: Family) -> Iterator[Row]:
    """Ask for operands of binary and prelu: scalar, per channel, whole."""
    row = partial(family.row, "Operands")
    ones = (1,) * len(family.dst_dims)
    usual = [
        BinaryPostOp(alg, TensorSpec.dense(dims, dtype))
        for alg in ("add", "mul", "ge")
        for dims in (ones, family.per_channel)
        for dtype in ("f32", "s32", "s8", "u8")
    ]
    slopes = [PReluPostOp(0), PReluPostOp(2)]
    small: list[PostOp] = [*usual, *slopes]
    yield row(
        "scalar or per channel, f32, s32, s8, u8, prelu",
        family.base,
        *_with(family, [(op,) for op in small]),
    )
    whole: list[PostOp] = [
        BinaryPostOp("add", family.whole(dtype)) for dtype in ("f32", "s32", "s8", "u8")
    ]
    whole.append(PReluPostOp(2 ** len(family.dst_dims) - 1))
    known = family.known({"deconv": "JJJJG"})
    yield row("of dst's dimensions and layout", known, *_with(family, [(op,) for op in whole]))
    per_channel = TensorSpec.dense(family.per_channel, "f32")
    for dtype, known in (("bf16", "JJJxx / JJJrr"), ("f16", "Jxxxx / Jrrrr")):
        half = BinaryPostOp("add", replace(per_channel, dtype=dtype))
        exact = "rxxxx / r" if dtype == "f16" and family is DEPTHWISE else known
        yield row(f"{dtype}, per channel", exact, *_with(family, ((half,),)))


def _with(
    family: Family, several: Iterable[tuple[PostOp, ...]], to: tuple[str, ...] = ("u8",)
) -> Iterator[Asked]:
    """Give the family's problem with the usual scales and each chain, for each type of dst."""
    for dst, post_ops in product(to, several):
        yield family.make(dst=dst), replace(family.scaled, post_ops=post_ops)
