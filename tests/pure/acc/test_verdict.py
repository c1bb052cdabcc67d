"""The saturation verdict: never optimistic, and tight with a witness for every flagged channel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyonednn_q.acc.emulation import as_if, exact, sums
from pyonednn_q.acc.pairing import summations
from pyonednn_q.acc.pairs import pair_overflow
from pyonednn_q.acc.repair import repair
from pyonednn_q.acc.verdict import Counts, counts, saturation, witness
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from support import pair_machine as machine

LEVELS = st.sampled_from(["SSE41", "AVX2", "AVX512_CORE"])
SRC = st.sampled_from(["u8", "s8"])
# Where both a kernel and a matrix product may run, the question is which.
KERNEL = {"deconvolution": "jit_uni_int8:avx2"}


@st.composite
def problems(draw: st.DrawFn) -> Any:
    """Any kind, small, with windows that leave some taps unseen."""
    src = draw(SRC)
    kind = draw(st.sampled_from(["conv", "deconv", "matmul", "inner product"]))
    small = st.integers(1, 4)
    if kind == "matmul":
        batch = draw(st.sampled_from([(), (2,)]))
        m, k, n = draw(small), draw(st.integers(1, 7)), draw(small)
        return MatMulProblem.of((*batch, m, k), (*batch, k, n), src=src)
    if kind == "inner product":
        space = draw(st.sampled_from([(), (2,), (2, 2)]))
        dims = (draw(small), draw(small), *space)
        layout: Any = draw(st.sampled_from(["channels_last", "dense"]))
        return InnerProductProblem.of(dims, draw(small), src=src, layout=layout)
    groups, ic, oc = draw(st.integers(1, 2)), draw(small), draw(small)
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    lead = (groups, oc, ic) if groups > 1 else (oc, ic)
    dims = (1, groups * ic, draw(st.integers(3, 5)), draw(st.integers(3, 7)))
    shape: dict[str, Any] = {"padding": draw(st.integers(0, 2)), "stride": draw(st.integers(1, 2))}
    of: Any = ConvProblem if kind == "conv" else DeconvProblem
    try:
        return of.of(dims, (*lead, *kernel), src=src, **shape)
    except ArgumentError:
        return of.of(dims, (*lead, *kernel), src=src)


def ranges(src: str) -> Any:
    lo, hi = (0, 255) if src == "u8" else (-128, 127)
    return st.tuples(st.integers(lo, hi), st.integers(lo, hi)).map(sorted)


@settings(max_examples=150, deadline=None)
@given(problems(), LEVELS, st.data(), st.integers(0, 2**32 - 1))
def test_a_channel_that_is_not_flagged_is_exact_for_every_source(
    problem: Any, isa: str, data: st.DataObject, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    wei = machine.full_range(rng, problem.wei.dims, "s8")
    lo, hi = data.draw(ranges(problem.src.dtype))
    verdict = saturation(problem, wei, isa, src_range=(lo, hi))
    clean = np.ones(len(verdict.channels), np.bool_)
    clean[list(verdict.flagged)] = False
    axis = -1 if problem.kind == "matmul" else 1
    for _ in range(3):
        src = np.clip(machine.full_range(rng, problem.src.dims, problem.src.dtype), lo, hi)
        wanted = np.compress(clean, exact(problem, src, wei), axis)
        for way in verdict.ways:
            assert np.array_equal(np.compress(clean, sums(problem, src, wei, way), axis), wanted)


@settings(max_examples=150, deadline=None)
@given(problems(), LEVELS, st.integers(0, 2**32 - 1))
def test_every_flagged_channel_has_a_witness(problem: Any, isa: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    wei = machine.full_range(rng, problem.wei.dims, "s8")
    impl = KERNEL.get(problem.kind)
    for way in summations(problem, isa, impl):
        verdict = saturation(problem, wei, isa, impl=impl)
        for channel in verdict.flagged:
            found = witness(verdict, wei, channel)
            assert found is not None
            at = -1 if problem.kind == "matmul" else 1
            assert found.position[at] == channel
            assert found.exact == exact(problem, found.src, wei)[found.position]
            results = {
                int(sums(problem, found.src, wei, one)[found.position]) for one in verdict.ways
            }
            assert found.computed in results
            assert found.computed != found.exact
        assert way in verdict.ways


@settings(max_examples=100, deadline=None)
@given(problems(), LEVELS, st.data(), st.integers(0, 2**32 - 1))
def test_witnesses_stay_in_the_range_of_the_source(
    problem: Any, isa: str, data: st.DataObject, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    wei = machine.full_range(rng, problem.wei.dims, "s8")
    lo, hi = data.draw(ranges(problem.src.dtype))
    verdict = saturation(problem, wei, isa, impl=KERNEL.get(problem.kind), src_range=(lo, hi))
    for channel in verdict.flagged[:2]:
        found = witness(verdict, wei, channel)
        if found is not None:
            assert lo <= found.src.min() <= found.src.max() <= hi
            assert found.computed != found.exact


def test_a_witness_is_the_first_of_a_batch() -> None:
    problem = ConvProblem.of((3, 2, 4, 4), (2, 2, 1, 1))
    wei = np.full(problem.wei.dims, 127, np.int8)
    found = witness(saturation(problem, wei, "AVX2"), wei, 1)
    assert found is not None
    assert found.position == (0, 1, 0, 0)
    assert np.argwhere(found.src).tolist() == [[0, 0, 0, 0], [0, 1, 0, 0]]
    assert (found.exact, found.computed) == (2 * 255 * 127, 2**15 - 1)


def test_a_tap_that_no_output_sees_does_no_harm() -> None:
    """One output, the kernel half outside: its first row of taps meets padding only."""
    wei = np.zeros((1, 2, 2, 1), np.int8)
    wei[:, :, 0] = 127
    hidden = ConvProblem.of((1, 2, 1, 1), wei.shape, padding=((1, 0), (0, 0)))
    assert saturation(hidden, wei, "AVX2").is_exact
    seen = ConvProblem.of((1, 2, 2, 1), wei.shape)
    assert saturation(seen, wei, "AVX2").flagged == (0,)


def test_two_taps_that_no_output_sees_together_do_no_harm() -> None:
    """One row: the kernel's upper half meets it at one place, its lower half at another."""
    isa = InstructionSet("AVX512_CORE", vbmi=True)
    wei = np.full((1, 1, 2, 1), 127, np.int8)
    for rows, is_exact in ((1, True), (2, False)):
        problem = ConvProblem.of((1, 1, rows, 7), wei.shape, padding=((1, 1), (0, 0)))
        impl = "brg_conv_fwd:avx512_core"
        assert [way.text() for way in summations(problem, isa, impl)] == ["column"]
        assert saturation(problem, wei, isa, impl=impl).is_exact is is_exact
        assert saturation(problem, wei, isa).is_exact is is_exact


