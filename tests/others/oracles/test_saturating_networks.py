"""Networks of 8-bit weights on processors without VNNI: layers in float32, or as asked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from pyonednn_q.errors import SaturationError  # noqa: E402
from pyonednn_q.native import runtime  # noqa: E402
from support.children import child  # noqa: E402
from support.isa import LIMIT_VARIABLE, reason_row_is_unavailable  # noqa: E402
from support.oracles.networks import NETWORKS, SOURCE, dynamic, quantized  # noqa: E402
from support.oracles.saturating import ran  # noqa: E402


@pytest.fixture(scope="module", params=["AVX2", "AVX512_CORE"])
def ask(request: pytest.FixtureRequest) -> Iterator[Any]:
    with child({LIMIT_VARIABLE: request.param}) as asked:
        reason = reason_row_is_unavailable(asked(runtime.isa), request.param)
        if reason is not None:
            pytest.skip(reason)
        yield asked


def given(seed: int = 7) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(0, 1, SOURCE).astype(np.float32)


def theirs(path: Path, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    result: np.ndarray[Any, Any] = session.run(None, {"x": x})[0]
    return result


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("network", NETWORKS)
def test_layers_that_may_saturate_run_in_float32(
    ask: Any, network: str, form: str, tmp_path: Path
) -> None:
    path, x = quantized(network, tmp_path, form, "u8", per_channel=True, bits=8), given()
    became = ask(ran, path, x)
    assert not became.has_vnni
    np.testing.assert_array_equal(became.nodes, became.network)
    assert not became.python
    in_floats = sum(how.startswith("FP32") for how in became.how.values())
    # onnxruntime's quantizer leaves a transposed convolution in floats.
    in_floats -= (network, form) == ("unet", "QOperator")
    assert in_floats
    line, *more = became.warnings
    assert line.startswith(f"weights of {in_floats} layers may saturate")
    assert "saturation=" in line
    if network == "transformer":
        (products,) = more
        assert products.startswith("2 products of two tensors of codes may saturate")
    else:
        assert not more
    # The same model where sums are exact: only ties of float32 part them.
    exact = ran(path, x)
    if exact.has_vnni:
        assert not exact.warnings
        reach = np.abs(exact.nodes).max()
        assert np.abs(became.nodes - exact.nodes).max() <= 0.15 * reach
        assert np.mean(np.abs(became.nodes - exact.nodes)) <= 0.01 * reach


def test_what_else_may_be_asked_for(ask: Any, tmp_path: Path) -> None:
    path, x = quantized("resnet", tmp_path, "QDQ", "u8", per_channel=True, bits=8), given()
    want = theirs(path, x)
    narrow = ask(partial(ran, saturation="narrow"), path, x)
    assert not narrow.python
    assert not any(how.startswith("FP32") for how in narrow.how.values())
    assert "saturation='narrow'" in narrow.warnings[0]
    assert np.abs(narrow.nodes - want).max() <= 0.2 * np.abs(want).max()
    allowed = ask(partial(ran, saturation="allow"), path, x)
    assert not allowed.python
    assert sum(how.startswith("INT8") for how in allowed.how.values()) == 7
    with pytest.raises(SaturationError):
        ask(partial(ran, saturation="refuse"), path, x)


def test_dynamic_layers_read_the_source_in_floats(ask: Any, tmp_path: Path) -> None:
    path, x = dynamic("resnet", tmp_path, per_channel=True, bits=8), given()
    became = ask(ran, path, x)
    np.testing.assert_array_equal(became.nodes, became.network)
    assert not became.python
    want = theirs(path, x)
    assert np.abs(became.nodes - want).max() <= 0.1 * np.abs(want).max()
