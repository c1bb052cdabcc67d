"""Build wheels that carry oneDNN, and refuse one that would not run anywhere.

    python tools/release/wheel.py build DIRECTORY [--into dist] [PYTHON ...]
    python tools/release/wheel.py repair WHEEL [--into dist]

``build`` puts the oneDNN in DIRECTORY, which tools/release/onednn.py prints, into a wheel for
each PYTHON (without any: the one that runs this), and repairs it; cibuildwheel builds them
itself and calls ``repair``. There auditwheel puts libgomp into the wheel and names the oldest
glibc that it runs on. Then is asked of the result: one oneDNN, which finds the libgomp beside
it and needs nothing else outside the manylinux list; names of its own for both; no symbol that
is unique in the process; the licences; no dependency on another oneDNN; a size that is fit for
an index.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

ROOT = Path(__file__).parents[2]
LIBRARY = "pyonednn_q/lib/libdnnl_pyonednn_q.so.3"
LICENSES = (
    *("oneDNN/LICENSE", "oneDNN/THIRD-PARTY-PROGRAMS"),
    *("libgomp/COPYING3", "libgomp/COPYING.RUNTIME", "libgomp/README.md"),
)
MOST_BYTES = 30_000_000
# libc itself and the two compiler runtimes of the manylinux list.
_SYSTEM = re.compile(r"lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so\.\d+|ld-linux-x86-64\.so\.2")
_GOMP = re.compile(r"pyonednn_q\.libs/libgomp-[0-9a-f]+\.so\.[\d.]+")


@dataclass(frozen=True, slots=True)
class SharedObject:
    """What the loader reads of a library."""

    soname: str
    needed: tuple[str, ...]
    search: tuple[str, ...]
    unique: tuple[str, ...]  # symbols of which the whole process has one


def main() -> int:
    """Print each wheel that was written; return 1 when one of them is not fit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build")
    building.add_argument("bundle", type=Path)
    building.add_argument("python", nargs="*", default=[sys.executable])
    repairing = commands.add_parser("repair")
    repairing.add_argument("wheel", type=Path)
    for command in (building, repairing):
        command.add_argument("--into", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    if options.command == "repair":
        return told(repair(options.wheel, options.into))
    wheels = (build(python, options.bundle.absolute(), options.into) for python in options.python)
    return max(map(told, wheels))


def told(wheel: Path) -> int:
    """Print the wheel, and what is wrong with it."""
    findings = questions(wheel)
    for finding in findings:
        print(f"{wheel.name}: {finding}", file=sys.stderr)
    print(wheel)
    return 1 if findings else 0


def build(python: str, bundle: Path, directory: Path) -> Path:
    """Return the repaired wheel for one Python."""
    with tempfile.TemporaryDirectory() as raw:
        command = [python, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", raw, str(ROOT)]
        environment = {**os.environ, "PYONEDNN_Q_BUNDLE": str(bundle)}
        subprocess.run(command, env=environment, check=True, stdout=sys.stderr)
        (wheel,) = Path(raw).glob("*.whl")
        return repair(wheel, directory)


def repair(wheel: Path, directory: Path) -> Path:
    """Run auditwheel, and return the wheel that it wrote into `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory) as name:
        command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", name, str(wheel)]
        subprocess.run(command, check=True, stdout=sys.stderr)
        (written,) = Path(name).glob("*.whl")
        return written.replace(directory / written.name)


def questions(wheel: Path) -> list[str]:
    """Return what is wrong with a repaired wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        findings = [*contents(names), *metadata(archive, names)]
        objects = {
            name: shared_object(archive.read(name))
            for name in names
            if re.search(r"\.so(\.|$)", name)
        }
        if LIBRARY in names:
            record = json.loads(archive.read("pyonednn_q/lib/onednn.json"))
            print(f"carries oneDNN {record['onednn']} of {record['sources']}", file=sys.stderr)
    findings += loading(objects)
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        findings.append(f"has {size} bytes, more than {MOST_BYTES}")
    if "manylinux" not in wheel.name:
        findings.append("has no manylinux tag")
    return findings


def contents(names: list[str]) -> list[str]:
    """Return what is missing among the files, or there twice."""
    findings = [] if LIBRARY in names else [f"does not carry {LIBRARY}"]
    for what, pattern in (
        ("oneDNN", r"libdnnl[^/]*\.so"),
        ("OpenMP runtime", r"lib[gi]omp[^/]*\.so"),
    ):
        matches = [name for name in names if re.search(pattern, name)]
        if len(matches) != 1:
            findings.append(f"has {len(matches)} files of an {what}, not one: {matches}")
    wanted = [f"pyonednn_q/lib/licenses/{name}" for name in LICENSES]
    return findings + [f"lacks {name}" for name in wanted if name not in names]


def metadata(archive: zipfile.ZipFile, names: list[str]) -> list[str]:
    """Return which requirements would bring another oneDNN."""
    (file,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    required = message_from_bytes(archive.read(file)).get_all("Requires-Dist") or []
    return [f"requires {line}" for line in required if "onednn" in line and "extra ==" not in line]


def shared_object(content: bytes) -> SharedObject:
    """Read a library."""
    elf = ELFFile(io.BytesIO(content))
    dynamic = elf.get_section_by_name(".dynamic")
    table = elf.get_section_by_name(".dynsym")
    if not (isinstance(dynamic, DynamicSection) and isinstance(table, SymbolTableSection)):
        return SharedObject("", (), (), ())
    tags = list(dynamic.iter_tags())

    def texts(tag: str, attribute: str) -> tuple[str, ...]:
        return tuple(getattr(each, attribute) for each in tags if each.entry.d_tag == tag)

    search = ":".join((*texts("DT_RUNPATH", "runpath"), *texts("DT_RPATH", "rpath")))
    return SharedObject(
        "".join(texts("DT_SONAME", "soname")),
        texts("DT_NEEDED", "needed"),
        tuple(search.split(":")),
        tuple(
            each.name
            for each in table.iter_symbols()
            if each.entry.st_info.bind == "STB_LOOS"  # STB_GNU_UNIQUE has this number
        ),
    )


def loading(objects: dict[str, SharedObject]) -> list[str]:
    """Return what of the shared objects would not be found, or be taken from another package."""
    findings = []
    own = {Path(name).name for name in objects}
    for name, binary in objects.items():
        findings += [
            f"{name} needs {needed}, which is neither in the wheel nor on every system"
            for needed in binary.needed
            if needed not in own and not _SYSTEM.fullmatch(needed)
        ]
        if Path(name).name.startswith("lib") and binary.soname != Path(name).name:
            findings.append(f"{name} has the soname {binary.soname!r}")
        if binary.unique:
            findings.append(f"{name} shares symbols with the whole process: {binary.unique[:3]}")
    library = objects.get(LIBRARY)
    gomp = [name for name in objects if _GOMP.fullmatch(name)]
    if library and not (gomp and Path(gomp[0]).name in library.needed):
        findings.append(f"{LIBRARY} does not use an OpenMP runtime in pyonednn_q.libs")
    elif library and "$ORIGIN/../../pyonednn_q.libs" not in library.search:
        findings.append(f"{LIBRARY} looks for its OpenMP runtime in {library.search}")
    return findings


if __name__ == "__main__":
    sys.exit(main())
