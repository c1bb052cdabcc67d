"""Layers whose weights may saturate: without VNNI, pairs of products are summed in 16 bits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.acc.split import centred
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import SaturationError, UnsupportedError
from pyonednn_q.native import runtime
from pyonednn_q.native.first_run import LOGGER
from pyonednn_q.qparams import QParams

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import Dims
    from pyonednn_q.ops.operator import Operator

IN_FLOATS = "its weights may saturate without VNNI: INT8 with saturation='narrow' or 'allow'"
_WARNING = (
    "weights of %d layers may saturate on this processor, which has no VNNI: they run as"
    " saturation=%r says; 'f32', 'narrow', 'allow' and 'refuse' are offered"
)
_PRODUCTS = (
    "%d products of two tensors of codes may saturate on this processor, which has no VNNI: they"
    " run in float32, which gives the same codes and is slower"
)


def warn_of_products(number: int) -> None:
    """Count products that run in float32, in one line; nothing where none do."""
    if number and not runtime.isa().has_vnni():
        LOGGER.warning(_PRODUCTS, number)


def warn(names: list[str], saturation: str) -> None:
    """Count layers that do not run as their model has them, in one line; nothing where none are."""
    if names and saturation != "refuse":
        LOGGER.warning(_WARNING, len(names), saturation)


def saturates(operator: Operator, src_dims: Dims | None) -> bool:
    """Tell whether no kernel here sums an operator's products exactly.

    Parameters
    ----------
    operator : Operator
        Operator with ``saturation="refuse"``.
    src_dims : tuple of int or None
        Dims of its source; None: not known.
    """
    if operator.settings.saturation == "allow" or not src_dims or runtime.isa().has_vnni():
        return False
    try:
        operator.prepare(src_dims)
    except SaturationError:
        return True
    except UnsupportedError:
        return False  # for another reason, which whoever prepares it tells
    return False


def narrowed(wei: Array, q: QParams) -> tuple[Array, QParams, str]:
    """Return weights of 7 bits, of which no pair saturates beside u8 codes, and what that costs.

    q' = rne((q − zero_point) / 2), scale' = 2 · scale, zero_point' = 0: from -64 to 64, where
    255 · (64 + 64) stays below 2^15. (Less a zero point, codes may reach twice as far: then twice
    as much is divided.)
    """
    codes = centred(wei, q.zero_point, q.axis or 0).astype(np.int64)
    factor = 2 if np.abs(codes).max(initial=0) <= 128 else 4
    narrow = np.rint(codes / factor).astype(np.int8)
    noise = float(np.square(codes - factor * narrow.astype(np.int64)).sum())
    signal = float(np.square(codes).sum())
    sqnr = f"{10 * math.log10(signal / noise):.1f} dB" if noise and signal else "nothing"
    own = QParams(np.asarray(q.scale, np.float64) * factor, 0, "s8", axis=q.axis)
    return narrow, own, f"weights of 7 bits, which cost them {sqnr}"
