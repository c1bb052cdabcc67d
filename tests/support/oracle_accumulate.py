"""From quantized src and wei to the scaled real accumulator, for the four dense kinds.

acc = sum of (src - src_zp) * (wei - wei_zp), exact; then src and wei scales. A scale that
varies along the reduction cannot wait for the sum, so it multiplies its operand first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from support.oracle_convolution import convolve, deconvolve
from support.oracle_dense import inner_product, matmul
from support.oracle_numbers import INTEGER_RANGES, as_float64, spread
from support.oracle_tracked import Tracked, grid, rounded, scaled, summed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from pyonednn_q.primitive.attr import Attr, Scale
    from pyonednn_q.primitive.problem import (
        ConvProblem,
        DeconvProblem,
        InnerProductProblem,
        MatMulProblem,
    )
    from support.oracle_tracked import F64

    DenseProblem = ConvProblem | DeconvProblem | InnerProductProblem | MatMulProblem
    Arrays = Mapping[str, NDArray[Any]]
    Reduce = Callable[[F64, F64], F64]


@dataclass(frozen=True, slots=True)
class _Operand:
    """One side of the reduction: shifted values, and scales split by when they apply."""

    real: F64
    before: F64 | None
    after: F64 | None

    def scaled(self) -> F64:
        """Values with the scales that cannot wait for the sum."""
        return self.real if self.before is None else self.real * self.before


def accumulate(problem: DenseProblem, attr: Attr, arrays: Arrays, *, bare: bool) -> Tracked:
    """Return the accumulator with its scales; ``bare`` keeps an integer sum out of float32."""
    src_free, wei_free = _free_axes(problem)
    src = _operand("src", problem, attr, arrays, src_free)
    wei = _operand("wei", problem, attr, arrays, wei_free)
    reduce = reduction(problem)
    integers = {problem.src.dtype, problem.wei.dtype} <= set(INTEGER_RANGES)
    if integers and src.before is None and wei.before is None:
        acc = Tracked.exact(reduce(src.real, wei.real))
        acc = acc if bare else rounded(acc.value, acc.error)
    else:
        acc = _float_sum(reduce, src.scaled(), wei.scaled(), _terms(problem))
    return scaled(acc, _over_dst("src", src.after, problem), _over_dst("wei", wei.after, problem))


def _operand(
    name: str, problem: DenseProblem, attr: Attr, arrays: Arrays, free: frozenset[int]
) -> _Operand:
    spec = problem.tensors[name]
    real = as_float64(arrays[name], spec.dtype).reshape(spec.dims)
    zero_point = getattr(attr, f"{name}_zero_point")
    if zero_point is not None:
        values = as_float64(arrays[f"{name}_zero_point"], zero_point.dtype)
        real = real - spread(values, zero_point.mask, zero_point.groups, spec.dims)
    scale: Scale | None = getattr(attr, f"{name}_scale")
    if scale is None:
        return _Operand(real, None, None)
    values = spread(
        as_float64(arrays[f"{name}_scale"], scale.dtype), scale.mask, scale.groups, spec.dims
    )
    waits = all(axis in free for axis in range(len(spec.dims)) if scale.mask >> axis & 1)
    return _Operand(real, None, values) if waits else _Operand(real, values, None)


def _free_axes(problem: DenseProblem) -> tuple[frozenset[int], frozenset[int]]:
    """Axes of src and wei that survive the reduction."""
    if problem.kind == "matmul":
        rank = len(problem.dst.dims)
        batch = frozenset(range(rank - 2))
        return batch | {rank - 2}, batch | {rank - 1}
    grouped = problem.kind != "inner_product" and len(problem.wei.dims) > len(problem.src.dims)
    return frozenset({0}), frozenset({0, 1} if grouped else {0})


def _over_dst(name: str, values: F64 | None, problem: DenseProblem) -> F64 | None:
    """Turn free-axis values of an operand into a shape that broadcasts over dst."""
    if values is None or problem.kind == "matmul":
        return values
    rest = (1,) * (len(problem.dst.dims) - 2)
    if name == "src":
        return values.reshape(values.shape[0], 1, *rest)
    per_channel = values.reshape(1, -1, *rest)
    if per_channel.shape[1] in {1, problem.dst.dims[1]}:
        return per_channel
    # Grouped weights with only one of the two channel bits set.
    dims = problem.wei.dims[:2]
    full = np.broadcast_to(values.reshape(values.shape[:2]), dims)
    return full.reshape(1, -1, *rest)


def reduction(problem: DenseProblem) -> Reduce:
    """Return the sum of products that the problem stands for, on plain arrays."""
    if problem.kind == "convolution":
        return lambda src, wei: convolve(src, wei, cast("ConvProblem", problem))
    if problem.kind == "deconvolution":
        return lambda src, wei: deconvolve(src, wei, cast("DeconvProblem", problem))
    return inner_product if problem.kind == "inner_product" else matmul


def _terms(problem: DenseProblem) -> int:
    """Most products that one output can sum."""
    if problem.kind == "matmul":
        return problem.src.dims[-1]
    grouped = problem.kind != "inner_product" and len(problem.wei.dims) > len(problem.src.dims)
    return math.prod(problem.wei.dims[2 if grouped else 1 :])


def _float_sum(reduce: Reduce, src: F64, wei: F64, terms: int) -> Tracked:
    magnitude = reduce(np.abs(src), np.abs(wei))
    return summed(reduce(src, wei), magnitude, terms, grid(src) * grid(wei))
