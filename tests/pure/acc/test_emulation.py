"""Sums in 16-bit pairs against a machine that adds one pair at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.acc.emulation import as_if, exact, sums
from pyonednn_q.acc.pairing import EXACT, Pairing, Summation, summations
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
    SoftmaxProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.requantize.value import Requantizer
from support import pair_machine as machine

WINDOWS: dict[str, dict[str, Any]] = {
    "1x1": {"src_dims": (2, 4, 3, 2), "wei_dims": (3, 4, 1, 1)},
    "odd channels": {"src_dims": (1, 5, 4, 3), "wei_dims": (2, 5, 3, 2), "padding": 1},
    "strided": {"src_dims": (1, 2, 5, 5), "wei_dims": (3, 2, 3, 3), "stride": 2, "padding": 1},
    "dilated": {"src_dims": (1, 3, 6, 5), "wei_dims": (2, 3, 2, 3), "dilation": 2},
    "groups": {"src_dims": (1, 6, 3, 4), "wei_dims": (2, 2, 3, 2, 2), "padding": ((0, 1), (2, 0))},
    "1-D": {"src_dims": (2, 3, 7), "wei_dims": (2, 3, 3), "stride": 2},
    "3-D": {"src_dims": (1, 2, 3, 3, 3), "wei_dims": (2, 2, 2, 2, 2), "padding": 1},
}
OF: dict[str, Any] = {"conv": ConvProblem, "deconv": DeconvProblem}


def drawn(problem: Any, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    src = machine.full_range(rng, problem.src.dims, problem.src.dtype)
    return src, machine.full_range(rng, problem.wei.dims, "s8")


@pytest.mark.parametrize("shape", WINDOWS)
@pytest.mark.parametrize("kind", OF)
def test_windows_pair_the_channels_of_each_tap(kind: str, shape: str) -> None:
    problem = OF[kind].of(**WINDOWS[shape])
    src, wei = drawn(problem)
    got = as_if(problem, src, wei, "AVX2")
    for output in machine.outputs(problem.dst.dims):
        runs = [run for _, run in machine.window_runs(problem, src, wei, output)]
        assert got[output] == sum(map(machine.in_pairs, runs))
        assert exact(problem, src, wei)[output] == sum(x * w for run in runs for x, w in run)
    assert (got != exact(problem, src, wei)).any()


@pytest.mark.parametrize("shape", WINDOWS)
def test_s8_convolutions_halve_their_weights(shape: str) -> None:
    problem = ConvProblem.of(**WINDOWS[shape], src="s8")
    src, wei = drawn(problem)
    got = as_if(problem, src, wei, "AVX512_CORE")
    for output in machine.outputs(problem.dst.dims):
        runs = [run for _, run in machine.window_runs(problem, src, wei, output)]
        assert got[output] == sum(map(machine.halved, runs))


@pytest.mark.parametrize("shape", ["odd channels", "groups"])
def test_deconvolutions_by_matrix_product_shift_s8_sources(shape: str) -> None:
    problem = DeconvProblem.of(**WINDOWS[shape], src="s8")
    src, wei = drawn(problem)
    got = as_if(problem, src, wei, "AVX2", impl="conv:any+x64:gemm_s8s8s32:jit")
    inside = np.ones(src.shape, np.int8)
    for output in machine.outputs(problem.dst.dims):
        runs = machine.window_runs(problem, src, wei, output)
        seen = [
            any(x for x, _ in run) for _, run in machine.window_runs(problem, inside, wei, output)
        ]
        products = [run for (_, run), used in zip(runs, seen, strict=True) if used]
        assert got[output] == sum(map(machine.shifted, products))


@pytest.mark.parametrize(
    ("kernel", "dilation", "width", "order"),
    [
        ((3, 3), 1, 9, "column"),
        ((3, 2), 1, 7, "column"),
        ((3, 3), 1, 6, "row"),  # no more than 4 outputs in a row
        ((1, 5), 1, 9, "row"),
        ((3, 3), (2, 1), 9, "row"),
        ((3, 3), (1, 2), 12, "channels"),
        ((5, 1), (2, 1), 9, "channels"),
    ],
)
def test_a_single_channel_with_byte_permutation(
    kernel: tuple[int, int], dilation: Any, width: int, order: str
) -> None:
    problem = ConvProblem.of((1, 1, 10, width), (2, 1, *kernel), dilation=dilation)
    src, wei = drawn(problem)
    impl = "brg_conv_fwd:avx512_core"
    newer = InstructionSet("AVX512_CORE", vbmi=True)
    (way,) = summations(problem, newer, impl)
    assert way.pairing.value == order
    got = as_if(problem, src, wei, newer, impl=impl)
    for output in machine.outputs(problem.dst.dims):
        taps = dict(machine.window_runs(problem, src, wei, output))
        if order == "column":
            sequence = sorted(taps, key=lambda tap: tap[::-1])
            wanted = machine.in_pairs([taps[tap][0] for tap in sequence])
        elif order == "row":
            rows = [[taps[tap][0] for tap in taps if tap[0] == row] for row in range(kernel[0])]
            wanted = sum(map(machine.in_pairs, rows))
        else:
            wanted = sum(x * w for run in taps.values() for x, w in run)
        assert got[output] == wanted
    older = InstructionSet("AVX512_CORE", vbmi=False)  # a processor that only has AVX-512
    assert np.array_equal(as_if(problem, src, wei, older, impl=impl), exact(problem, src, wei))
    if order != "channels":
        with pytest.raises(ArgumentError, match=rf"channels or {order}; .* tells vbmi"):
            as_if(problem, src, wei, "AVX512_CORE", impl=impl)


@pytest.mark.parametrize("src_dtype", ["u8", "s8"])
@pytest.mark.parametrize(
    ("src_dims", "wei_dims"),
    [
        ((3, 7), (7, 4)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 2, 3, 5), (1, 2, 5, 2)),
        ((1, 3, 6), (2, 6, 2)),
    ],
)
def test_matmuls_pair_along_k(
    src_dims: tuple[int, ...], wei_dims: tuple[int, ...], src_dtype: str
) -> None:
    problem = MatMulProblem.of(src_dims, wei_dims, src=src_dtype)
    src, wei = drawn(problem)
    got = as_if(problem, src, wei, "AVX2")
    add = machine.in_pairs if src_dtype == "u8" else machine.shifted
    every_src = np.broadcast_to(src, (*problem.batch, problem.m, problem.k))
    every_wei = np.broadcast_to(wei, (*problem.batch, problem.k, problem.n))
    for output in machine.outputs(problem.dst.dims):
        *batch, m, n = output
        row, column = every_src[tuple(batch)][m], every_wei[tuple(batch)][:, n]
        products = [(int(x), int(w)) for x, w in zip(row, column, strict=True)]
        assert got[output] == add(products)


@pytest.mark.parametrize(
    ("isa", "k", "block"),
    [
        ("AVX2", 256, None),
        ("AVX2", 257, 129),
        ("AVX2", 258, 129),
        ("AVX2", 260, None),
        ("AVX2", 765, 383),
        ("AVX2", 769, None),
        ("SSE41", 509, 255),
        ("SSE41", 513, None),
    ],
)
def test_long_sums_are_cut_in_halves(isa: str, k: int, block: int | None) -> None:
    """An odd half parts neighbours: the pairs behind the cut are others."""
    problem = MatMulProblem.of((2, k), (k, 3))
    (way,) = summations(problem, isa)
    assert way.block == block
    src, wei = drawn(problem)
    got = as_if(problem, src, wei, isa)
    cut = k if block is None else block
    for m, n in machine.outputs(problem.dst.dims):
        products = [(int(x), int(w)) for x, w in zip(src[m], wei[:, n], strict=True)]
        assert got[m, n] == machine.in_pairs(products[:cut]) + machine.in_pairs(products[cut:])


@pytest.mark.parametrize("layout", ["channels_last", "dense"])
def test_inner_products_pair_along_memory(layout: Any) -> None:
    problem = InnerProductProblem.of((2, 3, 2, 3), 4, layout=layout)
    src, wei = drawn(problem)
    got = as_if(problem, src, wei, "AVX2")
    axes = (1, 2, 0) if layout == "channels_last" else (0, 1, 2)
    for n, channel in machine.outputs(problem.dst.dims):
        values, weights = src[n].transpose(axes).ravel(), wei[channel].transpose(axes).ravel()
        products = [(int(x), int(w)) for x, w in zip(values, weights, strict=True)]
        assert got[n, channel] == machine.in_pairs(products)


def test_brgemm_s_inner_product_goes_position_by_position() -> None:
    problem = InnerProductProblem.of((2, 3, 4), 4)
    src, wei = drawn(problem)
    got = as_if(problem, src, wei, "AVX512_CORE", impl="brgemm:avx512_core")
    for n, channel in machine.outputs(problem.dst.dims):
        runs = [
            [(int(src[n, c, at]), int(wei[channel, c, at])) for c in range(3)] for at in range(4)
        ]
        assert got[n, channel] == sum(map(machine.in_pairs, runs))


@pytest.mark.parametrize("src_dtype", ["u8", "s8"])
@pytest.mark.parametrize("kind", OF)
def test_a_source_zero_point_counts_inside_only(kind: str, src_dtype: str) -> None:
    problem = OF[kind].of(**WINDOWS["strided"], src=src_dtype)
    src, wei = drawn(problem)
    impl = {"conv": "jit_uni_int8:avx2", "deconv": "jit_uni_int8:avx2"}[kind]
    zero_point = -7 if src_dtype == "s8" else 200
    got = as_if(problem, src, wei, "AVX2", impl=impl, src_zero_point=zero_point)
    inside = np.ones(src.shape, src.dtype)
    used = np.rint(wei / 2).astype(np.int8) if src_dtype == "s8" else wei
    taken = exact(problem, inside, used).astype(np.int64) * (2 if src_dtype == "s8" else 1)
    plain = as_if(problem, src, wei, "AVX2", impl=impl).astype(np.int64)
    assert np.array_equal(got, plain - zero_point * taken)


def test_kernels_that_sum_in_32_bits() -> None:
    depthwise = ConvProblem.of((1, 4, 5, 5), (4, 1, 1, 3, 3))
    plain = ConvProblem.of(**WINDOWS["odd channels"])
    signed = MatMulProblem.of((3, 8), (8, 2), src="s8")
    assert summations(depthwise, "AVX2") == (EXACT,)
    assert summations(plain, "AVX2", "ref:any") == (EXACT,)
    assert summations(signed, "AVX2", src_zero_point=True) == (EXACT,)
    assert summations(signed, "AVX512_CORE", src_zero_point=True) != (EXACT,)
    for isa in ("AVX2_VNNI", "AVX512_CORE_VNNI", "AVX512_CORE_AMX"):
        assert summations(plain, isa) == (EXACT,)
    spec = TensorSpec.dense((2, 2), "f32")
    assert summations(SoftmaxProblem(spec, spec, 1), "AVX2") == (EXACT,)


def test_as_if_goes_on_to_the_destination() -> None:
    problem = MatMulProblem.of((1, 2), (2, 1))
    src, wei = np.full((1, 2), 255, np.uint8), np.full((2, 1), 127, np.int8)
    made = Requantizer("onednn", 2.0**-9, dtype="u8")
    assert as_if(problem, src, wei, "AVX2", requantizer=made).tolist() == [[64]]
    assert as_if(problem, src, wei, "AVX512_CORE_AMX", requantizer=made).tolist() == [[127]]


def test_sums_wrap_around_32_bits() -> None:
    problem = MatMulProblem.of((1, 70_000), (70_000, 1))
    src, wei = np.full((1, 70_000), 255, np.uint8), np.full((70_000, 1), 127, np.int8)
    wanted = np.int64(255 * 127 * 70_000).astype(np.int32)
    assert exact(problem, src, wei)[0, 0] == wanted


def test_what_is_not_known_is_asked_for() -> None:
    problem = InnerProductProblem.of((2, 3, 4), 4)
    src, wei = drawn(problem)
    with pytest.raises(ArgumentError, match=r"^impl: got None; .* pair by last or channels$"):
        as_if(problem, src, wei, "AVX512_CORE")


def test_arguments_are_checked() -> None:
    problem = MatMulProblem.of((1, 2), (2, 1))
    src, wei = np.zeros((1, 2), np.uint8), np.zeros((2, 1), np.int8)
    with pytest.raises(DTypeError, match=r"^src: got int8; wanted uint8"):
        as_if(problem, src.astype(np.int8), wei, "AVX2")
    with pytest.raises(ShapeError, match=r"^wei: got \(1, 2\); wanted \(2, 1\)"):
        as_if(problem, src, wei.T, "AVX2")
    with pytest.raises(ArgumentError, match=r"^problem: .*wanted a convolution"):
        as_if(MatMulProblem.of((1, 2), (2, 1), src="f32"), src, wei, "AVX2")
    with pytest.raises(ArgumentError, match=r"^src_zero_point: got 256"):
        as_if(problem, src, wei, "AVX2", src_zero_point=256)
    with pytest.raises(ArgumentError, match=r"^isa: got 'AVX3'"):
        as_if(problem, src, wei, "AVX3")


def test_patches_of_a_matrix_product_run_over_all_taps() -> None:
    problem = ConvProblem.of(**WINDOWS["odd channels"])
    src, wei = drawn(problem)
    got = sums(problem, src, wei, Summation(Pairing.TAPS))
    for output in machine.outputs(problem.dst.dims):
        runs = [run for _, run in machine.window_runs(problem, src, wei, output)]
        assert got[output] == machine.in_pairs([one for run in runs for one in run])
