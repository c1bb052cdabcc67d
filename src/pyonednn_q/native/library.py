"""Choice of the oneDNN to use: candidates in their order, and how one is opened.

The extension links no libdnnl; it opens the path it is handed. This module chooses that path:

1. ``PYONEDNN_Q_LIBDNNL``, exclusively: when that one fails there is an error, not a surprise;
2. the library that our own wheel carries, beside the extension;
3. the library of the CMake package that the build found (recorded in ``_build.json``);
4. the ``onednn`` wheel, found through its file record;
5. what the system loader finds under its plain name.

Everything here is the standard library: ``doctor`` must be able to ask without the extension.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import platform
import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from pyonednn_q.errors import LibraryError

if TYPE_CHECKING:
    from collections.abc import Callable

VARIABLE = "PYONEDNN_Q_LIBDNNL"
FLOOR = (3, 7)
# What SYCL chooses devices by, as it is read when the first engine is made.
SELECTORS = ("ONEAPI_DEVICE_SELECTOR", "SYCL_DEVICE_ALLOWLIST")
_NO_DIRECTORY = "the working directory of this process is gone"
WANTED = "3.7 or a later 3.x is needed"
# In our wheels. Its soname is its own: a package that asks the system loader for libdnnl.so.3 must
# not be given this one, which has only what we call.
BUNDLED = "libdnnl_pyonednn_q.so.3"
_RUNTIMES = {1: "SEQ", 2: "OMP", 4: "TBB", 8: "THREADPOOL", 512: "SYCL"}


# libdnnl.so comes with development packages; Debian 13 needs it: its soname is libdnnl.so.3.6.
_SYSTEM_NAMES = ("libdnnl.so.3", "libdnnl.so")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where oneDNN may be; `absent` says why there is nothing to open, if so."""

    source: str
    path: str
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Library:
    """An opened oneDNN. `runtime` is a value of `_RUNTIMES`, `path` the file that was opened."""

    path: str
    source: str
    version: tuple[int, int, int]
    commit: str
    runtime: str


_loaded: list[Library] = []  # the last one, if any


def find() -> tuple[Candidate, ...]:
    """Return every candidate in the order in which they are tried."""
    named_path = os.environ.get(VARIABLE)
    if named_path:
        return (_asked(named_path),)
    return (
        _bundled(),
        _recorded(),
        _wheel(),
        *(Candidate("system", name) for name in _SYSTEM_NAMES),
    )


def load(opener: Callable[[str], object] | None = None) -> Library:
    """Open the first candidate that is a usable oneDNN, and remember it.

    Cheap to repeat: the system loader keeps an opened library open.

    Parameters
    ----------
    opener : callable, optional
        Opens the path once more (the extension's ``load``); its LibraryError rejects the candidate.

    Raises
    ------
    LibraryError
        No candidate can be used (``tried`` has the reason for each); or the platform is another
        one.
    """
    check_platform()
    tried = []
    for candidate in find():
        try:
            opened = _open(candidate)
            if opener is not None:
                opener(opened.path)
        except (_UnfitError, LibraryError) as unfit:
            tried.append((f"{candidate.source} {candidate.path}".strip(), str(unfit)))
        else:
            _loaded[:] = (opened,)
            return opened
    raise unusable(*tried)


def check_platform() -> None:
    """Refuse what is not Linux on x86-64.

    Raises
    ------
    LibraryError
        The platform is another one; the error names it, and what works there.
    """
    system, machine = sys.platform, platform.machine()
    if system != "linux" or machine not in {"x86_64", "AMD64"}:
        message = (
            f"pyonednn_q calls oneDNN on Linux on x86-64 only, and this is {system} on {machine}: "
            "the kernels that it chooses, guards and predicts are those for x86-64; what needs no "
            "oneDNN works here: compose, explain, predict"
        )
        raise LibraryError(message, ())


def unusable(*tried: tuple[str, str]) -> LibraryError:
    """Return the error for candidates none of which can be used, each with why."""
    message = f"no usable oneDNN ({WANTED}); `pyonednn-q doctor` gives advice"
    if os.environ.get(VARIABLE):
        message += f"; nothing else is tried while {VARIABLE} is set"
    return LibraryError(message, tried)


def loaded() -> Library:
    """Return the library that the last `load` opened, loading one if there was none."""
    return _loaded[0] if _loaded else load()


def extension_path() -> Path | None:
    """Return the file of the extension, which is not imported; None when it was never built."""
    spec = importlib.util.find_spec("pyonednn_q._core")
    return Path(spec.origin) if spec and spec.origin else None


def build_record() -> dict[str, str | None]:
    """Return the record of the build (``library``); empty when unknown."""
    extension = extension_path()
    record = extension.with_name("_build.json") if extension else None
    if record is None or not record.exists():
        return {}
    try:
        content = json.loads(record.read_text())
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _asked(value: str) -> Candidate:
    """Return what the variable names; a name without a slash is the system loader's to find."""
    if "/" not in value:
        return Candidate(VARIABLE, value)
    try:
        return Candidate(VARIABLE, str(Path(value).expanduser().absolute()))
    except RuntimeError:
        user = value.split("/", 1)[0]
        return Candidate(VARIABLE, value, f"there is no home directory of {user}: give a full path")
    except OSError as error:
        why = f"{_NO_DIRECTORY} ({error.strerror}): give a full path"
        return Candidate(VARIABLE, value, why)


def _bundled() -> Candidate:
    extension = extension_path()
    path = extension.parent / "lib" / BUNDLED if extension else None
    if path is None or not path.exists():
        return Candidate("bundled", "", "the build put no oneDNN into the package")
    return Candidate("bundled", str(path))


