"""The primitive of a description: its shapes as a problem, its scales, zero points and bias."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyonednn_q.dtypes import FLOATS
from pyonednn_q.errors import ShapeError
from pyonednn_q.explain.reader import DescriptionTable, at, whole_numbers
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.convolution import ConvProblem, DeconvProblem
from pyonednn_q.primitive.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.primitive.dense_facts import KINDS, PrimitiveFacts

if TYPE_CHECKING:
    from pyonednn_q.primitive.dense_facts import DenseProblem

__all__ = ["KEYS", "Tables", "read_facts", "read_problem"]

_MOST_CHANNELS = 1 << 20  # a list of constants for each is made
_DTYPES = {
    "src": ("u8", "s8", *FLOATS),
    "wei": ("s8", "u8", *FLOATS),
    "dst": ("u8", "s8", "s32", *FLOATS),
}
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


@dataclass(frozen=True)
class Tables:
    """A description's top table and those of its tensors."""

    top: DescriptionTable
    src: DescriptionTable
    wei: DescriptionTable
    dst: DescriptionTable

    @classmethod
    def of(cls, value: object) -> Tables:
        """Open the tables; dst may be a data type alone."""
        top = DescriptionTable(value)
        dst = top.get("dst")
        opened = (
            DescriptionTable({"dtype": dst}, "dst") if isinstance(dst, str) else top.table("dst")
        )
        return cls(top, top.table("src"), top.table("wei"), opened)

    @property
    def kind(self) -> str:
        """Kind of the primitive."""
        return self.top.choice("op", KINDS)

    def dtype(self, tensor: str) -> str:
        """Return the data type of a tensor."""
        table: DescriptionTable = getattr(self, tensor)
        allowed = _DTYPES[tensor]
        return table.choice("dtype", allowed, "s8" if tensor == "wei" else "u8")

    def end(self) -> None:
        """Refuse unknown keys."""
        for table in (self.src, self.wei, self.dst, self.top):
            table.end()


def read_problem(tables: Tables) -> DenseProblem:
    """Return the problem: kind, shapes and data types."""
    options: dict[str, Any] = {name: tables.dtype(name) for name in _DTYPES}
    options["bias"] = "f32" if _has_bias(tables.top) else None
    with at("", _SHAPE_KEYS):
        problem = _MAKE[tables.kind](tables, options)
    channels = problem.oc
    if channels > _MOST_CHANNELS:
        raise ShapeError("wei.dims", f"{channels} output channels", f"at most {_MOST_CHANNELS}")
    return problem


def read_facts(tables: Tables, problem: DenseProblem) -> PrimitiveFacts:
    """Return the facts of the problem: scales, zero points and bias."""
    src, wei, dst = tables.src, tables.wei, tables.dst
    channels = problem.oc
    bias, unit = _bias(tables.top, channels)
    with at("", KEYS):
        facts = PrimitiveFacts.of(
            problem,
            src_scale=src.number("scale", 1.0),
            src_zero_point=_zero_point(src),
            wei_scale=wei.vec("scale", channels, 1.0),
            wei_zero_point=_zero_point(wei),
            bias=bias,
            bias_in_acc=unit == "acc",
            dst_scale=dst.number("scale", 1.0),
            dst_zero_point=_zero_point(dst) or 0,
        )
    if not facts.is_int8:
        return facts
    return replace(facts, wei_has_min=wei.flag("has_min", default=True))


def _zero_point(table: DescriptionTable) -> int | None:
    return None if table.get("zero_point") is None else table.whole("zero_point")


def _has_bias(top: DescriptionTable) -> bool:
    bias = top.get("bias")
    return bias is not None and not (type(bias) in (bool, int, float) and bias == 0)


def _bias(top: DescriptionTable, channels: int) -> tuple[Vec | None, str]:
    """Return the values of the bias, as far as they are known, and their unit."""
    if not _has_bias(top):
        return None, "real"
    value = top.get("bias")
    if not isinstance(value, dict) or "cycle" in value:
        return (None if value is True else top.vec("bias", channels)), "real"
    table = top.table("bias")
    unit = table.choice("unit", ("real", "acc"), "real")
    values = None if table.get("values") is None else table.vec("values", channels)
    table.end()
    return values, unit


def _windowed(
    make: type[ConvProblem | DeconvProblem], tables: Tables, options: dict[str, Any]
) -> DenseProblem:
    top = tables.top
    src, wei = tables.src.dims("dims"), tables.wei.dims("dims")
    options["groups"] = top.whole("groups", 1, lo=1)
    for name, usual in (("stride", 1), ("dilation", 1), ("padding", 0)):
        options[name] = _per_dim(top, name, usual)
    return make.of(src, wei, **options)


def _per_dim(top: DescriptionTable, key: str, usual: int) -> Any:  # noqa: ANN401 - int, list, list of pairs
    value = top.get(key)
    if not isinstance(value, list):
        return top.whole(key, usual, lo=usual)
    if key != "padding" or not any(isinstance(item, list) for item in value):
        return top.dims(key, lo=usual)
    return [whole_numbers(item, path, lo=usual) for path, item in top.items(key)]


def _inner_product(tables: Tables, options: dict[str, Any]) -> DenseProblem:
    src, wei = tables.src.dims("dims"), tables.wei.dims("dims")
    problem = InnerProductProblem.of(src, wei[0], **options)
    if problem.wei.dims != wei:
        raise ShapeError("wei", str(wei), f"{problem.wei.dims}, as in src")
    return problem


def _matmul(tables: Tables, options: dict[str, Any]) -> DenseProblem:
    return MatMulProblem.of(tables.src.dims("dims"), tables.wei.dims("dims"), **options)


_MAKE: dict[str, Callable[[Tables, dict[str, Any]], DenseProblem]] = {
    "convolution": lambda tables, options: _windowed(ConvProblem, tables, options),
    "deconvolution": lambda tables, options: _windowed(DeconvProblem, tables, options),
    "inner_product": _inner_product,
    "matmul": _matmul,
}
