"""prepare_layer: a quantized layer that takes float values or codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import instance, named
from pyonednn_q.compose.layer import Layer
from pyonednn_q.dtypes import Array
from pyonednn_q.ops.planned import Planned, prepare_plan
from pyonednn_q.ops.staged import Quantizer
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.report.told import Told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyonednn_q.native.first_run import SelfCheck


def prepare_layer(
    layer: Layer,
    *,
    operands: Mapping[str, Array] | None = None,
    allow_reference: bool = False,
    saturation: str = "refuse",
    self_check: SelfCheck = "auto",
) -> PreparedLayer:
    """Prepare the primitive of a layer, and what quantizes its source.

    Parameters
    ----------
    layer : Layer
        Result of `compose_layer`.
    operands, allow_reference, saturation, self_check
        Options of `prepare_plan`.

    Returns
    -------
    PreparedLayer

    Raises
    ------
    ArgumentError, DTypeError, ShapeError, UnsupportedError
        Errors of `prepare_plan`.
    """
    instance("layer", layer, Layer)
    planned = prepare_plan(
        layer.plan,
        layer.problem,
        wei=layer.wei,
        operands={**named("operands", operands, object), **layer.operands()},
        allow_reference=allow_reference,
        saturation=saturation,
        self_check=self_check,
    )
    return PreparedLayer(layer, planned)


class PreparedLayer(Told):
    """A layer ready to run. Made by `prepare_layer`; safe from many threads at once.

    Attributes
    ----------
    layer : Layer
        Layer that runs.
    planned : Planned
        Plan of the layer on its primitive.
    quantize : Quantizer
        Makes codes of float32 values, as calling the layer does.
    """

    def __init__(self, layer: Layer, planned: Planned) -> None:
        instance("layer", layer, Layer)
        instance("planned", planned, Planned)
        self.layer = layer
        self.planned = planned
        self.quantize = Quantizer(layer.src, _codes_spec(layer, planned))

    def __call__(
        self,
        src: Array,
        *,
        out: Array | None = None,
        residual: Array | None = None,
        **operands: Array,
    ) -> Array:
        """Run the layer.

        Parameters
        ----------
        src : ndarray
            Codes of the layer's source type, or float32 values, which are quantized first; of the
            dims that were asked for, any strides.
        out, residual, **operands
            Arguments of `Planned`.

        Returns
        -------
        ndarray
            dst.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError, AliasError
            Naming the argument, what came and what would do.
        """
        instance("src", src, np.ndarray)
        if src.dtype.kind == "f":
            src = self.quantize(src)
        return self.planned(self.layer.arranged(src), out=out, residual=residual, **operands)

    def dequantize(self, dst: Array) -> NDArray[np.float64]:
        """Return the real values that a result stands for."""
        return self.layer.dequantize(dst)

    def describe(self) -> str:
        """Return a description: decisions, the plan, and the primitive."""
        notes = [f"  note: {note}" for note in self.layer.notes]
        return "\n".join([self.layer.asked.text(), *notes, self.planned.describe()])

    def __repr__(self) -> str:
        return f"<PreparedLayer {self.layer.asked.text()} on {self.planned.primitive.impl}>"


def _codes_spec(layer: Layer, planned: Planned) -> TensorSpec:
    """Return the tensor of codes that the primitive takes without a copy."""
    if not layer.is_rearranged:
        return planned.primitive.layout("src")
    asked = layer.asked.src
    return asked if asked.strides is not None else TensorSpec.dense(asked.dims, asked.dtype)
