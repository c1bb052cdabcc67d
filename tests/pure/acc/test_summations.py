"""How kernels sum, at the borders of each rule that was measured (docs/reference/saturation.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyonednn_q.acc.pairing import EXACT, Summation, is_int8, summations
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
    SoftmaxProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec

BARE = InstructionSet("AVX512_CORE", vbmi=False)
VBMI = InstructionSet("AVX512_CORE", vbmi=True)
UNKNOWN = InstructionSet("AVX512_CORE")
AVX2, SSE41 = InstructionSet("AVX2"), InstructionSet("SSE41")
GEMM, MATMUL_GEMM = "x64:gemm_s8u8s32:jit", "gemm:jit"
BRG, JIT = "brg_conv_fwd:avx512_core", "jit_int8:avx512_core"


def texts(problem: Any, isa: InstructionSet, impl: str | None = None, **more: Any) -> list[str]:
    return [way.text() for way in summations(problem, isa, impl, **more)]


def conv(src: tuple[int, ...], wei: tuple[int, ...], dtype: str = "u8", **more: Any) -> ConvProblem:
    return ConvProblem.of(src, wei, src=dtype, **more)


def product(m: int, k: int, n: int, src: str = "u8", *, packed: bool = True) -> MatMulProblem:
    problem = MatMulProblem.of((m, k), (k, n), src=src)
    return problem if packed else replace(problem, wei=TensorSpec.dense((k, n), "s8"))


# --- a single input channel ----------------------------------------------------------------------

COLUMN, ROW, CHANNELS = ["column"], ["row"], ["channels"]


@pytest.mark.parametrize(
    ("problem", "wanted"),
    [
        (conv((1, 1, 7, 7), (4, 1, 3, 3)), COLUMN),
        (conv((1, 2, 7, 7), (2, 4, 1, 3, 3)), COLUMN),
        (conv((1, 1, 7, 7), (4, 1, 2, 1)), COLUMN),
        (conv((1, 1, 7, 6), (4, 1, 3, 3)), ROW),  # 4 columns of dst
        (conv((1, 1, 7, 7), (4, 1, 1, 3)), ROW),
        (conv((1, 1, 7, 9), (4, 1, 3, 3), dilation=(2, 1)), ROW),
        (conv((1, 1, 7, 9), (4, 1, 1, 2)), ROW),
        (conv((1, 1, 9), (4, 1, 3)), ROW),
        (conv((1, 1, 9), (4, 1, 1)), CHANNELS),
        (conv((1, 1, 9, 9), (4, 1, 3, 3), dilation=2), CHANNELS),
        (conv((1, 1, 7, 6), (4, 1, 3, 1), dilation=(2, 1)), CHANNELS),
        (conv((1, 1, 1, 7, 9), (4, 1, 1, 3, 3)), ROW),
        (conv((1, 1, 2, 7, 9), (4, 1, 1, 3, 3)), CHANNELS),
        (conv((1, 2, 7, 7), (4, 2, 3, 3)), CHANNELS),
        (conv((1, 4, 7, 7), (2, 4, 2, 3, 3)), CHANNELS),
        (conv((1, 3, 7, 7), (3, 1, 1, 3, 3)), ["none"]),  # depthwise
        (conv((1, 1, 7, 7), (4, 1, 3, 3), "s8"), ["none, halved, src + 128"]),
        (DeconvProblem.of((1, 1, 7, 7), (4, 1, 3, 3)), CHANNELS),
    ],
)
def test_a_single_channel_is_rearranged_where_bytes_can_be(problem: Any, wanted: list[str]) -> None:
    assert texts(problem, VBMI, BRG) == wanted
    moved = wanted in (COLUMN, ROW)
    assert texts(problem, BARE, BRG) == (CHANNELS if moved else wanted)
    assert texts(problem, UNKNOWN, BRG) == ([*CHANNELS, *wanted] if moved else wanted)
    assert texts(problem, AVX2, "jit_uni_int8:avx2") == (CHANNELS if moved else wanted)
    assert texts(problem, VBMI, JIT) == (CHANNELS if moved else wanted)


def test_a_product_of_patches_may_be_all_that_takes_groups() -> None:
    """Of any number but one, with AVX-512; of single channels in three dimensions alone."""
    for groups, more in ((1, False), (2, True), (3, True)):
        problem = conv((1, groups * 5, 7, 7), (groups, 5, 5, 3, 3))
        assert (len(texts(problem, BARE)) > 1) is more
        assert len(texts(problem, AVX2)) == 1
    for space, more in (((7, 7), False), ((7, 7, 7), True)):
        problem = conv((1, 3, *space), (3, 1, 1, *(3,) * len(space)))
        assert (len(texts(problem, BARE)) > 1) is more


def test_without_a_name_every_kernel_that_may_be_chosen_is_meant() -> None:
    problem = conv((1, 1, 7, 7), (4, 1, 3, 3))
    assert texts(problem, VBMI) == [*CHANNELS, *COLUMN]
    assert texts(problem, VBMI, "") == [*CHANNELS, *COLUMN]  # a hidden name
    assert texts(problem, BARE) == texts(problem, AVX2) == CHANNELS
    deconv = DeconvProblem.of((1, 2, 7, 7), (4, 2, 3, 3), src="s8")
    assert texts(deconv, AVX2) == ["none, halved, src + 128", "channels, src + 128"]
    assert texts(deconv, AVX2, "jit_uni_int8:avx2") == ["none, halved, src + 128"]
    assert texts(deconv, AVX2, "conv:any+x64:gemm_s8s8s32:jit") == ["channels, src + 128"]


@pytest.mark.parametrize(
    ("name", "spec", "more"),
    [
        ("wei", TensorSpec.dense((4, 5, 3, 3), "s8"), True),
        ("src", TensorSpec((1, 5, 7, 7), "u8", (400, 1, 56, 8)), True),
        ("dst", TensorSpec((1, 4, 5, 5), "u8", (125, 1, 25, 5)), True),
        ("dst", TensorSpec((1, 4, 5, 5), "u8", (125, 31, 6, 1)), True),
        ("dst", TensorSpec.channels_last((1, 4, 5, 5), "u8"), False),
        ("src", TensorSpec((1, 5, 7, 7), "u8"), False),
        ("src", TensorSpec.dense((1, 5, 7, 7), "u8"), False),
    ],
)
def test_a_product_of_patches_may_be_all_that_takes_a_layout(
    name: str, spec: TensorSpec, more: bool
) -> None:
    """Of weights in a layout of their own, and of a source or destination with gaps."""
    plain: Any = conv((1, 5, 7, 7), (4, 5, 3, 3))
    problem = replace(plain, **{name: spec})
    assert texts(problem, BARE) == [*CHANNELS, "taps"][: 1 + more]
    assert texts(problem, BARE, JIT) == texts(problem, AVX2) == CHANNELS


# --- matrix products ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("isa", "length", "block"),
    [
        (AVX2, 256, None), (AVX2, 257, 129), (AVX2, 258, 129), (AVX2, 259, None), (AVX2, 260, None),
        (AVX2, 261, 131), (AVX2, 765, 383), (AVX2, 766, 383), (AVX2, 767, None), (AVX2, 768, None),
        (AVX2, 769, None), (AVX2, 770, None),
        (SSE41, 256, None), (SSE41, 257, 129), (SSE41, 509, 255), (SSE41, 510, 255),
        (SSE41, 511, None), (SSE41, 513, None), (SSE41, 514, None),
        (BARE, 257, None), (BARE, 384, None), (BARE, 385, 193), (BARE, 386, 193), (BARE, 387, None),
        (BARE, 1533, 767), (BARE, 1534, 767), (BARE, 1537, None), (BARE, 1538, None),
    ],
)  # fmt: skip
def test_long_sums_are_cut_in_halves(isa: InstructionSet, length: int, block: int | None) -> None:
    wanted = "k" if block is None else f"k, in blocks of {block}"
    assert texts(product(5, length, 8), isa, MATMUL_GEMM) == [wanted]


@pytest.mark.parametrize(
    ("problem", "zero_point", "wanted"),
    [
        # Rows, inner, columns: one column has a kernel of its own, and a part of few may have it.
        (product(5, 385, 4), False, ["k, in blocks of 193"]),
        (product(5, 385, 3), False, ["k, in blocks of 193", "k"]),
        (product(5, 385, 2), False, ["k, in blocks of 193", "k"]),
        (product(5, 385, 1), False, ["k"]),
        (product(5, 385, 1), True, ["k, in blocks of 193"]),
        (product(5, 385, 1), None, ["k", "k, in blocks of 193"]),
        (product(1, 385, 8), False, ["k, in blocks of 193"]),
        (product(1, 385, 1), False, ["k, in blocks of 193"]),
        (product(2, 385, 8), False, ["k, in blocks of 193"]),
        (product(1, 385, 8, packed=False), False, ["k", "k, in blocks of 193"]),
        (product(2, 385, 8, packed=False), False, ["k, in blocks of 193"]),
        (product(1, 385, 8, packed=False), True, ["k, in blocks of 193"]),
        (product(5, 9, 1, "s8"), False, ["k, wei + 128"]),
        (product(5, 9, 2, "s8"), False, ["k, src + 128", "k, wei + 128"]),
        (product(5, 9, 4, "s8"), False, ["k, src + 128"]),
        (product(5, 9, 1, "s8"), True, ["k, src + 128"]),
        (product(1, 9, 8, "s8", packed=False), False, ["k, src + 128", "k, wei + 128"]),
    ],
)
def test_avx512_has_products_of_single_rows_and_columns(
    problem: Any, zero_point: bool | None, wanted: list[str]
) -> None:
    assert texts(problem, BARE, MATMUL_GEMM, src_zero_point=zero_point) == wanted
    assert "wei" not in "".join(texts(problem, AVX2, MATMUL_GEMM, src_zero_point=False))
    generated = texts(problem, BARE, "brg_matmul:avx512_core", src_zero_point=zero_point)
    assert generated == ["k, src + 128" if problem.src.dtype == "s8" else "k"]


def test_products_that_only_the_reference_loop_takes() -> None:
    signed = product(5, 9, 8, "s8")
    assert texts(signed, AVX2, MATMUL_GEMM, src_zero_point=True) == ["none"]
    assert texts(signed, AVX2, MATMUL_GEMM, src_zero_point=False) == ["k, src + 128"]
    assert texts(signed, AVX2, MATMUL_GEMM) == ["k, src + 128"]
    assert texts(signed, BARE, MATMUL_GEMM, src_zero_point=True) == ["k, src + 128"]
    assert texts(product(5, 9, 8), AVX2, MATMUL_GEMM, src_zero_point=True) == ["k"]
    assert texts(product(5, 257, 8), AVX2) == ["k, in blocks of 129"]  # AVX2 has gemm only
    assert texts(product(5, 385, 8), BARE) == ["k"]


@pytest.mark.parametrize(
    ("batch", "of_wei", "wanted"),
    [
        ((), (), ["k, src + 128"]),
        ((3,), (3,), ["k, src + 128", "k, wei + 128"]),
        ((3, 1), (1, 1), ["k, src + 128", "k, wei + 128"]),
    ],
)
def test_a_product_may_take_batches_from_generated_code(
    batch: tuple[int, ...], of_wei: tuple[int, ...], wanted: list[str]
) -> None:
    problem = MatMulProblem.of((*batch, 5, 9), (*of_wei, 9, 1), src="s8")
    assert texts(problem, BARE, src_zero_point=False) == wanted
    assert texts(problem, BARE, "brg_matmul:avx512_core", src_zero_point=False) == wanted[:1]
    assert texts(problem, BARE, MATMUL_GEMM, src_zero_point=False) == ["k, wei + 128"]
    assert texts(problem, AVX2, src_zero_point=False) == ["k, src + 128"]


# --- products of patches ----------------------------------------------------------------------


CUT = ["taps, in blocks of 193"]


@pytest.mark.parametrize(
    ("problem", "zero_point", "wanted"),
    [
        (conv((1, 43, 5, 5), (4, 43, 3, 3)), False, ["taps"]),  # 387 products, an even half
        (conv((1, 55, 5, 5), (4, 55, 7, 1), padding=(3, 0)), False, CUT),
        (conv((1, 110, 5, 5), (2, 4, 55, 7, 1), padding=(3, 0)), False, CUT),
        (conv((1, 55, 5, 5), (3, 55, 7, 1), padding=(3, 0)), False, [*CUT, "taps"]),
        (conv((1, 385, 5, 5), (1, 385, 1, 1)), False, ["taps"]),
        (conv((1, 385, 5, 5), (1, 385, 1, 1)), True, CUT),
        (conv((1, 385, 5, 5), (1, 385, 1, 1)), None, ["taps", *CUT]),
        (conv((1, 385, 1, 1), (1, 385, 1, 1)), False, ["taps"]),
        (conv((1, 385, 5, 5), (1, 385, 1, 1), stride=2), False, CUT),
        (conv((1, 385, 5, 5), (1, 385, 1, 1), stride=(1, 2)), False, CUT),
        (conv((1, 385, 5, 5), (1, 385, 1, 1), padding=((0, 0), (0, 1))), False, CUT),
        (conv((1, 385, 5, 5), (1, 385, 1, 1), padding=((1, 0), (0, 0))), False, CUT),
        (conv((1, 55, 7, 5), (1, 55, 7, 1)), False, CUT),
        (conv((1, 385, 1, 1), (8, 385, 1, 1)), False, CUT),
        (conv((1, 770, 5, 5), (2, 1, 385, 1, 1)), False, ["taps"]),
        (conv((1, 9, 5, 5), (4, 9, 3, 3), "s8"), False, ["none, halved, src + 128"]),
    ],
)  # fmt: skip
def test_products_of_patches(problem: Any, zero_point: bool | None, wanted: list[str]) -> None:
    assert texts(problem, BARE, GEMM, src_zero_point=zero_point) == wanted


@pytest.mark.parametrize(
    ("dims", "wei", "wanted"),
    [
        ((1, 385, 3, 3), (4, 385, 1, 1), ["channels, in blocks of 193"]),
        ((1, 385, 3, 3), (1, 385, 1, 1), ["channels"]),
        ((1, 385, 3, 3), (1, 385, 1, 3), ["channels, in blocks of 193", "channels"]),
        ((1, 385, 3, 3), (1, 385, 2, 2), ["channels, in blocks of 193"]),
        ((1, 385, 1, 1), (4, 385, 1, 1), ["channels"]),
        ((1, 385, 1, 1), (1, 385, 1, 1), ["channels", "channels, in blocks of 193"]),
        ((1, 770, 3, 3), (2, 1, 385, 1, 1), ["channels"]),
        ((1, 770, 3, 3), (2, 4, 385, 1, 1), ["channels, in blocks of 193"]),
    ],
)
def test_a_deconvolution_multiplies_before_it_places(
    dims: tuple[int, ...], wei: tuple[int, ...], wanted: list[str]
) -> None:
    problem = DeconvProblem.of(dims, wei)
    for zero_point in (False, True, None):  # it is taken off elsewhere
        assert texts(problem, BARE, f"conv:any+{GEMM}", src_zero_point=zero_point) == wanted


# --- inner products ----------------------------------------------------------------------


def inner(dims: tuple[int, ...], oc: int, src: str = "u8", **more: Any) -> InnerProductProblem:
    return InnerProductProblem.of(dims, oc, src=src, **more)


FLAT, LAST = inner((4, 385), 8), inner((4, 55, 7), 8)
DENSE = inner((4, 55, 7), 8, layout="dense")
OPEN = replace(LAST, src=TensorSpec((4, 55, 7), "u8"))


@pytest.mark.parametrize(
    ("problem", "impl", "wanted"),
    [
        (FLAT, GEMM, ["dense, in blocks of 193"]),
        (LAST, GEMM, ["last, in blocks of 193"]),
        (DENSE, GEMM, ["dense, in blocks of 193"]),
        (OPEN, GEMM, ["dense, in blocks of 193", "last, in blocks of 193"]),
        (FLAT, "brg_matmul:avx512_core", ["dense"]),
        (LAST, "brg_matmul:avx512_core", ["last"]),
        (FLAT, "brgemm:avx512_core", ["dense"]),
        (LAST, "brgemm:avx512_core", ["channels"]),
        (DENSE, "brgemm:avx512_core", ["channels"]),
        (DENSE, None, ["dense, in blocks of 193", "dense", "channels"]),
        (inner((1, 385), 8), GEMM, ["dense"]),
        (inner((1, 385), 1), GEMM, ["dense", "dense, in blocks of 193"]),
        (inner((1, 55, 7), 8), GEMM, ["last", "last, in blocks of 193"]),
        (inner((2, 385), 8), GEMM, ["dense, in blocks of 193"]),
        (inner((2, 385), 1), GEMM, ["dense"]),
        (inner((4, 9), 8, "s8"), GEMM, ["dense, src + 128"]),
        (inner((4, 9), 1, "s8"), GEMM, ["dense, wei + 128"]),
        (inner((4, 9), 8, "s8"), "brg_matmul:avx512_core", ["dense, src + 128"]),
        (inner((4, 9, 2), 8, "s8"), "brgemm:avx512_core", ["channels, src + 128"]),
    ],
)
def test_an_inner_product_follows_memory(problem: Any, impl: str | None, wanted: list[str]) -> None:
    assert texts(problem, BARE, impl) == wanted


def test_avx2_has_one_form_of_inner_products() -> None:
    assert texts(FLAT, AVX2) == ["dense, in blocks of 193"]
    assert texts(DENSE, AVX2) == ["dense, in blocks of 193"]


# --- exact ones ----------------------------------------------------------------------


def test_what_cannot_saturate_is_exact() -> None:
    problem = product(5, 9, 8)
    assert summations(problem, "AVX512_CORE_VNNI") == (EXACT,)
    assert summations(problem, "AVX512_CORE_VNNI", "brg_matmul:avx512_core") != (EXACT,)
    assert summations(problem, AVX2, "ref_int8:any") == (EXACT,)
    assert summations(replace(problem, wei=TensorSpec((9, 8), "u8")), AVX2) == (EXACT,)
    spec = TensorSpec.dense((2, 3), "u8")
    assert summations(SoftmaxProblem(spec, spec, 1), AVX2) == (EXACT,)
    assert not is_int8(SoftmaxProblem(spec, spec, 1))
    assert [is_int8(product(1, 2, 3, src)) for src in ("u8", "s8")] == [True, True]
    assert not is_int8(MatMulProblem.of((1, 2), (2, 3), src="s8", wei="s4"))
    assert not is_int8(MatMulProblem.of((1, 2), (2, 3), src="f32", wei="f32", dst="f32"))


def test_text_of_a_way() -> None:
    assert EXACT.text() == "none"
    assert Summation(halved=True, shifted="src").text() == "none, halved, src + 128"


@pytest.mark.parametrize(
    ("places", "wanted"), [((1, 1), "channels"), ((2, 1), "channels, in blocks of 193")]
)
def test_one_place_of_a_deconvolution_s_source_is_a_product_of_one_row(
    places: tuple[int, int], wanted: str
) -> None:
    """Which has a kernel of its own, that does not cut 386 channels in halves."""
    problem = DeconvProblem.of((1, 386, *places), (8, 386, 3, 3))
    assert wanted in texts(problem, BARE, "conv:any+x64:gemm_s8u8s32:jit")
    assert len(texts(problem, BARE, "conv:any+x64:gemm_s8u8s32:jit")) == 1
