"""Geometry: the dims of a call as its caller has them, and what its window is said to be.

Read here once more, and apart from `primitive.window`: a self check must not share its reading.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Dims = tuple[int, ...]
Kind: TypeAlias = Literal["convolution", "deconvolution", "inner_product", "matmul"]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Dims and window of a call.

    Attributes
    ----------
    kind : str
        "convolution", "deconvolution", "inner_product" or "matmul".
    src, wei : tuple of int
        Dims: (N, IC, spatial) and (OC, IC / groups, spatial), or (..., M, K) and (..., K, N).
    stride, dilation : tuple of int
        One value per spatial dimension, at least 1; empty where there is no window.
    padding : tuple of (int, int)
        (before, behind) each spatial dimension: places of real 0 that are added, by a deconvolution
        outputs that are cut off.
    groups : int
        Number of groups of channels.
    """

    kind: Kind
    src: Dims
    wei: Dims
    stride: Dims = ()
    padding: tuple[tuple[int, int], ...] = ()
    dilation: Dims = ()
    groups: int = 1

    @classmethod
    def of(
        cls,
        kind: Kind,
        src: Dims,
        wei: Dims,
        *,
        stride: Any = 1,  # noqa: ANN401 - as callers pass it
        padding: Any = 0,  # noqa: ANN401
        dilation: Any = 1,  # noqa: ANN401
        groups: int = 1,
    ) -> Geometry:
        """Return the geometry of a call, by the arguments that operators take.

        Examples
        --------
        >>> call = Geometry.of("convolution", (1, 8, 9, 9), (4, 8, 3, 1), stride=(2, 1), padding=1)
        >>> call.padding, call.dst
        (((1, 1), (1, 1)), (1, 4, 5, 11))
        """
        if kind in {"inner_product", "matmul"}:
            return cls(kind, tuple(src), tuple(wei))
        count = len(wei) - 2
        return cls(
            kind,
            tuple(src),
            tuple(wei),
            _each(stride, count),
            _sides(padding, count),
            _each(dilation, count),
            groups,
        )

    @property
    def axis(self) -> int:
        """The dimension of dst that channels run along."""
        return len(self.dst) - 1 if self.kind == "matmul" else 1

    @property
    def dst(self) -> Dims:
        """Dims of the result."""
        if self.kind == "inner_product":
            return (self.src[0], self.wei[0])
        if self.kind == "matmul":
            return (*self._batch, self.src[-2], self.wei[-1])
        of = self._gathered if self.kind == "convolution" else self._spread
        return (self.src[0], self.wei[0], *(of(axis) for axis in range(len(self.stride))))

    @property
    def channels(self) -> int:
        """Output channels, or columns."""
        return self.dst[self.axis]

    @property
    def blocks(self) -> tuple[int, int]:
        """The dimension of src along which most places lie, and how many of its windows are apart.

        Examples
        --------
        >>> Geometry.of("convolution", (2, 8, 9, 27), (4, 8, 3, 3)).blocks
        (3, 4)
        """
        apart = {0: self.src[0]}
        if self.kind == "matmul":
            apart = dict(enumerate(self.src[:-1]))
        for axis in range(len(self.stride)):
            apart[2 + axis] = self.src[2 + axis] // (2 * self._reach(axis))
        axis = max(apart, key=lambda axis: apart[axis])
        return axis, max(apart[axis], 1)

    @property
    def _batch(self) -> Dims:
        lead = len(self.src) - len(self.wei)
        of_wei = (1,) * max(lead, 0) + self.wei[:-2]
        of_src = (1,) * max(-lead, 0) + self.src[:-2]
        return tuple(max(a, b) for a, b in zip(of_src, of_wei, strict=True))

    def _reach(self, axis: int) -> int:
        return (self.wei[2 + axis] - 1) * self.dilation[axis] + 1

    def _gathered(self, axis: int) -> int:
        room = self.src[2 + axis] + sum(self.padding[axis]) - self._reach(axis)
        return room // self.stride[axis] + 1

    def _spread(self, axis: int) -> int:
        whole = (self.src[2 + axis] - 1) * self.stride[axis] + self._reach(axis)
        return whole - sum(self.padding[axis])


def _each(value: Any, count: int) -> Dims:  # noqa: ANN401
    """Return one value per spatial dimension, from one for all or from as many."""
    return tuple(map(int, value)) if isinstance(value, Iterable) else (int(value),) * count


def _sides(value: Any, count: int) -> tuple[tuple[int, int], ...]:  # noqa: ANN401
    """Return (lo, hi) per dimension, from one value, one per dimension, or pairs.

    ONNX writes all that come before and then all that come behind.
    """
    paddings = list(value) if isinstance(value, Iterable) else [value] * count
    if len(paddings) == 2 * count and not any(isinstance(side, Iterable) for side in paddings):
        paddings = list(zip(paddings[:count], paddings[count:], strict=True))
    pairs = [tuple(side) if isinstance(side, Iterable) else (side, side) for side in paddings]
    return tuple((int(lo), int(hi)) for lo, hi in pairs)
