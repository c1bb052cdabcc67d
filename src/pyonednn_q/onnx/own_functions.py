"""Operators of this package as ONNX functions, which other runtimes run.

Such a function says what an operator means in floats. `load` runs the operator itself, as long as
the function of a file is this one. Source: ONNX's IR, "Functions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyonednn_q.graph import kinds
from pyonednn_q.graph.kind import Kind
from pyonednn_q.onnx.element_types import FLOAT

if TYPE_CHECKING:
    from onnx import FunctionProto

__all__ = ["is_own_function", "own_function"]

_INPUTS = (
    *("X", "W", "R", "B", "sequence_lens", "initial_h"),
    *("W_scale", "W_zero_point", "R_scale", "R_zero_point"),
)
_TOLD = ("direction", "hidden_size", "linear_before_reset")


def own_function(row: Kind, opset: int) -> FunctionProto | None:
    """Return the function of an operator of ours; None of any other.

    Parameters
    ----------
    row : Kind
        The operator.
    opset : int
        Opset version of the model that it is for.
    """
    return _gru(opset) if row is kinds.DYNAMIC_GRU else None


def is_own_function(function: FunctionProto) -> bool:
    """Tell whether a function of a model is that of an operator of ours, not only by its name."""
    row = kinds.KINDS.get(f"{function.domain}.{function.name}")
    own = None if row is None else own_function(row, 0)
    return own is not None and all(
        [*map(str, getattr(own, part))] == [*map(str, getattr(function, part))]
        for part in ("input", "output", "attribute", "node")
    )


def _gru(opset: int) -> FunctionProto:
    """Return the GRU of the real values of its weights: (codes - zero_point) · scale, turned."""
    from onnx import AttributeProto, helper

    make = helper.make_node
    nodes = [make(kinds.CONSTANT.name, [], ["axis"], value_ints=[1])]
    for name in ("W", "R"):
        nodes += [
            make(kinds.CAST.name, [name], [f"{name}_codes"], to=FLOAT),
            make(kinds.CAST.name, [f"{name}_zero_point"], [f"{name}_points"], to=FLOAT),
            make(kinds.UNSQUEEZE.name, [f"{name}_points", "axis"], [f"{name}_row_points"]),
            make(kinds.SUB.name, [f"{name}_codes", f"{name}_row_points"], [f"{name}_whole"]),
            make(kinds.UNSQUEEZE.name, [f"{name}_scale", "axis"], [f"{name}_row_scales"]),
            make(kinds.MUL.name, [f"{name}_whole", f"{name}_row_scales"], [f"{name}_turned"]),
            make(kinds.TRANSPOSE.name, [f"{name}_turned"], [f"{name}_real"], perm=[0, 2, 1]),
        ]
    reads = ["X", "W_real", "R_real", "B", "sequence_lens", "initial_h"]
    gru = make(kinds.GRU.name, reads, ["Y", "Y_h"])
    for name in _TOLD:
        kind = AttributeProto.STRING if name == "direction" else AttributeProto.INT
        gru.attribute.append(AttributeProto(name=name, ref_attr_name=name, type=kind))
    domain, _, operator = kinds.DYNAMIC_GRU.name.rpartition(".")
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_function(
        domain, operator, _INPUTS, ["Y", "Y_h"], [*nodes, gru], opsets, _TOLD
    )
