"""Attributes of a primitive: which scales, zero points and post-ops, not their values.

A primitive fixes masks, data types and post-ops. The numbers are run-time arguments, named
``src_scale``, ``wei_zero_point``, ``post_op_0`` and so on: one primitive serves many calibrations.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyonednn_q import dtypes
from pyonednn_q.argument import flag, instance, integers, items, one_of, whole
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.primitive.post_ops import (
    MAX_POST_OPS,
    POST_OPS,
    BinaryPostOp,
    DepthwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.tensor import MAX_NDIM, Operation, cross

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.primitive.problem import Problem
    from pyonednn_q.primitive.tensor import TensorSpec

_FPMATH_MODES = ("strict", "bf16", "f16", "any", "tf32")
_ACCUMULATION_MODES = ("strict", "relaxed", "any", "s32", "f32", "f16")

SCALED = ("src", "src1", "wei", "dst")
SHIFTED = ("src", "wei", "dst")
_SCALES = tuple(f"{name}_scale" for name in SCALED)
_ZERO_POINTS = tuple(f"{name}_zero_point" for name in SHIFTED)

_SCALE_DTYPES = ("f32", "bf16", "f16")
_ZERO_POINT_DTYPES = ("s32", "s8", "u8", "s4", "u4")


@dataclass(frozen=True, slots=True)
class Scale:
    """The structure of one tensor's scales.

    Parameters
    ----------
    mask : int
        Bit i set: one scale per index (or group of indices) of dimension i. 0: one scale.
    dtype : str
        f32, bf16 or f16.
    groups : tuple of int
        Numbers of neighbours that share a scale, along the last dimensions; empty means 1
        everywhere.
    """

    mask: int = 0
    dtype: str = "f32"
    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "dtype", dtypes.checked(self.dtype, "dtype of a scale", _SCALE_DTYPES)
        )
        _check_structure(self)


@dataclass(frozen=True, slots=True)
class ZeroPoint:
    """The structure of one tensor's zero points.

    Parameters
    ----------
    mask : int
        Bit set of the dims along which values differ: see `Scale`.
    dtype : str
        s32; s8, u8, s4 and u4 take slower kernels, and dst takes s32 only.
    groups : tuple of int
        Numbers of neighbours that share a value: see `Scale`.
    """

    mask: int = 0
    dtype: str = "s32"
    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "dtype", dtypes.checked(self.dtype, "dtype of a zero point", _ZERO_POINT_DTYPES)
        )
        _check_structure(self)


@dataclass(frozen=True, slots=True)
class Attr:
    """Attributes of a primitive: scales, zero points, post-ops and modes.

    Parameters
    ----------
    src_scale, src1_scale, wei_scale, dst_scale : Scale, optional
        Scales of the tensors. None: no scale, which is not the same primitive as a scale of 1.
    src_zero_point, wei_zero_point, dst_zero_point : ZeroPoint, optional
        Zero points of the tensors. None: no zero point.
    post_ops : tuple of PostOp
        Post-ops, at most 32, applied in order.
    fpmath : str
        Precision to which f32 arithmetic may be lowered; no effect on int8.
    fpmath_apply_to_int : bool
        Compute integer weights in that precision (weight-only quantization).
    accumulation : str
        Data type in which sums may be kept. int8 refuses an explicit one; leave it strict.
    deterministic : bool
        The same result on every run.

    Attributes
    ----------
    structures : mapping of str to Scale or ZeroPoint
        The scales and zero points that there are, by their names: first scales.
    names : tuple of str
        The names of `runtime_names`, on whatever problem.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument, what came and what would do.
    """

    src_scale: Scale | None = None
    src1_scale: Scale | None = None
    wei_scale: Scale | None = None
    dst_scale: Scale | None = None
    src_zero_point: ZeroPoint | None = None
    wei_zero_point: ZeroPoint | None = None
    dst_zero_point: ZeroPoint | None = None
    post_ops: tuple[PostOp, ...] = ()
    fpmath: str = "strict"
    fpmath_apply_to_int: bool = False
    accumulation: str = "strict"
    deterministic: bool = False
    structures: MappingProxyType[str, Scale | ZeroPoint] = field(
        init=False, repr=False, compare=False
    )
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "post_ops", items("post_ops", self.post_ops, *POST_OPS))
        structures: dict[str, Scale | ZeroPoint] = {}
        for name in (*_SCALES, *_ZERO_POINTS):
            value = getattr(self, name)
            if value is not None:
                instance(name, value, Scale if name.endswith("_scale") else ZeroPoint)
                structures[name] = value
        object.__setattr__(self, "structures", MappingProxyType(structures))
        if self.dst_zero_point is not None and self.dst_zero_point.dtype != "s32":
            got = self.dst_zero_point.dtype
            raise DTypeError(argument="dst_zero_point", got=got, wanted="s32")
        for name in ("fpmath_apply_to_int", "deterministic"):
            flag(name, getattr(self, name))
        if len(self.post_ops) > MAX_POST_OPS:
            got = f"{len(self.post_ops)} post-ops"
            raise ArgumentError(argument="post_ops", got=got, wanted=f"at most {MAX_POST_OPS}")
        object.__setattr__(self, "fpmath", one_of("fpmath", self.fpmath, _FPMATH_MODES))
        object.__setattr__(
            self, "accumulation", one_of("accumulation", self.accumulation, _ACCUMULATION_MODES)
        )
        object.__setattr__(self, "names", (*structures, *_operands(self.post_ops)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Attr, tuple(getattr(self, each.name) for each in fields(self) if each.init)

    def scale(self, tensor: str) -> Scale | None:
        """Return the scale of a tensor: src, src1, wei or dst."""
        one_of("tensor", tensor, SCALED)
        value: Scale | None = getattr(self, f"{tensor}_scale")
        return value

    def zero_point(self, tensor: str) -> ZeroPoint | None:
        """Return the zero point of a tensor: src, wei or dst."""
        one_of("tensor", tensor, SHIFTED)
        value: ZeroPoint | None = getattr(self, f"{tensor}_zero_point")
        return value

    def boundary(self) -> dict[str, Any]:
        """Return what the extension receives, as plain tuples."""
        rows: dict[str, list[Any]] = {"scale": [], "zero_point": []}
        for name, value in self.structures.items():
            tensor, _, kind = name.partition("_")
            rows[kind].append((tensor, value.mask, value.dtype, value.groups))
        return {
            "scales": tuple(rows["scale"]),
            "zero_points": tuple(rows["zero_point"]),
            "post_ops": tuple(post_op.boundary() for post_op in self.post_ops),
            "fpmath": (self.fpmath, self.fpmath_apply_to_int),
            "accumulation": self.accumulation,
            "deterministic": self.deterministic,
        }

    def runtime_names(self, problem: Problem) -> tuple[str, ...]:
        """Return the names of the values that a call on `problem` needs besides its tensors.

        In this order: scales, zero points (src, src1, wei, dst), then operands of post-ops:
        ``post_op_<i>`` for binary and prelu, ``post_op_<i>_wei`` and ``post_op_<i>_bias`` for
        depthwise.

        Raises
        ------
        ArgumentError
            Errors of `check`.
        """
        self.check(problem)
        return self.names

    def check(self, problem: Problem) -> None:
        """Refuse what the library would accept on `problem` and misread.

        Raises
        ------
        ArgumentError
            A scale or zero point of a tensor that the problem does not have.
        ShapeError
            A mask beyond the tensor's rank, groups that do not divide, an operand that does not
            broadcast to dst.
        DTypeError
            A sum that reads dst as a type of another size.
        """
        instance("problem", problem, Operation)
        tensors = problem.tensors
        for argument, value in self.structures.items():
            name, _, kind = argument.partition("_")
            if name not in tensors:
                wanted = f"None: a {problem.kind} has no {name}"
                raise ArgumentError(argument, f"a {kind.replace('_', ' ')}", wanted)
            _check_fits(argument, value, tensors[name].dims)
        for index, post_op in enumerate(self.post_ops):
            _check_post_op(f"post_ops[{index}]", post_op, tensors["dst"])

    def text(self) -> str:
        """Return one readable line, in the order in which things happen.

        Examples
        --------
        >>> from pyonednn_q.primitive.post_ops import EltwisePostOp
        >>> Attr(wei_scale=Scale(1), post_ops=(EltwisePostOp("relu"),)).text()
        'wei_scale:1 eltwise_relu'
        """
        before = ("src_scale", "src_zero_point", "src1_scale", "wei_scale", "wei_zero_point")
        words = [_word(name, getattr(self, name)) for name in before]
        words += [post_op.text() for post_op in self.post_ops]
        words += [_word(name, getattr(self, name)) for name in ("dst_scale", "dst_zero_point")]
        if self.fpmath != "strict" or self.fpmath_apply_to_int:
            words.append(f"fpmath:{self.fpmath}" + (":int" if self.fpmath_apply_to_int else ""))
        if self.accumulation != "strict":
            words.append(f"accumulation:{self.accumulation}")
        if self.deterministic:
            words.append("deterministic")
        return " ".join(filter(None, words))


def _operands(post_ops: tuple[PostOp, ...]) -> Iterator[str]:
    """Give the names of the operands of post-ops."""
    for index, post_op in enumerate(post_ops):
        match post_op:
            case BinaryPostOp() | PReluPostOp():
                yield f"post_op_{index}"
            case DepthwisePostOp(bias_dtype=bias):
                yield f"post_op_{index}_wei"
                yield from () if bias is None else (f"post_op_{index}_bias",)


def _word(name: str, value: Scale | ZeroPoint | None) -> str:
    if value is None:
        return ""
    usual = "f32" if isinstance(value, Scale) else "s32"
    word = f"{name}:{value.mask}"
    if value.dtype != usual or value.groups:
        word += f":{value.dtype}"
    return f"{word}:{cross(value.groups)}" if value.groups else word


def _check_structure(value: Scale | ZeroPoint) -> None:
    object.__setattr__(value, "mask", whole("mask", value.mask, lo=0, hi=2**MAX_NDIM - 1))
    groups = integers("groups", value.groups)
    object.__setattr__(value, "groups", groups)
    if groups and min(groups) < 1:
        raise ShapeError(argument="groups", got=str(groups), wanted="values of at least 1")


def _check_fits(argument: str, value: Scale | ZeroPoint, dims: tuple[int, ...]) -> None:
    if value.mask >> len(dims):
        wanted = f"bits of {len(dims)} dimensions only"
        raise ShapeError(argument, f"mask {value.mask}", wanted)
    if not value.groups:
        return
    if len(value.groups) > len(dims):
        wanted = f"at most {len(dims)}, one per dimension"
        raise ShapeError(argument, f"groups {value.groups}", wanted)
    grouped = dims[len(dims) - len(value.groups) :]
    if any(dim % group for dim, group in zip(grouped, value.groups, strict=True)):
        raise ShapeError(argument, f"groups {value.groups}", f"divisors of {grouped}")


def _check_post_op(argument: str, post_op: PostOp, dst: TensorSpec) -> None:
    match post_op:
        case SumPostOp(dtype=str(dtype)) if dtypes.bits(dtype) != dtypes.bits(dst.dtype):
            raise DTypeError(argument, dtype, f"a type as wide as dst's {dst.dtype}")
        case PReluPostOp(mask=mask) if mask >> dst.ndim:
            raise ShapeError(argument, f"mask {mask}", f"bits of {dst.ndim} dimensions only")
        case BinaryPostOp(src1=src1):
            fits = src1.ndim == dst.ndim and all(
                have in (1, want) for have, want in zip(src1.dims, dst.dims, strict=True)
            )
            if not fits:
                wanted = f"{dst.ndim} dimensions, each 1 or as in {dst.dims}"
                raise ShapeError(argument, f"src1 of {src1.dims}", wanted)
