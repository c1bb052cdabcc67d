"""Random layers on real primitives: whatever window, groups, zero point and carrier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import KnownWrongError, ReferenceKernelError, ShapeError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Chain
from pyonednn_q.native import prepare, runtime
from pyonednn_q.ops.prepared_layer import prepare_layer
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem, MatMulProblem
from support.oracle_numbers import INTEGER_RANGES
from support.plans.quantized import FloatLayer
from support.plans.random_chains import random_chain

STEP = 2.0**-5


def window(rng: np.random.Generator, src: str) -> Any:
    """Draw a convolution or deconvolution; None if nothing comes out."""
    spatial, groups = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 4]))
    per_group = [int(rng.choice([1, 3, 4, 8, 16])) for _ in range(2)]
    kernel = rng.integers(1, 5 if spatial < 3 else 3, spatial).tolist()
    wei = [groups, *per_group, *kernel] if groups > 1 else [*per_group, *kernel]
    lengths = rng.integers(3, 8 if spatial < 3 else 5, spatial).tolist()
    try:
        return (ConvProblem, DeconvProblem)[int(rng.integers(2))].of(
            (int(rng.integers(1, 3)), groups * per_group[1], *lengths),
            wei,
            src=src,
            dst=str(rng.choice(["u8", "s8", "f32"])),
            stride=rng.integers(1, 4, spatial).tolist(),
            dilation=rng.choice([1, 1, 2], spatial).tolist(),
            padding=rng.integers(0, 3, (spatial, 2)).tolist(),
        )
    except ShapeError:
        return None


def product(rng: np.random.Generator, src: str) -> Any:
    m, k, n = (int(v) for v in rng.integers(1, 40, 3))
    return MatMulProblem.of((m, k), (k, n), src=src, dst=str(rng.choice(["u8", "s8", "f32"])))


def drawn(seed: int) -> FloatLayer | None:
    rng = np.random.default_rng(seed)
    src = str(rng.choice(["u8", "s8"]))
    problem = (product if rng.random() < 0.2 else window)(rng, src)
    if problem is None:
        return None
    is_matmul = problem.kind == "matmul"
    channels = problem.dst.dims[-1 if is_matmul else 1]
    # Without VNNI, kernels for s8 sources lose the last bit of odd weights.
    few = rng.integers(-1, 2, problem.wei.dims) * (2 if src == "s8" else 1)
    scale = 2.0 ** rng.integers(-2, 1, channels)
    rows = scale if is_matmul else scale.reshape(-1, *[1] * (problem.wei.ndim - 1))
    if not is_matmul and problem.has_groups:
        rows = scale.reshape(*problem.wei.dims[:2], *[1] * (problem.wei.ndim - 2))
    count = int(rng.choice([256, 256, 255, 16]))
    first = float(rng.choice([0.0, -128.0, -rng.integers(0, 128), -rng.integers(0, 255) / 2]))
    ends = first * STEP, (first + count - 1) * STEP
    dst_fq = None
    if problem.dst.dtype in INTEGER_RANGES:
        width = 2.0 ** rng.integers(-3, 0, channels) if rng.random() < 0.5 else np.array(0.125)
        low = width * float(rng.choice([0, -128, -20]))
        dst_fq = FakeQuantize(low, low + 255 * width, low, low + 255 * width)
    # A residual needs a result to read; test_layer has one.
    chain = Chain(*(step for step in random_chain(rng, channels) if type(step).__name__ != "Sum"))
    return FloatLayer(
        problem=problem,
        wei=few * rows,
        bias=rng.integers(-64, 64, channels) / 8.0 if rng.random() < 0.7 else None,
        src_fq=FakeQuantize(*ends, *ends, count),
        wei_fq=FakeQuantize(-2 * scale, 2 * scale, -2 * scale, 2 * scale, 5),
        chain=chain,
        dst_fq=dst_fq,
    )


def test_random_layers_are_equal_on_clean_numbers(request: pytest.FixtureRequest) -> None:
    count = request.config.getoption("--random-problems")
    carried: dict[str, int] = {}
    refused = 0
    for seed in range(count):
        layer = drawn(seed)
        if layer is None:
            continue
        rng = np.random.default_rng(seed)
        composed = layer.compose(process=runtime.facts())
        try:
            prepared = prepare_layer(composed)
        except ReferenceKernelError:
            with pytest.raises(ReferenceKernelError):  # without anything else, too
                prepare(composed.problem, wei=composed.wei)
            refused += 1
            continue
        except KnownWrongError:
            refused += 1
            continue
        fq = layer.src_fq
        steps = rng.integers(-5, 4 * fq.levels, layer.problem.src.dims)
        src = (fq.input_low.least + fq.scale_in.least / 4 * steps).astype(np.float32)
        _, stored = layer.meaning(src)
        np.testing.assert_array_equal(prepared(src), stored, err_msg=f"seed {seed}\n{composed}")
        by = composed.zero_point.by
        carried[by] = carried.get(by, 0) + 1
    assert min(carried.get(by, 0) for by in ("nothing", "attribute", "bias", "map")) > count / 200
    assert refused < count / 5
