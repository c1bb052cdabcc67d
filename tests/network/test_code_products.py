"""Tables of products run as arithmetic: for every pair of codes, in every layout, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.network import Lookup, Network, Node
from pyonednn_q.network.code_products import product_of, sum_of

Array = np.ndarray[Any, Any]
KINDS = [(a, b, c) for a in ("uint8", "int8") for b in ("uint8", "int8") for c in ("uint8", "int8")]


def short(dtype: str) -> str:
    return "u8" if dtype == "uint8" else "s8"


def codes(dtype: str) -> Array:
    """Return the code of every byte."""
    return np.arange(256).astype(np.uint8).view(dtype)


def multiplied(kinds: tuple[str, str, str], seed: int) -> tuple[Array, tuple[int, int, int]]:
    """Return the table of ONNX's DequantizeLinear, Mul and QuantizeLinear, and its zero points."""
    rng = np.random.default_rng(seed)
    limits = [np.iinfo(kind) for kind in kinds]
    points = [int(rng.integers(each.min, each.max + 1)) for each in limits]
    if seed % 3 == 0:  # as of a sigmoid
        points[1] = int(limits[1].min)
    x, g = np.float32(rng.uniform(0.01, 0.1)), np.float32(rng.uniform(0.002, 0.02))
    y = np.float32(x * g * rng.uniform(40, 300))
    reals = [
        (codes(kind).astype(np.float32) - np.float32(point)) * scale
        for kind, point, scale in zip(kinds, points, (x, g), strict=False)
    ]
    levels = np.rint(np.multiply.outer(*reals) / y) + points[2]
    table = np.clip(levels, limits[2].min, limits[2].max).astype(kinds[2])
    return table, (points[0], points[1], points[2])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kinds", KINDS)
def test_products_are_found_and_give_every_entry(kinds: tuple[str, str, str], seed: int) -> None:
    table, points = multiplied(kinds, seed)
    found = product_of(table, short(kinds[0]), short(kinds[1]))
    assert found is not None  # of these seeds; a table may round at a tie as no one scale does
    scale, zero_point, signs = found
    assert signs == tuple(kind == "int8" for kind in kinds)
    x, g = (codes(kinds[at]).astype(np.float32) - np.float32(zero_point[at]) for at in (0, 1))
    values = np.rint(np.multiply.outer(x, g * np.float32(scale))) + zero_point[2]
    ends = np.iinfo(kinds[2])
    np.testing.assert_array_equal(np.clip(values, ends.min, ends.max).astype(kinds[2]), table)
    assert zero_point == points


def test_nearly_all_tables_of_products_are_products() -> None:
    tables = [(multiplied(kinds, seed)[0], kinds) for kinds in KINDS for seed in range(10)]
    found = [product_of(table, short(kinds[0]), short(kinds[1])) for table, kinds in tables]
    assert sum(each is not None for each in found) >= 0.9 * len(found)


