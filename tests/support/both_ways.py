"""Every model that a test runs, run node by node, too: the same bits as of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from pyonednn_q.onnx.model import Model

RAN = {"compared": 0, "refused": 0}


@pytest.fixture(autouse=True)
def both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare what `Model.run` returns, compiled, with what its nodes return one by one."""
    run = Model.run

    def both(model: Model, inputs: Mapping[str, Any]) -> dict[str, Any]:
        outputs = run(model, inputs)
        if model._is_refused:  # dims or types that oneDNN has not
            RAN["refused"] += 1
            return outputs
        one_by_one = object.__new__(Model)
        one_by_one.__dict__.update(model.__dict__, _compiled=None, _is_refused=True)
        others = run(one_by_one, inputs)
        for name, array in others.items():
            assert array.dtype == outputs[name].dtype
            # Of bf16 and less NumPy knows no NaN.
            if array.tobytes() != np.asarray(outputs[name]).tobytes():
                np.testing.assert_array_equal(array, outputs[name], err_msg=name)
        RAN["compared"] += 1
        return outputs

    monkeypatch.setattr(Model, "run", both)
