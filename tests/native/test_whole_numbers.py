"""Integers asked for of primitives that compute in float32: right, refused, or said to be rounded.

The oracle is NumPy's int64, with numbers of all sizes; what oneDNN computes unguarded is beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.errors import ArgumentError, KnownWrongError, UnsupportedError
from pyonednn_q.native import runtime, selection
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import BINARY_ALGS, BinaryPostOp, SumPostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    ConvProblem,
    EltwiseProblem,
    MatMulProblem,
    PoolingProblem,
    PReluProblem,
    ReorderProblem,
    ResamplingProblem,
    SumProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyonednn_q.primitive.problem import Problem

Array = np.ndarray[Any, Any]
DIMS = (2, 16, 6, 5)
RANGES = {"u8": (0, 255), "s8": (-128, 127), "s32": (-(2**31), 2**31 - 1)}
NUMPY = {"u8": np.uint8, "s8": np.int8, "s32": np.int32}
LIBRARY_ROW, MAXIMA_ROW = "s32-in-float32", "s32-maxima"


def numbers(rng: np.random.Generator, dims: tuple[int, ...], dtype: str = "s32") -> Array:
    """Codes of all sizes: a third of those in s32 below 300, a third around 2^24 to 2^26."""
    lo, hi = RANGES[dtype]
    if dtype != "s32":
        return rng.integers(lo, hi + 1, dims).astype(NUMPY[dtype])
    sizes = (rng.integers(lo, hi + 1, dims), rng.integers(-(2**26), 2**26, dims))
    found = np.choose(rng.integers(0, 3, dims), (*sizes, rng.integers(-300, 300, dims)))
    return np.asarray(found, np.int32)


def stored(values: NDArray[Any], dtype: str) -> Array:
    return np.asarray(np.clip(values, *RANGES[dtype]), NUMPY[dtype])


def spec(dtype: str = "s32", dims: tuple[int, ...] = DIMS, *, last: bool = False) -> TensorSpec:
    return (TensorSpec.channels_last if last else TensorSpec.dense)(dims, dtype)


def results(problem: Problem, attr: Attr, arrays: list[Array], **more: Any) -> Any:
    """Give what each implementation that may run returns, and the rows of those that may not."""
    offers = {offer.impl: offer for offer in selection.implementations(problem, attr)}
    for impl, offer in offers.items():
        options = {"implementation": impl, "allow_reference": True, **more}
        if offer.guards:
            with pytest.raises(KnownWrongError) as caught:
                native.prepare(problem, attr, **options)
            assert set(offer.guards) <= set(caught.value.guards)
            yield impl, None, offer.guards
        else:
            yield impl, native.prepare(problem, attr, **options)(*arrays), ()


BINARY: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "eq": np.equal,
    "ne": np.not_equal,
}


def quotients(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Rounded to nearest even, of whole numbers."""
    sign = np.where((a < 0) != (b < 0), -1, 1)
    a, b = abs(a), abs(b)
    whole, rest = a // b, a % b
    up = (2 * rest > b) | ((2 * rest == b) & (whole % 2 == 1))
    return np.asarray(sign * (whole + up))


@pytest.mark.parametrize("seed", range(40))
def test_binary_is_exact_or_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    types = [str(rng.choice(["s32", "s32", "u8", "s8"])) for _ in range(3)]
    dims = tuple(int(size) for size in rng.integers(1, 20, rng.integers(1, 5)))
    a, b = (numbers(rng, dims, dtype) for dtype in types[:2])
    near = rng.random(dims) < 0.5
    if types[0] == types[1]:
        b = np.where(near, np.clip(a.astype(np.int64) + 1, *RANGES[types[1]]), b).astype(b.dtype)
    wide = a.astype(np.int64), b.astype(np.int64)
    for alg in BINARY_ALGS:
        if alg == "div":
            b = np.where(b == 0, 1, b).astype(b.dtype)
            wide = wide[0], b.astype(np.int64)
        src, src1, dst_spec = (spec(dtype, dims) for dtype in types)
        problem = BinaryProblem(src, src1, dst_spec, alg)
        try:
            found = list(results(problem, Attr(), [a, b]))
        except UnsupportedError:
            continue
        exact = stored((quotients if alg == "div" else BINARY[alg])(*wide), types[2])
        for impl, dst, rows in found:
            if dst is None:
                assert rows == (LIBRARY_ROW,)
                assert "s32" in types[:2]
            else:
                assert np.array_equal(dst, exact), (impl, problem.text())