def test_other_tables_are_not() -> None:
    table, points = multiplied(("uint8", "uint8", "uint8"), 0)
    assert product_of(table, "u8", "u8")
    for at in ((points[0], points[1]), (200, 7), (3, 255), (255, 255), (0, 0)):
        changed = table.copy()
        changed[at] ^= 1
        assert product_of(changed, "u8", "u8") is None
    assert product_of(table, "s8", "u8") is None
    index = np.arange(256)
    assert product_of((np.add.outer(index, index) // 2).astype(np.uint8), "u8", "u8") is None
    assert product_of(np.maximum.outer(index, index).astype(np.uint8), "u8", "u8") is None
    assert product_of(np.full((256, 256), 9, np.uint8), "u8", "u8") is None
    noise = np.random.default_rng(0).integers(0, 256, (256, 256)).astype(np.uint8)
    assert product_of(noise, "u8", "u8") is None


SHAPES = [
    ((1, 32, 9, 9), (1, 32, 1, 1)),  # gates of channels
    ((3, 7, 5, 6), (3, 7, 1, 1)),
    ((3, 7, 5, 6), (1, 7, 1, 1)),
    ((2, 40, 61, 53), (2, 40, 1, 1)),  # several pieces
    ((1, 2500, 2, 3), (1, 2500, 1, 1)),  # more gates than are made at once
    ((2, 5, 50, 70), (2, 1, 50, 70)),
    ((2, 5, 4, 6), (2, 5, 4, 6)),
    ((2, 1, 4, 6), (2, 5, 1, 6)),
    ((4, 300), (300,)),
    ((4, 300), (4, 1)),
    ((7,), (7,)),
]


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("kinds", [KINDS[0], KINDS[5], KINDS[7]])
@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_results_are_those_of_the_table(
    first: tuple[int, ...], second: tuple[int, ...], kinds: tuple[str, str, str], *, last: bool
) -> None:
    table, _ = multiplied(kinds, 1)
    assert product_of(table, short(kinds[0]), short(kinds[1]))
    rng = np.random.default_rng(2)
    x, g = (
        rng.integers(0, 256, dims).astype(np.uint8).view(kind)
        for dims, kind in zip((first, second), kinds, strict=False)
    )
    if last:
        x, g = (
            np.moveaxis(np.ascontiguousarray(np.moveaxis(each, 1, -1)), -1, 1)
            if each.ndim > 2
            else each
            for each in (x, g)
        )
    net = Network(["x", "g"], [Node("y", Lookup(table), ("x", "g"))], ["y"])
    both = np.broadcast_arrays(x.view(np.uint8), g.view(np.uint8))
    np.testing.assert_array_equal(net(x, g)["y"], table[both[0], both[1]])
    swapped = Network(["x", "g"], [Node("y", Lookup(table.T.copy()), ("g", "x"))], ["y"])
    np.testing.assert_array_equal(swapped(x, g)["y"], table[both[0], both[1]])


@pytest.mark.parametrize("kinds", KINDS)
def test_sums_give_every_entry_in_every_layout(kinds: tuple[str, str, str]) -> None:
    """As arithmetic where rows lie side by side, else as the table: the same, for all pairs."""
    rng = np.random.default_rng(KINDS.index(kinds))
    params = [
        pq.QParams(float(np.float32(rng.uniform(0.01, 0.1))), int(point), short(kind))
        for kind, point in zip(
            kinds, (rng.integers(np.iinfo(k).min, np.iinfo(k).max + 1) for k in kinds), strict=True
        )
    ]
    reals = [
        (codes(kind).astype(np.float32) - np.float32(q.zero_point)) * np.float32(q.scale)
        for kind, q in zip(kinds[:2], params[:2], strict=True)
    ]
    levels = np.rint(np.add.outer(*reals) / np.float32(params[2].scale)) + params[2].zero_point
    ends = np.iinfo(kinds[2])
    table = np.clip(levels, ends.min, ends.max).astype(kinds[2])
    assert sum_of(table, params[0], params[1], params[2]) is not None
    adds = (params[0], params[1], params[2])
    both = np.meshgrid(codes(kinds[0]), codes(kinds[1]), indexing="ij")
    x, g = (np.ascontiguousarray(each).reshape(1, 4, 64, 256) for each in both)
    network = Network(["x", "g"], [Node("y", Lookup(table, adds), ("x", "g"))], ["y"])
    np.testing.assert_array_equal(network(x, g)["y"].reshape(256, 256), table, strict=True)
    last = np.ascontiguousarray(g.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(network(x, last)["y"].reshape(256, 256), table)
    one = network(x, g[:, :, :, :1])["y"]
    np.testing.assert_array_equal(one, table[x.view("u1"), g[:, :, :, :1].view("u1")])


def test_other_tables_are_no_sums() -> None:
    """One entry is another, or the scales are: the table counts."""
    q = pq.QParams(0.5, 3, "u8")
    places = np.arange(256).astype(np.float32)
    sums = np.clip(np.add.outer(places - 3, places - 3) + 3, 0, 255).astype(np.uint8)
    assert sum_of(sums, q, q, q) is not None
    assert sum_of(sums, q, q, pq.QParams(0.5, 4, "u8")) is None
    sums[7, 9] += 1
    assert sum_of(sums, q, q, q) is None
    x, g = (np.full((1, 64), each, np.uint8) for each in (7, 9))
    network = Network(["x", "g"], [Node("y", Lookup(sums, (q, q, q)), ("x", "g"))], ["y"])
    assert (network(x, g)["y"] == sums[7, 9]).all()
