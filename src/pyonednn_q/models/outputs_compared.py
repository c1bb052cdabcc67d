"""Outputs of a model beside those of its float form, over batches: what quantizing it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q.argument import real
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize.quality import quality
from pyonednn_q.shown import shown

__all__ = ["CHECKED", "OutputCompared", "bound_of", "compared", "least_of"]

Outputs = Sequence[Mapping[str, Array]]
CHECKED = 32  # samples whose outputs `pyonednn-q quantize` compares
MEASURES = ("sqnr", "cosine", "top1")
_MOST_DB = 1000.0  # of outputs that are equal


@dataclass(frozen=True, slots=True)
class OutputCompared:
    """One output over all batches.

    Attributes
    ----------
    name : str
        Name of the output.
    values : int
        Number of values that were compared.
    sqnr : float
        Power of the float values over that of the differences, in dB; 1000 where none differ.
    cosine : float
        Cosine of the angle between both.
    largest : float
        Greatest difference.
    top1 : float or None
        Share of rows along the last dim whose greatest element is at the same place; None where
        rows have one.
    is_finite : bool
        Whether all is finite that is finite in floats. Elsewhere nothing is compared.
    is_alike : bool
        Whether dims are the same in all batches. Where a loop ends at another step, they are not,
        and nothing is compared: SQNR, cosine and top 1 are 0.
    """

    name: str
    values: int
    sqnr: float
    cosine: float
    largest: float
    top1: float | None
    is_finite: bool
    is_alike: bool = True

    def plain(self) -> dict[str, Any]:
        """Return it by the names of its parts, for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def compared(floats: Outputs, others: Outputs) -> list[OutputCompared]:
    """Compare outputs, batch by batch.

    Parameters
    ----------
    floats : sequence of mapping of str to ndarray
        Outputs of the float form.
    others : sequence of mapping of str to ndarray
        Outputs of the same batches.
    """
    return [
        _compared(name, [each[name] for each in floats], [each[name] for each in others])
        for name in floats[0]
    ]


def _compared(name: str, floats: Sequence[Array], others: Sequence[Array]) -> OutputCompared:
    if any(a.shape != b.shape for a, b in zip(floats, others, strict=True)):
        return OutputCompared(name, 0, 0.0, 0.0, 0.0, 0.0, is_finite=True, is_alike=False)
    x, y = (
        np.concatenate([array.reshape(-1).astype(np.float64) for array in arrays])
        for arrays in (floats, others)
    )
    finite = np.isfinite(x)
    is_finite = bool(np.isfinite(y[finite]).all())
    pairs = finite & np.isfinite(y)
    x, y = x[pairs], y[pairs]
    if not x.size:
        return OutputCompared(name, 0, _MOST_DB, 1.0, 0.0, None, is_finite)
    told = quality(x, y)
    rows = [a.shape[-1] for a in floats if a.ndim and a.shape[-1] > 1]
    top1 = None
    if len(rows) == len(floats):
        pairs_of_rows = zip(floats, others, strict=True)
        alike = [
            a.argmax(axis=-1).reshape(-1) == b.argmax(axis=-1).reshape(-1) for a, b in pairs_of_rows
        ]
        top1 = float(np.concatenate(alike).mean())
    sqnr, largest = min(told.sqnr, _MOST_DB), float(np.abs(x - y).max())
    return OutputCompared(name, x.size, sqnr, told.cosine, largest, top1, is_finite)


def least_of(measure: str, outputs: Sequence[OutputCompared]) -> float:
    """Return the least of a measure over outputs: that of the worst one; 0 or less if not finite.

    Raises
    ------
    ArgumentError
        No output has it.
    """
    values: list[float | None] = [getattr(each, measure) for each in outputs]
    known = [value for value in values if value is not None]
    if not known:
        raise ArgumentError("--within", measure, "sqnr or cosine: no output has rows")
    return min(known) if all(each.is_finite for each in outputs) else min(0.0, *known)


def bound_of(text: str) -> tuple[str, float]:
    """Return the measure, and what it must reach, of the text of --within.

    Raises
    ------
    ArgumentError
        Another text.

    Examples
    --------
    >>> bound_of("30"), bound_of("cosine=0.999")
    (('sqnr', 30.0), ('cosine', 0.999))
    """
    measure, equals, number = text.rpartition("=")
    try:
        least = real("--within", float(number))
    except ValueError:
        least = None
    if least is None or (measure or "sqnr") not in MEASURES or bool(equals) != bool(measure):
        wanted = "dB, or MEASURE=NUMBER of " + ", ".join(MEASURES)
        raise ArgumentError("--within", shown(text), wanted)
    return measure or "sqnr", least
