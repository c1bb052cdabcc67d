"""The primitive of a description: its shapes as a problem, its scales, zero points and bias."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from pyonednn_q.compose.composer import Scales
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.explain.reader import (
    Const,
    Cycle,
    DescriptionTable,
    Dims,
    Numbers,
    Size,
    Whole,
    at,
    constant,
)
from pyonednn_q.explain.step_tables import AnyStep, FakeQuantizeTable
from pyonednn_q.primitive.convolution import ConvProblem, DeconvProblem
from pyonednn_q.primitive.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.primitive.dense_facts import DenseProblem, PrimitiveFacts
from pyonednn_q.reading import told
from pyonednn_q.rewrite.rule import Policy

__all__ = ["KEYS", "AnyLayer", "LayerTable"]

_MOST_CHANNELS = 1 << 20  # a list of constants for each is made
# Keys by the arguments that they become.
KEYS = {
    "src": "src.dtype",
    "src_scale": "src.scale",
    "src_zero_point": "src.zero_point",
    "wei_scale": "wei.scale",
    "wei_zero_point": "wei.zero_point",
    "dst_scale": "dst.scale",
    "dst_zero_point": "dst.zero_point",
}
_SHAPE_KEYS = {
    "src": "src.dims",
    "wei": "wei.dims",
    "kernel": "wei.dims",
    "padding_lo": "padding",
    "padding_hi": "padding",
}
Float: TypeAlias = Literal["f32", "bf16", "f16"]
Side = Annotated[int, Meta(ge=0, lt=2**31)]


class SrcTable(DescriptionTable):
    """The source: shape, data type, scale and zero point."""

    dims: Dims
    dtype: Literal["u8", "s8"] | Float = "u8"
    scale: float = 1.0
    zero_point: Whole | None = None


class WeiTable(DescriptionTable):
    """The weights; `has_min` tells whether -128 may be among codes: yes, if nothing is said."""

    dims: Dims
    dtype: Literal["s8", "u8"] | Float = "s8"
    scale: Const = 1.0
    zero_point: Whole | None = None
    has_min: bool | None = None


class DstTable(DescriptionTable):
    """The destination: codes by a scale and a zero point, or by a FakeQuantize."""

    dtype: Literal["u8", "s8", "s32"] | Float = "u8"
    scale: float | None = None
    zero_point: Whole | None = None
    fake_quantize: FakeQuantizeTable | None = None


class BiasTable(DescriptionTable):
    """The bias, in real units or those of the accumulator; values may come later."""

    cycle: Numbers | None = None
    values: Const | None = None
    unit: Literal["real", "acc"] = "real"


class LayerTable(DescriptionTable, tag_field="op"):
    """A layer: its primitive, the chain behind it, and how to compose."""

    src: SrcTable
    wei: WeiTable
    dst: DstTable = field(default_factory=DstTable)
    bias: bool | float | Numbers | BiasTable = False
    title: str = ""
    chain: tuple[AnyStep, ...] = ()
    policy: Policy = "real"
    scales: Scales = "folded"
    exact_rounding: bool = False

    def problem(self) -> DenseProblem:
        """Return the problem: kind, shapes and data types."""
        types = {"src": self.src.dtype, "wei": self.wei.dtype, "dst": self.dst.dtype}
        with at("", _SHAPE_KEYS):
            problem = self._made(**types, bias=None if self.bias in (False, 0.0) else "f32")
        if (channels := problem.oc) > _MOST_CHANNELS:
            raise ShapeError("wei.dims", f"{channels} output channels", f"at most {_MOST_CHANNELS}")
        return problem

    def _made(self, **types: Any) -> DenseProblem:  # noqa: ANN401 - options of all kinds
        raise NotImplementedError

    def facts(self, problem: DenseProblem) -> PrimitiveFacts:
        """Return the facts of the problem: scales, zero points and bias."""
        bias, unit = self._bias(problem.oc)
        with at("", KEYS):
            facts = PrimitiveFacts.of(
                problem,
                src_scale=self.src.scale,
                src_zero_point=self.src.zero_point,
                wei_scale=constant(self.wei.scale, "wei.scale", problem.oc),
                wei_zero_point=self.wei.zero_point,
                bias=bias,
                bias_in_acc=unit == "acc",
                dst_scale=1.0 if self.dst.scale is None else self.dst.scale,
                dst_zero_point=self.dst.zero_point or 0,
            )
        has_min = self.wei.has_min
        if has_min is None:
            return facts
        if not facts.is_int8:
            raise ArgumentError("wei.has_min", told(has_min), "nothing: these weights are no codes")
        return replace(facts, wei_has_min=has_min)

    def _bias(self, channels: int) -> tuple[Any, str]:
        """Return the values of the bias, as far as they are known, and their unit."""
        bias = self.bias
        if not isinstance(bias, BiasTable):
            is_known = bias is not True and bias is not False and bias != 0.0
            return (constant(bias, "bias", channels) if is_known else None), "real"
        if bias.cycle is None:
            return constant(bias.values, "bias.values", channels), bias.unit
        if bias.values is not None:
            raise ArgumentError("bias.values", "a value", "nothing beside cycle")
        return constant(Cycle(cycle=bias.cycle), "bias", channels), bias.unit


class _ConvTable(LayerTable, tag="convolution"):
    groups: Size = 1
    stride: Size | Dims = 1
    dilation: Size | Dims = 1
    padding: Side | Annotated[list[Side | list[Side]], Meta(min_length=1)] = 0

    make: ClassVar[type[ConvProblem | DeconvProblem]] = ConvProblem

    def _made(self, **types: Any) -> DenseProblem:  # noqa: ANN401
        keys = ("groups", "stride", "dilation", "padding")
        return self.make.of(
            self.src.dims, self.wei.dims, **types, **{key: getattr(self, key) for key in keys}
        )


class _DeconvTable(_ConvTable, tag="deconvolution"):
    make: ClassVar[type[ConvProblem | DeconvProblem]] = DeconvProblem


class _InnerProductTable(LayerTable, tag="inner_product"):
    def _made(self, **types: Any) -> DenseProblem:  # noqa: ANN401
        src, wei = self.src.dims, self.wei.dims
        problem = InnerProductProblem.of(src, wei[0], **types)
        if problem.wei.dims != tuple(wei):
            raise ShapeError("wei", str(tuple(wei)), f"{problem.wei.dims}, as in src")
        return problem


class _MatMulTable(LayerTable, tag="matmul"):
    def _made(self, **types: Any) -> DenseProblem:  # noqa: ANN401
        return MatMulProblem.of(self.src.dims, self.wei.dims, **types)


AnyLayer: Any = _ConvTable | _DeconvTable | _InnerProductTable | _MatMulTable
