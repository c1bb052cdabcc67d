"""group_codes: weights as integers of 4 or 8 bits, with a scale for each group of neighbours.

    "rtn"       scales that span a group, and nearest codes
    "search"    scales that lose least: Σ moment · (wei − real)², moment the mean of src² of samples
    "gptq"      codes whose errors the inputs that follow make up for, and that then move while
                outputs err less; of scales of either kind, what errs least in a channel's outputs

From one to the next no channel errs more, each in what it looks at: a group's weights, or outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from pyonednn_q.argument import flag, numbers, one_of, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.error_feedback import fed_back_codes, moved_codes, output_errors
from pyonednn_q.quantize.group_scales import codes_of_parts, range_scales, searched_scales
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["GroupMethod", "group_codes"]

GroupMethod: TypeAlias = Literal["rtn", "search", "gptq"]

METHODS = ("rtn", "search", "gptq")
_SIGNED = {4: "s4", 8: "s8"}
_UNSIGNED = {4: "u4", 8: "u8"}


def group_codes(
    wei: ArrayLike,
    groups: int,
    bits: int = 4,
    *,
    axis: int = 0,
    symmetric: bool = True,
    method: GroupMethod = "rtn",
    samples: ArrayLike | None = None,
    products: ArrayLike | None = None,
) -> tuple[Array, QParams]:
    """Return codes of weights in groups, and their QParams.

    Parameters
    ----------
    wei : (OC, IC) or (IC, OC) array_like
        Real weights, finite.
    groups : int
        Size of a group: the number of neighbouring weights of an output channel that share a
        scale. It must divide their number.
    bits : {4, 8}
        Width of the codes.
    axis : int
        Axis of the output channels: 0 of an inner product, -1 of a matmul.
    symmetric : bool
        Whether zero points are 0 and codes signed; else codes are unsigned.
    method : {"rtn", "search", "gptq"}
        Method that chooses codes and scales: to nearest; by the least error of the weights of a
        group; by the least error of the outputs, which needs samples.
    samples : (..., IC) array_like, optional
        Rows of the real source.
    products : (IC, IC) array_like, optional
        src.T @ src over samples, instead of `samples`; such sums can be accumulated.

    Returns
    -------
    (ndarray of int8 or uint8, QParams)
        Codes in the shape of the weights, those of 4 bits in a byte each; and `QParams` of s4, s8,
        u4 or u8, with a block along the other axis.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> codes, wei_q = group_codes([[0.7, -0.1, 2.0, -4.0]], 2)
    >>> codes.tolist(), wei_q.scale.round(3).tolist(), wei_q.dtype
    ([[7, -1, 4, -8]], [[0.1, 0.5]], 's4')
    """
    values = finite_values("wei", wei)
    if values.ndim != 2 or not values.size:
        raise ShapeError("wei", f"shape {values.shape}", "a matrix, with weights in groups")
    flag("symmetric", symmetric)
    size, width = whole("groups", groups, lo=1), whole("bits", bits)
    names = _SIGNED if symmetric else _UNSIGNED
    if width not in names:
        raise ArgumentError("bits", str(width), "4 or 8")
    channels = whole("axis", axis, lo=-2, hi=1) % 2
    rows = values if channels == 0 else values.T
    if rows.shape[1] % size:
        raise ShapeError("groups", str(size), f"a divisor of {rows.shape[1]} input channels")
    gram = products_of(samples, products, rows.shape[1])
    how = _method(method, has_samples=gram is not None)
    dtype = names[width]
    parts = rows.reshape(len(rows), -1, size)
    codes, scale, point = _chosen(parts, dtype, how, gram, symmetric=symmetric)
    whole_codes = codes.astype(np.int8 if symmetric else np.uint8).reshape(rows.shape)
    if channels == 0:
        return whole_codes, QParams(scale, point, dtype, axis=1, block=(size,))
    turned = QParams(scale.T, point.T, dtype, axis=0, block=(size,))
    return np.ascontiguousarray(whole_codes.T), turned


def _method(method: object, *, has_samples: bool) -> str:
    if isinstance(method, str) and method == "awq":
        wanted = (
            "another: nothing in a layer divides its source. pq.onnx.grouped_weights does it in a"
            " model; by what, says quantize.activation_divisor"
        )
        raise ArgumentError("method", "'awq'", wanted)
    how = one_of("method", method, METHODS)
    if how == "gptq" and not has_samples:
        raise ArgumentError("samples", "None", "rows of the source, with method='gptq'")
    return how


def products_of(samples: object, products: object, inner: int) -> Array | None:
    """Return src.T @ src, of samples or as it is; None of neither."""
    if samples is not None and products is not None:
        raise ArgumentError("products", shown(products), "None beside samples")
    if products is not None:
        gram = finite_values("products", products)
        if gram.shape != (inner, inner):
            raise ShapeError("products", str(gram.shape), f"({inner}, {inner}), as wei has inputs")
        return gram
    if samples is None:
        return None
    rows = finite_values("samples", samples)
    if rows.ndim < 1 or rows.shape[-1] != inner or not rows.size:
        raise ShapeError("samples", str(rows.shape), f"(..., {inner}), as wei has inputs")
    rows = rows.reshape(-1, inner)
    return np.asarray(rows.T @ rows)


def _chosen(
    parts: Array, dtype: str, method: str, products: Array | None, *, symmetric: bool
) -> tuple[Array, Array, Array]:
    """Return codes (OC, groups, size), scales and zero points (OC, groups)."""
    spans = range_scales(parts, dtype, symmetric=symmetric)
    if method == "rtn":
        return codes_of_parts(parts, *spans, dtype), *spans
    moments = None if products is None else np.diag(products).reshape(parts.shape[1:])
    least = searched_scales(parts, dtype, symmetric=symmetric, moments=moments)
    codes = codes_of_parts(parts, *least, dtype)
    if method == "search":
        return codes, *least
    assert products is not None
    rows = parts.reshape(len(parts), -1)
    errors = _errors(parts, codes, *least, products)
    scale, point = least
    for known in (least, spans):
        begun = fed_back_codes(rows, products, *known, dtype)
        other = moved_codes(rows, products, begun, *known, dtype).reshape(parts.shape)
        err = _errors(parts, other, *known, products)
        better = (err < errors)[:, None]
        errors = np.where(better[:, 0], err, errors)
        codes = np.where(better[..., None], other, codes)
        scale, point = np.where(better, known[0], scale), np.where(better, known[1], point)
    return codes, scale, point


def _errors(parts: Array, codes: Array, scale: Array, point: Array, products: Array) -> Array:
    apart = parts - scale[..., None] * (codes - point[..., None])
    return output_errors(apart.reshape(len(parts), -1), products)


def finite_values(name: str, value: object) -> Array:
    """Return real values as float64, refused where they are not finite."""
    values = numbers(name, value).astype(np.float64)
    if not np.isfinite(values).all():
        raise ArgumentError(name, "values that are not finite", "finite numbers")
    return values
