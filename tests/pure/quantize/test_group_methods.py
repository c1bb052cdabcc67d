"""Ways to choose codes of groups, beside definitions written here from the papers' formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize import activation_divisor, group_codes
from pyonednn_q.quantize.error_feedback import fed_back_codes, moved_codes, output_errors
from pyonednn_q.quantize.group_codes import GroupMethod
from pyonednn_q.quantize.group_scales import range_scales

OC, IC, GROUP = 24, 64, 16
KINDS = [(bits, symmetric) for bits in (4, 8) for symmetric in (True, False)]
METHODS: tuple[GroupMethod, ...] = ("rtn", "search", "gptq")


def drawn(seed: int) -> tuple[Any, Any, Any]:
    """Return weights, and two sets of rows of one correlated source with a few large channels."""
    rng = np.random.default_rng(seed)
    wei = rng.standard_normal((OC, IC)) * np.exp(rng.standard_normal((OC, 1)))
    mix = rng.standard_normal((IC // 4, IC)) * np.exp(rng.standard_normal(IC))
    first, second = (
        rng.standard_normal((512, IC // 4)) @ mix + 0.2 * rng.standard_normal((512, IC))
        for _ in range(2)
    )
    return wei, first, second


def dtype_of(bits: int, symmetric: bool) -> str:
    return ("s" if symmetric else "u") + str(bits)


def column_by_column(wei: Any, hessian: Any, order: Any, rounded: Any) -> Any:
    """Return codes by optimal brain surgery, one column after another, H⁻¹ updated for each.

    w −= (w_j − q_j) / [H⁻¹]_jj · [H⁻¹]_j,   H⁻¹ −= [H⁻¹]_·j [H⁻¹]_j· / [H⁻¹]_jj
    """
    left, inverse, codes = wei.copy(), np.linalg.inv(hessian), np.zeros_like(wei)
    for j in order:
        codes[:, j], real = rounded(left[:, j], j)
        error = (left[:, j] - real) / inverse[j, j]
        left -= np.outer(error, inverse[j])
        inverse = inverse - np.outer(inverse[:, j], inverse[j]) / inverse[j, j]
        inverse[j, :] = inverse[:, j] = 0.0
        inverse[j, j] = 1.0  # of no account: done
    return codes


@pytest.mark.parametrize(("bits", "symmetric"), KINDS)
def test_gptq_is_the_papers_update_column_by_column(bits: int, symmetric: bool) -> None:
    for seed in range(3):
        wei, src, _ = drawn(seed)
        products, dtype = src.T @ src, dtype_of(bits, symmetric)
        parts = wei.reshape(OC, -1, GROUP)
        scale, point = range_scales(parts, dtype, symmetric=symmetric)
        moments = np.diag(products)
        hessian = products + 0.01 * moments.mean() * np.eye(IC)
        limits = dtypes.qmin(dtype), dtypes.qmax(dtype)

        def rounded(
            column: Any, j: int, scale: Any = scale, point: Any = point, limits: Any = limits
        ) -> tuple[Any, Any]:
            step, zero = scale[:, j // GROUP], point[:, j // GROUP]
            code = np.clip(np.rint(column / step) + zero, *limits)
            return code, step * (code - zero)

        want = column_by_column(wei, hessian, np.argsort(-moments, kind="stable"), rounded)
        got = fed_back_codes(wei, products, scale, point, dtype)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("bits", "symmetric"), KINDS)
def test_a_search_never_loses_more_than_nearest_codes(bits: int, symmetric: bool) -> None:
    for seed in range(5):
        wei, src, _ = drawn(seed)
        for samples in (None, src):
            weight = np.ones(IC) if samples is None else np.mean(src**2, axis=0)
            losses = []
            for method in METHODS[:2]:
                codes, wei_q = group_codes(
                    wei, GROUP, bits, symmetric=symmetric, method=method, samples=samples
                )
                assert wei_q.dtype == dtype_of(bits, symmetric)
                assert np.array_equal(wei_q.scale, np.float32(wei_q.scale))
                squares = weight * (wei_q.dequantize(codes) - wei) ** 2
                losses.append(squares.reshape(OC, -1, GROUP).sum(axis=2))
            assert (losses[1] <= losses[0]).all()
            assert losses[1].sum() < losses[0].sum()


@pytest.mark.parametrize(("bits", "symmetric"), KINDS)
def test_outputs_of_other_samples_err_less_from_method_to_method(
    bits: int, symmetric: bool
) -> None:
    for seed in range(5):
        wei, src, others = drawn(seed)
        errors = []
        for method in METHODS:
            codes, wei_q = group_codes(
                wei, GROUP, bits, symmetric=symmetric, method=method, samples=src
            )
            apart = wei_q.dequantize(codes) - wei
            errors.append(np.square(others @ apart.T).sum())
        assert errors[2] < errors[1] < errors[0]


@pytest.mark.parametrize(("bits", "symmetric"), KINDS)
def test_codes_move_until_no_single_step_helps(bits: int, symmetric: bool) -> None:
    wei, src, _ = drawn(7)
    products, dtype = src.T @ src, dtype_of(bits, symmetric)
    scale, point = range_scales(wei.reshape(OC, -1, GROUP), dtype, symmetric=symmetric)
    begun = fed_back_codes(wei, products, scale, point, dtype)
    moved = moved_codes(wei, products, begun, scale, point, dtype, sweeps=1000)
    step, zero = np.repeat(scale, GROUP, axis=1), np.repeat(point, GROUP, axis=1)

    def errors(codes: Any) -> Any:
        return output_errors(step * (codes - zero) - wei, products)

    least = errors(moved)
    assert least.sum() < errors(begun).sum()
    limits = dtypes.qmin(dtype), dtypes.qmax(dtype)
    assert limits[0] <= moved.min() <= moved.max() <= limits[1]
    for at in range(IC):
        for way in (-1, 1):
            other = moved.copy()
            other[:, at] = np.clip(other[:, at] + way, *limits)
            # One step changes a sum by less than float64 rounds it to, or for the worse.
            assert (errors(other) >= least - 2.0**-36 * products.max() * step.max() ** 2).all()


def test_errors_of_outputs_are_sums_of_squares() -> None:
    rng = np.random.default_rng(0)
    apart, src = (rng.integers(-9, 10, (rows, 12)).astype(float) for rows in (5, 30))
    want = np.square(src @ apart.T).sum(axis=0)  # whole numbers: exact in any order
    np.testing.assert_array_equal(output_errors(apart, src.T @ src), want)


def test_gptq_never_errs_more_on_its_samples_than_a_search_in_any_channel() -> None:
    rng = np.random.default_rng(0)
    wei, src = rng.standard_normal((OC, IC)), rng.standard_normal((256, IC))  # nothing to gain
    errors = []
    for method in METHODS[1:]:
        codes, wei_q = group_codes(wei, GROUP, method=method, samples=src)
        errors.append(np.square(src @ (wei_q.dequantize(codes) - wei).T).sum(axis=0))
    assert (errors[1] <= errors[0]).all()


def test_sums_of_products_stand_for_the_samples() -> None:
    wei, src, others = drawn(0)
    products = src.T @ src
    for method in METHODS:
        codes, wei_q = group_codes(wei, GROUP, method=method, samples=src)
        again, again_q = group_codes(wei, GROUP, method=method, products=products)
        assert np.array_equal(codes, again)
        assert wei_q == again_q
        turned, turned_q = group_codes(
            wei.T, GROUP, axis=-1, method=method, samples=src.reshape(4, 128, IC)
        )
        assert np.array_equal(codes, turned.T)
        assert np.array_equal(wei_q.scale, np.transpose(turned_q.scale))
    with pytest.raises(ArgumentError, match=r"^products: "):
        group_codes(wei, GROUP, samples=others, products=products)


def test_inputs_that_are_never_there_do_no_harm() -> None:
    wei, src, _ = drawn(1)
    src[:, 3:9] = 0.0
    src[:, 20] = src[:, 21]  # two that cannot be told apart
    for method in METHODS:
        codes, wei_q = group_codes(wei, GROUP, method=method, samples=src)
        assert np.isfinite(wei_q.dequantize(codes)).all()
    codes, wei_q = group_codes(wei, GROUP, method="gptq", samples=np.zeros((2, IC)))
    assert np.abs(wei_q.dequantize(codes) - wei).max() <= np.abs(wei_q.scale).max() * 2


def test_far_codes_of_a_symmetric_search_go_to_either_sign() -> None:
    codes, wei_q = group_codes([[8.0, 4.0, -7.0, 1.0]], 4, method="search")
    assert codes.tolist() == [[-8, -4, 7, -1]]
    assert np.asarray(wei_q.scale).tolist() == [[-1.0]]


@pytest.mark.parametrize(("bits", "symmetric"), KINDS)
def test_divided_sources_and_their_weights_are_the_same_product(bits: int, symmetric: bool) -> None:
    for seed in range(3):
        wei, src, _ = drawn(seed)
        divisor = activation_divisor(wei, GROUP, bits, symmetric=symmetric, samples=src)
        assert divisor.shape == (IC,)
        assert divisor.min() < divisor.max()
        real, folded = src @ wei.T, (src / divisor) @ (wei * divisor).T
        # Two roundings of each factor's product more, and sums in any order: all of float64.
        reach = np.abs(src) @ np.abs(wei).T * (IC + 4) * 2.0**-52
        assert (np.abs(real - folded) <= reach).all()
        errors = []
        for times in (np.ones(IC), divisor):
            codes, wei_q = group_codes(wei * times, GROUP, bits, symmetric=symmetric)
            errors.append(np.square((src / times) @ wei_q.dequantize(codes).T - real).sum())
        assert errors[1] < errors[0]


@pytest.mark.parametrize("method", METHODS)
def test_a_divisor_never_adds_to_the_errors_of_its_method(method: GroupMethod) -> None:
    for seed in range(4):
        wei, src, _ = drawn(seed)
        divisor = activation_divisor(wei, GROUP, method=method, samples=src)
        errors = []
        for times in (np.ones(IC), divisor):
            codes, wei_q = group_codes(wei * times, GROUP, method=method, samples=src / times)
            apart = wei_q.dequantize(codes) / times - wei
            errors.append(np.square(src @ apart.T).sum())
        assert errors[1] < errors[0] or (divisor == 1.0).all()


def test_nothing_is_divided_where_that_would_not_help() -> None:
    divisor = activation_divisor([[7.0, -7.0]], 2, samples=[[1.0, 100.0], [1.0, -3.0]])
    assert divisor.tolist() == [1.0, 1.0]  # without errors there are none to lessen


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"method": "awq"}, ArgumentError, r"^method: got 'awq'; wanted another: nothing in a"),
        ({"method": "best"}, ArgumentError, r"^method: got 'best'"),
        ({"method": "gptq"}, ArgumentError, r"^samples: got None; wanted rows of the source"),
        ({"samples": [[1.0, 2.0]]}, ShapeError, r"^samples: got \(1, 2\); wanted \(\.\.\., 4\)"),
        ({"samples": [[np.inf] * 4]}, ArgumentError, r"^samples: got values that are not finite"),
        ({"products": [[1.0]]}, ShapeError, r"^products: got \(1, 1\); wanted \(4, 4\)"),
    ],
)
def test_what_methods_cannot_do_is_refused(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        group_codes([[1.0, 2.0, 3.0, 4.0]], 4, **options)


def test_codes_without_errors_are_those_of_the_weights() -> None:
    rng = np.random.default_rng(4)
    codes = rng.integers(-8, 8, (OC, IC)).astype(np.int8)
    codes[:, ::GROUP] = -8
    wei_q = QParams(np.full((OC, IC // GROUP), 0.5), 0, "s4", axis=1, block=(GROUP,))
    for method in METHODS:
        got, got_q = group_codes(
            wei_q.dequantize(codes), GROUP, method=method, samples=rng.standard_normal((99, IC))
        )
        assert np.array_equal(got_q.dequantize(got), wei_q.dequantize(codes))
