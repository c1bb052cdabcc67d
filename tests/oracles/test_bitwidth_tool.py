"""Widths as the training tool's HAWQ (NNCF 2.18, the last that has it) goes through them."""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q.quantize import assign_bits, bit_complexities, ratio_limit


@pytest.mark.parametrize("widths", [(4, 8), (2, 4, 8), (2, 4, 8, 16)])
@pytest.mark.parametrize("layers", [1, 2, 5, 8])
def test_the_choice_is_the_least_sensitive_of_the_tools_sequences(
    layers: int, widths: tuple[int, ...]
) -> None:
    hawq = pytest.importorskip(
        "nncf.torch.quantization.precision_init.hawq_init", reason="NNCF 2.18 is not installed"
    )
    orders = pytest.importorskip("nncf.torch.quantization.precision_init.traces_order")
    order = orders.TracesOrder(list(range(layers)))
    sequences = hawq.TraceOrderBitwidthMatcher(
        list(widths), order
    ).get_all_non_decreasing_bitwidth_sequences()
    rng = np.random.default_rng(layers)
    names = [f"layer{i}" for i in range(layers)]
    for _ in range(40):
        flops = {name: float(rng.uniform(1, 9)) for name in names}
        lost = {n: {b: float(rng.lognormal()) * 4.0**-b for b in widths} for n in names}
        costs = bit_complexities(flops, {name: {b: b for b in widths} for name in names})
        int8 = sum(flops.values()) * 8
        ratio = float(rng.uniform(8 / max(widths), 8 / min(widths)))
        sums = [
            sum(lost[n][b] for n, b in zip(names, sequence, strict=True))
            for sequence in sequences
            if int8 / sum(flops[n] * b for n, b in zip(names, sequence, strict=True)) >= ratio
        ]
        found = assign_bits(lost, costs, ratio_limit(flops, costs, ratio), order=names)
        assert [found.bits[name] for name in names] in sequences
        assert found.sensitivity == pytest.approx(min(sums), rel=1e-12)
