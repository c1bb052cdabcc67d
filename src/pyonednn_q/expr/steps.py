"""Steps, and chains of them: the functions that follow an accumulator.

A step is a function of one value x (and of what it names). Formulas are in the class docstrings;
`evaluate` computes them. No step knows about oneDNN's attributes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args, overload

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, one_of, real, whole
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.expr.vec import Vec, VecLike, constant, number
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.dtypes import DType

BinaryAlg: TypeAlias = Literal[
    "add", "mul", "max", "min", "div", "sub", "ge", "gt", "le", "lt", "eq", "ne"
]
Extent: TypeAlias = Literal["per_tensor", "per_channel", "per_row", "full"]

_BINARY_ALGS = get_args(BinaryAlg)
_ELTWISE_ALGS = tuple(sorted(ALGS))
_EXTENTS = get_args(Extent)
_SUM_DTYPES = ("u8", "s8", "s32", "f32", "bf16", "f16")
_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/",
    "ge": ">=", "gt": ">", "le": "<=", "lt": "<", "eq": "==", "ne": "!=",
}  # fmt: skip
_INF = math.inf
_set = object.__setattr__


@dataclass(frozen=True, slots=True)
class Step:
    """Base of the seven steps.

    Raises
    ------
    ArgumentError, ShapeError
        A constant of a step is wrong; the error names its argument.
    """

    @property
    def channels(self) -> int | None:
        """Number of channels of the constants, or ``None`` if all are per tensor."""
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Vec) and value.channels is not None:
                return value.channels
        return None


@dataclass(frozen=True, slots=True, init=False)
class Affine(Step):
    """y = scale*x + shift. A zero scale makes a constant.

    Parameters
    ----------
    scale, shift : float, (C,) array_like or Vec
        Finite constants, for the tensor or for each channel.
    """

    scale: Vec
    shift: Vec

    def __init__(self, scale: VecLike = 1.0, shift: VecLike = 0.0) -> None:
        scale, shift = constant("scale", scale), constant("shift", shift)
        if not (scale.is_finite and shift.is_finite):
            name, vec = ("scale", scale) if not scale.is_finite else ("shift", shift)
            raise ArgumentError(name, str(vec), "finite numbers")
        if scale.array is not None:
            _same_channels("shift", scale, shift)
        _set(self, "scale", scale)
        _set(self, "shift", shift)

    def __str__(self) -> str:
        if self.scale.is_all(0.0):
            return f"constant {self.shift}"
        head = "x" if self.scale.is_all(1.0) else f"{self.scale}*x"
        if self.shift.is_all(0.0):
            return head
        if self.shift.is_per_tensor and self.shift.least < 0.0:
            return f"{head} - {number(-self.shift.least)}"
        return f"{head} + {self.shift}"


@dataclass(frozen=True, slots=True, init=False)
class Clip(Step):
    """y = min(max(x, lo), hi), with lo <= hi in every channel; either side may be open.

    Parameters
    ----------
    lo, hi : float, (C,) array_like or Vec
        Bounds, for the tensor or for each channel; -inf and inf: open.
    """

    lo: Vec
    hi: Vec

    def __init__(self, lo: VecLike = -_INF, hi: VecLike = _INF) -> None:
        lo, hi = constant("lo", lo), constant("hi", hi)
        if lo.array is not None:
            _same_channels("hi", lo, hi)
        if lo.greatest == _INF:
            raise ArgumentError("lo", str(lo), "a number or -inf: nothing is above +inf")
        if hi.least == -_INF:
            raise ArgumentError("hi", str(hi), "a number or +inf: nothing is below -inf")
        if lo.greatest > hi.least and bool((lo.values() > hi.values()).any()):
            raise ArgumentError("lo", f"lo {lo} with hi {hi}", "lo <= hi in every channel")
        _set(self, "lo", lo)
        _set(self, "hi", hi)

    def __str__(self) -> str:
        if self.hi.is_all(_INF):
            return f"max(x, {self.lo})"
        if self.lo.is_all(-_INF):
            return f"min(x, {self.hi})"
        return f"clip(x, {self.lo}, {self.hi})"


@dataclass(frozen=True, slots=True)
class Round(Step):
    """y = nearest whole number, ties to even."""

    def __str__(self) -> str:
        return "round(x)"


@dataclass(frozen=True, slots=True)
class Eltwise(Step):
    """y = alg(x, alpha, beta), as oneDNN's table of eltwise algorithms defines it.

    Parameters
    ----------
    alg : str
        Name of a function in oneDNN's table without ``eltwise_``, such as ``"relu"``.
    alpha, beta : float
        Parameters of the function; 0 where it has none.
    """

    alg: str
    alpha: float = 0.0
    beta: float = 0.0

    def __post_init__(self) -> None:
        _set(self, "alg", one_of("alg", self.alg, _ELTWISE_ALGS))
        names = ("alpha", "beta")
        for name in names:
            is_open = self.alg.startswith("clip")
            _set(self, name, real(name, getattr(self, name), infinite=is_open, wide=True))
        for name in names[ALGS[self.alg].parameters :]:
            if getattr(self, name) != 0.0:
                raise ArgumentError(name, number(getattr(self, name)), f"0: {self.alg} ignores it")
        if self.alg.startswith("clip") and not (self.alpha <= self.beta and self.alpha < _INF):
            raise ArgumentError("alpha", number(self.alpha), f"at most beta = {number(self.beta)}")
        if self.alg == "soft_relu" and self.alpha == 0.0:
            raise ArgumentError("alpha", "0", "another number: soft_relu divides by alpha")

    def __str__(self) -> str:
        values = (self.alpha, self.beta)[: ALGS[self.alg].parameters]
        if self.alg == "relu" and self.alpha == 0.0:
            return "relu(x)"
        return f"{self.alg}({', '.join(['x', *map(number, values)])})"


@dataclass(frozen=True, slots=True, init=False)
class PRelu(Step):
    """y = x if x >= 0 else slope*x.

    Parameters
    ----------
    slope : float, (C,) array_like or Vec
        Finite factors, for the tensor or for each channel.
    """

    slope: Vec

    def __init__(self, slope: VecLike) -> None:
        _set(self, "slope", _finite("slope", slope))

    def __str__(self) -> str:
        return f"prelu(x, {self.slope})"


@dataclass(frozen=True, slots=True)
class Sum(Step):
    """y = x + scale*(dst_before - zero_point).

    Parameters
    ----------
    scale, zero_point : float and int
        Real value of one step of dst_before, and its code for real 0.
    dtype : data type, optional
        Type as which dst_before is read. None: the type of dst.
    """

    scale: float = 1.0
    zero_point: int = 0
    dtype: str | None = None

    if TYPE_CHECKING:  # it takes more types than the fields have

        def __init__(
            self, scale: float = 1.0, zero_point: float = 0, dtype: DType | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        _set(self, "scale", real("scale", self.scale, wide=True))
        zero_point = real("zero_point", self.zero_point, wide=True)
        if not zero_point.is_integer():
            raise ArgumentError("zero_point", number(zero_point), "a whole number")
        _set(self, "zero_point", int(self.zero_point))
        if self.dtype is not None:
            _set(self, "dtype", dtypes.checked(self.dtype, "dtype", _SUM_DTYPES))

    def __str__(self) -> str:
        operand = "dst" if self.dtype is None else f"dst as {self.dtype}"
        if self.zero_point:
            sign, size = ("-", self.zero_point) if self.zero_point > 0 else ("+", -self.zero_point)
            operand = f"({operand} {sign} {size})"
        return f"x + {operand}" if self.scale == 1.0 else f"x + {number(self.scale)}*{operand}"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor that is known only when the chain runs, named in a step.

    Parameters
    ----------
    name : str
        The name under which a call passes it.
    dtype : data type
        Data type of its elements.
    extent : {"per_tensor", "per_channel", "per_row", "full"}
        One value, one per channel, one per row of a matmul, or one per element.
    """

    name: str
    dtype: str = "f32"
    extent: Extent = "full"

    if TYPE_CHECKING:  # it takes more types than the fields have

        def __init__(self, name: str, dtype: DType = "f32", extent: Extent = "full") -> None: ...

    def __post_init__(self) -> None:
        instance("name", self.name, str)
        _set(self, "name", str.__str__(self.name))
        if not self.name.isidentifier():
            raise ArgumentError("name", shown(self.name), "an identifier")
        _set(self, "dtype", dtypes.checked(self.dtype, "dtype", _SUM_DTYPES))
        _set(self, "extent", one_of("extent", self.extent, _EXTENTS))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, init=False)
