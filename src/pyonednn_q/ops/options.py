"""Options: what operators, `from_float` and functional calls take by keyword, declared once.

Type checkers and editors read the classes (``**options: Unpack[ConvOptions]``); `takes` gives a
function the signature that `help` shows, with defaults: those of `Settings` and the ones below.
What each option means is said by `Conv` and `Conv.from_float`.
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from functools import cache
from typing import TYPE_CHECKING, Any, SupportsFloat, TypedDict, TypeVar

from pyonednn_q.ops.settings import Settings
from pyonednn_q.shown import meant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyonednn_q.dtypes import DType
    from pyonednn_q.expr.fake_quantize import FakeQuantize
    from pyonednn_q.expr.steps import Chain
    from pyonednn_q.ops.settings import DialectName, Layout, Saturation, SelfCheck, ZeroPointCarrier
    from pyonednn_q.primitive.window import Padding, PerDim
    from pyonednn_q.qparams import QParams
    from pyonednn_q.quantize.group_codes import GroupMethod
    from pyonednn_q.quantize.ranges import Dynamic
    from pyonednn_q.rewrite.rule import Policy

Function = TypeVar("Function", bound="Callable[..., Any]")
Range = tuple[SupportsFloat, SupportsFloat]


class SharedOptions(TypedDict, total=False):
    """Options of every operator, whatever it is made from."""

    dst: DType | None
    post: Chain | None
    policy: Policy
    exact_rounding: bool
    layout: Layout
    strict: bool
    allow_reference: bool
    saturation: Saturation
    zero_point: ZeroPointCarrier
    requantize: DialectName | None
    self_check: SelfCheck
    tune: bool


class CodeOptions(SharedOptions, total=False):
    """Options of an operator of codes, or of floats as they are: `MatMul`, `InnerProduct`."""

    src_q: QParams | Dynamic | None
    wei_q: QParams | None
    dst_q: QParams | None


class FloatOptions(SharedOptions, total=False):
    """Options of an operator that is quantized from floats."""

    src_q: QParams | Dynamic | FakeQuantize | Range | None
    src_dtype: DType
    dst_q: QParams | FakeQuantize | Range | None
    wei_fq: FakeQuantize | None
    wei_levels: int


class FloatDenseOptions(FloatOptions, total=False):
    """Options of `MatMul.from_float` and `InnerProduct.from_float`."""

    groups: int | None
    bits: int
    symmetric: bool
    method: GroupMethod
    samples: object


class WindowOptions(TypedDict, total=False):
    """Options of a window."""

    stride: PerDim
    padding: Padding
    dilation: PerDim
    groups: int


class ConvOptions(CodeOptions, WindowOptions, total=False):
    """Options of `Conv` and `Deconv`."""


class FloatConvOptions(FloatOptions, WindowOptions, total=False):
    """Options of `Conv.from_float` and `Deconv.from_float`."""


# In the order that signatures have.
_DEFAULTS: dict[str, Any] = {
    "src_q": None,
    "src_dtype": "u8",
    "wei_q": None,
    "dst_q": None,
    "dst": None,
    "wei_fq": None,
    "wei_levels": 255,
    "stride": 1,
    "padding": 0,
    "dilation": 1,
    "groups": 1,  # of channels; None of weights that share scales, of `FloatDenseOptions`
    "bits": 8,
    "symmetric": True,
    "method": "rtn",
    "samples": None,
    **{each.name: each.default for each in fields(Settings) if each.default is not MISSING},
    "post": None,  # Settings have an empty Chain
}


def takes(options: type) -> Callable[[Function], Function]:
    """Return a decorator of functions of ``**options``: `inspect.signature` then lists these.

    Parameters
    ----------
    options : type
        TypedDict of the options.
    """
    shown = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=options.__annotations__[name].__forward_arg__,
        )
        for name, default in _defaults(options).items()
    ]

    def decorated(function: Function) -> Function:
        signature = inspect.signature(function)
        *own, _ = signature.parameters.values()
        vars(function)["__signature__"] = signature.replace(parameters=[*own, *shown])
        return function

    return decorated


def filled(function: str, options: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a call, those that it does not name by their defaults.

    Parameters
    ----------
    function : str
        Name of what is called.
    options : type
        TypedDict of what it takes.
    values : mapping
        Options that the call names.

    Raises
    ------
    TypeError
        An option that it does not take, as Python words it.
    """
    defaults = _defaults(options)
    every = {**defaults, **values}
    if len(every) > len(defaults):
        name = next(name for name in values if name not in defaults)
        msg = f"{function}() got an unexpected keyword argument {name!r}{meant(name, defaults)}"
        raise TypeError(msg)
    return every


@cache
def _defaults(options: type) -> dict[str, Any]:
    every = _DEFAULTS | ({"groups": None} if options is FloatDenseOptions else {})
    return {name: default for name, default in every.items() if name in options.__annotations__}
