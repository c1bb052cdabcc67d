"""ONNX Runtime's quantized convolutions and inner products round as `onnxruntime` says."""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q.requantize.method import which_method
from support.oracles import onnx_layers
from support.oracles.judgement import Judgement
from support.oracles.layers import KINDS, drawn

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install .[oracles]")
pytest.importorskip("onnx", reason="onnx is not installed: pip install .[oracles]")


@pytest.mark.parametrize("op", ["conv", "pointwise", "depthwise", "inner_product"])
@pytest.mark.parametrize(
    ("dtype", "granularity"), [("s8", "per_tensor"), ("s8", "per_channel"), ("u8", "per_tensor")]
)
def test_every_operator_rounds_as_its_rule_says(op: str, dtype: str, granularity: str) -> None:
    rule = which_method("onnxruntime", "conv", dtype, granularity).dialect
    judgement = Judgement()
    for kind in KINDS:
        for seed in range(10 if op == "inner_product" else 4):
            rng = np.random.default_rng([seed, len(op), len(granularity), *kind.encode()])
            layer = drawn(rng, op, dtype, granularity, rule, kind)
            judgement.add(layer, onnx_layers.run(layer), layer.expected(rule))
    assert judgement.wrong == 0, f"{judgement}"
    assert judgement.not_told_apart((rule,)) == []
