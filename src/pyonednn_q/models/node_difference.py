"""Differences of each node from another runtime's values, and the arithmetic that explains them.

Every node runs on the other runtime's values of what it reads, so that a difference is its own.
Arithmetics are tried until one gives all of theirs:

layers                the dialects and roundings of `explain_difference`; of weights in groups,
                      too, whose results are floats
operations on codes   the dialects of `emulate`
both                  values beside a tie, of the last rounding or of one on the way, where the
                      order of float32's roundings decides
floats                both as near to float64's values as any order of roundings is: `float_bound`
LSTMs of codes        each step, from the states that each runtime has, as near to float64's as
                      kernels are; those of a batch may share a range
functions of floats   both as near as the kernels of either were measured to be; of functions that
                      nobody measured the distances are told, and not judged

What none of them gives is unexplained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import emulate
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import Error
from pyonednn_q.graph import kinds
from pyonednn_q.inspection import explain_difference
from pyonednn_q.inspection.group_difference import runs_on_groups
from pyonednn_q.models.node_bounds import float_bound
from pyonednn_q.models.recurrence_difference import recurrence_told
from pyonednn_q.models.tie_reach import by_ties
from pyonednn_q.onnx.fused_node import CodeOperation
from pyonednn_q.ops.operator import Operator
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.onnx import Model
    from pyonednn_q.onnx.fused_node import FusedNode

__all__ = ["NodeDifference", "compared", "differences"]

Values = dict[str, Array]

_TABLE = "onnxruntime_table"  # of floats, whose last places follow from lengths that it fuses
_TIES = "float32 at ties"
_SUMS = "float32, in another order"
_FUNCTIONS = "float32, another approximation"


@dataclass(frozen=True, slots=True)
class NodeDifference:
    """Difference of a node from another runtime, on that runtime's values.

    Attributes
    ----------
    name, how, output : str
        Name of the node, how it ran, and the tensor that was compared.
    values, equal : int
        Number of values, and of values that are equal bit for bit.
    largest : float
        The greatest difference: in codes of integers, in units in the last place of the largest
        value of floats.
    arithmetic : str
        The name of what gives theirs: empty where all are equal, or where nothing does.
    words : str
        Arithmetic that gives all values; or what is known without one.
    unexplained : int
        Number of values that no arithmetic gives.
    """

    name: str
    how: str
    output: str
    values: int
    equal: int
    largest: float
    arithmetic: str = ""
    words: str = ""
    unexplained: int = 0

    @property
    def differs(self) -> bool:
        """Whether a value differs."""
        return self.equal < self.values

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def differences(
    model: Model, inputs: Mapping[str, Array], theirs: Mapping[str, Array]
) -> Iterator[NodeDifference]:
    """Yield what each node computes, in order, of those whose tensors the other runtime has.

    Parameters
    ----------
    model : Model
        Ours.
    inputs, theirs : mapping of str to ndarray
        The inputs of both, and the other runtime's tensors.
    """
    values = {**model.graph.constants, **inputs, **theirs}
    for node, call in zip(model.nodes, model.calls, strict=True):
        if any(name not in values for name in node.reads) or node.output not in theirs:
            continue
        ours = call(values)
        for name, array in zip(node.outputs, ours, strict=True):
            if name in theirs:
                yield _difference(node, name, array, values, model.graph.opsets)


def compared(name: str, ours: Array, theirs: Array) -> NodeDifference:
    """Compare two arrays, and look for no arithmetic."""
    apart, unit = _apart(ours, theirs)
    largest = float(apart.max(initial=0.0)) / unit
    equal = int(apart.size - np.count_nonzero(apart))
    return NodeDifference(name, "", name, apart.size, equal, largest)


def _apart(ours: Array, theirs: Array) -> tuple[Array, float]:
    """Return |ours − theirs|, infinite where one alone is no number, and the unit to tell it in."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return np.full(theirs.shape, np.inf), 1.0
    if ours.dtype.kind not in "fc":
        is_number = ours.dtype.kind in "iu"
        wide = (ours.astype(np.int64), theirs.astype(np.int64)) if is_number else (ours, theirs)
        apart = np.abs(wide[0] - wide[1]) if is_number else wide[0] != wide[1]
        return np.asarray(apart, np.float64), 1.0
    with np.errstate(all="ignore"):
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        gap = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        apart = np.where(same, 0.0, np.where(np.isfinite(gap), gap, np.inf))
        finite = np.abs(theirs[np.isfinite(theirs)])
        unit = float(np.spacing(finite.max())) if finite.size else 0.0
    return apart, unit or 1.0


