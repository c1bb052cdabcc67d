"""Hypothesis strategies over the values of the tests.

Dimensions and dtypes are drawn one by one, so that a failure shrinks to a small problem; the
numbers come from a fill with a drawn seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from support import parity
from support.cases import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    Draw = Callable[[st.SearchStrategy[Any]], Any]

src_dtypes = st.sampled_from(parity.SRC_DTYPES)
dst_dtypes = st.sampled_from(parity.DST_DTYPES)
bias_dtypes = st.sampled_from(parity.BIASES)
powers_of_two = st.integers(-8, 8).map(lambda exponent: 2.0**exponent)
even_zero_points = st.integers(-60, 60).map(lambda half: 2 * half)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def _dtypes(draw: Draw) -> dict[str, Any]:
    return {"src": draw(src_dtypes), "dst": draw(dst_dtypes), "bias": draw(bias_dtypes)}


@st.composite
def _conv_dims(draw: Draw) -> dict[str, Any]:
    rank = draw(st.integers(1, 3))
    per_dim = st.tuples(*[st.integers(1, 3)] * rank)
    kernel, strides = draw(per_dim), draw(per_dim)
    dilation = draw(st.tuples(*[st.integers(1, 2)] * rank))
    lo, hi = (tuple(draw(st.integers(0, k - 1)) for k in kernel) for _ in range(2))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    # Wide enough that a deconvolution's output stays positive too.
    space = tuple(draw(st.integers(r + 1, r + 4)) for r in reach)
    groups, ic, oc = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    head = (groups, oc, ic) if groups > 1 else (oc, ic)
    return {
        "src_dims": (draw(st.integers(1, 2)), groups * ic, *space),
        "wei_dims": (*head, *kernel),
        "stride": strides,
        "dilation": dilation,
        "padding": tuple(zip(lo, hi, strict=True)),
    }


conv_problems = st.builds(
    lambda dims, types: ConvProblem.of(**dims, **types), _conv_dims(), _dtypes()
)
deconv_problems = st.builds(
    lambda dims, types: DeconvProblem.of(**dims, **types), _conv_dims(), _dtypes()
)


@st.composite
def inner_product_problems(draw: Draw) -> InnerProductProblem:
    """Inner products with zero to three spatial dims."""
    space = draw(st.lists(st.integers(1, 3), max_size=3))
    src = (draw(st.integers(1, 4)), draw(st.integers(1, 6)), *space)
    return InnerProductProblem.of(src, draw(st.integers(1, 6)), **draw(_dtypes()))


@st.composite
def matmul_problems(draw: Draw) -> MatMulProblem:
    """Matmuls with up to two batch dims, either side broadcast."""
    batch = draw(st.lists(st.integers(1, 3), max_size=2))
    sides = [tuple(draw(st.sampled_from([1, size])) for size in batch) for _ in range(2)]
    m, k, n = (draw(st.integers(1, 6)) for _ in range(3))
    return MatMulProblem.of((*sides[0], m, k), (*sides[1], k, n), **draw(_dtypes()))


dense_problems: st.SearchStrategy[Any] = st.one_of(
    conv_problems, deconv_problems, inner_product_problems(), matmul_problems()
)


@st.composite
def attributes(draw: Draw, of: parity.DenseProblem) -> Attr:
    """Scales and zero points that the kind takes, without post-ops."""
    names: tuple[str, ...] = draw(st.sampled_from(parity.ZERO_POINTS[of.kind]))
    points: dict[str, Any] = {f"{name}_zero_point": ZeroPoint() for name in names}
    mask = draw(st.sampled_from([0, parity.channel_mask(of)]))
    scale = {
        name: Scale(mask=mask if name == "wei" else 0) if draw(st.booleans()) else None
        for name in ("src", "wei", "dst")
    }
    return Attr(
        src_scale=scale["src"],
        wei_scale=scale["wei"],
        dst_scale=scale["dst"],
        **points,
    )


@st.composite
def dense_recipes(draw: Draw) -> Recipe:
    """Draw a dense problem with attributes; fill it with ``.build(fill, seed=...)``."""
    of = draw(dense_problems)
    return Recipe(of.kind, of, draw(attributes(of)))