@pytest.mark.parametrize(
    "problem",
    [
        MatMulProblem.of((0, 2, 16), (1, 16, 4)),
        MatMulProblem.of((0, 16), (16, 4)),
        ConvProblem.of((0, 2, 3, 3), (4, 2, 1, 1)),
        ConvProblem.of((0, 2, 3, 3), (4, 2, 1, 1), src="s8"),
        InnerProductProblem.of((0, 16), 4),
        MatMulProblem.of((2, 0), (0, 4)),
        MatMulProblem.of((2, 0), (0, 4), src="s8"),
        InnerProductProblem.of((2, 0), 4),
    ],
)
def test_where_nothing_is_computed_nothing_is_flagged(problem: Any) -> None:
    wei = np.full(problem.wei.dims, 127, np.int8)
    src = np.zeros(problem.src.dims, {"u8": np.uint8, "s8": np.int8}[problem.src.dtype])
    for isa in ("AVX2", "AVX512_CORE"):
        assert pair_overflow(problem, wei, isa) == ()
        verdict = saturation(problem, wei, isa)
        assert verdict.is_exact
        assert {(channel.lo, channel.hi) for channel in verdict.channels} == {(0, 0)}
        result = as_if(problem, src, wei, isa)
        assert result.shape == problem.dst.dims
        assert not result.any()
        assert counts(problem, src, wei, isa).rate == 0.0
        assert not repair(problem, wei, isa).changed


