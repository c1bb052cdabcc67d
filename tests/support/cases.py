"""A case is a value: a problem, its attributes and the numbers, with the answer on demand."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from support import fills, oracle
from support.oracle_numbers import numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.problem import Problem
    from pyonednn_q.primitive.tensor import TensorSpec

    Array = NDArray[Any]

_PREPARED = ("wei", "bias")  # what a prepared primitive takes once


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A filled problem. ``name`` reproduces it together with the seed."""

    name: str
    problem: Problem
    attr: Attr
    arrays: dict[str, Array]

    @property
    def values(self) -> dict[str, Array]:
        """Run-time attribute values, under the names that the attribute asks for."""
        return {name: self.arrays[name] for name in self.attr.runtime_names(self.problem)}

    @property
    def constants(self) -> dict[str, Array]:
        """Weights and bias, laid out as their specs say."""
        specs = self.problem.tensors
        return {
            name: laid_out(self.arrays[name], specs[name]) for name in _PREPARED if name in specs
        }

    @property
    def inputs(self) -> tuple[Array, ...]:
        """Tensors of one call, in the problem's order, laid out as their specs say."""
        return tuple(
            laid_out(self.arrays[name], spec)
            for name, spec in self.problem.tensors.items()
            if name not in {*_PREPARED, "dst"}
        )

    def out(self) -> Array:
        """Return a fresh dst, holding the old values where a sum post-op will read them."""
        spec: TensorSpec = self.problem.tensors["dst"]
        old = self.arrays.get("dst")
        if old is None:
            old = np.zeros(spec.dims, dtype=numpy_dtype(spec.dtype))
        return laid_out(old, spec)

    def expected(self) -> oracle.Result:
        """Ask the oracle."""
        return oracle.run(self.problem, self.attr, self.arrays)

    def check(self, got: Array) -> None:
        """Raise AssertionError with the first wrong elements unless ``got`` is right."""
        expected = self.expected()
        wrong = np.argwhere(~expected.accepts(got))
        if not wrong.size:
            return
        lo, hi = expected.interval()
        lines = [self.text(), f"{len(wrong)} of {got.size} elements are wrong"]
        lines.extend(
            f"  dst{list(map(int, index))} = {got[index]}, allowed {lo[index]}..{hi[index]}, "
            f"real {expected.real[index]!r}"
            for index in map(tuple, wrong[:5])
        )
        raise AssertionError("\n".join(lines))

    def text(self) -> str:
        """Return one line that names everything but the numbers."""
        return f"{self.name}: {self.problem.text()} | {self.attr.text()}"


@dataclass(frozen=True, slots=True)
class Recipe:
    """A case before it is filled: cheap to enumerate, hashable, named."""

    name: str
    problem: Problem
    attr: Attr

    def build(self, fill: Literal["clean", "dirty"] = "clean", *, seed: int = 0) -> Case:
        """Fill it; the numbers depend on the name and the seed only."""
        rng = np.random.default_rng([zlib.crc32(self.name.encode()), seed])
        filler = fills.clean if fill == "clean" else fills.dirty
        arrays = filler(self.problem, self.attr, rng)
        return Case(f"{self.name}[{fill},{seed}]", self.problem, self.attr, arrays)


def laid_out(array: Array, spec: TensorSpec) -> Array:
    """Copy values into the physical order of a spec; logical dims stay as they are."""
    strides = spec.strides
    if strides is None or 0 in spec.dims:
        return np.array(array, order="C")
    order = sorted(range(len(spec.dims)), key=lambda axis: -strides[axis])
    physical = np.array(np.transpose(array, order), order="C")  # a copy: dst is overwritten
    return np.transpose(physical, np.argsort(order))
