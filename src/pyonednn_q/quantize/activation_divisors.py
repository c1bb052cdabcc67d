"""AWQ: by what to divide each input channel, so that weights that matter most lose least.

    s_c = rms(src_c)^alpha / sqrt(max · min over channels),      alpha = 0, 1/20, ... 1
    (src / s) · (wei · s) = src · wei

A code's error is worth the rms of what it is multiplied with; weights times s have less of it where
s is large. The alpha is the one that errs least in outputs over the samples, nearest codes of
groups assumed; 0 divides nothing, so that it never errs more. Codes that are chosen in another way
may gain nothing from it: then none is divided, either. Who divides the source is for the
caller to say: the gains of a norm, or the layer before. Source: "AWQ" (Lin et al., 2023), equations
4 and 5; it takes the mean of |src|, we its root mean square, which the same sums hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.quantize.error_feedback import output_errors
from pyonednn_q.quantize.group_codes import GroupMethod, finite_values, group_codes, products_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["activation_divisor"]

_ALPHAS = tuple(at / 20.0 for at in range(1, 21))


def activation_divisor(
    wei: ArrayLike,
    groups: int,
    bits: int = 4,
    *,
    symmetric: bool = True,
    method: GroupMethod = "rtn",
    samples: ArrayLike | None = None,
    products: ArrayLike | None = None,
) -> Array:
    """Return divisors of input channels that reduce the error of weights in groups (AWQ).

    Parameters
    ----------
    wei : (OC, IC) array_like
        Real weights; layers that read one source are stacked along OC.
    groups, bits, symmetric, method
        Arguments of `group_codes`.
    samples : (..., IC) array_like, optional
        Rows of the real source.
    products : (IC, IC) array_like, optional
        src.T @ src over samples, instead of `samples`.

    Returns
    -------
    (IC,) ndarray of float64
        Divisors: the layer with ``wei * divisor`` computes the same from ``src / divisor``. Ones if
        no other divisors have a smaller error.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    One input is 64 times as large as the other, and its weight as small:

    >>> divisor = activation_divisor([[0.1, 1.0]], 2, samples=[[64.0, 0.0], [0.0, 1.0]])
    >>> group_codes(np.array([[0.1, 1.0]]) * divisor, 2)[0]
    array([[3, 7]], dtype=int8)
    """
    values = finite_values("wei", wei)
    if values.ndim != 2 or not values.size:
        raise ShapeError("wei", f"shape {values.shape}", "a matrix, with weights in groups")
    gram = products_of(samples, products, values.shape[1])
    if gram is None:
        raise ArgumentError("samples", "None", "rows of the source")

    def lost(divisor: Array, how: GroupMethod) -> float:
        times, own = values * divisor, gram / np.outer(divisor, divisor)
        codes, wei_q = group_codes(
            times, groups, bits, symmetric=symmetric, method=how, products=own
        )
        return float(output_errors((wei_q.dequantize(codes) - times) / divisor, gram).sum())

    best = none = np.ones(values.shape[1])
    least, sizes = lost(none, "rtn"), np.sqrt(np.diag(gram))
    # A channel without values has no error, whatever becomes of its weights.
    sizes = np.where(sizes > 0.0, sizes, sizes.max(initial=0.0) or 1.0)
    for alpha in _ALPHAS:
        divisor = (sizes / sizes.max()) ** alpha
        divisor = divisor / np.sqrt(divisor.max() * divisor.min())
        if (err := lost(divisor, "rtn")) < least:
            best, least = divisor, err
    if method == "rtn" or lost(best, method) < lost(none, method):
        return best
    return none
