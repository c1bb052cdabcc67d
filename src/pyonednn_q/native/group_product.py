"""GroupProduct: rows times weights in groups, by the one kernel of ours; for any number of rows.

    acc[m, n, g] = Σ_k (src[m, k] − src_zp) · (wei[k, n] − wei_zp[g, n])       k of group g, exact
    term[m, n, g] = f32(f32(acc) · wei_scale[g, n])                            ... · src_scale[m, g]
    dst[m, n] = f32(f32(0 + term[0] + term[1] + ...) · src_scale[m] + bias[n])

Every product and every sum of floats is rounded to float32, and groups are added up in their order.
If a whole row has one scale, it comes last. So results do not depend on the processor, the number
of threads or that of rows. `predict.grouped_sums` has the same in NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.native import runtime
from pyonednn_q.native.program import Pass

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pyonednn_q.qparams import QParams
    from pyonednn_q.quantize.ranges import Dynamic


class GroupProduct:
    """Packed weights in groups, and products with rows. Safe from many threads at once.

    Parameters
    ----------
    codes : (OC, IC) ndarray of int8 or uint8
        Codes of the weights.
    wei_q : QParams
        Scales and zero points (OC, IC / group) of groups along axis 1. Codes of s4 and u4 take half
        a byte each.
    bias : (OC,) ndarray of float32, optional
        Real values.
    has_src_point : bool
        Whether sources have zero points, as s8: those of u8 codes are 128 less.
    """

    def __init__(
        self, codes: Array, wei_q: QParams, bias: Array | None, *, has_src_point: bool
    ) -> None:
        lowest = dtypes.qmin(wei_q.dtype)
        self.dims: tuple[int, int] = codes.shape
        self._lowest = lowest
        self.group = wei_q.block[0]
        self.core = runtime.core.GroupedWeights(
            codes=_unsigned(codes, lowest),
            scales=np.ascontiguousarray(wei_q.scale, np.float32),
            points=_unsigned(np.asarray(wei_q.zero_point), lowest),
            bias=np.zeros(0, np.float32) if bias is None else bias,
            group=self.group,
            are_nibbles=dtypes.bits(wei_q.dtype) < dtypes.bits("u8"),
            keeps_sums=has_src_point,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of what is packed."""
        return self.core.nbytes

    def codes(self) -> Array:
        """Return the codes that it was made of, in a byte each."""
        unsigned = self.core.codes()
        return unsigned if self._lowest == 0 else (unsigned + np.int16(self._lowest)).astype("i1")

    def run(self, src: Array, dynamic: Dynamic, dst: Array) -> None:
        """Write products of float32 rows, each or each of its groups as codes by its own range.

        Parameters
        ----------
        src, dst : (rows, IC) and (rows, OC) ndarray of float32
            Array without gaps.
        dynamic : Dynamic
            Type of the codes, and what has a range of its own: rows or groups.

        Raises
        ------
        ArgumentError
            Values that are not finite, or a range that float32 cannot span.
        """
        self.core.run(src, dst, **_how(dynamic))

    def run_codes(
        self,
        codes: Array,
        scales: NDArray[np.float32],
        zero_points: NDArray[np.int32],
        dst: Array,
    ) -> None:
        """Write products of rows of codes.

        Parameters
        ----------
        codes : (rows, IC) ndarray of int8 or uint8
            Array without gaps.
        scales, zero_points : (rows, 1) or (rows, groups) ndarray
            Scales and zero points of the codes.
        dst : (rows, OC) ndarray of float32
            Array without gaps.
        """
        self.core.run_codes(codes, scales, zero_points, dst)

    def hot_call(self, dynamic: Dynamic, ndim: int) -> Callable[..., Any]:
        """Return f(src, residual, out) of float32 sources, in the meaning of `HotCallable`.

        Parameters
        ----------
        dynamic : Dynamic
            Range of the source, as in `run`.
        ndim : int
            Number of dimensions of a source; 0: any from 2 on.
        """
        return self.core.hot_call(**_how(dynamic), ndim=ndim)

    def as_pass(self, rows: int, dynamic: Dynamic) -> Pass:
        """Return the product of so many float32 rows as a step of a program."""
        columns, inner = self.dims
        text = f"{rows}x{inner} by {inner}x{columns} in groups of {self.group}"
        return Pass(runtime.core.grouped_pass(self.core, rows, **_how(dynamic)), text)


def _how(dynamic: Dynamic) -> dict[str, bool]:
    by_group = dynamic.extent == "per_group"
    return {"is_symmetric": dynamic.is_symmetric, "is_by_group": by_group}


def _unsigned(codes: Array, lowest: int) -> NDArray[np.uint8]:
    """Return how far codes are above the least of their type."""
    wide = codes.astype(np.int16)
    wide -= np.int16(lowest)
    return np.ascontiguousarray(wide, np.uint8)
