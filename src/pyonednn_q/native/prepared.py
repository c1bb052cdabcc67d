"""A primitive made ready: weights packed once, every argument checked, safe from many threads."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import named, one_of
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.native import arrays, runtime
from pyonednn_q.native.arrays import pack
from pyonednn_q.native.runtime import HotCallable
from pyonednn_q.native.selection import Selection, memory_for
from pyonednn_q.native.sums import inexact_weights
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.convolution import ConvProblem, DeconvProblem
from pyonednn_q.primitive.dense import InnerProductProblem
from pyonednn_q.primitive.post_ops import SumPostOp
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.report.told import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyonednn_q._core import Memory
    from pyonednn_q._core import Prepared as CorePrepared
    from pyonednn_q.dtypes import Array
    from pyonednn_q.primitive.problem import Problem

# Generated code of a primitive, which the library does not tell: 260 to 940 KB were measured.
_CODE_BYTES = 512 << 10


def new_core(
    selection: Selection,
    inputs: tuple[str, ...],
    bound: Mapping[str, Memory],
    arrays: Mapping[str, TensorSpec],
) -> CorePrepared:
    """Return the extension's half: the primitive, constants bound, for arrays that lie as said."""
    specs = {name: spec.boundary() for name, spec in arrays.items()}
    return runtime.core.Prepared(selection.candidate, [*inputs, "dst"], dict(bound), specs)


