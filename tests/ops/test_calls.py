"""What calls return, against the float64 meaning: every kind, type, granularity and chain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, SaturationError, UnsupportedError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Binary, Chain, Eltwise, Leaf, PRelu, Sum
from pyonednn_q.native import runtime
from pyonednn_q.qparams import QParams
from support.calls.call import KINDS, Call
from support.calls.draw import dst_dims, narrowed, random_call, random_values
from support.isa import takes
from support.oracle_numbers import INTEGER_RANGES, numpy_dtype

C = 16
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "conv": ((2, 8, 6, 5), (C, 8, 3, 3), {"padding": 1}),
    "conv 1-D": ((2, 8, 9), (C, 8, 3), {"stride": 2}),
    "conv 3-D": ((1, 8, 4, 5, 3), (C, 8, 2, 3, 2), {"padding": ((1, 0), (0, 1), (1, 1))}),
    "conv dilated": ((2, 8, 9, 8), (C, 8, 3, 2), {"dilation": (2, 3)}),
    "conv four sides": ((2, 8, 6, 5), (C, 8, 3, 3), {"padding": ((2, 0), (0, 1)), "stride": 2}),
    "conv groups": ((2, 32, 6, 5), (C, 16, 3, 3), {"groups": 2, "padding": 1}),
    "conv depthwise": ((2, C, 6, 5), (C, 1, 3, 3), {"groups": C, "padding": 1}),
    "conv 1x1": ((2, 20, 4, 5), (C, 20, 1, 1), {}),
    "deconv": ((2, 8, 5, 4), (C, 8, 2, 2), {"stride": 2}),
    "deconv 1-D": ((2, 8, 7), (C, 8, 3), {}),
    "inner_product": ((5, 24), (C, 24), {}),
    "inner_product 2-D": ((3, 4, 2, 3), (C, 4, 2, 3), {}),
    "matmul": ((7, 24), (24, C), {}),
    "matmul shared": ((2, 3, 5, 24), (24, C), {}),
    "matmul batched": ((3, 5, 24), (3, 24, C), {}),
}
SCALE = np.resize([0.25, 0.5, 1.0], C)


def clean(shape: str, src: str = "u8", wei: str = "s8", **more: Any) -> Call:
    """A call on small whole numbers with scales that are powers of two: float32 is exact."""
    rng = np.random.default_rng(7)
    kind = shape.partition(" ")[0]
    src_dims, wei_dims, window = SHAPES[shape]
    axis = -1 if kind == "matmul" else 0
    low = 0 if src == "u8" else -7
    # Without VNNI, kernels for s8 sources lose the last bit of odd weights.
    codes = 2 * rng.integers(-3, 4, wei_dims)
    middle = 128 if wei == "u8" else 0
    given: dict[str, Any] = {
        "src": rng.integers(low, 8, src_dims).astype(numpy_dtype(src)),
        "wei": (codes + middle).astype(numpy_dtype(wei)),
        "bias": (np.arange(C) - 6.5).astype(np.float32),
        "src_q": QParams(0.5, 0, src),
        "wei_q": QParams(SCALE, middle, wei, axis=axis),
        "window": window,
    }
    return Call(kind, **(given | more))


def store(dst: str) -> dict[str, Any]:
    """A result of that type, quantized if it is 8-bit."""
    return {"dst_q": QParams(0.5, 18, dst)} if dst in {"u8", "s8"} else {"dst": dst}


@pytest.mark.parametrize("dst", ["u8", "s8", "s32", "f32", "bf16", "f16"])
@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_kind_and_type(shape: str, src: str, dst: str) -> None:
    """What no kernel stores (f16, bf16 on some CPUs), a primitive behind it does."""
    call = clean(shape, src, **store(dst))
    call.meaning().check_equal(call.run())


@pytest.mark.parametrize("shape", SHAPES)
def test_weights_of_u8(shape: str) -> None:
    call = clean(shape, wei="u8", **store("u8"))
    got = call.operator()
    call.meaning().check_equal(call.run(got))
    assert "stored as s8, less 128" in got.weights.note
    assert got.weights.zero_point.is_all(0.0)


@pytest.mark.parametrize("shape", ["conv", "conv four sides", "inner_product", "matmul"])
@pytest.mark.parametrize("point", [3, 200])
def test_source_zero_points(shape: str, point: int) -> None:
    """Padded places hold real 0: the code of the zero point, not 0."""
    call = clean(shape, src_q=QParams(0.5, point, "u8"), **store("s32"))
    call.meaning().check_equal(call.run())


def test_a_padded_place_is_worth_nothing() -> None:
    src = np.full((1, 8, 3, 3), 9, np.uint8)
    wei = np.ones((C, 8, 3, 3), np.int8)
    q: dict[str, Any] = {"src_q": QParams(1.0, 9, "u8"), "wei_q": QParams(1.0, 0, "s8")}
    call = Call("conv", src, wei, window={"padding": 1}, dst="s32", **q)
    assert not call.run().any()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("wei", ["s8", "u8"])
def test_asymmetric_weights_that_fit_are_shifted(shape: str, wei: str) -> None:
    """One zero point for the tensor, or one for each channel: subtracted from the codes."""
    middle = 128 if wei == "u8" else 0
    each = middle + 2 * (np.arange(C) % 5 - 2)
    for points, axis in ((middle + 4, None), (each, -1 if shape.startswith("matmul") else 0)):
        scale = 0.5 if axis is None else SCALE
        call = clean(shape, wei=wei, wei_q=QParams(scale, points, wei, axis=axis), **store("s32"))
        operator = call.operator()
        call.meaning().check_equal(call.run(operator))
        assert "subtracted" in operator.weights.note


def wide(shape: str) -> Call:
    """Weights from -128 to 127 with a zero point: their difference has nine bits."""
    call = clean(shape, wei_q=QParams(0.5, 4, "s8"), **store("s32"))
    codes = np.resize(np.array([-128, 126, 0, 2, -4], np.int8), call.wei.shape)
    return call.but(wei=codes)


@pytest.mark.parametrize("shape", [name for name in SHAPES if name[0] in "im"])
def test_asymmetric_weights_that_do_not_fit_keep_their_zero_point(shape: str) -> None:
    """Without VNNI they are too wide as they are, and come in parts."""
    call = wide(shape)
    operator = call.operator()
    if runtime.isa().has_vnni():
        assert operator.weights.zero_point.is_all(4.0)
    else:
        assert operator.weights.parts is not None
        assert np.abs(operator.weights.values.astype(int)).max() <= 64
    call.meaning().check_equal(call.run(operator))


def result_or_refusal(call: Call) -> Any:
    try:
        return call.run()
    except (ArgumentError, UnsupportedError) as error:
        return error


@pytest.mark.parametrize("shape", [name for name in SHAPES if name[0] in "cd"])
def test_asymmetric_weights_of_convolutions_come_in_parts(shape: str) -> None:
    call = wide(shape)
    operator = call.operator()
    assert operator.weights.zero_point.is_all(0.0)
    assert operator.weights.parts is not None
    call.meaning().check_equal(call.run(operator))


@pytest.mark.parametrize("shape", ["conv", "deconv", "inner_product", "matmul"])
def test_a_scale_for_the_tensor(shape: str) -> None:
    call = clean(shape, wei_q=QParams(0.25, 0, "s8"), **store("u8"))
    call.meaning().check_equal(call.run())


@pytest.mark.parametrize("shape", ["conv", "deconv", "inner_product", "matmul"])
def test_a_bias_in_units_of_the_accumulator(shape: str) -> None:
    """s32 as ONNX and TFLite have it, worth src_scale · wei_scale each; f32 in real units."""
    units = (np.arange(C) * 3 - 20).astype(np.int32)
    in_acc = clean(shape, bias=units, **store("f32"))
    real = in_acc.but(bias=(units * 0.5 * SCALE).astype(np.float32))
    got = in_acc.run()
    in_acc.meaning().check_equal(got)
    np.testing.assert_array_equal(got, real.run())


@pytest.mark.parametrize("shape", ["conv", "inner_product", "matmul"])
def test_odd_zero_points_of_dst(shape: str) -> None:
    """At ties oneDNN rounds after the zero point was added, ONNX before: both on demand."""
    q: dict[str, Any] = {
        "dst_q": QParams(1.0, 7, "s8"),
        "wei_q": QParams(0.25, 0, "s8"),
        "src_q": QParams(0.5, 0, "u8"),
    }
    call = clean(shape, bias=None, **q)
    exact = call.but(exact_rounding=True)
    one, other = call.run(), exact.run()
    call.meaning().check_equal(one)
    exact.meaning().check_equal(other)
    assert (one != other).any()


def test_exact_rounding_takes_relu_and_an_integer_bias() -> None:
    units = (np.arange(C) * 5 - 40).astype(np.int32)
    q: dict[str, Any] = {"dst_q": QParams(0.7, 31, "u8"), "src_q": QParams(0.37, 5, "u8")}
    call = clean("conv", bias=units, exact_rounding=True, post=Chain(Eltwise("relu")), **q)
    call.meaning().check_equal(call.run())


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("shape", ["conv", "conv groups", "inner_product 2-D", "matmul"])
def test_floating_sources(shape: str, dtype: str) -> None:
    """A CPU that does not know the type is told so."""
    call = clean(shape)
    src, wei = (array.astype(numpy_dtype(dtype)) for array in (call.src, call.wei))
    call = call.but(src=src, wei=wei, src_q=None, wei_q=None, post=Chain(Eltwise("relu")))
    if takes(runtime.isa(), dtype):
        call.meaning().check_equal(call.run())
    else:
        with pytest.raises(UnsupportedError, match=f"src:{dtype}(.|\n)*cast to f32: "):
            call.run()


GATE, SHIFT, OTHER = (
    Leaf("gate", "f32", "per_channel"),
    Leaf("shift", "f32", "per_tensor"),
    Leaf("other", "s8"),
)
CHAINS = {
    "relu": Chain(Eltwise("relu")),
    "prelu": Chain(PRelu(np.resize([0.25, 0.5, -0.5], C))),
    "leaky": Chain(Eltwise("relu", 0.25)),
    "affine per channel": Chain(Affine(np.resize([0.5, 2.0], C), np.arange(C) / 4.0)),
    "fake quantize": FakeQuantize(0.0, 63.75, 0.0, 63.75).chain(),
    "fake quantize per channel": FakeQuantize(0.0, 63.75 * SCALE, 0.0, 63.75 * SCALE).chain(),
    "residual": Chain(Sum(0.5, 3)),
    "residual, relu": Chain(Sum(2.0), Eltwise("relu")),
    "operands": Chain(Binary("mul", GATE), Binary("add", SHIFT), Binary("add", OTHER)),
    "operand first": Chain(Binary("max", OTHER), Affine(0.5, 1.0), Eltwise("relu")),
    "comparison": Chain(Binary("ge", OTHER), Affine(4.0, -9.0)),  # u8 codes 0 and 8
    "everything": Chain(Affine(0.5, 1.0), Sum(1.0, 2), Binary("add", OTHER), PRelu(0.25)),
}


def with_operands(call: Call) -> Call:
    """Fill in what the chain reads: whole numbers."""
    rng = np.random.default_rng(3)
    dims = dst_dims(call)
    read = [step.operand for step in call.post if isinstance(step, Binary)]
    shapes = {"full": dims, "per_channel": (C,), "per_tensor": (1,)}
    leaves = [leaf for leaf in read if isinstance(leaf, Leaf)]
    given = {leaf.name: random_values(rng, shapes[leaf.extent], leaf.dtype, 5) for leaf in leaves}
    if any(isinstance(step, Sum) for step in call.post):
        call = call.but(residual=random_values(rng, dims, call.dtype))
    return call.but(operands=given)


@pytest.mark.parametrize("dst", ["u8", "s32", "f32"])
@pytest.mark.parametrize("shape", ["conv", "deconv", "inner_product", "matmul batched"])
@pytest.mark.parametrize("chain", CHAINS)
def test_chains(chain: str, shape: str, dst: str) -> None:
    steps = CHAINS[chain]
    if dst == "f32":
        steps = Chain(*(Sum(s.scale) if isinstance(s, Sum) else s for s in steps))
    call = with_operands(clean(shape, post=steps, **store(dst)))
    call.meaning().check_equal(call.run())
    call.meaning().check_equal(call.run_functional())


@pytest.mark.parametrize("chain", ["residual", "residual, relu", "everything"])
@pytest.mark.parametrize("shape", ["conv", "matmul"])
def test_a_residual_is_copied_or_lies_in_out(shape: str, chain: str) -> None:
    call = with_operands(clean(shape, post=CHAINS[chain], **store("u8")))
    assert call.residual is not None
    kept = call.residual.copy()
    out = np.empty_like(kept)
    assert call.run(out=out) is out
    call.meaning().check_equal(out)
    np.testing.assert_array_equal(call.residual, kept)
    in_place = kept.copy()
    assert call.but(residual=None).run(out=in_place) is in_place
    call.meaning().check_equal(in_place)


@pytest.mark.parametrize("kind", KINDS)
def test_random_calls(kind: str) -> None:
    """Dirty numbers: any type, layout, granularity and chain, within what float32 may do.

    What a kernel without VNNI does not sum exactly is refused, and tried with narrower weights;
    those of a single column may be refused still, for kernels add 128 to them.
    """
    right = 0
    for seed in range(60):
        call = random_call(np.random.default_rng([seed, KINDS.index(kind)]), kind)
        got = result_or_refusal(call)
        if isinstance(got, SaturationError):
            call = narrowed(call)
            got = result_or_refusal(call)
        if not isinstance(got, Exception):
            call.meaning().check(got)
            right += 1
    assert right > 40


def test_every_integer_range_is_reached() -> None:
    """Extreme codes on both sides: the accumulator is exact."""
    for src in ("u8", "s8"):
        call = clean("matmul", src, **store("s32"), bias=None)
        least, greatest = INTEGER_RANGES[src]
        codes = np.resize(np.array([least, greatest]), call.src.shape).astype(call.src.dtype)
        weights = np.resize(np.array([-64, 64, 0], np.int8), call.wei.shape)
        call = call.but(
            src=codes, wei=weights, wei_q=QParams(1.0, 0, "s8"), src_q=QParams(1.0, 0, src)
        )
        call.meaning().check_equal(call.run())