def _difference(
    node: FusedNode, name: str, ours: Array, values: Values, opsets: Mapping[str, int]
) -> NodeDifference:
    theirs = values[name]
    apart, unit = _apart(ours, theirs)
    steps = apart / unit
    equal = int(apart.size - np.count_nonzero(apart))
    told: tuple[str, str, int] = ("", "", 0)
    if equal < apart.size:
        told = _told(node, name, ours, theirs, steps, values, opsets)
    largest = float(steps.max(initial=0.0))
    return NodeDifference(node.name, node.how, name, apart.size, equal, largest, *told)


def _told(
    node: FusedNode,
    name: str,
    ours: Array,
    theirs: Array,
    steps: Array,
    values: Values,
    opsets: Mapping[str, int],
) -> tuple[str, str, int]:
    """Return the name of an arithmetic, its words, and how many values it does not give."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        have = f"ours {ours.dtype}{list(ours.shape)}, theirs {theirs.dtype}{list(theirs.shape)}"
        return "", have, theirs.size
    if isinstance(node.runs, Operator) and runs_on_groups(node.runs):
        arithmetic, known = _of_layer(node, node.runs, theirs, values)
        if arithmetic:
            return arithmetic, known, 0
    if ours.dtype.kind == "f":
        return _of_floats(node, name, (ours, theirs), steps, values, opsets)
    known = ""
    if isinstance(node.runs, Operator):
        arithmetic, known = _of_layer(node, node.runs, theirs, values)
        if arithmetic:
            return arithmetic, known, 0
    if isinstance(node.runs, CodeOperation):
        for dialect, words in _dialects(node, node.runs, theirs, values, opsets):
            return dialect, words, 0
    allowed = by_ties(node, values, opsets)
    near = steps <= (0.0 if allowed is None else allowed)
    far = int(np.count_nonzero(~near))
    if not far:
        return _TIES, "each differing value, or one that it is made of, lies beside a half", 0
    count = int(np.count_nonzero(near & (steps > 0)))
    also = f"{count} lie beside a half, {far} do not"
    return "", "; ".join(filter(None, [known, also])), far


def _of_floats(
    node: FusedNode,
    name: str,
    both: tuple[Array, Array],
    steps: Array,
    values: Values,
    opsets: Mapping[str, int],
) -> tuple[str, str, int]:
    """Return the same of floats: beside their bound, or their distances where there is none."""
    words = f"up to {steps.max():.1f} units in the last place of the largest value"
    if node.parts[0].row in kinds.DYNAMIC_RECURRENT and name == node.parts[0].outputs[0]:
        return recurrence_told(node.parts[0], both, values, words)
    lost = int(np.count_nonzero(~np.isfinite(steps)))
    bound = float_bound(node, name, values, opsets)
    if bound is None or bound.apart is None or both[0].dtype.itemsize < np.float32().itemsize:
        why = f"{bound.function or both[0].dtype} has" if bound is not None else "its nodes have"
        told = f"{words}; {why} no error that is known"
        if bound is not None and not lost:
            unit = _apart(*both)[1]
            ours, theirs = (float(np.abs(each - bound.values).max()) / unit for each in both)
            told += f": from float64's value ours are {ours:.1f} apart, theirs {theirs:.1f}"
        return ("" if lost else _FUNCTIONS), told, lost
    with np.errstate(all="ignore"):
        gaps = [np.abs(each.astype(np.float64) - bound.values) for each in both]
        far = (steps > 0) & ~((gaps[0] <= bound.apart) & (gaps[1] <= bound.apart))
        most = np.max(np.where(far | (steps == 0), 0, np.maximum(*gaps) / bound.apart))
    count = int(np.count_nonzero(far))
    if count:
        return "", f"{words}; {count} beyond what kernels and orders of roundings give", count
    if any(part.row.has_measured_error for part in node.parts):
        return _FUNCTIONS, f"{words}, {most:.0%} of what kernels were measured to be off by", 0
    return _SUMS, f"{words}, {most:.0%} of what roundings in any order may be off by", 0


def _of_layer(
    node: FusedNode, operator: Operator, theirs: Array, values: Values
) -> tuple[str, str]:
    """Return the arithmetic that gives all codes of a layer, or what is known of them."""
    operands: dict[str, Any] = {leaf: values[name] for leaf, name in node.operands.items()}
    try:
        why = explain_difference(operator, values[node.srcs[0]], theirs, **operands)
    except Error as error:  # dynamic sources, weights of floats, results that are no codes
        return "", f"no arithmetic was tried: {shown(str(error))}"
    if why.is_explained:
        best = why.explained_by[0]
        return str(best), best.words
    best = max(why.agreements, key=lambda each: each.equal)
    return "", f"{best} gives {best.equal} of {why.outputs}"


def _dialects(
    node: FusedNode,
    what: CodeOperation,
    theirs: Array,
    values: Values,
    opsets: Mapping[str, int],
) -> Iterator[tuple[str, str]]:
    """Yield the dialects of an operation that give all of theirs, onnxruntime's first."""
    name = what.row.emulated
    if not name or what.post.steps or what.dst_q is None or None in what.srcs_q:
        return
    if what.row is kinds.SOFTMAX and opsets.get("", 0) < what.row.axis_since:
        # It is of all axes from there on, as one: no dialect has that.
        if int(what.attributes.get("axis", 1)) % theirs.ndim != theirs.ndim - 1:
            return
        what = replace(what, attributes={"axis": -1})
    srcs = [values[each] for each in node.srcs]
    table = emulate.ARITHMETIC[name]
    for dialect in sorted(table, key=lambda each: not each.startswith("onnxruntime")):
        try:
            codes = _emulated(what, srcs, dialect)
        except (Error, ValueError):  # a dialect that has no such operation
            continue
        if codes.shape == theirs.shape and np.array_equal(codes, theirs):
            yield f"{name} of {dialect}", table[dialect]
        elif dialect == _TABLE and codes.shape == theirs.shape:
            allowed = by_ties(node, values, opsets, is_whole=True)
            apart = np.abs(codes.astype(np.int64) - theirs)
            if allowed is not None and (apart <= allowed).all():
                words = f"{table[dialect]}; {np.count_nonzero(apart)} lie beside a half of that"
                yield f"{name} of {dialect}", words