class Prepared(HotCallable, Told, hot=True):
    """One problem with its attributes, constants bound, on one chosen implementation.

    Made by `prepare`. Calling it is safe from many threads at once: each call has a scratchpad of
    its own and returns when its result is complete.

    Attributes
    ----------
    problem : Problem
        Problem that it computes.
    attr : Attr
        Scales, zero points and post-ops.
    impl : str
        The library's name of the implementation, ``"none"`` for an empty dst.
    kind : str
        ``"jit"``, ``"gemm"``, ``"reference"`` or ``"unknown"``.
    notes : tuple of str
        Notes for the caller: implementations passed over, saturation.
    inputs : tuple of str
        Names of the arrays of each call, in order.
    nbytes : int
        About how many bytes it takes beside weights: constants, scratch memory, code.
    scratchpad_bytes : int
        Bytes of scratch memory of one call at a time.
    """

    def __init__(
        self,
        problem: Problem,
        attr: Attr,
        selection: Selection | None,
        inputs: tuple[str, ...],
        bound: Mapping[str, Memory],
        specs: Mapping[str, TensorSpec],
        core: CorePrepared | None,  # None for an empty dst
        notes: tuple[str, ...],
    ) -> None:
        self.problem = problem
        self.attr = attr
        self.impl = selection.impl if selection else "none"
        self.kind = selection.kind if selection else "none"
        self.skipped = selection.skipped if selection else ()
        self.inputs = inputs
        self.notes = notes
        self.copies = dict.fromkeys((*inputs, "dst"), 0)
        self._selection = selection
        self._bound = bound
        self._specs = specs
        self._core = core
        self._run: Callable[..., None] = core.run if core is not None else _run_nothing
        self._hot = core.hot_call if core is not None else None
        self._reads_dst = SumPostOp in map(type, attr.post_ops)
        self._checks_wei = False
        # About how many bytes it takes beside weights: scratch memory, code, constants.
        self.nbytes = self.scratchpad_bytes = 0
        if selection is not None:
            self.scratchpad_bytes = int(selection.candidate.scratchpad_bytes)
            self.nbytes = self.scratchpad_bytes + _CODE_BYTES
        for name, memory in self._bound.items():
            self.nbytes += 0 if name == "wei" else int(memory.nbytes)

    def __call__(self, *inputs: Array, out: Array | None = None) -> Array:
        """Run the primitive.

        Parameters
        ----------
        *inputs : ndarray
            Inputs in the order of `inputs`, each of the dims and dtype of the problem; any strides.
            An array in another layout than `layout(name)` is copied into it first and counted in
            `copies`. Operands of binary post-ops have oneDNN's names here, ``post_op_0``;
            operators, plans and layers take them by the names of the chain's leaves.
        out : ndarray, optional
            Written in place and returned. Required with a sum post-op, which reads it: it must
            hold the values to add. Another layout than `layout("dst")` costs a copy, counted in
            `copies`.

        Returns
        -------
        ndarray
            dst, in logical dims (N, C, spatial); channels last in memory unless the problem says
            otherwise.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError, AliasError
            Naming the argument, what came and what would do.
        """
        # What fits went straight through `hot`; the rest is copied into the right layout, or
        # refused by name.
        if len(inputs) != len(self.inputs):
            raise ArgumentError("inputs", f"{len(inputs)} arrays", ", ".join(self.inputs))
        if self._checks_wei:
            self._check_wei(inputs[self.inputs.index("wei")])
        ready = [self._input(name, array) for name, array in zip(self.inputs, inputs, strict=True)]
        if out is None:
            if self._reads_dst:
                raise ArgumentError("out", "None", "the array whose values the sum post-op adds")
            with memory_for(self.problem, self.attr):
                out = arrays.empty(self._specs["dst"])
        else:
            out = arrays.checked("out", out, self._specs["dst"])
            checked = {
                name: arrays.checked(name, array, self._specs[name])
                for name, array in zip(self.inputs, inputs, strict=True)
            }
            in_place = [name for name in checked if name.startswith("post_op_")]
            arrays.check_out(out, checked, in_place)
            for at, name in enumerate(self.inputs):
                # Kernels may hold sums there, of 4 bytes, before they read.
                if out.dtype.itemsize > 2 and np.may_share_memory(ready[at], out):
                    ready[at] = arrays.in_layout(ready[at].copy(), self._specs[name])
        with memory_for(self.problem, self.attr):
            dst = self._output(out)
            self._run(*ready, dst)
        if dst is not out:
            np.copyto(out, dst)
        return out

    def check_wei_of_each_call(self) -> None:
        """Refuse weights of a call whose sums may not be exact."""
        if "wei" not in self.inputs:
            raise ArgumentError("wei", "weights that are bound", "weights of each call")
        self._checks_wei = True
        self._hot = None  # which would not look at values

    @property
    def hot(self) -> Callable[..., Any]:
        """``f(*inputs, None, out or None)``: the call for arrays that fit exactly as they are.

        It runs nothing and returns NotImplemented for others.
        """
        return self._hot or _never_fits

    @property
    def hot_with_residual(self) -> Callable[..., Any]:
        """``f(*inputs, residual or None, out or None)``: as `hot`, but a sum may read a residual.

        The residual stays as it is.
        """
        if self._hot is None or self._core is None:
            return _never_fits
        return self._core.hot_call_with_residual

    def hot_making_codes(
        self,
        inputs: tuple[str, ...],
        *,
        params: tuple[float, int] | None,
        is_symmetric: bool,
        offset: int,
        rows: int,
        unit: Sequence[float],
        is_s8: bool = False,
    ) -> Callable[..., Any] | None:
        """Return f(src, residual or None, out or None) of float32 sources, or of codes of s8.

        None where the primitive reads more than a source brings along, or nothing runs. Codes are
        made first. It runs nothing and returns NotImplemented for arrays that do not fit as they
        are, for NaN, and for ranges that have no scale.

        Parameters
        ----------
        inputs : tuple of str
            Role of each of `inputs`: ``"src"``, and of ranges that each call finds ``"src_scale"``,
            ``"src_zero_point"``, and ``"acc_map"``, which is -zero_point[row] * unit[column].
        params : (scale, zero_point), optional
            Scale and zero point of the source. ``None``: they follow from the range of each row.
        is_symmetric : bool
            Whether ranges are symmetric: zero point 0.
        offset : int
            Number that is added to the codes of `params` or ranges.
        rows : int
            Number of rows with their own range.
        unit : sequence of float
            One for each column; none without ``"acc_map"``.
        is_s8 : bool
            Whether codes are s8, 128 less than the u8 ones of the primitive: nothing else counts.
        """
        if self._hot is None or self._core is None:
            return None
        return self._core.hot_call_making_codes(
            inputs=inputs,
            params=params,
            is_symmetric=is_symmetric,
            offset=offset,
            rows=rows,
            unit=unit,
            is_s8=is_s8,
        )

    @property
    def core(self) -> CorePrepared | None:
        """The extension's half, for a `Program`; None where dst is empty."""
        return self._core

    def seen_as(self, specs: Mapping[str, TensorSpec]) -> Prepared:
        """Return the same primitive for arrays that lie otherwise; as `arrays` of `prepare`."""
        specs = named("specs", specs, TensorSpec)
        if self._core is None or self._selection is None:
            raise ShapeError("dst", str(self._specs["dst"].dims), "a non-empty result")
        core = new_core(self._selection, self.inputs, self._bound, specs)
        return self._on(core, {**self._specs, **specs})

    def __copy__(self) -> Prepared:
        copy = self._on(self._core, self._specs)
        if self._checks_wei:
            copy.check_wei_of_each_call()
        return copy

    def _on(self, core: CorePrepared | None, specs: Mapping[str, TensorSpec]) -> Prepared:
        return Prepared(
            self.problem,
            self.attr,
            self._selection,
            self.inputs,
            self._bound,
            specs,
            core,
            self.notes,
        )

    def chosen_problem(self) -> Problem:
        """Return the problem with the layouts that the implementation chose, where it was free."""
        problem = self.problem
        if not isinstance(problem, (ConvProblem, DeconvProblem, InnerProductProblem)):
            return problem
        return dataclasses.replace(problem, src=self._chosen("src"), dst=self._chosen("dst"))

    def _chosen(self, name: str) -> TensorSpec:
        """Return a tensor of the problem, without strides where they were chosen in blocks."""
        spec = self.problem.tensors[name]
        if spec.strides is not None or self._selection is None:
            return spec
        layout = self._selection.candidate.layout(name)
        return TensorSpec(spec.dims, spec.dtype, tuple(layout.strides) if layout.strides else None)

    @property
    def copied(self) -> dict[str, str]:
        """Arguments that the library copies in each call, and into which layouts."""
        layouts = self._core.copied if self._core is not None else {}
        return {name: str(layout) for name, layout in layouts.items()}

    def time_copies(self, calls: int) -> dict[str, float]:
        """Return seconds of one copy of each argument in `copied`, of that many in a row."""
        return dict(self._core.time_copies(calls)) if self._core is not None else {}

    def layout(self, name: str) -> TensorSpec:
        """Return dims, dtype and strides (in elements) of a call's argument, to call copy-free."""
        one_of("name", name, tuple(self._specs))
        return self._specs[name]

    def empty(self, name: str = "dst") -> Array:
        """Return an uninitialised array in the layout of that argument."""
        return arrays.empty(self.layout(name))

    @property
    def wei_bytes(self) -> int:
        """Bytes of the packed weights, compensation included; 0 when they come with each call."""
        return int(self._bound["wei"].nbytes) if "wei" in self._bound else 0

    @property
    def layouts(self) -> dict[str, str]:
        """The layout of every argument in words, packed ones included."""
        described = {
            name: f"{s.dtype}{s.dims} strides {s.strides}" for name, s in self._specs.items()
        }
        for name, inner in self.copied.items():
            direction = "from" if name == "dst" else "to"
            described[name] += f", copied {direction} {inner} in each call"
        described |= {name: str(memory.layout) for name, memory in self._bound.items()}
        return described

    def held(self) -> dict[str, Array]:
        """Return the values of scales and zero points, by their run-time names.

        Zero points of 4 bits, which NumPy does not know, are left out.
        """
        names = [n for n in self._bound if n.endswith(("_scale", "_zero_point"))]
        whole = [n for n in names if dtypes.bits(getattr(self.attr, n).dtype) >= 8]
        return {name: self._bound[name].to_numpy() for name in whole}

    def pack_again(self) -> None:
        """Pack weights of zeros as `prepare` packed those that were given, to see what it takes."""
        if self._selection is not None and "wei" in self._bound:
            spec = self.problem.tensors["wei"]
            zeros = np.zeros(spec.dims, dtypes.numpy_dtype(spec.dtype))
            pack(self._selection.candidate, "wei", zeros, spec)

    def time_calls(self, *inputs: Array, calls: int) -> float:
        """Return seconds per call of a C++ loop over this primitive: its cost without Python.

        Arrays must already be in `layout`; the last is dst.
        """
        if self._core is None:
            raise ShapeError("dst", str(self._specs["dst"].dims), "a non-empty result to time")
        return float(self._core.time_calls(inputs, calls)) / calls

    def describe(self) -> str:
        """Return a few lines: problem, implementation, attributes, layouts, notes."""
        lines = [self.problem.text(), f"  implementation  {self.impl} ({self.kind})"]
        lines.append(f"  attributes      {self.attr.text() or 'none'}")
        lines += [f"  {name:<15} {text}" for name, text in self.layouts.items()]
        lines.append(f"  scratchpad      {self.scratchpad_bytes} bytes a call")
        lines += [f"  note            {note}" for note in self.notes]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Prepared {self.problem.text()} on {self.impl}>"

    def _check_wei(self, wei: object) -> None:
        if not isinstance(wei, np.ndarray) or wei.dtype.kind not in "iu":
            return  # refused by name in a moment
        error = inexact_weights(self.problem, self.attr, self.impl, wei)
        if error is not None:
            raise error

    def _input(self, name: str, array: object) -> Array:
        spec = self._specs[name]
        checked = arrays.checked(name, array, spec)
        ready = arrays.in_layout(checked, spec)
        if ready is not checked:
            self.copies[name] += 1
        return ready

    def _output(self, out: Array) -> Array:
        """Return where the primitive stores: `out`, or an array in its own layout."""
        spec = self._specs["dst"]
        if arrays.has_layout(out, spec):
            return out
        self.copies["dst"] += 1
        return arrays.in_layout(out, spec) if self._reads_dst else arrays.empty(self._specs["dst"])


def _run_nothing(*_arrays: object) -> None:
    """Run an empty problem."""


def _never_fits(*_arrays: object) -> object:
    """Leave an empty problem to the path that checks everything."""
    return NotImplemented
