"""Float layers between FakeQuantizes, and what they mean, from the definitions in float64."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.compose.layer_composer import compose_layer
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Chain
from support.oracle_accumulate import reduction
from support.oracle_numbers import INTEGER_RANGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyonednn_q.compose.layer import Layer

    Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class FloatLayer:
    """A layer as a training framework has it."""

    problem: Any
    wei: Array
    bias: Array | None
    src_fq: FakeQuantize
    wei_fq: FakeQuantize
    chain: Chain
    dst_fq: FakeQuantize | None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def axis(self) -> int:
        return self.problem.dst.ndim - 1 if self.problem.kind == "matmul" else 1

    def compose(self, **more: Any) -> Layer:
        given: dict[str, Any] = {"wei_fq": self.wei_fq, **self.options, **more}
        return compose_layer(
            self.problem,
            self.wei,
            self.bias,
            src_fq=self.src_fq,
            chain=self.chain,
            dst_fq=self.dst_fq,
            **given,
        )

    def x0(self, src: Array) -> Array:
        """Return FQ(src) * FQ(wei) + bias."""
        # As steps: the definition divides by the whole range, which puts ties off.
        values = evaluate(self.src_fq.chain(), src.astype(np.float64))
        acc = reduction(self.problem)(values, self.quantized_wei())
        return np.asarray(acc + self._bias(acc.ndim))

    def quantized_wei(self) -> Array:
        wei = self.wei.astype(np.float64)
        if self.problem.kind == "matmul":
            return self.wei_fq(wei, axis=-1)
        channels = self.problem.dst.dims[1]
        return self.wei_fq(wei.reshape(channels, -1), axis=0).reshape(wei.shape)

    def meaning(
        self, src: Array, before: Array | None = None, off: float | Array = 0.0
    ) -> tuple[Array, Array]:
        """Return the result in real units, and as it is stored; off by so much before the chain."""
        y = evaluate(self.chain, self.x0(src) + off, axis=self.axis, dst_before=before)
        dtype = self.problem.dst.dtype
        if self.dst_fq is None:
            return y, np.asarray(y, np.float32)
        real = evaluate(self.dst_fq.chain(), y, axis=self.axis)
        if dtype not in INTEGER_RANGES:
            return real, real.astype(np.float32)
        levels = evaluate(Chain(*self.dst_fq.quantize_steps()), y, axis=self.axis)
        first = self.dst_fq.levels // 2 if dtype == "s8" else 0
        return real, levels - first

    def error(self, src: Array) -> Array:
        """Bound what float32 may put the value before the chain off by, in any order.

        Sum, scale, bias and what the zero point adds are rounded, multiplied and added: eight
        roundings of numbers no larger than all products without sign, and the bias.
        """
        largest = 256 + abs(self.src_fq.zero_out.least)
        values = np.full(src.shape, largest * self.src_fq.scale_out.least)
        size = reduction(self.problem)(values, np.abs(self.quantized_wei()))
        return np.asarray(8 * 2.0**-24 * (size + np.abs(self._bias(size.ndim))))

    def _bias(self, ndim: int) -> Array:
        aligned = [1] * ndim
        aligned[self.axis] = -1
        bias = np.zeros(1) if self.bias is None else np.asarray(self.bias, np.float64)
        return bias.reshape(aligned)
