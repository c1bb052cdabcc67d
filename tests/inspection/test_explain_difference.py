"""explain_difference: it names the arithmetic that made the codes, whoever made them.

Accepted: for every dialect, codes made in rational arithmetic from its published definition are
explained by its name; what was planted (another zero point, another type, sums that saturate,
padding, a bias, a ReLU) is told; noise is explained by nothing.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.requantize import DIALECTS
from support.definitions import requantization
from support.oracles import calls
from support.oracles.layers import LIMITS, drawn

pytestmark = pytest.mark.executed

RNG = np.random.default_rng(4)
SRC = RNG.integers(0, 256, (2, 12, 6, 6)).astype(np.uint8)
WEI = RNG.integers(-31, 32, (10, 12, 3, 3)).astype(np.int8)
BIAS = RNG.integers(-20000, 20000, 10).astype(np.int32)
SRC_Q = pq.QParams(0.0625, 5, "u8")
WEI_Q = pq.QParams(RNG.uniform(0.001, 0.002, 10).astype(np.float32), 0, "s8", 0)
DST_Q = pq.QParams(0.25, 100, "u8")


def conv(wei: Any = WEI, bias: Any = BIAS, **options: Any) -> pq.Conv:
    settings: dict[str, Any] = {
        "src_q": SRC_Q,
        "wei_q": WEI_Q,
        "dst_q": DST_Q,
        "padding": 1,
    } | options
    return pq.Conv(wei, bias, allow_reference=True, **settings)


def explained(found: pq.inspection.Explanation) -> set[tuple[str, str]]:
    return {(one.name, one.supposing) for one in found.explained_by}


@pytest.mark.parametrize("granularity", ["per_tensor", "per_channel"])
@pytest.mark.parametrize("rule", DIALECTS)
def test_every_dialect_s_published_arithmetic_is_named(rule: str, granularity: str) -> None:
    rng = np.random.default_rng([len(rule), len(granularity)])
    layer = drawn(rng, "pointwise", "s8", granularity, rule, "small", channels=12)
    scales = [Fraction(float(layer.wei_scale[c])) for c in range(12)]
    src, dst = Fraction(float(layer.src_scale)), Fraction(float(layer.dst_scale))
    define = requantization.RULES[rule]
    theirs = np.empty(layer.acc.shape, np.int8)
    for index, acc in np.ndenumerate(layer.acc):
        arguments = (src, scales[index[1]], dst, layer.dst_zero_point, LIMITS["s8"])
        theirs[index] = define(int(acc), *arguments)
    if rule.startswith("onednn"):
        # oneDNN adds the bias behind the scales: here it is in the sums.
        rule = f"{rule}, bias in the sums"
    found = pq.explain_difference(calls.operator(layer, "exact"), layer.src, theirs)
    assert (rule, "") in explained(found)


def test_ours_are_explained_by_one_of_onednn_s_forms() -> None:
    made = conv()
    found = pq.explain_difference(made, SRC, made(SRC))
    assert (found.outputs, found.equal, found.differing) == (720, 720, 0)
    assert any(one.name.startswith("onednn") for one in found.explained_by)
    assert "all as ours" in str(found)


def test_sums_and_values_are_those_of_the_arguments() -> None:
    wei, points = WEI.astype(np.int64), np.arange(-5, 5)
    made = conv(wei_q=pq.QParams(WEI_Q.scale, points, "s8", 0), padding=0)
    found = pq.explain_difference(made, SRC, made(SRC))
    shifted = SRC.astype(np.int64) - 5
    wanted = np.zeros((2, 10, 4, 4), np.int64)
    for i in range(3):
        for j in range(3):
            part = shifted[:, :, i : i + 4, j : j + 4]
            taps = wei[:, :, i, j] - points[:, np.newaxis]
            wanted += np.einsum("ncij,oc->noij", part, taps)
    assert np.array_equal(found.acc, wanted)
    scale = 0.0625 * np.asarray(WEI_Q.scale).reshape(-1, 1, 1)
    values = scale * (wanted + BIAS.reshape(-1, 1, 1)) / 0.25 + 100
    assert np.array_equal(found.values, values)


def test_ties_are_counted() -> None:
    q = pq.QParams(0.5, 0, "s8")
    matmul = pq.MatMul(np.array([[1]], np.int8), src_q=q, wei_q=pq.QParams(0.25, 0, "s8"), dst_q=q)
    src = np.arange(-40, 41, dtype=np.int8).reshape(-1, 1)
    theirs = np.floor(src / 4 + 0.5).astype(np.int8)
    found = pq.explain_difference(matmul, src, theirs)
    # src = 2 (mod 4) is a tie; half up and half to even part where the lower one is even.
    parted = sum(1 for x in range(-40, 41) if x % 8 == 2)
    assert (found.higher, found.lower, found.further) == (parted, 0, 0)
    assert (found.near_ties, found.exact_ties) == (parted, parted)
    assert ("tflite_1step", "") in explained(found)
    assert ("exact", "") not in explained(found)


SHIFTED = DST_Q.zero_point - 128


@pytest.mark.parametrize(
    ("theirs", "text"),
    [
        (lambda: conv(dst_q=pq.QParams(0.25, 103, "u8"))(SRC), "dst has zero point 103, not 100"),
        (
            lambda: (conv()(SRC).astype(np.int64) - 128).astype(np.int8),
            f"codes are s8, not u8: shifted by -128, dst has zero point {SHIFTED}, not 100",
        ),
        (lambda: conv(bias=None)(SRC), "no bias"),
        (lambda: np.maximum(conv()(SRC), 100), "a ReLU follows the sums"),
        (
            lambda: conv(padding=0)(np.pad(SRC, ((0, 0), (0, 0), (1, 1), (1, 1)))),
            "padding holds code 0, not the zero point 5",
        ),
        (
            lambda: conv(src_q=pq.QParams(0.0625, 0, "u8"))(SRC),
            "the source's zero point is 0, not 5",
        ),
    ],
    ids=["zero point", "s8", "bias", "relu", "padding", "source"],
)
def test_what_was_planted_is_told(theirs: Any, text: str) -> None:
    found = pq.explain_difference(conv(), SRC, theirs())
    assert text in {one.supposing for one in found.explained_by}
    assert text in str(found)


def test_a_chain_that_others_leave_out_is_told() -> None:
    made = conv(post=pq.Chain(pq.Eltwise("relu")))
    assert not pq.explain_difference(made, SRC, made(SRC)).differing
    found = pq.explain_difference(made, SRC, conv()(SRC))
    assert {one.supposing for one in found.explained_by} == {"nothing follows the sums"}


def test_a_chain_of_any_steps_is_rounded_as_float64_has_it() -> None:
    made = conv(post=pq.Chain(pq.Sum(0.25, 100), pq.Eltwise("hardswish", 1 / 6, 0.5)))
    residual = RNG.integers(0, 256, (2, 10, 6, 6)).astype(np.uint8)
    found = pq.explain_difference(made, SRC, made(SRC, residual=residual), residual=residual)
    assert found.agreements[0].equal >= found.outputs - 1
    assert {one.name for one in found.agreements} & set(DIALECTS) == set()


def test_sums_that_saturate_are_told_with_their_channels() -> None:
    wei = WEI.copy()
    wei[[3, 7]] = 127
    # Sources of 255 on one half of the channels: pairs of 127 pass 16 bits, others do not.
    q = pq.QParams(np.where(np.isin(np.arange(10), [3, 7]), 1e-4, 1.5e-3), 0, "s8", 0)
    made = conv(wei, None, wei_q=q, padding=0)
    shifted = SRC.astype(np.int64)
    acc = np.zeros((2, 10, 4, 4), np.int64)
    for i in range(3):
        for j in range(3):
            part = shifted[:, :, i : i + 4, j : j + 4]
            products = part[:, np.newaxis] * wei[:, :, i, j].astype(np.int64)[..., None, None]
            pairs = products[:, :, 0::2] + products[:, :, 1::2]
            acc += np.clip(pairs, -(2**15), 2**15 - 1).sum(axis=2)
    acc -= 5 * wei.astype(np.int64).sum(axis=(1, 2, 3)).reshape(-1, 1, 1)
    scale = 0.0625 * np.asarray(q.scale).reshape(-1, 1, 1)
    theirs = np.clip(np.rint(scale * acc / 0.25) + 100, 0, 255).astype(np.uint8)
    found = pq.explain_difference(made, SRC, theirs)
    assert all("saturate in 16 bits" in one.supposing for one in found.explained_by)
    assert found.is_explained
    assert "are in channels 3, 7 of 10, whose pairs of products leave 16 bits" in str(found)


def test_a_constant_in_some_channels_is_told() -> None:
    theirs = conv()(SRC).astype(np.int64)
    theirs[:, 2] += 2
    theirs[:, 6] -= 3
    found = pq.explain_difference(conv(), SRC, np.clip(theirs, 0, 255))
    assert not found.is_explained
    assert "the 144 that the best one does not give are in channels 2, 6 of 10" in str(found)
    assert "apart by a constant in channels 2, 6" in str(found)


def test_another_scale_is_told() -> None:
    theirs = conv(dst_q=pq.QParams(0.5, 100, "u8"))(SRC)
    found = pq.explain_difference(conv(), SRC, theirs)
    assert not found.is_explained
    assert "times as large: another scale" in str(found)


def test_noise_is_explained_by_nothing() -> None:
    noise = RNG.integers(-2, 3, (2, 10, 6, 6))
    theirs = np.clip(conv()(SRC) + noise, 0, 255)
    found = pq.explain_difference(conv(), SRC, theirs)
    assert not found.is_explained
    assert found.explained_by == ()
    assert "gives them all" in str(found)
    assert found.differing == found.lower + found.higher + found.further
    assert found.largest <= 2


def test_real_values_on_the_grid_are_taken_as_codes() -> None:
    codes = conv()(SRC)
    real = ((codes.astype(np.float32) - 100) * np.float32(0.25)).astype(np.float32)
    assert not pq.explain_difference(conv(), SRC, real).differing
    with pytest.raises(pq.ArgumentError, match="multiples of dst's scale"):
        pq.explain_difference(conv(), SRC, real + np.float32(0.1))


def test_float_sources_and_ranges_of_calls_are_taken() -> None:
    real = RNG.normal(0, 2, SRC.shape).astype(np.float32)
    for src_q in (SRC_Q, pq.Dynamic("u8")):
        made = conv(bias=None, src_q=src_q)
        found = pq.explain_difference(made, real, made(real))
        assert (found.differing, found.is_explained) == (0, True)


@pytest.mark.parametrize("name", ["deconv", "inner_product", "batch of matmuls", "grouped"])
def test_every_kind_of_operator_is_taken(name: str) -> None:
    q, source = pq.QParams(0.05, 0, "s8"), RNG.integers(-90, 90, (3, 8)).astype(np.int8)
    common: dict[str, Any] = {"src_q": pq.QParams(0.02, 3, "s8"), "dst_q": q, "wei_q": q}
    common["allow_reference"] = True
    wei = 2 * RNG.integers(-31, 32, (8, 8, 3)).astype(np.int8)
    image = RNG.integers(-90, 90, (2, 8, 7)).astype(np.int8)
    kinds: dict[str, Any] = {
        "deconv": lambda: (pq.Deconv(wei, stride=2, padding=1, **common), image),
        "inner_product": lambda: (pq.InnerProduct(wei[..., 0], **common), source),
        "batch of matmuls": lambda: (
            pq.MatMul(wei[..., :2].transpose(2, 0, 1), **common),
            image.transpose(0, 2, 1),
        ),
        "grouped": lambda: (pq.Conv(wei[:, :4], groups=2, **common), image),
    }
    made, src = kinds[name]()
    found = pq.explain_difference(made, src, made(src))
    assert (found.differing, found.is_explained) == (0, True)


def test_bad_arguments_are_named() -> None:
    theirs = conv()(SRC)
    real = pq.Conv(WEI.astype(np.float32))
    cases: list[tuple[Any, Any, Any, type[pq.ArgumentError], str]] = [
        (3, SRC, theirs, pq.ArgumentError, "operator"),
        (real, SRC.astype(np.float32), theirs, pq.ArgumentError, "operator"),
        (conv(dst_q=None), SRC, theirs, pq.errors.DTypeError, "operator"),
        (conv(), SRC.astype(np.int8), theirs, pq.errors.DTypeError, "src"),
        (conv(), SRC[:, :3], theirs, pq.errors.ShapeError, "src"),
        (conv(), "src", theirs, pq.ArgumentError, "src"),
        (conv(), SRC, theirs.transpose(0, 2, 3, 1), pq.errors.ShapeError, "theirs"),
        (conv(), SRC, None, pq.ArgumentError, "theirs"),
        (conv(), SRC, theirs * np.nan, pq.ArgumentError, "theirs"),
        (conv(), SRC, theirs.astype(np.uint64), pq.errors.DTypeError, "theirs"),
    ]
    for op, src, codes, error, name in cases:
        with pytest.raises(error) as caught:
            pq.explain_difference(op, src, codes)
        assert caught.value.argument == name
    for name in ("gate", ""):
        with pytest.raises(pq.ArgumentError, match="names of the chain's leaves"):
            pq.explain_difference(conv(), SRC, theirs, **{name: np.ones(10, np.float32)})
    with pytest.raises(pq.errors.ShapeError, match=r"np.moveaxis\(theirs, -1, 1\)"):
        pq.explain_difference(conv(), SRC, theirs.transpose(0, 2, 3, 1))


def test_it_is_a_value_that_can_be_written_down() -> None:
    found = pq.explain_difference(conv(), SRC, np.maximum(conv()(SRC), 100))
    told = json.loads(found.to_json())
    assert told["explained"] is True
    assert told["outputs"] == 720
    assert told["agreements"][0]["equal"] == 720
    assert told["examples"][0]["theirs"] == 100
    with pytest.raises(AttributeError):
        found.outputs = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        found.acc[0] = 0


def test_nothing_is_compared_of_nothing() -> None:
    found = pq.explain_difference(conv(), SRC[:0], np.empty((0, 10, 6, 6), np.uint8))
    assert (found.outputs, found.differing) == (0, 0)
    assert found.is_explained
