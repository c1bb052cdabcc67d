"""Every model that a test runs, run as a network, too: the same bits, or refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import Error
from pyonednn_q.onnx.model import Model

RAN = {"compared": 0, "refused": 0}


@pytest.fixture(autouse=True)
def both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare what `Model.run` returns with what the model's network returns."""
    run = Model.run

    def both(model: Model, inputs: Mapping[str, Any]) -> dict[str, Any]:
        outputs = run(model, inputs)
        try:
            network = model.network()
            others = network(*(np.asarray(inputs[name]) for name in network.inputs))
        except Error:  # dims or types that oneDNN has not
            RAN["refused"] += 1
            return outputs
        for name, array in others.items():
            assert array.dtype == outputs[name].dtype
            np.testing.assert_array_equal(array, outputs[name], err_msg=name)
        RAN["compared"] += 1
        return outputs

    monkeypatch.setattr(Model, "run", both)
