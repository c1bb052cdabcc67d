"""Operators as steps of a program: a primitive, what makes its source, or a call of Python."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.compose.stages import RESIDUAL, SRC
from pyonednn_q.dtypes import Array
from pyonednn_q.native.program import Pass
from pyonednn_q.network.moves import SAME
from pyonednn_q.primitive.dense_facts import ACC_MAP, SRC_SCALE, SRC_ZERO_POINT
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyonednn_q.network.lowering import Lowering
    from pyonednn_q.ops.operator import Operator
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.weights import Parts

_WORTH = (SRC_SCALE, SRC_ZERO_POINT, ACC_MAP)


def lower_operator(at: Lowering, operator: Operator, reads: Mapping[str, str], dst: str) -> None:
    """Add an operator's primitive; or the operator, where more runs than that.

    Parameters
    ----------
    at : Lowering
        Steps and tensors that are there.
    operator : Operator
        Operator that runs.
    reads : mapping of str to str
        Tensors by the names of a call's arguments: ``"src"``, ``"residual"``, and leaves.
    dst : str
        Name of the result.
    """
    spec = at.specs[reads[SRC]]
    if operator.in_groups:
        _lower_groups(at, operator, reads, dst)
        return
    # Of a dynamic source each call makes codes.
    is_dynamic = operator.settings.dynamic is not None
    planned = operator.prepare(spec.dims, None if is_dynamic else spec.dtype)
    if operator.settings.requantize is None and (
        _lower_by_range(at, operator, planned, reads, dst)
        if is_dynamic
        else _lower_codes(at, operator, planned, reads, dst)
    ):
        return
    _lower_call(at, operator, planned, reads, dst)


def _lower_groups(at: Lowering, operator: Operator, reads: Mapping[str, str], dst: str) -> None:
    """Add the pass of a layer with weights in groups; or the layer, where Python does more."""
    spec = at.specs[reads[SRC]]
    channels = operator.weights.dims[operator.axis]
    result = TensorSpec.dense((*spec.dims[:-1], channels), "f32")
    step = operator.group_pass(spec.dims) if spec.dtype == "f32" and len(reads) == 1 else None
    if step is not None:
        src = at.in_layout(reads[SRC], TensorSpec.dense(spec.dims, "f32"))
        at.add(step, (src,), dst, result)
        return
    _add_call(at, operator, reads, dst, result)


def _lower_codes(
    at: Lowering, operator: Operator, planned: Planned, reads: Mapping[str, str], dst: str
) -> bool:
    """Add the primitive of a source that it takes; False where more runs than that."""
    spec, parts = at.specs[reads[SRC]], operator.weights.parts
    wanted = planned.seen.layout(SRC)
    dims = spec.dims if parts is None else parts.dims(spec.dims)
    operands = _operands(at, planned, reads)
    if operands is None or wanted.dims != dims or wanted.dtype != spec.dtype:
        return False
    if planned.reads is None or set(planned.reads) != {SRC, *operands}:
        return False
    tensors = {SRC: _in_parts(at, reads[SRC], parts, wanted)}
    tensors |= {leaf: at.in_layout(*operand) for leaf, operand in operands.items()}
    before = _before(at, planned, reads, planned.dst)
    at.add(planned.seen, tuple(tensors[n] for n in planned.reads), dst, planned.dst, before)
    return True


def _lower_by_range(
    at: Lowering, operator: Operator, planned: Planned, reads: Mapping[str, str], dst: str
) -> bool:
    """Add a pass that makes codes of a source by its range, and the primitive; False as above."""
    src = reads[SRC]
    spec, operands = at.specs[src], _operands(at, planned, reads)
    making = operator.making_codes(spec.dims) if spec.dtype == "f32" else None
    if operands is None or making is None or planned.reads is None:
        return False
    primitive, codes_pass, (*places, nbytes) = making
    if not {SRC, *operands} <= set(planned.reads) <= {SRC, *_WORTH, *operands}:
        return False
    dynamic = operator.settings.dynamic
    by_row = dynamic is not None and dynamic.extent == "per_row"
    dense = TensorSpec.dense(spec.dims, "f32")
    src = at.in_layout(src, dense) if by_row else at.without_gaps(src)
    buffer = at.fresh(dst)
    at.add(codes_pass, (src,), buffer, TensorSpec.dense((nbytes,), "u8"))
    tensors = []
    for leaf, name, place in zip(planned.reads, primitive.inputs, places, strict=True):
        if leaf in operands:
            tensors.append(at.in_layout(*operands[leaf]))
            continue
        seen, lies = at.fresh(dst), primitive.layout(name)
        if leaf == SRC:
            at.view(seen, buffer, TensorSpec(spec.dims, lies.dtype, at.specs[src].strides), place)
            seen = _in_parts(at, seen, operator.weights.parts, lies)
        else:
            at.view(seen, buffer, lies, place)
        tensors.append(seen)
    result = primitive.layout("dst")
    at.add(primitive, tuple(tensors), dst, result, _before(at, planned, reads, result))
    return True


def _operands(
    at: Lowering, planned: Planned, reads: Mapping[str, str]
) -> dict[str, tuple[str, TensorSpec]] | None:
    """Return tensors of a chain's leaves, and their layouts; None for a leaf with other dims."""
    others = {SRC, RESIDUAL} if planned.carries_sum else {SRC}
    named = {leaf: name for leaf, name in reads.items() if leaf not in others}
    dst = planned.dst
    if any(at.specs[name].dims != dst.dims for name in named.values()):
        return None
    return {leaf: (name, replace(dst, dtype=at.specs[name].dtype)) for leaf, name in named.items()}


