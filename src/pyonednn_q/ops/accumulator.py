"""Accumulator: the exact s32 sums of a plan that asks for them, as primitives and what is added.

What the primitives store are bare sums of codes, in parts where an implementation would lead larger
ones through float32. Parts, bias and zero points are added as integers, and what leaves 32 bits
saturates.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.acc.pairs import exact_range
from pyonednn_q.acc.split import (
    Part,
    addend,
    beyond_32_bits,
    centred,
    parts,
    stores_sums,
    terms,
)
from pyonednn_q.dtypes import F32_WHOLE, Array
from pyonednn_q.errors import SaturationError, UnsupportedError
from pyonednn_q.native import Packed, Prepared, prepare, runtime

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.primitive.dense_facts import DenseProblem
    from pyonednn_q.primitive.tensor import TensorSpec

Products = tuple[tuple[Part, Prepared], ...]
_S32 = np.iinfo(np.int32)


def accumulator(
    plan: Plan,
    primitive: Prepared,
    wei: Array | Packed,
    bias: Array | None,
    arrays: Mapping[str, TensorSpec],
    saturation: str,
    **options: Any,  # noqa: ANN401 - of prepare
) -> Accumulator | None:
    """Return the computation of a plan's sums; ``None`` where the primitive does it alone.

    Parameters
    ----------
    plan : Plan
        One of `Plan.sums`.
    primitive : Prepared
        The primitive that sums over all channels.
    wei : ndarray or Packed
        Codes of its weights.
    bias : ndarray or None
        The plan's.
    arrays : mapping
        Layouts of sources and results of calls.
    saturation : {"refuse", "allow"}
        Treatment of sums that may leave 32 bits: refuse, or compute them.
    **options
        Options of `prepare`, for the primitives of the parts.

    Raises
    ------
    SaturationError
        Some source leads a sum beyond 32 bits.
    UnsupportedError
        Errors of `prepare`; or parts of a source in other dims than the problem's.
    """
    problem: Any = primitive.problem
    if primitive.kind == "none":
        return None
    codes = wei.array if isinstance(wei, Packed) else wei
    src_point = plan.facts.src_zero_point or 0
    wei_point = int(plan.facts.wei_zero_point or 0)
    whole = centred(codes, wei_point, 0)
    most = 2**31 if stores_sums(problem, primitive.impl, runtime.version()) else F32_WHOLE
    wide = beyond_32_bits(problem, whole, bias, src_point)
    if wide and saturation == "refuse":
        with_bias = "" if bias is None else ", with the bias"
        detail = (
            f"sums of {len(wide)} output channel(s) may exceed 32 bits{with_bias}: take smaller "
            "weights, or parts of the input channels, or pass saturation='allow', and they saturate"
        )
        raise SaturationError("refused", "preparing", problem.text(), detail, channels=wide)
    options["saturation"] = saturation
    added = addend(problem, whole, bias, src_point)
    products: Products = ((Part(problem, codes, 0, 0), primitive),)
    if wei_point or len(parts(problem, codes, most)) > 1:
        if "src" in arrays and arrays["src"].dims != problem.src.dims:
            detail = "sums in parts of the channels, of a source that is seen in other dims"
            raise UnsupportedError("refused", "preparing", problem.text(), detail)
        # One, unless a zero point takes weights further.
        weights = terms(whole, exact_range(runtime.isa()) if wei_point else (-128, 127))
        products = _products(problem, weights, most, options)
    elif added is None:
        return None
    return Accumulator(products, added, wide=bool(wide))


def _products(
    problem: DenseProblem, weights: tuple[Array, ...], most: int, options: Mapping[str, Any]
) -> Products:
    """Prepare parts: of fewer channels each, or of all where some kernel lacks that."""
    for narrow in (True, False):
        pieces = [p for wei in weights for p in parts(problem, wei, most, narrow=narrow)]
        try:
            return tuple((part, prepare(part.problem, wei=part.wei, **options)) for part in pieces)
        except SaturationError:
            raise
        except UnsupportedError:
            if not narrow:
                raise
    raise AssertionError


class Accumulator:
    """Primitives whose results are added up, and what is added to them.

    Attributes
    ----------
    products : tuple of (Part, Prepared)
        Products of the parts, in order.
    addend : ndarray of int64, or None
        Addend in dst's dims, 1 where it does not change.
    wide : bool
        Whether sums may leave 32 bits.
    """

    def __init__(
        self,
        products: Products,
        addend: Array | None,
        *,
        wide: bool,
    ) -> None:
        self.products, self.addend, self.wide = products, addend, wide
        # What leaves 32 bits on the way comes back to them.
        self._short = None if addend is None else addend.astype(np.int32)

    def __call__(self, src: Array, out: Array | None = None) -> Array:
        """Return the sums of a source, in `out` if it is given."""
        (part, primitive), *others = self.products
        acc = primitive(part.source(src), out=out)
        if self.wide:
            return self._saturated(src, acc)
        for part, primitive in others:
            acc += primitive(part.source(src))
        if self._short is not None:
            acc += self._short
        return acc

    def _saturated(self, src: Array, acc: Array) -> Array:
        total = acc.astype(np.int64)
        for part, primitive in self.products[1:]:
            total += primitive(part.source(src))
        if self.addend is not None:
            total += self.addend
        np.copyto(acc, np.clip(total, _S32.min, _S32.max), casting="unsafe")
        return acc

    def __copy__(self) -> Accumulator:
        products = tuple((part, copy(primitive)) for part, primitive in self.products)
        return Accumulator(products, self.addend, wide=self.wide)

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes beside the first primitive."""
        added = 0 if self.addend is None else self.addend.nbytes * 3 // 2  # and as s32
        return added + sum(one.nbytes + one.wei_bytes for _, one in self.products[1:])

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on work that is not one primitive."""
        notes = []
        if len(self.products) > 1:
            notes.append(
                f"exact s32 sums in {len(self.products)} parts of the input channels: "
                f"{self.products[0][1].impl} rounds what is beyond 2^24"
            )
        if self.addend is not None:
            notes.append("bias and zero points added to exact s32 sums, as integers")
        if self.wide:
            notes.append("sums may exceed 32 bits: the result saturates")
        return tuple(notes)

    def describe(self) -> str:
        """Return a line for each primitive, and one for what is added."""
        lines = [
            f"sums over channels {part.start} to {part.stop - 1} on {primitive.impl}"
            for part, primitive in self.products
            if len(self.products) > 1
        ]
        shape = "" if self.addend is None else "x".join(map(str, self.addend.shape))
        return "\n".join(lines + ([f"integers {shape} added"] if shape else []))