class Binary(Step):
    """y = alg(x, operand); x is always on the left, so constant - x is Affine(-1, constant).

    Parameters
    ----------
    alg : {"add", "mul", "max", "min", "div", "sub", "ge", "gt", "le", "lt", "eq", "ne"}
        Operation of oneDNN; a comparison gives 0 or 1.
    operand : float, (C,) array_like, Vec or Leaf
        Finite constants (no 0 in div), for the tensor or each channel; or a tensor of the call.
    """

    alg: BinaryAlg
    operand: Vec | Leaf

    def __init__(self, alg: BinaryAlg, operand: VecLike | Leaf) -> None:
        alg = cast("BinaryAlg", one_of("alg", alg, _BINARY_ALGS))
        if not isinstance(operand, Leaf):
            operand = _finite("operand", operand)
            if alg == "div" and bool((operand.values() == 0.0).any()):
                raise ArgumentError("operand", str(operand), "no zero: it divides")
        _set(self, "alg", alg)
        _set(self, "operand", operand)

    def __str__(self) -> str:
        symbol = _SYMBOLS.get(self.alg)
        return f"x {symbol} {self.operand}" if symbol else f"{self.alg}(x, {self.operand})"


def _finite(name: str, value: VecLike) -> Vec:
    vec = constant(name, value)
    if not vec.is_finite:
        raise ArgumentError(name, str(vec), "finite numbers")
    return vec


