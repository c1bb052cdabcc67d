"""Trial: a new primitive run once on seeded data, and compared with what was asked of it.

Sources hold codes of the whole range in one half and of the least size in the other, so that not
every result saturates. All places of dst are compared where that takes no more than `MOST_MACS`
multiplications in float64; of larger problems the corners, and places drawn evenly. The primitive
itself always runs at full size: a smaller problem could take another kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.compose.convolution import ConvProblem, DeconvProblem
from pyonednn_q.compose.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.compose.meaning import Meaning
from pyonednn_q.compose.places import Places
from pyonednn_q.compose.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.compose.saturation import pair_overflow
from pyonednn_q.errors import ArgumentError, SelfCheckError
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.steps import Binary, BinaryAlg, Eltwise, Leaf, PRelu, Round, Step, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.native import runtime

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyonednn_q.compose.attr import Scale
    from pyonednn_q.compose.primitive import DenseProblem
    from pyonednn_q.compose.tensor import TensorSpec
    from pyonednn_q.native.prepared import Prepared

__all__ = ["Draw", "compare", "try_out"]

Array = np.ndarray[Any, Any]

_DENSE = (ConvProblem, DeconvProblem, InnerProductProblem, MatMulProblem)
_WANTED = "False: this has no model beside the kernels"


class Draw:
    """Seeded data."""

    def __init__(self, seed: int = 7) -> None:
        self._rng = np.random.default_rng(seed)

    def source(self, spec: TensorSpec, zero_point: int = 0) -> Array:
        """Return values of the whole range in one half, close to `zero_point` in the other."""
        rng = self._rng
        loud: Array
        if dtypes.is_float(spec.dtype):
            loud = rng.standard_normal(spec.dims)
            quiet = loud / 64
        else:
            least, greatest = dtypes.qmin(spec.dtype), dtypes.qmax(spec.dtype)
            loud = rng.integers(least, greatest + 1, spec.dims)
            quiet = np.clip(zero_point + rng.integers(-1, 2, spec.dims), least, greatest)
        made: Array = loud.astype(dtypes.numpy_dtype(spec.dtype))
        axis = max(
            range(spec.ndim), key=lambda i: (spec.dims[i] > 1 and i != 1, i != spec.ndim - 1)
        )
        half = [slice(None)] * spec.ndim
        half[axis] = slice(spec.dims[axis] // 2, None)
        made[tuple(half)] = quiet[tuple(half)]
        return made

    def operand(self, dims: tuple[int, ...], dtype: str) -> Array:
        """Return values of both signs from which a result can be divided."""
        if dtypes.is_float(dtype):
            size = self._rng.uniform(0.5, 2.0, dims) * self._rng.choice([-1.0, 1.0], dims)
            return np.asarray(size, dtypes.numpy_dtype(dtype))
        low = max(dtypes.qmin(dtype), -9)
        return self._rng.integers(1 if low >= 0 else low, 10, dims).astype(
            dtypes.numpy_dtype(dtype)
        )


def compare(
    places: Places,
    meaning: Meaning,
    dst: Array,
    made_by: Prepared,
    src: Array,
    wei: Array,
    *,
    before: Array | None = None,
    operands: Mapping[str, Array] | None = None,
    packed: Array | None = None,
) -> None:
    """Refuse a result that is not what was asked.

    `packed` is what `made_by` was given for `wei`, where that is not the same.

    Raises
    ------
    SelfCheckError
        With the first differing place.
    """
    band = meaning.band(places, src, wei, before=before, operands=operands)
    got = places.take(dst)
    wrong = band.wrong(got)
    if made_by.kind != "reference":
        # What saturates in 16 bits was allowed to: `saturation` has spoken of it.
        multiplied = wei if packed is None else packed
        lost = pair_overflow(multiplied, made_by.problem, runtime.isa(), impl=made_by.impl)
        wrong[:, list(lost)] = False
    if not wrong.any():
        return
    place, channel = (int(i) for i in np.argwhere(wrong)[0])
    raise SelfCheckError(
        f"{made_by.problem.text()} {made_by.attr.text()}".rstrip(),
        made_by.impl,
        places.at(place, channel),
        float(got[place, channel]),
        (float(band.low[place, channel]), float(band.high[place, channel])),
        int(wrong.sum()),
        wrong.size,
    )


def try_out(
    prepared: Prepared,
    wei: Any,  # noqa: ANN401 - an array of any type, if at all
    bias: Any,  # noqa: ANN401
    values: Mapping[str, object],
) -> None:
    """Run a new primitive once, and compare it with what was asked.

    Parameters
    ----------
    prepared : Prepared
        A convolution, deconvolution, inner product or matmul.
    wei, bias, values
        As given to `prepare`.

    Raises
    ------
    SelfCheckError
        It computes something else.
    ArgumentError
        Something that has no model beside the kernels.
    """
    problem = prepared.problem
    if not isinstance(problem, _DENSE):
        raise ArgumentError("self_check", f"True for a {problem.kind}", _WANTED)
    if prepared.kind == "none":
        return
    draw = Draw()
    operands = _operands(prepared, values, draw)
    meaning = _meaning(problem, prepared, bias, values)
    src = draw.source(problem.src, meaning.src_zero_point)
    given = {"src": src, **operands}
    if wei is None:
        wei = given["wei"] = draw.operand(problem.wei.dims, problem.wei.dtype)
    out = prepared.empty()
    before = None
    if any(isinstance(op, SumPostOp) for op in prepared.attr.post_ops):
        out[...] = draw.source(problem.dst, meaning.dst_zero_point)
        read = next(op.dtype for op in prepared.attr.post_ops if isinstance(op, SumPostOp))
        before = out.copy().view(dtypes.numpy_dtype(read or problem.dst.dtype))
    dst = prepared(*(given[name] for name in prepared.inputs), out=out)
    full = {name: np.broadcast_to(array, problem.dst.dims) for name, array in operands.items()}
    places = Places.of(problem)
    wei = wei.reshape(problem.wei.dims)
    compare(places, meaning, dst, prepared, src, wei, before=before, operands=full)


def _operands(prepared: Prepared, values: Mapping[str, object], draw: Draw) -> dict[str, Array]:
    """Return the operands of binary post-ops, in dims that broadcast to dst's."""
    found = {}
    for index, op in enumerate(prepared.attr.post_ops):
        if isinstance(op, BinaryPostOp):
            name = f"post_op_{index}"
            given = values.get(name)
            array = draw.operand(op.src1.dims, op.src1.dtype) if given is None else given
            found[name] = np.asarray(array).reshape(op.src1.dims)
    return found


