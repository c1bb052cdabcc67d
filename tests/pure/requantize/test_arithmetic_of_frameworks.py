"""Which arithmetic a framework's operator uses: the two tables.

Accepted: SNPS-Caffe's own table by scales and groups, and the measured table of TFLite's kernels by
version; what was not measured is refused. tests/others/oracles measures the installed LiteRT again.
"""

from __future__ import annotations

import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.requantize import DIALECTS
from pyonednn_q.requantize.method import FRAMEWORKS, VERSIONS, which_method

# The documented table: rows are scales, columns group 1, depthwise, pointwise.
DOCUMENTED = {
    ("per_tensor", False, False): "D2",
    ("per_tensor", True, False): "F2",
    ("per_tensor", False, True): "F2",
    ("per_channel", False, False): "D1",
    ("per_channel", True, False): "D2",
    ("per_channel", False, True): "D1",
}
REF, OPT = "tflite_reference", "tflite_optimised"
# The measured table: kernels, version, operator, depthwise, dtype.
MEASURED = {
    (REF, "litert-2.3", "conv", False, "s8"): "D2",
    (OPT, "litert-2.3", "conv", False, "s8"): "U2",
    (OPT, "2.14", "conv", False, "s8"): "U2",
    (OPT, "2.5", "conv", False, "s8"): "D1",
    (OPT, "2.3", "conv", False, "s8"): "D2",
    (REF, "litert-2.3", "conv", True, "s8"): "D2",
    (OPT, "litert-2.3", "conv", True, "s8"): "U2 + D2",
    (OPT, "2.14", "conv", True, "s8"): "D2",
    (OPT, "2.5", "conv", True, "s8"): "U2 + D2",
    (OPT, "2.3", "conv", True, "s8"): "U2 + D2",
    (REF, "litert-2.3", "conv", False, "u8"): "F2",
    (OPT, "litert-2.3", "conv", False, "u8"): "FU2",
    (OPT, "2.14", "conv", False, "u8"): "F2",
    (OPT, "2.5", "conv", False, "u8"): "F2",
    (OPT, "2.3", "conv", False, "u8"): "F2",
    (REF, "litert-2.3", "conv", True, "u8"): "F2",
    (OPT, "litert-2.3", "conv", True, "u8"): "F2",
    (OPT, "2.14", "conv", True, "u8"): "F2",
    (OPT, "2.5", "conv", True, "u8"): "F2",
    (OPT, "2.3", "conv", True, "u8"): "F2",
    (REF, "litert-2.3", "inner_product", False, "s8"): "exact away",
    (REF, "litert-2.3", "inner_product", False, "u8"): "exact away",
    (OPT, "litert-2.3", "inner_product", False, "u8"): "FU2",
    (REF, "litert-2.3", "deconv", False, "s8"): "D2",
    (OPT, "litert-2.3", "deconv", False, "s8"): "U2 + D2",
    (REF, "litert-2.3", "deconv", False, "u8"): "F2",
    (OPT, "litert-2.3", "deconv", False, "u8"): "FU2",
}
ALWAYS_F32 = ("xnnpack", "onnxruntime", "fbgemm", "snps_onnx")


def aliases(dialect: str, tail: str | None) -> str:
    names = [DIALECTS[name].alias for name in (dialect, tail) if name is not None]
    return " + ".join(names)


@pytest.mark.parametrize(("cell", "alias"), DOCUMENTED.items())
def test_the_documented_table(cell: tuple[str, bool, bool], alias: str) -> None:
    granularity, depthwise, pointwise = cell
    found = which_method(
        "snps_tflite", "conv", granularity=granularity, depthwise=depthwise, pointwise=pointwise
    )
    assert aliases(found.dialect, found.tail) == alias
    assert not found.measured


@pytest.mark.parametrize("granularity", ["per_tensor", "per_channel"])
@pytest.mark.parametrize(("cell", "alias"), MEASURED.items())
def test_the_measured_table(
    cell: tuple[str, str, str, bool, str], alias: str, granularity: str
) -> None:
    framework, version, op, depthwise, dtype = cell
    found = which_method(framework, op, dtype, granularity, depthwise=depthwise, version=version)
    assert aliases(found.dialect, found.tail) == alias
    assert found.measured


@pytest.mark.parametrize(("granularity", "alias"), [("per_tensor", "FU2"), ("per_channel", "U2")])
def test_optimised_inner_products_differ_by_granularity(granularity: str, alias: str) -> None:
    found = which_method(OPT, "inner_product", "s8", granularity)
    assert aliases(found.dialect, found.tail) == alias


def test_xnnpack_leaves_depthwise_u8_to_the_interpreter() -> None:
    assert which_method("xnnpack", "conv", "u8", depthwise=True).dialect == "tflite_2step_single"
    assert which_method("xnnpack", "conv", "s8", depthwise=True).dialect == "onnxruntime"


@pytest.mark.parametrize("op", ["conv", "deconv", "inner_product"])
@pytest.mark.parametrize("framework", ALWAYS_F32)
def test_float32_runtimes(framework: str, op: str) -> None:
    if framework == "snps_onnx" and op != "conv":
        return
    assert which_method(framework, op).dialect == "onnxruntime"


@pytest.mark.parametrize(
    ("framework", "op", "name"),
    [
        ("snps_caffe2", "conv", "caffe2"),
        ("snps_caffe2", "deconv", "caffe2_deconv"),
        ("snps_tflite", "inner_product", "snps_inner_product"),
        ("snps_onnx", "inner_product", "snps_inner_product_onnx"),
        ("caffe2", "conv", "caffe2"),
        ("onednn", "inner_product", "onednn"),
        ("tpu_mlir_bm168x", "conv", "tpu_mlir"),
        ("tpu_mlir_cv18xx", "conv", "tpu_mlir_qdm"),
    ],
)
def test_other_operators(framework: str, op: str, name: str) -> None:
    assert which_method(framework, op).dialect == name


def test_the_default_version_is_the_one_that_installs() -> None:
    for framework in (REF, OPT):
        assert which_method(framework, "conv") == which_method(
            framework, "conv", version="litert-2.3"
        )


def test_what_was_not_measured_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^op: got deconv of s8 with tflite_optimised 2\.14"):
        which_method(OPT, "deconv", version="2.14")
    with pytest.raises(ArgumentError, match=r"^op: got deconv with snps_tflite"):
        which_method("snps_tflite", "deconv")
    with pytest.raises(ArgumentError, match=r"^version: got '9'; wanted one of 2\.3"):
        which_method(REF, "conv", version="9")
    with pytest.raises(ArgumentError, match=r"^framework: got 'tvm'"):
        which_method("tvm", "conv")


def test_every_answer_is_a_dialect() -> None:
    for framework in FRAMEWORKS:
        for version in VERSIONS:
            for op in ("conv", "deconv", "inner_product"):
                try:
                    found = which_method(framework, op, version=version)
                except ArgumentError:
                    continue
                assert {found.dialect, found.tail} - {None} <= set(DIALECTS)


def test_qnnpack_in_torch_multiplies_by_a_reciprocal() -> None:
    assert which_method("torch_qnnpack", "inner_product").dialect == "torch_qnnpack"
