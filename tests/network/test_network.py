"""Networks against their operators called one by one, and NumPy for what lies between them."""

from __future__ import annotations

import copy
import gc
import threading
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.network import (
    Concat,
    Dequantize,
    LayerNorm,
    Lookup,
    Network,
    Node,
    Pool,
    PythonCall,
    Quantize,
    Reshape,
    Slice,
    Transpose,
)
from pyonednn_q.primitive import TensorSpec
from support.threads import run_together

Array = np.ndarray[Any, Any]
Q = pq.QParams(0.05, 3, "u8")


def conv(rng: np.random.Generator, ic: int, oc: int, kernel: int = 3, **options: Any) -> pq.Conv:
    # Within ±32: exact without VNNI as well.
    wei = rng.integers(-32, 33, (oc, ic, kernel, kernel)).astype(np.int8)
    bias = rng.normal(0, 1, oc).astype(np.float32)
    return pq.Conv(
        wei, bias, src_q=Q, wei_q=pq.QParams(0.02, 0, "s8"), dst_q=Q, padding=kernel // 2, **options
    )


def codes(rng: np.random.Generator, *dims: int) -> Array:
    return rng.integers(0, 256, dims).astype(np.uint8)


def pooled(x: Array) -> Array:
    n, c, h, w = x.shape
    result: Array = x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))
    return result


def random_network(seed: int) -> tuple[Network, Array, dict[str, Array]]:
    """Return a network of the nodes there are, a source, and every tensor by other means."""
    rng = np.random.default_rng(seed)
    x = codes(rng, int(rng.integers(1, 3)), 4, 8, 8)
    values: dict[str, Array] = {"x": x}
    nodes = []
    for at in range(int(rng.integers(3, 9))):
        name = f"t{at}"
        of = list(values)[int(rng.integers(len(values)))]
        src = values[of]
        alike = [other for other in values if values[other].shape[2:] == src.shape[2:]]
        other = alike[int(rng.integers(len(alike)))]
        kind = int(rng.integers(6))
        if kind == 0 and src.shape[2] > 2:
            nodes.append(Node(name, Pool("max", 2, stride=2), of))
            values[name] = pooled(src)
        elif kind == 1:
            nodes.append(Node(name, Concat(1), (of, other)))
            values[name] = np.concatenate([src, values[other]], 1)
        elif kind == 2:
            op = conv(rng, src.shape[1], values[other].shape[1], post=pq.Chain(pq.Sum(0.05)))
            nodes.append(Node(name, op, of, residual=other))
            values[name] = op(src, residual=values[other])
        elif kind == 3:
            nodes.append(Node(name, PythonCall(lambda a: 255 - a, spec(src)), of))
            values[name] = 255 - src
        elif kind == 4:
            op = conv(
                rng,
                src.shape[1],
                values[other].shape[1],
                post=pq.Chain(pq.Binary("add", pq.Leaf("y", "u8"))),
            )
            nodes.append(Node(name, op, of, operands={"y": other}))
            values[name] = op(src, y=values[other])
        else:
            op = conv(rng, src.shape[1], int(rng.integers(1, 20)), kernel=int(rng.choice([1, 3])))
            nodes.append(Node(name, op, of))
            values[name] = op(src)
    return Network(["x"], nodes, list(values)[1:]), x, values


def spec(array: Array) -> TensorSpec:
    return TensorSpec.channels_last(array.shape, "u8")


@pytest.mark.parametrize("seed", range(40))
def test_a_network_is_its_nodes(seed: int) -> None:
    network, x, values = random_network(seed)
    # All tensors as outputs, and then one alone, so that the others share memory.
    for name, result in network(x).items():
        np.testing.assert_array_equal(result, values[name], err_msg=name)
    for name in network.outputs:
        alone = Network(["x"], network.nodes, [name])
        np.testing.assert_array_equal(alone(x)[name], values[name], err_msg=name)
        np.testing.assert_array_equal(alone(np.ascontiguousarray(x))[name], values[name])


def test_memory_is_shared() -> None:
    rng = np.random.default_rng(1)
    nodes = [Node("t0", conv(rng, 8, 8), "x")]
    nodes += [Node(f"t{at}", conv(rng, 8, 8), f"t{at - 1}") for at in range(1, 10)]
    network = Network(["x"], nodes, ["t9"])
    x = codes(rng, 1, 8, 16, 16)
    network(x)
    compiled = network.compile({"x": spec(x)})
    assert compiled.arena_bytes == 2 * x.size