def _emulated(what: CodeOperation, srcs: list[Array], dialect: str) -> Array:
    """Return the codes of a dialect."""
    q: Any = {"src_q": what.srcs_q[0], "dst_q": what.dst_q, "dialect": dialect}
    match what.row.emulated:
        case "add":
            return _add(what, srcs, dialect)
        case "softmax":
            axis = int(what.attributes.get("axis", -1)) % srcs[0].ndim
            return emulate.softmax(srcs[0], axis=axis, **q)
        case "average_pool":
            return _average(what, srcs, dialect)
        case "leaky_relu":
            return emulate.leaky_relu(srcs[0], what.attributes.get("alpha", 0.01), **q)
        case _:
            return emulate.sigmoid(srcs[0], **q)


def _add(what: CodeOperation, srcs: list[Array], dialect: str) -> Array:
    a_q, b_q = what.srcs_q
    assert a_q is not None
    assert b_q is not None
    assert what.dst_q is not None
    return emulate.add(*srcs, a_q=a_q, b_q=b_q, dst_q=what.dst_q, dialect=dialect)


def _average(what: CodeOperation, srcs: list[Array], dialect: str) -> Array:
    attributes = what.attributes
    if attributes.get("auto_pad", "NOTSET") != "NOTSET" or attributes.get("ceil_mode", 0):
        raise ValueError(what.operator)
    kernel = tuple(attributes.get("kernel_shape", srcs[0].shape[2:]))
    pads = tuple(attributes.get("pads", (0,) * 2 * len(kernel)))
    q: Any = {"src_q": what.srcs_q[0], "dst_q": what.dst_q}
    return emulate.average_pool(
        srcs[0],
        kernel,
        stride=tuple(attributes.get("strides", (1,) * len(kernel))),
        padding=tuple(zip(pads[: len(kernel)], pads[len(kernel) :], strict=True)),
        count_padding=bool(attributes.get("count_include_pad", 0)),
        dialect=dialect,
        **q,
    )
