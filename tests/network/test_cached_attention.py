"""Attention on a cache: bit for bit as its model says, and beside attention in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, LayoutError, ShapeError
from pyonednn_q.network import CachedAttention, CacheShape, Network, Node
from pyonednn_q.predict.attention_rows import RotaryAngles, attention_rows
from support.attention_steps import Steps, of_a_level
from support.children import run_child

Array = np.ndarray[Any, Any]


def attention(
    q: Array,
    k: Array,
    v: Array,
    scale: float,
    angles: RotaryAngles | None = None,
    *,
    window: int = 0,
    softcap: float = 0.0,
    sinks: Array | None = None,
) -> Array:
    """Return causal attention in float64: q (B, H, S, D) are the last tokens of k, v."""
    q, k, v = (each.astype(float) for each in (q, k, v))
    past = k.shape[2] - q.shape[2]
    if angles is not None:
        q, k = _turned(q, past, angles), _turned(k, 0, angles)
    share = q.shape[1] // k.shape[1]
    k, v = (np.repeat(each, share, 1) for each in (k, v))
    scores = q @ k.swapaxes(2, 3) * scale
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    before = np.arange(q.shape[2])[:, None] + past - np.arange(k.shape[2])[None]
    scores[..., (before < 0) | (before >= (window or k.shape[2]))] = -np.inf
    shares = np.exp(scores)
    rest = 0 if sinks is None else np.exp(sinks.astype(float))[:, None, None]
    result: Array = shares / (shares.sum(-1, keepdims=True) + rest) @ v
    return result


def _turned(x: Array, first: int, angles: RotaryAngles) -> Array:
    half = angles.cos.shape[1]
    places = slice(first, first + x.shape[2])
    turn = angles.cos[places].astype(float) + 1j * angles.sin[places].astype(float)
    y: Array = x.copy()
    if angles.is_paired:
        pairs = (x[..., 0 : 2 * half : 2] + 1j * x[..., 1 : 2 * half : 2]) * turn
        y[..., 0 : 2 * half : 2], y[..., 1 : 2 * half : 2] = pairs.real, pairs.imag
    else:
        pairs = (x[..., :half] + 1j * x[..., half : 2 * half]) * turn
        y[..., :half], y[..., half : 2 * half] = pairs.real, pairs.imag
    return y


def angles_of(places: int, half: int, is_paired: bool) -> RotaryAngles:
    turns = np.arange(places)[:, None] / 10000 ** (np.arange(half) / half)
    return RotaryAngles(
        np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32), is_paired
    )


def flat(x: Array) -> Array:
    batch, heads, tokens, size = x.shape
    return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(batch, tokens, heads * size)


CASES = [
    # batch, heads, groups, depth, width, tokens of each step, angles: half and whether paired
    (1, 4, 2, 16, 16, (5, 1, 1), None),
    (2, 6, 3, 24, 24, (1, 17, 30, 1), (12, False)),
    (1, 8, 1, 64, 48, (33, 1), (16, True)),
    (1, 3, 3, 6, 5, (2, 40), None),
    (1, 4, 4, 128, 128, (70, 1), (64, False)),
]


def drawn(rng: np.random.Generator) -> tuple[Any, ...]:
    """Return another case like these."""
    groups, share, depth, width = (int(rng.integers(1, most)) for most in (4, 4, 130, 130))
    half = int(rng.integers(1, depth // 2 + 1)) if depth > 1 else 0
    steps = tuple(map(int, rng.choice([1, 1, 2, 7, 16, 33, 64], rng.integers(1, 5))))
    turned = (half, bool(rng.integers(2))) if half and rng.integers(2) else None
    return int(rng.integers(1, 3)), groups * share, groups, depth, width, steps, turned


@pytest.mark.parametrize("dtype", ["s8", "f32"])
@pytest.mark.parametrize("form", ["flat", "packed", "heads"])
def test_each_step_is_what_the_model_says(
    dtype: str, form: str, pytestconfig: pytest.Config
) -> None:
    rng = np.random.default_rng([*dtype.encode(), *form.encode()])
    compared, wanted = 0, pytestconfig.getoption("--compared-outputs")
    cases = iter(CASES)
    while (case := next(cases, None)) or compared < wanted:
        compared += _compared(rng, case or drawn(rng), dtype, form)
    print(f"{dtype}, {form}: {compared:,} outputs")  # noqa: T201


def _compared(rng: np.random.Generator, case: tuple[Any, ...], dtype: str, form: str) -> int:
    """Return how many outputs of all steps of a case were compared."""
    batch, heads, groups, depth, width, steps, turned = case
    outputs, total = 0, sum(steps)
    angles = None if turned is None else angles_of(total + 3, *turned)
    cache = CacheShape(2, batch, groups, depth, width, total, dtype)
    run = Steps(CachedAttention(cache, 1, heads, 0.3, angles, is_packed=form == "packed"))
    q, k, v = (
        rng.standard_normal((batch, n, total, size)).astype(np.float32)
        for n, size in ((heads, depth), (groups, depth), (groups, width))
    )
    begin = 0
    for count in steps:
        end = begin + count
        new = [np.ascontiguousarray(each[:, :, begin:end]) for each in (q, k, v)]
        if form != "heads":
            new = [flat(each) for each in new]
        y = run(*([np.concatenate(new, 2)] if form == "packed" else new))
        seen = q[:, :, begin:end], k[:, :, :end], v[:, :, :end]
        model = attention_rows(*seen, scale=0.3, dtype=dtype, angles=angles)
        np.testing.assert_array_equal(y, model if form == "heads" else flat(model))
        real = attention(*seen, np.float32(0.3), angles)
        # Half a code of queries and keys is 1 in 254 of their largest element.
        most = 1e-5 if dtype == "f32" else 0.05
        assert np.abs(model - real).max() < most * np.abs(v).max()
        begin, outputs = end, outputs + model.size
    assert run.cache.length == total
    return outputs


SINKS = np.array([-1.5, 0.0, 3.0, 40.0], np.float32)
SCORES: list[dict[str, Any]] = [
    {"window": 1},
    {"window": 16},
    {"window": 21},
    {"softcap": 1.5},
    {"sinks": SINKS},
    {"window": 37, "softcap": 0.7, "sinks": SINKS},
]


@pytest.mark.parametrize("dtype", ["s8", "f32"])
@pytest.mark.parametrize("told", SCORES, ids="-".join)
def test_windows_caps_and_sinks_are_what_the_model_says(told: Any, dtype: str) -> None:
    rng = np.random.default_rng(7)
    cache = CacheShape(1, 2, 2, 20, 12, 83, dtype)
    angles = angles_of(83, 10, is_paired=False)
    run = Steps(CachedAttention(cache, 0, 4, 0.3, angles, **told))
    q, k, v = (
        rng.standard_normal((2, heads, 83, size)).astype(np.float32)
        for heads, size in ((4, 20), (2, 20), (2, 12))
    )
    for begin, end in ((0, 50), (50, 51), (51, 82), (82, 83)):
        y = run(*(np.ascontiguousarray(each[:, :, begin:end]) for each in (q, k, v)))
        seen = q[:, :, begin:end], k[:, :, :end], v[:, :, :end]
        model = attention_rows(*seen, scale=0.3, dtype=dtype, angles=angles, **told)
        np.testing.assert_array_equal(y, model)
        real = attention(*seen, np.float32(0.3), angles, **told)
        most = 1e-5 if dtype == "f32" else 0.05
        assert np.abs(model - real).max() < most * np.abs(v).max()


def test_windows_caps_and_sinks_that_are_none_are_refused() -> None:
    cache = CacheShape(1, 1, 1, 16, 16, 16)
    with pytest.raises(ArgumentError, match="window"):
        CachedAttention(cache, 0, 2, window=-1)
    with pytest.raises(ArgumentError, match="softcap"):
        CachedAttention(cache, 0, 2, softcap=-30.0)
    with pytest.raises(ShapeError, match="sinks"):
        CachedAttention(cache, 0, 2, sinks=np.zeros(3, np.float32))


@pytest.mark.parametrize("level", ["AVX512_CORE", "AVX2", "SSE41"])
def test_all_processors_have_the_same_bits(level: str) -> None:
    there = run_child(of_a_level, environment={"ONEDNN_MAX_CPU_ISA": level})
    assert there.value == of_a_level()


def test_tokens_come_one_by_one_or_together_to_the_same_bits() -> None:
    rng = np.random.default_rng(3)
    cache = CacheShape(1, 1, 2, 32, 32, 50)
    x = rng.standard_normal((1, 50, (4 + 2 + 2) * 32)).astype(np.float32)
    together, alone = (Steps(CachedAttention(cache, 0, 4, is_packed=True)) for _ in range(2))
    whole = together(x)
    one = np.concatenate([alone(x[:, at : at + 1].copy()) for at in range(50)], 1)
    np.testing.assert_array_equal(whole, one)
    np.testing.assert_array_equal(together.cache.memory, alone.cache.memory)


def test_a_full_cache_refuses_and_a_truncated_one_goes_on() -> None:
    rng = np.random.default_rng(4)
    run = Steps(CachedAttention(CacheShape(1, 1, 1, 16, 16, 16), 0, 1, is_packed=True))
    x = rng.standard_normal((1, 16, 48)).astype(np.float32)
    first = run(x)
    with pytest.raises(ShapeError, match=r"16 tokens and 1 more.*capacity, 16"):
        run(x[:, :1].copy())
    with pytest.raises(ShapeError, match="1 behind the 16"):
        run.cache.append(1)
    run.cache.truncate(9)
    np.testing.assert_array_equal(run(x[:, 9:12].copy()), first[:, 9:12])
    assert run.cache.length == 12


def test_what_is_no_number_is_refused_by_name() -> None:
    run = Steps(CachedAttention(CacheShape(1, 1, 1, 16, 16, 16), 0, 1, is_packed=True))
    x = np.zeros((1, 1, 48), np.float32)
    x[0, 0, 20] = np.nan
    with pytest.raises(ArgumentError, match="not finite"):
        run(x)
    assert run.cache.length == 0
    np.testing.assert_array_equal(run(np.zeros_like(x)), np.zeros((1, 1, 16)))


def test_a_cache_that_nobody_may_write_to_is_refused() -> None:
    run = Steps(CachedAttention(CacheShape(1, 1, 1, 16, 16, 16), 0, 1, is_packed=True))
    run.cache.memory.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        run(np.zeros((1, 1, 48), np.float32))


def test_dims_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="heads"):
        CachedAttention(CacheShape(1, 1, 2, 16, 16, 16), 0, 3)
    run = Steps(CachedAttention(CacheShape(1, 2, 1, 16, 16, 16), 0, 1, is_packed=True))
    with pytest.raises(ShapeError, match="batch of 2"):
        run(np.zeros((1, 1, 48), np.float32))


def test_small_shares_beside_a_large_one_are_not_lost() -> None:
    """A token of half the mass, and a thousand of the rest, all lost in shares of 8 bits."""
    count, depth = 1024, 16
    k = np.zeros((1, 1, count, depth), np.float32)
    k[0, 0, 0, 0] = np.log(count)
    v = np.ones((1, 1, count, depth), np.float32)
    v[0, 0, 0] = -1
    q = np.zeros((1, 1, 1, depth), np.float32)
    q[..., 0] = 1
    y = attention_rows(q, k, v, scale=1.0)
    real = attention(q, k, v, 1.0)
    assert np.abs(y - real).max() < 0.02


def test_a_cache_with_gaps_is_refused_and_not_copied() -> None:
    """What a program writes to a copy would be lost."""
    shape = CacheShape(layers=1, batch=1, groups=1, depth=16, width=16, capacity=16)
    names = ("q", "k", "v", "cache")
    node = Node("y", CachedAttention(shape, layer=0, heads=1), names)
    network = Network(names, [node], ["y"])
    x = np.ones((1, 2, 16), np.float32)
    wide = np.zeros((shape.nbytes, 2), np.uint8)
    with pytest.raises(LayoutError, match="cache"):
        network(x, x, x, wide[:, 0])
    network(x, x, x, np.zeros(shape.nbytes, np.uint8))
