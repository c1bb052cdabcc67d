"""Lowering: what a network's nodes become: steps, and tensors with layouts and homes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.errors import ReferenceKernelError
from pyonednn_q.native import prepare
from pyonednn_q.primitive.problem import ReorderProblem
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from pyonednn_q.native.program import Runs


@dataclass(frozen=True, slots=True)
class ProgramStep:
    """One step of a program: what runs, what it reads and what it writes.

    Attributes
    ----------
    node : str
        The node that it belongs to, by the name of its result.
    runs : Prepared, Pass or callable
        Primitive, pass or function of Python, as in `native.program.Runs`.
    reads : tuple of str
        Tensors, in the order of its arguments.
    writes : str
        Tensor that it writes.
    residual : str or None
        A tensor that dst holds before it runs.
    """

    node: str
    runs: Runs
    reads: tuple[str, ...]
    writes: str
    residual: str | None = None


class Lowering:
    """Steps in the making, and what is known of the tensors between them.

    Attributes
    ----------
    steps : list of ProgramStep
        Steps in the order in which they run.
    specs : dict of str to TensorSpec
        Dims, data type and layout of every tensor.
    """

    def __init__(self, inputs: dict[str, TensorSpec], names: Collection[str]) -> None:
        self.steps: list[ProgramStep] = []
        self.specs = dict(inputs)
        self.node = ""
        self._homes: dict[str, tuple[str, int]] = {name: (name, 0) for name in inputs}
        self._names = {*inputs, *names}  # of the network's own tensors

    def add(
        self,
        runs: Runs,
        reads: tuple[str, ...],
        writes: str,
        spec: TensorSpec,
        residual: str | None = None,
    ) -> None:
        """Add a step whose result is a new tensor."""
        self._name(writes, spec, (writes, 0))
        self.steps.append(ProgramStep(self.node, runs, reads, writes, residual))

    def write(self, runs: Runs, reads: tuple[str, ...], into: str) -> None:
        """Add a step that writes a tensor which is there."""
        self.steps.append(ProgramStep(self.node, runs, reads, into))

    def reserve(self, name: str, spec: TensorSpec) -> None:
        """Make a tensor that several steps write."""
        self._name(name, spec, (name, 0))

    def view(self, name: str, of: str, spec: TensorSpec, offset: int = 0) -> None:
        """Make a tensor over the memory of another, from a byte of it on."""
        root, begins = self._homes[of]
        self._name(name, spec, (root, begins + offset))

    def home(self, name: str) -> tuple[str, int]:
        """Return the tensor that holds its memory, and the byte offset in it."""
        return self._homes[name]

    def in_layout(self, name: str, wanted: TensorSpec) -> str:
        """Return a tensor of the same values in a layout: itself, or a copy that a step makes."""
        spec = self.specs[name]
        wanted = replace(wanted, dtype=spec.dtype)
        if wanted.strides is None or spec.strides == wanted.strides:
            return name
        if spec.lies_as(wanted):
            seen = self.fresh(name)
            self.view(seen, name, wanted)
            return seen
        return self.copied(name, wanted)

    def without_gaps(self, name: str) -> str:
        """Return a tensor with the same values whose elements are contiguous, in any order."""
        spec = self.specs[name]
        if not spec.has_gaps:
            return name
        return self.copied(name, natural(spec.dims, spec.dtype))

    def copied(self, name: str, wanted: TensorSpec) -> str:
        """Return a new tensor of the same values, in a layout and a data type."""
        copy, spec = self.fresh(name), self.specs[name]
        runs: Runs
        try:
            runs = prepare(ReorderProblem(spec, wanted))
        except ReferenceKernelError:  # of f16, where a processor has no instructions for it
            if spec.dtype != wanted.dtype:
                raise
            runs = _copy
        self.add(runs, (name,), copy, wanted)
        return copy

    def fresh(self, name: str) -> str:
        """Return a name that no tensor has."""
        at = 1
        while f"{name} ({at})" in self._names:
            at += 1
        self._names.add(f"{name} ({at})")
        return f"{name} ({at})"

    def _name(self, name: str, spec: TensorSpec, home: tuple[str, int]) -> None:
        self.specs[name] = spec
        self._homes[name] = home


def _copy(src: Any, dst: Any) -> None:  # noqa: ANN401 - arrays of any type
    np.copyto(dst, src)


def natural(dims: tuple[int, ...], dtype: str) -> TensorSpec:
    """Return the default layout of a tensor: channels-last for images."""
    layout = TensorSpec.channels_last if len(dims) > 3 else TensorSpec.dense
    return layout(dims, dtype)


def layout_like(dims: tuple[int, ...], dtype: str, sources: Iterable[TensorSpec]) -> TensorSpec:
    """Return the layout of a result: of the first source of its dims without gaps, or `natural`."""
    like = next((each for each in sources if each.dims == dims and not each.has_gaps), None)
    return natural(dims, dtype) if like is None else TensorSpec(dims, dtype, like.strides)
