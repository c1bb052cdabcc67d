"""The catalogue of dialects: what each runtime is called, and what it does in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pyonednn_q.requantize import constants
from pyonednn_q.requantize.value import AWAY

if TYPE_CHECKING:
    from pyonednn_q.requantize.constants import Rule


DialectName: TypeAlias = Literal[
    "exact",
    "exact_half_away",
    "tflite_2step",
    "tflite_2step_single",
    "tflite_2up",
    "tflite_2up_single",
    "tflite_1step",
    "tflite_1step_single",
    "caffe2",
    "caffe2_deconv",
    "snps_inner_product",
    "snps_inner_product_onnx",
    "snps_ev",
    "onnxruntime",
    "torch_qnnpack",
    "onednn",
    "onednn_one_scale",
    "onednn_separate",
    "onednn_combined",
    "onednn_reference",
    "tpu_mlir",
    "tpu_mlir_8bit",
    "tpu_mlir_qdm",
    "tpu_mlir_literal",
    "tosa_single_round",
    "tosa_double_round",
]


class Distance(NamedTuple):
    """Largest distance of a result from the real value, before that is rounded and clamped.

    Attributes
    ----------
    levels : float
        Distance by rounding, in codes of the destination: 1/2 is one rounding to the nearest.
    relative : float
        Distance relative to the real value: what the rounding of the multiplier, of scales and of
        float32 sums to.
    of_acc : float
        Distance relative to the accumulator: the step of a multiplier whose shift is bounded.
    """

    levels: float = 0.5
    relative: float = 2.0**-20
    of_acc: float = 0.0


_ONCE = Distance()
_TWICE = Distance(0.75)  # the first rounding of two counts at most half as much as the second


@dataclass(frozen=True, slots=True)
class Dialect:
    """One runtime's way from accumulators to integers.

    Attributes
    ----------
    name, alias : str
        Name in calls, and short name in notes and tables, which calls take too.
    summary : str
        Constants and roundings in words.
    constants : callable
        Takes src_scale, wei_scale and dst_scale as float64 arrays, and returns a dict of arguments
        of `Requantizer`.
    single_scales : bool
        Whether the runtime stores scales as float32; they are rounded to float32 first.
    distance : Distance
        Largest distance of a result from src_scale · wei_scale / dst_scale · acc + zero_point.
    most : float
        The greatest multiplier src_scale · wei_scale / dst_scale that the runtime has; greater ones
        become this one.
    """

    name: str
    alias: str
    summary: str
    constants: Rule
    single_scales: bool = True
    distance: Distance = _ONCE
    most: float = math.inf


_ALL = (
    Dialect(
        "exact",
        "exact",
        "exact product, nearest, ties to even: nobody's arithmetic, the yardstick",
        constants.exact("half_to_even"),
    ),
    Dialect(
        "exact_half_away",
        "exact away",
        "exact product, nearest, ties away from zero",
        constants.exact(AWAY),
    ),
    Dialect(
        "tflite_2step",
        "D2",
        "double multiplier in 31 bits; high product half up, then shift half away",
        constants.two_step("double", AWAY),
        distance=_TWICE,
    ),
    Dialect(
        "tflite_2step_single",
        "F2",
        "as D2, the product of src and wei scale rounded to float32",
        constants.two_step("single_product", AWAY),
        distance=_TWICE,
    ),
    Dialect(
        "tflite_2up",
        "U2",
        "as D2, but the shift rounds half up",
        constants.two_step("double", "half_up"),
        distance=_TWICE,
    ),
    Dialect(
        "tflite_2up_single",
        "FU2",
        "as U2 with F2's multiplier",
        constants.two_step("single_product", "half_up"),
        distance=_TWICE,
    ),
    Dialect(
        "tflite_1step",
        "D1",
        "double multiplier in 31 bits; one shift of the 63-bit product, half up",
        constants.one_step("double"),
    ),
    Dialect(
        "tflite_1step_single",
        "F1",
        "as D1 with F2's multiplier",
        constants.one_step("single_product"),
    ),
    Dialect(
        "caffe2",
        "Q31",
        "float32 multiplier (24 bits of 31), 2^-32 <= M < 1; roundings of D2",
        constants.q31,
        distance=_TWICE,
    ),
    Dialect(
        "caffe2_deconv",
        "SNPS f2",
        "float32 product with M's mantissa, half away; then shift, half away; M < 1",
        constants.two_round("single", "two_round_single"),
        distance=_TWICE,
    ),
    Dialect(
        "snps_inner_product",
        "SNPS d2",
        "the same with a double product and mantissa; sums and what is rounded first in float32",
        constants.two_round("double", "two_round_double"),
        distance=_TWICE,
    ),
    Dialect(
        "snps_inner_product_onnx",
        "SNPS rint",
        "float32 accumulator times double M, ties to even",
        constants.real("double", "double"),
    ),
    Dialect(
        "snps_ev",
        "EV",
        "odd multiplier below 2^15; one shift of the product, ties to even",
        constants.ev,
        single_scales=False,
        distance=Distance(relative=2.0**-14),
    ),
    Dialect(
        "onnxruntime",
        "f32",
        "float32 accumulator times float32 multiplier, ties to even; also XNNPACK, FBGEMM",
        constants.real("single", "float"),
    ),
    Dialect(
        "torch_qnnpack",
        "QNNPACK",
        "the same with (src_scale · wei_scale) · (1/dst_scale), each operation in float32",
        constants.real("single_reciprocal", "float"),
    ),
    Dialect(
        "onednn",
        "oneDNN",
        "src and wei scale folded into one float32, times 1/dst_scale, zero point, ties to even",
        constants.onednn("folded"),
        single_scales=False,
    ),
    Dialect(
        "onednn_one_scale",
        "oneDNN one",
        "all three scales folded into one float32",
        constants.onednn("one_scale"),
        single_scales=False,
    ),
    Dialect(
        "onednn_separate",
        "oneDNN sep",
        "(acc · src_scale) · wei_scale, times 1/dst_scale: most kernels with separate scales",
        constants.onednn("separate"),
    ),
    Dialect(
        "onednn_combined",
        "oneDNN comb",
        "acc · (src_scale · wei_scale), times 1/dst_scale: AMX brgemm with separate scales",
        constants.onednn("combined"),
    ),
    Dialect(
        "onednn_reference",
        "oneDNN ref",
        "(acc · src_scale) · wei_scale, divided by dst_scale: reference loops of 3.13",
        constants.onednn("divide"),
    ),
    Dialect(
        "tpu_mlir",
        "TPU 32",
        "multiplier of 32 bits searched in float32, shift up to 30, half up",
        constants.tpu_mlir(32),
        single_scales=False,
        distance=Distance(of_acc=2.0**-31),
    ),
    Dialect(
        "tpu_mlir_8bit",
        "TPU 8",
        "the same with a multiplier below 127",
        constants.tpu_mlir(8),
        single_scales=False,
        distance=Distance(relative=2.0**-6, of_acc=2.0**-31),
    ),
    Dialect(
        "tpu_mlir_qdm",
        "TPU QDM",
        "D2 on double scales, M below 1 (CV18xx)",
        constants.tpu_mlir_qdm,
        single_scales=False,
        distance=Distance(0.75, 2.0**-19),
        most=0.999999,
    ),
    Dialect(
        "tpu_mlir_literal",
        "TPU >>",
        "the documentation as printed: a shift without rounding",
        constants.tpu_mlir_literal,
        single_scales=False,
        distance=Distance(1.0),
    ),
    Dialect(
        "tosa_single_round",
        "TOSA 1",
        "TOSA's RESCALE of 32 bits, SINGLE_ROUND: as D1, of double scales; M below 2^29",
        constants.tosa(constants.one_step("double")),
        single_scales=False,
    ),
    Dialect(
        "tosa_double_round",
        "TOSA 2",
        "the same, DOUBLE_ROUND: as D2",
        constants.tosa(constants.two_step("double", AWAY)),
        single_scales=False,
        distance=_TWICE,
    ),
)
DIALECTS = {one.name: one for one in _ALL}
ALIASES = {one.alias: one for one in _ALL} | {
    "ort": DIALECTS["onnxruntime"],
    "c2": DIALECTS["caffe2"],
    "q31": DIALECTS["caffe2"],
}