def test_a_residual_that_is_read_later_stays() -> None:
    rng = np.random.default_rng(2)
    add = conv(rng, 8, 8, post=pq.Chain(pq.Sum(0.05)))
    first, last = conv(rng, 8, 8), conv(rng, 8, 4)
    nodes = [Node("a", first, "x"), Node("b", add, "x", residual="a"), Node("c", last, "a")]
    x = codes(rng, 1, 8, 5, 5)
    results = Network(["x"], nodes, ["b", "c"])(x)
    a = first(x)
    np.testing.assert_array_equal(results["b"], add(x, residual=a))
    np.testing.assert_array_equal(results["c"], last(a))


def test_a_residual_may_be_an_input_and_is_not_written() -> None:
    rng = np.random.default_rng(3)
    add = conv(rng, 8, 8, post=pq.Chain(pq.Sum(0.05)))
    x = np.ascontiguousarray(codes(rng, 1, 5, 5, 8)).transpose(0, 3, 1, 2)
    before = x.copy()
    result = Network(["x"], [Node("y", add, "x", residual="x")], ["y"])(x)["y"]
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(result, add(x, residual=x))


def test_floats_in_and_out() -> None:
    rng = np.random.default_rng(4)
    op = conv(rng, 3, 6)
    head = pq.InnerProduct(
        rng.integers(-32, 33, (5, 6)).astype(np.int8),
        src_q=Q,
        wei_q=pq.QParams(0.02, 0, "s8"),
        dst="f32",
    )
    nodes = [
        Node("codes", Quantize(Q), "x"),
        Node("y", op, "codes"),
        Node("mean", Pool("avg_include_padding"), "y"),
        Node("flat", Reshape((2, -1)), "mean"),
        Node("scores", head, "flat"),
        Node("reals", Dequantize(Q), "y"),
    ]
    x = rng.normal(3, 3, (2, 3, 8, 8)).astype(np.float32)
    results = Network(["x"], nodes, ["scores", "reals", "flat"])(x)
    y = op(Q.quantize(x))
    # Of integers, and so ties are where they are.
    mean = np.rint(y.reshape(2, 6, 64).mean(-1)).astype(np.uint8)
    np.testing.assert_array_equal(results["flat"], mean)
    np.testing.assert_array_equal(results["scores"], head(mean))
    reals = (y.astype(np.float32) - np.float32(3)) * np.float32(Q.scale)
    np.testing.assert_array_equal(results["reals"], reals)


def test_a_tensor_may_be_seen_in_row_major_order() -> None:
    rng = np.random.default_rng(5)
    x = codes(rng, 2, 3, 4, 5)
    nodes = [Node("y", Pool("max", 1), "x"), Node("z", Reshape((2, 60)), "y")]
    result = Network(["x"], nodes, ["z"])(x)["z"]
    np.testing.assert_array_equal(result, x.reshape(2, 60))


def test_an_operator_of_more_than_a_primitive_runs() -> None:
    rng = np.random.default_rng(6)
    wei = rng.integers(-32, 33, (4, 3, 3, 3)).astype(np.int8)
    q = pq.QParams(0.02, 0, "s8")
    tflite = pq.Conv(
        wei,
        src_q=pq.QParams(0.05, 3, "s8"),
        wei_q=q,
        dst_q=pq.QParams(0.1, 0, "s8"),
        requantize="tflite_2step",
    )
    x = rng.integers(-128, 128, (1, 3, 6, 6)).astype(np.int8)
    network = Network(["x"], [Node("y", tflite, "x"), Node("z", Pool("max", 2), "y")], ["y", "z"])
    np.testing.assert_array_equal(network(x)["y"], tflite(x))


def test_any_name_may_be_a_tensor_s() -> None:
    """Those of copies that compiling makes are others."""
    x = codes(np.random.default_rng(11), 1, 3, 4, 4)
    nodes = [
        Node("y", Reshape((48,)), "x"),
        Node("x (1)", Pool("max", 2, stride=2), "x"),
        Node("x (2)", Reshape((12,)), "x (1)"),
    ]
    results = Network(["x"], nodes, ["y", "x (1)", "x (2)"])(x.astype(np.uint8))
    np.testing.assert_array_equal(results["y"], x.ravel())
    np.testing.assert_array_equal(results["x (1)"], pooled(x))
    np.testing.assert_array_equal(results["x (2)"], pooled(x).ravel())


