"""Run a command as on a processor that has AMX, AVX_VNNI or AVX512_FP16, where this one has not.

    python tools/hunt/absent_instructions.py python tools/hunt/hunt.py --levels ALL --seconds 600
    python tools/hunt/absent_instructions.py --features avx_vnni -- pytest tests/isa

The command finds a copy of the package, and of the oneDNN that it would open, in which `cpuid` asks
`absent_instructions.c`; that computes each such instruction when it traps, some microseconds each:
kernels run as they would on the processor that has them, only slower. It says nothing of times. f16
arithmetic is not there, nor what comes after AVX512_FP16; instructions that are missing end the
process with their bytes.

Needs gcc, objdump, and a processor with AVX512_BF16 for AMX (without, only AVX_VNNI).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
CACHE = Path(os.environ.get("PYONEDNN_Q_CACHE", Path.home() / ".cache/pyonednn_q"))
FEATURES = ("amx", "avx_vnni", "fp16")  # an Intel Xeon with AMX has all three
# What traps in place of each, as long as it.
_TRAPS = {"cpuid": (b"\x0f\xa2", b"\x0f\x0b"), "xgetbv": (b"\x0f\x01\xd0", b"\x0f\xff\xd0")}
_SITE = re.compile(r"^ *([0-9a-f]+):\s+(cpuid|xgetbv)\b", re.MULTILINE)
_RUNPATH = re.compile(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]")
_SEGMENT = re.compile(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)")


def main() -> None:
    """Make the copies, or take those that are there, and become the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--features", nargs="+", default=FEATURES, choices=FEATURES)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    command = asked.command[1:] if asked.command[:1] == ["--"] else asked.command
    if not command:
        parser.error("a command")
    os.environ.update(environment(asked.features))
    os.execvp(command[0], command)


def environment(features: tuple[str, ...]) -> dict[str, str]:
    """Return the variables under which a command sees the features."""
    spec = find_spec("pyonednn_q")
    if spec is None or spec.origin is None:
        sys.exit("pyonednn_q is not installed, nor on PYTHONPATH")
    package = Path(spec.origin).parent
    said = subprocess.run(
        [sys.executable, "-c", "from pyonednn_q.native import library as l; print(l.load().path)"],
        check=True,
        capture_output=True,
        text=True,
    )
    original = Path(said.stdout.strip()).resolve()
    return {
        "ABSENT_INSTRUCTIONS": ",".join(features),
        # Where the library finds what it needs, which the copy of a repaired wheel's would not.
        "LD_LIBRARY_PATH": os.pathsep.join(
            filter(None, (*_searched(original), os.environ.get("LD_LIBRARY_PATH")))
        ),
        "LD_PRELOAD": f"{compiled()} {os.environ.get('LD_PRELOAD', '')}".strip(),
        "PYONEDNN_Q_LIBDNNL": str(kept(original)),
        "PYTHONPATH": os.pathsep.join(
            filter(None, (str(_overlay(package)), os.environ.get("PYTHONPATH")))
        ),
    }


def compiled() -> Path:
    """Return what is preloaded, compiled for this processor."""
    name = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    target = _made(f"absent-{name}.so")
    if not target.exists():
        flags = ("-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC")
        part = target.with_suffix(f".{os.getpid()}")
        subprocess.run(["gcc", *flags, "-o", part, SOURCE], check=True)
        part.replace(target)
    return target


def kept(library: Path) -> Path:
    """Return a copy of a shared library whose cpuid and xgetbv trap."""
    data = library.read_bytes()
    target = _made(hashlib.sha256(data).hexdigest()[:16]) / library.name
    if not target.exists():
        listing = ("objdump", "-d", "--no-show-raw-insn", library)
        text = subprocess.run(listing, check=True, capture_output=True, text=True).stdout
        part = target.with_name(f"{library.name}.{os.getpid()}")
        target.parent.mkdir(exist_ok=True)
        part.write_bytes(_with_traps(data, library, _SITE.findall(text)))
        part.chmod(0o755)
        part.replace(target)
    return target


def _with_traps(data: bytes, library: Path, sites: list[tuple[str, str]]) -> bytes:
    headers = ("readelf", "-lW", library)
    text = subprocess.run(headers, check=True, capture_output=True, text=True).stdout
    segments = [tuple(int(each, 16) for each in found) for found in _SEGMENT.findall(text)]
    patched = bytearray(data)
    for address, name in sites:
        old, new = _TRAPS[name]
        at = next(
            int(address, 16) - begin + offset
            for offset, begin, size in segments
            if begin <= int(address, 16) < begin + size
        )
        if patched[at : at + len(old)] != old:
            sys.exit(f"{library}: no {name} at 0x{address}")
        patched[at : at + len(new)] = new
    return bytes(patched)


def _searched(library: Path) -> list[str]:
    """Return the directories in which a shared library's own entries look for others."""
    told = subprocess.run(
        ("readelf", "-dW", library), check=True, capture_output=True, text=True
    ).stdout
    entries = (entry for found in _RUNPATH.findall(told) for entry in found.split(":"))
    return [entry.replace("$ORIGIN", str(library.parent)) for entry in entries if entry]


def _overlay(package: Path) -> Path:
    """Return a directory with the package in it, its extension replaced."""
    top = _made("overlay-" + hashlib.sha256(str(package).encode()).hexdigest()[:16])
    inside = top / package.name
    inside.mkdir(parents=True, exist_ok=True)
    for each in package.iterdir():
        link = inside / each.name
        goal = kept(each) if each.name.startswith("_core.") and each.suffix == ".so" else each
        if link.is_symlink() and link.readlink() != goal:
            link.unlink()
        if not link.is_symlink() and each.name != "__pycache__":
            link.symlink_to(goal)
    return top


def _made(name: str) -> Path:
    directory = CACHE / "absent"
    directory.mkdir(parents=True, exist_ok=True)
    return directory / name


if __name__ == "__main__":
    main()
