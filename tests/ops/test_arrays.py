"""Tensors in and out: any strides, DLPack, buffers, results in `out`, what may overlap."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import AliasError, ArgumentError, DTypeError, LayoutError, ShapeError
from pyonednn_q.expr.steps import Affine, Binary, Chain, Leaf, Round, Sum
from pyonednn_q.ops.conv import Conv
from pyonednn_q.ops.dense import MatMul
from pyonednn_q.ops.functional import conv, deconv
from pyonednn_q.ops.settings import Layout
from pyonednn_q.qparams import QParams
from support import foreign
from support.calls.call import Call
from support.calls.layouts import LAYOUTS, channels_last, strided

Array = np.ndarray[Any, Any]

RNG = np.random.default_rng(5)
SRC = RNG.integers(0, 9, (2, 8, 6, 5)).astype(np.uint8)
WEI = RNG.integers(-4, 5, (16, 8, 3, 3)).astype(np.int8)
BIAS = np.arange(16).astype(np.float32)
Q: dict[str, Any] = {"src_q": QParams(1.0, 2, "u8"), "wei_q": QParams(1.0, 0, "s8")}
CALL = Call("conv", SRC, WEI, BIAS, **Q, dst="s32")
WANT = CALL.meaning().dst


@pytest.fixture(scope="module")
def layer() -> Conv:
    return Conv(WEI, BIAS, **Q, dst="s32")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_every_tensor(layer: Conv, layout: str) -> None:
    lay = LAYOUTS[layout]
    np.testing.assert_array_equal(layer(lay(SRC)), WANT)
    np.testing.assert_array_equal(Conv(lay(WEI), BIAS, **Q, dst="s32")(SRC), WANT)
    np.testing.assert_array_equal(conv(lay(SRC), lay(WEI), BIAS, **Q, dst="s32"), WANT)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "read_only"])
def test_every_layout_of_out(layer: Conv, layout: str) -> None:
    out = LAYOUTS[layout](np.full(WANT.shape, -1, np.int32))
    assert layer(SRC, out=out) is out
    np.testing.assert_array_equal(out, WANT)


def test_memory_around_out_is_left_alone(layer: Conv) -> None:
    around = np.full((4, 20, 8, 9), -77, np.int32)
    out = around[1:3, 2:18, 2:6, 3:6]
    layer(SRC, out=out)
    np.testing.assert_array_equal(out, WANT)
    out[...] = -77
    assert (around == -77).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_residuals_and_operands(layout: str) -> None:
    lay = LAYOUTS[layout]
    before: Array = RNG.integers(-50, 50, WANT.shape, np.int32)
    other: Array = RNG.integers(-50, 50, WANT.shape, np.int8)
    post = Chain(Sum(2.0), Binary("add", Leaf("other", "s8")))
    call = CALL.but(post=post, residual=lay(before), operands={"other": lay(other)})
    call.meaning().check_equal(call.run())


def rows_lie_together(result: Array) -> bool:
    return result.flags.c_contiguous


def test_results_lie_as_the_source_does(layer: Conv) -> None:
    """On the second call too, which takes the shortest way."""
    for _ in range(3):
        assert layer(channels_last(SRC)).strides[1] == WANT.itemsize
        assert rows_lie_together(layer(SRC))


@pytest.mark.parametrize("src", [SRC, channels_last(SRC)])
def test_results_lie_as_was_asked(src: Array) -> None:
    layouts: tuple[tuple[Layout, bool], ...] = (("dense", True), ("channels_last", False))
    for layout, dense in layouts:
        layer = Conv(WEI, BIAS, **Q, dst="s32", layout=layout)
        for _ in range(3):
            result = layer(src)
            assert rows_lie_together(result) is dense
            np.testing.assert_array_equal(result, WANT)


def test_an_out_of_a_dense_layer_changes_nothing_for_later_results() -> None:
    layer = Conv(WEI, BIAS, **Q, dst="s32", layout="dense")
    src = channels_last(SRC)
    layer(src, out=channels_last(WANT))
    assert rows_lie_together(layer(src))


@pytest.mark.parametrize("producer", [foreign.Producer, foreign.OldProducer])
def test_dlpack_in(layer: Conv, producer: Any) -> None:
    for lie in (channels_last, np.ascontiguousarray, strided):
        np.testing.assert_array_equal(layer(producer(lie(SRC))), WANT)
    got = conv(producer(SRC), producer(WEI), producer(BIAS), **Q, dst="s32")
    np.testing.assert_array_equal(got, WANT)


def test_dlpack_in_is_not_copied(layer: Conv) -> None:
    primitive = layer.prepare(SRC.shape).primitive
    before = primitive.copies["src"]
    layer(foreign.Producer(channels_last(SRC)))
    assert primitive.copies["src"] == before
    layer(foreign.Producer(SRC))  # by the library itself
    assert primitive.copies["src"] == before
    layer(strided(SRC))
    assert primitive.copies["src"] == before + 1


def test_dlpack_out(layer: Conv) -> None:
    """A result lends itself to others, and its memory stays with whoever looks at it."""
    view = np.from_dlpack(layer(channels_last(SRC)))
    for _ in range(4):
        layer(channels_last(np.zeros_like(SRC)))
    np.testing.assert_array_equal(view, WANT)


PRETENDERS: dict[str, Any] = {
    "on a device": foreign.OnDevice(SRC),
    "no capsule": foreign.Lying(SRC),
    "half of the protocol": foreign.WithoutDevice(SRC),
    "not callable": foreign.NotCallable(),
    "__array__ alone": foreign.RaisingArray(),
    "raises": foreign.Raising(SRC, KeyError("nothing here")),
    "a list": SRC.tolist(),
    "a number": 3,
    "None": None,
    "text": "src",
    "a masked array": np.ma.masked_array(SRC, SRC > 3),
}


@pytest.mark.parametrize("what", PRETENDERS)
@pytest.mark.parametrize("argument", ["src", "wei", "bias", "out"])
def test_what_only_pretends_is_refused_by_name(what: str, argument: str) -> None:
    given = {"src": SRC, "wei": WEI, "bias": BIAS, "out": None, argument: PRETENDERS[what]}
    out = given.pop("out")
    if PRETENDERS[what] is None and argument in {"bias", "out"}:
        pytest.skip("None stands for none")
    with pytest.raises(ArgumentError) as caught:
        conv(given["src"], given["wei"], given["bias"], **Q, dst="s32", out=out)
    assert caught.value.argument == argument


def test_buffers(layer: Conv) -> None:
    np.testing.assert_array_equal(layer(memoryview(SRC.tobytes()).cast("B", SRC.shape)), WANT)
    with pytest.raises(ShapeError, match="src"):
        layer(bytearray(SRC.tobytes()))
    rows = array.array("B", bytes(range(24)))
    weights = np.ones((24, 3), np.int8)
    product = MatMul(weights, **Q)
    with pytest.raises(ShapeError, match="src"):
        product(rows)
    np.testing.assert_array_equal(product(memoryview(rows).cast("B", (1, 24))), [[228.0] * 3])
    out = array.array("f", [0.0] * 3)
    product(memoryview(rows).cast("B", (1, 24)), out=memoryview(out).cast("B").cast("f", (1, 3)))
    assert out.tolist() == [228.0] * 3


def test_numpy_s_own_subclasses_are_arrays(layer: Conv, tmp_path: Any) -> None:
    on_disk = np.memmap(tmp_path / "src", np.uint8, "w+", shape=SRC.shape)
    on_disk[...] = SRC
    for src in (on_disk, SRC.view(foreign.Own)):
        got = layer(src)
        assert type(got) is np.ndarray
        np.testing.assert_array_equal(got, WANT)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_matrices_are_arrays() -> None:
    """Their product is another, they have two dimensions in any shape, and one warns of them."""
    wei, src = RNG.normal(size=(4, 5)), RNG.normal(size=(3, 4))
    wei, src = wei.astype(np.float32), src.astype(np.float32)
    post = Chain(Affine(np.arange(1.0, 6.0)), Round())
    wanted = MatMul(wei, post=post)(src)
    out = np.asmatrix(np.zeros((3, 5), np.float32))
    product = MatMul(np.asmatrix(wei), post=post)
    product(np.asmatrix(src), out=out)
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(product(np.asmatrix(src)), wanted)
    codes = MatMul(np.asmatrix(WEI[:, :, 0, 0].T.copy()), **Q, dst="s32")
    rows = SRC.reshape(-1, 8)
    np.testing.assert_array_equal(codes(np.asmatrix(rows)), codes(rows))


def test_read_only_inputs_and_outputs(layer: Conv) -> None:
    frozen = {name: LAYOUTS["read_only"](value) for name, value in (("s", SRC), ("w", WEI))}
    np.testing.assert_array_equal(conv(frozen["s"], frozen["w"], BIAS, **Q, dst="s32"), WANT)
    for lie in (np.ascontiguousarray, channels_last):
        out = LAYOUTS["read_only"](lie(np.zeros_like(WANT)))
        with pytest.raises(ArgumentError, match="out: got a read-only array"):
            layer(SRC, out=out)


def test_out_of_another_kind(layer: Conv) -> None:
    with pytest.raises(DTypeError, match="out: got float32; wanted int32"):
        layer(SRC, out=np.zeros(WANT.shape, np.float32))
    with pytest.raises(ShapeError, match="out"):
        layer(SRC, out=np.zeros(WANT.shape[1:], np.int32))


@pytest.mark.parametrize("post", [Chain(), Chain(Sum(0.5), Sum(2.0)), Chain(Sum(1.0))])
def test_elements_of_out_share_no_memory(post: Chain) -> None:
    """What is written last would stay."""
    call = CALL.but(post=post, residual=np.ones_like(WANT) if len(post) else None)
    for steps in ((0, 48, 12, 4), (192, 12, 0, 4), (192, 12, 8, 4)):
        memory = np.zeros(2 * WANT.size, np.int32)
        out = np.lib.stride_tricks.as_strided(memory, WANT.shape, steps)
        with pytest.raises(LayoutError, match="share no memory"):
            call.run(out=out)
        assert not memory.any()


@pytest.mark.parametrize("post", [Chain(), Chain(Sum(1.0)), Chain(Sum(0.5), Sum(2.0))])
@pytest.mark.parametrize("lie", [np.ascontiguousarray, channels_last])
def test_out_overlaps_no_source(post: Chain, lie: Any) -> None:
    """Whatever layout it has, and before anything is written."""
    dst = np.zeros((2, 8, 6, 5), np.uint8)
    memory = np.zeros(dst.nbytes + 8, np.uint8)
    src = (
        lie(memory[8:].reshape(dst.shape))
        if lie is np.ascontiguousarray
        else (memory[8:].reshape(2, 6, 5, 8).transpose(0, 3, 1, 2))
    )
    src[...] = SRC
    out = memory[:-8].reshape(dst.shape)
    call = Call("conv", src, np.ones((8, 8, 1, 1), np.int8), **Q, dst="u8", post=post)
    call = call.but(residual=np.ones_like(dst) if len(post) else None)
    with pytest.raises(AliasError) as caught:
        call.run(out=out)
    assert caught.value.argument == "src"
    np.testing.assert_array_equal(src, SRC)


def test_operands_and_residuals_lie_in_out_or_apart_from_it() -> None:
    post = Chain(Sum(2.0), Binary("add", Leaf("other", "s32")))
    memory = np.zeros(WANT.size + 16, np.int32)
    out = memory[:-16].reshape(WANT.shape)
    out[...] = np.arange(WANT.size).reshape(WANT.shape) % 50
    kept = out.copy()
    call = CALL.but(post=post, residual=kept, operands={"other": kept})
    want = call.meaning()
    got = CALL.but(post=post, operands={"other": out}).run(out=out)
    want.check_equal(got)
    shifted = memory[16:].reshape(WANT.shape)
    for name in ("residual", "other"):
        given: dict[str, Any] = {"residual": kept, "other": kept, name: shifted}
        again = CALL.but(post=post, residual=given.pop("residual"), operands=given)
        with pytest.raises(AliasError) as caught:
            again.run(out=out)
        assert caught.value.argument == name


def test_a_residual_of_another_type_is_no_bits_of_this_one() -> None:
    call = CALL.but(post=Chain(Sum()), dst="s8", residual=np.full(WANT.shape, 200, np.uint8))
    with pytest.raises(DTypeError, match="residual: got u8; wanted s8"):
        call.run()
    asked = call.but(post=Chain(Sum(1.0, 0, "u8")))
    asked.meaning().check_equal(asked.run())


def test_tensors_that_claim_more_than_memory() -> None:
    one = np.ones((1, 1, 1, 1), np.uint8)
    for dims in ((2**50, 8, 3, 3), (2**20, 2**20, 2**10, 8)):
        claimed = np.broadcast_to(one, dims)
        with pytest.raises(ShapeError, match="src"):
            conv(claimed, WEI, BIAS, **Q)
        with pytest.raises(ShapeError, match="wei"):
            conv(SRC, claimed.view(np.int8), **Q)
    with pytest.raises(ShapeError, match="dimensions up to 2147483647"):
        MatMul(np.ones((4, 4), np.int8), **Q)(np.broadcast_to(one[0, 0], (2**40, 4)))


@pytest.mark.parametrize("name", ["stride", "dilation"])
def test_a_window_beyond_32_bits(name: str) -> None:
    """One tap in one place: any step would do, but the library divides by zero."""
    src, wei = np.ones((1, 8, 1, 1), np.uint8), np.ones((5, 8, 1, 1), np.int8)
    options: dict[str, Any] = {**Q, name: 2**40}
    for function in (conv, deconv):
        with pytest.raises(ShapeError, match=f"{name}.* up to 2147483647"):
            function(src, wei, **options)
