"""Models of branches that the values of a call choose."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from support.peers.small_models import floats, make, model

# Their pass that moves quantizers ends the process where an If reads what was dequantized.
WITHOUT = ["QDQPropagationTransformer"]
INT64 = 7


def branch(nodes: list[Any], output: str, **constants: Any) -> Any:
    held = [numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()]
    end = helper.make_empty_tensor_value_info(output)
    return helper.make_graph(nodes, "branch", [], [end], held)


def squeezed(name: str, result: str) -> list[Any]:
    """Return what exporters write for squeeze(0): an If on the length, which hands a tensor on."""
    same = branch([make("Identity", [name], ["as_it_is"])], "as_it_is")
    less = branch([make("Squeeze", [name, "first"], ["less"])], "less")
    return [
        make("Shape", [name], ["dims"]),
        make("Gather", ["dims", "nought"], ["length"]),
        make("Equal", ["length", "one"], ["is_one"]),
        make("If", ["is_one"], [result], then_branch=less, else_branch=same),
    ]


def chosen(dims: list[Any]) -> ModelProto:
    """Return a model of two rates, whose layers have the same names in both branches."""
    wei = {"k": floats(4, 3, 3)}
    fast = [
        make("Conv", ["h", "k"], ["c"], "conv", pads=[1, 1]),
        make("Relu", ["c"], ["r"]),
        *squeezed("r", "s"),
        make("Conv", ["r", "k2"], ["d"], "conv2", pads=[1, 1]),
        make("Add", ["d", "s"], ["e"]),
    ]
    slow = [make("Conv", ["h", "k"], ["c"], "conv", pads=[1, 1])]
    parts = {"first": np.array([0]), "nought": np.int64(0), "one": np.int64(1)}
    nodes = [
        make("Equal", ["rate", "wanted"], ["is_fast"]),
        make("Conv", ["x", "k0"], ["h0"], "conv0", pads=[1, 1]),
        make("Relu", ["h0"], ["h"]),
        make(
            "If",
            ["is_fast"],
            ["g"],
            then_branch=branch(fast, "e", **wei, k2=floats(4, 4, 3), **parts),
            else_branch=branch(slow, "c", k=floats(4, 3, 3)),
        ),
        make("Conv", ["g", "k3"], ["y"], "conv3"),
    ]
    constants = {"wanted": np.int64(16000), "k0": floats(3, 2, 3), "k3": floats(2, 4, 1)}
    return model(nodes, {"x": dims, "rate": []}, constants, types={"rate": INT64})


def inputs(rate: int, batch: int = 1) -> dict[str, Any]:
    return {"x": floats(batch, 2, 12), "rate": np.asarray(rate)}
