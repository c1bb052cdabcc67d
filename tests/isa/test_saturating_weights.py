"""Weights whose sums can overflow 16 bits are refused without VNNI, those of each call, too."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.dtypes import numpy_dtype
from pyonednn_q.errors import DTypeError, SaturationError
from pyonednn_q.native import runtime
from pyonednn_q.ops.conv import Conv
from pyonednn_q.primitive.problem import ConvProblem, MatMulProblem
from pyonednn_q.qparams import QParams


def test_saturating_weights_are_refused_by_channel() -> None:
    if runtime.isa().has_vnni():
        pytest.skip(f"{runtime.isa().text()} has VNNI: nothing saturates")
    problem = ConvProblem.of((1, 16, 4, 4), (4, 16, 1, 1), dst="s32")
    wei = np.ones((4, 16, 1, 1), np.int8)
    wei[2] = 127
    src = np.full((1, 16, 4, 4), 255, np.uint8)
    with pytest.raises(SaturationError, match="saturation='allow'") as caught:
        native.prepare(problem, wei=wei)
    assert caught.value.channels == (2,)
    allowed = native.prepare(problem, wei=wei, saturation="allow")
    assert any("VNNI" in note for note in allowed.notes)
    result = allowed(src)[0, :, 0, 0]
    assert result[0] == 16 * 255
    assert result[2] < 16 * 255 * 127  # what the refusal is about


def test_one_behind_the_first_that_sums_exactly_is_taken() -> None:
    """Of one channel, some pair taps of a row and others multiply one by one."""
    problem = ConvProblem.of((2, 1, 6, 4), (1, 1, 3, 2), dst="s32", stride=2)
    wei = np.full(problem.wei.dims, 127, np.int8)
    prepared = native.prepare(problem, wei=wei)
    src = np.full(problem.src.dims, 255, np.uint8)
    assert (prepared(src) == 255 * 127 * 6).all()
    first = native.implementations(problem)[0]
    if first.impl != prepared.impl and not first.guards:
        assert f"passed over {first.impl}: its sums may saturate" in prepared.notes[0]
        with pytest.raises(SaturationError):
            native.prepare(problem, wei=wei, implementation=first.impl)


@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_what_to_do_is_told_whole(dtype: str) -> None:
    if runtime.isa().has_vnni():
        pytest.skip(f"{runtime.isa().text()} has VNNI: nothing saturates")
    q: dict[str, Any] = {"src_q": QParams(1.0, 0, dtype), "wei_q": QParams(1.0, 0, "s8")}
    layer = Conv(np.full((40, 16, 1, 1), 127, np.int8), **q)
    with pytest.raises(SaturationError) as caught:
        layer(np.ones((1, 16, 4, 4), numpy_dtype(dtype)))
    remedy = "keep weights in [-64, 64] (even ones for s8 sources), or pass saturation='allow'"
    for text in (str(caught.value), caught.value.detail):
        assert text.count(remedy) == 1


def test_saturating_weights_of_a_call_are_refused() -> None:
    if runtime.isa().has_vnni():
        pytest.skip(f"{runtime.isa().text()} has VNNI: nothing saturates")
    call = native.prepare(MatMulProblem.of((2, 8), (8, 3), dst="s32"))
    src = np.full((2, 8), 255, np.uint8)
    for way in (call, copy(call), partial(native.Prepared.__call__, call)):
        assert (way(src, np.full((8, 3), 64, np.int8)) == 8 * 255 * 64).all()
        with pytest.raises(SaturationError):
            way(src, np.full((8, 3), 65, np.int8))


@pytest.mark.parametrize("dtype", ["S1", "U1", "object", "datetime64[s]", "float32", "int16"])
def test_weights_of_another_type_are_refused_by_name(dtype: str) -> None:
    """Also where ranges of weights are looked at first, for want of VNNI."""
    wei: Any = np.ones((8, 4)).astype(dtype)
    with pytest.raises(DTypeError, match=r"^wei: got .*; wanted int8"):
        native.prepare(MatMulProblem.of((2, 8), (8, 4)), wei=wei)
