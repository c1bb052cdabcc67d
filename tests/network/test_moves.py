"""What networks do to codes without computing, beside NumPy's indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.network import (
    Concat,
    Dequantize,
    Lookup,
    Network,
    Node,
    Quantize,
    Repeat,
    Slice,
    Transpose,
)
from pyonednn_q.primitive import TensorSpec
from support.one_operation import one_operation

Array = np.ndarray[Any, Any]


def codes(rng: np.random.Generator, dims: tuple[int, ...], dtype: type = np.uint8) -> Array:
    return rng.integers(0, 256, dims).astype(np.uint8).view(dtype)


def laid_out(array: Array, seed: int) -> Array:
    """Return it row-major, channels last, or with gaps."""
    if seed % 3 == 0:
        return array
    if seed % 3 == 1:
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)
    wide = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
    wide[..., : array.shape[-1]] = array
    return wide[..., : array.shape[-1]]


@pytest.mark.parametrize("seed", range(30))
def test_one_code_is_looked_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = tuple(int(each) for each in rng.integers(1, 9, 4)) if seed % 4 else (1, 129, 40, 23)
    src = laid_out(codes(rng, dims, np.int8 if seed % 2 else np.uint8), seed)
    table = codes(rng, (256,), np.uint8 if seed % 5 else np.int8)
    got = one_operation(Lookup(table), src)
    np.testing.assert_array_equal(got, table[src.view(np.uint8)], strict=True)


@pytest.mark.parametrize("seed", range(60))
def test_two_codes_are_looked_up_and_broadcast(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = tuple(int(each) for each in rng.integers(1, 9, 4)) if seed % 4 else (2, 67, 30, 21)
    thin = tuple(1 if rng.integers(2) else dim for dim in dims)
    first = laid_out(codes(rng, dims), seed)
    second = laid_out(
        codes(rng, thin[seed % 2 * 2 :] if seed % 6 == 1 else thin, np.int8), seed // 3
    )
    pair = (first, second) if seed % 2 else (second, first)
    table = codes(rng, (256, 256))
    want = table[pair[0].view(np.uint8), pair[1].view(np.uint8)]
    np.testing.assert_array_equal(one_operation(Lookup(table), *pair), want, strict=True)


@pytest.mark.parametrize("seed", range(20))
def test_views_and_repeated_codes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = tuple(int(each) for each in rng.integers(3, 9, 4))
    src = laid_out(codes(rng, dims), seed)
    perm = tuple(int(axis) for axis in rng.permutation(4))
    np.testing.assert_array_equal(one_operation(Transpose(perm), src), src.transpose(perm))
    times = tuple(int(each) for each in rng.integers(1, 4, 4))
    want = src
    for axis, count in enumerate(times):
        want = want.repeat(count, axis)
    np.testing.assert_array_equal(one_operation(Repeat(times), src), want)
    axis, start = int(rng.integers(-4, 4)), int(rng.integers(3))
    step = 1 + seed % 2
    length = (dims[axis] - start + step - 1) // step
    want = np.moveaxis(np.moveaxis(src, axis, 0)[start::step], 0, axis)
    np.testing.assert_array_equal(one_operation(Slice(axis, start, length, step), src), want)


@pytest.mark.parametrize("seed", range(20))
def test_codes_of_several_scales_side_by_side(seed: int) -> None:
    rng = np.random.default_rng(seed)
    axis = int(rng.integers(4))
    dims = [4, 6, 5, 3]
    arrays, tables = [], []
    for at in range(3):
        dims[axis] = int(rng.integers(1, 5))
        arrays.append(laid_out(codes(rng, tuple(dims)), seed + at))
        tables.append(Lookup(codes(rng, (256,))) if at != 1 else None)
    pairs = zip(arrays, tables, strict=True)
    want = np.concatenate([x if t is None else t.table[x] for x, t in pairs], axis)
    np.testing.assert_array_equal(one_operation(Concat(axis, tuple(tables)), *arrays), want)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_what_has_gaps_is_copied_whole(dtype: type) -> None:
    """Parts of channels and turned rows, returned, joined and made real."""
    rng = np.random.default_rng(2)
    x: Array = codes(rng, (2, 8, 5, 4)).astype(dtype)
    q = pq.QParams(0.5, 7, "u8")
    nodes = [
        Node("first", Slice(1, 0, 3), "x"),
        Node("last", Slice(1, 3, 5), "x"),
        Node("again", Concat(1), ("first", "last")),
        Node("turned", Transpose((1, 0, 3, 2)), "last"),
        Node("back", Concat(-1), ("first", "first")),
    ]
    outputs = ["first", "last", "again", "turned", "back"]
    if dtype is np.uint8:
        nodes += [Node("real", Dequantize(q), "last")]
        outputs += ["real"]
    for src in (laid_out(x, 0), laid_out(x, 1), laid_out(x, 2)):
        found = Network(["x"], nodes, outputs)(src)
        np.testing.assert_array_equal(found["first"], x[:, :3])
        np.testing.assert_array_equal(found["last"], x[:, 3:])
        np.testing.assert_array_equal(found["again"], x)
        np.testing.assert_array_equal(found["turned"], x[:, 3:].transpose(1, 0, 3, 2))
        np.testing.assert_array_equal(found["back"], np.concatenate([x[:, :3]] * 2, -1))
        if dtype is np.uint8:
            real = (x[:, 3:].astype(np.float32) - np.float32(7)) * np.float32(0.5)
            np.testing.assert_array_equal(found["real"], real)


def test_a_view_of_a_view_feeds_a_layer() -> None:
    """Parts of channels, turned, looked up and convolved: as NumPy's views are."""
    rng = np.random.default_rng(1)
    x = codes(rng, (2, 8, 6, 6))
    q = pq.QParams(0.05, 3, "u8")
    wei = rng.integers(-32, 33, (4, 4, 3, 3)).astype(np.int8)
    conv = pq.Conv(wei, src_q=q, wei_q=pq.QParams(0.02, 0, "s8"), dst_q=q, padding=1)
    table = Lookup(codes(rng, (256,)))
    nodes = [
        Node("part", Slice(1, 4, 4), "x"),
        Node("turned", Transpose((0, 1, 3, 2)), "part"),
        Node("looked", table, "turned"),
        Node("y", conv, "looked"),
        Node("z", conv, "turned"),
    ]
    found = Network(["x"], nodes, ["y", "z", "part"])(x)
    turned = np.ascontiguousarray(x[:, 4:].swapaxes(2, 3))
    np.testing.assert_array_equal(found["z"], conv(turned))
    np.testing.assert_array_equal(found["y"], conv(table.table[turned]))
    np.testing.assert_array_equal(found["part"], x[:, 4:])


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("seed", range(6))
def test_quantize_is_onnx_s(seed: int, dtype: str) -> None:
    """Ties to even, infinities saturate, NaN is refused: in every layout, and with gaps."""
    onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed")
    from onnx import reference

    rng = np.random.default_rng(seed)
    stored = np.uint8 if dtype == "u8" else np.int8
    q = pq.QParams(0.25, 3, dtype)
    x = (rng.integers(-300, 300, (2, 5, 7, 9)) * 0.125).astype(np.float32)
    node = onnx.helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
    given = {"x": x, "s": np.float32(0.25), "z": stored(3)}
    (want,) = reference.ReferenceEvaluator(node).run(None, given)
    np.testing.assert_array_equal(one_operation(Quantize(q), laid_out(x, seed)), want, strict=True)
    x[0, 0, 0, :2] = np.inf, -np.inf
    limits = np.iinfo(stored)
    assert one_operation(Quantize(q), laid_out(x, seed))[0, 0, 0, :2].tolist() == [
        limits.max,
        limits.min,
    ]
    x[1, 2, 3, 4] = np.nan
    with pytest.raises(ArgumentError, match="NaN"):
        one_operation(Quantize(q), laid_out(x, seed))


