"""Networks trained on real data, calibrated to INT8: accuracy on images that were held out.

The networks are those of `benchmarks/trained_network.py`; the benchmark `calibrated_accuracy.py`
prints the same figures. Data sets whose package is not installed are skipped by name.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
PACKAGES = {"digits": "sklearn", "vowels": "aeon", "textures": "skimage"}
LEAST = 0.5  # points below FP32


def benchmark(name: str) -> Any:
    with patch.object(sys, "path", [str(BENCHMARKS), *sys.path]):
        return importlib.import_module(name)


class Case(NamedTuple):
    """A data set, a network trained on it, and what it gets right in FP32."""

    by_layers: Any
    by_model: Any
    data: Any
    parameters: Any
    right: float


@pytest.fixture(scope="module", params=list(PACKAGES))
def case(request: pytest.FixtureRequest) -> Case:
    package = PACKAGES[request.param]
    if importlib.util.find_spec(package) is None:
        pytest.skip(
            f"{package} is not installed: pip install scikit-learn scikit-image aeon pillow"
        )
    networks, by_layers = benchmark("trained_network"), benchmark("quantize_accuracy")
    data = networks.DATA_SETS[request.param]()
    p = networks.trained(data, epochs=12)
    wide = by_layers.layers_of(p, {}, dict.fromkeys(by_layers.NAMES, 32))
    right = by_layers.share_right(wide, data)
    return Case(by_layers, benchmark("calibrated_accuracy"), data, p, right)


def test_int8_by_defaults_is_within_half_a_point(case: Case) -> None:
    found = case.by_model.calibrated(case.parameters, case.data)
    how = {name: each.how for each in found.model().nodes for name in each.originals}
    assert {how[name].split()[0] for name in case.by_layers.NAMES} == {"INT8"}
    assert case.by_model.right_by(found.model(), case.data) >= case.right - LEAST


def test_loop_reaches_what_plain_int8_misses(case: Case) -> None:
    """Channels of one tensor from 2^-6 to 2^6 have one scale: FP32 is as good as ever."""
    module, data = case.by_model, case.data
    found = module.calibrated(module.spread(case.parameters), data)
    wide = found.with_floats(found.layers).model()
    first = data.test[: module.GROUP]
    layers = case.by_layers.layers_of(case.parameters, {}, dict.fromkeys(found.layers, 32))
    logits = case.by_layers.run(layers, first)["logits"]
    assert np.array_equal(wide.run({"x": first})["logits"], logits)
    bound = case.right - LEAST
    assert module.right_by(found.model(), data) < bound
    for dtype in ("f32", "bf16"):
        tuned = found.within(lambda model: module.right_by(model, data), bound, dtype=dtype)
        assert module.right_by(tuned.model(), data) >= bound
        assert tuned.floats == {"conv2": dtype}  # which reads that tensor
