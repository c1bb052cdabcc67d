"""Repairs: exact on the machine, no more changed than must be, and priced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.acc.emulation import as_if, exact
from pyonednn_q.acc.repair import half_range, repair, repair_source
from pyonednn_q.acc.verdict import counts, saturation
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem, MatMulProblem
from support import pair_machine as machine


def layer(src: str = "u8") -> tuple[Any, ConvProblem]:
    """Channel 0 saturates a little, 1 much, 2 never."""
    rng = np.random.default_rng(0)
    wei = rng.integers(-60, 61, (3, 6, 3, 3)).astype(np.int8)
    wei[0, 0, 0, 0], wei[0, 1, 0, 0] = 80, 60
    wei[1] = machine.full_range(rng, wei.shape[1:], "s8")
    wei[1, :2, 1, 1] = 127
    return wei, ConvProblem.of((1, 6, 5, 5), wei.shape, src=src, padding=1)


def sqnr(wanted: Any, got: Any) -> float:
    return float(10 * np.log10((wanted**2).sum() / ((wanted - got) ** 2).sum()))


@pytest.mark.parametrize("how", ["fit", "7bit"])
def test_only_the_channels_that_need_it_change(how: str) -> None:
    wei, problem = layer()
    found = repair(problem, wei, "AVX2", how=how)
    assert found.changed == saturation(problem, wei, "AVX2").flagged == (0, 1)
    assert np.array_equal(found.wei[2], wei[2])
    assert found.factor[2] == 1
    assert found.remaining == ()
    assert saturation(problem, found.wei, "AVX2").is_exact
    old = wei.astype(float).reshape(3, -1)
    real = found.wei.reshape(3, -1) * found.factor[:, None]
    assert found.sqnr == tuple(sqnr(old[c], real[c]) for c in (0, 1))
    assert found.sqnr_of_all == sqnr(old, real)
    src = machine.full_range(np.random.default_rng(1), problem.src.dims, "u8")
    assert np.array_equal(as_if(problem, src, found.wei, "AVX2"), exact(problem, src, found.wei))


def test_7bit_is_safe_however_pairs_are_formed_and_fit_costs_less() -> None:
    wei, problem = layer()
    fit, seven = (repair(problem, wei, "AVX2", how=how) for how in ("fit", "7bit"))
    assert np.abs(seven.wei[list(seven.changed)].astype(int)).max() == 64
    sizes = np.abs(wei.astype(int)).reshape(3, -1).max(axis=1)
    assert seven.factor.tolist() == [sizes[0] / 64, sizes[1] / 64, 1.0]
    assert fit.factor[0] == pytest.approx(255 * 140 / 32767, rel=0.01)
    assert (fit.factor <= seven.factor).all()
    assert fit.sqnr_of_all > seven.sqnr_of_all
    assert all(a >= b for a, b in zip(fit.sqnr, seven.sqnr, strict=True))


def test_fit_shrinks_no_further_than_it_must() -> None:
    wei, problem = layer()
    found = repair(problem, wei, "AVX2")
    for channel in found.changed:
        bigger = np.rint(wei / (found.factor[channel] / 1.004)).clip(-128, 127).astype(np.int8)
        assert channel in saturation(problem, bigger, "AVX2").flagged


def test_a_pair_is_brought_to_the_end_that_it_crossed() -> None:
    wei = np.array([[80, -80, 1], [60, -60, 1]], np.int8)
    found = repair(MatMulProblem.of((1, 2), wei.shape), wei, "AVX2")
    assert found.factor.tolist() == [255 * 140 / 32767, 255 * 140 / 32768, 1.0]
    assert found.wei.tolist() == [[73, -73, 1], [55, -55, 1]]


def test_everywhere_and_nowhere() -> None:
    wei, problem = layer()
    everywhere = repair(problem, wei, "AVX2", how="7bit", where="all")
    assert (np.abs(everywhere.wei.astype(int)) <= 64).all()
    nowhere = repair(problem, wei, "AVX2", where="none")
    assert np.array_equal(nowhere.wei, wei)
    assert nowhere.changed == ()
    assert nowhere.remaining == (0, 1)
    assert nowhere.text() == "no channel has other weights"
    fine = repair(ConvProblem.of((1, 6, 5, 5), (1, 6, 3, 3)), wei[2:], "AVX2")
    assert (fine.changed, fine.sqnr_of_all) == ((), float("inf"))


def test_weights_that_were_not_rounded_yet_cost_less() -> None:
    rng = np.random.default_rng(2)
    problem = MatMulProblem.of((1, 64), (64, 8))
    real = rng.normal(scale=40, size=(64, 8)).clip(-127, 127)
    wei = np.rint(real).astype(np.int8)
    once = repair(problem, wei, "AVX2", how="7bit", unrounded=real)
    twice = repair(problem, wei, "AVX2", how="7bit")
    lost = [
        float(np.square(real - found.wei * found.factor)[:, list(found.changed)].sum())
        for found in (once, twice)
    ]
    assert once.changed == twice.changed != ()
    assert lost[0] < lost[1]
    with pytest.raises(ArgumentError, match=r"^unrounded: "):
        repair(problem, wei, "AVX2", unrounded=real[:3])


def test_s8_convolutions_get_even_weights() -> None:
    wei, problem = layer("s8")
    found = repair(problem, wei, "AVX2")
    assert (found.wei % 2 == 0).all()
    assert (found.factor == 1).all()
    assert found.remaining == ()
    src = machine.full_range(np.random.default_rng(1), problem.src.dims, "s8")
    assert counts(problem, src, found.wei, "AVX2").wrong == 0
    assert counts(problem, src, wei, "AVX2").wrong > 0
    assert (np.abs(found.wei.astype(int) - wei) <= 1).all()


def test_s8_deconvolutions_are_repaired_for_both_of_their_kernels() -> None:
    rng = np.random.default_rng(3)
    wei = machine.full_range(rng, (4, 6, 2, 2), "s8")
    problem = DeconvProblem.of((1, 6, 3, 3), wei.shape, src="s8")
    found = repair(problem, wei, "AVX2")
    assert found.remaining == ()
    src = machine.full_range(rng, problem.src.dims, "s8")
    for impl in ("jit_uni_int8:avx2", "conv:any+x64:gemm_s8s8s32:jit"):
        assert counts(problem, src, found.wei, "AVX2", impl=impl).wrong == 0


def test_weights_that_only_lose_a_bit_are_not_made_larger() -> None:
    """Small odd weights of an s8 deconvolution: no pair saturates, one kernel halves them."""
    wei = np.random.default_rng(4).integers(-4, 5, (4, 6, 2, 2)).astype(np.int8)
    wei[:, 0, 0, 0] = 3
    found = repair(DeconvProblem.of((1, 6, 3, 3), wei.shape, src="s8"), wei, "AVX2")
    assert found.remaining == ()
    assert (found.wei % 2 == 0).all()
    assert (np.abs(found.wei.astype(int) - wei) <= 1).all()


def test_a_narrower_source_needs_less() -> None:
    wei, problem = layer()
    found = repair(problem, wei, "AVX2", src_range=(0, 200))
    assert (found.factor <= repair(problem, wei, "AVX2").factor).all()
    assert repair(problem, wei, "AVX2", src_range=(0, 127)).changed == ()


def test_activations_of_7_bits_are_safe_with_any_weights() -> None:
    src = np.arange(256, dtype=np.uint8).reshape(1, 256)
    found = repair_source(src)
    assert found.src.max() == 127
    assert found.factor == 255 / 127
    assert found.sqnr == sqnr(src.astype(float), found.src * found.factor)
    worst = np.array([[127, -128], [127, -128]], np.int8)
    problem = MatMulProblem.of((1, 2), worst.shape)
    assert saturation(problem, worst, "AVX2", src_range=(0, 127)).is_exact
    assert not saturation(problem, worst, "AVX2", src_range=(0, 129)).is_exact
    with pytest.raises(DTypeError, match=r"^src: got int8; wanted uint8"):
        repair_source(src.astype(np.int8))


@pytest.mark.parametrize(
    ("option", "halved"),
    [
        ("enable", (True, True, True)),
        ("first_layer_only", (True, False, False)),
        ("disable", (False,) * 3),
    ],
)
def test_half_range_of_all_layers_of_the_first_or_of_none(
    option: str, halved: tuple[bool, ...]
) -> None:
    rng = np.random.default_rng(4)
    layers = [rng.normal(size=(5, 3, 2, 2)) for _ in halved]
    found = half_range(layers, option)
    for real, (codes, scale), half in zip(layers, found, halved, strict=True):
        assert codes.dtype == np.int8
        lo, hi = (-64, 63) if half else (-127, 127)
        assert (codes.min(), codes.max()) >= (lo, -hi)
        assert codes.max() <= hi
        assert codes.min() >= lo
        assert np.abs(codes.reshape(5, -1)).max(axis=1).min() >= hi - 1
        steps = np.abs(codes.reshape(5, -1) * scale[:, None] - real.reshape(5, -1)) / scale[:, None]
        assert steps.max() <= 0.5 + 1e-9


def test_the_narrow_half_range_rounds_its_top_code_up() -> None:
    ((codes, scale),) = half_range([[[1.0, -1.0, 0.5]]], narrow=True)
    assert codes.tolist() == [[64, -64, 32]]
    assert scale.tolist() == [1 / 63.5]


def test_arguments_are_checked() -> None:
    wei, problem = layer()
    with pytest.raises(ArgumentError, match=r"^how: got '6bit'; wanted one of fit, 7bit"):
        repair(problem, wei, "AVX2", how="6bit")
    with pytest.raises(ArgumentError, match=r"^where: got 'some'"):
        repair(problem, wei, "AVX2", where="some")
    with pytest.raises(ArgumentError, match=r"^option: got 'half'"):
        half_range([], "half")
    with pytest.raises(ArgumentError, match=r"^layers: "):
        half_range([[float("nan")]])
    no_layers: list[Any] = [wei, wei * 0.5, 3, "wei", {0: wei}]
    for bad in no_layers:
        with pytest.raises(ArgumentError, match=r"^layers: got .* sequence of"):
            half_range(bad)


def test_weights_of_each_matrix_of_a_batch_are_mended() -> None:
    wei = np.ones((2, 4, 3), np.int8)
    wei[1, :2, 2] = 127
    found = repair(MatMulProblem.of((2, 1, 4), wei.shape), wei, "AVX2")
    assert found.wei.shape == wei.shape
    assert (found.wei[:, :, :2] == 1).all()
    assert (np.abs(found.wei[1, :2, 2].astype(int)) < 127).all()
    assert found.changed == (2,)
