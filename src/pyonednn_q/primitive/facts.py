"""What plans and guards depend on of a process: the library that runs, and on what."""

from __future__ import annotations

from dataclasses import dataclass

from pyonednn_q.primitive.isa import InstructionSet

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is asked about a process.

    Parameters
    ----------
    version : (int, int, int)
        Of the loaded oneDNN.
    isa : InstructionSet
        What kernels find there; a name stands for one, as `InstructionSet.of` takes it.
    runtime : str
        SEQ, OMP, TBB, THREADPOOL or SYCL.
    """

    version: Version
    isa: InstructionSet
    runtime: str

    def __post_init__(self) -> None:
        """Take a name, too."""
        object.__setattr__(self, "isa", InstructionSet.of(self.isa))
