"""One process per instruction set: a limit can be set only before the library is first used."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyonednn_q.bench.bench_run import Run
from pyonednn_q.errors import ArgumentError, LibraryError
from pyonednn_q.native import runtime
from pyonednn_q.native.child import environment, interpreter

if TYPE_CHECKING:
    from pyonednn_q.bench.measure import Request

__all__ = ["LADDER", "VARIABLE", "levels", "measure_at", "serve"]

VARIABLE = "ONEDNN_MAX_CPU_ISA"
# The steps at which INT8 kernels change: SSE4.1 runs what AVX2 runs, bf16 and f16 add nothing.
LADDER = ("AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_AMX")

_CHILD = "import sys; from pyonednn_q.bench.processes import serve; serve(*sys.argv[1:])"


def levels(names: Iterable[str]) -> tuple[str, ...]:
    """Return the named instruction sets; "ladder" means all that this machine has.

    Raises
    ------
    ArgumentError
        One that this machine does not have: a limit above it would change nothing.
    """
    isa = runtime.isa()
    chosen: dict[str, None] = {}
    for name in names:
        if name == "ladder":
            chosen |= dict.fromkeys(level for level in LADDER if isa.has(level))
        elif isa.has(name):
            chosen[name] = None
        else:
            raise ArgumentError(
                "isa", name, f"ladder, or a part of {isa.text()}, which is used here"
            )
    return tuple(chosen)


def measure_at(request: Request, isa: str) -> Run:
    """Measure in a process of its own that may use no more than `isa`; it draws its own bar.

    Raises
    ------
    LibraryError
        The process ended without a result.
    """
    settings = tuple(replace(setting, isa=isa) for setting in request.settings)
    with tempfile.TemporaryDirectory() as folder:
        request_file, run_file = Path(folder) / "request", Path(folder) / "run.json"
        request_file.write_bytes(pickle.dumps(replace(request, settings=settings)))
        # What the library prints must not come between: the answer goes through a file.
        command = [*interpreter(), "-c", _CHILD, str(request_file), str(run_file)]
        code = subprocess.run(command, env=environment() | {VARIABLE: isa}, check=False).returncode
        if code or not run_file.is_file():
            message = f"measuring at {isa} ended with exit code {code}"
            raise LibraryError(message)
        return Run.from_json(run_file.read_text(encoding="utf-8"))


def serve(request_file: str, run_file: str) -> None:
    """Measure the request in one file, and write the run to another: the child of `measure_at`."""
    from pyonednn_q.bench.measure import measure
    from pyonednn_q.report.progress import Progress

    # Written by the parent a moment ago, into a folder that only this user can open.
    request: Request = pickle.loads(Path(request_file).read_bytes())
    try:
        with Progress(request.steps) as progress:
            run = measure(request, progress)
    except KeyboardInterrupt:  # which came to the parent, too
        sys.exit(130)
    Path(run_file).write_text(run.to_json(), encoding="utf-8")
