"""One operation of networks, alone in a network and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyonednn_q.network import Network, Node
from pyonednn_q.primitive import TensorSpec

Array = np.ndarray[Any, Any]


def one_operation(operation: Any, *arrays: Array) -> Array:
    """Return its result on arrays; no function of Python runs between."""
    names = [f"x{at}" for at in range(len(arrays))]
    network = Network(names, [Node("y", operation, tuple(names))], ["y"])
    specs = {name: TensorSpec.of(each) for name, each in zip(names, arrays, strict=True)}
    compiled = network.compile(specs)
    assert "a function of Python" not in compiled.describe()
    return compiled(*arrays)["y"]
