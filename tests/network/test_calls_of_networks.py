"""A network is called as operators and models are: on arrays or tensors, in order or by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError
from pyonednn_q.network import Network, Node
from support.foreign import Producer

Q, ONE = pq.QParams(0.5, 0, "u8"), pq.QParams(1.0, 0, "s8")
X, Y = (np.arange(each, each + 8, dtype=np.uint8).reshape(1, 2, 2, 2) for each in (3, 9))


@pytest.fixture(scope="module")
def network() -> Network:
    """Two sources of one layer that adds up channels and adds the second source."""
    wei = np.ones((2, 2, 1, 1), np.int8)
    layer = pq.Conv(wei, src_q=Q, wei_q=ONE, dst_q=Q, post=pq.Chain(pq.Sum(0.5)))
    return Network(["x", "y"], [Node("z", layer, "x", residual="y")], ["z"])


def test_in_order_and_by_name(network: Network) -> None:
    want = X.sum(axis=1, keepdims=True, dtype=np.uint8) + Y
    for arrays in (
        (X, Y),
        (Producer(X), Y),
        ({"y": Y, "x": X},),
        ({"y": Producer(Y), "x": Producer(X)},),
    ):
        np.testing.assert_array_equal(network(*arrays)["z"], want, strict=True)


def test_what_does_not_fit_is_refused_by_the_inputs_name(network: Network) -> None:
    with pytest.raises(ArgumentError, match=r"^arrays: got 1; wanted 2: \('x', 'y'\)"):
        network(X)
    with pytest.raises(ArgumentError, match=r"^arrays: got \['x'\]; wanted \['x', 'y'\]"):
        network({"x": X})
    wrongs: list[Any] = [[1.0], None, {}, "x"]
    for wrong in wrongs:
        with pytest.raises(ArgumentError, match=r"^y: got .*; wanted a NumPy array"):
            network(X, wrong)
