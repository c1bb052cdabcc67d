"""What users hold is taken as it is: names of data types, biases, tensors of bf16, `out`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct, MatMul
from pyonednn_q.ops.functional import conv
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from support import foreign

if TYPE_CHECKING:
    from pyonednn_q.dtypes import DType

Array = np.ndarray[Any, Any]

RNG = np.random.default_rng(8)
BF16 = np.dtype(ml_dtypes.bfloat16)
WEI = RNG.integers(-4, 5, (16, 8, 3, 3)).astype(np.int8)
SRC = RNG.integers(0, 9, (2, 8, 6, 5)).astype(np.uint8)
Q: dict[str, Any] = {"src_q": QParams(1.0, 2, "u8"), "wei_q": QParams(1.0, 0, "s8")}


@pytest.mark.parametrize("s8", ["int8", np.int8, np.dtype(np.int8)])
@pytest.mark.parametrize("u8", ["uint8", np.uint8, np.dtype(np.uint8)])
def test_a_call_takes_numpys_names_of_data_types(u8: DType, s8: DType) -> None:
    named: dict[str, Any] = {"src_q": QParams(1.0, 2, u8), "wei_q": QParams(1.0, 0, s8)}
    assert named == Q
    np.testing.assert_array_equal(
        conv(SRC, WEI, **named, dst=np.int32), conv(SRC, WEI, **Q, dst="s32")
    )
    np.testing.assert_array_equal(
        conv(SRC, WEI, **Q, dst="bfloat16"), conv(SRC, WEI, **Q, dst=BF16)
    )
    layer = Conv(WEI, **Q, dst=np.float32)
    assert layer.prepare(SRC.shape, u8) is layer.prepare(SRC.shape)


def test_a_float_layer_takes_numpys_names_of_data_types() -> None:
    wei = RNG.normal(0, 1, (4, 6)).astype(np.float32)
    src = RNG.uniform(-1, 1, (3, 6)).astype(np.float32)
    by_short = InnerProduct.from_float(
        wei, src_q=(-1.0, 1.0), src_dtype="s8", dst_q=(0.0, 3.0), dst="s8", wei_levels=129
    )
    by_type = InnerProduct.from_float(
        wei, src_q=(-1.0, 1.0), src_dtype=np.int8, dst_q=(0.0, 3.0), dst=np.int8, wei_levels=129
    )
    np.testing.assert_array_equal(by_type(src), by_short(src))
    assert Dynamic(np.uint8) == Dynamic("u8")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, BF16])
def test_a_bias_of_real_values_may_have_any_float_type(dtype: Any) -> None:
    bias = np.arange(16).astype(dtype)
    wanted = conv(SRC, WEI, np.arange(16).astype(np.int32), **Q)  # scales of 1: the same units
    for _ in range(2):  # made, then known
        np.testing.assert_array_equal(conv(SRC, WEI, bias, **Q), wanted)
    np.testing.assert_array_equal(Conv(WEI, bias, **Q)(SRC), wanted)
    bias[3] += 32
    wanted[:, 3] += 32
    np.testing.assert_array_equal(conv(SRC, WEI, bias, **Q), wanted)


def test_a_bias_beyond_float32_or_of_whole_numbers_is_refused() -> None:
    for refused in (np.full(16, 1e39), np.full(16, np.nan)):
        with pytest.raises(ArgumentError, match="bias: got values that are not finite in f32"):
            Conv(WEI, refused, **Q)
    with pytest.raises(DTypeError, match="bias: got int64"):
        Conv(WEI, np.zeros(16, np.int64), **Q)


VALUES = RNG.integers(-99, 99, (5, 24)).astype(BF16)
TO_BF16 = Conv(WEI, **Q, dst="bf16")
STORED = TO_BF16(SRC)
VERSIONS = pytest.mark.parametrize("versioned", [True, False])


@VERSIONS
def test_bf16_comes_in_by_dlpack(versioned: bool) -> None:
    strided = np.zeros((5, 48), BF16)[:, ::2]
    strided[...] = VALUES
    for array in (VALUES, strided, VALUES.T, VALUES[2]):
        lent = foreign.Bf16Producer(array, versioned=versioned)
        got = as_array("src", lent)
        assert got.dtype == BF16
        np.testing.assert_array_equal(got, array)
        assert np.shares_memory(got, array)


def test_bf16_weights_and_biases_come_in_by_dlpack() -> None:
    wei, bias = VALUES, np.arange(5).astype(BF16)
    src = RNG.uniform(0, 1, (2, 24)).astype(np.float32)
    options: dict[str, Any] = {"src_q": (0.0, 1.0), "wei_levels": 129}
    lent = InnerProduct.from_float(foreign.Bf16Producer(wei), foreign.Bf16Producer(bias), **options)
    own = InnerProduct.from_float(wei.astype(np.float32), bias.astype(np.float32), **options)
    np.testing.assert_array_equal(lent(src), own(src))


@pytest.mark.needs_isa("AVX512_CORE_BF16")
def test_bf16_sources_come_in_by_dlpack() -> None:
    rows, wei = (RNG.integers(-8, 9, (n, 24)).astype(BF16) for n in (5, 3))
    layer = InnerProduct(wei, dst="f32")
    wanted = (rows.astype(np.float64) @ wei.astype(np.float64).T).astype(np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(layer(foreign.Bf16Producer(rows)), wanted)


def test_the_memory_of_bf16_by_dlpack_lives_as_long_as_the_array() -> None:
    """The capsule says another type to NumPy alone, and is let go of once."""
    memory = VALUES.copy()
    lent = foreign.Bf16Producer(memory)
    before = sys.getrefcount(memory)
    got = as_array("src", lent)
    again = as_array("src", lent)
    del got
    np.testing.assert_array_equal(again, VALUES)
    del again
    assert sys.getrefcount(memory) == before
    with pytest.raises((BufferError, RuntimeError)):  # or there is no need for ours
        np.from_dlpack(lent)


def test_bf16_goes_out_by_dlpack() -> None:
    memory = np.zeros_like(STORED)
    out: Any = foreign.Bf16Producer(memory)
    for _ in range(3):
        memory[...] = -1
        assert TO_BF16(SRC, out=out) is out
        np.testing.assert_array_equal(memory, STORED)


def test_an_old_bf16_out_is_written_if_its_framework_lends_it_as_integers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As torch does: `tensor.view(torch.int16).__array__()`, for want of a bf16 in NumPy."""
    framework = ModuleType("a_framework")
    framework.int16 = np.dtype(np.int16)  # type: ignore[attr-defined]

    class Tensor(foreign.Bf16Producer):
        def __array__(self, *_: Any, **__: Any) -> Array:
            msg = "Got unsupported ScalarType BFloat16"
            raise TypeError(msg)

        def view(self, dtype: np.dtype[Any]) -> Array:
            return self.array.view(dtype)

    Tensor.__module__ = "a_framework.tensors"
    monkeypatch.setitem(sys.modules, "a_framework", framework)
    memory = np.zeros_like(STORED)
    out: Any = Tensor(memory, versioned=False)
    assert TO_BF16(SRC, out=out) is out
    np.testing.assert_array_equal(memory, STORED)
    unknown = foreign.Bf16Producer(np.zeros_like(STORED), versioned=False)
    with pytest.raises(ArgumentError, match="out: got a read-only array"):
        TO_BF16(SRC, out=unknown)
    monkeypatch.delattr(Tensor, "view")
    with pytest.raises(ArgumentError, match="out: got a read-only array"):
        TO_BF16(SRC, out=out)


