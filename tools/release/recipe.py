"""Try the conda recipe without conda.

    pip install py-rattler-build==0.73.0
    python tools/release/recipe.py render            # for each Python
    python tools/release/recipe.py build FOLDER      # the build script, on a prefix like conda's

`build` takes oneDNN from FOLDER: an install prefix, `/usr` of Debian 13, or a folder into which
Debian's packages libdnnl-dev and libdnnl3.6 were unpacked (`dpkg-deb -x`). Their library needs the
glibc of Debian 13, where `.ci/trixie .ci/inside/recipe` tries it.

The prefix is a virtual environment of this Python that sees its packages (pip, scikit-build-core,
pybind11 and NumPy are needed), with oneDNN in include, lib and lib/cmake. What was built is moved,
as conda moves packages, and must then open the library at the new place and compute.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipe" / "recipe.yaml"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
MULTIARCH = "x86_64-linux-gnu"
NEEDED = ("pip", "scikit_build_core", "pybind11", "numpy")
CALL = """
import json
import numpy as np
import pyonednn_q as pq
from pyonednn_q.native import library

src, wei = np.full((2, 8), 3, np.uint8), np.full((8, 4), -5, np.int8)
q = {"src_q": pq.QParams(1.0, 0, "u8"), "wei_q": pq.QParams(1.0, 0, "s8")}
dst = pq.MatMul(wei, **q, dst="s32")(src)
used = library.loaded()
print(json.dumps([pq.__file__, used.source, used.path, used.runtime, dst.ravel().tolist()]))
"""


def rendered(python: str, platform: str = "linux-64") -> dict[str, Any]:
    """Return the recipe as rattler-build makes it for a Python and a platform."""
    from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

    chosen = {"python": [python], "c_stdlib": ["sysroot"], "c_stdlib_version": ["2.28"]}
    config = RenderConfig(PlatformConfig(target_platform=platform))
    (one,) = Stage0Recipe.from_file(str(RECIPE)).render(VariantConfig(chosen), config)
    result: dict[str, Any] = one.recipe.to_dict()
    return result


def lay_out(onednn: Path, prefix: Path) -> None:
    """Copy an installed oneDNN into a prefix as conda lays it out: lib has no folder of a CPU."""
    root = onednn / "usr" if (onednn / "usr").is_dir() else onednn
    many = (root / "lib" / MULTIARCH / "cmake" / "dnnl").is_dir()
    libraries = root / "lib" / MULTIARCH if many else root / "lib"
    includes = ["oneapi", "dnnl*"]
    for source, names in ((root / "include", includes), (libraries, ["libdnnl*", "cmake/dnnl"])):
        for path in (path for name in names for path in source.glob(name)):
            to = prefix / ("lib" if source == libraries else "include") / path.relative_to(source)
            to.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, to)
            else:
                shutil.copy(path, to, follow_symlinks=False)
    up = 'get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)\n'
    for file in (prefix / "lib" / "cmake" / "dnnl").glob("*.cmake") if many else ():
        text = file.read_text().replace(f"lib/{MULTIARCH}/", "lib/")
        file.write_text(text.replace(up, "", 1))  # one folder less to climb


def make_prefix(folder: Path) -> Path:
    """Return the Python of a virtual environment that finds what a build needs in this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    specs = [importlib.util.find_spec(name) for name in NEEDED]
    missing = [name for name, spec in zip(NEEDED, specs, strict=True) if spec is None]
    if missing:
        sys.exit(f"this Python lacks {', '.join(missing)}")
    homes = {str(Path(str(spec.origin)).parents[1]) for spec in specs if spec and spec.origin}
    (purelib,) = folder.glob("lib/python*/site-packages")
    (purelib / "needed.pth").write_text("\n".join(sorted(homes)) + "\n")
    return folder / "bin" / "python"


def called(prefix: Path) -> list[Any]:
    """Run one call from a prefix; say which package and which library did it, and what came."""
    clean = {name: value for name, value in os.environ.items() if name[:3] not in {"PYT", "LD_"}}
    command = [str(prefix / "bin" / "python"), "-c", CALL]
    done = subprocess.run(
        command, cwd=prefix, env=clean, check=True, capture_output=True, text=True
    )
    answer: list[Any] = json.loads(done.stdout)
    return answer


def move(prefix: Path, to: Path) -> None:
    """Move a prefix as conda installs a package: its place, in files of text, is written anew."""
    prefix.rename(to)
    for path in [*to.glob("bin/*"), *to.rglob("pyonednn_q/_build.json")]:
        content = path.read_bytes()
        if not path.is_symlink() and str(prefix).encode() in content:
            path.write_bytes(content.replace(str(prefix).encode(), str(to).encode()))


def build(onednn: Path) -> list[str]:
    """Run the build script on a prefix, move it, call; return what was seen.

    Raises
    ------
    SystemExit
        It uses another package, library or runtime than those of the prefix, or computes wrongly.
    """
    seen = []
    with tempfile.TemporaryDirectory(prefix="pyonednn_q_recipe_") as work:
        built, installed = Path(work) / "built", Path(work) / "installed"
        python = make_prefix(built)
        lay_out(onednn, built)
        settings = {"PREFIX": str(built), "PYTHON": str(python), "SRC_DIR": str(ROOT)}
        script = ["bash", str(ROOT / "recipe" / "build.sh")]
        subprocess.run(script, cwd=ROOT, env=os.environ | settings, check=True)
        for prefix in (built, installed):
            if prefix == installed:
                move(built, installed)
            package, origin, library, runtime, dst = called(prefix)
            seen.append(f"{prefix.name}: {origin}, {Path(library).name}, {runtime}")
            inside = all(Path(each).is_relative_to(prefix) for each in (package, library))
            if not (inside and origin == "build" and dst == [-120] * 8):
                sys.exit(f"{prefix}: {package}, {origin}, {library}, {dst}")
    return seen


def main(argv: list[str] | None = None) -> None:
    """Run a command and print what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=("render", "build"))
    parser.add_argument("onednn", nargs="?", type=Path, help="folder of an installed oneDNN")
    options = parser.parse_args(argv)
    if options.command == "render":
        for python in PYTHONS:
            recipe = rendered(python)
            sys.stdout.write(f"{recipe['build']['string']}: {recipe['requirements']}\n")
    elif options.onednn is None:
        parser.error("build: name the folder of a oneDNN")
    else:
        sys.stdout.write("\n".join(build(options.onednn.resolve())) + "\n")


if __name__ == "__main__":
    main()
