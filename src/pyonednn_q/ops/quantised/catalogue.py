"""Which arithmetic each dialect's operators use: what the functions take, and what docs print.

z is a zero point, s a scale, x a code less its zero point. "D2" is TFLite's multiplication by a
31-bit multiplier with two roundings, see docs/dialects.md; "half up", "half away" and "even" say
where halves go. "Floats" means: dequantise, compute in float32, quantise by the dialect's own rule.
"""

from __future__ import annotations

__all__ = ["ARITHMETIC"]

_FLOATS = {
    "tflite": "floats, half away(y / s) + z",
    "onnxruntime": "floats, even(y / s) + z",
    "caffe2": "floats, even(y / s) + z",
    "tpu_mlir": "floats, half away(y · f32(1 / s)) + z",
}

ARITHMETIC: dict[str, dict[str, str]] = {
    "add": {
        "tflite": "each x · 2^20 · s / (2 · max s) by D2, their sum · 2 · max s / (2^20 · s_dst) "
        "by D2, + z",
        "onnxruntime": "f32: a · (s_a / s_dst) + b · (s_b / s_dst) on codes, with all zero points "
        "as one constant inside, even",
        "xnnpack": "21-bit multipliers of the same power, one shift half up, + z",
        "caffe2": "22-bit multipliers of the same power, one shift half away, + z (SNPS-Caffe)",
        "tpu_mlir": "zero points 0: two products by 7 bits, each shifted half up, then added "
        "(BM168x); else floats",
        "tpu_mlir_cv18xx": "zero points 0: two products by 7 bits, added, then one shift half up",
    },
    "average_pool": {
        "tflite": "scales alike: mean of codes without padding, half away from zero",
        "onnxruntime": "over the whole image: f32(sum of x) · f32(s_src / (s_dst · n)), even, + z; "
        "else the mean in f32, even(mean / s + z)",
        "caffe2": "f32(sum of x) · f32(s_src / (s_dst · n)), half away from zero (SNPS-Caffe)",
        "tpu_mlir": "zero points 0: sum · multiplier of 7 bits, shifted half up; else "
        "half away(sum of codes · s_src / (s_dst · k) + z_dst − s_src / s_dst · z_src)",
    },
    "leaky_relu": {
        "tflite": "x · s_src / s_dst, for x < 0 x · s_src · alpha / s_dst, by D2, + z",
        "xnnpack": "x · rint(256 · s_src / s_dst) / 256, for x < 0 with alpha in the rint, half "
        "up, + z; as tflite where a ratio is below 1/256",
        "onnxruntime": _FLOATS["onnxruntime"],
        "caffe2": _FLOATS["caffe2"],
        "tpu_mlir": "zero points 0, scales alike: q, for q < 0 q · alpha by 7 bits, half up; else "
        + _FLOATS["tpu_mlir"],
    },
    "prelu": {
        "tflite": "x · s_src / s_dst, for x < 0 x · slope · s_src · s_slope / s_dst, by D2, + z",
        "onnxruntime": _FLOATS["onnxruntime"],
        "caffe2": _FLOATS["caffe2"],
        "tpu_mlir": "zero points 0, scales alike: q, for q < 0 q · slope by 7 bits cut off, half "
        "up; else " + _FLOATS["tpu_mlir"],
    },
    "relu": {
        "tflite": "x · s_src / s_dst by D2, + z, not below z",
        "onnxruntime": _FLOATS["onnxruntime"],
        "caffe2": _FLOATS["caffe2"],
        "tpu_mlir": _FLOATS["tpu_mlir"],
    },
    "concat": {
        "tflite": "parameters alike: codes as they are; u8: half away(f32(q · ratio − z · ratio)) "
        "+ z with ratio = f32(s_src · f32(1 / s_dst)); s8 refuses other scales",
        "onnxruntime": _FLOATS["onnxruntime"],
        "caffe2": _FLOATS["caffe2"],
        "tpu_mlir": _FLOATS["tpu_mlir"],
    },
    "pad": {
        "tflite": "codes as they are; the border is the value, half away(value / s) + z",
        "onnxruntime": "codes as they are; the border is the value, even(value / s) + z",
        "caffe2": "codes as they are; the border is the value, even(value / s) + z",
        "tpu_mlir": "codes as they are; the border is half away(value / s + z) in double",
    },
    "bias_add": {
        "onnxruntime": _FLOATS["onnxruntime"],
        "caffe2": _FLOATS["caffe2"],
        "tflite": _FLOATS["tflite"],
        "tpu_mlir": _FLOATS["tpu_mlir"],
    },
    "power": dict(_FLOATS),
    "sigmoid": dict(_FLOATS),
    "softmax": dict(_FLOATS),
    "resize_bilinear": {
        "tflite": "parameters alike, on codes: s8 by integer weights of 10 bits per axis, half "
        "away; u8 in float32, + 0.5 cut off (reference kernel)",
        "onnxruntime": _FLOATS["onnxruntime"],
        "caffe2": _FLOATS["caffe2"],
        "tpu_mlir": _FLOATS["tpu_mlir"],
    },
}
