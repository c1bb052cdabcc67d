"""What may come as an array: the right result, or a typed error that names the argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.errors import (
    AliasError,
    ArgumentError,
    DTypeError,
    Error,
    LayoutError,
    ShapeError,
)
from pyonednn_q.native.arrays import LINE, empty, has_layout
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import BinaryPostOp, SumPostOp
from pyonednn_q.primitive.problem import ConvProblem, MatMulProblem
from pyonednn_q.primitive.tensor import TensorSpec

Array = np.ndarray[Any, Any]
View = Callable[[Array], Array]

PROBLEM = ConvProblem.of((2, 8, 6, 5), (16, 8, 3, 3), padding=1, dst="s32")
RNG = np.random.default_rng(7)
WEI = RNG.integers(-4, 5, (16, 8, 3, 3)).astype(np.int8)
SRC = RNG.integers(0, 20, (2, 8, 6, 5)).astype(np.uint8)


def reference(src: Array) -> Array:
    """The bare convolution, tap by tap, in int64."""
    padded = np.pad(src.astype(np.int64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    acc = np.zeros((2, 16, 6, 5), np.int64)
    for i in range(3):
        for j in range(3):
            window = padded[:, :, i : i + 6, j : j + 5]
            acc += np.einsum("nchw,oc->nohw", window, WEI[:, :, i, j].astype(np.int64))
    return acc.astype(np.int32)


@pytest.fixture(scope="module")
def conv() -> native.Prepared:
    return native.prepare(PROBLEM, wei=WEI)


def channels_last(array: Array) -> Array:
    last: Array = np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    return last


def strided(array: Array) -> Array:
    wide = np.zeros((2, 8, 12, 10), array.dtype)
    wide[:, :, ::2, ::2] = array
    return wide[:, :, ::2, ::2]


def reversed_view(array: Array) -> Array:
    return np.ascontiguousarray(array[:, ::-1])[:, ::-1]


def read_only(array: Array) -> Array:
    frozen = channels_last(array)
    frozen.flags.writeable = False
    return frozen


def odd_address(array: Array) -> Array:
    raw: Array = np.empty(array.size + 1, np.uint8)[1:]
    view: Array = raw.reshape(2, 6, 5, 8).transpose(0, 3, 1, 2)
    view[...] = array
    return view


@pytest.mark.parametrize(
    "view",
    [
        channels_last,
        np.ascontiguousarray,
        np.asfortranarray,
        strided,
        reversed_view,
        read_only,
        odd_address,
    ],
)
def test_every_layout_of_src_gives_the_right_result(conv: native.Prepared, view: View) -> None:
    np.testing.assert_array_equal(conv(view(SRC)), reference(SRC))


@pytest.mark.parametrize("view", [channels_last, np.ascontiguousarray, np.asfortranarray, strided])
def test_every_layout_of_out_is_written_in_place(conv: native.Prepared, view: View) -> None:
    out = view(np.full((2, 16, 6, 5), -1, np.int32)) if view is not strided else None
    if out is None:
        out = np.full((2, 16, 12, 10), -1, np.int32)[:, :, ::2, ::2]
    assert conv(SRC, out=out) is out
    np.testing.assert_array_equal(out, reference(SRC))


def test_channels_last_arrays_are_not_copied() -> None:
    conv = native.prepare(PROBLEM, wei=WEI)
    out = conv.empty()
    conv(channels_last(SRC), out=out)
    assert conv.copies == {"src": 0, "dst": 0}
    conv(SRC, out=np.empty((2, 16, 6, 5), np.int32))
    assert conv.copies == {"src": 1, "dst": 1}


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (SRC.astype(np.int8), DTypeError, "src: got int8; wanted uint8"),
        (SRC.astype(np.float64), DTypeError, "src: got float64"),
        (SRC.astype(object), DTypeError, "src: got object"),
        (SRC.astype(">i4"), DTypeError, "src: got >i4"),
        (SRC[:1], ShapeError, r"src: got \(1, 8, 6, 5\)"),
        (np.uint8(3), ArgumentError, "src: got uint8; wanted a NumPy array"),
        (np.array(3, np.uint8), ShapeError, r"src: got \(\)"),
        ([1, 2], ArgumentError, "src: got list"),
        (None, ArgumentError, "src: got NoneType"),
    ],
)
def test_a_wrong_src_is_a_typed_error(
    conv: native.Prepared, array: Any, error: type[Error], message: str
) -> None:
    with pytest.raises(error, match=message):
        conv(array)


def test_foreign_byte_order_is_refused_by_name() -> None:
    call = native.prepare(MatMulProblem.of((2, 3), (3, 4), src="f32", wei="f32", dst="f32"))
    good = np.ones((2, 3), np.float32)
    with pytest.raises(DTypeError, match="src: got >f4 in foreign byte order"):
        call(good.astype(">f4"), np.ones((3, 4), np.float32))


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.empty((2, 16, 6, 5), np.int8), DTypeError, "out: got int8"),
        (np.empty((2, 16, 6, 4), np.int32), ShapeError, "out: got"),
        ("here", ArgumentError, "out: got str"),
    ],
)
def test_a_wrong_out_is_a_typed_error(
    conv: native.Prepared, out: Any, error: type[Error], message: str
) -> None:
    with pytest.raises(error, match=message):
        conv(SRC, out=out)


def test_a_read_only_out_is_refused(conv: native.Prepared) -> None:
    out = conv.empty()
    out.flags.writeable = False
    with pytest.raises(ArgumentError, match="out: got a read-only array"):
        conv(SRC, out=out)


def test_out_must_not_overlap_src() -> None:
    call = native.prepare(
        ConvProblem.of((1, 16, 4, 4), (16, 16, 1, 1), dst="u8"),
        wei=np.ones((16, 16, 1, 1), np.int8),
    )
    both = call.empty("src")
    both[...] = 1
    with pytest.raises(AliasError, match="src: got memory that overlaps dst"):
        call(both, out=both)


def test_a_binary_operand_may_be_the_destination_itself() -> None:
    spec = TensorSpec.channels_last((2, 16, 6, 5), "s32")
    attr = Attr(post_ops=(BinaryPostOp("add", spec),))
    call = native.prepare(PROBLEM, attr, wei=WEI)
    out = call.empty()
    out[...] = 5
    call(SRC, out, out=out)
    np.testing.assert_array_equal(out, reference(SRC) + 5)


def test_sum_needs_out_and_adds_what_it_holds() -> None:
    call = native.prepare(PROBLEM, Attr(post_ops=(SumPostOp(2.0),)), wei=WEI)
    with pytest.raises(ArgumentError, match="out: got None"):
        call(SRC)
    for make in (channels_last, np.ascontiguousarray):
        out = make(np.full((2, 16, 6, 5), 3, np.int32))
        call(SRC, out=out)
        np.testing.assert_array_equal(out, reference(SRC) + 6)


@pytest.mark.parametrize("src_dims", [(0, 8, 6, 5)])
def test_an_empty_batch_gives_an_empty_result(src_dims: tuple[int, ...]) -> None:
    problem = ConvProblem.of(src_dims, (16, 8, 3, 3), padding=1, dst="s32")
    result = native.prepare(problem, wei=WEI)(np.empty(src_dims, np.uint8))
    assert result.shape == (0, 16, 6, 5)
    assert result.dtype == np.int32


def test_a_shape_whose_bytes_overflow_allocates_nothing() -> None:
    with pytest.raises(ShapeError):
        ConvProblem.of((1 << 31, 1 << 31, 6, 5), (16, 1 << 31, 3, 3))


def test_the_number_of_arrays_is_checked(conv: native.Prepared) -> None:
    with pytest.raises(ArgumentError, match="inputs: got 2 arrays; wanted src"):
        conv(SRC, SRC)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("wei_scale", np.ones(15, np.float32), r"wei_scale: got \(15,\); wanted \(16,\)"),
        ("wei_scale", np.ones((2, 16), np.float32), r"wei_scale: got \(32,\)"),
        ("wei_scale", np.array([0.0] + [1.0] * 15), "wei_scale: got 0.0 at 0"),
        ("wei_scale", np.array([np.nan] * 16), "wei_scale: got nan at 0"),
        ("wei_scale", np.array([np.inf] * 16), "wei_scale: got inf at 0"),
        ("wei_scale", np.array([-1.0] * 16), "wei_scale: got -1.0 at 0"),
        ("wei_scale", np.array([1e-60] * 16), "wei_scale: got 1e-60 at 0"),
        ("wei_scale", "one", "wei_scale: got str"),
        ("src_zero_point", 256, "src_zero_point: got 256; wanted values from 0 to 255"),
        ("src_zero_point", -1, "src_zero_point: got -1"),
        ("src_zero_point", 1.5, "src_zero_point: got float64; wanted integers"),
    ],
)
def test_every_value_is_validated(name: str, value: object, message: str) -> None:
    attr = Attr(wei_scale=Scale(mask=1), src_zero_point=ZeroPoint())
    values = {"wei_scale": np.ones(16, np.float32), "src_zero_point": 3} | {name: value}
    with pytest.raises(ArgumentError, match=message):
        native.prepare(PROBLEM, attr, wei=WEI, values=values)


def test_a_missing_and_an_unknown_value_are_refused() -> None:
    with pytest.raises(ArgumentError, match="wei_scale: got nothing"):
        native.prepare(PROBLEM, Attr(wei_scale=Scale()), wei=WEI)
    with pytest.raises(ArgumentError, match="values: got 'dst_scale'"):
        native.prepare(PROBLEM, wei=WEI, values={"dst_scale": 1.0})


def test_weights_are_checked_too() -> None:
    with pytest.raises(ShapeError, match="wei: got"):
        native.prepare(PROBLEM, wei=WEI[:8])
    with pytest.raises(DTypeError, match="wei: got uint8; wanted int8"):
        native.prepare(PROBLEM, wei=WEI.astype(np.uint8))
    with pytest.raises(ArgumentError, match="bias: got an array"):
        native.prepare(PROBLEM, wei=WEI, bias=np.ones(16, np.float32))


def test_the_extension_itself_refuses_a_wrong_layout(conv: native.Prepared) -> None:
    with pytest.raises(LayoutError, match="src: got strides of"):
        conv.time_calls(SRC, conv.empty(), calls=1)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("dims", [(1, 64, 14, 14), (3, 5, 7), (0, 4), (2, 3, 5, 7, 1)])
def test_new_arrays_start_on_a_cache_line(dims: tuple[int, ...], dtype: str) -> None:
    """NumPy's large arrays start 16 bytes behind one, and every load of a row straddles two."""
    layouts = [TensorSpec.dense(dims, dtype), TensorSpec.channels_last(dims, dtype)]
    gaps = tuple(2 * step for step in layouts[0].strides or ())
    for spec in (*layouts, TensorSpec(dims, dtype, gaps)):
        kept = [empty(spec) for _ in range(5)]
        assert {array.__array_interface__["data"][0] % LINE for array in kept if array.size} <= {0}
        assert {array.shape for array in kept} == {dims}
        assert all(has_layout(array, spec) for array in kept if array.size)