def _before(
    at: Lowering, planned: Planned, reads: Mapping[str, str], dst: TensorSpec
) -> str | None:
    """Return what a Sum reads, lying as its result."""
    name = reads.get(RESIDUAL)
    if name is None or not planned.carries_sum:
        return None
    return at.in_layout(name, replace(dst, dtype=at.specs[name].dtype))


def _in_parts(at: Lowering, src: str, parts: Parts | None, wanted: TensorSpec) -> str:
    """Return a source of codes in a layout, with the channels repeated that have several parts."""
    if parts is None:
        return at.in_layout(src, wanted)
    spec = at.specs[src]
    lies = TensorSpec.dense if parts.axis == -1 else TensorSpec.channels_last
    src = at.in_layout(src, lies(spec.dims, spec.dtype))
    dst = at.fresh(src)
    at.reserve(dst, lies(parts.dims(spec.dims), spec.dtype))
    rows, to = prod(spec.dims) // (parts.groups * parts.channels), 0
    for start, stop in ((0, parts.channels), *parts.repeated):
        # Rows of groups, of which some channels go next to those that are there.
        dims = (rows, parts.groups, stop - start)
        strides = [(parts.groups * width, width, 1) for width in (parts.channels, parts.widened)]
        seen, into = at.fresh(src), at.fresh(dst)
        at.view(seen, src, TensorSpec(dims, spec.dtype, strides[0]), start)
        at.view(into, dst, TensorSpec(dims, spec.dtype, strides[1]), to)
        at.write(Pass.look_up(SAME, dims, *strides), (seen,), into)
        to += stop - start
    return at.in_layout(dst, wanted)


def _lower_call(
    at: Lowering, operator: Operator, planned: Planned, reads: Mapping[str, str], dst: str
) -> None:
    params = operator.settings.dst_q
    dtype = planned.dst.dtype if params is None else params.dtype
    _add_call(at, operator, reads, dst, replace(planned.dst, dtype=dtype))


def _add_call(
    at: Lowering, operator: Operator, reads: Mapping[str, str], dst: str, result: TensorSpec
) -> None:
    def run(*arrays: Array) -> None:
        *sources, to = arrays
        named = dict(zip(reads, sources, strict=True))
        np.copyto(to, operator(named.pop(SRC), **named))

    at.add(run, tuple(reads.values()), dst, result)
