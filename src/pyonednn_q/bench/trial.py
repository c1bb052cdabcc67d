"""Trial: a case made ready as users run it, by an operator, and arrays to compute it on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q import dtypes, native
from pyonednn_q.acc.pairs import pair_overflow
from pyonednn_q.bench import benchdnn
from pyonednn_q.bench.data import Sample, channels, quantize
from pyonednn_q.bench.shape import Shape
from pyonednn_q.compose.benchdnn_options import DRIVERS
from pyonednn_q.compose.composer import compose
from pyonednn_q.dtypes import Array
from pyonednn_q.native import runtime
from pyonednn_q.native.sums import NOT_EXACT
from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct, MatMul
from pyonednn_q.ops.form import RESIDUAL_LEAF, Form
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.qparams import QParams, along

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyonednn_q.bench.case import Case, Setting
    from pyonednn_q.bench.tail import Ending
    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.expr.steps import Chain
    from pyonednn_q.expr.vec import Vec
    from pyonednn_q.native import Prepared
    from pyonednn_q.ops.operator import Operator

__all__ = ["Trial", "Way", "way"]

SATURATES = "may saturate: no VNNI"
_PASSED = "passed over"

_OPERATORS: dict[str, Any] = {"conv": Conv, "deconv": Deconv, "ip": InnerProduct, "matmul": MatMul}


class Way(NamedTuple):
    """Primitive for a case, and the plan behind it.

    Attributes
    ----------
    plan : Plan
        Plan of the primitive.
    prepared : Prepared
        The primitive that runs.
    form : Form
        Problem that runs: that of the case, or an equivalent one.
    notes : tuple of str
        Notes for the reader.
    tuning : str
        Choice by measured time; empty: nothing was timed.
    """

    plan: Plan
    prepared: Prepared
    form: Form
    notes: tuple[str, ...]
    tuning: str = ""


def way(
    case: Case,
    wei: Array,
    bias: Array,
    chain: Chain,
    *,
    src_scale: float,
    wei_scale: NDArray[np.float64],
    dst_scale: float,
    dst_zero_point: int,
    tune: bool = False,
) -> Way:
    """Return the way in which `Conv` or another operator runs a case.

    A product of two sources, and a deconvolution longer than its padding allows, have no operator:
    they run as their plans say.

    Parameters
    ----------
    case : Case
        Case to compute.
    wei : ndarray
        Weights in the data type and the dims of the case.
    bias : (channels,) ndarray
        Real values; of two sources, none is added.
    chain : Chain
        Steps after the products.
    src_scale, dst_scale : float
        Real value of one step of src and of dst; 1 of floats.
    wei_scale : (channels,) or (1,) ndarray
        Real value of one step of the weights, per output channel or for all; 1 of floats.
    dst_zero_point : int
        The code of an integer dst that stands for real 0.
    tune : bool
        Time the ways to compute it, and take the fastest if it surely is.

    Raises
    ------
    UnsupportedError
        No implementation takes it but a reference loop.
    """
    shape, types = case.shape, case.precision
    high = [hi - more for (_, hi), more in zip(shape.padding, shape.out_padding, strict=False)]
    if shape.has_two_sources or min(high, default=0) < 0:
        facts = PrimitiveFacts.of(
            shape.problem(types, case.layout),
            src_scale=src_scale,
            wei_scale=wei_scale,
            bias=None if shape.has_two_sources else bias,
            dst_scale=dst_scale,
            dst_zero_point=dst_zero_point,
            process=runtime.facts(),
        )
        return _planned(case, wei, compose(chain, facts, strict=True))
    options: dict[str, Any] = {"dst": types.dst, "post": chain, "strict": True}
    options |= {"layout": case.layout, "saturation": "allow", "tune": tune}
    if types.is_int8:
        axis = -1 if shape.kind == "matmul" else 0
        options["src_q"] = QParams(src_scale, 0, types.src)
        options["wei_q"] = QParams(wei_scale, np.zeros(len(wei_scale), int), types.wei, axis)
        if dtypes.is_integer(types.dst):
            options["dst_q"] = QParams(dst_scale, dst_zero_point, types.dst)
    if shape.stride:
        low = (lo for lo, _ in shape.padding)
        options |= {"stride": shape.stride, "dilation": shape.dilation, "groups": shape.groups}
        options["padding"] = tuple(zip(low, high or [hi for _, hi in shape.padding], strict=True))
    if shape.has_groups:
        wei = wei.reshape(-1, *wei.shape[2:])
    operator: Operator = _OPERATORS[shape.kind](wei, bias, **options)
    planned = operator.prepare(shape.src, types.src)
    planned = planned.row_major() if case.layout == "dense" else planned
    tuning = "" if planned.tuning is None else f"tuned: {planned.tuning.verdict}"
    return Way(planned.plan, planned.primitive, planned.form, planned.notes, tuning)


def _planned(case: Case, wei: Array, plan: Plan) -> Way:
    problem = case.shape.problem(case.precision, case.layout)
    prepared = native.prepare(
        plan.problem(problem),
        plan.attr,
        wei=None if case.shape.has_two_sources else plan.wei(wei),
        bias=plan.bias_values(),
        values=plan.values(),
        saturation="allow",
    )
    form = Form(problem, problem, plan.chain)
    return Way(plan, prepared, form, (*plan.notes, *prepared.notes))


@dataclass(frozen=True, slots=True)
class Trial:
    """A case with its primitive, and arrays to compute it on.

    Attributes
    ----------
    case : Case
        Case to compute.
    way : Way
        Way in which the case runs.
    arrays : tuple of ndarray
        The arrays of a call of the primitive, dst last.
    ending : Ending
        Conversion of stored values to real ones.
    saturates : bool
        Whether these weights can overflow 16 bits without VNNI.
    """

    case: Case
    way: Way
    arrays: tuple[Array, ...]
    ending: Ending
    saturates: bool

    @classmethod
    def of(cls, case: Case, sample: Sample, *, tune: bool = False) -> Trial:
        """Make `case` ready on that sample.

        Parameters
        ----------
        case : Case
            Case to compute.
        sample : Sample
            Real values of its tensors.
        tune : bool
            Take the fastest of several ways, as `Conv(..., tune=True)` does.

        Raises
        ------
        UnsupportedError
            No implementation takes it but a reference loop.
        """
        codes = quantize(case, sample)
        ending = case.tail.ending(channels(case.shape), case.precision)
        ready = way(
            case,
            codes.wei,
            sample.bias,
            ending.chain,
            src_scale=codes.src_scale,
            wei_scale=codes.wei_scale,
            dst_scale=ending.dst_scale,
            dst_zero_point=ending.dst_zero_point,
            tune=tune,
        )
        form, prepared = ready.form, ready.prepared
        filled = {"src": codes.src, "wei": codes.wei, "dst": codes.dst}
        for name, leaf in ready.plan.operands:
            filled[name] = codes.dst if leaf == RESIDUAL_LEAF else sample.residual
        arrays = []
        for name in (*prepared.inputs, "dst"):
            array, values = prepared.empty(name), filled[name]
            if values.size and name == "wei":
                array[...] = values
            elif values.size:
                dims = form.asked.src.dims if name == "src" else form.asked.dst.dims
                array[...] = form.inward(values.reshape(dims)).reshape(array.shape)
            arrays.append(array)
        saturates = any(NOT_EXACT in note for note in ready.notes)
        if case.shape.has_two_sources:
            isa, impl = runtime.isa(), prepared.impl
            saturates = bool(pair_overflow(prepared.problem, codes.wei, isa, impl=impl))
        return cls(case, ready, tuple(arrays), ending, saturates)

    @property
    def shape(self) -> Shape:
        """Problem of the primitive; it differs from the case if another form runs."""
        form = self.way.form
        if not form.is_product:
            return self.case.shape
        return Shape(DRIVERS[form.problem.kind], form.problem.src.dims, form.problem.wei.dims)

    def seconds(self, calls: int) -> float:
        """Return seconds per call, of a loop in C++ over that many."""
        return self.way.prepared.time_calls(*self.arrays, calls=calls)

    def call(self) -> Array:
        """Run once, as the primitive is called."""
        *inputs, dst = self.arrays
        return self.way.prepared(*inputs, out=dst)

    def told(self, setting: Setting) -> dict[str, Any]:
        """Return columns for its row, by name."""
        way = self.way
        notes = tuple(note for note in way.notes if NOT_EXACT not in note)
        if way.tuning:
            notes = (*(note for note in notes if _PASSED not in note), way.tuning)
        case = replace(self.case, shape=self.shape)
        return {
            "impl": way.prepared.impl,
            "attributes": way.plan.attr.text(),
            "notes": (SATURATES, *notes) if self.saturates else notes,
            "benchdnn": benchdnn.command(case, setting, way.plan),
        }

    def result(self) -> Array:
        """Run once and return what is stored, in the dims of the case; a view of the last array."""
        stored = self.way.form.outward(self.call())
        return stored.reshape(self.case.shape.dst)

    def real_result(self) -> NDArray[np.float32]:
        """Run once and return what the stored values are worth. A sum reads what dst holds now."""
        stored = self.result().astype(np.float32)
        scale, shift = (self._aligned(vec) for vec in (self.ending.scale, self.ending.shift))
        return np.asarray(stored * scale + shift, np.float32)

    def _aligned(self, vec: Vec) -> NDArray[np.float32]:
        axis = -1 if self.case.shape.kind == "matmul" else 1
        return along(vec.values().astype(np.float32), axis, len(self.case.shape.dst))
