"""The guard table: the measured failures match their row, the measured successes match none."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pyonednn_q.faults.guards import GUARDS, Guard, matching
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.isa import ISA_ORDER, Facts, InstructionSet
from pyonednn_q.primitive.post_ops import EltwisePostOp, PReluPostOp
from pyonednn_q.primitive.problem import InnerProductProblem, MatMulProblem, Problem
from pyonednn_q.primitive.tensor import TensorSpec
from support.guard_cases import (
    AMX,
    AVX2,
    CONV,
    M4,
    MATMUL_AMX,
    NEW,
    OLD,
    PLAIN,
    WRONG,
    deconv,
)
from support.guard_cases_hunted import HUNTED, HUNTED_RIGHT
from support.guard_cases_lowered import LOWERED, LOWERED_RIGHT
from support.guard_cases_plain import PLAIN_RIGHT, PLAIN_WRONG
from support.guard_cases_right import RIGHT


def ids(
    problem: Problem, attr: Attr = PLAIN, version: Any = NEW, isa: str = AMX, impl: str = ""
) -> set[str]:
    return {
        guard.id
        for guard in matching(problem, attr, Facts(version, InstructionSet.of(isa), "OMP"), impl)
    }


@pytest.mark.parametrize(
    ("row", "problem", "attr", "version", "isa", "impl"), [*WRONG, *HUNTED, *LOWERED, *PLAIN_WRONG]
)
def test_what_was_seen_wrong_is_matched(
    row: str, problem: Problem, attr: Attr, version: Any, isa: str, impl: str
) -> None:
    assert row in ids(problem, attr, version, isa, impl)
    assert row in ids(problem, attr, version, isa, "")  # the name may be hidden


@pytest.mark.parametrize(
    ("problem", "attr", "version", "isa", "impl"),
    [*RIGHT, *HUNTED_RIGHT, *LOWERED_RIGHT, *PLAIN_RIGHT],
)
def test_what_was_seen_right_is_not(
    problem: Problem, attr: Attr, version: Any, isa: str, impl: str
) -> None:
    assert ids(problem, attr, version, isa, impl) == set()


def test_every_row_has_an_example() -> None:
    assert {case[0] for case in (*WRONG, *HUNTED, *LOWERED, *PLAIN_WRONG)} == {
        guard.id for guard in GUARDS
    }


def test_ordinary_problems_match_nothing_anywhere() -> None:
    relu = Attr(wei_scale=Scale(1), dst_scale=Scale(), post_ops=(EltwisePostOp("relu"),))
    row_wise = Attr(wei_scale=Scale(2), src_zero_point=ZeroPoint(), dst_zero_point=ZeroPoint())
    for isa in ISA_ORDER:
        for version in (OLD, (3, 9, 1), NEW, (3, 14, 0)):
            assert ids(CONV, relu, version, isa) == set()
            assert ids(deconv(4, 2, padding=1), relu, version, isa) == set()
            assert ids(MatMulProblem.of((8, 64), (64, 32)), row_wise, version, isa) == set()
            assert ids(MatMulProblem.of((64, 100), (100, 96)), row_wise, version, isa) == set()
            assert ids(InnerProductProblem.of((8, 64), 32), relu, version, isa) == set()


def test_versions_between_the_measured_ones_have_the_faults_of_both() -> None:
    broadcast = MatMulProblem.of((2, 1, 64, 100), (1, 1, 100, 64))
    assert ids(broadcast, version=(3, 10, 0)) == {"matmul-plain-b-k-tail", "matmul-4d-broadcast-b"}
    assert ids(broadcast, version=OLD) == {"matmul-4d-broadcast-b"}
    assert ids(broadcast, version=NEW) == {"matmul-plain-b-k-tail"}
    assert ids(broadcast, version=(3, 20, 0)) == {"matmul-plain-b-k-tail"}


def test_fixed_faults_end_with_the_version_that_fixed_them() -> None:
    per_channel = Attr(dst_scale=Scale(2))
    assert ids(CONV, per_channel, (3, 8, 9)) == {"conv-per-channel-dst-scale"}
    assert ids(CONV, per_channel, (3, 9, 0)) == set()


def test_a_source_whose_layout_is_open_may_become_channels_last() -> None:
    known = InnerProductProblem.of((3, 4, 2, 2), 17)
    undecided = InnerProductProblem(TensorSpec(known.src.dims, "u8"), known.wei, known.dst, None)
    assert ids(undecided, isa=AVX2) == {"inner-product-spatial-packing"}
    plain = InnerProductProblem(known.src, TensorSpec.dense(known.wei.dims, "s8"), known.dst, None)
    assert ids(plain, isa=AVX2) == set()


def test_prelu_slopes_count_as_operands() -> None:
    def prelu(mask: int) -> Attr:
        return Attr(post_ops=(PReluPostOp(mask),))

    assert ids(M4, prelu(0b0100), OLD, impl=MATMUL_AMX) == {"matmul-4d-per-row-binary"}
    assert ids(M4, prelu(0b1100), NEW, impl=MATMUL_AMX) == {"matmul-4d-mask-binary"}
    for version, mask in ((OLD, 0b1000), (NEW, 0b1111)):
        assert ids(M4, prelu(mask), version, impl=MATMUL_AMX) == set()


FEATURES = re.compile(
    r"\b(?:SSE41|AVX2|AVX2_VNNI|AVX512_CORE(?:_\w+)?|AMX)\b|\b(?:all|every) \S* ?level"
)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.id)
def test_every_row_says_with_which_features_it_was_seen(guard: Guard) -> None:
    """By levels of the processor that ran it, or of those that what was read is about."""
    assert FEATURES.search(guard.source), guard.source
    below = [isa for isa in ISA_ORDER if not InstructionSet(isa).has_amx()]
    if not any(guard.isas(InstructionSet(isa)) for isa in below):
        assert "AMX" in guard.source


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.id)
def test_rows_that_spare_amx_say_how_it_does(guard: Guard) -> None:
    """By the names of kernels, or though the features that they ask for are there as well."""
    names = ("brg_conv_fwd", "jit", "jit_deconvolution", "brgconv_1x1", "brg_matmul", "brg_deconv")
    kernels = [f"{name}:avx512_core_amx" for name in names]
    impl = guard.impl or ""
    by_name = "(?!" in impl and "amx" in impl
    on_others = guard.isas(InstructionSet("AVX512_CORE_BF16"))
    by_isa = on_others and not guard.isas(InstructionSet("AVX512_CORE_AMX"))
    if by_name or by_isa:
        assert "AMX" in guard.source
    if by_name:
        assert not any(re.search(impl, kernel) for kernel in kernels)


def test_rows_are_complete_sentences_of_data() -> None:
    assert len({guard.id for guard in GUARDS}) == len(GUARDS)
    for guard in GUARDS:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", guard.id)
        assert guard.since >= (3, 7, 0)
        assert guard.until is None or guard.until > guard.since
        assert guard.source.startswith(("measured: 3.", "seen: 3.", "read: "))
        assert guard.effect
        assert guard.remedy
        if guard.impl is not None:
            re.compile(guard.impl)
        assert any(guard.isas(InstructionSet(isa)) for isa in ISA_ORDER)
