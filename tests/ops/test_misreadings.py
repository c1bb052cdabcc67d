"""self_check sees misreadings of every argument, planted into what runs, on every kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.expr.vec import Vec
from pyonednn_q.ops.requantized import Requantized
from pyonednn_q.ops.weights import Parts
from support.misreadings import (
    CHANNELS,
    KINDS,
    WINDOWED,
    Misreading,
    made,
    of_bias,
    of_floats,
    of_form,
    of_method,
    of_post,
    of_requantizer,
    of_result,
    of_settings,
    of_source,
    of_wei,
    of_wei_q,
    of_weights,
    of_window,
)

COUNTS = np.linspace(-900, 3000, CHANNELS).astype(np.int32)
SYMMETRIC = {"src_q": pq.QParams(0.05, 0, "u8")}
SIGNED = {"src_q": pq.QParams(0.05, 7, "s8")}
PER_ROW = {"src_q": pq.Dynamic("u8", "per_row")}
DYNAMIC = {"src_q": pq.Dynamic("u8")}
SUM = pq.Sum(0.5, 9, "u8")
RESIDUAL = {"post": pq.Chain(SUM, pq.Eltwise("relu"))}
GATED = {
    "post": pq.Chain(pq.Binary("mul", pq.Leaf("gate", "f32", "per_channel")), pq.PRelu(0.25)),
}
PER_CHANNEL = {"post": pq.Chain(pq.Affine(np.linspace(0.5, 2, CHANNELS)), pq.Eltwise("relu"))}
ASYMMETRIC = {
    "wei_q": pq.QParams(
        np.full(CHANNELS, 0.02), np.resize([126, 128, 130], CHANNELS), "u8", axis=0
    ),
}
IN_PARTS = {
    "wei_q": pq.QParams(np.full(CHANNELS, 0.02), np.arange(20, 240, 28), "u8", axis=0),
}
FIXED = {"requantize": "tflite_2step", "bias": COUNTS}
# Where kinds are named, a misreading has no meaning for the others: no kernel with places in it (a
# matmul), no window or groups (an inner product, too), no rows of their own (images), or no other
# form of the operator that could have it wrong.
MATRICES = ("inner_product", "matmul")
IMAGES = (*WINDOWED, "inner_product")


def q(**change: Any) -> Any:
    """Return what changes QParams, by field."""

    def changed(params: pq.QParams) -> pq.QParams:
        fields = {name: getattr(params, name) for name in ("scale", "zero_point", "dtype", "axis")}
        return pq.QParams(
            **{**fields, **{name: make(fields[name]) for name, make in change.items()}}
        )

    return changed


def reversed_channels(values: Any) -> Any:
    return Vec(values.values()[::-1]) if isinstance(values, Vec) else np.asarray(values)[::-1]


def without(kind: type) -> Any:
    return lambda *steps: pq.Chain(*(step for step in steps if not isinstance(step, kind)))


def changed(kind: Any, **change: Any) -> Any:
    """Return a chain whose steps of a kind have other fields."""
    return lambda *steps: pq.Chain(
        *(replace(step, **change) if isinstance(step, kind) else step for step in steps)
    )


def found(**change: Any) -> Any:
    """Return what changes fields of the codes that a call finds."""
    return of_floats(
        "dynamic_codes",
        lambda usual, *args: replace(
            (codes := usual(*args)),
            **{name: make(getattr(codes, name)) for name, make in change.items()},
        ),
    )


def of_images(change: Any) -> Any:
    """Return what changes weights as of images; products have them as columns."""

    def changed(wei: Any) -> Any:
        if wei.ndim > 3:
            return change(wei)
        columns = wei.reshape(-1, CHANNELS).T
        dims = (CHANNELS, 8, 2, 2) if len(columns.T) == 32 else columns.shape
        return change(columns.reshape(dims)).reshape(columns.shape).T.reshape(wei.shape)

    return of_wei(changed)


def unpadded(_: Any) -> Any:
    return ((0, 0), (0, 0))


ALL = [
    # The bias.
    Misreading("real bias as counts", of_bias(lambda bias: np.rint(bias).astype(np.int32))),
    Misreading("counts as a real bias", of_bias(lambda bias: bias.astype(np.float32)),
               {"bias": COUNTS}),
    Misreading("bias dropped", of_bias(lambda bias: 0 * bias)),
    Misreading("bias of the neighbour", of_bias(lambda bias: np.roll(bias, 1))),
    Misreading("bias subtracted", of_bias(lambda bias: -bias)),
    # Scales and zero points.
    Misreading("src zero point dropped", of_settings(src_q=q(zero_point=lambda _: 0))),
    Misreading("src zero point of the other sign", of_settings(src_q=q(zero_point=lambda z: -z)),
               SIGNED),
    Misreading("src scale squared", of_settings(src_q=q(scale=lambda s: s * s))),
    Misreading("src scale dropped", of_settings(src_q=q(scale=lambda _: 1.0))),
    Misreading("wei scales of channels reversed", of_weights(scale=reversed_channels)),
    Misreading("wei scale of the first channel", of_weights(scale=lambda s: Vec(s.values()[0]))),
    Misreading("dst zero point dropped", of_settings(dst_q=q(zero_point=lambda _: 0))),
    Misreading("dst zero point twice", of_settings(dst_q=q(zero_point=lambda z: 2 * z))),
    Misreading("dst zero point of the other sign",
               of_settings(dst_q=q(zero_point=lambda z: -z)), {"dst_q": pq.QParams(0.7, 11, "s8")}),
    Misreading("dst scale inverted", of_settings(dst_q=q(scale=lambda s: 1 / s))),
    Misreading("dst scale dropped", of_settings(dst_q=q(scale=lambda _: 1.0))),
    Misreading("wei zero point dropped", of_wei_q(q(zero_point=lambda _: 0)),
               {"wei_q": pq.QParams(0.02, 2, "s8")}),
    Misreading("wei zero points of the neighbour",
               of_wei_q(q(zero_point=lambda z: np.roll(z, 1))), ASYMMETRIC),
    Misreading("wei zero point of the first channel",
               of_wei_q(q(zero_point=lambda z: np.full_like(z, z[0]))), ASYMMETRIC),
    # Weights.
    Misreading("channels repeated in another order",
               of_method(Parts, "of", lambda usual, parts, src: usual(
                   parts, np.flip(src, parts.axis))), IN_PARTS),
    Misreading("kernel flipped", of_images(lambda wei: wei[..., ::-1, ::-1]), kinds=IMAGES),
    Misreading("kernel transposed", of_images(lambda wei: wei.swapaxes(-1, -2)), kinds=IMAGES),
    Misreading("weights transposed", of_images(lambda wei: wei.swapaxes(0, 1)), kinds=IMAGES),
    Misreading("groups swapped", of_wei(lambda wei: wei[::-1]), {"groups": 2}, WINDOWED),
    Misreading("outputs of a group swapped", of_wei(lambda wei: wei[:, ::-1]), {"groups": 2},
               WINDOWED),
    Misreading("output channels moved by one", of_images(lambda wei: np.roll(wei, 1, 0))),
    Misreading("weights negated", of_wei(lambda wei: -wei)),
    Misreading("input channels reversed", of_images(lambda wei: np.flip(wei, 1))),
    # The window.
    Misreading("strides swapped", of_window(stride=lambda s: s[::-1]), {"stride": (2, 1)},
               WINDOWED),
    Misreading("padding of height and width swapped", of_window(padding=lambda p: p[::-1]),
               {"padding": ((2, 0), (0, 2))}, WINDOWED),
    Misreading("padding before and behind swapped",
               of_window(padding=lambda p: tuple((hi, lo) for lo, hi in p)),
               {"padding": ((1, 0), (0, 1))}, WINDOWED),
    Misreading("padding dropped", of_window(padding=unpadded), {"padding": 1}, WINDOWED),
    Misreading("dilation off by one", of_window(dilation=lambda d: tuple(n - 1 for n in d)),
               {"dilation": 2}, WINDOWED),
    Misreading("dilations swapped", of_window(dilation=lambda d: d[::-1]),
               {"dilation": (1, 2)}, WINDOWED),
    # The chain.
    Misreading("relu dropped", of_post(without(pq.Eltwise)), RESIDUAL),
    Misreading("relu before the residual", of_post(lambda *s: pq.Chain(*s[::-1])), RESIDUAL),
    Misreading("residual unscaled", of_post(changed(pq.Sum, scale=1.0)), RESIDUAL),
    Misreading("residual's zero point ignored", of_post(changed(pq.Sum, zero_point=0)), RESIDUAL),
    Misreading("residual read as s8", of_post(changed(pq.Sum, dtype="s8")), RESIDUAL),
    Misreading("bounds of a clip swapped",
               of_post(lambda clip: pq.Chain(pq.Clip(-clip.hi, -clip.lo))),
               {"post": pq.Chain(pq.Clip(-2.0, 40.0))}),
    Misreading("steps in the other order", of_post(lambda *steps: pq.Chain(*steps[::-1])),
               {"post": pq.Chain(pq.Affine(0.5, -4.0), pq.Eltwise("relu", 0.25))}),
    Misreading("scales of the chain reversed",
               of_post(lambda affine, *steps: pq.Chain(
                   pq.Affine(reversed_channels(affine.scale)), *steps)), PER_CHANNEL),
    Misreading("an operand divides", of_post(changed(pq.Binary, alg="div")), GATED),
    Misreading("slope inverted", of_post(lambda gate, _: pq.Chain(gate, pq.PRelu(4.0))), GATED),
    # The source.
    Misreading("u8 codes as s8", of_source(lambda codes: replace(
        codes, values=(codes.values ^ np.uint8(128)))), DYNAMIC | {"bias": None}),
    Misreading("rows' scales of the first",
               found(scale=lambda scale: np.full_like(scale, scale[0])), PER_ROW, MATRICES),
    Misreading("rows' zero points reversed", found(zero_point=lambda z: z[::-1].copy()), PER_ROW,
               MATRICES),
    Misreading("a call's zero point dropped", found(zero_point=lambda z: 0 * z), DYNAMIC),
    Misreading("a call's scale doubled", found(scale=lambda scale: 2 * scale), DYNAMIC),
    Misreading("floats truncated to codes", of_floats(
        "static_codes", lambda usual, values, how, *more: usual(
            np.trunc(values / how.scale).astype(np.float32) * np.float32(how.scale), how, *more))),
    Misreading("floats' zero point dropped", of_floats(
        "static_codes", lambda usual, values, how, *more: usual(
            values, pq.QParams(how.scale, 0, how.dtype), *more))),
    # The store.
    Misreading("rounded towards zero", of_result(
        lambda x, dtype: np.clip(np.trunc(x), *limits(dtype)).astype(dtype))),
    Misreading("rounded down", of_result(
        lambda x, dtype: np.clip(np.floor(x), *limits(dtype)).astype(dtype))),
    Misreading("wraps where it should saturate", of_result(
        lambda x, dtype: np.rint(x).astype(np.int64).astype(dtype))),
    Misreading("saturates one level early", of_result(
        lambda x, dtype: np.clip(np.rint(x), 0, 254).astype(dtype)),
        {"dst_q": pq.QParams(0.2, 11, "u8")}),
    # Another runtime's arithmetic.
    Misreading("src scale squared, tflite", of_requantizer(src_scale=lambda s: s * s), FIXED),
    Misreading("wei scales reversed, tflite", of_requantizer(wei_scale=reversed_channels), FIXED),
    Misreading("dst scale inverted, tflite", of_requantizer(dst_scale=lambda s: 1 / s), FIXED),
    Misreading("dst zero point dropped, tflite", of_requantizer(dst_zero_point=lambda _: 0), FIXED),
    Misreading("bias dropped, tflite", of_requantizer(bias=lambda b: 0 * b), FIXED),
    Misreading("src zero point dropped, tflite",
               of_method(Requantized, "_after_sums", lambda usual, self, op, dims, acc, ran: usual(
                   self, op, dims, acc, [lambda ones: 0 * ran[0](ones)])), FIXED),
    Misreading("bias dropped, onednn", of_requantizer(bias=lambda b: 0 * b),
               {"requantize": "onednn_separate"}),
    # Other forms of the same.
    Misreading("an inner product's weights reversed",
               of_form("inner product", lambda wei: wei[::-1]), SYMMETRIC | {"tune": True},
               ("matmul",)),
    Misreading("a 1x1 convolution's weights reversed",
               of_form("1x1 convolution", lambda wei: wei[:, ::-1]), {"tune": True}, MATRICES),
]  # fmt: skip


def limits(dtype: Any) -> tuple[int, int]:
    return np.iinfo(dtype).min, np.iinfo(dtype).max


PLANTED = [
    pytest.param(kind, one, id=f"{kind}-{one}")
    for one in ALL
    for kind in KINDS
    if kind in one.kinds
]


@pytest.mark.parametrize(("kind", "misreading"), PLANTED)
def test_a_misreading_is_seen(
    kind: str, misreading: Misreading, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, dims = made(kind, misreading.options)
    operator.prepare(dims)
    with monkeypatch.context() as patch:
        misreading.plant(patch)
        operator, dims = made(kind, misreading.options)
        with pytest.raises(pq.errors.SelfCheckError, match="self_check"):
            operator.prepare(dims)
        assert operator._hot is None  # nothing that is wrong runs in the next call


@pytest.mark.parametrize("kind", KINDS)
def test_functional_calls_see_them_too(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made_of = made(kind, {})
    operator, dims = made_of
    assert operator.asked is not None
    call = {"conv": pq.conv, "deconv": pq.deconv, "matmul": pq.matmul}.get(kind, pq.inner_product)
    asked = operator.asked
    fields = ("src_q", "dst_q", "post", "self_check")
    given = {name: getattr(operator.settings, name) for name in fields} | dict(asked.window)
    src = np.zeros(dims, np.uint8)
    arguments = (src, asked.wei, asked.bias)
    call(*arguments, wei_q=asked.wei_q, **given)
    pq.ops.operator_cache_clear()
    of_bias(lambda bias: np.roll(bias, 1))(monkeypatch)
    with pytest.raises(pq.errors.SelfCheckError, match="self_check"):
        call(*arguments, wei_q=asked.wei_q, **given)


def test_there_are_many() -> None:
    for kind in KINDS:
        assert sum(kind in one.kinds for one in ALL) >= 25
