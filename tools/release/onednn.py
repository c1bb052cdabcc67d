"""Build the oneDNN that wheels carry, once, and print the directory that it is in.

    python tools/release/onednn.py --cache ~/.cache/pyonednn_q
    PYONEDNN_Q_BUNDLE=$(python tools/release/onednn.py --cache ~/.cache/pyonednn_q) pip install .

Sources are the first release of ``releases.toml`` that can be downloaded, or what ``--sources``
names: a directory, an archive, or an address of one. What was built before of the same sources,
patches, options, compiler and libc is taken from the cache. Building takes 37 minutes of one core.

Needs a C++ compiler with OpenMP, CMake, Ninja and patch.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAME = "dnnl_pyonednn_q"  # src/pyonednn_q/native/library.py opens it
# What the extension makes (PQ_DNNL_FUNCTIONS in src/cpp/library.hpp), and what these use inside.
PRIMITIVES = (
    *("BINARY", "CONVOLUTION", "DECONVOLUTION", "ELTWISE", "INNER_PRODUCT", "MATMUL", "POOLING"),
    *("PRELU", "REDUCTION", "REORDER", "RESAMPLING", "SOFTMAX", "SUM"),
)
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "DNNL_LIBRARY_NAME": NAME,
    "ONEDNN_CPU_RUNTIME": "OMP",
    "ONEDNN_GPU_RUNTIME": "NONE",
    "ONEDNN_BUILD_GRAPH": "OFF",
    "ONEDNN_BUILD_TESTS": "OFF",
    "ONEDNN_BUILD_EXAMPLES": "OFF",
    "ONEDNN_ENABLE_WORKLOAD": "INFERENCE",
    "ONEDNN_ENABLE_PRIMITIVE": ";".join(PRIMITIVES),
    "ONEDNN_ENABLE_PRIMITIVE_CPU_ISA": "ALL",
}
EXPORTS = HERE / "exports.map"
_OMP = 2  # dnnl_cpu_runtime of dnnl_version_t


class SourceError(Exception):
    """The sources cannot be had, or are not what they should be."""


@dataclass(frozen=True, slots=True)
class Sources:
    """An archive or a directory, its SHA-256, and the patches for it."""

    path: Path
    sha256: str
    origin: str
    patches: tuple[Path, ...] = ()

    def key(self) -> str:
        """Return what tells one build from another."""
        patches = [digest(patch) for patch in self.patches]
        about = [self.sha256, patches, OPTIONS, digest(EXPORTS), compiler(), platform.libc_ver()]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]


def main() -> int:
    """Print the directory; messages go to stderr."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--cache", type=Path, required=True, help="directory for builds and archives"
    )
    parser.add_argument("--sources", help="directory, archive or address, instead of releases.toml")
    parser.add_argument("--sha256", help="what --sources must have")
    parser.add_argument("--version", help="this release of releases.toml, and no other")
    parser.add_argument("--kept", action="store_true", help="fail where it has to be built")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    if options.sha256 and not options.sources:
        parser.error("--sha256 is that of --sources")
    cache = options.cache.expanduser().absolute()
    cache.mkdir(parents=True, exist_ok=True)
    try:
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if options.sources:
                sources = given(options.sources, options.sha256, cache)
            else:
                sources = released(options.version, cache)
            print(built(sources, cache, 0 if options.kept else options.jobs))
    except SourceError as error:
        say(str(error))
        return 1
    return 0


def say(text: str) -> None:
    """Print to stderr: stdout is for the result."""
    print(text, file=sys.stderr, flush=True)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of all files of a directory."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    total = hashlib.sha256()
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        name = file.relative_to(path)
        if name.parts[0] != ".git":
            total.update(f"{name} {digest(file)}\n".encode())
    return total.hexdigest()


