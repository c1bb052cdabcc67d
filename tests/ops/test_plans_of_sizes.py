"""An operator composes once: what it plans for a size is what one that saw no other would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q import Affine, Binary, Chain, Eltwise, QParams, Sum
from pyonednn_q.compose import composer
from pyonednn_q.errors import UnsupportedError
from pyonednn_q.expr.steps import Leaf
from pyonednn_q.primitive import dense_facts

RNG = np.random.default_rng(20)
CHANNELS = 8
SLOPES = RNG.uniform(0.5, 2.0, CHANNELS)
POSTS: dict[str, Chain] = {
    "nothing": Chain(),
    "relu": Chain(Eltwise("relu")),
    "residual": Chain(Sum(0.5), Eltwise("relu")),
    "scale behind relu": Chain(Eltwise("tanh"), Affine(SLOPES, 0.25)),
    "constants": Chain(Eltwise("tanh"), Binary("mul", SLOPES), Binary("max", -SLOPES)),
    "full operand": Chain(Binary("add", Leaf("r"))),
    "operand of channels": Chain(Eltwise("tanh"), Binary("mul", Leaf("r", "f32", "per_channel"))),
    "left over": Chain(Eltwise("tanh"), Eltwise("round"), Binary("mul", Leaf("r"))),
}
SOURCES: dict[str, tuple[type[Any], tuple[int, ...], list[tuple[int, ...]]]] = {
    "conv": (pq.Conv, (8, 4, 3, 3), [(1, 4, 3, 3), (2, 4, 5, 9), (1, 4, 8, 8)]),
    "padded": (pq.Conv, (8, 4, 3, 3), [(1, 4, 1, 1), (2, 4, 5, 9), (1, 4, 8, 8)]),
    "deconv": (pq.Deconv, (8, 4, 2, 2), [(1, 4, 1, 1), (2, 4, 5, 3)]),
    "inner_product": (pq.InnerProduct, (8, 12), [(1, 12), (9, 12), (3, 12)]),
    "matmul": (pq.MatMul, (12, 8), [(1, 12), (9, 12), (2, 5, 12), (3, 5, 12)]),
    "batched": (pq.MatMul, (3, 12, 8), [(3, 1, 12), (3, 7, 12)]),
}


def operator(kind: str, post: str, **options: Any) -> Any:
    """Make one of u8 sources with a zero point, s8 weights per channel and a u8 result."""
    make, wei_dims, _ = SOURCES[kind]
    axis = len(wei_dims) - 1 if make is pq.MatMul else 0
    rng = np.random.default_rng(5)
    return make(
        rng.integers(-60, 61, wei_dims).astype(np.int8),
        rng.normal(0, 3, CHANNELS).astype(np.float32),
        src_q=options.pop("src_q", QParams(0.017, 3, "u8")),
        wei_q=QParams(rng.uniform(1e-3, 3e-3, CHANNELS), 0, "s8", axis),
        dst_q=QParams(0.05, 7, "u8"),
        post=POSTS[post],
        **({"padding": 1} if kind == "padded" else {}),
        **options,
    )


def planned(one: Any, dims: tuple[int, ...]) -> tuple[object, ...] | str:
    """Return the plan, with what is not compared of it, or why there is none."""
    try:
        plan = one.plan(dims)
    except UnsupportedError as error:
        return str(error)
    return plan, plan.records, plan.facts.dst_dims


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("kind", SOURCES)
def test_plans_are_those_of_a_new_operator(kind: str, post: str) -> None:
    seen, sizes = operator(kind, post), SOURCES[kind][2]
    for dims in [*sizes, sizes[0]]:
        assert planned(seen, dims) == planned(operator(kind, post), dims)


@pytest.mark.parametrize("options", [{"zero_point": "map"}, {"src_q": QParams(0.02, 0, "s8")}])
@pytest.mark.parametrize("kind", SOURCES)
def test_plans_of_maps_and_signed_sources(kind: str, options: dict[str, Any]) -> None:
    seen, sizes = operator(kind, "nothing", **options), SOURCES[kind][2]
    for dims in [*sizes, sizes[0]]:
        assert planned(seen, dims) == planned(operator(kind, "nothing", **options), dims)


@pytest.mark.parametrize("kind", SOURCES)
def test_weights_are_summed_and_chains_rewritten_for_the_first_size_only(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def counted(module: Any, name: str) -> None:
        inner = getattr(module, name)

        def outer(*args: Any, **options: Any) -> Any:
            calls.append(name)
            return inner(*args, **options)

        monkeypatch.setattr(module, name, outer)

    one, sizes = operator(kind, "relu"), SOURCES[kind][2][:2]
    one.prepare(sizes[0])
    counted(composer, "_rewritten")
    counted(dense_facts, "acc_interval")
    one.prepare(sizes[1])
    assert calls == []
    one.clear()
    one.prepare(sizes[1])
    assert set(calls) == {"_rewritten", "acc_interval"}


@pytest.mark.parametrize("kind", ["conv", "deconv"])
def test_a_range_that_lies_away_from_0_is_no_code_whatever_the_size(kind: str) -> None:
    """Its zero point is whole, and no code: taps that miss the source must not get it."""
    levels = pq.FakeQuantize(1.0, 2.0, 1.0, 2.0, 256)
    wei = np.ones((1, 1, 2, 2), np.float32)
    cls, window = (
        (pq.Conv, {"stride": 3, "padding": ((0, 1), (0, 1))})
        if kind == "conv"
        else (pq.Deconv, {"stride": 3})
    )
    operator = cls.from_float(wei, src_q=levels, wei_levels=129, **window)
    for size in (2, 4, 3, 5):
        src = np.full((1, 1, size, size), 1.0 + 100 / 255, np.float32)  # a level
        expected = cls(wei, **window)(src)
        np.testing.assert_allclose(operator(src), expected, rtol=1e-5)


def test_what_is_left_over_follows_from_each_size() -> None:
    """A map of dst's size is an operand where oneDNN takes it, and left over where not."""

    def deconvolution() -> pq.Deconv:
        wei = np.full((2, 1, 1), 2, np.int8)
        src_q, wei_q = pq.QParams(0.1, 7, "u8"), pq.QParams(0.1, 0, "s8")
        window: dict[str, Any] = {"padding": ((0, 1),), "zero_point": "map", "dst": "s32"}
        return pq.Deconv(wei, src_q=src_q, wei_q=wei_q, **window)

    for order in ((4, 2, 3), (2, 4, 3)):
        operator = deconvolution()
        for size in order:
            dims = (1, 1, size)
            assert operator.prepare(dims).notes == deconvolution().prepare(dims).notes


def test_huge_windows_are_refused_by_their_name() -> None:
    wei = np.ones((1, 1, 3, 3), np.int8)
    q: dict[str, Any] = {"src_q": QParams(0.5, 0, "u8"), "wei_q": QParams(0.5, 0, "s8")}
    with pytest.raises(pq.errors.ShapeError, match="dilation"):
        pq.Conv(wei, dilation=2**31, **q)
    with pytest.raises(pq.errors.ShapeError, match="src"):
        pq.Conv(wei, dilation=2**31 - 1, **q)(np.ones((1, 1, 8, 8), np.uint8))
