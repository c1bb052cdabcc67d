"""What an operator is made of when it comes from a float layer: codes, QParams, and a chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, items
from pyonednn_q.compose.layer_composer import dst_codes
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_qparams import qparams_from_fq
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic, qparams_from_range
from pyonednn_q.quantize.weights import max_abs_range, weight_codes
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

__all__ = ["FromFloat"]

Array = np.ndarray[Any, Any]

_LEVELS = 256
_PAIR = 2


class FromFloat:
    """What makes an operator of a float layer."""

    axis: ClassVar[int] = 0  # of the output channels, in the caller's weights

    @classmethod
    def from_float(
        cls,
        /,
        wei: object,
        bias: object = None,
        *,
        src_q: QParams | Dynamic | FakeQuantize | tuple[float, float] | None = None,
        src_dtype: str = "u8",
        dst_q: QParams | FakeQuantize | tuple[float, float] | None = None,
        dst: str | None = None,
        wei_fq: FakeQuantize | None = None,
        wei_levels: int = 255,
        post: Chain | None = None,
        **options: Any,  # noqa: ANN401 - those of the class
    ) -> Self:
        """Quantize a float layer. It is called on float sources, or on codes of them.

        Parameters
        ----------
        wei : tensor of floats
            In the dims that the class takes. They become s8 codes, one scale an output channel.
        bias : tensor of floats, optional
            Real values.
        src_q : QParams, (lo, hi), FakeQuantize or Dynamic
            Of the source, which must be said: as it is, from the range of its values, of 256
            levels, or found by each call.
        src_dtype : {"u8", "s8"}
            Of its codes, for a range or a FakeQuantize.
        dst_q : QParams, (lo, hi) or FakeQuantize, optional
            Of the result. A FakeQuantize may have any levels and a range for every channel.
        dst : str, optional
            Data type of the result: f32 without `dst_q`, u8 with a range or a FakeQuantize.
        wei_fq : FakeQuantize, optional
            Of the weights, for the tensor or each output channel. By default, each channel's
            largest magnitude.
        wei_levels : int
            Of that default: 255; or 129, codes within ±64, which CPUs without VNNI multiply
            exactly.
        post : Chain, optional
            What follows the bias.
        **options
            All other parameters of the class.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the argument, what came and what would do.

        Examples
        --------
        >>> from pyonednn_q.ops.dense import InnerProduct
        >>> wei = np.array([[1.0, -0.5], [0.25, 0.25]], np.float32)
        >>> layer = InnerProduct.from_float(wei, src_q=(0.0, 2.55), wei_levels=129)
        >>> layer(np.array([[1.0, 2.0]], np.float32)).round(6)
        array([[0.  , 0.75]], dtype=float32)
        """
        if "wei_q" in options:
            wanted = "wei_fq: float weights have no codes yet"
            raise ArgumentError("options", "'wei_q'", wanted)
        codes, wei_q = _quantized_weights(wei, cls.axis, wei_fq, wei_levels)
        params, dtype, chain = _quantized_store(dst_q, dst, post)
        given: dict[str, Any] = {
            "src_q": _source_params(src_q, src_dtype),
            "wei_q": wei_q,
            "dst_q": params,
            "dst": dtype,
            "post": chain,
        }
        make: Callable[..., Self] = cls
        return make(codes, _float_bias(bias), **given, **options)


def _quantized_weights(
    wei: object, axis: int, wei_fq: FakeQuantize | None, levels: int
) -> tuple[Array, QParams]:
    """Return s8 codes of float weights, and what they are worth.

    Parameters
    ----------
    wei : tensor
        f32, bf16, f16 or float64; in the operator's dims.
    axis : int
        Of the output channels.
    wei_fq : FakeQuantize or None
        Of the tensor or of each output channel. None: each channel's largest magnitude.
    levels : int
        Of that default.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        What does not fit, by name.
    """
    given = as_array("wei", wei)
    if given.dtype != np.float64:
        dtypes.checked(dtypes.from_numpy(given.dtype, "wei"), "wei", ("f32", "bf16", "f16"))
    if given.ndim < _PAIR or not given.size:
        raise ShapeError("wei", str(given.shape), "output channels, and weights for each")
    values = np.moveaxis(given.astype(np.float64), axis, 0)
    rows = values.reshape(len(values), -1)
    if wei_fq is not None:
        instance("wei_fq", wei_fq, FakeQuantize)
        if wei_fq.channels not in {None, len(rows)}:
            wanted = f"{len(rows)}, or one for all"
            raise ShapeError("wei_fq", f"{wei_fq.channels} ranges", wanted)
    found = weight_codes(rows, max_abs_range(rows, levels) if wei_fq is None else wei_fq)
    points = found.zero_point.rint()
    if abs(found.zero_point - points).greatest > 1e-4:
        got = f"a range whose 0 is at code {found.zero_point}"
        raise ArgumentError("wei_fq", got, "ranges that have 0 among their levels")
    if not -128.0 <= points.least <= points.greatest <= 127.0:
        raise ArgumentError("wei_fq", f"zero points {points}", "ranges that hold 0")
    codes = np.moveaxis(found.codes.reshape(values.shape), 0, axis)
    if wei_fq is not None and wei_fq.channels is None:
        return codes, QParams(found.scale.least, int(points.least), "s8")
    scales, whole = found.scale.spread(len(rows)), points.spread(len(rows)).astype(np.int64)
    return codes, QParams(scales, whole, "s8", axis=axis)


def _float_bias(bias: object) -> Array | None:
    """Return a bias in real units as f32.

    Raises
    ------
    DTypeError
        Integers, which say nothing without the scales that are only made here.
    """
    if bias is None:
        return None
    given = as_array("bias", bias)
    if given.dtype != np.float64 and not dtypes.is_float(dtypes.from_numpy(given.dtype, "bias")):
        raise DTypeError("bias", str(given.dtype), "real values: f32, bf16, f16 or float64")
    with np.errstate(over="ignore"):
        return given.astype(np.float32)


def _source_params(given: object, dtype: str) -> QParams | Dynamic:
    """Return how a source is quantized, from QParams, a range, a FakeQuantize, or every call's own.

    Parameters
    ----------
    given : QParams, Dynamic, FakeQuantize or (lo, hi)
        A FakeQuantize of 256 levels, with a whole zero point.
    dtype : {"u8", "s8"}
        Of the codes, where `given` does not say it.

    Raises
    ------
    ArgumentError, DTypeError
        Naming ``src_q``.
    """
    if isinstance(given, (QParams, Dynamic)):
        return given
    if isinstance(given, FakeQuantize):
        dtypes.checked(dtype, "src_dtype", ("u8", "s8"))
        same = given.input_low == given.output_low and given.input_high == given.output_high
        fits = given.channels is None and same and given.levels == _LEVELS
        found = qparams_from_fq(given, dtype) if fits else None
        if found is None or not found.is_exact():
            wanted = (
                "one range of 256 levels with 0 among them; compose_layer and prepare_layer take "
                "any"
            )
            raise ArgumentError("src_q", str(given), wanted)
        return found.qparams
    return _from_range("src_q", given, dtype)


def _quantized_store(
    given: object, dtype: str | None, post: Chain | None
) -> tuple[QParams | None, str | None, Chain | None]:
    """Return ``dst_q``, ``dst`` and ``post`` of an operator, from how its result is quantized.

    Parameters
    ----------
    given : QParams, FakeQuantize, (lo, hi) or None
        A FakeQuantize may have any levels and a range for every channel: it joins the chain, whose
        result is then stored as codes, or as the values of those if `dtype` is floating.
    dtype : str or None
        Of the result; u8 for a range or a FakeQuantize unless said.
    post : Chain or None
        What stands before.
    """
    if given is None or isinstance(given, QParams):
        return given, dtype, post
    if post is not None:
        instance("post", post, Chain)
    stored = "u8" if dtype is None else dtype
    if isinstance(given, FakeQuantize):
        dtypes.checked(stored, "dst", ("u8", "s8", "f32", "bf16", "f16"))
        cut = dst_codes(given, stored, "dst_q")
        last = given.chain() if cut is None else Chain(*cut.quantize)
        return None, stored, (post or Chain()) + last
    return _from_range("dst_q", given, stored), stored, post


def _from_range(name: str, given: object, dtype: str) -> QParams:
    ends = items(name, given, object) if isinstance(given, (tuple, list)) else ()
    if len(ends) != _PAIR:
        wanted = "QParams, a FakeQuantize or a range (lo, hi)"
        raise ArgumentError(name, shown(given), wanted)
    lo, hi = ends
    try:
        return qparams_from_range(lo, hi, dtype)
    except DTypeError as error:
        argument = "src_dtype" if name == "src_q" else "dst"
        raise DTypeError(argument, error.got, error.wanted) from None
    except ArgumentError as error:
        raise ArgumentError(name, f"{error.argument} {error.got}", error.wanted) from None
