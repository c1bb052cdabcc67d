"""Tensors: dimensions, strides, bytes, and what is refused."""

from __future__ import annotations

import pickle
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyonednn_q.errors import DTypeError, LayoutError, ShapeError
from pyonednn_q.primitive.tensor import TensorSpec

small_dims = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@given(small_dims)
def test_dense_strides_are_those_of_numpy(dims: tuple[int, ...]) -> None:
    array = np.empty(dims, np.float32)
    assert TensorSpec.dense(dims, "f32").strides == tuple(s // 4 for s in array.strides)


@given(st.lists(st.integers(1, 4), min_size=2, max_size=5).map(tuple))
def test_channels_last_is_numpy_with_the_channels_moved(dims: tuple[int, ...]) -> None:
    physical = np.empty((dims[0], *dims[2:], dims[1]), np.int8)
    logical = np.moveaxis(physical, -1, 1)
    assert TensorSpec.channels_last(dims, "s8").strides == logical.strides
    assert TensorSpec.channels_last(dims, "s8").is_channels_last


@given(
    small_dims.flatmap(
        lambda dims: st.tuples(st.just(dims), st.tuples(*[st.integers(0, 20) for _ in dims]))
    )
)
def test_accepted_strides_never_overlap(case: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    dims, strides = case
    try:
        spec = TensorSpec(dims, "u8", strides)
    except LayoutError:
        return
    assert spec.strides is not None
    for used in (strides, spec.strides):
        addresses = [
            sum(i * s for i, s in zip(index, used, strict=True))
            for index in product(*map(range, dims))
        ]
        assert len(set(addresses)) == spec.size
        assert max(addresses) + 1 == spec.nbytes


@given(small_dims, st.randoms(use_true_random=False))
def test_every_transposed_slice_of_an_array_is_accepted(
    dims: tuple[int, ...], random: Random
) -> None:
    order = list(range(len(dims)))
    random.shuffle(order)
    wider = np.empty([dim + 2 for dim in dims], np.int32).transpose(order)
    view = wider[tuple(slice(1, n - 1) for n in wider.shape)]
    spec = TensorSpec.of(view)
    assert spec.dims == view.shape
    assert spec.strides is not None
    for dim, ours, theirs in zip(view.shape, spec.strides, view.strides, strict=True):
        assert dim == 1 or ours * 4 == theirs


def test_strides_of_single_elements_do_not_tell_equal_layouts_apart() -> None:
    last = TensorSpec.channels_last((1, 64, 56, 56), "u8")
    assert last.strides is not None
    assert TensorSpec(last.dims, "u8", (7, *last.strides[1:])) == last
    assert TensorSpec((8, 1), "u8", (1, 5)) == TensorSpec.dense((8, 1), "u8")
    assert TensorSpec((8, 1), "u8", (4, 5)).strides == (4, 1)
    assert TensorSpec((2, 1, 3), "u8", (9, 0, 3)).strides == (9, 9, 3)


def test_one_channel_is_both_layouts_and_each_is_kept_as_given() -> None:
    dims = (1, 1, 4, 5)
    dense, last = TensorSpec.dense(dims, "u8"), TensorSpec.channels_last(dims, "u8")
    assert dense.strides == (20, 20, 5, 1)
    assert last.strides == (20, 1, 5, 1)
    assert dense.is_channels_last
    assert last.is_channels_last


def test_bytes_count_gaps_and_half_bytes() -> None:
    assert TensorSpec.dense((3, 5), "f32").nbytes == 60
    assert TensorSpec((3, 5), "f32", (8, 1)).nbytes == 4 * (2 * 8 + 5)
    assert TensorSpec((3, 5), "s4").nbytes == 8
    assert TensorSpec.dense((3, 0, 5), "f32").nbytes == 0


def test_the_largest_tensor_is_the_largest_that_memory_could_hold() -> None:
    limit = 2**63 - 1
    assert TensorSpec((limit,), "u8").nbytes == limit
    for dims, strides in (((limit + 1,), None), ((2**40, 2**40), None), ((2, 2), (limit, 1))):
        with pytest.raises(ShapeError, match=r"at most 9223372036854775807|integers of 64 bits"):
            TensorSpec(dims, "u8", strides)


def test_a_tensor_has_up_to_12_dimensions() -> None:
    assert TensorSpec((1,) * 12, "u8").ndim == 12


@pytest.mark.parametrize("dims", [(), (1,) * 13, (2, -1), (2.0, 3), ("2",)])
def test_bad_dims_are_refused(dims: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"^dims: got "):
        TensorSpec(dims, "u8")


@pytest.mark.parametrize("strides", [(1,), (3, 1, 1), (-3, 1), (2, 1), (0, 1), (1, 1)])
def test_bad_strides_are_refused(strides: tuple[int, ...]) -> None:
    with pytest.raises(LayoutError, match=r"^strides: got "):
        TensorSpec((2, 3), "u8", strides)


def test_arrays_that_no_primitive_reads_are_refused() -> None:
    whole = np.zeros((4, 6), np.float32)
    with pytest.raises(LayoutError, match="no negative stride"):
        TensorSpec.of(whole[::-1])
    with pytest.raises(LayoutError, match="do not overlap"):
        TensorSpec.of(np.broadcast_to(whole[:1], (4, 6)))
    with pytest.raises(DTypeError, match=r"^src: got float64"):
        TensorSpec.of(whole.astype(np.float64), "src")
    record = np.zeros(4, [("a", "u1"), ("b", "<f4")])
    with pytest.raises(LayoutError, match=r"^src: got byte strides .*multiples of 4"):
        TensorSpec.of(record["b"], "src")


def test_boundary_and_text() -> None:
    assert TensorSpec((2, 3), "s8").boundary() == ((2, 3), "s8", None)
    last = TensorSpec.channels_last((2, 3, 4, 4), "u8")
    assert last.boundary() == ((2, 3, 4, 4), "u8", (48, 1, 12, 3))
    assert last.text() == "u8:2x3x4x4@channels_last"
    assert TensorSpec((2, 3), "u8", (5, 1)).text() == "u8:2x3@5x1"


def test_values_hash_pickle_and_take_lists() -> None:
    spec = TensorSpec([2, 3], "u8", [3, 1])
    assert spec == TensorSpec((np.int64(2), 3), "u8", (3, 1)) == pickle.loads(pickle.dumps(spec))
    assert hash(spec) == hash(TensorSpec.dense((2, 3), "u8"))


def test_a_stride_of_minus_one_is_negative() -> None:
    with pytest.raises(LayoutError, match="no negative stride"):
        TensorSpec((2, 2), "u8", (2, -1))