@pytest.mark.parametrize(
    ("alg", "alpha", "beta", "may_run"),
    [
        ("relu", 0.0, 0.0, False),
        ("linear", 1.0, 0.0, False),
        ("linear", 2.0, 3.0, False),
        ("clip", -1e9, 1e9, False),
        ("clip", -5.0, 2.0**24 + 2, False),
        ("clip", -(2.0**24), 2.0**24, True),
        ("clip", -128.0, 127.0, True),
    ],
)
def test_eltwise_is_exact_or_refused(alg: str, alpha: float, beta: float, may_run: bool) -> None:
    src = numbers(np.random.default_rng(0), DIMS)
    for last in (False, True):
        s32 = spec(last=last)
        for impl, dst, rows in results(EltwiseProblem(s32, s32, alg, alpha, beta), Attr(), [src]):
            assert rows == (() if may_run else (LIBRARY_ROW,))
            if may_run:
                assert np.array_equal(dst, np.clip(src, int(alpha), int(beta))), impl


def test_maxima_are_exact_or_refused() -> None:
    src = numbers(np.random.default_rng(1), DIMS)
    window: Any = ((2, 1), (2, 1), (1, 1), (0, 0), (0, 0))
    exact = np.maximum(src[:, :, ::2], src[:, :, 1::2])
    ran = []
    for last in (False, True):
        problem = PoolingProblem(
            spec(last=last), spec(dims=(2, 16, 3, 5), last=last), "max", *window
        )
        for impl, dst, rows in results(problem, Attr(), [src]):
            if dst is None:
                assert rows == (MAXIMA_ROW,)
            else:
                assert np.array_equal(dst, exact), impl
                ran.append(impl)
    assert any(impl.startswith("jit_int") for impl in ran)


