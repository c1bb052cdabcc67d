"""LiteRT's quantized operators, to the last output: the dialects `tflite` and `xnnpack`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q import emulate as quantized
from pyonednn_q.qparams import QParams
from support.oracles import litert
from support.oracles.layers import LIMITS
from support.oracles.litert import Tensor
from support.oracles.operators import draws

pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed: pip install .[oracles]")
pytest.importorskip("flatbuffers", reason="flatbuffers is not installed: pip install .[oracles]")

Array = np.ndarray[Any, Any]
ALL = tuple(litert.RESOLVERS)
BOTH = ("reference", "optimised")
dtypes = pytest.mark.parametrize("dtype", ["s8", "u8"])


def last(array: Array) -> Array:
    """Channels last, as LiteRT has them."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def tensor(array: Array, q: QParams) -> Tensor:
    return Tensor(array.shape, q.dtype, q.scale, q.zero_point)


def agree(
    op: str,
    given: list[tuple[Array, QParams]],
    ours: tuple[Array, QParams],
    options: dict[str, Any] | None = None,
    *,
    constants: tuple[Tensor, ...] = (),
    options_of: str | None = None,
    op_version: int = 2,
    resolvers: tuple[str, ...] = ALL,
) -> None:
    """Run one operator on every kernel set named, and compare all of its outputs."""
    inputs = [tensor(array, q) for array, q in given] + list(constants)
    model = litert.model(
        op, inputs, tensor(*ours), options or {}, options_of=options_of, op_version=op_version
    )
    for resolver in resolvers:
        answer = litert.run(model, resolver, *(array for array, _ in given))
        assert answer.dtype == ours[0].dtype
        assert int((answer != ours[0]).sum()) == 0, resolver


@dtypes
def test_add(dtype: str) -> None:
    differ = 0
    for dtype_, (a_q, b_q, dst_q, _), x, y, _ in draws(dtype, 20):
        assert dtype_ == dtype
        given = [(x, a_q), (y, b_q)]
        by = {
            dialect: quantized.add(x, y, a_q=a_q, b_q=b_q, dst_q=dst_q, dialect=dialect)
            for dialect in ("tflite", "xnnpack")
        }
        agree("ADD", given, (by["tflite"], dst_q), resolvers=("reference",))
        agree("ADD", given, (by["xnnpack"], dst_q), resolvers=("xnnpack",))
        differ += int((by["tflite"] != by["xnnpack"]).sum())
    assert differ > 0


def every_pair(dtype: str) -> tuple[Array, Array]:
    lo, hi = LIMITS[dtype]
    codes = np.arange(lo, hi + 1).astype("u1" if dtype == "u8" else "i1")
    a, b = np.meshgrid(codes, codes, indexing="ij")
    return a.ravel(), b.ravel()


@dtypes
def test_add_of_every_pair_of_codes(dtype: str) -> None:
    """At ratios of small integers, which meet ties: where the two kernel sets differ, and not."""
    (a, b), rng = every_pair(dtype), np.random.default_rng(7)
    lo, hi = LIMITS[dtype]
    differ = left = 0
    for draw in range(120):
        numbers = rng.integers(1, 64, 4)
        scales = [numbers[0] / numbers[1], numbers[2] / numbers[3]]
        scales *= 2.0 ** rng.integers(-6, 1, 2)
        scales = [*scales, scales[draw % 2] * rng.integers(1, 17) / rng.integers(1, 9)]
        points = rng.integers(lo, hi + 1, 3)
        pairs = zip(scales, points, strict=True)
        q = [QParams(float(np.float32(scale)), int(point), dtype) for scale, point in pairs]
        count = a.size - draw % 16  # what vectors leave over
        given = {"a_q": q[0], "b_q": q[1], "dst_q": q[2]}
        x, y = a[:count], b[:count]
        by = {
            dialect: quantized.add(x, y, dialect=dialect, **given)
            for dialect in ("tflite", "tflite_optimised")
        }
        for dialect, resolver in (("tflite", "reference"), ("tflite_optimised", "optimised")):
            agree("ADD", [(x, q[0]), (y, q[1])], (by[dialect], q[2]), resolvers=(resolver,))
        where = np.flatnonzero(by["tflite"] != by["tflite_optimised"])
        differ += len(where)
        left += int((where >= count - count % 16).sum())
    assert differ > 50
    assert left == 0 or dtype == "u8"


@dtypes
def test_add_of_images_on_optimised_kernels(dtype: str) -> None:
    for _, (a_q, b_q, dst_q, _), *images, _ in draws(dtype, 6):
        x, y = (image[:1, :, :7, :5] for image in images)
        ours = quantized.add(x, y, a_q=a_q, b_q=b_q, dst_q=dst_q, dialect="tflite_optimised")
        given = [(last(x), a_q), (last(y), b_q)]
        agree("ADD", given, (last(ours), dst_q), resolvers=("optimised",))


@dtypes
def test_relu(dtype: str) -> None:
    for _, (src_q, dst_q, *_), x, _, _ in draws(dtype, 20):
        ours = quantized.relu(x, src_q=src_q, dst_q=dst_q)
        agree("RELU", [(x, src_q)], (ours, dst_q), options_of="")


