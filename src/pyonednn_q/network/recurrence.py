"""LSTM and GRU: all steps of a sequence in one pass, of what a product made of the sequence.

    LSTM: c' = f · c + i · g,  h' = o · tanh(c')            i, o, f: sigmoid(sums), g: tanh(sums)
    GRU:  h' = (1 - z) · n + z · h                          z, r: sigmoid(sums)
          n = tanh(sums_n + (r · h) · wei_n), or tanh(sums_n + r · (h · wei_n + shift))
    sums = gates of the source's product + h · wei

Gates are float32. So are products of the states, or they are of 8-bit weights and of states that
each step makes u8 codes of, each row by its own range:

    h · wei ~ scale · wei_scale · ((codes - zero_point) · wei)       as `Dynamic("u8")` has them

Source: ONNX, operators LSTM and GRU, with their usual activations; onnxruntime's operator
DynamicQuantizeLSTM, which has one range for all rows that it multiplies at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import instance, items, one_of
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.native.program import Pass
from pyonednn_q.network.floats import floats_of
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from pyonednn_q.network.lowering import Lowering

_GATES = {"lstm": 4, "gru": 3}


@dataclass(frozen=True, eq=False, slots=True)
class Recurrence:
    """An LSTM or a GRU without the product of its source, which comes as an input.

    Its sources are sums (steps, batch, directions · gates · hidden) of the source's product and
    all biases but `shift`; then a first state h, and c of an LSTM, (directions, batch, hidden)
    each, where `states` has them. Its result has one dimension: results (steps, directions, batch,
    hidden), and behind them the last h, and the last c of an LSTM.

    Parameters
    ----------
    alg : {"lstm", "gru"}
        Kind of recurrence.
    wei : (directions, gates · hidden, hidden) ndarray of float32, or int8 with `wei_scale`
        Weights of the states, with gates in ONNX's order: i, o, f, c; or z, r, h.
    directions : tuple of {"forward", "reverse"}
        Directions, one or two.
    shift : (directions, hidden) ndarray of float32, optional
        Bias of the product of a GRU's candidate, if the reset gate is applied after that product.
    states : str
        States that a call passes, as letters of "hc"; others are zeros.
    wei_scale : (directions, gates · hidden) ndarray of float32, optional
        Real value of one step of `wei`, for each of its rows.
    """

    alg: str
    wei: Array
    directions: tuple[str, ...]
    shift: Array | None = None
    states: str = ""
    wei_scale: Array | None = None

    def __post_init__(self) -> None:
        one_of("alg", self.alg, tuple(_GATES))
        names = tuple(items("directions", self.directions, str))
        if not names or not set(names) <= {"forward", "reverse"}:
            raise ArgumentError("directions", f"{names}", "'forward' or 'reverse', one or two")
        object.__setattr__(self, "directions", names)
        arrays = {"wei": self.wei, "shift": self.shift, "wei_scale": self.wei_scale}
        for name, array in arrays.items():
            if array is None and name != "wei":
                continue
            instance(name, array, np.ndarray)
            is_coded = name == "wei" and self.wei_scale is not None
            wanted_type = np.int8 if is_coded else np.float32
            if array is not None and array.dtype != wanted_type:
                raise DTypeError(name, str(array.dtype), wanted_type.__name__)
        if self.wei.ndim != 3 or not self.hidden:
            raise ShapeError("wei", str(self.wei.shape), "(directions, gates · hidden, hidden)")
        wanted = (len(names), _GATES[self.alg] * self.hidden, self.hidden)
        if self.wei.shape != wanted:
            raise ShapeError("wei", str(self.wei.shape), str(wanted))
        if self.wei_scale is not None and self.wei_scale.shape != wanted[:2]:
            raise ShapeError("wei_scale", str(self.wei_scale.shape), str(wanted[:2]))
        if self.shift is not None and self.alg == "lstm":
            raise ArgumentError("shift", "values", "None: an LSTM resets nothing")
        if self.shift is not None and self.shift.shape != (len(names), self.hidden):
            raise ShapeError("shift", str(self.shift.shape), str((len(names), self.hidden)))
        instance("states", self.states, str)
        if self.states not in {"", "h", *(("c", "hc") if self.alg == "lstm" else ())}:
            raise ArgumentError("states", repr(self.states), "letters of 'hc', 'h' of a GRU")

    @property
    def hidden(self) -> int:
        """Number of elements of a state."""
        return int(self.wei.shape[2])

    def sizes(self, steps: int, batch: int) -> tuple[int, ...]:
        """Return the number of elements of the results, and of each last state."""
        state = len(self.directions) * batch * self.hidden
        return (steps * state, state, state)[: 3 if self.alg == "lstm" else 2]

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add our pass over memory."""
        if len(src) != 1 + len(self.states):
            raise ArgumentError("src", f"{len(src)} tensors", f"{1 + len(self.states)}")
        sums, *states = (floats_of(at, name) for name in src)
        columns = self.wei.shape[0] * self.wei.shape[1]
        if len(sums.dims) != 3 or sums.dims[2] != columns:
            raise ShapeError("src", str(sums.dims), f"(steps, batch, {columns})")
        steps, batch, _ = sums.dims
        for state in states:
            wanted = (len(self.directions), batch, self.hidden)
            if state.dims != wanted:
                raise ShapeError("src", str(state.dims), f"a state of {wanted}")
        reads = tuple(
            at.in_layout(name, TensorSpec.dense(at.specs[name].dims, "f32")) for name in src
        )
        of = (self.alg == "lstm", [each == "reverse" for each in self.directions])
        run = Pass.recurrence(
            steps, batch, self.wei, self.shift, *of, states=self.states, scale=self.wei_scale
        )
        at.add(run, reads, dst, TensorSpec.dense((sum(self.sizes(steps, batch)),), "f32"))
