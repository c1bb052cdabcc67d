"""Inner product and matmul, in float64. Integers stay exact below 2**53."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from support.oracle_tracked import F64


def inner_product(src: F64, wei: F64) -> F64:
    """dst[n, oc] = sum over ic and space of src[n, ic, *] * wei[oc, ic, *]."""
    dst: F64 = src.reshape(src.shape[0], -1) @ wei.reshape(wei.shape[0], -1).T
    return dst


def matmul(src: F64, wei: F64) -> F64:
    """dst[..., m, n] = sum over k of src[..., m, k] * wei[..., k, n]; batch dims broadcast."""
    dst: F64 = np.matmul(src, wei)
    return dst