@dtypes
@pytest.mark.parametrize("alpha", [0.2, 0.01, 1.5, -0.3])
def test_leaky_relu(dtype: str, alpha: float) -> None:
    for _, (src_q, dst_q, *_), x, _, _ in draws(dtype, 12):
        for dialect, resolvers in (("tflite", BOTH), ("xnnpack", ("xnnpack",))):
            if alpha < 0 and dialect == "tflite":
                continue
            ours = quantized.leaky_relu(x, alpha, src_q=src_q, dst_q=dst_q, dialect=dialect)
            options = {"alpha": alpha}
            agree("LEAKY_RELU", [(x, src_q)], (ours, dst_q), options, resolvers=resolvers)


@dtypes
def test_prelu(dtype: str) -> None:
    for _, (src_q, slope_q, dst_q, _), x, y, _ in draws(dtype, 20):
        slope = y[0, :, 0, 0]
        ours = quantized.prelu(x, slope, src_q=src_q, slope_q=slope_q, dst_q=dst_q)
        along = Tensor.of(slope.reshape(1, 1, -1), dtype, slope_q.scale, int(slope_q.zero_point))
        given = [(last(x), src_q)]
        agree("PRELU", given, (last(ours), dst_q), constants=(along,), options_of="", op_version=1)


@dtypes
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 1, 1), (3, 2, 0), (2, 2, 0)])
def test_average_and_max_pool(dtype: str, kernel: int, stride: int, padding: int) -> None:
    options = {
        "padding": 0 if padding else 1,
        "strideW": stride,
        "strideH": stride,
        "filterWidth": kernel,
        "filterHeight": kernel,
    }
    window: dict[str, Any] = {"stride": stride, "padding": padding}
    for _, (q, *_), x, _, _ in draws(dtype, 8):
        mean = quantized.average_pool(x, kernel, src_q=q, dst_q=q, **window)
        largest = quantized.max_pool(x, kernel, **window)
        for op, ours in (("AVERAGE_POOL_2D", mean), ("MAX_POOL_2D", largest)):
            agree(op, [(last(x), q)], (last(ours), q), options, options_of="Pool2D")


MEANS = {"tflite": "reference", "tflite_optimised": "optimised", "xnnpack": "xnnpack"}


def agree_on_mean(
    x: Array, axes: tuple[int, ...], src_q: QParams, dst_q: QParams, dialect: str
) -> Array:
    """Compare means of (N, C, H, W), which the runtime has channels last."""
    ours = quantized.mean(x, axes, src_q=src_q, dst_q=dst_q, dialect=dialect)
    where = [(0, 3, 1, 2)[axis] for axis in axes]
    agree(
        "MEAN",
        [(last(x), src_q)],
        (last(ours), dst_q),
        {"keepDims": True},
        constants=(Tensor.of(np.array(where), "s32"),),
        options_of="Reducer",
        resolvers=(MEANS[dialect],),
    )
    return ours


@dtypes
@pytest.mark.parametrize("axes", [(2, 3), (3, 2), (3,), (2, 1), (0, 1, 2, 3)])
def test_mean_of_other_scales(dtype: str, axes: tuple[int, ...]) -> None:
    """Images of up to two whole vectors of channels, and what these leave over."""
    differ = dict.fromkeys(MEANS, 0)
    for seed in range(40):
        rng = np.random.default_rng([seed, len(axes), axes[0]])
        lo, hi = LIMITS[dtype]
        dims = (2, *(int(n) for n in rng.integers((1, 1, 1), (40, 9, 9))))
        x = rng.integers(lo, hi + 1, dims).astype("i1" if dtype == "s8" else "u1")
        step = np.float32(rng.uniform(0.01, 1.0))
        scales = (step, step if seed == 0 else np.float32(step * rng.uniform(0.1, 3.0)))
        src_q, dst_q = (
            QParams(float(scale), int(rng.integers(lo, hi + 1)), dtype) for scale in scales
        )
        by = {dialect: agree_on_mean(x, axes, src_q, dst_q, dialect) for dialect in MEANS}
        for dialect, codes in by.items():
            differ[dialect] += int((codes != by["tflite"]).sum())
    assert (differ["tflite_optimised"] > 0) == (set(axes) == {2, 3})
    assert differ["xnnpack"] > 0 or len(axes) == 4


