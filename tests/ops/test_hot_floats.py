"""Float sources whose codes are made in the call of the primitive: no Python, the same bits.

Expected values come from the documented formulas: with weights that are an identity of scale 1, a
result is scale · (code − zero_point), rounded once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Binary, Chain, Eltwise, Leaf, Sum
from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct, MatMul
from pyonednn_q.ops.functional import matmul
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from support.calls.rows import stated
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


K = 24
# Dims of an identity's weights, and of a source; and whether it has rows of its own.
IDENTITIES: dict[str, tuple[type[Any], tuple[int, ...], tuple[int, ...], int]] = {
    "matmul": (MatMul, (K, K), (5, K), 5),
    "matmul of one row": (MatMul, (K, K), (1, 1, K), 1),
    "matmul shared": (MatMul, (K, K), (2, 3, K), 6),
    "matmul of four": (MatMul, (K, K), (2, 1, 3, K), 6),
    "inner": (InnerProduct, (K, K), (5, K), 5),
    "inner of one row": (InnerProduct, (K, 4, 3, 2), (1, 4, 3, 2), 1),
    "inner of images": (InnerProduct, (K, 4, 3, 2), (5, 4, 3, 2), 5),
    "conv": (Conv, (K, K, 1, 1), (2, K, 3, 2), 0),
    "deconv": (Deconv, (K, K, 1, 1), (2, K, 3, 2), 0),
}


def identity(kind: str, source: Any, **more: Any) -> Any:
    """Return an operator whose result is its source, quantized."""
    operator, dims, _, _ = IDENTITIES[kind]
    wei = np.eye(K, dtype=np.int8).reshape(dims)
    return operator(wei, src_q=source, wei_q=QParams(1.0, 0, "s8"), dst="f32", **more)


def formula(src: Any, source: Any, rows: int) -> Any:
    """Return the source as its codes have it."""
    if isinstance(source, Dynamic):
        by_row = src.reshape(rows if source.extent == "per_row" else 1, -1)
        codes, scale, point = stated(by_row, source.dtype)
        scale, point = scale.astype(F)[:, None], point[:, None]
    else:
        scale, point = np.array(source.scale, F), np.array(source.zero_point)
        ends = (0, 255) if source.dtype == "u8" else (-128, 127)
        codes = np.clip(np.rint(src / scale) + point.astype(F), *ends)
    real = scale * (codes.astype(np.int32) - point).astype(F)
    return real.reshape(src.shape)


NUMBERS = st.one_of(
    st.floats(
        width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**60), max_value=2.0**60
    ),
    st.integers(-600, 600).map(lambda n: n / 8),  # ties of the scale 0.25
    st.sampled_from([0.0, -0.0, 1e-45, -1e-45, 1.1754944e-38, 1e-30]),
)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", IDENTITIES)
def test_codes_are_those_of_the_formula(kind: str, source: str) -> None:
    _, _, dims, rows = IDENTITIES[kind]
    if "rows" in source and not rows:
        with pytest.raises(ArgumentError, match="only products have rows"):
            identity(kind, SOURCES[source])
        return
    operator = identity(kind, SOURCES[source])
    ones = np.ones(dims, F)
    out = operator(ones)
    shape = out.shape
    assert frames(lambda: operator(ones, out=out)) == []

    @settings(max_examples=30, deadline=None, derandomize=True)
    @given(st.lists(NUMBERS, min_size=1, max_size=K), st.integers(-30, 30))
    def check(values: list[float], exponent: int) -> None:
        src = np.resize(np.array(values, F), dims) * F(2.0) ** np.arange(dims[0], dtype=F).reshape(
            -1, *(1,) * (len(dims) - 1)
        )
        src = (src * F(2.0**exponent)).astype(F)
        wanted = formula(src, SOURCES[source], rows).reshape(shape)
        np.testing.assert_array_equal(operator(src), wanted)
        assert operator(src, out=out) is out
        np.testing.assert_array_equal(out, wanted)

    check()


@pytest.mark.parametrize("source", SOURCES)
def test_large_sources_are_shared_by_threads(source: str) -> None:
    rng = np.random.default_rng(8)
    operator = identity("matmul", SOURCES[source])
    src = (rng.normal(size=(4099, K)) * np.exp2(rng.integers(-9, 9, (4099, 1)))).astype(F)
    wanted = formula(src, SOURCES[source], len(src))
    operator(src)
    assert frames(lambda: operator(src)) == []
    for _ in range(3):
        np.testing.assert_array_equal(operator(src), wanted)
    src[4000, 7] = np.nan
    with pytest.raises(ArgumentError, match="src"):
        operator(src)


@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_rows_of_batched_weights(dtype: str) -> None:
    wei = np.stack([np.eye(K, dtype=np.int8)] * 3)
    source = Dynamic(dtype, "per_row")
    operator = MatMul(wei, src_q=source, wei_q=QParams(1.0, 0, "s8"), dst="f32")
    src = np.random.default_rng(9).normal(size=(3, 5, K)).astype(F)
    for _ in range(2):
        np.testing.assert_array_equal(operator(src), formula(src, source, 15))


@pytest.mark.parametrize("source", SOURCES)
def test_a_functional_call_and_a_checked_operator(source: str) -> None:
    src = np.random.default_rng(10).normal(size=(5, K)).astype(F)
    wanted = formula(src, SOURCES[source], 5)
    wei = np.eye(K, dtype=np.int8)
    checked = identity("matmul", SOURCES[source], self_check=True)
    for _ in range(2):
        options = {"src_q": SOURCES[source], "wei_q": QParams(1.0, 0, "s8"), "dst": "f32"}
        np.testing.assert_array_equal(matmul(src, wei, **options), wanted)
        np.testing.assert_array_equal(checked(src), wanted)
    assert frames(lambda: checked(src)) == []


@pytest.mark.parametrize("source", SOURCES)
def test_other_types_and_no_values_are_as_before(source: str) -> None:
    operator, src = drawn("matmul", source)
    for _ in range(2):
        wanted = operator(src)
        for dtype in (">f4", "f8", "f2", "i4"):
            with pytest.raises(DTypeError, match="src"):
                operator(src.astype(dtype))
        assert operator(src[:0]).shape == (0, 16)
        np.testing.assert_array_equal(operator(src), wanted)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", ["src_scale", "src_zero_point", "acc_map"])
def test_leaves_with_names_of_ours_are_operands_of_the_call(name: str, source: str) -> None:
    post = Chain(Binary("add", Leaf(name)))
    # A map is there where rows have zero points.
    if source not in {"u8", "s8"} and (name != "acc_map" or source == "u8 of rows"):
        with pytest.raises(ArgumentError, match="another name"):
            identity("matmul", SOURCES[source], post=post)
        return
    operator = identity("matmul", SOURCES[source], post=post)
    src = np.random.default_rng(11).normal(size=(5, K)).astype(F)
    added = F(2.0) * np.ones((5, K), F)
    wanted = operator(src, **{name: added})
    np.testing.assert_array_equal(operator(src, **{name: added}), wanted)
    np.testing.assert_allclose(wanted, formula(src, SOURCES[source], 5) + 2, rtol=1e-6)
    with pytest.raises(ArgumentError, match=name):
        operator(src)


@pytest.mark.parametrize(("lo", "hi", "most", "levels"), [(-1, 1, 1, 15), (0, 1.5, 3, 16)])
def test_other_levels_are_those_of_their_quantizer(
    lo: float, hi: float, most: float, levels: int
) -> None:
    least = lo * most / hi
    fq = FakeQuantize(lo, hi, least, most, levels)
    operator = MatMul.from_float(np.eye(K, dtype=F), src_q=fq, wei_levels=129)
    level = np.random.default_rng(12).integers(0, levels, (5, K))
    src = (lo + (level + 0.25) * (hi - lo) / (levels - 1)).astype(F)  # away from ties
    wanted = least + level * (most - least) / (levels - 1)
    for _ in range(3):
        assert np.abs(operator(src) - wanted).max() < (most - least) / levels / 100
