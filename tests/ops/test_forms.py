"""Forms: every one computes what was asked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q import dtypes
from pyonednn_q.errors import AliasError, DTypeError, LayoutError, ShapeError
from pyonednn_q.ops import tuning
from pyonednn_q.ops.form import AS_ASKED
from pyonednn_q.ops.tuning import way
from pyonednn_q.ops.ways import LEVELS, choose, forms, in_form
from support.forms import CASES, RNG, Q, asked, codes, made, verified

POINT = "1x1 convolution"
EXPECTED = {
    "3x3": {"binary add", "16 input channels"},
    "1x1": {"matmul", "binary add", "matmul with binary add", "16 input channels"},
    "of an RGB image": {f"{channels} input channels" for channels in (4, 8, 16)},
    "strided": {"16 input channels"},
    "inner product": {"matmul", POINT},
    "matmul": {"binary add", "inner product", POINT},
    "batched matmul": {"matmul", "binary add", "matmul with binary add", "inner product", POINT},
    "matmul of many": set(),
    "of an image": {"matmul", "binary add", "matmul with binary add", POINT},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_forms_that_mean_the_same_are_offered(name: str) -> None:
    layer = asked(name)
    assert {form.name for form in forms(layer.problem, layer.settings.post)} - {
        AS_ASKED,
        "row-major",
        "any layout",
    } == EXPECTED[name]


@pytest.mark.parametrize("chain", [pq.Chain(pq.Sum(0.5)), pq.Chain(pq.Sum(1.0, 3)), pq.Chain()])
def test_a_sum_with_a_scale_is_no_operand(chain: pq.Chain) -> None:
    problem = pq.primitive.MatMulProblem.of((4, 8), (8, 3))
    assert not any("add" in form.name for form in forms(problem, chain))


@pytest.mark.parametrize("name", CASES)
def test_every_form_computes_what_was_asked(name: str) -> None:
    for _, planned in made(name):
        verified(name, planned)


@pytest.mark.parametrize("name", ["1x1", "1x1 with a leaf", "floats", "matmul"])
def test_copies_compute_what_was_asked(name: str) -> None:
    for _, planned in made(name):
        again = copy(planned)
        assert type(again) is type(planned)
        assert (again.hot is None) == (planned.hot is None)
        verified(name, again)


@pytest.mark.parametrize("name", ["1x1", "inner product", "matmul", "batched matmul"])
def test_every_form_refuses_what_cannot_take_a_result(name: str) -> None:
    dims = CASES[name][1]
    for _, planned in made(name):
        src = np.zeros(dims, np.uint8)
        good = np.zeros(planned.dst.dims, dtypes.numpy_dtype(planned.dst.dtype))
        given = {} if name == "inner product" else {"residual": good}
        once = np.lib.stride_tricks.as_strided(good[:1], good.shape, (0,) * good.ndim)
        with pytest.raises(LayoutError, match="out"):
            planned(src, out=once, **given)
        with pytest.raises(DTypeError, match="out"):
            planned(src, out=good.astype(np.float16), **given)
        with pytest.raises(ShapeError, match="out"):
            planned(src, out=good[:1], **given)
        over = np.ndarray(good.shape, good.dtype, np.zeros(good.nbytes + src.nbytes, np.uint8))
        inside = np.ndarray(dims, np.uint8, over)
        with pytest.raises(AliasError, match="src"):
            planned(inside, out=over, **given)


def test_layouts_in_blocks_are_copied_into_and_out_of() -> None:
    """Floats have kernels over blocks of channels; sums of small integers are always exact."""
    dims = CASES["floats"][1]
    layer = asked("floats")
    usual = choose(layer, LEVELS[2:])
    src = RNG.integers(-9, 10, dims).astype(np.float32)
    expected = usual(src)
    found = tuning._others(usual, partial(in_form, layer), tuple(forms(layer.problem, pq.Chain())))
    blocked = [planned for planned in found if "packed" in planned.primitive.copied.get("src", "")]
    assert blocked
    for planned in blocked:
        assert "any layout" in way(planned)
        assert (planned.src_dims, planned.dst.dims) == (dims, expected.shape)
        last = np.empty((2, 6, 5, 8), np.float32).transpose(0, 3, 1, 2)
        last[...] = src
        assert planned.hot is not None
        for got in (planned(src), planned(last), planned.hot(last, None, None)):
            np.testing.assert_array_equal(got, expected)
        out = planned.empty()
        assert planned(src, out=out) is out
        np.testing.assert_array_equal(out, expected)
        shown = pq.inspect(planned)
        copies = {copy.tensor: copy.us for copy in shown.reorders if copy.when == "each call"}
        assert set(copies) == {"src", "dst"}
        assert min(copies.values()) > 0
        assert "any" in shown.benchdnn
        with ThreadPoolExecutor(4) as pool:
            for got in pool.map(planned, [last] * 16):
                np.testing.assert_array_equal(got, expected)


def test_row_major_arrays_are_copied_by_the_library_in_the_usual_way_too() -> None:
    layer = pq.Conv(codes(16, 16, 3, 3), **Q, padding=1, layout="dense", tune=True)
    planned = layer.prepare((1, 16, 9, 8))
    assert planned.dst.strides == pq.primitive.TensorSpec.dense(planned.dst.dims, "u8").strides
    src = codes(1, 16, 9, 8).view(np.uint8)
    plain = pq.Conv(layer.weights.values, **Q, padding=1)
    np.testing.assert_array_equal(layer(src), plain(src))
    assert set(planned.primitive.copies.values()) == {0}


@pytest.mark.parametrize("name", ["1x1", "1x1 with a leaf", "3x3", "of an image", "matmul"])
def test_forms_take_arrays_of_any_layout_and_write_in_place(name: str) -> None:
    operator, dims = CASES[name]
    src = RNG.integers(0, 256, dims).astype(np.uint8)
    usual = operator.prepare(dims)
    before = RNG.integers(0, 30, usual.dst.dims).astype(np.uint8)
    leaf = {"r": RNG.integers(0, 3, usual.dst.dims).astype(np.float32)}
    leaves = {name: leaf[name] for name in usual.leaves}
    expected = usual(src, residual=before, **leaves)
    last = np.moveaxis(np.moveaxis(src, 1, -1).copy(), -1, 1)
    for form, planned in made(name):
        for array in (src, last):
            got = planned(array, residual=before, **leaves)
            np.testing.assert_array_equal(got, expected, err_msg=form.name)
            assert got.dtype == expected.dtype
        for out in (planned.empty(), np.empty(usual.dst.dims, np.uint8)):
            out[...] = before
            assert planned(src, out=out, **leaves) is out
            np.testing.assert_array_equal(out, expected, err_msg=form.name)


def test_forms_refuse_what_plans_refuse() -> None:
    for form, planned in made("1x1"):
        assert form.name in way(planned)
        src = np.zeros((2, 8, 6, 5), np.uint8)
        with pytest.raises(pq.ArgumentError):
            planned(src)  # what does the Sum read?
        with pytest.raises(pq.ArgumentError):
            planned(src, residual=np.zeros((2, 16, 6, 5), np.uint8), other=src)
        with pytest.raises(pq.errors.ShapeError):
            planned(src[:, :, :2], residual=np.zeros((2, 16, 6, 5), np.uint8))
        with pytest.raises(pq.errors.ShapeError):
            planned(src, residual=np.zeros((2, 16, 5, 6), np.uint8))
        with pytest.raises(pq.errors.DTypeError):
            planned(src.astype(np.int8), residual=np.zeros((2, 16, 6, 5), np.uint8))
