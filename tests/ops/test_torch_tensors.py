"""Tensors of torch on the CPU, without a copy in either direction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.ops.conv import Conv
from pyonednn_q.qparams import QParams
from support.calls.call import Call

torch: Any = pytest.importorskip("torch", reason="torch is not installed")

RNG = np.random.default_rng(5)
SRC = RNG.integers(0, 9, (2, 8, 6, 5)).astype(np.uint8)
WEI = RNG.integers(-4, 5, (16, 8, 3, 3)).astype(np.int8)
Q: dict[str, Any] = {"src_q": QParams(1.0, 2, "u8"), "wei_q": QParams(1.0, 0, "s8")}
WANT = Call("conv", SRC, WEI, **Q, dst="s32").meaning().dst


@pytest.fixture(scope="module")
def layer() -> Conv:
    return Conv(torch.from_numpy(WEI), **Q, dst="s32")


def test_channels_last_is_kept_and_read_where_it_lies(layer: Conv) -> None:
    src = torch.from_numpy(SRC).to(memory_format=torch.channels_last)
    result = layer(src)
    np.testing.assert_array_equal(result, WANT)
    primitive = layer.prepare(SRC.shape).primitive
    copies = primitive.copies["src"]
    result = layer(src)
    assert primitive.copies["src"] == copies
    assert torch.from_dlpack(result).is_contiguous(memory_format=torch.channels_last)


def test_results_become_tensors_of_the_same_memory(layer: Conv) -> None:
    result = layer(torch.from_numpy(SRC))
    tensor = torch.from_dlpack(result)
    assert tensor.data_ptr() == result.ctypes.data
    assert torch.equal(tensor, torch.from_numpy(WANT))


@pytest.mark.parametrize("memory_format", ["contiguous_format", "channels_last"])
def test_out_is_written_in_place(layer: Conv, memory_format: str) -> None:
    out = torch.zeros(WANT.shape, dtype=torch.int32)
    out = out.contiguous(memory_format=getattr(torch, memory_format))
    result: Any = layer(torch.from_numpy(SRC), out=out)
    assert result is out
    assert torch.equal(out, torch.from_numpy(WANT))


def test_a_view_of_a_tensor(layer: Conv) -> None:
    wide = torch.zeros((2, 8, 12, 10), dtype=torch.uint8)
    wide[:, :, ::2, ::2] = torch.from_numpy(SRC)
    np.testing.assert_array_equal(layer(wide[:, :, ::2, ::2]), WANT)


def test_tensors_that_cannot_be_shared_are_refused_by_name(layer: Conv) -> None:
    with pytest.raises(ArgumentError, match="src"):
        layer(torch.zeros(SRC.shape, dtype=torch.uint8, device="meta"))
    with pytest.raises(ArgumentError, match="src"):
        layer(torch.zeros(SRC.shape, requires_grad=True))
