"""Which arithmetic each dialect's operators use: what the functions take, and what docs print.

z is a zero point, s a scale, x a code less its zero point. "D2" is TFLite's multiplication by a
31-bit multiplier with two roundings, see docs/dialects.md; "half up", "half away" and "even" say
where halves go. r is s_src / s_dst as one float32. "Floats" means: dequantize, compute in float32,
quantize by the dialect's own rule.
"""

from __future__ import annotations

__all__ = ["ARITHMETIC"]

_FLOATS = {
    "tflite": "floats, half away(y / s) + z",
    "onnxruntime": "floats, even(y / s) + z",
    "caffe2": "floats, even(y / s) + z",
    "tpu_mlir": "floats, half away(y · f32(1 / s)) + z",
}
_STABLEHLO = "floats, even(y / s + z)"

ARITHMETIC: dict[str, dict[str, str]] = {
    "add": {
        "tflite": "each x · 2^20 · s / (2 · max s) by D2, their sum · 2 · max s / (2^20 · s_dst) "
        "by D2, + z: the reference kernel",
        "tflite_optimised": "no broadcasting; each x · 2^20 · s / (2 · max s) with one rounding, "
        "half up (s8: shifted before it; u8: after it, cut off), their sum by D2, in 16 bits, + z; "
        "the last, up to 15 (u8: 7), of a channels-last tensor as tflite",
        "onnxruntime": "f32: a · (s_a / s_dst) + b · (s_b / s_dst) on codes, with all zero points "
        "as one constant inside, even",
        "xnnpack": "21-bit multipliers of the same power, one shift half up, + z",
        "caffe2": "22-bit multipliers of the same power, one shift half away, + z (SNPS-Caffe)",
        "tpu_mlir": "zero points 0: two products by 7 bits, each shifted half up, then added "
        "(BM168x); else floats",
        "tpu_mlir_cv18xx": "zero points 0: two products by 7 bits, added, then one shift half up",
        "stablehlo": _STABLEHLO,
        "onednn": "f32(f32(a · r_a) + f32(b · r_b)) on codes, + all zero points as one constant, "
        "even: binary add",
    },
    "max_pool": {
        "tflite": "the largest code",
        "onnxruntime": "the largest code",
        "caffe2": "the largest code",
        "tpu_mlir": "the largest code",
        "tosa": "the largest code",
        "onednn": "the largest code: pooling",
    },
    "average_pool": {
        "tflite": "scales alike: mean of codes without padding, half away from zero",
        "onnxruntime": "over the whole image: f32(sum of x) · f32(s_src / (s_dst · n)), even, + z; "
        "else the mean in f32, even(mean / s + z)",
        "caffe2": "f32(sum of x) · f32(s_src / (s_dst · n)), half away from zero (SNPS-Caffe)",
        "tpu_mlir": "zero points 0: sum · multiplier of 7 bits, shifted half up; else "
        "half away(sum of codes · s_src / (s_dst · k) + z_dst − s_src / s_dst · z_src)",
        "tosa": "scales alike: sum of x · (2^30 + 1) · 2^k // n >> (30 + k), 2^k the power of two "
        "not below n, half up, + z",
        "onednn": "f32(sum of codes) · f32(1 / n), then fma(mean, r, z_dst − r · z_src), even: "
        "pooling; src and dst of one type",
    },
    "leaky_relu": {
        "tflite": "x · s_src / s_dst, for x < 0 x · s_src · alpha / s_dst, by D2, + z",
        "xnnpack": "x · rint(256 · s_src / s_dst) / 256, for x < 0 with alpha in the rint, half "
        "up, + z; as tflite where a ratio is below 1/256",
        "onnxruntime": _FLOATS["onnxruntime"],
        "caffe2": _FLOATS["caffe2"],
        "tpu_mlir": "zero points 0, scales alike: q, for q < 0 q · alpha by 7 bits, half up; else "
        + _FLOATS["tpu_mlir"],
        "onednn": "fma(f32(x · alpha), r, z), even: binary, relu and linear as post-ops",
    },
    "prelu": {
        "tflite": "x · s_src / s_dst, for x < 0 x · slope · s_src · s_slope / s_dst, by D2, + z",
        "onnxruntime": _FLOATS["onnxruntime"],
        "caffe2": _FLOATS["caffe2"],
        "tpu_mlir": "zero points 0, scales alike: q, for q < 0 q · slope by 7 bits cut off, half "
        "up; else " + _FLOATS["tpu_mlir"],
        "onednn": "fma(f32(x · slope), r, z), even: prelu between a reorder and a binary",
    },
    "relu": {
        "tflite": "x · s_src / s_dst by D2, + z, not below z",
        "onnxruntime": _FLOATS["onnxruntime"],
        "caffe2": _FLOATS["caffe2"],
        "tpu_mlir": _FLOATS["tpu_mlir"],
        "onednn": "fma(max(x, 0), r, z), even: binary, relu and linear as post-ops",
    },
    "concat": {
        "tflite": "parameters alike: codes as they are; u8: half away(f32(q · ratio − z · ratio)) "
        "+ z with ratio = f32(s_src · f32(1 / s_dst)); s8 refuses other scales",
        "onnxruntime": _FLOATS["onnxruntime"],
        "caffe2": _FLOATS["caffe2"],
        "tpu_mlir": _FLOATS["tpu_mlir"],
        "onednn": "f32(x · r) + z, even: a reorder of each into its slice",
    },
    "pad": {
        "tflite": "codes as they are; the border is the value, half away(value / s) + z",
        "onnxruntime": "codes as they are; the border is the value, even(value / s) + z",
        "caffe2": "codes as they are; the border is the value, even(value / s) + z",
        "tpu_mlir": "codes as they are; the border is half away(value / s + z) in double",
        "onednn": "codes as they are; the border is the value, even(value · f32(1 / s) + z): no "
        "primitive, in NumPy",
    },
    "bias_add": {
        "onnxruntime": _FLOATS["onnxruntime"],
        "caffe2": _FLOATS["caffe2"],
        "tflite": _FLOATS["tflite"],
        "tpu_mlir": _FLOATS["tpu_mlir"],
        "onednn": "as `add`",
    },
    "power": _FLOATS
    | {
        "onednn": "fma(x, s_src · scale, shift), pow or square, fma(v, 1 / s_dst, z), even: "
        "binary, the others post-ops"
    },
    "requantize": {
        "tflite": "x · s_src / s_dst by D2, + z: the reference kernel",
        "tflite_optimised": "the same by U2; the last, up to 15, of a tensor by D2",
        "xnnpack": "of one type: x · rint(256 · s_src / s_dst) / 256, half up, + z; else as "
        "tflite_optimised",
        "onnxruntime": _FLOATS["onnxruntime"],
        "caffe2": _FLOATS["caffe2"],
        "tpu_mlir": _FLOATS["tpu_mlir"],
        "stablehlo": _STABLEHLO,
        "onednn": "fma(x, r, z), even: binary, linear as a post-op",
    },
    "sigmoid": _FLOATS
    | {
        "onednn": "f32(x · s_src), logistic, fma(v, 1 / s_dst, z), even: binary, the others "
        "post-ops"
    },
    "softmax": _FLOATS
    | {"onednn": "f32(x · s_src · beta) by a reorder, softmax, fma(v, 1 / s_dst, z), even"},
    "resize_bilinear": {
        "tflite": "parameters alike, on codes: s8 by integer weights of 10 bits per axis, half "
        "away; u8 in float32, each code times its weights one after the other, + 0.5 cut off: the "
        "reference kernel",
        "tflite_optimised": "the same; u8: each code times the product of its weights",
        "xnnpack": "parameters alike, on codes: weights of 11 bits per axis, across and then down, "
        "one shift by 22, half up",
        "onnxruntime": _FLOATS["onnxruntime"],
        "caffe2": _FLOATS["caffe2"],
        "tpu_mlir": _FLOATS["tpu_mlir"],
        "onednn": "codes: fma(right, w_right, left · w_left) in both rows, these mixed alike, then "
        "fma(v, r, z_dst − r · z_src), even: resampling; pixels by their centre",
    },
}
