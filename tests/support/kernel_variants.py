"""What is done to the sums of the problems on which kernel models are compared with kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyonednn_q.primitive.post_ops import EltwisePostOp, PostOp, SumPostOp


@dataclass(frozen=True)
class Variant:
    """What a primitive does besides its sums.

    Attributes
    ----------
    bias : str
        Its type; empty for none.
    post_ops : tuple
        First those of themselves, "prelu" being one with a slope per channel, or "of a tensor".
    binaries : tuple of (str, str)
        Then these: what they do, and along what: a "channel", a "tensor", a "row" of a product, or
        the "whole" of dst; after a blank, the type of the operand, where that is not f32.
    then : tuple of post-ops
        And these at last.
    shrunk : float
        Results are smaller by that factor.
    ties : bool
        Results lie around halves.
    """

    name: str
    dst: str
    bias: str = "f32"
    src_scale: bool = False
    wei_scale: bool = True
    src_zero_point: bool = False
    dst_scale: bool = False
    dst_zero_point: bool = False
    post_ops: tuple[Any, ...] = ()
    binaries: tuple[tuple[str, str], ...] = ()
    then: tuple[PostOp, ...] = ()
    shrunk: float = 1.0
    ties: bool = False

    @property
    def has_rows(self) -> bool:
        """Operands have a value for each row of a product."""
        return any(along == "row" for _, along in self.binaries)


RELU, LEAKY = EltwisePostOp("relu"), EltwisePostOp("relu", 0.1)
LINEAR, ROUND = EltwisePostOp("linear", 1.37, -0.21), EltwisePostOp("round")
CLIP, CLIP_V2 = EltwisePostOp("clip", -5.3, 7.1), EltwisePostOp("clip_v2", -5.3, 7.1)
CANCELS = EltwisePostOp("linear", 1.37, -1.37 * 2.5)
PER_CHANNEL = (("mul", "channel"), ("add", "channel"), ("max", "channel"), ("min", "channel"))

OTHERS = (("sub", "channel"), ("div", "channel"))
PER_TENSOR = (("mul", "tensor"), ("add", "tensor"))
ROWS = (("mul", "row"), ("add", "row"))
MAPS = (("add", "whole"), ("mul", "whole"))
MORE = ("max", "min", "sub", "div")
MORE_PER_TENSOR = tuple((alg, "tensor") for alg in MORE)
MORE_MAPS = tuple((alg, "whole") for alg in MORE)
MORE_ROWS = tuple((alg, "row") for alg in MORE)
COMPARISONS = ("ge", "gt", "le", "lt")


def compared(extent: str) -> tuple[tuple[str, str], ...]:
    """Comparisons in a row; what each makes, 0 or 1, is between 1 and 3 before the next."""
    between = ("add", "channel" if extent == "tensor" else "tensor")
    return tuple(one for alg in COMPARISONS for one in ((alg, extent), between))


INTEGERS = (("add", "channel u8"), ("sub", "channel s8"), ("max", "channel s32"))
INTEGERS_PER_TENSOR = (("add", "tensor u8"), ("sub", "tensor s8"), ("max", "tensor s32"))
ABS, NOT_ABOVE_0 = EltwisePostOp("abs"), EltwisePostOp("clip", -5, 0)

FLOATING = (
    Variant("folded", "f32"),
    Variant("separate", "f32", src_scale=True),
    Variant("source's scale", "f32", src_scale=True, wei_scale=False),
    Variant("dst scale of f32", "f32", dst_scale=True),
    Variant("zero point", "f32", src_zero_point=True),
    Variant("linear", "f32", post_ops=(LINEAR,)),
    Variant("sum of f32", "f32", post_ops=(SumPostOp(0.37),)),
    Variant("relu", "f32", post_ops=(RELU,)),
    Variant("leaky relu", "f32", post_ops=(LEAKY,)),
    Variant("clip", "f32", post_ops=(CLIP,)),
    Variant("clip_v2", "f32", post_ops=(CLIP_V2,)),
    Variant("round", "f32", post_ops=(ROUND,)),
    Variant("abs", "f32", post_ops=(EltwisePostOp("abs"),)),
    Variant("square", "f32", post_ops=(EltwisePostOp("square"),)),
    Variant("sqrt", "f32", post_ops=(EltwisePostOp("abs"), EltwisePostOp("sqrt"))),
    Variant("hardsigmoid", "f32", post_ops=(EltwisePostOp("hardsigmoid", 1 / 60, 0.47),)),
    Variant("hardswish", "f32", post_ops=(EltwisePostOp("hardswish", 1 / 60, 0.47),)),
    Variant("prelu", "f32", post_ops=("prelu",)),
    Variant("binary", "f32", binaries=PER_CHANNEL),
    Variant("others", "f32", binaries=OTHERS),
    Variant("of the tensor", "f32", binaries=PER_TENSOR),
    Variant("map", "f32", binaries=MAPS),
    Variant("rows", "f32", binaries=(("add", "whole"), *ROWS)),
    Variant("codes", "f32", binaries=(("add", "whole u8"), ("mul", "channel"))),
    Variant("bf16", "bf16"),
    Variant("clip to bf16", "bf16", post_ops=(CLIP,)),
    Variant("sum of bf16", "bf16", post_ops=(SumPostOp(0.37), RELU)),
    Variant("round to bf16", "bf16", post_ops=(ROUND,)),
    Variant("zero point to bf16", "bf16", src_zero_point=True),
    Variant("root to bf16", "bf16", post_ops=(EltwisePostOp("abs"), EltwisePostOp("sqrt"))),
    Variant("squared to bf16", "bf16", post_ops=("prelu", EltwisePostOp("square"))),
    Variant(
        "hardswish to bf16",
        "bf16",
        post_ops=(EltwisePostOp("hardswish", 1 / 60, 0.47), CLIP_V2),
        then=(EltwisePostOp("hardsigmoid", 0.3, 0.5),),
    ),
    Variant("binary to bf16", "bf16", binaries=(*PER_CHANNEL, *OTHERS)),
    Variant("rows to bf16", "bf16", binaries=ROWS),
    Variant("prelu of a tensor", "f32", post_ops=("prelu of a tensor",)),
    Variant("more of the tensor", "f32", binaries=MORE_PER_TENSOR),
    Variant("more maps", "f32", binaries=MORE_MAPS),
    Variant("more rows", "f32", binaries=MORE_ROWS),
    Variant("compared", "f32", binaries=compared("channel")),
    Variant("compared with a number", "f32", binaries=compared("tensor")),
    Variant("compared maps", "f32", binaries=compared("whole")),
    Variant("integers", "f32", binaries=INTEGERS),
    Variant("integers of the tensor", "f32", binaries=INTEGERS_PER_TENSOR),
    Variant("sums", "f32", binaries=(("add", "whole s32"),)),
    # Results around 0, of both signs.
    Variant("zeros of relu", "f32", post_ops=(ROUND, RELU), shrunk=80),
    Variant("zeros of abs", "f32", post_ops=(ROUND, ABS), shrunk=80),
    Variant("zeros of clip", "f32", post_ops=(ROUND, NOT_ABOVE_0), shrunk=80),
    Variant("zeros of clip_v2", "f32", post_ops=(ROUND, EltwisePostOp("clip_v2", 0, 5)), shrunk=80),
    Variant("zeros of prelu", "f32", post_ops=(ROUND, "prelu"), shrunk=80),
    Variant("zeros of prelu to bf16", "bf16", post_ops=(ROUND, "prelu"), shrunk=80),
    Variant("zeros to bf16", "bf16", post_ops=(ROUND, RELU, ROUND, ABS, NOT_ABOVE_0), shrunk=80),
    Variant("f16", "f16"),
    Variant("sum of f16", "f16", post_ops=(SumPostOp(0.37), LEAKY)),
    Variant("binary to f16", "f16", binaries=(*PER_CHANNEL, *MAPS), then=(LINEAR,)),
    Variant("zeros to f16", "f16", post_ops=(ROUND, RELU), shrunk=80),
    Variant("map to bf16", "bf16", binaries=(*PER_TENSOR, *MAPS)),
    Variant("dst scale of bf16", "bf16", dst_scale=True),
    # Nothing is left but what the rounding of the product leaves.
    Variant("cancelled", "bf16", bias="", post_ops=(CANCELS,), ties=True),
    Variant("relu to bf16", "bf16", src_scale=True, post_ops=(LEAKY, LINEAR)),
)
INTEGER = (
    Variant("bare", "s32", bias="", wei_scale=False),
    Variant("s32", "s32"),
    Variant("u8", "u8", dst_scale=True, dst_zero_point=True, post_ops=(RELU,)),
    Variant("u8 without zero point", "u8", dst_scale=True, post_ops=(RELU,)),
    Variant("s8", "s8", dst_scale=True, post_ops=(LINEAR,)),
    Variant("separate s8", "s8", src_scale=True, dst_scale=True),
    Variant("s8 with zero point", "s8", dst_scale=True, dst_zero_point=True, post_ops=(LINEAR,)),
    Variant(
        "sum",
        "u8",
        dst_scale=True,
        dst_zero_point=True,
        post_ops=(SumPostOp(0.37, 3), LEAKY),
    ),
    Variant("sum of s8", "s8", dst_scale=True, post_ops=(SumPostOp(0.37),)),
    Variant("clip to s8", "s8", dst_scale=True, post_ops=(CLIP,)),
    Variant("clip to u8", "u8", dst_scale=True, post_ops=(CLIP_V2,)),
    Variant("round to s8", "s8", bias="", dst_zero_point=True, post_ops=(ROUND,)),
    Variant("round to u8", "u8", dst_scale=True, post_ops=(ROUND,)),
    Variant("leaky relu to s8", "s8", dst_scale=True, post_ops=(LEAKY,)),
    Variant("prelu to s8", "s8", dst_scale=True, post_ops=("prelu",)),
    Variant("binary to s8", "s8", dst_scale=True, dst_zero_point=True, binaries=PER_CHANNEL),
    Variant("binary to u8", "u8", dst_scale=True, binaries=PER_CHANNEL),
    Variant("prelu of a tensor to u8", "u8", dst_scale=True, post_ops=("prelu of a tensor",)),
    Variant("compared to s8", "s8", binaries=compared("channel")),
    Variant("integers to u8", "u8", dst_scale=True, binaries=(*INTEGERS, *INTEGERS_PER_TENSOR)),
    Variant("rows to u8", "u8", dst_scale=True, dst_zero_point=True, binaries=ROWS),
    Variant("rows to s8", "s8", dst_scale=True, binaries=ROWS, then=(RELU,)),
    Variant(
        "codes to u8", "u8", dst_scale=True, binaries=(("mul", "channel"), ("add", "whole u8"))
    ),
    Variant(
        "codes to s8",
        "s8",
        dst_scale=True,
        dst_zero_point=True,
        binaries=(("mul", "channel"), ("add", "whole s8")),
        then=(RELU,),
    ),
    Variant("zero points", "u8", src_zero_point=True, dst_scale=True, dst_zero_point=True),
    Variant("quantized", "u8", post_ops=(ROUND, EltwisePostOp("clip", -3, 4), LINEAR)),
    Variant(
        "exact",
        "s8",
        bias="s32",
        wei_scale=False,
        dst_zero_point=True,
        binaries=(("mul", "channel"),),
        then=(ROUND,),
    ),
    Variant("bias of s32", "f32", bias="s32"),
    Variant("exact around 0", "s8", bias="s32", wei_scale=False, binaries=(("mul", "tensor"),)),
    Variant("halves", "s8", bias="", dst_scale=True, ties=True),
    Variant("halves shifted", "s8", bias="", dst_scale=True, dst_zero_point=True, ties=True),
    Variant("halves to u8", "u8", bias="", dst_scale=True, dst_zero_point=True, ties=True),
    Variant("halves times two", "s8", bias="", src_scale=True, dst_scale=True, ties=True),
)
# Functions that are known within bounds only; results in [-8, 8] or so.
FUNCTIONS: dict[str, tuple[float, ...]] = {
    "tanh": (),
    "logistic": (),
    "elu": (0.37,),
    "swish": (1.7,),
    "gelu_tanh": (),
    "gelu_erf": (),
    "mish": (),
    "soft_relu": (0.7,),
    "exp": (),
}
BOUNDED = (
    *(
        Variant(alg, "f32", post_ops=(EltwisePostOp(alg, *parameters),), shrunk=16.0)
        for alg, parameters in FUNCTIONS.items()
    ),
    Variant("log", "f32", post_ops=(EltwisePostOp("square"), EltwisePostOp("log"))),
    Variant("pow", "f32", post_ops=(EltwisePostOp("abs"), EltwisePostOp("pow", 1.3, 1.7))),
    Variant("gelu to u8", "u8", dst_scale=True, post_ops=(EltwisePostOp("gelu_erf"),)),
    Variant(
        "swish to s8",
        "s8",
        dst_scale=True,
        post_ops=(EltwisePostOp("swish", 1.0), LINEAR, CLIP),
        shrunk=16.0,
    ),
)
VARIANTS = FLOATING + INTEGER + BOUNDED
