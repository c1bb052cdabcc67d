"""matmul_nbits beside onnxruntime's MatMulNBits: every bit, of any block, rows and columns."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, NoModelError, ShapeError
from pyonednn_q.predict.matmul_nbits import matmul_nbits
from pyonednn_q.quantize import to_matmul_nbits

F = np.float32
COLUMNS = (3, 16, 37, 130)
BLOCKS = (16, 32, 64, 128, 256)


def theirs(codes: Any, wei_q: pq.QParams, bias: Any, level: int, threads: int = 1) -> Any:
    """Return f(x) of onnxruntime."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install .[oracles]")
    runtime = pytest.importorskip(
        "onnxruntime", reason="onnxruntime is not installed: pip install .[oracles]"
    )
    helper, size = onnx.helper, wei_q.block[0]
    b, scales, points = to_matmul_nbits(codes, wei_q)
    arrays = {"b": b, "s": scales.reshape(-1), "z": points, "c": bias}
    held = {name: each for name, each in arrays.items() if each is not None}
    names = ["x", "b", "s", "z" if "z" in held else "", "", "c" if "c" in held else ""]
    bits = 8 if wei_q.dtype in {"s8", "u8"} else 4
    node = helper.make_node(
        "MatMulNBits", names, ["y"], domain="com.microsoft", K=len(codes), N=codes.shape[1],
        bits=bits, block_size=size, accuracy_level=level,
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", 1, [None, len(codes)])],
        [helper.make_tensor_value_info("y", 1, [None, codes.shape[1]])],
        [
            onnx.numpy_helper.from_array(np.reshape(each, each.shape if name == "b" else -1), name)
            for name, each in held.items()
        ],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda x: session.run(None, {"x": x})[0]


def drawn(
    rng: np.random.Generator, dtype: str, size: int, blocks: int, columns: int
) -> tuple[Any, pq.QParams]:
    lo, hi = {"s4": (-8, 8), "u4": (0, 16), "s8": (-128, 128), "u8": (0, 256)}[dtype]
    codes = rng.integers(lo, hi, (size * blocks, columns))
    scale = rng.uniform(0.001, 0.01, (blocks, columns)) * rng.choice([-1, 1], (blocks, columns))
    points = 0 if dtype.startswith("s") else rng.integers(lo, hi, scale.shape)
    return codes, pq.QParams(scale.astype(F), points, dtype, axis=0, block=(size,))


def rows_of(rng: np.random.Generator, rows: int, inner: int) -> Any:
    """Return rows of very different sizes, one block of which holds nothing."""
    x = rng.standard_normal((rows, inner)) * np.exp(rng.standard_normal((rows, inner)) * 2)
    x[:, : inner // 4 // 16 * 16] *= rng.choice([0.0, 1.0], (rows, 1))
    return x.astype(F)


def compared(rng: np.random.Generator, dtype: str, size: int, level: int, wanted: int) -> int:
    """Return how many outputs of drawn nodes were compared: so many at least."""
    outputs = 0
    while outputs < wanted:
        blocks = int(rng.integers(1, 2 + min(11, 1000 // size)))
        columns = int(rng.choice(np.append(COLUMNS, rng.integers(1, 500))))
        codes, wei_q = drawn(rng, dtype, size, blocks, columns)
        bias = rng.standard_normal(columns).astype(F) if rng.integers(2) else None
        run = theirs(codes, wei_q, bias, level, threads=int(rng.integers(1, 3)))
        for rows in (1, 2, int(rng.integers(3, 40))):
            x = rows_of(rng, rows, len(codes))
            got = matmul_nbits(x, codes, wei_q, bias, accuracy_level=level)
            np.testing.assert_array_equal(got, run(x))
            outputs += got.size
    print(f"level {level}, {dtype}, blocks of {size}: {outputs:,} outputs")  # noqa: T201
    return outputs


@pytest.mark.needs_isa("AVX512_CORE_VNNI")
@pytest.mark.parametrize("size", BLOCKS)
@pytest.mark.parametrize(
    ("level", "dtype"),
    [*itertools.product((4,), ("s4", "u4", "s8", "u8")), *itertools.product((0, 1), ("s4", "u4"))],
)
def test_every_bit_is_known(level: int, dtype: str, size: int, pytestconfig: pytest.Config) -> None:
    rng = np.random.default_rng([size, level, *dtype.encode()])
    wanted = pytestconfig.getoption("--compared-outputs")
    assert compared(rng, dtype, size, level, wanted) >= wanted


def test_whole_numbers_are_the_product_itself() -> None:
    """Where nothing is rounded, all levels are the real product."""
    rng = np.random.default_rng(5)
    for size in BLOCKS:
        codes = rng.integers(-8, 8, (2 * size, 9))
        wei_q = pq.QParams(np.full((2, 9), 0.5), 0, "s4", axis=0, block=(size,))
        x = rng.integers(-127, 128, (3, 2 * size)).astype(F)
        x[:, ::size] = 127.0
        for level in (0, 1, 4):
            got = matmul_nbits(x, codes, wei_q, accuracy_level=level)
            np.testing.assert_array_equal(got, x @ wei_q.dequantize(codes.astype(np.int8)))


def test_what_is_not_known_is_refused() -> None:
    rng = np.random.default_rng(6)
    codes, wei_q = drawn(rng, "s8", 32, 2, 4)
    x = rows_of(rng, 2, 64)
    with pytest.raises(NoModelError, match="8 bits at accuracy level 1"):
        matmul_nbits(x, codes, wei_q, accuracy_level=1)
    small = pq.QParams(np.ones((8, 4)), 0, "s8", axis=0, block=(8,))
    with pytest.raises(NoModelError, match="blocks of 8"):
        matmul_nbits(x, codes, small)
    with pytest.raises(ShapeError, match=r"^src: got"):
        matmul_nbits(x[:, :-1], codes, wei_q)
    with pytest.raises(ShapeError, match=r"^wei_q: got"):
        matmul_nbits(x[:, :32], codes[:32], wei_q)
    with pytest.raises(ArgumentError, match=r"^src: got values that are not finite"):
        matmul_nbits(np.full((1, 64), np.nan, F), codes, wei_q)
    with pytest.raises(ArgumentError, match=r"^accuracy_level: got 2"):
        matmul_nbits(x, codes, wei_q, accuracy_level=2)