@pytest.mark.parametrize("dims", [(3, 1, 1), (2, 511), (2, 513), (1, 97, 91), (5, 3, 61, 103)])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
def test_quantized_images_lie_channels_last(channels: int, dims: tuple[int, ...]) -> None:
    """For convolutions; in pieces of several threads, each to its last byte."""
    rng = np.random.default_rng(channels)
    images, *lengths = dims
    shape = (images, channels, *lengths) if len(lengths) > 1 else (images, channels, *lengths, 1)
    x = (rng.integers(-700, 700, shape) * 0.125).astype(np.float32)
    want = np.clip(np.rint(x / np.float32(0.25)) + 3, -128, 127).astype(np.int8)
    network = Network(["x"], [Node("y", Quantize(pq.QParams(0.25, 3, "s8")), "x")], ["y"])
    compiled = network.compile({"x": TensorSpec.dense(shape, "f32")})
    np.testing.assert_array_equal(compiled(x)["y"], want, strict=True)
    make = TensorSpec.channels_last if channels < 5 else TensorSpec.dense
    assert compiled.outputs["y"].lies_as(make(shape, "s8"))
    x[-1, -1, ..., -1] = np.nan
    with pytest.raises(ArgumentError, match="NaN"):
        compiled(x)


def test_nodes_that_nobody_reads_do_not_run() -> None:
    table = Lookup(np.arange(256).astype(np.uint8))
    nodes = [Node("a", table, "x"), Node("b", table, "x"), Node("c", table, "b")]
    network = Network(["x"], nodes, ["a"])
    assert len(network.compile({"x": TensorSpec.dense((1, 4), "u8")}).steps) == 1


def test_what_does_not_fit_is_refused_by_name() -> None:
    x = np.zeros((2, 3, 4, 4), np.uint8)
    table = Lookup(np.zeros(256, np.uint8))
    with pytest.raises(ShapeError, match="table"):
        Lookup(np.zeros(255, np.uint8))
    with pytest.raises(DTypeError, match="table"):
        Lookup(np.zeros(256, np.int32))
    with pytest.raises(ArgumentError, match="src"):
        one_operation(table, x, x)
    with pytest.raises(DTypeError, match="src"):
        one_operation(table, x.astype(np.float32))
    with pytest.raises(ShapeError, match="src"):
        one_operation(Lookup(np.zeros((256, 256), np.uint8)), x, x[:, :2])
    with pytest.raises(ArgumentError, match="perm"):
        Transpose((0, 0))
    with pytest.raises(ShapeError, match="perm"):
        one_operation(Transpose((1, 0)), x)
    with pytest.raises(ShapeError, match="start"):
        one_operation(Slice(1, 2, 2), x)
    with pytest.raises(ArgumentError, match="times"):
        Repeat((0, 1))
    with pytest.raises(ArgumentError, match="tables"):
        one_operation(Concat(1, (table,)), x, x)
