"""Problems and attributes on which kernel models are compared with kernels, and their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.emulation import sums
from pyonednn_q.acc.pairing import EXACT
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import BinaryPostOp, PReluPostOp, SumPostOp
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from support.kernel_variants import VARIANTS, Variant

Maker = Callable[..., Any]

SMALL, LARGE = 5, 14
PRELUS: dict[str, Callable[[int], PReluPostOp]] = {
    "prelu": lambda axis: PReluPostOp(1 << axis),
    "prelu of a tensor": lambda _: PReluPostOp(0),
}


def problems(kind: str, size: int) -> Iterator[tuple[Maker, tuple[Any, ...], dict[str, Any]]]:
    """Give what makes the problems of a kind: a function, its first arguments, and others."""
    image, wide = (1, 64, size, size), (1, 64, 2 * size, 2 * size)
    if kind == "convolution":
        yield ConvProblem.of, (image, (64, 64, 3, 3)), {"padding": 1}
        yield ConvProblem.of, (wide, (128, 64, 1, 1)), {}
        yield ConvProblem.of, (wide, (64, 1, 1, 3, 3)), {}
        yield ConvProblem.of, ((1, 3, 2 * size, 2 * size), (32, 3, 3, 3)), {"stride": 2}
        yield ConvProblem.of, (image, (2, 32, 32, 3, 3)), {"padding": 1}
    elif kind == "deconvolution":
        yield DeconvProblem.of, (image, (64, 64, 3, 3)), {"padding": 1}
        yield DeconvProblem.of, (wide, (64, 64, 1, 1)), {}
        yield DeconvProblem.of, (image, (64, 64, 2, 2)), {"stride": 2}
        yield DeconvProblem.of, (image, (64, 1, 1, 3, 3)), {}
    elif kind == "inner_product":
        yield InnerProductProblem.of, ((4 * size, 256), 512), {}
        yield InnerProductProblem.of, ((size, 32, 3, 3), 128), {}
    else:
        yield MatMulProblem.of, ((4 * size, 256), (256, 512)), {}
        yield MatMulProblem.of, ((size, 32, 64), (size, 64, 48)), {}
        # As sources with a scale for each row.
        yield MatMulProblem.of, ((1, 1, 4 * size, 64), (1, 1, 64, 96)), {}
        yield MatMulProblem.of, ((1, 4 * size, 64), (1, 64, 96)), {}


@dataclass(frozen=True)
class KernelCase:
    """A problem with attributes, its tensors and values, and its whole sums."""

    problem: Any
    attr: Attr
    arrays: dict[str, Any]
    values: dict[str, Any]
    sums: Any


def cases(kind: str, src: str, size: int, seed: int) -> Iterator[tuple[str, KernelCase]]:
    """Give every variant of every problem of a kind, with its name."""
    for make, dims, more in problems(kind, size):
        source = Source(make, dims, more, src, seed)
        ties = Source(make, dims, more, src, seed, ties=True)
        for variant in VARIANTS:
            if variant.has_rows and kind != "matmul":
                continue
            yield variant.name, (ties if variant.ties else source).case(variant)


class Source:
    """Tensors and sums of one problem, shared by all variants.

    With `ties`, sums are small and scales nearly a quarter: most results lie within a few units of
    their last place around a half, where each operation's rounding decides. Weights are at most
    `weight`, and even where that is.
    """

    def __init__(
        self,
        make: Maker,
        dims: tuple[Any, ...],
        more: dict[str, Any],
        src: str,
        seed: int,
        *,
        ties: bool = False,
        weight: int = 62,
    ) -> None:
        self.make, self.dims, self.more, self.src_dtype, self.ties = make, dims, more, src, ties
        self.rng = np.random.default_rng(seed)
        plain = make(*dims, src=src, dst="s32", **more)
        info = np.iinfo({"u8": np.uint8, "s8": np.int8}[src])
        ends, weight = ((max(info.min, -2), 3), 2) if ties else ((info.min, info.max), weight)
        self.src = self.rng.integers(*ends, plain.src.dims, endpoint=True).astype(info.dtype)
        # Even and up to 62, which 16 bits are enough for: every kernel's sums are exact.
        factor = 1 if weight % 2 else 2
        drawn = self.rng.integers(
            -weight // factor, weight // factor, plain.wei.dims, endpoint=True
        )
        self.wei = (factor * drawn).astype(np.int8)
        self.whole = {zp: sums(plain, self.src, self.wei, EXACT, zp) for zp in (0, 7)}

    def case(self, variant: Variant) -> KernelCase:
        """Return the case of one variant."""
        bias = variant.bias or None
        problem = self.make(*self.dims, src=self.src_dtype, dst=variant.dst, bias=bias, **self.more)
        axis = problem.dst.ndim - 1 if isinstance(problem, MatMulProblem) else 1
        channels = problem.dst.dims[axis]
        across = tuple(channels if at == axis else 1 for at in range(problem.dst.ndim))
        post_ops = tuple(
            PRELUS[one](axis) if isinstance(one, str) else one for one in variant.post_ops
        )
        extents = {
            "channel": across,
            "tensor": (1,) * len(across),
            "row": (*across[:-2], problem.dst.dims[-2], 1),
            "whole": problem.dst.dims,
        }
        for alg, along in variant.binaries:
            extent, _, dtype = along.partition(" ")
            # gemm:jit finds no layout of its own for rows.
            spec = TensorSpec.dense if extent == "row" else TensorSpec
            post_ops += (BinaryPostOp(alg, spec(extents[extent], dtype or "f32")),)
        post_ops += variant.then
        attr = Attr(
            src_scale=Scale() if variant.src_scale else None,
            wei_scale=Scale(self._mask(problem)) if variant.wei_scale else None,
            dst_scale=Scale() if variant.dst_scale else None,
            src_zero_point=ZeroPoint() if variant.src_zero_point else None,
            dst_zero_point=ZeroPoint() if variant.dst_zero_point else None,
            post_ops=post_ops,
        )
        whole = self.whole[7 if variant.src_zero_point else 0]
        size = (float(np.abs(whole).mean()) or 1.0) * variant.shrunk
        values = self._values(attr, across, size)
        arrays = {"src": self.src, "wei": self.wei}
        if variant.bias == "s32":
            arrays["bias"] = self.rng.integers(-999, 999, channels, np.int32)
        elif variant.bias:
            drawn = self._numbers(channels) * np.float32(20) - np.float32(30)
            arrays["bias"] = drawn / np.float32(variant.shrunk)
        if any(isinstance(one, SumPostOp) for one in post_ops):
            arrays["dst"] = self._before(problem)
        return KernelCase(problem, attr, arrays, values, whole)

    def _before(self, problem: Any) -> Any:
        dims, dtype = problem.dst.dims, problem.dst.dtype
        drawn = self.rng.random(dims, np.float32)
        if dtypes.is_integer(dtype):
            lo, hi = max(dtypes.qmin(dtype), -500), min(dtypes.qmax(dtype), 500)
            return np.rint(lo + drawn * (hi - lo)).astype(dtypes.numpy_dtype(dtype))
        return (drawn * np.float32(255)).astype(dtypes.numpy_dtype(dtype))

    def _mask(self, problem: Any) -> int:
        if isinstance(problem, MatMulProblem):
            return 1 << (problem.wei.ndim - 1)
        return 3 if getattr(problem, "has_groups", False) else 1

    def _numbers(self, count: int) -> Any:
        """Numbers in [1, 2) with all their bits in use; close to 1 where ties are wanted."""
        if self.ties:
            units = self.rng.integers(-4, 4, count, endpoint=True)
            return (1 + units * 2.0**-23).astype(np.float32)
        return (1 + self.rng.random(count, np.float64)).astype(np.float32)

    def _values(self, attr: Attr, across: tuple[int, ...], size: float) -> dict[str, Any]:
        values: dict[str, Any] = {}
        channels = int(np.prod(across))
        scale = np.float32(0.25 if self.ties else 40 / size)
        if attr.src_scale is not None:
            values["src_scale"] = self._numbers(1)
        if attr.wei_scale is not None:
            values["wei_scale"] = self._numbers(channels) * scale
        if attr.dst_scale is not None:
            values["dst_scale"] = self._numbers(1) / np.float32(1 if self.ties else 2)
        if attr.src_zero_point is not None:
            values["src_zero_point"] = np.array([7], np.int32)
        if attr.dst_zero_point is not None:
            values["dst_zero_point"] = np.array([13], np.int32)
        for index, post_op in enumerate(attr.post_ops):
            if isinstance(post_op, BinaryPostOp) and dtypes.is_integer(post_op.src1.dtype):
                dtype = dtypes.numpy_dtype(post_op.src1.dtype)
                drawn = self.rng.integers(-128, 128, post_op.src1.dims).astype(np.int8)
                wide = self.rng.integers(-(2**31), 2**31, post_op.src1.dims, np.int64)
                values[f"post_op_{index}"] = (
                    drawn.view(dtype) if dtype.itemsize == 1 else (wide >> 20).astype(dtype)
                )
            elif isinstance(post_op, BinaryPostOp):
                drawn = self._numbers(post_op.src1.size).reshape(post_op.src1.dims)
                sign = {"max": -30, "min": 30}.get(post_op.alg, 1)
                if attr.wei_scale is None and post_op.alg == "mul":
                    drawn = drawn * scale
                values[f"post_op_{index}"] = drawn * np.float32(sign)
            elif isinstance(post_op, PReluPostOp):
                count = channels if post_op.mask else 1
                slopes = self._numbers(count) - np.float32(1.25)
                slopes[1::5] = 0
                values[f"post_op_{index}"] = slopes
        return values
