"""Dialect of each framework's operator: measured where it could be, else as its notes say.

Two tables. SNPS-Caffe documents which rule it takes for a convolution by scales and groups. TFLite
was measured kernel by kernel, and is not what that table says of it: docs/reference/dialects.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyonednn_q.argument import one_of
from pyonednn_q.errors import ArgumentError

OPS = ("conv", "deconv", "inner_product")
DTYPES = ("u8", "s8")
VECTOR = 8  # channels that an optimised kernel of TFLite requantizes at once
_GRANULARITIES = ("per_tensor", "per_channel")


@dataclass(frozen=True, slots=True)
class Method:
    """The rule of an operator.

    Attributes
    ----------
    dialect : str
        Name of the dialect.
    tail : str, optional
        Name of the dialect of the channels that are left when whole vectors of `VECTOR` channels
        are done, where it is another.
    measured : bool
        Whether it was compared with the framework itself, without a difference.
    """

    dialect: str
    tail: str | None = None
    measured: bool = True


def which_method(
    framework: str,
    op: str,
    dtype: str = "s8",
    granularity: str = "per_tensor",
    *,
    depthwise: bool = False,
    pointwise: bool = False,
    version: str | None = None,
) -> Method:
    """Return the rule by which a framework requantizes an operator's sums.

    Parameters
    ----------
    framework : str
        One of `FRAMEWORKS`. TFLite's kernels are named apart: ``tflite_reference``,
        ``tflite_optimised``, and ``xnnpack``, which its interpreter uses by default.
    op : {"conv", "deconv", "inner_product"}
        The operator; a matmul with constant weights is an inner product.
    dtype : {"u8", "s8"}
        Data type of the activations; u8 is TFLite's older scheme, with asymmetric weights.
    granularity : {"per_tensor", "per_channel"}
        Whether the weights have one scale, or one per output channel.
    depthwise, pointwise : bool
        Whether each group has one input channel; whether the kernel is 1×1.
    version : str, optional
        Version of TFLite: ``"2.3"``, ``"2.5"``, ``"2.14"`` or ``"litert-2.3"``, the default. Other
        frameworks have one rule.

    Raises
    ------
    ArgumentError
        Naming the argument; also where no such operator was found or measured.

    Examples
    --------
    >>> which_method("tflite_reference", "conv").dialect
    'tflite_2step'
    >>> which_method("tflite_optimised", "conv", version="2.5").dialect
    'tflite_1step'
    >>> which_method("snps_tflite", "conv", granularity="per_channel", depthwise=True).dialect
    'tflite_2step'
    """
    one_of("framework", framework, FRAMEWORKS)
    one_of("op", op, OPS)
    one_of("dtype", dtype, DTYPES)
    one_of("granularity", granularity, _GRANULARITIES)
    row = f"depthwise {op}" if depthwise else op
    if framework in _ALWAYS:
        return _NOT_DELEGATED.get((framework, row, dtype), _ALWAYS[framework])
    if framework.startswith("snps"):
        return _snps(framework, op, granularity, narrow=depthwise or pointwise, depthwise=depthwise)
    chosen = "litert-2.3" if version is None else version
    one_of("version", chosen, VERSIONS)
    table = _TFLITE.get((framework, chosen), {})
    method = table.get((f"{row} {granularity}", dtype), table.get((row, dtype)))
    if method is None:
        got = f"{row} of {dtype} with {framework} {chosen}"
        raise ArgumentError("op", got, "an operator that was measured")
    return method


def _snps(framework: str, op: str, granularity: str, *, narrow: bool, depthwise: bool) -> Method:
    """SNPS-Caffe's table: by scales, groups and kernel."""
    rows = {
        ("snps_tflite", "conv", "per_tensor"): "tflite_2step_single" if narrow else "tflite_2step",
        ("snps_tflite", "conv", "per_channel"): "tflite_2step" if depthwise else "tflite_1step",
        ("snps_onnx", "conv", granularity): "onnxruntime",
        ("snps_caffe2", "conv", granularity): "caffe2",
        ("snps_caffe2", "deconv", granularity): "caffe2_deconv",
        ("snps_tflite", "inner_product", granularity): "snps_inner_product",
        ("snps_onnx", "inner_product", granularity): "snps_inner_product_onnx",
    }
    name = rows.get((framework, op, granularity))
    if name is None:
        raise ArgumentError("op", f"{op} with {framework}", "an operator that SNPS-Caffe has")
    return Method(name, measured=False)


_ALWAYS = {
    "xnnpack": Method("onnxruntime"),
    "onnxruntime": Method("onnxruntime"),
    "fbgemm": Method("onnxruntime"),
    "torch_qnnpack": Method("torch_qnnpack"),
    "caffe2": Method("caffe2", measured=False),
    "onednn": Method("onednn"),
    "tpu_mlir_bm168x": Method("tpu_mlir"),
    "tpu_mlir_cv18xx": Method("tpu_mlir_qdm"),
}
VERSIONS = ("2.3", "2.5", "2.14", "litert-2.3")
_AWAY = Method("exact_half_away")
_D1, _D2 = Method("tflite_1step"), Method("tflite_2step")
_F2, _U2, _FU2 = Method("tflite_2step_single"), Method("tflite_2up"), Method("tflite_2up_single")
_U2_TAIL = Method("tflite_2up", tail="tflite_2step")
_U8 = {("conv", "u8"): _F2, ("depthwise conv", "u8"): _F2}
# XNNPACK leaves this one to the interpreter's own kernel.
_NOT_DELEGATED = {("xnnpack", "depthwise conv", "u8"): _F2}
# Keyed by kernels and version, then by operator and dtype; per tensor and per channel are alike but
# where a row names one.
_TFLITE: dict[tuple[str, str], dict[tuple[str, str], Method]] = {
    ("tflite_reference", "litert-2.3"): {
        **_U8,
        ("conv", "s8"): _D2,
        ("depthwise conv", "s8"): _D2,
        ("deconv", "s8"): _D2,
        ("deconv", "u8"): _F2,
        ("inner_product", "s8"): _AWAY,
        ("inner_product", "u8"): _AWAY,
    },
    ("tflite_optimised", "litert-2.3"): {
        ("conv", "s8"): _U2,
        ("depthwise conv", "s8"): _U2_TAIL,
        ("deconv", "s8"): _U2_TAIL,
        ("deconv", "u8"): _FU2,
        ("inner_product", "s8"): _FU2,
        ("inner_product per_channel", "s8"): _U2,
        ("inner_product", "u8"): _FU2,
        ("conv", "u8"): _FU2,
        ("depthwise conv", "u8"): _F2,
    },
    ("tflite_optimised", "2.14"): {**_U8, ("conv", "s8"): _U2, ("depthwise conv", "s8"): _D2},
    ("tflite_optimised", "2.5"): {
        **_U8,
        ("conv", "s8"): _D1,
        ("depthwise conv", "s8"): _U2_TAIL,
    },
    ("tflite_optimised", "2.3"): {
        **_U8,
        ("conv", "s8"): _D2,
        ("depthwise conv", "s8"): _U2_TAIL,
    },
}
FRAMEWORKS = (
    "tflite_reference",
    "tflite_optimised",
    "snps_tflite",
    "snps_onnx",
    "snps_caffe2",
    *_ALWAYS,
)
