"""The quantized operators on oneDNN's primitives: every code is that of its float32 steps.

The steps are stated in rational arithmetic (`support.definitions.onednn_operators`). Scales are
drawn so that many results lie at a tie or beside one; exponentials are held to the errors that
kernels were measured to have.
"""

from __future__ import annotations

import contextlib
import io
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyonednn_q import emulate as quantized
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.qparams import QParams
from support import oracle_eltwise
from support.definitions import onednn_operators as stated
from support.definitions import operators
from support.definitions.requantization import f32
from support.oracle_numbers import numpy_dtype
from support.oracle_plain import softmax_of
from support.oracle_tracked import Tracked, mul, multiply_add

Array = np.ndarray[Any, Any]
TYPES = [("s8", "s8"), ("u8", "u8"), ("s8", "u8"), ("u8", "s8")]
DRAWS = 8
EXTREME = 2.0**-12  # a scale beside which others are 2^12 codes and more


def codes(rng: np.random.Generator, dtype: str, dims: tuple[int, ...]) -> Array:
    lo, hi = operators.LIMITS[dtype]
    return rng.integers(lo, hi + 1, dims).astype(numpy_dtype(dtype))


def every(dtype: str) -> Array:
    lo, hi = operators.LIMITS[dtype]
    return np.arange(lo, hi + 1).astype(numpy_dtype(dtype))


def drawn(rng: np.random.Generator, *types: str, steered: bool) -> list[QParams]:
    """Parameters per type; steered, the last is such that a code of the first is at a tie."""
    found = [operators.drawn(rng, dtype, 1)[0] for dtype in types]
    if steered:
        code, tie = int(rng.integers(1, 128)), int(rng.integers(0, 60)) + 0.5
        last = float(np.float32(float(found[0].scale) * code / tie))
        if rng.integers(4) == 0:
            last = EXTREME
        found[-1] = QParams(last, int(found[-1].zero_point), types[-1])
    return found


def shifted(src: Array, q: QParams) -> list[int]:
    return [int(code) - int(q.zero_point) for code in src.ravel()]


def call(function: Any, *args: Any, **keywords: Any) -> list[int]:
    """Run an operator; return its codes row by row."""
    return [int(code) for code in function(*args, dialect="onednn", **keywords).ravel()]


@pytest.mark.parametrize(("src", "dst"), TYPES)
def test_functions_of_one_value(src: str, dst: str) -> None:
    rng = np.random.default_rng([ord(src[0]), ord(dst[0])])
    x = every(src)
    for draw in range(3 * DRAWS):
        src_q, q = drawn(rng, src, dst, steered=draw % 3 > 0)
        alpha = float(np.float32(rng.uniform(-1.5, 1.5)))
        at = shifted(x, src_q)
        for slope, got in (
            (1, call(quantized.requantize, x, src_q=src_q, dst_q=q)),
            (0, call(quantized.relu, x, src_q=src_q, dst_q=q)),
            (alpha, call(quantized.leaky_relu, x, alpha, src_q=src_q, dst_q=q)),
        ):
            exact = Fraction(slope)
            assert got == [stated.leaky_relu(v, exact, src_q, q) for v in at]


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize(("src", "dst"), TYPES)
def test_power(src: str, dst: str, p: int) -> None:
    rng = np.random.default_rng([p, ord(src[0]), ord(dst[0])])
    x = every(src)
    for draw in range(DRAWS):
        src_q, q = drawn(rng, src, dst, steered=draw % 2 > 0)
        scale, shift = (float(np.float32(v)) for v in rng.uniform(-2, 2, 2))
        got = call(quantized.power, x, p, src_q=src_q, dst_q=q, scale=scale, shift=shift)
        constants = (Fraction(scale), Fraction(shift))
        assert got == [stated.power(v, p, *constants, src_q, q) for v in shifted(x, src_q)]