def test_threads_share_a_network() -> None:
    network, x, values = random_network(7)
    wrong: list[str] = []

    def run() -> None:
        for _ in range(50):
            results = network(x)
            wrong.extend(n for n, got in results.items() if not np.array_equal(got, values[n]))

    network(x)
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_python_raises_comes_out_and_the_next_call_runs() -> None:
    fails = [True]

    def function(x: Array) -> Array:
        if fails[0]:
            msg = "not now"
            raise RuntimeError(msg)
        return x

    x = codes(np.random.default_rng(8), 1, 2, 3, 3)
    network = Network(["x"], [Node("y", PythonCall(function, spec(x)), "x")], ["y"])
    with pytest.raises(RuntimeError, match="not now"):
        network(x)
    fails[0] = False
    np.testing.assert_array_equal(network(x)["y"], x)


def test_an_array_that_a_function_kept_outlives_the_network() -> None:
    kept: list[Array] = []

    def keep(y: Array) -> Array:
        kept.append(y)
        raise RuntimeError

    rng = np.random.default_rng(5)
    nodes = [
        Node("y", conv(rng, 4, 64), "x"),
        Node("z", PythonCall(keep, TensorSpec.channels_last((1, 64, 64, 64), "u8")), "y"),
    ]
    net = Network(["x"], nodes, ["z"])
    x = codes(rng, 1, 4, 64, 64)
    expected = nodes[0].runs(x)
    with pytest.raises(RuntimeError):
        net(x)
    del net
    gc.collect()
    # A block of this size goes back to the system when it is freed: reading it would crash.
    np.testing.assert_array_equal(kept[0], expected)
    assert not kept[0].flags.owndata
    assert kept[0].base is not None


def test_times_are_by_node() -> None:
    network, x, _ = random_network(9)
    times = network.compile({"x": spec(x)}).times(x)
    assert set(times) <= {node.dst for node in network.nodes}
    assert all(time > 0 for time in times.values())


def test_what_does_not_fit_is_refused_by_name() -> None:
    rng = np.random.default_rng(10)
    op = conv(rng, 3, 4)
    x = codes(rng, 1, 3, 6, 6)
    with pytest.raises(ArgumentError, match=r"^nodes: got 'a', which 'y' reads; wanted an input"):
        Network(["x"], [Node("y", op, "a")], ["y"])
    with pytest.raises(ArgumentError, match=r"^dst: got 'x'; wanted a name that no other"):
        Network(["x"], [Node("x", op, "x")], ["x"])
    with pytest.raises(ArgumentError, match=r"^outputs: got 'z'; wanted a tensor of the network"):
        Network(["x"], [Node("y", op, "x")], ["z"])
    with pytest.raises(ArgumentError, match=r"^inputs: got \('x', 'x'\); wanted names that differ"):
        Network(["x", "x"], [], [])
    with pytest.raises(ArgumentError, match=r"^runs: "):
        Node("y", max, "x")
    with pytest.raises(ArgumentError, match=r"^src: got .*; wanted one tensor"):
        Node("y", op, ("x", "x"))
    with pytest.raises(ArgumentError, match=r"^residual: .*only operators have chains"):
        Node("y", Pool("max", 2), "x", residual="x")
    network = Network(["x"], [Node("y", op, "x")], ["y"])
    with pytest.raises(ArgumentError, match=r"^arrays: got 2"):
        network(x, x)
    with pytest.raises(DTypeError, match=r"^x: got float32; wanted uint8"):
        network.compile({"x": spec(x)})(x.astype(np.float32))
    with pytest.raises(ShapeError, match=r"^x: got \(1, 3, 5, 6\)"):
        network.compile({"x": spec(x)})(x[:, :, 1:])
    with pytest.raises(ArgumentError, match=r"^specs: "):
        network.compile({})
    for node, error in (
        (Node("y", Pool("max", 9), "x"), ShapeError),
        (Node("y", Reshape((1, 5)), "x"), ShapeError),
        (Node("y", Concat(7), ("x", "x")), ArgumentError),
        (Node("y", Quantize(Q), "x"), DTypeError),
        (Node("y", Dequantize(pq.QParams(1.0, 0, "s8")), "x"), DTypeError),
    ):
        with pytest.raises(error):
            Network(["x"], [node], ["y"])(x)
    with pytest.raises(ArgumentError, match=r"^alg: "):
        Pool("mean")
    with pytest.raises(ShapeError, match=r"^dims: "):
        Reshape((-1, -1))


