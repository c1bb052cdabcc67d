"""The constants that frameworks differ in: how scales are stored, multiplied and rounded.

The table of types of the quantized-operator note, with what the frameworks were found to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from pyonednn_q.argument import one_of


@dataclass(frozen=True, slots=True)
class Framework:
    """What a framework does with scales and halves.

    Attributes
    ----------
    scale : {"float32", "float64"}
        Type in which scales are stored.
    multiplier : {"double", "single_product", "single"}
        In which precision src_scale · wei_scale / dst_scale is formed: see `real_multiplier`.
    quantize : str
        The rule by which floats become codes: one of `quantizers.RULES`.
    rounding : str
        How that rule rounds halves.
    """

    scale: str
    multiplier: str
    quantize: str
    rounding: str


FRAMEWORKS = {
    "tflite_int8": Framework("float32", "double", "tflite", "half_away_from_zero"),
    "tflite_uint8": Framework("float32", "single_product", "tflite", "half_away_from_zero"),
    "tflite_optimised": Framework("float32", "double", "tflite_optimised", "half_to_even"),
    "onnxruntime": Framework("float32", "single", "onnx", "half_to_even"),
    "caffe2": Framework("float32", "single", "onnx", "half_to_even"),
    "torch": Framework("float32", "single", "torch_per_tensor", "half_to_even"),
    "onednn": Framework("float32", "single", "onednn", "half_to_even"),
    "tpu_mlir": Framework("float64", "double", "tpu_mlir", "half_away_from_zero"),
}


def framework(name: str) -> Framework:
    """Return the constants of a framework.

    Raises
    ------
    ArgumentError
        There is none of that name.

    Examples
    --------
    >>> framework("tflite_int8").multiplier, framework("onnxruntime").rounding
    ('double', 'half_to_even')
    """
    one_of("name", name, tuple(FRAMEWORKS))
    return FRAMEWORKS[name]


class Bounds(TypedDict):
    """Parameters of `requantizer`: where its integers are kept, and between which bounds."""

    dst_dtype: str
    lo: int | None
    hi: int | None


# SNPS-Caffe's Saturate: those without "8bit" in their name have 12 bits.
SATURATE_MODES = {
    "None": Bounds(dst_dtype="s32", lo=None, hi=None),
    "Signed": Bounds(dst_dtype="s32", lo=-2048, hi=2047),
    "Unsigned": Bounds(dst_dtype="s32", lo=0, hi=4095),
    "Signed_8bit": Bounds(dst_dtype="s8", lo=-128, hi=127),
    "Unsigned_8bit": Bounds(dst_dtype="u8", lo=0, hi=255),
}


def saturate_mode(name: str) -> Bounds:
    """Return what one of SNPS-Caffe's Saturate modes asks of `requantizer`.

    Raises
    ------
    ArgumentError
        There is none of that name.

    Examples
    --------
    >>> saturate_mode("Signed")
    {'dst_dtype': 's32', 'lo': -2048, 'hi': 2047}
    """
    one_of("name", name, tuple(SATURATE_MODES))
    return SATURATE_MODES[name]