def compiler() -> str:
    """Return the name and version of the compiler that CMake takes."""
    command = [os.environ.get("CXX", "c++"), "--version"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[
        0
    ]


def download(url: str, sha256: str | None, cache: Path) -> Path:
    """Return the file behind `url`, kept in the cache by its checksum."""
    kept = cache / f"{sha256}-{url.rsplit('/', 1)[1]}"
    if not (sha256 and kept.exists()):
        say(f"downloading {url}")
        try:
            with urllib.request.urlopen(url, timeout=60) as answer, kept.open("wb") as file:
                shutil.copyfileobj(answer, file)
        except (OSError, urllib.error.URLError) as error:
            kept.unlink(missing_ok=True)
            message = f"{url}: {error}"
            raise SourceError(message) from None
    check(kept, sha256)
    return kept


def check(path: Path, sha256: str | None) -> str:
    """Return the checksum of `path`, which must be `sha256` if that is given."""
    checksum = digest(path)
    if sha256 and checksum != sha256.lower():
        message = f"{path} has the SHA-256 {checksum}, not {sha256}"
        raise SourceError(message)
    return checksum


def given(place: str, sha256: str | None, cache: Path) -> Sources:
    """Return the sources that the user names."""
    path = download(place, sha256, cache) if "://" in place else Path(place).expanduser().absolute()
    if not path.exists():
        message = f"there is no {path}"
        raise SourceError(message)
    return Sources(path, check(path, sha256), place)


def released(version: str | None, cache: Path) -> Sources:
    """Return the first release that can be had, or the one of that version."""
    releases = tomllib.loads((HERE / "releases.toml").read_text())["release"]
    wanted = [each for each in releases if version in {None, each["version"]}]
    missing = []
    for release in wanted:
        try:
            path = download(release["url"], release["sha256"], cache)
            patches = patches_of(release["patches"], cache) if "patches" in release else ()
        except SourceError as error:
            missing.append(f"oneDNN {release['version']} cannot be had: {error}")
            continue
        for line in missing:
            say(f"WARNING: {line}")
        if missing:
            say(f"WARNING: the wheel will carry oneDNN {release['version']} instead")
        return Sources(path, release["sha256"], release["url"], patches)
    known = ", ".join(each["version"] for each in releases)
    message = "\n".join(missing) or f"releases.toml has no oneDNN {version}, but {known}"
    raise SourceError(message)


def patches_of(about: dict[str, str | list[str]], cache: Path) -> tuple[Path, ...]:
    """Return the patches that a release names, taken out of their archive."""
    url, sha256, names = about["url"], about["sha256"], about["names"]
    archive = download(str(url), str(sha256), cache)
    place = archive.with_name(archive.name.removesuffix(".tar.xz"))
    extract(archive, place)
    return tuple(place / "debian" / "patches" / name for name in names)


def built(sources: Sources, cache: Path, jobs: int) -> Path:
    """Return the directory of the library built of `sources`; without jobs, if it is there."""
    bundle = cache / f"onednn-{sources.key()}"
    if bundle.exists():
        say(f"{sources.origin}: built before, {bundle}")
        return bundle
    if not jobs:
        message = f"{sources.origin}: {bundle} was not built"
        raise SourceError(message)
    with tempfile.TemporaryDirectory(dir=cache) as name:
        work = Path(name)
        tree = unpacked(sources, work)
        compiled = compile_library(tree, work, jobs)
        lib = work / "bundle" / "lib"
        collect(sources, tree, compiled, lib)
        lib.parent.rename(bundle)  # last: what has its name is complete
    return bundle


def extract(archive: Path, place: Path) -> None:
    """Extract an archive, whose digest was checked: Python 3.11.0 to 3.11.3 has no filters."""
    with tarfile.open(archive) as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(place)


def unpacked(sources: Sources, work: Path) -> Path:
    """Return a patched copy of the source tree."""
    if sources.path.is_dir():
        tree = work / "sources"
        shutil.copytree(sources.path, tree, ignore=shutil.ignore_patterns(".git"))
    else:
        extract(sources.path, work / "archive")
        (tree,) = (work / "archive").iterdir()
    for patch in sources.patches:
        with patch.open() as text:
            subprocess.run(["patch", "-p1", "-s"], cwd=tree, stdin=text, check=True)
    return tree


def compile_library(tree: Path, work: Path, jobs: int) -> Path:
    """Compile, and return the stripped library."""
    build, prefix = work / "build", work / "prefix"
    options = [f"-D{name}={value}" for name, value in OPTIONS.items()]
    # Other copies of oneDNN in the process, inside PyTorch for one, have functions of these names.
    linking = f"-Wl,-Bsymbolic -Wl,--version-script={EXPORTS}"
    options.append(f"-DCMAKE_SHARED_LINKER_FLAGS={linking}")
    places = [f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib"]
    for command in (
        ["cmake", "-G", "Ninja", "-S", str(tree), "-B", str(build), *options, *places],
        ["cmake", "--build", str(build), "--parallel", str(jobs)],
        ["cmake", "--install", str(build), "--strip"],
    ):
        subprocess.run(command, check=True, stdout=sys.stderr)
    return (prefix / "lib" / f"lib{NAME}.so.3").resolve()


def collect(sources: Sources, tree: Path, compiled: Path, lib: Path) -> None:
    """Put the library, the licences and a record of what it is into `lib`."""
    licenses = lib / "licenses"
    (licenses / "oneDNN").mkdir(parents=True)
    for name in ("LICENSE", "THIRD-PARTY-PROGRAMS"):
        shutil.copy(tree / name, licenses / "oneDNN")
    shutil.copytree(ROOT / "third_party" / "libgomp", licenses / "libgomp")
    library = lib / f"lib{NAME}.so.3"
    shutil.copy(compiled, library)
    record = {
        "onednn": opened(library),
        "sources": sources.origin,
        "sha256": sources.sha256,
        "patches": {patch.name: digest(patch) for patch in sources.patches},
        "options": OPTIONS,
        "compiler": compiler(),
        "libc": " ".join(platform.libc_ver()),
    }
    (lib / "onednn.json").write_text(json.dumps(record, indent=2) + "\n")


def opened(library: Path) -> str:
    """Return the version that the library tells of itself."""

    class Version(ctypes.Structure):
        _fields_ = (
            *((name, ctypes.c_int) for name in ("major", "minor", "patch")),
            ("hash", ctypes.c_char_p),
            ("cpu_runtime", ctypes.c_uint),
        )

    ask = ctypes.CDLL(str(library)).dnnl_version
    ask.restype = ctypes.POINTER(Version)
    about = ask().contents
    if about.cpu_runtime != _OMP:
        message = f"{library} is no OpenMP build (dnnl_version says runtime {about.cpu_runtime})"
        raise SourceError(message)
    return f"{about.major}.{about.minor}.{about.patch}"


if __name__ == "__main__":
    sys.exit(main())
