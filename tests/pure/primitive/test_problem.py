"""Problems: dimensions against each other, output lengths, boundaries."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    ConvProblem,
    DeconvProblem,
    EltwiseProblem,
    InnerProductProblem,
    MatMulProblem,
    PoolingProblem,
    PReluProblem,
    Problem,
    ReorderProblem,
    ResamplingProblem,
    SoftmaxProblem,
    SumProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.primitive.window import Window, padding_sides, per_dim

U8, F32 = TensorSpec.dense((2, 8, 6, 6), "u8"), TensorSpec.dense((2, 8, 6, 6), "f32")
POOL = {"kernel": (2, 2), "stride": (2, 2), "dilation": (1, 1)}
PADDING = {"padding_lo": (0, 0), "padding_hi": (0, 0)}

EXAMPLES: list[Problem] = [
    ConvProblem.of((2, 8, 6, 6), (4, 8, 3, 3), padding=1, bias="f32"),
    DeconvProblem.of((2, 8, 6, 6), (2, 3, 4, 4, 4), stride=2),
    InnerProductProblem.of((2, 8, 6, 6), 10, bias="f32"),
    MatMulProblem.of((3, 4, 8), (1, 8, 5), bias="f32"),
    EltwiseProblem(F32, F32, "relu", 0.5),
    BinaryProblem(U8, TensorSpec.dense((1, 8, 1, 1), "f32"), F32, "mul"),
    SumProblem((U8, F32), (0.5, 2.0), F32),
    SoftmaxProblem(F32, U8, axis=1),
    PoolingProblem(U8, TensorSpec.dense((2, 8, 3, 3), "u8"), "max", **POOL, **PADDING),
    ReorderProblem(F32, U8),
    ResamplingProblem(U8, TensorSpec.dense((2, 8, 3, 9), "f32"), "linear"),
    PReluProblem(F32, TensorSpec.dense((1, 8, 1, 1), "f32"), F32),
]


@pytest.mark.parametrize("problem", EXAMPLES, ids=lambda problem: problem.kind)
def test_every_problem_is_a_value(problem: Problem) -> None:
    copy = pickle.loads(pickle.dumps(problem))
    assert copy == problem
    assert hash(copy) == hash(problem)
    assert [other for other in EXAMPLES if other == problem] == [problem]


@pytest.mark.parametrize("problem", EXAMPLES, ids=lambda problem: problem.kind)
def test_every_boundary_is_kind_tensors_parameters(problem: Problem) -> None:
    kind, tensors, params = problem.boundary()
    assert kind == problem.kind
    assert tensors == {name: spec.boundary() for name, spec in problem.tensors.items()}
    assert params == problem.params()
    assert problem.text().startswith(f"{kind} src")
    assert "\n" not in problem.text()
    assert all(spec.text() in problem.text() for spec in problem.tensors.values())


def test_parameters_are_named_as_the_extension_reads_them() -> None:
    names = {problem.kind: tuple(problem.params()) for problem in EXAMPLES}
    window = ("strides", "dilation", "padding_lo", "padding_hi")
    assert names == {
        "convolution": window,
        "deconvolution": window,
        "inner_product": (),
        "matmul": (),
        "eltwise": ("alg", "alpha", "beta"),
        "binary": ("alg",),
        "sum": ("scales",),
        "softmax": ("alg", "axis"),
        "pooling": ("alg", "kernel", *window),
        "reorder": (),
        "resampling": ("alg",),
        "prelu": (),
    }
    assert list(EXAMPLES[6].tensors) == ["src_0", "src_1", "dst"]
    assert SoftmaxProblem(F32, F32, -1, log=True).params() == {"alg": "softmax_log", "axis": 3}


def test_a_convolution_and_its_deconvolution_differ() -> None:
    conv = ConvProblem.of((1, 8, 5, 5), (8, 8, 1, 1))
    deconv = DeconvProblem.of((1, 8, 5, 5), (8, 8, 1, 1))
    assert conv.tensors == deconv.tensors
    assert len({conv, deconv}) == 2


# --- output lengths ------------------------------------------------------------------------------

windows = st.tuples(
    st.integers(1, 12),  # length
    st.integers(1, 5),  # kernel
    st.integers(1, 4),  # stride
    st.integers(1, 3),  # dilation
    st.integers(0, 3),  # padding
    st.integers(0, 3),
)


@given(windows)
def test_a_convolution_has_one_output_per_place_of_the_kernel(case: tuple[int, ...]) -> None:
    length, kernel, stride, dilation, lo, hi = case
    taps = range(0, kernel * dilation, dilation)
    starts = range(-lo, length + hi, stride)
    wanted = sum(all(start + tap < length + hi for tap in taps) for start in starts)

    def make() -> ConvProblem:
        sides = ((lo, hi),)
        return ConvProblem.of(
            (1, 2, length), (3, 2, kernel), stride=stride, dilation=dilation, padding=sides
        )

    if wanted == 0:
        with pytest.raises(ShapeError, match=r"^src: .*to give an output"):
            make()
    else:
        assert make().dst.dims == (1, 3, wanted)


@given(windows)
def test_a_deconvolution_ends_where_its_last_tap_falls(case: tuple[int, ...]) -> None:
    length, kernel, stride, dilation, lo, hi = case
    last = (length - 1) * stride + (kernel - 1) * dilation
    wanted = last + 1 - lo - hi
    assume(wanted > 0)
    problem = DeconvProblem.of(
        (1, 2, length), (3, 2, kernel), stride=stride, dilation=dilation, padding=((lo, hi),)
    )
    assert problem.dst.dims == (1, 3, wanted)


def test_a_deconvolution_may_be_longer_by_less_than_its_stride() -> None:
    least = DeconvProblem.of((1, 8, 5), (8, 8, 3), stride=3)

    def longer(extra: int) -> DeconvProblem:
        dst = TensorSpec.dense((1, 8, least.dst.dims[2] + extra), "u8")
        window = (least.stride, least.dilation, least.padding_lo, least.padding_hi)
        return DeconvProblem(least.src, least.wei, dst, None, *window)

    assert [longer(extra).dst.dims[2] for extra in range(3)] == [15, 16, 17]
    for extra in (-1, 3):
        with pytest.raises(ShapeError, match=r"^dst: .*\(15,\), or up to stride - 1 more"):
            longer(extra)


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_flat_paddings_are_onnx_s(spatial: int) -> None:
    begins, ends = tuple(range(spatial)), tuple(range(3, 3 + spatial))
    for flat in ((*begins, *ends), [*begins, *ends], np.array([*begins, *ends])):
        assert padding_sides(flat, spatial) == (begins, ends)
    dims = (1, 2, *(9,) * spatial), (3, 2, *(3,) * spatial)
    sides = tuple(zip(begins, ends, strict=True))
    for problem in (ConvProblem, DeconvProblem):
        assert problem.of(*dims, padding=(*begins, *ends)) == problem.of(*dims, padding=sides)
    for bad in ((), (1,) * (2 * spatial + 1), (-1,) * spatial, (1,) * spatial + (-1,) * spatial):
        with pytest.raises(ShapeError, match=r"^padding: got "):
            problem.of(*dims, padding=bad)


def test_paddings_are_one_for_all_or_per_dimension_or_per_side() -> None:
    assert padding_sides(1, 2) == ((1, 1), (1, 1))
    assert padding_sides((1, 2), 2) == ((1, 2), (1, 2))
    assert padding_sides(((0, 1), (2, 3)), 2) == ((0, 2), (1, 3))
    assert padding_sides((1, (2, 3)), 2) == ((1, 2), (1, 3))
    with pytest.raises(ShapeError, match=r"^padding: got "):
        padding_sides(((1, 2, 3),), 1)
    with pytest.raises(ShapeError, match=r"^padding: got "):
        padding_sides(1.5, 2)  # type: ignore[arg-type]
    assert per_dim("stride", 2, 3) == (2, 2, 2)


@pytest.mark.parametrize(
    ("name", "values"),
    [("stride", (0,)), ("dilation", (0,)), ("padding_lo", (-1,)), ("padding_hi", (1, 1))],
)
def test_impossible_windows_are_refused(name: str, values: tuple[int, ...]) -> None:
    good: dict[str, Any] = dict.fromkeys(("kernel", "stride", "dilation"), (1,))
    good |= dict.fromkeys(("padding_lo", "padding_hi"), (0,))
    with pytest.raises(ShapeError) as caught:
        Window(**good | {name: values})
    assert caught.value.argument == name


# --- what is derived from the weights ------------------------------------------------------------


def test_groups_come_from_the_extra_dimension() -> None:
    grouped = ConvProblem.of((1, 12, 5, 5), (3, 2, 4, 3, 3), bias="f32")
    assert (grouped.groups, grouped.oc, grouped.ic) == (3, 6, 12)
    assert grouped.bias == TensorSpec.dense((6,), "f32")
    assert not grouped.is_depthwise
    assert ConvProblem.of((1, 3, 5, 5), (3, 1, 1, 3, 3)).is_depthwise
    assert not ConvProblem.of((1, 3, 5, 5), (3, 2, 1, 3, 3)).is_depthwise
    assert not ConvProblem.of((1, 1, 5, 5), (1, 1, 1, 3, 3)).is_depthwise
    assert DeconvProblem.of((1, 12, 5, 5), (3, 2, 4, 3, 3)).oc == 6


def test_layout_is_of_src_and_dst_and_weights_are_packed() -> None:
    last = ConvProblem.of((1, 8, 5, 5), (4, 8, 1, 1))
    dense = ConvProblem.of((1, 8, 5, 5), (4, 8, 1, 1), layout="dense")
    assert last.src == TensorSpec.channels_last((1, 8, 5, 5), "u8")
    assert last.dst == TensorSpec.channels_last((1, 4, 5, 5), "u8")
    assert dense.src == TensorSpec.dense((1, 8, 5, 5), "u8")
    assert last.wei.strides is dense.wei.strides is None
    with pytest.raises(ArgumentError, match=r"^layout: got 'nhwc'"):
        ConvProblem.of((1, 8, 5, 5), (4, 8, 1, 1), layout="nhwc")  # type: ignore[arg-type]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.booleans(), st.booleans()), max_size=3),
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4)),
)
def test_matmul_dims_are_those_of_numpy(
    batch: list[tuple[int, bool, bool]], mkn: tuple[int, int, int]
) -> None:
    m, k, n = mkn
    src = (*(dim if keep else 1 for dim, keep, _ in batch), m, k)
    wei = (*(dim if keep else 1 for dim, _, keep in batch), k, n)
    problem = MatMulProblem.of(src, wei, bias="f32")
    assert problem.dst.dims == (np.zeros(src) @ np.zeros(wei)).shape
    assert (problem.m, problem.k, problem.n, problem.batch) == (m, k, n, problem.dst.dims[:-2])
    assert problem.bias is not None
    assert problem.bias.dims == (1,) * (len(src) - 1) + (n,)


# --- what is refused -----------------------------------------------------------------------------


def conv(**changed: Any) -> ConvProblem:
    example = EXAMPLES[0]
    assert isinstance(example, ConvProblem)
    return replace(example, **changed)


def dense(*dims: int) -> TensorSpec:
    return TensorSpec.dense(dims, "u8")


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: conv(src=dense(2, 7, 6, 6)), "src"),
        (lambda: conv(src=dense(2, 8)), "src"),
        (lambda: conv(src="u8"), "src"),
        (lambda: conv(wei=dense(4, 8, 3)), "wei"),
        (lambda: conv(wei=dense(4, 8, 0, 3)), "wei"),
        (lambda: conv(dst=dense(2, 5, 6, 6)), "dst"),
        (lambda: conv(dst=dense(2, 4, 6, 5)), "dst"),
        (lambda: conv(dst=dense(3, 4, 6, 6)), "dst"),
        (lambda: conv(bias=dense(1)), "bias"),
        (lambda: conv(stride=(1,)), "stride"),
        (lambda: conv(dilation=(1, 1.0)), "dilation"),
        (lambda: conv(padding_hi=(-1, 1)), "padding_hi"),
        (lambda: ConvProblem.of((2, 8, 6, 6), (2, 2, 8, 3, 3)), "src"),
        (lambda: ConvProblem.of((2, 8, 6, 6), (4, 8, 3, 3), stride=(1, 1, 1)), "stride"),
        (lambda: ConvProblem.of((2, 8, 6, 6), (4, 8, 3, 3), src="f64"), "dtype"),
        (lambda: DeconvProblem.of((2, 8, 1, 1), (4, 8, 1, 1), padding=1), "src"),
        (lambda: InnerProductProblem.of((2,), 4), "src"),
        (lambda: InnerProductProblem.of((2, 3), 0), "oc"),
        (lambda: InnerProductProblem(dense(2, 3), dense(4, 5), dense(2, 4), None), "wei"),
        (lambda: InnerProductProblem(dense(2, 3), dense(4, 3), dense(4, 2), None), "dst"),
        (lambda: InnerProductProblem(dense(2, 3), dense(4, 3), dense(2, 4), dense(3)), "bias"),
        (lambda: MatMulProblem.of((3,), (3, 4)), "src"),
        (lambda: MatMulProblem.of((2, 3), (1, 3, 4)), "src"),
        (lambda: MatMulProblem.of((2, 3), (4, 3)), "src"),
        (lambda: MatMulProblem.of((2, 4, 3), (3, 3, 4)), "src"),
        (lambda: ConvProblem.of((2**31, 1, 9), (1, 1, 1), padding=2**31 - 1), "padding"),
        (lambda: DeconvProblem.of((2**31, 1, 9), (1, 1, 2), stride=2**31 - 1), "stride"),
        (lambda: DeconvProblem.of((2**31, 1, 9), (1, 1, 9), dilation=2**31 - 1), "dilation"),
        (lambda: ConvProblem.of((1, 1, 9), (1, 1, 3), padding=2**31), "padding"),
        (lambda: MatMulProblem(dense(2, 3), dense(3, 4), dense(2, 3), None), "dst"),
        (lambda: MatMulProblem(dense(2, 3), dense(3, 4), dense(2, 4), dense(4)), "bias"),
        (lambda: MatMulProblem(dense(2, 3), dense(3, 4), dense(2, 4), dense(1, 3)), "bias"),
        (lambda: EltwiseProblem(F32, dense(2, 8), "relu"), "dst"),
        (lambda: EltwiseProblem(F32, F32, "clip", 2.0, 1.0), "alpha"),
        (lambda: BinaryProblem(F32, dense(2, 8, 6, 5), F32, "add"), "src1"),
        (lambda: BinaryProblem(F32, dense(8), F32, "add"), "src1"),
        (lambda: BinaryProblem(F32, F32, F32, "select"), "alg"),
        (lambda: SumProblem((), (), F32), "srcs"),
        (lambda: SumProblem((F32,), (1.0, 2.0), F32), "scales"),
        (lambda: SumProblem((F32, dense(2)), (1.0, 2.0), F32), "dst"),
        (lambda: SoftmaxProblem(F32, F32, 4), "axis"),
        (lambda: PReluProblem(F32, U8, TensorSpec.dense((2, 8), "f32")), "dst"),
        (lambda: PReluProblem(F32, TensorSpec.dense((8,), "f32"), F32), "wei"),
        (lambda: ResamplingProblem(U8, U8, "cubic"), "alg"),
        (lambda: ResamplingProblem(TensorSpec.dense((2, 8), "u8"), U8, "linear"), "src"),
        (lambda: ResamplingProblem(U8, TensorSpec.dense((2, 7, 3, 3), "u8"), "linear"), "dst"),
        (lambda: PoolingProblem(U8, U8, "max", **POOL, **PADDING), "dst"),
        (lambda: PoolingProblem(U8, U8, "avg", **POOL, **PADDING), "alg"),
        (lambda: PoolingProblem(U8, U8, "max", **POOL | {"kernel": (2,)}, **PADDING), "kernel"),
        (lambda: ReorderProblem(F32, TensorSpec(F32.dims, "u8")), "dst"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(make: Any, argument: str) -> None:
    with pytest.raises((ArgumentError, DTypeError)) as caught:
        make()
    assert caught.value.argument == argument


def test_an_empty_batch_is_a_problem_like_any_other() -> None:
    assert ConvProblem.of((0, 8, 6, 6), (4, 8, 3, 3)).dst.dims == (0, 4, 4, 4)
    assert MatMulProblem.of((0, 8), (8, 4)).dst.size == 0


@pytest.mark.parametrize("kind", [ConvProblem, DeconvProblem])
def test_groups_are_said_by_number_or_by_the_first_dimension(
    kind: type[ConvProblem | DeconvProblem],
) -> None:
    leading = kind.of((1, 8, 6, 6), (2, 3, 4, 3, 3))
    assert kind.of((1, 8, 6, 6), (6, 4, 3, 3), groups=2) == leading
    assert kind.of((1, 8, 6, 6), (2, 3, 4, 3, 3), groups=2) == leading
    assert kind.of((1, 8, 6, 6), (6, 8, 3, 3), groups=1).groups == 1
    for wei, groups in (((7, 4, 3, 3), 2), ((2, 3, 4, 3, 3), 3)):
        with pytest.raises(ShapeError, match=rf"^groups: got {groups}; wanted "):
            kind.of((1, 8, 6, 6), wei, groups=groups)
    with pytest.raises(ArgumentError, match=r"^groups: got 0; wanted "):
        kind.of((1, 8, 6, 6), (6, 8, 3, 3), groups=0)


def test_a_kernel_one_longer_than_its_source_leaves_nothing_to_pool() -> None:
    window = {"kernel": (4, 4), "stride": (1, 1), "dilation": (1, 1)}
    padding = {"padding_lo": (0, 0), "padding_hi": (0, 0)}
    src, dst = TensorSpec.dense((2, 8, 3, 3), "u8"), TensorSpec.dense((2, 8, 0, 0), "u8")
    with pytest.raises(ShapeError, match=r"^dst: "):
        PoolingProblem(src, dst, "max", **window, **padding)
