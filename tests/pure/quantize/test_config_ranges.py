"""From configurations to ranges: what the training tool exports, end to end.

The file is written by `tools/vectors/training_tool_vectors.py`, with NNCF 2.18 itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize import TensorSettings, read_config, weight_codes
from support.training_tool import assert_exported, drawn, settings_of

FILE = Path(__file__).parents[2] / "data" / "training_tool.json"
CASES: list[dict[str, Any]] = json.loads(FILE.read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: json.dumps(case["section"])[:90])
def test_ranges_are_those_that_the_tool_exports(case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises(ArgumentError, match=r"^config\.compression\."):
            settings_of(case)
        return
    assert_exported(case, case["exported"])


def test_there_are_configurations_of_every_kind() -> None:
    assert len(CASES) > 180
    assert sum("error" in case for case in CASES) > 20
    kinds = {case["section"]["initializer"]["range"].get("type") for case in CASES}
    assert len(kinds) == 7  # six, and none


def test_default_weights_have_zero_on_a_level_and_half_of_the_codes() -> None:
    """For the largest magnitude 1, 2.18 exports this: tools/vectors/training_tool_vectors.py."""
    (layer,) = read_config({"algorithm": "quantization"}).layers(["conv"]).values()
    assert layer.weights is not None
    wei = np.random.default_rng(0).uniform(-1, 1, (4, 90))
    wei[:, 0] = 1.0
    values, fq = layer.weights.quantized(wei, axis=0)
    low, high = (end.spread(4).astype(np.float32) for end in (fq.input_low, fq.input_high))
    np.testing.assert_array_equal(low, np.float32(-2.0317459106445312))
    np.testing.assert_array_equal(high, np.float32(2.0158729553222656))
    found = weight_codes(values, fq)
    assert found.zero_point.rint().is_all(0.0)
    assert (found.codes.min(), found.codes.max()) == (-63, 63)
    np.testing.assert_array_equal(found.codes, np.rint(wei * 63))


def test_weights_are_cut_before_they_are_stretched() -> None:
    """A percentile leaves weights outside; half range then has room for them that is not theirs."""
    settings = TensorSettings(
        range_kind="percentile", percent=(10.0, 90.0), half_range=True, role="weights"
    )
    wei = drawn("signed")[0].reshape(4, -1)
    values, fq = settings.quantized(wei, axis=0)
    end = np.abs(np.percentile(wei, (10.0, 90.0))).max()
    assert np.abs(values).max() <= end * (64 / 63 + 1e-6) < np.abs(wei).max()
    codes = weight_codes(values, fq).codes
    assert (codes.min(), codes.max()) == (-64, 63)