def _recorded() -> Candidate:
    path = build_record().get("library")
    if not path:
        return Candidate("build", "", "the build used no oneDNN CMake package")
    return Candidate("build", path)


def _wheel() -> Candidate:
    try:
        files = _shared_objects(distribution("onednn"))
    except PackageNotFoundError:
        return Candidate("wheel onednn", "", "not installed")
    path = files.get("libdnnl.so.3")
    if path is None:
        return Candidate("wheel onednn", "", "its file record lists no libdnnl.so.3")
    return Candidate("wheel onednn", path)


def _shared_objects(wheel: Distribution) -> dict[str, str]:
    paths = {}
    for file in wheel.files or ():
        if ".so" in file.name:
            # The record is relative ("../../libdnnl.so.3"). Only the directory is resolved: an
            # installer may link files to a cache, where they no longer stand beside each other.
            place = Path(str(file.locate()))
            paths[file.name] = str(place.parent.resolve() / place.name)
    return paths


@cache
def _wheel_files() -> dict[str, str]:
    """Shared objects of the onednn wheel and of all that it requires: file name -> path."""
    paths: dict[str, str] = {}
    visited: set[str] = set()
    queue = ["onednn"]
    while queue:
        name = queue.pop()
        if name in visited:
            continue
        visited.add(name)
        try:
            wheel = distribution(name)
        except PackageNotFoundError:
            continue
        paths |= _shared_objects(wheel)
        queue += [
            re.split(r"[^\w.-]", required, maxsplit=1)[0] for required in wheel.requires or ()
        ]
    return paths


class _UnfitError(Exception):
    """The candidate cannot be used."""


class _Version(ctypes.Structure):
    """dnnl_version_t."""

    _fields_ = (
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("patch", ctypes.c_int),
        ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint),
        ("gpu_runtime", ctypes.c_uint),
    )


class _Origin(ctypes.Structure):
    """Dl_info."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _open(candidate: Candidate) -> Library:
    if candidate.absent:
        raise _UnfitError(candidate.absent)
    try:
        library = _dlopen(candidate.path)
        function = library.dnnl_version
    except OSError as error:
        raise _UnfitError(str(error)) from None
    except AttributeError:
        message = "has no function dnnl_version: it is not oneDNN"
        raise _UnfitError(message) from None
    function.restype = ctypes.POINTER(_Version)
    about = function().contents
    version = (about.major, about.minor, about.patch)
    if not FLOOR <= version < (FLOOR[0] + 1,):
        message = f"is oneDNN {'.'.join(map(str, version))}; {WANTED}"
        raise _UnfitError(message)
    runtime = _RUNTIMES.get(about.cpu_runtime, f"unknown ({about.cpu_runtime})")
    if runtime == "SYCL":
        _show_cpu_to_sycl()
    commit = (about.hash or b"").decode()
    file = _file_of(ctypes.cast(function, ctypes.c_void_p)) or candidate.path
    return Library(file, candidate.source, version, commit, runtime)


def _dlopen(path: str) -> ctypes.CDLL:
    """Open a library, and before it those of its dependencies that only the wheels have.

    The wheels' libdnnl does not say where its dependencies are, so the loader's complaint
    ("libtbb.so.12: cannot open shared object file") names the next one to open. Once open, it is
    found by its soname.
    """
    opened = set()
    while True:
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            missing = str(error).split(":", 1)[0]
            if missing == path or missing in opened or missing not in _wheel_files():
                raise
            opened.add(missing)
            _dlopen(_wheel_files()[missing])


def _show_cpu_to_sycl() -> None:
    # SYCL reaches the CPU through an OpenCL driver. The wheel's one is registered nowhere, and
    # without it no engine can be created. The variable is read with the first engine, later.
    driver = _wheel_files().get("libintelocl.so")
    if driver:
        os.environ.setdefault("OCL_ICD_FILENAMES", driver)


def check_directory(runtime: str) -> None:
    """Refuse to use SYCL without a working directory.

    It finds no CPU then, and the process never ends.

    Raises
    ------
    LibraryError
        There is none.
    """
    if runtime != "SYCL":
        return
    try:
        Path.cwd()
    except OSError as error:
        message = f"{_NO_DIRECTORY}, and SYCL finds no CPU without one: os.chdir to one that exists"
        raise LibraryError(message, (("working directory", str(error)),)) from None


def no_engine(status: str) -> LibraryError:
    """Return the error for a library that opened but finds no CPU, with what its driver says."""
    message = f"oneDNN cannot create a CPU engine ({status})"
    driver = os.environ.get("OCL_ICD_FILENAMES", "")
    try:
        if driver:
            ctypes.CDLL(driver)
    except OSError as error:
        # A driver finds the libtbb.so.12 that is loaded already, whoever loaded it.
        advice = (
            "its OpenCL driver does not load. If another package brought an older libtbb.so.12 "
            "(openvino does), run something with pyonednn_q before importing that package; or use "
            "an OpenMP build"
        )
        return LibraryError(f"{message}: {advice}", ((driver, str(error)),))
    chosen = tuple((name, os.environ[name]) for name in SELECTORS if os.environ.get(name))
    if chosen:
        names = " and ".join(name for name, _ in chosen)
        advice = f"{names} may hide the CPU from SYCL; unset it, or set {SELECTORS[0]}=*:cpu"
        return LibraryError(f"{message}: {advice}, before Python starts", chosen)
    return LibraryError(message)


def _file_of(address: ctypes.c_void_p) -> str:
    """Return the file that a function came from: a plain name was resolved by the system loader."""
    origin = _Origin()
    status = ctypes.CDLL(None).dladdr(address, ctypes.byref(origin))
    return os.fsdecode(origin.file) if status and origin.file else ""
