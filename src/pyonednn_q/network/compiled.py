"""Compiled: a network for inputs of one shape, as one program over one block of memory."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, LayoutError
from pyonednn_q.native import Prepared
from pyonednn_q.native.arrays import checked, in_layout
from pyonednn_q.native.program import Pass, program
from pyonednn_q.network.arena import arranged
from pyonednn_q.network.carrier import as_carrier, restored
from pyonednn_q.network.lowering import natural
from pyonednn_q.report.told import Told

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import Value
    from pyonednn_q.native.program import Place, Step
    from pyonednn_q.network.lowering import Lowering, ProgramStep
    from pyonednn_q.primitive.tensor import TensorSpec

_NONE: Mapping[str, Value] = MappingProxyType({})


class Compiled(Told):
    """A network compiled for inputs of one shape; many threads may call it and share its weights.

    Attributes
    ----------
    inputs, outputs : dict of str to TensorSpec
        Specs of the tensors that a call takes and returns.
    steps : tuple of ProgramStep
        Steps in the order in which they run.
    tensors : dict of str to TensorSpec
        Specs of all tensors between inputs and outputs, by name.
    """

    def __init__(
        self,
        lowering: Lowering,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        carried: Mapping[str, Value] = _NONE,
    ) -> None:
        self._carried = {name: carried[name] for name in outputs if name in carried}
        self._takes_carriers = any(name in carried for name in inputs)
        taken = set(inputs)
        written = [_output(lowering, name, taken) for name in outputs]
        self.steps = tuple(lowering.steps)
        self.tensors = dict(lowering.specs)
        self.inputs = {name: self.tensors[name] for name in inputs}
        passes = ((step, step.runs) for step in self.steps if isinstance(step.runs, Pass))
        self._grown = {step.reads[at] for step, each in passes for at in each.core.grows}
        self.outputs = {name: each[1] for name, each in zip(outputs, written, strict=True)}
        arrays = {name: at for at, name in enumerate((*inputs, *(each[0] for each in written)), 1)}
        places, arena_bytes, in_place = _placed(lowering, arrays)
        steps = [self._step(step, places, step.writes in in_place) for step in self.steps]
        self._program = program(
            steps, arena_bytes, list(self.inputs.values()), list(self.outputs.values())
        )

    def __call__(self, *arrays: Array) -> dict[str, Array]:
        """Run on arrays in the order of the network's inputs; return results by name.

        Parameters
        ----------
        *arrays : ndarray
            Arrays with the dims and data types of `inputs`. Those in other layouts are copied
            first.

        Returns
        -------
        dict of str to ndarray
            New arrays, as `outputs` says. Their memory goes back to a pool when the last array over
            it is gone.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the input.
        LayoutError
            An input with gaps that calls write to, as to a cache.
        ForkedError
            The process was forked from the one that compiled the network.
        """
        results = self.as_they_lie(*arrays)
        if results is None:
            results = self._named(self._program.run_checked(*self._ready(arrays)))
        return results

    def as_they_lie(self, *arrays: Array) -> dict[str, Array] | None:
        """Return results without copies of inputs; None if the layout of an array differs."""
        carriers = tuple(map(as_carrier, arrays)) if self._takes_carriers else arrays
        results = self._program.run(*carriers)
        return None if results is NotImplemented else self._named(results)

    def _named(self, results: tuple[Array, ...]) -> dict[str, Array]:
        tensors = dict(zip(self.outputs, results, strict=True))
        for name, value in self._carried.items():
            tensors[name] = restored(tensors[name], value)
        return tensors

    def times(self, *arrays: Array) -> dict[str, float]:
        """Run once, and return the microseconds of each node inside the network."""
        total: dict[str, float] = {}
        for step, took in zip(self.steps, self.step_seconds(*arrays), strict=True):
            total[step.node] = total.get(step.node, 0.0) + took * 1e6
        return total

    def step_seconds(self, *arrays: Array) -> list[float]:
        """Run once, and return the seconds of each of `steps` inside the network."""
        return self._program.run_timed(*self._ready(arrays))

    @property
    def arena_bytes(self) -> int:
        """Bytes of the tensors between nodes, for one call at a time."""
        return self._program.arena_bytes

    @property
    def scratchpad_bytes(self) -> int:
        """Bytes of scratch memory of the primitives, for one call at a time."""
        return self._program.scratchpad_bytes

    @property
    def nbytes(self) -> int:
        """Approximate number of bytes, without weights."""
        own = (s.runs.nbytes for s in self.steps if isinstance(s.runs, Prepared))
        return self.arena_bytes + self.scratchpad_bytes + sum(own)

    def describe(self) -> str:
        """Return one line for each step: its node, what runs, and where it writes."""
        lines = [f"{step.writes}: {_text(step)}" for step in self.steps]
        memory = f"arena {self.arena_bytes} bytes, scratchpad {self.scratchpad_bytes}"
        return "\n".join([*lines, memory])

    def __repr__(self) -> str:
        return f"<Compiled {len(self.steps)} steps, arena {self.arena_bytes} bytes>"

    def _ready(self, arrays: tuple[Array, ...]) -> list[Array]:
        if len(arrays) != len(self.inputs):
            wanted = f"{len(self.inputs)}: {', '.join(self.inputs)}"
            raise ArgumentError("arrays", str(len(arrays)), wanted)
        inputs = zip(self.inputs.items(), map(as_carrier, arrays), strict=True)
        return [self._laid_out(checked(name, array, spec), name) for (name, spec), array in inputs]

    def _laid_out(self, array: Array, name: str) -> Array:
        """Return an input as the program reads it; refuse one that it writes to and has to copy."""
        laid_out = in_layout(array, self.inputs[name])
        if laid_out is not array and name in self._grown:
            raise LayoutError(name, f"strides {array.strides}", "no gaps: calls write to it")
        return laid_out

    def _step(self, step: ProgramStep, places: dict[str, Place], is_in_place: bool) -> Step:
        names = (*step.reads, step.writes)
        residual = None if step.residual is None or is_in_place else places[step.residual]
        at = tuple(places[name] for name in names)
        return step.runs, at, residual, tuple(self.tensors[name] for name in names)


def _output(at: Lowering, name: str, taken: set[str]) -> tuple[str, TensorSpec]:
    """Return the tensor that holds an output, a new array for it, and its layout."""
    root, offset = at.home(name)
    is_whole = offset == 0 and at.specs[root].nbytes == at.specs[name].nbytes
    spec = at.specs[name]
    if root in taken or not is_whole:
        at.node = name
        # No copy from gaps to the same gaps: see the guard reorder-of-gaps-alike.
        spec = natural(spec.dims, spec.dtype) if spec.has_gaps else spec
        root = at.copied(name, spec)
    taken.add(root)
    return root, spec


def _lifetimes(at: Lowering) -> tuple[dict[str, int], dict[str, int]]:
    """Return the first and the last step that touches each tensor with memory of its own."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for index, step in enumerate(at.steps):
        for name in (*step.reads, step.writes, *filter(None, [step.residual])):
            root = at.home(name)[0]
            first.setdefault(root, index)
            last[root] = index
    return first, last