def _meaning(
    problem: DenseProblem,
    prepared: Prepared,
    bias: Any,  # noqa: ANN401
    values: Mapping[str, object],
) -> Meaning:
    attr, held = prepared.attr, prepared.held()
    points = {}
    for name in _POINTS:
        value = getattr(attr, name)
        if value is not None and value.mask:
            raise ArgumentError("self_check", f"True with {name} of mask {value.mask}", _WANTED)
        points[name] = int(held.get(name, np.zeros(1))[0])
    if attr.fpmath != "strict":
        raise ArgumentError("self_check", f"True with fpmath {attr.fpmath}", _WANTED)
    axis = problem.dst.ndim - 1 if problem.kind == "matmul" else 1
    dst_scale = attr.dst_scale
    if dst_scale is not None and dst_scale.mask not in {0, 1 << axis}:
        raise ArgumentError("self_check", f"True with dst_scale of mask {dst_scale.mask}", _WANTED)
    steps = [_step(op, f"post_op_{index}", values, axis) for index, op in enumerate(attr.post_ops)]
    return Meaning(
        scale=np.ones(1),
        src_scale=_spread(attr.src_scale, held.get("src_scale"), problem.src.dims),
        wei_scale=_spread(attr.wei_scale, held.get("wei_scale"), problem.wei.dims),
        dst_scale=held.get("dst_scale", np.ones(1)).astype(np.float64),
        src_zero_point=points["src_zero_point"],
        wei_zero_point=points["wei_zero_point"],
        dst_zero_point=points["dst_zero_point"],
        bias=None if bias is None else np.asarray(bias).reshape(-1).astype(np.float64),
        bias_in_acc=False,
        chain=Chain(*steps),
        dst=problem.dst.dtype,
    )


_POINTS = ("src_zero_point", "wei_zero_point", "dst_zero_point")


def _spread(scale: Scale | None, values: Array | None, dims: tuple[int, ...]) -> Array:
    """Return scales so that they broadcast to a tensor, those of groups repeated."""
    if scale is None or values is None:
        return np.ones(1)
    groups = (1,) * (len(dims) - len(scale.groups)) + scale.groups
    chosen = [bool(scale.mask >> axis & 1) for axis in range(len(dims))]
    shape = [d // g if on else 1 for d, g, on in zip(dims, groups, chosen, strict=True)]
    spread: Array = values.astype(np.float64).reshape(shape)
    for axis, group in enumerate(groups):
        spread = np.repeat(spread, group if chosen[axis] else 1, axis=axis)
    return spread


def _step(op: PostOp, name: str, values: Mapping[str, object], axis: int) -> Step:
    """Return the step that a post-op computes."""
    if isinstance(op, SumPostOp):
        return Sum(op.scale, op.zero_point, op.dtype)
    if isinstance(op, BinaryPostOp):
        return Binary(cast("BinaryAlg", op.alg), Leaf(name, op.src1.dtype))
    if isinstance(op, EltwisePostOp):
        parameters = (op.alpha, op.beta)[: ALGS[op.alg].parameters]
        return Round() if op.alg == "round" else Eltwise(op.alg, *parameters)
    if isinstance(op, PReluPostOp) and op.mask in {0, 1 << axis} and name in values:
        slopes = np.asarray(values[name], np.float64).reshape(-1)
        return PRelu(Vec(slopes) if op.mask else Vec(float(slopes[0])))
    raise ArgumentError("self_check", f"True with {op.text()}", _WANTED)
