"""Quantizing: float values to codes, by a reorder where its scale and zero point are enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyonednn_q.compose.absorb import RIGHT_END
from pyonednn_q.compose.stages import DST, SRC, Stage
from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.steps import Affine, Step
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.pointwise import ReorderProblem
from pyonednn_q.rewrite.catalogue import CATALOGUE
from pyonednn_q.rewrite.driver import rewrite
from pyonednn_q.rewrite.ends import Acc, Dst, Takes

if TYPE_CHECKING:
    from pyonednn_q.primitive.tensor import TensorSpec

__all__ = ["quantizing_chain", "quantizing_reorder"]


def quantizing_reorder(chain: Chain, src: TensorSpec, dst: TensorSpec) -> Stage | None:
    """Return the reorder that computes a chain and stores it, or ``None`` if it takes more.

    Parameters
    ----------
    chain : Chain
        From float values to codes, for example ``Chain(*codes(fq).quantize)``.
    src, dst : TensorSpec
        f32, and an integer type; of any layouts.

    Examples
    --------
    >>> from pyonednn_q.primitive.tensor import TensorSpec
    >>> from pyonednn_q.expr.fake_quantize import FakeQuantize
    >>> chain = FakeQuantize(-0.5, 0.775, 0, 255).chain()
    >>> specs = [TensorSpec.dense((2, 3), dtype) for dtype in ("f32", "u8")]
    >>> stage = quantizing_reorder(chain, *specs)
    >>> stage.values
    (('dst_scale', Vec(0.004999999888241291)), ('dst_zero_point', Vec(100)))
    """
    steps, store = _shortened(chain, dst.dtype)
    if steps:
        return None
    values = []
    if store.scale != 1.0:
        values.append(("dst_scale", Vec(store.scale)))
    if store.zero_point:
        values.append(("dst_zero_point", Vec(float(store.zero_point))))
    given = dict(values)
    attr = Attr(
        dst_scale=Scale() if "dst_scale" in given else None,
        dst_zero_point=ZeroPoint() if "dst_zero_point" in given else None,
    )
    return Stage(ReorderProblem(src, dst), attr, tuple(values), (("src", SRC),), DST)


def quantizing_chain(chain: Chain, dtype: str) -> Chain:
    """Return a chain with what the store to an integer type does anyway left out."""
    steps, store = _shortened(chain, dtype)
    last = () if store.is_plain else (Affine(1.0 / store.scale, float(store.zero_point)),)
    return Chain(*steps, *last)


def _shortened(chain: Chain, dtype: str) -> tuple[tuple[Step, ...], Dst]:
    items, _ = rewrite((Acc(), *chain, Dst(dtype)), CATALOGUE, "real")
    takes = Takes.PER_TENSOR
    store = Dst(dtype, takes_scale=takes, takes_zero_point=takes)
    items, _ = rewrite((*items[:-1], store), RIGHT_END, "real")
    last = items[-1]
    assert isinstance(last, Dst)
    return tuple(item for item in items if isinstance(item, Step)), last