UNIT, POINT = Attr(src_scale=Scale()), Attr(src_zero_point=ZeroPoint())
FULL = TensorSpec.dense((2, 16, 12, 10), "s32")
SMALL = PoolingProblem(
    spec(last=True),
    spec(dims=(2, 16, 3, 5), last=True),
    "avg_exclude_padding",
    *((2, 1), (2, 1), (1, 1), (0, 0), (0, 0)),
)
OTHERS: dict[str, tuple[Any, Attr]] = {
    "mean": (SMALL, Attr()),
    "sum": (SumProblem((spec(), spec()), (1.0, 1.0), spec()), Attr()),
    "one source": (SumProblem((spec(),), (1.0,), spec()), Attr()),
    "difference": (SumProblem((spec(), spec()), (1.0, -1.0), spec("u8")), Attr()),
    "nearest": (ResamplingProblem(spec(), FULL, "nearest"), Attr()),
    "linear": (ResamplingProblem(spec(), FULL, "linear"), Attr()),
    "prelu": (PReluProblem(spec(), spec("f32", (1, 16, 1, 1)), spec()), Attr()),
    "scale of 1": (ReorderProblem(spec(), spec(last=True)), UNIT),
    "zero point": (ReorderProblem(spec(), spec()), POINT),
    "added to what was there": (
        ReorderProblem(spec(), spec()),
        Attr(post_ops=(SumPostOp(),)),
    ),
    "operand": (
        BinaryProblem(spec("f32"), spec("f32"), spec(), "mul"),
        Attr(post_ops=(BinaryPostOp("add", spec()),)),
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_no_implementation_of_others_may_run(case: str) -> None:
    problem, attr = OTHERS[case]
    offers = selection.implementations(problem, attr)
    assert offers
    assert all(LIBRARY_ROW in offer.guards for offer in offers)


@pytest.mark.parametrize("dtype", ["s32", "u8", "s8"])
@pytest.mark.parametrize("last", [False, True])
def test_plain_reorders_are_exact(dtype: str, last: bool) -> None:
    src = numbers(np.random.default_rng(2), DIMS)
    problem = ReorderProblem(spec(), spec(dtype, last=last))
    for impl, dst, _ in results(problem, Attr(), [src]):
        assert np.array_equal(dst, stored(src.astype(np.int64), dtype)), impl


@pytest.mark.parametrize("dtype", ["s8", "f32"])
def test_zero_points_stay_where_float32_is_exact(dtype: str) -> None:
    codes = np.arange(-100, 100, dtype=np.int8 if dtype == "s8" else np.float32)
    problem = ReorderProblem(spec(dtype, codes.shape), spec(dims=codes.shape))
    attr = Attr(dst_zero_point=ZeroPoint())
    for point in (2**23, -(2**23)):
        call = native.prepare(problem, attr, values={"dst_zero_point": point})
        assert call(codes).tolist() == (codes.astype(np.int64) + point).tolist()
    for point in (2**23 + 1, -(2**23) - 1):
        with pytest.raises(ArgumentError, match=f"dst_zero_point: got {point}; .* in float32"):
            native.prepare(problem, attr, values={"dst_zero_point": point})


@pytest.mark.parametrize("bias", [None, 2**25 + 1])
@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("kind", ["matmul", "convolution"])
def test_sums_are_exact_or_said_to_be_rounded(kind: str, src: str, bias: int | None) -> None:
    """For each implementation: small sums without a note, large ones with one where they differ."""
    rng = np.random.default_rng(3)
    for channels in (64, 20_000):
        more: dict[str, Any] = {} if bias is None else {"bias": np.full(8, bias, np.int32)}
        dtype = None if bias is None else "s32"
        codes = rng.integers(90, 128, (4, channels)).astype(NUMPY[src])
        weights = rng.integers(48, 64, (channels, 8)).astype(np.int8)  # exact on every CPU
        problem: Any
        if kind == "matmul":
            problem = MatMulProblem.of((4, channels), (channels, 8), src=src, dst="s32", bias=dtype)
            arrays, wei = [codes], weights
        else:
            dims = (4, channels, 1, 1), (8, channels, 1, 1)
            problem = ConvProblem.of(*dims, src=src, dst="s32", bias=dtype)
            arrays, wei = [codes.reshape(dims[0])], weights.T.copy().reshape(dims[1])
        exact = codes.astype(np.int64) @ weights.astype(np.int64) + (bias or 0)
        for offer in selection.implementations(problem, Attr()):
            if offer.guards:
                continue
            call = native.prepare(
                problem,
                wei=wei,
                implementation=offer.impl,
                allow_reference=True,
                saturation="allow",
                **more,
            )
            if any("does not sum exactly" in note for note in call.notes):
                continue
            is_told = any("by way of float32" in note for note in call.notes)
            assert is_told or np.array_equal(call(*arrays).reshape(exact.shape), exact)
            assert not is_told or channels > 64 or bias is not None


def test_other_sums_are_not_said_to_be_rounded() -> None:
    problem = MatMulProblem.of((4, 20_000), (20_000, 8), dst="s32")
    wei = np.ones((20_000, 8), np.int8)
    for attr, values in (
        (Attr(src_scale=Scale()), {"src_scale": 0.5}),  # real numbers
        (Attr(), {}),  # small weights
    ):
        call = native.prepare(problem, attr, wei=wei, values=values)
        assert not any("by way of float32" in note for note in call.notes)
    assert runtime.version() >= (3, 7)
