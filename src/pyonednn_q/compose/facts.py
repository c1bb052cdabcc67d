"""What plans and guards depend on of a process: the library that runs, and on what."""

from __future__ import annotations

from dataclasses import dataclass

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is asked about a process.

    Parameters
    ----------
    version : (int, int, int)
        Of the loaded oneDNN.
    isa : str
        The effective instruction set, as in ``ONEDNN_MAX_CPU_ISA``.
    runtime : str
        SEQ, OMP, TBB, THREADPOOL or SYCL.
    """

    version: Version
    isa: str
    runtime: str