def test_torch_tensors_of_bf16_go_in_and_out() -> None:
    torch = pytest.importorskip("torch")
    memory = torch.empty(STORED.shape, dtype=torch.bfloat16)
    out: Any = memory
    assert TO_BF16(torch.from_numpy(SRC), out=out) is out
    np.testing.assert_array_equal(memory.float().numpy(), STORED.astype(np.float32))
    np.testing.assert_array_equal(as_array("src", memory), STORED)


OUTS: dict[str, Any] = {
    "an array": lambda array: array,
    "of a class of its own": lambda array: array.view(foreign.Own),
    "DLPack": foreign.Producer,
    "a buffer": memoryview,
}


@pytest.mark.parametrize("how", OUTS)
@pytest.mark.parametrize("requantize", [None, "tflite_2step"])
def test_out_is_returned_as_it_was_given(how: str, requantize: Any) -> None:
    dst_q = QParams(4.0, 100, "u8")
    layer = Conv(WEI, **Q, dst_q=dst_q, requantize=requantize)
    wanted = layer(SRC)
    memory = np.zeros_like(wanted)
    out = OUTS[how](memory)
    for _ in range(3):
        memory[...] = 0
        assert layer(SRC, out=out) is out
        np.testing.assert_array_equal(memory, wanted)
        memory[...] = 0
        assert conv(SRC, WEI, **Q, dst_q=dst_q, requantize=requantize, out=out) is out
        np.testing.assert_array_equal(memory, wanted)


def test_out_of_a_matmul_in_other_dims_is_returned_as_it_was_given() -> None:
    rows = RNG.integers(-8, 9, (5, 24)).astype(np.float32)
    wei = RNG.integers(-8, 9, (24, 3)).astype(np.float32)
    memory = np.zeros((1, 5, 3), np.float32)
    out: Any = foreign.Producer(memory)
    assert MatMul(wei)(rows[None], out=out) is out
    np.testing.assert_array_equal(memory[0], rows @ wei)


RANKS: list[tuple[Any, tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [
    (Conv, (4, 2, 1, 1), (4, 1, 1, 1), (1, 4, 1, 1)),
    (Deconv, (4, 2, 1, 1), (4, 1, 1, 1), (1, 4, 1, 1)),
    (InnerProduct, (4, 2), (4, 1), (1, 4)),
    (MatMul, (2, 4), (1, 4), (1, 1, 4)),
]


@pytest.mark.parametrize(("make", "wei_dims", "of_wei", "of_dst"), RANKS)
def test_fake_quantizes_come_in_the_rank_of_their_tensor(
    make: Any, wei_dims: tuple[int, ...], of_wei: tuple[int, ...], of_dst: tuple[int, ...]
) -> None:
    wei = RNG.normal(0, 1, wei_dims)
    high = np.array([1.0, 2.0, 4.0, 3.0])

    def fq(shape: tuple[int, ...]) -> FakeQuantize:
        ranged = high.reshape(shape)
        return FakeQuantize(-ranged, ranged, -ranged, ranged, 129)

    def layer(wei_fq: FakeQuantize, dst_fq: FakeQuantize) -> Any:
        return make.from_float(
            wei, src_q=(0.0, 1.0), wei_fq=wei_fq, dst_q=dst_fq, dst="f32", saturation="allow"
        )

    src = RNG.uniform(0, 1, (3, 2) if wei.ndim == 2 else (3, 2, 1, 1)).astype(np.float32)
    wanted = layer(fq((4,)), fq((4,)))(src)
    np.testing.assert_array_equal(layer(fq(of_wei), fq(of_dst))(src), wanted)
    with pytest.raises(ShapeError, match="wei_fq: got ranges along dimension"):
        layer(fq((1, 4, 1, 1)), fq((4,)))
    with pytest.raises(ShapeError, match="dst_q: got ranges along dimension"):
        layer(fq((4,)), fq((4, 1, 1, 1)))
