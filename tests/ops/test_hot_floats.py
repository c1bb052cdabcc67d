"""Float sources whose codes are made in the call of the primitive: no Python, the same bits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.steps import Eltwise, Sum
from pyonednn_q.ops.conv import Conv
from pyonednn_q.ops.dense import InnerProduct, MatMul
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from support.frames import frames

F = np.float32
WEI_Q = QParams(0.01, 0, "s8")
SOURCES: dict[str, Any] = {
    "u8": QParams(0.25, 100, "u8"),
    "s8": QParams(0.25, -3, "s8"),
    "dynamic u8": Dynamic("u8"),
    "dynamic s8": Dynamic("s8"),
    "u8 of rows": Dynamic("u8", "per_row"),
    "s8 of rows": Dynamic("s8", "per_row"),
}
PRODUCTS: dict[str, tuple[int, ...]] = {
    "matmul": (5, 24),
    "matmul of one row": (1, 24),
    "matmul shared": (2, 5, 24),
    "inner": (5, 24),
    "inner of one row": (1, 24),
}
CONVOLUTIONS = ("conv", "conv channels last")


def drawn(kind: str, source: str, **more: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    """Return an operator, and a source with ties among its values."""
    rng = np.random.default_rng(5)
    options = {"src_q": SOURCES[source], "wei_q": WEI_Q, "dst": "f32", **more}
    bias = rng.normal(size=16).astype(F)

    def codes(*dims: int) -> np.ndarray[Any, Any]:
        return 2 * rng.integers(-31, 32, dims).astype(np.int8)

    if kind in CONVOLUTIONS:
        src = (rng.integers(-90, 90, (2, 8, 6, 5)) / 8).astype(F)
        if kind == "conv channels last":
            src = np.ascontiguousarray(np.moveaxis(src, 1, -1)).transpose(0, 3, 1, 2)
        return Conv(codes(16, 8, 3, 3), bias, padding=1, **options), src
    src = (rng.integers(-90, 90, PRODUCTS[kind]) / 8).astype(F)
    src *= (10.0 ** rng.integers(-2, 2, (*src.shape[:-1], 1))).astype(F)
    if kind.startswith("inner"):
        return InnerProduct(codes(16, 24), bias, **options), src
    return MatMul(codes(24, 16), bias, **options), src


def cold(operator: Any, src: Any, **more: Any) -> Any:
    """Return what the way of Python gives."""
    operator._hot = None
    return operator(src, **more)


ALL = [(kind, source) for source in SOURCES for kind in PRODUCTS]
ALL += [(kind, source) for source in SOURCES if "rows" not in source for kind in CONVOLUTIONS]


@pytest.mark.parametrize(("kind", "source"), ALL)
def test_no_python_and_the_same_bits(kind: str, source: str) -> None:
    operator, src = drawn(kind, source)
    wanted = operator(src)
    out = np.empty_like(wanted)
    assert frames(lambda: operator(src)) == []
    assert frames(lambda: operator(src, out=out)) == []
    for values in (src, -src, src * F(0.3), src * 0, src + F(0.125), src * F(1e-38)):
        got, in_place = operator(values), np.full_like(wanted, 7)
        assert operator(values, out=in_place) is in_place
        again = cold(operator, values)
        np.testing.assert_array_equal(got.view(np.int32), again.view(np.int32))
        np.testing.assert_array_equal(in_place.view(np.int32), again.view(np.int32))
        assert (got.shape, got.strides) == (again.shape, again.strides)


@pytest.mark.parametrize("source", SOURCES)
def test_what_has_no_codes_is_refused_as_before(source: str) -> None:
    operator, src = drawn("matmul", source)
    out = operator(src)
    kept = out.copy()
    for bad in (np.nan, np.inf, -np.inf):
        wrong = src.copy()
        wrong[2, 3] = bad
        if source in {"u8", "s8"} and not np.isnan(bad):  # infinities saturate
            np.testing.assert_array_equal(operator(wrong), cold(operator, wrong))
            continue
        with pytest.raises(ArgumentError, match="src"):
            operator(wrong, out=out)
        np.testing.assert_array_equal(out, kept)
    if "rows" in source or "dynamic" in source:
        wide = src * 0
        wide[:, :2] = [3e38, -3e38]
        if "u8" in source:
            with pytest.raises(ArgumentError, match="span"):
                operator(wide)


@pytest.mark.parametrize("source", SOURCES)
def test_arrays_that_lie_otherwise_take_the_way_of_python(source: str) -> None:
    operator, src = drawn("matmul", source)
    wanted = operator(src)
    gapped = np.repeat(src, 2, axis=1)[:, ::2]
    reversed_ = src[::-1].copy()[::-1]
    column = np.asfortranarray(src)
    packed = np.zeros(src.nbytes + 1, np.uint8)[1:].view(F).reshape(src.shape)
    packed[...] = src
    for other in (gapped, reversed_, column, packed, src.astype(">f4").astype(F)):
        np.testing.assert_array_equal(operator(other), wanted)
        np.testing.assert_array_equal(operator(src), wanted)
    wide = np.zeros((len(src), 32), F)[:, ::2]
    assert operator(src, out=wide) is wide
    np.testing.assert_array_equal(wide, wanted)


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_that_is_overwritten_was_read_before(source: str) -> None:
    rng = np.random.default_rng(6)
    wei = 2 * rng.integers(-31, 32, (24, 24)).astype(np.int8)
    operator = MatMul(wei, src_q=SOURCES[source], wei_q=WEI_Q, dst="f32")
    src = rng.normal(size=(5, 24)).astype(F)
    wanted = operator(src)
    assert operator(src, out=src) is src
    np.testing.assert_array_equal(src, wanted)


@pytest.mark.parametrize("source", SOURCES)
def test_sums_of_a_residual_and_in_place(source: str) -> None:
    operator, src = drawn("matmul", source, post=Chain(Sum(0.5), Eltwise("relu")))
    residual = np.random.default_rng(7).normal(size=(5, 16)).astype(F)
    kept, out = residual.copy(), residual.copy()
    wanted = operator(src, residual=residual)
    got = operator(src, residual=residual)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(residual, kept)
    np.testing.assert_array_equal(operator(src, out=out), wanted)
    bad = src.copy()
    bad[0, 0] = np.nan
    out = kept.copy()
    with pytest.raises(ArgumentError, match="src"):
        operator(bad, out=out)
    np.testing.assert_array_equal(out, kept)


def test_codes_and_floats_in_turn() -> None:
    operator, src = drawn("matmul", "u8")
    codes = np.clip(np.rint(src / F(0.25)) + 100, 0, 255).astype(np.uint8)
    for _ in range(3):
        np.testing.assert_array_equal(operator(src), operator(codes))


@pytest.mark.parametrize("source", SOURCES)
def test_threads_share_an_operator(source: str) -> None:
    operator, src = drawn("matmul", source)
    sources = [src * F(i + 1) for i in range(8)]
    wanted = [operator(each) for each in sources]

    def run(i: int) -> bool:
        return all(np.array_equal(operator(sources[i]), wanted[i]) for _ in range(200))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(8)))