@dtypes
def test_mean_next_to_a_tie(dtype: str) -> None:
    """Where the float32 roundings of factor and shift decide."""
    rng, (lo, hi) = np.random.default_rng(5), LIMITS[dtype]
    for _ in range(150):
        height, width = (int(n) for n in rng.integers(2, 9, 2))
        n = height * width
        src_scale = np.float32(rng.uniform(0.01, 1.0))
        dst_scale = np.float32(src_scale * rng.uniform(0.1, 3.0))
        src_q = QParams(float(src_scale), int(rng.integers(lo, hi + 1)), dtype)
        dst_q = QParams(float(dst_scale), (lo + hi + 1) // 2, dtype)
        sums = np.arange(lo * n, hi * n + 1)
        real = (sums - n * src_q.zero_point) * float(src_scale) / float(dst_scale) / n
        off = np.abs(real - np.floor(real) - 0.5)
        nearest = int(sums[np.argmin(np.where(np.abs(real) < 120, off, 1.0))])
        codes = np.full(n, nearest // n)
        codes[: nearest % n] += 1
        x = codes.reshape(1, 1, height, width).astype("i1" if dtype == "s8" else "u1")
        for dialect in MEANS:
            agree_on_mean(x, (2, 3), src_q, dst_q, dialect)


@dtypes
def test_concat(dtype: str) -> None:
    for _, q, x, y, _ in draws(dtype, 12):
        srcs_q, dst_q = (q[:2], q[2]) if dtype == "u8" else ([q[0]] * 2, q[0])
        ours = quantized.concat([x, y], srcs_q=srcs_q, dst_q=dst_q)
        given = [(last(x), srcs_q[0]), (last(y), srcs_q[1])]
        agree("CONCATENATION", given, (last(ours), dst_q), {"axis": 3})


@dtypes
@pytest.mark.parametrize("mode", ["constant", "reflect"])
def test_pad(dtype: str, mode: str) -> None:
    sides = [(0, 0), (1, 2), (0, 3), (1, 0)]
    op = "PAD" if mode == "constant" else "MIRROR_PAD"
    for _, (q, *_), x, _, _ in draws(dtype, 4):
        ours = quantized.pad(x, sides, src_q=q, mode=mode)
        agree(op, [(x, q)], (ours, q), constants=(Tensor.of(np.array(sides), "s32"),))


@dtypes
def test_sigmoid_and_softmax(dtype: str) -> None:
    unit = QParams(2.0**-8, LIMITS[dtype][0], dtype)
    for _, (q, *_), x, _, _ in draws(dtype, 12):
        ours = quantized.sigmoid(x, src_q=q, dst_q=unit)
        agree("LOGISTIC", [(x, q)], (ours, unit), options_of="")
        ours = quantized.softmax(x, src_q=q, dst_q=unit, axis=-1)
        agree("SOFTMAX", [(x, q)], (ours, unit), {"beta": 1.0})


@dtypes
@pytest.mark.parametrize("half_pixel", [False, True])
@pytest.mark.parametrize("size", [(18, 18), (5, 13), (20, 7)])
def test_resize_bilinear(dtype: str, half_pixel: bool, size: tuple[int, int]) -> None:
    judged = {
        "tflite": ("reference",),
        "tflite_optimised": ("optimised",),
        "xnnpack": ("xnnpack",),
    }
    for _, (q, *_), x, _, _ in draws(dtype, 4):
        for dialect, resolvers in judged.items():
            ours = quantized.resize_bilinear(
                x, size, src_q=q, dst_q=q, half_pixel=half_pixel, dialect=dialect
            )
            agree(
                "RESIZE_BILINEAR",
                [(last(x), q)],
                (last(ours), q),
                {"halfPixelCenters": half_pixel},
                constants=(Tensor.of(np.array(size), "s32"),),
                resolvers=resolvers,
            )


@pytest.mark.parametrize("to", ["s8", "u8"])
@dtypes
def test_requantize(dtype: str, to: str) -> None:
    resolvers = {"tflite": "reference", "tflite_optimised": "optimised", "xnnpack": "xnnpack"}
    made = dict.fromkeys(resolvers, 0)
    for draw, (_, (src_q, other, *_), x, _, _) in enumerate(draws(dtype, 40)):
        # A code of the source at a tie, or next to one, in every second draw.
        tie = float(np.float32(float(src_q.scale) * (draw + 1) / (draw % 7 + 0.5)))
        scale = tie if draw % 2 else float(other.scale)
        lo, hi = LIMITS[to]
        dst_q = QParams(scale, (draw * 37) % 256 + lo, to)
        assert lo <= dst_q.zero_point <= hi
        every = x.ravel()[: 255 - draw]  # the kernels' vectors, and what they leave over
        by = {
            dialect: quantized.requantize(every, src_q=src_q, dst_q=dst_q, dialect=dialect)
            for dialect in resolvers
        }
        for dialect, resolver in resolvers.items():
            agree("QUANTIZE", [(every, src_q)], (by[dialect], dst_q), resolvers=(resolver,))
            made[dialect] += int((by[dialect] != by["tflite"]).sum())
    # Ratios are drawn such that the kernels differ.
    assert made["tflite_optimised"] > 0
    assert made["xnnpack"] > 0


@dtypes
def test_arg_max(dtype: str) -> None:
    for _, (q, *_), x, _, _ in draws(dtype, 4):
        axis = Tensor.of(np.array(3), "s32")
        result = Tensor(x.shape[:3], "s32")
        options = {"outputType": 2}
        model = litert.model(
            "ARG_MAX", [tensor(x, q), axis], result, options, options_of="ArgMax", op_version=2
        )
        for resolver in ALL:
            answer = litert.run(model, resolver, x)
            assert np.array_equal(answer, quantized.arg_max(x, axis=3))