def _placed(at: Lowering, arrays: dict[str, int]) -> tuple[dict[str, Place], int, frozenset[str]]:
    """Return tensors' offsets, the arena's bytes, and results in the memory of residuals."""
    first, last = _lifetimes(at)
    merged: dict[str, str] = {}
    for index, step in enumerate(at.steps):
        if step.residual is None:
            continue
        root, offset = at.home(step.residual)
        if _may_lie_on(at, step, root, offset, arrays, last[root] == index):
            while root in merged:
                root = merged[root]
            merged[step.writes] = root
            last[root] = max(last[root], last[step.writes])
    sizes: dict[str, int] = {}
    for name, spec in at.specs.items():
        root, offset = at.home(name)
        sizes[root] = max(sizes.get(root, 0), offset + spec.nbytes)
    offsets, total = arranged(
        {
            root: (sizes[root], first[root], last[root])
            for root in first
            if root not in arrays and root not in merged
        }
    )
    places: dict[str, Place] = {}
    for name in at.specs:
        root, offset = at.home(name)
        while root in merged:
            root = merged[root]
        if root in arrays:
            places[name] = arrays[root], offset
        elif root in offsets:
            places[name] = 0, offsets[root] + offset
    return places, total, frozenset(merged)


def _may_lie_on(
    at: Lowering, step: ProgramStep, root: str, offset: int, arrays: dict[str, int], is_last: bool
) -> bool:
    """Tell whether a result may take its residual's memory: whole, its own, and read no more."""
    assert step.residual is not None
    is_free = is_last and offset == 0 and root not in arrays and step.writes not in arrays
    is_read = any(at.home(name)[0] == root for name in step.reads)
    whole = at.specs[root].nbytes == at.specs[step.residual].nbytes == at.specs[step.writes].nbytes
    return is_free and not is_read and whole


def _text(step: ProgramStep) -> str:
    if isinstance(step.runs, Prepared):
        return f"{step.runs.problem.text()} on {step.runs.impl}"
    if isinstance(step.runs, Pass):
        return step.runs.text
    return "a function of Python"