def test_a_dynamic_source_is_quantized_by_each_call() -> None:
    """Behind codes' real values, in a network as alone: its range is that of the call."""
    rng = np.random.default_rng(4)
    wei = rng.integers(-32, 33, (16, 8)).astype(np.int8)
    layer = pq.MatMul(wei, src_q=pq.Dynamic("u8"), wei_q=pq.QParams(0.02, 0, "s8"), dst="f32")
    network = Network(["x"], [Node("real", Dequantize(Q), "x"), Node("y", layer, "real")], ["y"])
    for most in (9, 256):
        x = rng.integers(0, most, (5, 16)).astype(np.uint8)
        real = (x.astype(np.float32) - np.float32(3)) * np.float32(0.05)
        np.testing.assert_array_equal(network(x)["y"], layer(real))


@pytest.mark.parametrize(
    "seen",
    [
        lambda x: x.view(np.memmap),
        lambda x: x.astype(np.dtype("f4", metadata={"of": 1})),
        copy.deepcopy,
    ],
)
def test_arrays_that_are_as_good_run_as_they_are(seen: Any) -> None:
    """Of a subclass, and of a data type that is equal and not the same object."""
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    network = Network(["x"], [Node("y", Quantize(Q), "x")], ["y"])
    want = network(x)["y"]
    other = seen(x)
    np.testing.assert_array_equal(network(other)["y"], want, strict=True)


def test_a_mask_is_not_lost() -> None:
    """Where the array lies as it should, and where it would be copied."""
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    network = Network(["x"], [Node("y", Quantize(Q), "x")], ["y"])
    compiled = network.compile({"x": TensorSpec.dense((4, 6), "f32")})
    for masked in (np.ma.masked_array(x, x > 3), np.ma.masked_array(x.T.copy().T, x > 3)):
        for run in (network, compiled, compiled.times):
            with pytest.raises(ArgumentError, match=r"^x: got a masked array"):
                run(masked)


def test_threads_share_a_network_of_passes() -> None:
    """Tables, quantizers, normalization and views, each long enough for several threads."""
    rng = np.random.default_rng(12)
    gain, shift = (rng.normal(1, 1, 512).astype(np.float32) for _ in range(2))
    tables = [codes(rng, 256), codes(rng, 256, 256), codes(rng, 256)]
    nodes = [
        Node("normal", LayerNorm(gain, shift, 1e-5), "x"),
        Node("a", Quantize(Q), "normal"),
        Node("b", Lookup(tables[0]), "a"),
        Node("c", Lookup(tables[1]), ("a", "b")),
        Node("turned", Transpose((0, 2, 1)), "c"),
        Node("part", Slice(1, 3, 100, 2), "turned"),
        Node("d", Lookup(tables[0]), "part"),
        Node("y", Concat(1, (None, Lookup(tables[2]))), ("d", "part")),
    ]
    network = Network(["x"], nodes, ["normal", "y"])
    sources = [rng.normal(0, 1, (3, 256, 512)).astype(np.float32) for _ in range(4)]
    with runtime.threads(1):
        wanted = [network(x) for x in sources]
    for want in wanted:
        levels = np.rint(want["normal"] / np.float32(Q.scale)) + np.float32(3)
        a = levels.clip(0, 255).astype(np.uint8)
        b = tables[0][a]
        part = tables[1][a, b].swapaxes(1, 2)[:, 3:203:2]
        np.testing.assert_array_equal(
            want["y"], np.concatenate([tables[0][part], tables[2][part]], 1)
        )

    def run(i: int) -> bool:
        found = network(sources[i])
        return all(np.array_equal(found[name], wanted[i][name]) for name in found)

    assert run_together(4, run, rounds=20) == [[True] * 20] * 4