def test_the_words_of_a_verdict() -> None:
    wei = np.array([[100, 64, 127], [100, 64, -128]], np.int8)
    problem = MatMulProblem.of((1, 2), wei.shape)
    bad = saturation(problem, wei, "AVX2")
    assert bad.text().splitlines() == [
        "AVX2: 1 of 3 output channels saturates",
        "  0: sums of pairs from 0 to 51000, beyond [-32768, 32767]",
    ]
    good = saturation(problem, wei, "AVX2", src_range=(0, 163))
    assert good.text() == "AVX2: all 3 output channels are exact"
    odd = saturation(
        ConvProblem.of((1, 1, 2, 2), (2, 1, 1, 1), src="s8"),
        np.full((2, 1, 1, 1), 3, np.int8),
        "AVX2",
    )
    assert odd.text().splitlines()[:2] == [
        "AVX2: 2 of 2 output channels are not exact",
        "  0: odd weights lose their last bit",
    ]


def test_counts_are_those_of_the_data() -> None:
    rng = np.random.default_rng(0)
    problem = ConvProblem.of((2, 6, 5, 5), (4, 6, 3, 3), padding=1)
    src = machine.full_range(rng, problem.src.dims, "u8")
    wei = machine.full_range(rng, problem.wei.dims, "s8")
    wei[2] = np.clip(wei[2], -64, 64)
    error = as_if(problem, src, wei, "AVX2").astype(np.int64) - exact(problem, src, wei)
    found = counts(problem, src, wei, "AVX2")
    assert found.outputs == error.size
    assert found.wrong == np.count_nonzero(error) > 0
    assert found.per_channel == tuple(np.count_nonzero(error, axis=(0, 2, 3)))
    assert found.per_channel[2] == 0
    assert found.largest == np.abs(error).max()
    assert found.rate == found.wrong / found.outputs
    assert counts(problem, src, wei, "AVX512_CORE_VNNI").wrong == 0
    assert Counts(0, 0, (), 0).rate == 0.0


def test_counts_of_a_matmul_are_per_column() -> None:
    problem = MatMulProblem.of((2, 3, 4), (2, 4, 2))
    src = np.full(problem.src.dims, 255, np.uint8)
    wei = np.zeros(problem.wei.dims, np.int8)
    wei[1, :2, 1] = 127
    assert counts(problem, src, wei, "AVX2").per_channel == (0, 3)


def test_arguments_are_checked() -> None:
    problem = MatMulProblem.of((1, 2), (2, 1))
    wei = np.array([[127], [127]], np.int8)
    with pytest.raises(DTypeError, match=r"^wei: got int64; wanted int8"):
        saturation(problem, wei.astype(np.int64), "AVX2")
    with pytest.raises(ArgumentError, match=r"^src_range: got 256"):
        saturation(problem, wei, "AVX2", src_range=(0, 256))
    with pytest.raises(ArgumentError, match=r"^src_range: got 3; wanted an integer from 9"):
        saturation(problem, wei, "AVX2", src_range=(9, 3))
    verdict = saturation(problem, wei, "AVX2")
    with pytest.raises(ArgumentError, match=r"^channel: got 1; wanted one of \(0,\)"):
        witness(verdict, wei, 1)


def test_arguments_in_another_order_are_refused_by_name() -> None:
    problem, wei = MatMulProblem.of((1, 2), (2, 3)), np.ones((2, 3), np.int8)
    src = np.ones((1, 2), np.uint8)
    calls: list[Any] = [
        saturation,
        repair,
        lambda problem, wei, isa: counts(problem, src, wei, isa),
        lambda problem, wei, isa: as_if(problem, src, wei, isa),
    ]
    for call in calls:
        call(problem, wei, "AVX2")
        for order in ((problem, "AVX2", wei), (wei, problem, "AVX2"), ("AVX2", problem, wei)):
            with pytest.raises(ArgumentError, match=r"^(wei|problem|isa): got "):
                call(*order)
