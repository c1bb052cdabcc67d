"""Problems and attributes on which kernel models are compared with kernels, and their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.compose.attr import Attr, Scale, ZeroPoint
from pyonednn_q.compose.pairing import EXACT
from pyonednn_q.compose.post_ops import BinaryPostOp, EltwisePostOp, PostOp, SumPostOp
from pyonednn_q.compose.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from pyonednn_q.compose.tensor import TensorSpec
from pyonednn_q.predict.emulation import sums

Maker = Callable[..., Any]


@dataclass(frozen=True)
class Variant:
    """What a primitive does besides its sums."""

    name: str
    dst: str
    bias: bool = True
    src_scale: bool = False
    wei_scale: bool = True
    src_zero_point: bool = False
    dst_scale: bool = False
    dst_zero_point: bool = False
    post_ops: tuple[PostOp, ...] = ()
    binaries: tuple[str, ...] = ()


VARIANTS = (
    Variant("folded", "f32"),
    Variant("separate", "f32", src_scale=True),
    Variant("u8", "u8", dst_scale=True, dst_zero_point=True, post_ops=(EltwisePostOp("relu"),)),
    Variant("s8", "s8", dst_scale=True, post_ops=(EltwisePostOp("linear", 1.37, -0.21),)),
    Variant("s32", "s32"),
    Variant("bf16", "bf16", post_ops=(EltwisePostOp("clip", -5.0, 7.0),)),
    Variant("bare", "s32", bias=False, wei_scale=False),
    Variant(
        "sum",
        "u8",
        dst_scale=True,
        dst_zero_point=True,
        post_ops=(SumPostOp(0.37, 3), EltwisePostOp("relu", 0.1)),
    ),
    Variant("linear", "f32", post_ops=(EltwisePostOp("linear", 1.37, -0.21),)),
    Variant("sum of f32", "f32", post_ops=(SumPostOp(0.37),)),
    Variant("binary", "f32", binaries=("mul", "add", "max", "min")),
    Variant("round", "s8", bias=False, dst_zero_point=True, post_ops=(EltwisePostOp("round"),)),
    Variant("zero point", "f32", src_zero_point=True),
)

SMALL, LARGE = 9, 28


def problems(kind: str, size: int) -> Iterator[tuple[Maker, tuple[Any, ...]]]:
    """Give what makes the problems of a kind: a function and its first arguments."""
    if kind == "convolution":
        yield ConvProblem.of, ((1, 64, size, size), (64, 64, 3, 3))
        yield ConvProblem.of, ((1, 64, size, size), (128, 64, 1, 1))
        yield ConvProblem.of, ((1, 64, size, size), (64, 1, 1, 3, 3))
    elif kind == "deconvolution":
        yield DeconvProblem.of, ((1, 64, size, size), (64, 64, 3, 3))
        yield DeconvProblem.of, ((1, 64, size, size), (64, 64, 1, 1))
    elif kind == "inner_product":
        yield InnerProductProblem.of, ((4 * size, 256), 512)
    else:
        yield MatMulProblem.of, ((4 * size, 256), (256, 512))
        yield MatMulProblem.of, ((size, 32, 64), (size, 64, 48))


@dataclass(frozen=True)
class KernelCase:
    """A problem with attributes, its tensors and values, and its whole sums."""

    problem: Any
    attr: Attr
    arrays: dict[str, Any]
    values: dict[str, Any]
    sums: Any


class Source:
    """Tensors and sums of one problem, shared by all variants."""

    def __init__(self, make: Maker, dims: tuple[Any, ...], src: str, seed: int) -> None:
        self.make, self.dims, self.src_dtype = make, dims, src
        self.rng = np.random.default_rng(seed)
        plain = make(*dims, src=src, dst="s32")
        info = np.iinfo({"u8": np.uint8, "s8": np.int8}[src])
        self.src = self.rng.integers(info.min, info.max, plain.src.dims, endpoint=True)
        self.src = self.src.astype(info.dtype)
        # Even, and small enough for 16 bits: every kernel's sums are exact.
        self.wei = (2 * self.rng.integers(-31, 32, plain.wei.dims)).astype(np.int8)
        self.whole = {zp: sums(plain, self.src, self.wei, EXACT, zp) for zp in (0, 7)}

    def case(self, variant: Variant) -> KernelCase:
        """Return the case of one variant."""
        bias = "f32" if variant.bias else None
        problem = self.make(*self.dims, src=self.src_dtype, dst=variant.dst, bias=bias)
        axis = problem.dst.ndim - 1 if isinstance(problem, MatMulProblem) else 1
        channels = problem.dst.dims[axis]
        across = tuple(channels if at == axis else 1 for at in range(problem.dst.ndim))
        post_ops = variant.post_ops
        post_ops += tuple(BinaryPostOp(alg, TensorSpec(across, "f32")) for alg in variant.binaries)
        attr = Attr(
            src_scale=Scale() if variant.src_scale else None,
            wei_scale=Scale(self._mask(problem)) if variant.wei_scale else None,
            dst_scale=Scale() if variant.dst_scale else None,
            src_zero_point=ZeroPoint() if variant.src_zero_point else None,
            dst_zero_point=ZeroPoint() if variant.dst_zero_point else None,
            post_ops=post_ops,
        )
        whole = self.whole[7 if variant.src_zero_point else 0]
        values = self._values(attr, across, float(np.abs(whole).mean()))
        arrays = {"src": self.src, "wei": self.wei}
        if variant.bias:
            arrays["bias"] = self._numbers(channels) * np.float32(20) - np.float32(30)
        if any(isinstance(one, SumPostOp) for one in post_ops):
            arrays["dst"] = self._before(problem)
        return KernelCase(problem, attr, arrays, values, whole)

    def _before(self, problem: Any) -> Any:
        dims, dtype = problem.dst.dims, dtypes.numpy_dtype(problem.dst.dtype)
        return (self.rng.random(dims, np.float32) * np.float32(255)).astype(dtype)

    def _mask(self, problem: Any) -> int:
        if isinstance(problem, MatMulProblem):
            return 1 << (problem.wei.ndim - 1)
        return 3 if getattr(problem, "has_groups", False) else 1

    def _numbers(self, count: int) -> Any:
        """Numbers in [1, 2) with all their bits in use."""
        return (1 + self.rng.random(count, np.float64)).astype(np.float32)

    def _values(self, attr: Attr, across: tuple[int, ...], size: float) -> dict[str, Any]:
        values: dict[str, Any] = {}
        channels = int(np.prod(across))
        scale = np.float32(40 / size)
        if attr.src_scale is not None:
            values["src_scale"] = self._numbers(1)
        if attr.wei_scale is not None:
            values["wei_scale"] = self._numbers(channels) * scale
        if attr.dst_scale is not None:
            values["dst_scale"] = self._numbers(1) / np.float32(2)
        if attr.src_zero_point is not None:
            values["src_zero_point"] = np.array([7], np.int32)
        if attr.dst_zero_point is not None:
            values["dst_zero_point"] = np.array([13], np.int32)
        for index, post_op in enumerate(attr.post_ops):
            if isinstance(post_op, BinaryPostOp):
                drawn = self._numbers(channels).reshape(across)
                sign = {"max": -30, "min": 30}.get(post_op.alg, 1)
                values[f"post_op_{index}"] = drawn * np.float32(sign)
        return values