def test_a_power_of_its_own() -> None:
    """A third power of small integers is exact in float32, whatever computes it."""
    q = QParams(1.0, 0, "s8")
    got = call(quantized.power, np.arange(-6, 7).astype(np.int8), 3, src_q=q, dst_q=q)
    assert got == [min(max(v**3, -128), 127) for v in range(-6, 7)]


@pytest.mark.parametrize(("src", "dst"), TYPES)
def test_prelu(src: str, dst: str) -> None:
    rng = np.random.default_rng([1, ord(src[0]), ord(dst[0])])
    for draw in range(DRAWS):
        src_q, slope_q, q = drawn(rng, src, "s8", dst, steered=draw % 2 > 0)
        x, slope = codes(rng, src, (2, 19, 3)), codes(rng, "s8", (19,))
        got = call(quantized.prelu, x, slope, src_q=src_q, slope_q=slope_q, dst_q=q)
        slopes = [f32(s * operators.scale(slope_q)) for s in shifted(slope, slope_q)]
        wanted = [
            stated.leaky_relu(v, slopes[at // 3 % 19], src_q, q)
            for at, v in enumerate(shifted(x, src_q))
        ]
        assert got == wanted


@pytest.mark.parametrize("b_dims", [(2, 19, 4, 3), (19, 1, 3), (1, 19, 1, 1), ()])
@pytest.mark.parametrize(("a", "b"), TYPES)
def test_add(a: str, b: str, b_dims: tuple[int, ...]) -> None:
    rng = np.random.default_rng([2, ord(a[0]), ord(b[0]), len(b_dims)])
    for draw in range(3):
        a_q, b_q, q = drawn(rng, a, b, a, steered=draw % 2 > 0)
        x, y = codes(rng, a, (2, 19, 4, 3)), codes(rng, b, b_dims)
        for first in (True, False):
            left, right = (x, y) if first else (y, x)
            left_q, right_q = (a_q, b_q) if first else (b_q, a_q)
            got = call(quantized.add, left, right, a_q=left_q, b_q=right_q, dst_q=q)
            pairs = np.stack(np.broadcast_arrays(x.astype(int), y.astype(int)), -1).reshape(-1, 2)
            # The first operand is that which is not broadcast; alike, addends do not order.
            if first or b_dims != x.shape:
                wanted = [stated.add(v, w, a_q, b_q, q) for v, w in pairs.tolist()]
            else:
                wanted = [stated.add(w, v, b_q, a_q, q) for v, w in pairs.tolist()]
            assert got == wanted


def test_sums_of_operands_that_are_both_broadcast() -> None:
    rng = np.random.default_rng(3)
    a_q, b_q, q = drawn(rng, "s8", "s8", "s8", steered=True)
    x, y = codes(rng, "s8", (5, 1)), codes(rng, "s8", (1, 7))
    got = call(quantized.add, x, y, a_q=a_q, b_q=b_q, dst_q=q)
    assert got == [stated.add(int(v), int(w), a_q, b_q, q) for v in x.ravel() for w in y.ravel()]


def test_bias_add() -> None:
    rng = np.random.default_rng(4)
    for dims in ((3, 19), (2, 19, 5), (1, 19, 4, 3)):
        src_q, bias_q, q = drawn(rng, "u8", "s8", "u8", steered=True)
        x, bias = codes(rng, "u8", dims), codes(rng, "s8", (19,))
        got = call(quantized.bias_add, x, bias, src_q=src_q, bias_q=bias_q, dst_q=q)
        along = np.broadcast_to(bias.reshape(-1, *(1,) * (len(dims) - 2)), dims)
        pairs = zip(x.ravel().tolist(), along.ravel().tolist(), strict=True)
        assert got == [stated.add(v, w, src_q, bias_q, q) for v, w in pairs]


@pytest.mark.parametrize("count_padding", [False, True])
@pytest.mark.parametrize("dtype", ["s8", "u8"])
def test_means(dtype: str, count_padding: bool) -> None:
    rng = np.random.default_rng([5, ord(dtype[0]), count_padding])
    for kernel, stride, padding in ((3, 2, 1), (5, 5, 0), (2, 1, 1)):
        for draw in range(3):
            src_q, q = drawn(rng, dtype, dtype, steered=draw == 1)
            q = src_q if draw == 2 else q
            # 3 channels of one result are too few for kernels below AVX-512.
            src = codes(rng, dtype, (1, 3 if draw else 64, 5, 5))
            got = call(
                quantized.average_pool,
                src,
                kernel,
                src_q=src_q,
                dst_q=q,
                stride=stride,
                padding=padding,
                count_padding=count_padding,
            )
            size = kernel * kernel
            wanted = []
            for window in operators.windows(src, kernel, stride, padding):
                outside = size - len(window) if count_padding else 0
                count = size if count_padding else len(window)
                wanted.append(stated.mean(window, outside, count, src_q, q))
            assert got == wanted


@pytest.mark.parametrize("dims", [(2, 64, 9), (1, 64, 3, 4, 5)])
def test_means_of_other_ranks(dims: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(dims))
    src_q, q = drawn(rng, "s8", "s8", steered=True)
    src = codes(rng, "s8", dims)
    got = call(quantized.average_pool, src, dims[2:], src_q=src_q, dst_q=q)
    rows = src.reshape(-1, int(np.prod(dims[2:]))).tolist()
    assert got == [stated.mean(row, 0, len(row), src_q, q) for row in rows]


@pytest.mark.parametrize("dtype", ["s8", "u8"])
def test_maxima(dtype: str) -> None:
    src = codes(np.random.default_rng(6), dtype, (2, 64, 6, 5))
    for kernel, stride, padding in ((3, 2, 1), (2, 1, 0)):
        got = call(quantized.max_pool, src, kernel, stride=stride, padding=padding)
        assert got == [max(window) for window in operators.windows(src, kernel, stride, padding)]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis: int) -> None:
    rng = np.random.default_rng([7, axis + 1])
    for draw in range(DRAWS):
        a_q, b_q, q = drawn(rng, "s8", "u8", "s8", steered=draw % 2 > 0)
        other = tuple(2 if at == axis % 3 else n for at, n in enumerate((3, 5, 4)))
        x, y = codes(rng, "s8", (3, 5, 4)), codes(rng, "u8", other)
        parts = [
            np.reshape([stated.joined(v, each, q) for v in shifted(src, each)], src.shape)
            for src, each in ((x, a_q), (y, b_q))
        ]
        got = call(quantized.concat, [x, y], srcs_q=[a_q, b_q], dst_q=q, axis=axis)
        assert got == np.concatenate(parts, axis).ravel().tolist()


@pytest.mark.parametrize(("src", "dst"), TYPES)
def test_resizing(src: str, dst: str) -> None:
    rng = np.random.default_rng([8, ord(src[0]), ord(dst[0])])
    for draw, size in enumerate(((7, 9), (3, 2), (1, 5))):
        src_q, q = drawn(rng, src, dst, steered=draw == 1)
        q = src_q if draw == 2 and src == dst else q
        x = codes(rng, src, (1, 19, 5, 4))
        got = call(quantized.resize_bilinear, x, size, src_q=src_q, dst_q=q, half_pixel=True)
        wanted = []
        for channel in x[0].tolist():
            for top, bottom, down in stated.places(5, size[0]):
                for left, right, across in stated.places(4, size[1]):
                    above, below = (
                        stated.mixed(channel[row][left], channel[row][right], across)
                        for row in (top, bottom)
                    )
                    wanted.append(stated.rescaled(stated.mixed(above, below, down), src_q, q))
        assert got == wanted


def accepted(got: list[int], real: Tracked, q: QParams) -> bool:
    """Whether every code is one that a value within the error of the real one has."""
    inverse = Tracked.exact(np.float32(1 / float(q.scale)))
    value = multiply_add(real, inverse, Tracked.exact(float(q.zero_point)))
    lo, hi = operators.LIMITS[q.dtype]
    ends = (value.value - value.error, value.value + value.error)
    least, most = (np.rint(np.clip(end, lo, hi)).ravel() for end in ends)
    return bool(((least <= got) & (got <= most)).all() and (least == most).mean() > 0.9)


@pytest.mark.parametrize("dst", ["s8", "u8"])
def test_sigmoid(dst: str) -> None:
    rng = np.random.default_rng([9, ord(dst[0])])
    for _ in range(DRAWS):
        src_q = QParams(float(np.float32(rng.uniform(0.005, 0.045))), 3, "s8")
        q = QParams(2.0**-8, operators.LIMITS[dst][0], dst)
        at = Tracked.exact(np.array(shifted(every("s8"), src_q), float))
        real = oracle_eltwise.apply("logistic", mul(at, Tracked.exact(src_q.scale)), 0.0, 0.0)
        assert accepted(call(quantized.sigmoid, every("s8"), src_q=src_q, dst_q=q), real, q)


@pytest.mark.parametrize("beta", [1.0, 0.3])
@pytest.mark.parametrize("axis", [1, 2])
def test_softmax(axis: int, beta: float) -> None:
    rng = np.random.default_rng([10, axis])
    q = QParams(2.0**-8, -128, "s8")
    for _ in range(DRAWS):
        (src_q,) = drawn(rng, "u8", steered=False)
        x = codes(rng, "u8", (3, 11, 6))
        step = np.float32(src_q.scale) * np.float32(beta)
        values = (x.astype(np.float32) - np.float32(src_q.zero_point)) * step
        real = softmax_of(values.astype(np.float64), axis)
        got = call(quantized.softmax, x, src_q=src_q, dst_q=q, axis=axis, beta=beta)
        assert accepted(got, real, q)


def test_borders_are_stored_as_a_primitive_stores() -> None:
    q = QParams(2.0, 5, "s8")
    assert call(quantized.pad, np.zeros(1, np.int8), [(1, 1)], src_q=q, value=3.0) == [6, 0, 6]
    other = {
        name: quantized.pad(np.zeros(0, np.int8), [(1, 0)], src_q=q, value=3.0, dialect=name)
        for name in ("onnxruntime", "onednn")
    }
    # 3 / 2 is a tie: to 2 before the zero point is added, 6.5 to 6 after.
    assert [array.item() for array in other.values()] == [7, 6]


def test_nothing_is_nothing() -> None:
    q = QParams(0.5, 0, "s8")
    none = np.zeros((0, 3), np.int8)
    assert call(quantized.relu, none, src_q=q, dst_q=q) == []
    assert call(quantized.concat, [none, none], srcs_q=[q, q], dst_q=q) == []


def test_one_call_of_each_prints_what_the_page_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "quantized_operators.md").read_text()
    *_, code, output = re.findall(r"```(?:python|text)\n(.*?)```", page, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == output
    assert len(output.splitlines()) == 17


def test_what_the_primitives_do_not_take_is_refused() -> None:
    s8, u8 = QParams(0.5, 0, "s8"), QParams(0.5, 0, "u8")
    x = np.zeros((1, 64, 4, 4), np.int8)
    with pytest.raises(DTypeError, match=r"^dst_q: .* pooling of codes keeps their type"):
        call(quantized.average_pool, x, 2, src_q=s8, dst_q=u8)
    with pytest.raises(ArgumentError, match=r"^half_pixel: .* centres of pixels"):
        call(quantized.resize_bilinear, x, (2, 2), src_q=s8, dst_q=s8)
    with pytest.raises(ArgumentError, match=r"^beta: got -1\.0"):
        call(quantized.softmax, x, src_q=s8, dst_q=s8, beta=-1.0)
    tiny = QParams(1e-38, 0, "s8")
    with pytest.raises(ArgumentError, match=r"^dst_q: .* float32 relates"):
        call(quantized.relu, x, src_q=QParams(1e3, 0, "s8"), dst_q=tiny)
