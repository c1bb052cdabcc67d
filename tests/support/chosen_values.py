"""Selections of networks beside NumPy's, in every layout: work for a child of any level, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyonednn_q.graph.graph import Value
from pyonednn_q.network import IsNaN, Network, Node, Where
from pyonednn_q.network.carrier import spec_of_array

F = np.float32
SHAPES = ((7,), (3, 65), (2, 33, 31), (1, 12, 17, 19), (2, 5, 64, 64))


def values(rng: np.random.Generator, dims: tuple[int, ...]) -> Any:
    """Return floats with NaN and infinities among them; half of the images channels last."""
    array = rng.choice(np.array([-1.5, 0, -0.0, 2, np.nan, np.inf, -np.inf], F), dims)
    if len(dims) > 3 and rng.random() < 0.5:
        array = np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)
    return array


def selections_differ() -> list[str]:
    """Return the cases whose bits are not NumPy's: none."""
    rng = np.random.default_rng(5)
    differ = []
    for dims in SHAPES:
        x, z = values(rng, dims), values(rng, dims)
        narrow = (1,) * (len(dims) - 1) + dims[-1:]
        for m_dims in (dims, narrow):
            mask = rng.random(m_dims) < 0.5
            for first, second in ((x, z), (F(3), x), (x, F(np.nan)), (F(1), F(-2))):
                given = [each for each in (first, second) if isinstance(each, np.ndarray)]
                held = [None if isinstance(each, np.ndarray) else each for each in (first, second)]
                names = ["m", *(f"x{at}" for at in range(len(given)))]
                node = Node("y", Where(*held), tuple(names))
                got = _run(names, [node], [mask, *given], {"m": Value("bool", m_dims)})
                want = np.where(mask, first, second).astype(F)
                if got.tobytes() != np.ascontiguousarray(want).tobytes():
                    differ.append(f"{dims} by {m_dims}")
        got = _run(["x"], [Node("y", IsNaN(), "x")], [x], {"y": Value("bool", dims)})
        if not np.array_equal(got, np.isnan(x)):
            differ.append(f"which of {dims}")
    return differ


def _run(names: list[str], nodes: list[Node], arrays: list[Any], carried: dict[str, Value]) -> Any:
    network = Network(names, nodes, ["y"], carried)
    specs = {name: spec_of_array(each, name) for name, each in zip(names, arrays, strict=True)}
    compiled = network.compile(specs)
    assert "a function of Python" not in compiled.describe()
    return np.ascontiguousarray(compiled(*arrays)["y"])
