"""Examination of the oneDNN that is used: which it is, whether it works, and a remedy if not.

The examination runs in a child process that writes down one fact after the other, so that a library
which crashes or hangs is a finding too. Judging the facts is a pure function.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Health", "examine", "judge"]

Facts = dict[str, str]

_TIMEOUT_S = 120
_NOT_BUILT = "not built"
_INCOMPLETE = "the installation is incomplete: pip install --force-reinstall --no-deps ."
_NO_NUMPY = "NumPy cannot be imported: pip install numpy"
_NO_EXTENSION = "build the extension: pip install . (needs a C++17 compiler; see docs/install.md)"
_NO_LIBRARY = (
    "get a oneDNN: pip install onednn",
    "or: install a wheel of pyonednn_q that carries one (docs/install.md)",
    "or: conda install -c conda-forge 'onednn-cpu-omp>=3.7'",
    "or, on Debian 13: apt install libdnnl-dev",
    "or name one that is there: PYONEDNN_Q_LIBDNNL=/path/to/libdnnl.so.3",
)
_NO_SYCL_CPU = (
    "SYCL finds the CPU through OCL_ICD_FILENAMES: unset it, or reinstall intel-opencl-rt"
)
_BROKEN = "oneDNN does not work here: name another one with PYONEDNN_Q_LIBDNNL=/path/to/it"
_SYCL_COSTS = (
    "the SYCL build works, but each call costs about 7 us more than with an OpenMP build "
    "(a wheel that carries oneDNN, conda-forge onednn-cpu-omp, Debian 13 libdnnl-dev)"
)
_THREADPOOL = "a threadpool build runs each call on one thread: prefer an OpenMP build"
_NO_VNNI = (
    "no VNNI at this ISA: pairs of u8*s8 products can saturate in 16 bits; "
    "u8 sources with weights in [-64, 64] are safe"
)


@dataclass(frozen=True, slots=True)
class Health:
    """Whether an INT8 call works here, and what the user can do."""

    usable: bool
    advice: tuple[str, ...]


def examine() -> Facts:
    """Collect the facts in a child process; ``failure`` holds the first thing that went wrong."""
    command = [sys.executable, "-m", "pyonednn_q.examination"]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as child:
        try:
            output, complaint = child.communicate(timeout=_TIMEOUT_S)
            ending = _ending(child.returncode)
        except subprocess.TimeoutExpired:
            child.kill()
            output, complaint = child.communicate()
            ending = f"no answer within {_TIMEOUT_S} s"
    facts: Facts = {}
    complaints = []
    for line in output.splitlines():
        if line.startswith(_MARK):
            facts |= json.loads(line.removeprefix(_MARK))
        elif "error" in line:  # the library's own words: oneDNN writes them to stdout
            complaints.append(line)
    if ending:
        facts["failure"] = f"the examination ended with {ending}"
        complaints += complaint.strip().splitlines()[-3:]
    if "failure" in facts:
        facts["failure"] = "\n".join([facts["failure"], *complaints])
    return facts


def judge(facts: Facts) -> Health:
    """Turn facts into a verdict. Needs none of them in particular."""
    runtime = facts.get("runtime", "")
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA")
    advice = [f"the ISA is limited by ONEDNN_MAX_CPU_ISA={limit}"] if limit else []
    if "failure" not in facts and facts.get("trial", "").startswith("right"):
        if runtime.startswith("SYCL"):
            advice.append(_SYCL_COSTS)
        if runtime == "THREADPOOL":
            advice.append(_THREADPOOL)
        if facts.get("vnni") == "no":
            advice.append(_NO_VNNI)
        return Health(usable=True, advice=tuple(advice))
    step = facts.get("failure", "").split(":", 1)[0]
    extension = facts.get("extension")
    if step == "numpy":
        advice.append(_NO_NUMPY)
    elif step == "library":
        advice += _NO_LIBRARY
    elif extension is None:
        advice.append(_INCOMPLETE)
    if extension == _NOT_BUILT:
        advice.append(_NO_EXTENSION)
    elif extension is not None and step not in {"numpy", "library"}:
        advice.append(_NO_SYCL_CPU if runtime.startswith("SYCL") else _BROKEN)
    return Health(usable=False, advice=tuple(advice))


def _ending(code: int) -> str:
    if code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}" if code else ""


# The rest runs in the child.

_MARK = "doctor: "


def _note(**facts: str) -> None:
    # Written at once, for the next step may be the last; on a line of its own, for the library may
    # have left one unfinished.
    sys.stdout.write(f"\n{_MARK}{json.dumps(facts)}\n")
    sys.stdout.flush()


def _see_python() -> None:
    from pyonednn_q import __version__
    from pyonednn_q.cpu import cpu_name

    _note(package=f"pyonednn_q {__version__} in {Path(__file__).parent}", cpu=cpu_name())
    _note(python=f"{platform.python_version()} {platform.machine()}, {sys.executable}")


def _see_numpy() -> None:
    import numpy as np

    _note(numpy=np.__version__)


def _see_extension() -> None:
    from pyonednn_q.native.library import extension_path

    _note(extension=str(extension_path() or _NOT_BUILT))


def _see_library() -> None:
    from pyonednn_q.native.library import find, load

    places = [f"{place.source}: {place.absent or place.path}" for place in find()]
    _note(searched="\n".join(places))
    library = load()
    version = ".".join(map(str, library.version))
    _note(library=library.path, source=library.source)
    _note(onednn=f"{version}, commit {library.commit}")
    _note(runtime="SYCL on TBB threads" if library.runtime == "SYCL" else library.runtime)


def _see_runtime() -> None:
    from pyonednn_q.faults import hunted
    from pyonednn_q.native import runtime

    isa = runtime.isa()
    count = sum(each >= hunted.ENOUGH for each in hunted.kernels(runtime.facts()).values())
    looks = "each new primitive's first run is looked at"
    if count:
        looks += f", but long runs of {count} kernels that a hunt has covered here"
    _note(self_check=looks if count else f"{looks}: no hunt has covered this oneDNN here")
    _note(isa=isa.text(), vnni="yes" if isa.has_vnni() else "no")
    _note(features=", ".join(isa.features()) or "none that 8-bit sums depend on")
    _note(vectors=f"{runtime.core.vector_bits() or 'no'} bits in loops of our own")
    _note(threads=f"{runtime.get_num_threads()} on {len(os.sched_getaffinity(0))} CPUs")


def _see_trial() -> None:
    import numpy as np

    from pyonednn_q.native import prepare
    from pyonednn_q.primitive.problem import MatMulProblem

    src = np.arange(64, dtype=np.uint8).reshape(4, 16)
    wei = (np.arange(128) % 31 - 15).astype(np.int8).reshape(16, 8)
    problem = MatMulProblem.of(src.shape, wei.shape, src="u8", wei="s8", dst="s32")
    prepared = prepare(problem, wei=wei, allow_reference=True)
    right = np.array_equal(prepared(src), src.astype(np.int64) @ wei.astype(np.int64))
    _note(trial=f"{'right' if right else 'WRONG'}: u8*s8 matmul by {prepared.impl}")


_STEPS: tuple[Callable[[], None], ...] = (
    *(_see_python, _see_numpy, _see_extension, _see_library, _see_runtime, _see_trial),
)


def _examine_here() -> None:
    healthy = True
    for step in _STEPS:
        try:
            step()
        except Exception as error:  # whatever is broken is a finding
            if healthy:  # later steps fail for the same cause
                step_name = step.__name__.removeprefix("_see_")
                _note(failure=f"{step_name}: {type(error).__name__}: {error}")
            healthy = False


if __name__ == "__main__":
    _examine_here()
