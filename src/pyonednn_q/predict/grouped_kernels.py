"""grouped_kernel: what oneDNN's matmul with weight scales of groups computes, bit for bit.

    acc  = Σ src · (wei − wei_zp)                        of one group, exact
    x    = 0;  x = x + (f32(acc) · wei_scale) · src_scale     group after group, nothing fused
    x    = (f32(acc) · src_scale) · wei_scale            where K is one group
    dst  = x + bias

In oneDNN a row's own scale has groups of (1, K), so it is a factor of each term. In `grouped_sums`
it is a factor of their sum: last bits differ. This was compared with 3.13.2, on generated code for
AVX512_CORE, AVX512_CORE_VNNI and AVX2_VNNI. Sources were s8 and u8, and weights s8, s4 and u4, with
zero points of groups in the type of 4-bit weights. There were groups of 32 to 256, up to 257 rows,
6 000 inputs and 513 columns, with a bias and without. Generated code takes no other zero points;
other groups and other versions are not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import instance, integers, named, numbers
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, NoModelError, ShapeError
from pyonednn_q.predict.grouped_sums import grouped_sums
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.problem import MatMulProblem
from pyonednn_q.qparams import QParams

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GroupedKernel", "grouped_kernel", "kernel_sums"]

_VERSION = (3, 13)
_KERNELS = tuple(f"brg_matmul:{isa}" for isa in ("avx512_core_vnni", "avx512_core", "avx2_vnni"))
_POINTS = ("s4", "u4")  # types of weights whose groups may have zero points
_SIZES = (32, 64, 128, 256)
_BOTH = 3  # mask of rows and columns


@dataclass(frozen=True, slots=True)
class GroupedKernel:
    """The arithmetic of one implementation on one matmul with weight scales of groups.

    Attributes
    ----------
    problem : MatMulProblem
        Product of two matrices.
    attr : Attr
        Scales of the weights and, if there are any, of the source.
    impl : str
        oneDNN's name of the implementation.
    """

    problem: MatMulProblem
    attr: Attr
    impl: str

    def run(
        self,
        src: Array,
        wei: Array,
        *,
        bias: Array | None = None,
        values: Mapping[str, Array] | None = None,
    ) -> NDArray[np.float32]:
        """Return the values that the kernel stores.

        Parameters
        ----------
        src, wei : (M, K) and (K, N) ndarray of int
            Codes, each in a byte of its own, also for 4 bits.
        bias : (N,) ndarray of float32, optional
            Bias, if the problem has one.
        values : mapping
            ``"wei_scale"`` and ``"wei_zero_point"``, (K / group, N), and ``"src_scale"``, (M, 1) or
            (M, K / group).

        Raises
        ------
        ArgumentError, ShapeError
            Naming the argument.
        """
        passed = named("values", values, object)
        for name in self.attr.runtime_names(self.problem):
            if name not in passed:
                raise ArgumentError(name, "nothing", "a value in `values`: attr declares it")
        if ("bias" in self.problem.tensors) is (bias is None):
            raise ArgumentError("bias", "None" if bias is None else "an array", "as the problem")
        rows, inner = self.problem.src.dims
        size = _group(self.attr)
        scale = numbers("wei_scale", passed["wei_scale"]).astype(np.float32)
        if scale.shape != (inner // size, self.problem.wei.dims[1]):
            wanted = f"({inner // size}, {self.problem.wei.dims[1]})"
            raise ShapeError("wei_scale", str(scale.shape), wanted)
        own = np.ones((rows, 1), np.float32)
        if self.attr.src_scale is not None:
            own = numbers("src_scale", passed["src_scale"]).astype(np.float32).reshape(rows, -1)
        point = _points(passed.get("wei_zero_point"), scale.shape)
        dtype = "u8" if wei.dtype == np.uint8 else "s8"
        wei_q = QParams(scale, point, dtype, axis=0, block=(size,))
        return kernel_sums(src, own, wei, wei_q, None if bias is None else bias.reshape(-1))


def kernel_sums(
    src: Array, src_scale: Array, wei: Array, wei_q: QParams, bias: Array | None
) -> NDArray[np.float32]:
    """Return products of rows of codes with weights in groups, as oneDNN rounds them.

    Parameters
    ----------
    src : (M, K) ndarray of int
        Codes, without zero points.
    src_scale : (M, 1) or (M, K / group) ndarray of float32
        Scales of the source.
    wei : (K, N) ndarray of int
        Codes of the weights.
    wei_q : QParams
        Scales of groups along axis 0.
    bias : (N,) ndarray of float32 or None
        Real values.
    """
    scale = np.asarray(wei_q.scale).astype(np.float32)
    if len(scale) == 1:
        acc = src.astype(np.float64) @ (wei.astype(np.float64) - np.asarray(wei_q.zero_point)[0])
        x = (acc.astype(np.float32) * src_scale) * scale[0]
        return np.asarray(x if bias is None else x + bias, np.float32)
    wide = np.broadcast_to(src_scale, (len(src), len(scale)))
    return grouped_sums(src, wide, np.zeros(wide.shape, np.int32), wei, wei_q, bias)


def grouped_kernel(
    problem: MatMulProblem, attr: Attr, impl: str, version: tuple[int, ...]
) -> GroupedKernel:
    """Return the model of an implementation, if it was compared on such problems.

    Parameters
    ----------
    problem : MatMulProblem
        Product of two matrices, with 8-bit source and float32 result.
    attr : Attr
        Attributes, with scales of groups.
    impl : str
        oneDNN's name of the implementation.
    version : tuple of int
        Version of oneDNN: (major, minor), or with the patch.

    Raises
    ------
    NoModelError
        The implementation was not compared on such problems.

    Examples
    --------
    >>> problem = MatMulProblem.of((1, 64), (64, 1), src="s8", dst="f32")
    >>> attr = Attr(wei_scale=Scale(3, groups=(32, 1)))
    >>> model = grouped_kernel(problem, attr, "brg_matmul:avx512_core_vnni", (3, 13, 2))
    >>> src, wei = np.ones((1, 64), np.int8), np.full((64, 1), 2, np.int8)
    >>> model.run(src, wei, values={"wei_scale": np.array([[0.5], [0.25]], np.float32)})
    array([[48.]], dtype=float32)
    """
    instance("problem", problem, MatMulProblem)
    instance("attr", attr, Attr)
    instance("impl", impl, str)
    numbers_of = integers("version", version)
    why = _unknown(problem, attr, impl, numbers_of)
    if why:
        raise NoModelError(impl, "grouped scales", why)
    return GroupedKernel(problem, attr, impl)


def _points(values: object, dims: tuple[int, ...]) -> Array:
    """Return zero points of groups as whole numbers, those of 4 bits, too; 0 where none are."""
    if values is None:
        return np.zeros(dims, np.int64)
    points = numbers("wei_zero_point", values, "iuV").astype(np.int64)
    if points.shape != dims:
        raise ShapeError("wei_zero_point", str(points.shape), f"{dims}, as wei_scale")
    return points


def _group(attr: Attr) -> int:
    """Return the size of a group of weights; 0 where they have none."""
    scale = attr.wei_scale
    is_known = scale is not None and scale.mask == _BOTH and scale.groups[1:] == (1,)
    return scale.groups[0] if is_known and scale is not None else 0


def _unknown(problem: MatMulProblem, attr: Attr, impl: str, version: tuple[int, ...]) -> str:
    """Say what was not compared; nothing where all was."""
    size = _group(attr)
    if version[:2] != _VERSION or impl not in _KERNELS:
        return f"compared were {', '.join(_KERNELS)} of oneDNN 3.13"
    if problem.src.ndim != 2 or problem.dst.dtype != "f32" or size not in _SIZES:
        return "compared were matrices with float32 results, in groups of 32 to 256"
    dtype = problem.wei.dtype
    point = ZeroPoint(_BOTH, dtype, (size, 1)) if dtype in _POINTS and attr.wei_zero_point else None
    only = Attr(wei_scale=attr.wei_scale, src_scale=attr.src_scale, wei_zero_point=point)
    if attr != only:
        return (
            "compared were scales of weights and source, zero points of groups of 4-bit weights"
            " in their type, and nothing else"
        )
    if attr.src_scale not in _source_scales(problem.src.dims[1], size):
        return "compared were a scale for each row of the source, or for each group of a row"
    return ""


def _source_scales(inner: int, size: int) -> tuple[Scale | None, ...]:
    return None, Scale(_BOTH, groups=(1, inner)), Scale(_BOTH, groups=(1, size))
