"""Quantizing floats by the rules of each runtime, and dequantizing.

Accepted: every integer equals that of the rule in rational arithmetic, float32 roundings written
out, on exact ties, beside them, and where types saturate; the rules are pairwise apart where their
texts are. The runtimes themselves judge some of them in tests/others/oracles.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.requantize.quantize_rules import FRAMEWORKS, RULES, dequantize, framework, quantize
from support.definitions.requantization import f32, half_away

Definition = Callable[[Fraction, Fraction, int, int, int], int]
LIMITS = {"s8": (-128, 127), "u8": (0, 255)}


def inverse(s: Fraction) -> Fraction:
    return f32(1 / s)


DEFINITIONS: dict[str, Definition] = {
    "tflite": lambda x, s, z, _lo, _hi: half_away(f32(x / s)) + z,
    "tflite_optimised": lambda x, s, z, _lo, _hi: round(f32(x * inverse(s))) + z,
    "onnx": lambda x, s, z, _lo, _hi: round(f32(x / s)) + z,
    "torch_per_tensor": lambda x, s, z, _lo, _hi: round(f32(x * inverse(s) + z)),
    "torch_per_channel": lambda x, s, z, _lo, _hi: round(f32(f32(x * inverse(s)) + z)),
    "torch_fake_quantize": lambda x, s, z, _lo, _hi: round(f32(x * inverse(s))) + z,
    "onednn": lambda x, s, z, lo, hi: round(
        max(Fraction(lo), min(Fraction(hi), f32(f32(x * inverse(s)) + z)))
    ),
    "tpu_mlir": lambda x, s, z, _lo, _hi: half_away(f32(x * inverse(s))) + z,
    "stablehlo": lambda x, s, z, lo, hi: round(
        max(Fraction(lo), min(Fraction(hi), f32(f32(x / s) + z)))
    ),
}


def points(rng: np.random.Generator, scale: np.float32, zero_point: int) -> Any:
    """float32 values on and beside the ties of a scale, and outside of the type."""
    levels = np.arange(-150, 280, 5) + 0.5 - zero_point
    ties = (levels * float(scale)).astype(np.float32)
    sides = [np.nextafter(ties, np.float32(side)) for side in (-np.inf, np.inf)]
    return np.concatenate([ties, *sides, rng.normal(scale=60 * scale, size=40).astype(np.float32)])


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("scale", [0.25, 0.1, 0.0078431, 3.0, 1 / 3])
@pytest.mark.parametrize("rule", RULES)
def test_every_integer_is_that_of_the_rule(rule: str, scale: float, dtype: str) -> None:
    rng = np.random.default_rng(int(scale * 1000))
    lo, hi = LIMITS[dtype]
    s = np.float32(scale)
    for zero_point in (lo, lo + 3, hi - 26):
        x = points(rng, s, zero_point)
        got = quantize(x, s, zero_point, dtype, rule=rule)
        wanted = [
            max(
                lo,
                min(
                    hi,
                    DEFINITIONS[rule](Fraction(float(v)), Fraction(float(s)), zero_point, lo, hi),
                ),
            )
            for v in x
        ]
        assert got.tolist() == wanted


def test_rules_are_told_apart_by_a_tie() -> None:
    """2.5 scales above an odd zero point: where halves go, and when the zero point comes."""
    x = np.array([-2.5, -0.5, 0.5, 2.5], np.float32)
    results = {rule: tuple(quantize(x, 1.0, 11, "u8", rule=rule).tolist()) for rule in RULES}
    assert results["tflite"] == results["tpu_mlir"] == (8, 10, 12, 14)
    assert results["onnx"] == results["tflite_optimised"] == (9, 11, 11, 13)
    inside = {"torch_per_tensor", "torch_per_channel", "onednn", "stablehlo"}
    assert {results[rule] for rule in inside} == {(8, 10, 12, 14)}


def test_a_reciprocal_is_not_a_division() -> None:
    s = np.float32(0.07)
    x = np.array([np.float32(np.float32(n + 0.5) * s) for n in range(200)], np.float32)
    assert (
        quantize(x, s, 0, "u8", rule="onnx") != quantize(x, s, 0, "u8", rule="tflite_optimised")
    ).any()


@pytest.mark.parametrize("rule", RULES)
def test_infinities_saturate_and_nan_is_refused(rule: str) -> None:
    x = np.array([-np.inf, np.inf, -3e38, 3e38], np.float32)
    assert quantize(x, 0.001, 5, "s8", rule=rule).tolist() == [-128, 127, -128, 127]
    with pytest.raises(ArgumentError, match=r"^x: got NaN"):
        quantize(np.array([np.nan], np.float32), 1.0, 0, "s8", rule=rule)


def test_scales_and_zero_points_may_vary() -> None:
    x = np.array([[1.0, 1.0], [-1.0, 5.0]], np.float32)
    got = quantize(x, [0.5, 0.25], [1, 2], "s8", rule="onnx")
    assert got.tolist() == [[3, 6], [-1, 22]]


def test_dequantize() -> None:
    rng = np.random.default_rng(0)
    q = rng.integers(-128, 128, 500).astype(np.int8)
    got = dequantize(q, 0.0117, -9)
    s = Fraction(float(np.float32(0.0117)))
    assert got.dtype == np.float32
    assert [Fraction(float(v)) for v in got] == [f32((int(v) + 9) * s) for v in q]


def test_arguments() -> None:
    x = np.zeros(2, np.float32)
    with pytest.raises(ArgumentError, match=r"^rule: got 'caffe'; wanted one of tflite, "):
        quantize(x, 1.0, 0, "u8", rule="caffe")
    with pytest.raises(DTypeError, match=r"^x: got float64; wanted float32"):
        quantize(x.astype(float), 1.0, 0, "u8", rule="onnx")
    with pytest.raises(ArgumentError, match=r"^scale: "):
        quantize(x, 0.0, 0, "u8", rule="onnx")
    with pytest.raises(ArgumentError, match=r"^zero_point: got 256; wanted integers from 0 to 255"):
        quantize(x, 1.0, 256, "u8", rule="onnx")
    with pytest.raises(DTypeError, match=r"^dtype: got 'f32'"):
        quantize(x, 1.0, 0, "f32", rule="onnx")


def test_constants_of_frameworks_name_rules_that_exist() -> None:
    assert {one.quantize for one in FRAMEWORKS.values()} <= set(RULES)
    assert framework("tflite_uint8").multiplier == "single_product"
    with pytest.raises(ArgumentError, match=r"^name: got 'mxnet'"):
        framework("mxnet")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("dtype", "ends"), [("u8", (0, 255)), ("s8", (-128, 127))])
def test_a_zero_point_is_a_code(dtype: str, ends: tuple[int, int], rule: str) -> None:
    x = np.zeros(1, np.float32)
    for end in ends:
        assert quantize(x, 1.0, end, dtype, rule=rule).tolist() == [end]
    for wrong in (ends[0] - 1, ends[1] + 1, 0.5, 3.0):
        with pytest.raises(ArgumentError, match=rf"^zero_point: got {wrong}; wanted integers"):
            quantize(x, 1.0, wrong, dtype, rule=rule)
