"""Remarks: where codes differ that no arithmetic gives, and what that looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.dtypes import Array

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyonednn_q.inspection.outputs import Outputs

_NAMED = 6  # channels
_ONE_ROUNDING = 1.0 + 2.0**-8  # levels: how far apart errors of one rounding are, and of float32
_FEWEST = 3  # outputs of a channel that speak for it


def remarks_of(
    outputs: Outputs,
    best: Array,
    theirs: Array,
    narrow: Mapping[str, Array],
    *,
    is_named: bool,
) -> tuple[str, ...]:
    """Return hints for codes that no known arithmetic gives on the operator as it is.

    Parameters
    ----------
    outputs : Outputs
        Sums and parameters of the operator, as it is.
    best : ndarray
        The codes of the arithmetic that gives most of theirs, in dst's dims.
    theirs : ndarray
        Somebody else's codes, in dst's dims.
    narrow : mapping of str to ndarray
        Sums of kernels whose pairs of products saturate, by name.
    is_named : bool
        Whether something that is supposed otherwise explains them: only the channels are told.
    """
    differs = best != theirs
    if not differs.any():
        return ()
    looks = () if is_named else _looks(outputs, theirs, differs)
    return (*_channels(outputs, differs, narrow), *looks)


def _by_channel(outputs: Outputs, array: Array) -> Array:
    return np.moveaxis(array, outputs.axis, 0).reshape(array.shape[outputs.axis], -1)


def _channels(outputs: Outputs, differs: Array, narrow: Mapping[str, Array]) -> Iterator[str]:
    where = np.flatnonzero(_by_channel(outputs, differs).any(axis=1))
    total = outputs.acc.shape[outputs.axis]
    count = int(differs.sum())
    if len(where) == total and total > 1:
        yield f"the {count} that the best one does not give are in all {total} channels"
        return
    text = f"the {count} that the best one does not give are in {_named(where)} of {total}"
    for acc in narrow.values():
        saturates = np.flatnonzero(_by_channel(outputs, acc != outputs.acc).any(axis=1))
        if set(where.tolist()) <= set(saturates.tolist()):
            text += ", whose pairs of products leave 16 bits: on CPUs without VNNI they saturate"
            break
    yield text


def _looks(outputs: Outputs, theirs: Array, differs: Array) -> Iterator[str]:
    values = outputs.values()
    inside = ~outputs.saturated(theirs) & np.isfinite(values)
    near = int((outputs.near_ties(values) & differs).sum())
    if near == differs.sum():
        yield "all of those are ties: a rounding that has no name here"
        return
    error = _by_channel(outputs, theirs - values)
    inside_by_channel = _by_channel(outputs, inside)
    offsets = {}
    for channel in np.flatnonzero(_by_channel(outputs, differs).any(axis=1)):
        errors = error[channel][inside_by_channel[channel]]
        if len(errors) >= _FEWEST and np.ptp(errors) <= _ONE_ROUNDING:
            offsets[int(channel)] = float(errors.max() + errors.min()) / 2
    wrong = int(_by_channel(outputs, differs).any(axis=1).sum())
    if offsets and len(offsets) == wrong:
        least, most = min(offsets.values()), max(offsets.values())
        yield (
            f"theirs are apart by a constant in {_named(np.array([*offsets]))}, of {least:+.3g} to "
            f"{most:+.3g} levels: another bias, another rounding of it, or another zero point"
        )
        return
    yield from _ratio(outputs, theirs, values, inside)


def _ratio(outputs: Outputs, theirs: Array, values: Array, inside: Array) -> Iterator[str]:
    """Tell whether theirs are ours in another scale."""
    x, y = (levels[inside] - outputs.zero_point for levels in (values, theirs))
    if len(x) < _FEWEST or not (x * x).sum():
        return
    ratio = float((x * y).sum() / (x * x).sum())
    apart = np.abs(y - ratio * x)
    if abs(ratio - 1) > 2.0**-6 and float(apart.max()) <= 1.0:
        yield f"theirs are {ratio:.6g} times as large: another scale of src, wei or dst"
    else:
        yield "not ties: no rounding explains them, but other sums, weights, scales or zero points"


def _named(channels: Array) -> str:
    names = ", ".join(str(int(channel)) for channel in channels[:_NAMED])
    more = f" and {len(channels) - _NAMED} more" if len(channels) > _NAMED else ""
    return f"channel{'s' if len(channels) > 1 else ''} {names}{more}"
