"""The options that make benchdnn run a plan, or a problem with attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.vec import Vec, number
from pyonednn_q.primitive.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.tensor import TensorSpec, cross

if TYPE_CHECKING:
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.convolution import ConvProblem, DeconvProblem
    from pyonednn_q.primitive.dense_facts import DenseProblem, PrimitiveFacts

# benchdnn names masks by the dimensions they hold. Its per_oc means another mask per primitive.
_POLICIES = {
    0: "common",
    1: "per_dim_0",
    2: "per_dim_1",
    3: "per_dim_01",
    4: "per_dim_2",
    8: "per_dim_3",
}

# Its word for each kind of problem.
DRIVERS = {
    "convolution": "conv",
    "deconvolution": "deconv",
    "inner_product": "ip",
    "matmul": "matmul",
}


_SCALE_OF_CALL, _POINT_OF_CALL = Vec(0.5), Vec(1.0)


def line(problem: DenseProblem, attr: Attr, constants: Mapping[str, Vec]) -> str:
    """Return the whole line that runs a problem with attributes.

    Parameters
    ----------
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        Problem as it is prepared.
    attr : Attr
        Attributes of the primitive.
    constants : mapping of str to Vec
        Values of scales and zero points, by their run-time names. For those that are missing, as
        they come with each call, 0.5 and 1 stand: what is 1 and 0, benchdnn leaves out.

    Raises
    ------
    ArgumentError
        Attributes that benchdnn has no words for, or that are not told here.
    """
    ndims = problem.dst.ndim
    types = ":".join(spec.dtype for spec in (problem.src, problem.wei, problem.dst))
    bias = None if problem.bias is None else problem.bias.dtype
    words = ["benchdnn", f"--{DRIVERS[problem.kind]}", f"--dt={types}"]
    words += [*_bias(problem.kind, bias, ndims), *_attributes(attr, constants)]
    if isinstance(problem, MatMulProblem):
        words += ["--wtag=any", f"{cross(problem.src.dims)}:{cross(problem.wei.dims)}"]
        return " ".join(words)
    if problem.window is not None:
        words += [f"--stag={_tag(problem.src)}", f"--dtag={_tag(problem.dst)}"]
    words.append(_shapes(problem))
    return " ".join(words)


def _tag(spec: TensorSpec) -> str:
    if spec.strides is None:
        return "any"
    return "axb" if spec.is_channels_last else "abx"


def _shapes(problem: ConvProblem | DeconvProblem | InnerProductProblem) -> str:
    batch, ic = problem.src.dims[:2]
    letters = "dhw"[5 - problem.src.ndim :]
    parts = [f"mb{batch}ic{ic}{_each('i', letters, problem.src.dims[2:])}oc{problem.oc}"]
    window = problem.window
    if window is None:
        return parts[0]
    gaps = [dilation - 1 for dilation in window.dilation]
    parts += [
        _each("o", letters, problem.dst.dims[2:]),
        _each("k", letters, window.kernel),
        _each("s", letters, window.stride),
        _each("p", letters, window.padding_lo),
        _each("d", letters, gaps) if any(gaps) else "",
    ]
    return (f"g{problem.groups}" if problem.groups > 1 else "") + "".join(parts)


def _each(name: str, letters: str, values: Sequence[int]) -> str:
    return "".join(f"{name}{axis}{value}" for axis, value in zip(letters, values, strict=True))


def options(
    facts: PrimitiveFacts, bias: str | None, dst: str, attr: Attr, constants: Mapping[str, Vec]
) -> str:
    """Return data types, bias, scales, zero points and post-ops as benchdnn takes them.

    Scales of more than one value are drawn by benchdnn itself: its options have room for one.

    Parameters
    ----------
    facts : PrimitiveFacts
        Kind, dimensions and data types of source and weights.
    bias : str or None
        Data type of the bias.
    dst : str
        Data type that the primitive stores.
    attr : Attr
        The attributes.
    constants : mapping of str to Vec
        Values of scales, zero points and operands, by their run-time names.
    """
    words = [f"--dt={facts.src}:{facts.wei}:{dst}", *_bias(facts.kind, bias, facts.ndims)]
    return " ".join([*words, *_attributes(attr, dict(constants))])


def _attributes(attr: Attr, constants: Mapping[str, Vec]) -> list[str]:
    scales, points = [], []
    for tensor in ("src", "wei", "dst"):
        scale, point = attr.scale(tensor), attr.zero_point(tensor)
        if any(value is not None and value.groups for value in (scale, point)):
            raise ArgumentError("attr", "groups", "one value per index: groups are not told here")
        if scale is not None:
            value = constants.get(f"{tensor}_scale", _SCALE_OF_CALL)
            shown = f":{number(value.least)}" if scale.mask == 0 else ""
            scales.append(f"{tensor}:{_policy(scale.mask)}{shown}")
        if point is not None:
            value = constants.get(f"{tensor}_zero_point", _POINT_OF_CALL)
            points.append(f"{tensor}:{_policy(point.mask)}:{number(value.least)}")
    post_ops = [_post_op(op) for op in attr.post_ops]
    named = (("scales", scales), ("zero-points", points), ("post-ops", post_ops))
    return [f"--attr-{name}={'+'.join(parts)}" for name, parts in named if parts]


def _bias(kind: str, dtype: str | None, ndims: int) -> list[str]:
    """Say whether there is a bias, in words that benchdnn has known since 3.7."""
    if kind == "matmul":
        # Its mask is by default that of two dimensions.
        mask = [] if ndims == 2 else [f"--bia_mask={1 << ndims - 1}"]
        return [] if dtype is None else [f"--bia_dt={dtype}", *mask]
    if dtype == "f32":
        return ["--dir=FWD_B"]
    # Another type than f32 can be named since 3.10 only.
    return ["--dir=FWD_I", *([] if dtype is None else [f"--bia-dt={dtype}"])]


def _policy(mask: int) -> str:
    if mask not in _POLICIES:
        raise ArgumentError("mask", bin(mask), "one that benchdnn has a name for")
    return _POLICIES[mask]


def _post_op(op: PostOp) -> str:
    if isinstance(op, SumPostOp):
        parts = ["sum", number(op.scale), str(op.zero_point), op.dtype or ""]
        return ":".join(parts).rstrip(":")
    if isinstance(op, EltwisePostOp):
        if op.beta:
            return f"{op.alg}:{number(op.alpha)}:{number(op.beta)}"
        # clip and linear need both: their defaults are no zeros.
        if op.alpha or op.alg in {"clip", "clip_v2", "linear"}:
            return f"{op.alg}:{number(op.alpha)}" + (":0" if op.alg in _TWO else "")
        return op.alg
    if isinstance(op, BinaryPostOp):
        mask = sum(1 << axis for axis, dim in enumerate(op.src1.dims) if dim > 1)
        tag = "" if mask & (mask - 1) == 0 else ":axb" if len(op.src1.dims) > 3 else ":abx"
        return f"{op.alg}:{op.src1.dtype}:{mask}{tag}"
    if isinstance(op, PReluPostOp):
        return f"prelu:{_policy(op.mask)}"
    raise ArgumentError("post_op", type(op).__name__, "a post-op that plans hold")


_TWO = frozenset(("clip", "clip_v2", "linear", "hardsigmoid", "hardswish", "pow"))