def _same_channels(name: str, left: Vec, right: Vec) -> None:
    if left.array is not None and right.array is not None and len(left.array) != len(right.array):
        raise ShapeError(name, f"{right.channels} channels", f"{left.channels}, or one value")


@dataclass(frozen=True, slots=True, init=False)
class Chain:
    """Steps applied one after the other to one value.

    Parameters
    ----------
    *steps : Step or Chain
        Steps in order of application. A chain among them is spliced in.

    Attributes
    ----------
    channels : int or None
        How many channels the constants have; None: all are per tensor.

    Raises
    ------
    ShapeError
        Two steps disagree about the number of channels.
    DTypeError
        Two sums read dst as different types, or two steps name one leaf in different ways.

    Examples
    --------
    >>> from pyonednn_q.expr.steps import Affine, Clip
    >>> print(Chain(Clip(0, 6), Affine(0.5, 1)))
    clip(x, 0, 6) > 0.5*x + 1
    """

    steps: tuple[Step, ...]
    channels: int | None = field(init=False, repr=False, compare=False)

    def __init__(self, *steps: Step | Chain) -> None:
        flat: list[Step] = []
        for step in steps:
            if isinstance(step, Chain):
                flat.extend(step.steps)
            elif isinstance(step, Step):
                flat.append(step)
            else:
                raise ArgumentError("steps", type(step).__name__, "steps or chains")
        count: int | None = None
        for index, step in enumerate(flat):
            channels = step.channels
            if count is not None and channels not in {None, count}:
                name = f"steps[{index}]"
                raise ShapeError(name, f"{channels} channels", f"{count} as before it")
            count = channels or count
        _set(self, "steps", tuple(flat))
        _set(self, "channels", count)
        if len(flat) > 1:
            _check_readings(flat)

    def __add__(self, other: Chain) -> Chain:
        if not isinstance(other, Chain):
            return NotImplemented
        return Chain(*self.steps, *other.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Chain: ...
    def __getitem__(self, index: int | slice) -> Step | Chain:
        if isinstance(index, slice):
            return Chain(*self.steps[index])
        return self.steps[whole("index", index)]

    def __str__(self) -> str:
        return " > ".join(map(str, self.steps)) or "x"


def _check_readings(steps: Iterable[Step]) -> None:
    """Refuse a tensor that is read in two ways: its bytes mean one thing."""
    readings: dict[str, str] = {}
    for index, step in enumerate(steps):
        name, reading = _reading(step)
        before = readings.setdefault(name, reading)
        if reading != before:
            argument = f"steps[{index}]"
            raise DTypeError(argument, f"{name} as {reading}", f"{before}, as before it")


def _reading(step: Step) -> tuple[str, str]:
    """Name the tensor that a step reads beside x, and its type."""
    if isinstance(step, Sum):
        return "dst", step.dtype or "its own type"
    if isinstance(step, Binary) and isinstance(step.operand, Leaf):
        return f"operand {step.operand}", f"{step.operand.extent} {step.operand.dtype}"
    return "", ""
