"""A network of one attention on a cache, called token after token."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from pyonednn_q.network import CachedAttention, CacheShape, KeyValueCache, Network, Node
from pyonednn_q.primitive import TensorSpec

Array = np.ndarray[Any, Any]


class Steps:
    """A network of one attention, and the cache that calls of it grow."""

    def __init__(self, what: CachedAttention) -> None:
        self.what, self.cache = what, KeyValueCache(what.cache)
        names = (["x"] if what.is_packed else ["q", "k", "v"]) + ["cache"]
        self.network = Network(names, [Node("y", what, tuple(names))], ["y"])

    def __call__(self, *arrays: Array) -> Array:
        inputs = dict(zip(self.network.inputs, (*arrays, self.cache.memory), strict=True))
        compiled = self.network.compile({n: TensorSpec.of(each) for n, each in inputs.items()})
        assert "a function of Python" not in compiled.describe()
        y = compiled(*inputs.values())["y"]
        self.cache.append(arrays[0].shape[-2])
        return y


def of_a_level() -> str:
    """Return the bits of a step of codes and of floats."""
    rng = np.random.default_rng(5)
    results = b""
    for dtype in ("s8", "f32"):
        cache = CacheShape(1, 1, 2, 40, 72, 100, dtype)
        how: dict[str, Any] = {"window": 40, "softcap": 2.0, "sinks": np.ones(4, np.float32)}
        run = Steps(CachedAttention(cache, 0, 4, is_packed=True, **how))
        for tokens in (67, 1):
            x = rng.standard_normal((1, tokens, 6 * 40 + 2 * 72)).astype(np.float32)
            results += run(x).tobytes()
    return hashlib.sha256(results).hexdigest()
