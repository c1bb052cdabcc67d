"""The constants of each dialect: from three scales to the arguments of a `Requantizer`.

The functions of three scales are rules themselves; the others make one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.requantize.multiplier import (
    ev_multiplier,
    quantize_multiplier,
    real_multiplier,
    scale_to_mult_shift,
)
from pyonednn_q.requantize.value import AWAY

if TYPE_CHECKING:
    from collections.abc import Callable

    Rule = Callable[["Array", "Array", "Array"], "Constants"]

Constants = dict[str, Any]


def two_step(precision: str, rounding: str) -> Rule:
    """Return the rule with a 31-bit multiplier and two roundings, the second as told."""

    def constants(src: Array, wei: Array, dst: Array) -> Constants:
        q, exponent = quantize_multiplier(real_multiplier(src, wei, dst, precision))
        return {"kind": "two_step", "multiplier": q, "shift": exponent, "rounding": rounding}

    return constants


def one_step(precision: str) -> Rule:
    """Return the rule with a 31-bit multiplier and one rounding, half up."""

    def constants(src: Array, wei: Array, dst: Array) -> Constants:
        q, exponent = quantize_multiplier(real_multiplier(src, wei, dst, precision))
        return {"kind": "shift", "multiplier": q, "shift": exponent - 31, "rounding": "half_up"}

    return constants


def tosa(rule: Rule) -> Rule:
    """Return a rule for multipliers that TOSA's RESCALE takes: it shifts right by 2 at least.

    DOUBLE_ROUND adds 2^30 away from zero before its only shift, by more than 31. That is to round
    the high product half up and its shift half away: the sign that nudges is that of both.
    """

    def constants(src: Array, wei: Array, dst: Array) -> Constants:
        m = real_multiplier(src, wei, dst)
        _, exponent = quantize_multiplier(m)
        if (exponent > 29).any():
            got = f"a multiplier of {float(m.max())!r}"
            raise ArgumentError("src_scale", got, "src · wei / dst below 2^29")
        return rule(src, wei, dst)

    return constants


def q31(src: Array, wei: Array, dst: Array) -> Constants:
    """Round twice with the 24 bits of a float32 multiplier, which must lie in [2^-32, 1)."""
    _require_below_one(real_multiplier(src, wei, dst, "single"), at_least=2.0**-32)
    return two_step("single", AWAY)(src, wei, dst)


def two_round(precision: str, kind: str) -> Rule:
    """Return the rule with two roundings whose multiplier, M's mantissa, stays a float."""

    def constants(src: Array, wei: Array, dst: Array) -> Constants:
        m = real_multiplier(src, wei, dst, precision)
        _require_below_one(m, at_least=2.0**-62)
        fraction, exponent = np.frexp(m)
        return {"kind": kind, "multiplier": fraction, "shift": exponent, "rounding": AWAY}

    return constants


def real(precision: str, kind: str) -> Rule:
    """Return the rule that multiplies floats by M."""

    def constants(src: Array, wei: Array, dst: Array) -> Constants:
        return {"kind": kind, "multiplier": real_multiplier(src, wei, dst, precision)}

    return constants


def tpu_mlir(bits: int) -> Rule:
    """Return the rule with a searched multiplier and one shift, half up."""

    def constants(src: Array, wei: Array, dst: Array) -> Constants:
        k, r = scale_to_mult_shift(real_multiplier(src, wei, dst), bits)
        # Of a multiplier that no shift saves, the search leaves its first shift, and 0.
        shift = np.where(k == 0, 0, -r)
        return {"kind": "shift", "multiplier": k, "shift": shift, "rounding": "half_up"}

    return constants


def tpu_mlir_literal(src: Array, wei: Array, dst: Array) -> Constants:
    """Shift and round down, as printed."""
    k, r = scale_to_mult_shift(real_multiplier(src, wei, dst), rule="literal")
    return {"kind": "shift", "multiplier": k, "shift": -r, "rounding": "down"}


def tpu_mlir_qdm(src: Array, wei: Array, dst: Array) -> Constants:
    """Round as D2; an M of 1 or more becomes 0.999999, as the compiler warns that it does."""
    m = real_multiplier(src, wei, dst)
    q, exponent = quantize_multiplier(np.where(m >= 1, 0.999999, m))
    return {"kind": "two_step", "multiplier": q, "shift": exponent, "rounding": AWAY}


def ev(src: Array, wei: Array, dst: Array) -> Constants:
    """Multiply by an odd number of up to 15 bits and shift once, ties to even."""
    k, r = ev_multiplier(real_multiplier(src, wei, dst))
    # A product of 46 bits is 0 after 62 shifts, as after 63.
    shift = np.maximum(-r, -62)
    return {"kind": "shift", "multiplier": k, "shift": shift, "rounding": "half_to_even"}


def onednn(form: str) -> Rule:
    """Return the rule of oneDNN's kernels for scales given to the primitive in one of its forms."""

    def constants(src: Array, wei: Array, dst: Array) -> Constants:
        with np.errstate(over="ignore", divide="ignore"):
            single = [scale.astype(np.float32) for scale in (src, wei, dst)]
            inverse = np.float32(1) / single[2]
            forms: dict[str, Constants] = {
                "folded": {"multiplier": (src * wei).astype(np.float32), "last": inverse},
                "one_scale": {"multiplier": (src * wei / dst).astype(np.float32)},
                "combined": {"multiplier": single[0] * single[1], "last": inverse},
                "separate": {"multiplier": single[0], "then": single[1], "last": inverse},
                "divide": {"multiplier": single[0], "then": single[1], "last": single[2]},
            }
        for name, values in forms[form].items():
            if not np.isfinite(values).all():
                wanted = "scales whose products and quotients are finite in float32"
                raise ArgumentError("scales", f"a {name} that is not", wanted)
        return {"kind": "onednn_divide" if form == "divide" else "onednn", **forms[form]}

    return constants


def exact(rounding: str) -> Rule:
    """Return the rule that takes mantissas as whole numbers and rounds nothing but the result."""

    def constants(src: Array, wei: Array, dst: Array) -> Constants:
        wholes = [np.ldexp(np.frexp(scale)[0], 24) for scale in (src, wei, dst)]
        powers = [np.frexp(scale)[1] - 24 for scale in (src, wei, dst)]
        return {
            "kind": "exact",
            "multiplier": (wholes[0] * wholes[1]).astype(np.int64),
            "shift": powers[0] + powers[1] - powers[2],
            "last": wholes[2],
            "rounding": rounding,
        }

    return constants


def _require_below_one(m: Array, at_least: float) -> None:
    outside = (m >= 1) | (m < at_least)
    if outside.any():
        got = f"a multiplier of {float(np.asarray(m)[outside].flat[0])!r}"
        raise ArgumentError("src_scale", got, f"src · wei / dst from {at_least!r} to below 1")
