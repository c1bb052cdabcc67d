"""Quantizer: float arrays to the codes of a layer's source, by primitives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.compose.stages import SRC, quantizing_chain, quantizing_reorder, stages
from pyonednn_q.compose.zero_point import settled
from pyonednn_q.errors import ArgumentError, DTypeError, LayoutError, ShapeError
from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.steps import Affine
from pyonednn_q.ops.staged import Flat, Staged
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from pyonednn_q.expr.fq_forms import CutFakeQuantize

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class SourceLevels:
    """Codes of a source by a FakeQuantize that is no QParams: other levels, or 0 between two.

    Attributes
    ----------
    cut : CutFakeQuantize
        From real values to codes, and back.
    dtype : {"u8", "s8"}
        Of the codes.
    scale : float
        What a step of the codes is worth.
    zero_point : float
        The code of real 0, which need not be whole.
    """

    cut: CutFakeQuantize
    dtype: str
    scale: float
    zero_point: float

    @classmethod
    def of(cls, cut: CutFakeQuantize, dtype: str) -> SourceLevels:
        """Return those of a FakeQuantize for the whole tensor."""
        (step,) = cut.dequantize
        assert isinstance(step, Affine)
        scale = step.scale.least
        return cls(cut, dtype, scale, settled(-step.shift.least / scale))


class Quantizer:
    """Float values to integer codes, in float32: a code next to a tie may be its neighbour.

    One reorder from whatever layout the values have, where scale and zero point say it all;
    otherwise binary primitives with post-ops.

    Parameters
    ----------
    cut : CutFakeQuantize
        What is computed.
    spec : TensorSpec
        Dims, integer type and strides of the codes.
    """

    def __init__(self, cut: CutFakeQuantize, spec: TensorSpec) -> None:
        self.spec = spec
        self._chain = Chain(*cut.quantize)
        self._reorders: dict[TensorSpec, Staged] = {}
        self._staged: Staged | None = None
        self._flat = Flat.of(spec, min(1, spec.ndim - 1))
        if quantizing_reorder(self._chain, _f32(spec), spec) is None:
            chain = quantizing_chain(self._chain, spec.dtype)
            self._staged = Staged(stages(chain, self._flat.dims, spec.dtype))

    def __call__(self, values: Array) -> Array:
        """Return the codes of float32 values, in the layout that was asked for.

        Raises
        ------
        DTypeError, ShapeError
            Not float32, or of other dims.
        """
        if values.dtype != np.float32:
            wanted = f"float32, or {self.spec.dtype} codes"
            raise DTypeError("src", str(values.dtype), wanted)
        if values.shape != self.spec.dims:
            raise ShapeError("src", str(values.shape), str(self.spec.dims))
        if self._staged is not None:
            return self._flat.back(self._staged({SRC: self._flat.view(values)}))
        source, reorder = self._reorder(values)
        return reorder({SRC: source})

    def _reorder(self, values: Array) -> tuple[Array, Staged]:
        """Return the values as a reorder can read them, and that reorder."""
        try:
            spec = TensorSpec.of(values, "src")
        except (LayoutError, ArgumentError):  # reversed, overlapping or unaligned
            values = np.ascontiguousarray(values)
            spec = TensorSpec.of(values, "src")
        if spec not in self._reorders:
            stage = quantizing_reorder(self._chain, spec, self.spec)
            assert stage is not None
            self._reorders[spec] = Staged((stage,))
        return values, self._reorders[spec]


def _f32(spec: TensorSpec) -> TensorSpec:
    return TensorSpec(spec.dims, "f32", spec.strides)
