"""Operators: shapes, shared weights, preparing ahead, copies, and what constructors refuse."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError, LayoutError, ShapeError
from pyonednn_q.expr.steps import Affine, Binary, Chain, Eltwise, Leaf, PRelu, Sum
from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct, MatMul
from pyonednn_q.ops.functional import conv, deconv
from pyonednn_q.ops.predicted import model_of
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from support.calls.call import Call

RNG = np.random.default_rng(5)
WEI = RNG.integers(-4, 5, (16, 8, 3, 3)).astype(np.int8)
BIAS = np.arange(16).astype(np.float32)
Q: dict[str, Any] = {"src_q": QParams(0.5, 2, "u8"), "wei_q": QParams(0.25, 0, "s8")}
POST = Chain(Eltwise("relu"))
DIMS = [(1, 8, 6, 5), (2, 8, 6, 5), (1, 8, 9, 9), (3, 8, 4, 7)]


def source(dims: tuple[int, ...]) -> Any:
    return RNG.integers(0, 30, dims).astype(np.uint8)


def test_sources_of_any_size_share_packed_weights() -> None:
    layer = Conv(WEI, BIAS, **Q, dst="s32", post=POST)
    for dims in DIMS * 2:
        src = source(dims)
        Call("conv", src, WEI, BIAS, **Q, dst="s32", post=POST).meaning().check_equal(layer(src))
    assert set(layer.shapes) == set(DIMS)
    one = Conv(WEI, BIAS, **Q, dst="s32", post=POST)
    one(source(DIMS[0]))
    layouts = {layer.prepare(dims).primitive.layouts["wei"] for dims in DIMS}
    assert layer.wei_bytes <= len(layouts) * one.wei_bytes
    before = layer.wei_bytes
    layer(source((5, 8, 6, 5)))
    assert layer.wei_bytes == before


@pytest.mark.parametrize("of", [Conv, Deconv])
def test_a_flat_padding_holds_the_low_sides_and_then_the_high_ones(of: type[Any]) -> None:
    src, sides = source((1, 8, 6, 5)), ((0, 1), (2, 1))
    asked = of(WEI, BIAS, **Q, padding=sides)(src)
    for flat in ([0, 2, 1, 1], np.array([0, 2, 1, 1])):
        np.testing.assert_array_equal(of(WEI, BIAS, **Q, padding=flat)(src), asked)
    function = conv if of is Conv else deconv
    for _ in range(2):
        got = function(src, WEI, BIAS, **Q, padding=[0, 2, 1, 1])
        np.testing.assert_array_equal(got, asked)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("padding", [1, 1, 1]),
        ("padding", [1, 1, 1, -1]),
        ("padding", [1, 1, 1, 1, 1, 1]),
        ("padding", "same"),
        ("stride", 0),
        ("stride", (1, 1, 1)),
        ("dilation", (0, 1)),
        ("dilation", 1.5),
    ],
)
def test_the_constructor_refuses_a_window_by_the_name_of_the_argument(name: str, bad: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"^{name}: got "):
        Conv(WEI, BIAS, **Q, **{name: bad})


def test_a_source_of_another_type_is_told_what_would_do() -> None:
    layer, dims = Conv(WEI, BIAS, **Q), (1, 8, 6, 5)
    with pytest.raises(DTypeError, match=r"astype\('uint8'\).*astype\('float32'\)") as caught:
        layer(source(dims).astype(np.int64))
    assert "int32" not in caught.value.wanted
    layer(source(dims).astype(np.int64).astype("uint8"))
    layer(source(dims).astype(np.int64).astype("float32"))
    floating = Conv(WEI.astype(np.float32))
    with pytest.raises(
        DTypeError, match=r"astype\(.float32.\).* without src_q the source is floating"
    ):
        floating(source(dims).astype(np.int64))


def test_a_source_of_foreign_byte_order_is_told_how_to_swap_it() -> None:
    for layer in (MatMul(np.ones((8, 4), np.float32)), MatMul(np.ones((8, 4), np.int8), **Q)):
        with pytest.raises(DTypeError, match=r"foreign.*astype\('float32'\).*native byte order"):
            layer(np.zeros((2, 8), ">f4"))
    with pytest.raises(
        DTypeError, match=r"astype\(.float32.\).* without src_q the source is floating"
    ):
        MatMul(np.ones((8, 4), np.float32))(np.zeros((2, 8), ">f8"))


WINDOWS = {
    "stride": "a whole number .*, or one for each spatial dimension",
    "padding": r"a whole number .*, one for each spatial dimension, or \(lo, hi\) for each",
    "dilation": "a whole number .*, or one for each spatial dimension",
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("bad", ["2", 1.5, 10**12, (1, "b"), None, {1: 2}], ids=str)
def test_a_bad_part_of_a_window_is_told_what_would_do(name: str, bad: Any) -> None:
    with pytest.raises(ShapeError, match=f"; wanted {WINDOWS[name]}$") as caught:
        Conv(WEI, **Q, **{name: bad})
    assert (caught.value.argument, caught.value.got) == (name, repr(bad))


def test_a_padding_beyond_memory_is_refused_by_its_name() -> None:
    with pytest.raises(ShapeError, match=r"^padding: got 2000000000; wanted less: "):
        Conv(WEI, **Q, padding=2_000_000_000)(source(DIMS[0]))


@pytest.mark.parametrize(
    ("wei", "src", "wanted"),
    [
        ((8, 4), (2, 7), "8 columns"),
        ((3, 8, 4), (2, 2, 8), r"leading dimensions 1 or as in wei \(3, 8, 4\)"),
        ((3, 8, 4), (2, 8), "3 dimensions"),
    ],
)
def test_a_source_that_does_not_fit_is_blamed_not_the_weights(
    wei: tuple[int, ...], src: tuple[int, ...], wanted: str
) -> None:
    product = MatMul(np.ones(wei, np.int8), **Q)
    for call in (lambda: product(source(src)), lambda: model_of(product, src)):
        with pytest.raises(ShapeError, match=f"^src: .*; wanted {wanted}"):
            call()


def test_a_shape_is_prepared_ahead() -> None:
    layer = Conv(WEI, BIAS, **Q, dst="u8")
    ready = layer.prepare((1, 8, 6, 5))
    assert layer.prepare((1, 8, 6, int(np.int64(5)))) is ready
    assert layer.shapes == ((1, 8, 6, 5),)
    layer(source((1, 8, 6, 5)))
    assert layer.prepare((1, 8, 6, 5)) is ready
    assert layer.plan((1, 8, 6, 5)) is ready.plan


@pytest.mark.parametrize(
    "dims",
    [
        (1, 9, 6, 5),
        (1, 8, 6),
        (1, 8, 1, 1),
        (-1, 8, 6, 5),
        (1, 8, 6, 2**70),
        3,
        None,
        (1, 8, 6.0, 5),
    ],
)
def test_dims_that_fit_nothing_are_refused(dims: Any) -> None:
    with pytest.raises(ShapeError):
        Conv(WEI, **Q).prepare(dims)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_compute_the_same(again: Any) -> None:
    """Weights and settings go along, primitives do not: they belong to a process."""
    leaf = Chain(Binary("add", Leaf("r", "s8")), PRelu(np.linspace(-1, 1, 16)))
    layer = Conv(WEI, BIAS, **Q, dst_q=QParams(0.5, 3, "u8"), post=leaf, padding=1, layout="dense")
    src, r = source((2, 8, 6, 5)), RNG.integers(-9, 9, (2, 16, 6, 5)).astype(np.int8)
    want = layer(src, r=r)
    other = again(layer)
    assert other.shapes == ()
    assert other.settings == layer.settings
    np.testing.assert_array_equal(other(src, r=r), want)
    np.testing.assert_array_equal(layer(src, r=r), want)


@pytest.mark.parametrize("make", [Deconv, InnerProduct, MatMul])
def test_the_other_kinds_are_pickled_too(make: Any) -> None:
    dims = {Deconv: (16, 8, 3), InnerProduct: (16, 8), MatMul: (8, 16)}[make]
    layer = make(RNG.integers(-4, 5, dims).astype(np.int8), BIAS, **Q)
    src = source((2, 8, 5) if make is Deconv else (2, 8))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(layer))(src), layer(src))


def test_weights_of_the_caller_are_not_kept() -> None:
    """What happens to them afterwards changes nothing, even before the first call."""
    for wei, q in ((WEI.copy(), Q), (RNG.normal(size=WEI.shape).astype(np.float32), {})):
        layer, bias = Conv(wei, kept := BIAS.copy(), **q), BIAS
        src = source((1, 8, 6, 5)) if q else RNG.normal(size=(1, 8, 6, 5)).astype(np.float32)
        want = Call("conv", src, wei.copy(), bias, **q).meaning()
        wei[...] = 1
        kept[...] = 1
        want.check(layer(src))


@pytest.mark.parametrize("src_dims", [(0, 8, 6, 5), (0, 8, 3, 3)])
def test_empty_batches(src_dims: tuple[int, ...]) -> None:
    assert Conv(WEI, BIAS, **Q)(np.zeros(src_dims, np.uint8)).shape[:2] == (0, 16)


@pytest.mark.parametrize("point", [0, 3])
def test_empty_batches_of_products(point: int) -> None:
    q = {**Q, "src_q": QParams(0.5, point, "u8")}
    for make, dims, wei in ((InnerProduct, (0, 8, 2), (16, 8, 2)), (MatMul, (0, 8), (8, 16))):
        got = make(np.ones(wei, np.int8), **q)(np.zeros(dims, np.uint8))
        assert got.shape == (0, 16)


S8 = QParams(0.5, 0, "s8")
U8 = QParams(0.5, 0, "u8")
EACH = QParams(np.full(16, 0.5), 0, "s8", axis=0)
WRONG: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "scales of another length": (
        ShapeError,
        "wei_q",
        {"wei_q": QParams(np.ones(7), 0, "s8", axis=0)},
    ),
    "scales along another axis": (
        ArgumentError,
        "wei_q",
        {"wei_q": QParams(np.ones(8), 0, "s8", axis=1)},
    ),
    "weights of another type": (DTypeError, "wei", {"wei_q": U8}),
    "no parameters of weights": (ArgumentError, "wei_q", {"wei_q": None}),
    "no parameters of the source": (ArgumentError, "src_q", {"src_q": None}),
    "no QParams": (ArgumentError, "wei_q", {"wei_q": {"scale": 0.5}}),
    "no QParams of dst": (ArgumentError, "dst_q", {"dst_q": (0.5, 0)}),
    "dst per channel": (ArgumentError, "dst_q", {"dst_q": EACH}),
    "dst of another type": (DTypeError, "dst", {"dst_q": U8, "dst": "s8"}),
    "dst of no type": (DTypeError, "dst", {"dst": "int9"}),
    "groups that divide nothing": (ShapeError, "wei", {"groups": 3}),
    "no groups": (ArgumentError, "groups", {"groups": 0}),
    "no policy": (ArgumentError, "policy", {"policy": np.array([1, 2])}),
    "no flag": (ArgumentError, "strict", {"strict": "no"}),
    "no layout": (ArgumentError, "layout", {"layout": "nhwc"}),
    "no chain": (ArgumentError, "post", {"post": [Eltwise("relu")]}),
    "no dialect": (ArgumentError, "requantize", {"requantize": "foo", "dst_q": U8}),
    "constants of other channels": (ShapeError, "post", {"post": Chain(Affine([1, 2, 3]))}),
    "a leaf called src": (ArgumentError, "post", {"post": Chain(Binary("add", Leaf("src")))}),
}


@pytest.mark.parametrize("what", WRONG)
def test_constructors_refuse_by_name(what: str) -> None:
    error, argument, given = WRONG[what]
    with pytest.raises(error) as caught:
        Conv(WEI, BIAS, **{**Q, **given})
    assert getattr(caught.value, "argument", None) == argument


BIASES: dict[str, tuple[type[Exception], Any]] = {
    "length": (ShapeError, BIAS[:-1]),
    "rank": (ShapeError, BIAS[None]),
    "one for all": (ShapeError, np.float32(1.0)[None]),
    "s64": (DTypeError, BIAS.astype(np.int64)),
    "s8": (DTypeError, BIAS.astype(np.int8)),
    "NaN": (ArgumentError, np.where(BIAS == 3, np.nan, BIAS).astype(np.float32)),
    "a list": (ArgumentError, BIAS.tolist()),
}


@pytest.mark.parametrize("what", BIASES)
def test_a_bad_bias_is_refused(what: str) -> None:
    error, bias = BIASES[what]
    with pytest.raises(error, match="bias"):
        Conv(WEI, bias, **Q)


def test_weights_that_are_no_numbers_are_refused() -> None:
    for value in (np.nan, np.inf):
        wei = np.full((16, 8, 1, 1), value, np.float32)
        with pytest.raises(ArgumentError, match="wei: got values that are not finite"):
            Conv(wei)
    with pytest.raises(ArgumentError, match="wei: got values that are too large"):
        Conv(np.full((16, 8, 1, 1), 3e38, np.float32), post=Chain(Affine(4.0)))
    with pytest.raises(ShapeError, match="no empty dimension"):
        MatMul(np.ones((0, 4), np.int8), **Q)


def test_a_chain_for_other_channels_is_refused() -> None:
    with pytest.raises(ShapeError, match="7 channels"):
        Conv(WEI, **Q, post=Chain(PRelu(np.arange(7.0))))


def test_a_scale_of_dst_is_refused_only_where_its_reciprocal_is_needed() -> None:
    for scale in (1e-45, 1e-40):
        with pytest.raises(ArgumentError, match=f"^dst_q: got .*{scale}; .*reciprocal.*float32"):
            Conv(WEI, **Q, dst_q=QParams(scale, 0, "u8"))
    q: dict[str, Any] = {"src_q": QParams(1e-20, 0, "u8"), "wei_q": QParams(1e-20, 0, "s8")}
    product = MatMul(np.ones((8, 4), np.int8), **q, dst_q=QParams(1e-40, 0, "u8"))
    assert (product(np.ones((1, 8), np.uint8)) == 8).all()


def test_scales_beyond_float32_are_refused() -> None:
    for scale in (3.4e38, 1e-37, 1e-300, 1e300):
        q = {**Q, "wei_q": QParams(scale, 0, "s8"), "src_q": QParams(scale, 0, "u8")}
        exact: dict[str, Any] = {"exact_rounding": True}
        for more in ({}, exact):
            with pytest.raises(ArgumentError):
                Conv(WEI, dst_q=U8, **q, **more).prepare((1, 8, 6, 5))


@pytest.mark.parametrize("name", ["self", "wei", "bias", "dst", "operands"])
def test_leaves_may_be_called_anything_else(name: str) -> None:
    layer = Conv(WEI, **Q, post=Chain(Binary("add", Leaf(name, "f32", "per_tensor"))))
    src = source((1, 8, 6, 5))
    got = layer(src, **{name: np.ones(1, np.float32)})
    np.testing.assert_array_equal(got, Conv(WEI, **Q)(src) + 1)


def test_sources_are_what_was_announced() -> None:
    layer = Conv(WEI, **Q)
    for dtype in (np.int8, np.float64, np.int32, bool, object, "S1", "M8[s]", ">i4"):
        with pytest.raises(DTypeError, match="src"):
            layer(source((1, 8, 6, 5)).astype(dtype))
    with pytest.raises(DTypeError, match="src"):
        Conv(WEI.astype(np.float32))(source((1, 8, 6, 5)))


def test_codes_of_another_runtime_are_not_written_over_each_other() -> None:
    dst_q = QParams(1.0, 0, "s8")
    wei = WEI[:, :, 0, 0].T.copy()
    layer = MatMul(wei, **Q, dst_q=dst_q, requantize="caffe2")
    src = source((3, 8))
    want = layer(src)
    np.testing.assert_array_equal(layer(src, out=np.empty_like(want)), want)
    one_row = np.lib.stride_tricks.as_strided(np.zeros(16, np.int8), (3, 16), (0, 1))
    with pytest.raises(LayoutError, match="out"):
        layer(src, out=one_row)


@pytest.mark.parametrize("how", ["as the sums lie", "row-major", "every other row"])
def test_codes_of_another_runtime_go_where_they_are_wanted(how: str) -> None:
    layer = Conv(WEI, **Q, dst_q=QParams(1.0, 3, "u8"), requantize="tflite_2step")
    src = source((2, 8, 6, 5))
    want = layer(src)
    out = {
        "as the sums lie": np.empty_like(want),
        "row-major": np.empty(want.shape, np.uint8),
        "every other row": np.empty((*want.shape[:2], 2 * want.shape[2], want.shape[3]), np.uint8)[
            :, :, ::2
        ],
    }[how]
    assert layer(src, out=out) is out
    np.testing.assert_array_equal(out, want)


def test_a_sum_does_not_read_bytes_as_words() -> None:
    """An 8-bit tensor has too few bits for what the Sum reads."""
    dynamic = {**Q, "src_q": Dynamic("u8"), "dst_q": QParams(0.5, 3, "u8")}
    layer = Conv(WEI, **dynamic, post=Chain(Sum(1.0, 0, "bf16")))
    residual = np.zeros((1, 16, 4, 3), np.uint8)
    with pytest.raises(DTypeError, match="residual"):
        layer(source((1, 8, 6, 5)).astype(np.float32), residual=residual)


@pytest.mark.parametrize(("scale", "is_refused"), [(1.2e-38, True), (1e-30, False)])
def test_scales_that_lead_sums_beyond_float32_are_refused(scale: float, is_refused: bool) -> None:
    """An infinite sum times a slope of 0 is no number, and was stored as code 0."""
    wei = np.full((64, 4), -60, np.int8)  # no pair of products is beyond 16 bits
    post = Chain(PRelu(np.array([0.0, 0.25, 0.5, 1.0])), Affine(shift=1.0))
    options: dict[str, Any] = {
        "src_q": QParams(0.5, 0, "u8"),
        "wei_q": QParams(0.25, 0, "s8"),
        "dst_q": QParams(scale, 0, "u8"),
        "post": post,
    }
    if is_refused:
        with pytest.raises(ArgumentError, match="beyond float32"):
            MatMul(wei, **options)
        return
    dst = MatMul(wei, **options)(np.full((3, 64), 255, np.uint8))
    np.testing.assert_array_equal(dst, np.tile(np.array([255, 0, 0, 0], np.uint8), (3, 1)))


@pytest.mark.parametrize("dims", [(0, 8), (0, 1, 1, 8), (2, 0, 8)])
def test_no_sums_are_requantized_to_no_codes(dims: tuple[int, ...]) -> None:
    wei = np.ones((*(1 for _ in dims[:-2]), 8, 3), np.int8)
    q = QParams(0.5, 3, "u8")
    layer = MatMul(wei, src_q=q, wei_q=Q["wei_q"], dst_q=q, requantize="tflite_2step")
    got = layer(np.zeros(dims, np.uint8))
    assert (got.shape, got.dtype) == ((*dims[:-1], 3), np.dtype(np.uint8))
