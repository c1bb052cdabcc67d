"""Slots: how many, where, and which terms their sums have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.check.places import Geometry, Places
from pyonednn_q.check.plain_values import entering
from pyonednn_q.check.sample import LEAST, MOST, Slots
from pyonednn_q.primitive.problem import PoolingProblem, ResamplingProblem, SoftmaxProblem
from pyonednn_q.primitive.tensor import TensorSpec

Array = np.ndarray[Any, Any]

SHAPES = [
    ((1, 3, 224, 224), 1),
    ((4, 40, 9, 11), 1),
    ((2, 1000, 7, 7), 1),
    ((1, 2048, 1, 1), 1),
    ((3, 2, 5), 1),
    ((64, 17), 1),
    ((6, 33, 100), 2),
    ((1,), 0),
]


@pytest.mark.parametrize(("dims", "axis"), SHAPES)
def test_ends_and_tails_are_among_them(dims: tuple[int, ...], axis: int) -> None:
    sample = Slots.of(dims, axis)
    size = int(np.prod(dims))
    assert min(size, LEAST) <= sample.count <= min(size, MOST)
    for at, dim in enumerate(dims):
        index = sample.index[at]
        assert {0, dim - 1} <= set(index.tolist())
        assert (index >= 0).all()
        assert (index < dim).all()
    channels = np.unique(sample.index[axis])
    if dims[axis] <= sample.count // 4:
        assert channels.size == dims[axis]
    blocks = np.unique(channels // 16)
    assert blocks.size == -(-dims[axis] // 16)
    # A place meets many channels.
    of_places = sample.index[axis].reshape(-1, sample.each)
    assert all(np.unique(row).size > sample.each // 2 for row in of_places)


def test_large_sums_make_it_smaller() -> None:
    assert Slots.of((1, 512, 7, 7), 1, terms=4608).count > LEAST
    assert Slots.of((1, 4096), 1, terms=25_088).count < MOST


GEOMETRIES = [
    Geometry.of("convolution", (2, 6, 7, 9), (8, 6, 3, 2), stride=(2, 1), padding=(1, 2)),
    Geometry.of("convolution", (1, 12, 9), (9, 4, 3), dilation=2, groups=3),
    Geometry.of("convolution", (2, 5, 3, 4, 5), (5, 1, 2, 2, 3), padding=1, groups=5),
    Geometry.of("deconvolution", (2, 4, 5, 4), (6, 4, 3, 3), stride=2, padding=1),
    Geometry.of("deconvolution", (1, 4, 6), (6, 2, 4), stride=3, groups=2),
    Geometry.of("inner_product", (5, 3, 4, 2), (7, 3, 4, 2)),
    Geometry.of("matmul", (3, 1, 5, 8), (2, 8, 11)),
    Geometry.of("matmul", (40, 30), (30, 70)),
]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda one: f"{one.kind}-{len(one.src)}")
def test_terms_are_those_of_all_sums(geometry: Geometry) -> None:
    """Against sums of whole patches, which tests/pure/check/test_places.py holds to the formula."""
    rng = np.random.default_rng(4)
    src, wei = (rng.integers(-9, 10, dims) for dims in (geometry.src, geometry.wei))
    sample = Slots.of(geometry.dst, geometry.axis, groups=geometry.groups)
    reads = sample.reads(geometry)
    of_src = src[reads.src_index()] * reads.inside[..., np.newaxis]
    of_wei = wei[reads.wei_index()]
    of_src = np.repeat(of_src, sample.count // reads.places, axis=0)
    sums = (of_src * of_wei).reshape(sample.count, -1).sum(axis=1)
    places = Places.of(geometry)
    others = list(sample.index)
    channels = others.pop(geometry.axis)
    dims = [dim for at, dim in enumerate(geometry.dst) if at != geometry.axis]
    flat = np.ravel_multi_index(tuple(others), dims)
    np.testing.assert_array_equal(sums, places.sums(src, wei)[flat, channels])


def plain(problem: Any, src: Array) -> tuple[Slots, Array, Array]:
    """Give a sample of all that a problem computes, and what enters there."""
    sample = Slots.of(problem.dst.dims, 1)
    ones = {"src": np.ones(1), "src1": np.ones(1)}
    x, error, _, _ = entering(problem, sample, {"src": src}, ones, np.zeros(1))
    return sample, x, error


@pytest.mark.parametrize("alg", ["max", "avg_include_padding", "avg_exclude_padding"])
def test_windows_are_pooled(alg: str) -> None:
    src = np.random.default_rng(1).integers(-99, 100, (1, 2, 5, 6)).astype(np.float64)
    specs = TensorSpec.dense((1, 2, 5, 6), "f32"), TensorSpec.dense((1, 2, 3, 3), "f32")
    problem = PoolingProblem(*specs, alg, (3, 2), (2, 2), (1, 1), (1, 0), (1, 0))
    sample, x, _ = plain(problem, src)
    for slot in range(sample.count):
        image, channel, row, column = sample.at(slot)
        seen = src[image, channel, max(2 * row - 1, 0) : 2 * row + 2, 2 * column : 2 * column + 2]
        count = 6 if alg == "avg_include_padding" else seen.size
        assert x[slot] == pytest.approx(seen.max() if alg == "max" else seen.sum() / count)


@pytest.mark.parametrize("log", [False, True])
def test_rows_are_normalized(log: bool) -> None:
    spec = TensorSpec.dense((4, 3, 9), "f32")
    src = np.random.default_rng(2).normal(0, 2, spec.dims)
    sample, x, _ = plain(SoftmaxProblem(spec, spec, 2, log), src)
    right = np.exp(src) / np.exp(src).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(x, sample.take(np.log(right) if log else right), rtol=1e-12)


@pytest.mark.parametrize("alg", ["nearest", "linear"])
def test_pixels_are_between_others(alg: str) -> None:
    specs = TensorSpec.dense((1, 2, 4), "f32"), TensorSpec.dense((1, 2, 8), "f32")
    src = np.arange(8.0).reshape(1, 2, 4)
    sample, x, error = plain(ResamplingProblem(*specs, alg), src)
    first = [0.0, 0, 1, 1, 2, 2, 3, 3]
    if alg == "linear":
        first = [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]
    right = np.array([first, np.add(first, 4)])[np.newaxis]
    np.testing.assert_allclose(x, sample.take(right))
    assert np.isfinite(error).all()
