"""The options that make benchdnn run a plan's attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyonednn_q.compose.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.compose.post_ops import BinaryPostOp, EltwisePostOp, PostOp, PReluPostOp, SumPostOp
from pyonednn_q.compose.tensor import cross
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.vec import number

if TYPE_CHECKING:
    from pyonednn_q.compose.convolution import ConvProblem, DeconvProblem
    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.compose.primitive import DenseProblem

__all__ = ["command", "options"]

# benchdnn names masks by the dimensions they hold. Its per_oc means another mask per primitive.
_POLICIES = {
    0: "common",
    1: "per_dim_0",
    2: "per_dim_1",
    3: "per_dim_01",
    4: "per_dim_2",
    8: "per_dim_3",
}


_DRIVERS = {
    "convolution": "conv",
    "deconvolution": "deconv",
    "inner_product": "ip",
    "matmul": "matmul",
}


def command(plan: Plan, problem: DenseProblem) -> str:
    """Return the whole line: driver, options, layouts and shapes."""
    words = ["benchdnn", f"--{_DRIVERS[problem.kind]}"]
    if isinstance(problem, MatMulProblem):
        words += [options(plan), "--wtag=any"]
        words.append(f"{cross(problem.src.dims)}:{cross(problem.wei.dims)}")
        return " ".join(words)
    words.append(options(plan))
    words += [] if isinstance(problem, InnerProductProblem) else ["--stag=axb", "--dtag=axb"]
    words.append(_shapes(problem))
    return " ".join(words)


def _shapes(problem: ConvProblem | DeconvProblem | InnerProductProblem) -> str:
    batch, ic = problem.src.dims[:2]
    letters = "dhw"[5 - problem.src.ndim :]
    parts = [f"mb{batch}ic{ic}{_each('i', letters, problem.src.dims[2:])}oc{problem.oc}"]
    if isinstance(problem, InnerProductProblem):
        return parts[0]
    gaps = [dilation - 1 for dilation in problem.dilation]
    parts += [
        _each("o", letters, problem.dst.dims[2:]),
        _each("k", letters, problem.window.kernel),
        _each("s", letters, problem.strides),
        _each("p", letters, problem.padding_lo),
        _each("d", letters, gaps) if any(gaps) else "",
    ]
    return (f"g{problem.groups}" if problem.groups > 1 else "") + "".join(parts)


def _each(name: str, letters: str, values: Sequence[int]) -> str:
    return "".join(f"{name}{axis}{value}" for axis, value in zip(letters, values, strict=True))


def options(plan: Plan) -> str:
    """Return data types, bias, scales, zero points and post-ops as benchdnn takes them.

    Scales of more than one value are drawn by benchdnn itself: its options have room for one.
    """
    facts, constants = plan.facts, dict(plan.constants)
    words = [f"--dt={facts.src}:{facts.wei}:{plan.dst}", *_bias(plan)]
    scales, points = [], []
    for tensor in ("src", "wei", "dst"):
        scale, point = plan.attr.scale(tensor), plan.attr.zero_point(tensor)
        if scale is not None:
            value = constants[f"{tensor}_scale"]
            shown = f":{number(value.least)}" if scale.mask == 0 else ""
            scales.append(f"{tensor}:{_policy(scale.mask)}{shown}")
        if point is not None:
            value = constants[f"{tensor}_zero_point"]
            points.append(f"{tensor}:{_policy(point.mask)}:{number(value.least)}")
    post_ops = [_post_op(op) for op in plan.post_ops]
    for name, parts in (("scales", scales), ("zero-points", points), ("post-ops", post_ops)):
        if parts:
            words.append(f"--attr-{name}={'+'.join(parts)}")
    return " ".join(words)


def _bias(plan: Plan) -> list[str]:
    """Say whether there is a bias, in words that benchdnn has known since 3.7."""
    if plan.facts.kind == "matmul":
        # Its mask is by default that of two dimensions.
        mask = [] if plan.facts.ndims == 2 else [f"--bia_mask={1 << plan.facts.axis}"]
        return [f"--bia_dt={plan.bias_dtype}", *mask] if plan.has_bias else []
    if plan.has_bias and plan.bias_dtype == "f32":
        return ["--dir=FWD_B"]
    # Another type than f32 can be named since 3.10 only.
    return ["--dir=FWD_I", *([f"--bia-dt={plan.bias_dtype}"] if plan.has_bias else [])]


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
