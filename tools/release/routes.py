"""What each way to install costs: time, download and disk, and how long the demo then takes.

    python tools/release/routes.py                        # from the checkout: the onednn wheel
    python tools/release/routes.py --wheel dist/*311*.whl # a wheel that carries oneDNN
    python tools/release/routes.py --bundle DIRECTORY     # from the checkout, with that oneDNN

Each in an empty environment and without pip's cache. The download is what pip says that it fetches,
for the build environment too; the disk is what the environment grows by. ``--most-seconds`` and
``--most-mb`` make it a test.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_DOWNLOADED = re.compile(r"Downloading \S+ \(([\d.]+) (bytes|[kMG]B)\)")
_LOCAL = re.compile(r"Processing (/\S+\.whl)")  # an index may be a directory
_MB = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one route."""

    install_s: float
    download_mb: float
    disk_mb: float
    demo_s: float
    runtime: str


def main() -> int:
    """Print a line for the route; return 1 when it costs more than it may."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--most-seconds", type=float, default=float("inf"))
    parser.add_argument("--most-mb", type=float, default=float("inf"))
    options = parser.parse_args()
    target = str(options.wheel.absolute()) if options.wheel else "."
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYONEDNN_Q_")
    }
    if options.bundle:
        environment["PYONEDNN_Q_BUNDLE"] = str(options.bundle.absolute())
    with tempfile.TemporaryDirectory() as name:
        cost = measured(f"{target}[demo]", environment, Path(name))
    print(
        f"{Path(target).absolute().name}[demo] on {cost.runtime}: install {cost.install_s:.0f} s, "
        f"download {cost.download_mb:.0f} MB, disk {cost.disk_mb:.0f} MB, demo {cost.demo_s:.0f} s"
    )
    seconds = cost.install_s + cost.demo_s
    if seconds > options.most_seconds or cost.disk_mb > options.most_mb:
        print(f"more than {options.most_seconds} s or {options.most_mb} MB", file=sys.stderr)
        return 1
    return 0


def measured(target: str, environment: dict[str, str], work: Path) -> Cost:
    """Install `target` into an empty environment, and run the demo."""
    place, log = work / "venv", work / "pip.log"
    venv.create(place, with_pip=True)
    empty = used(place)
    python = str(place / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", "--no-cache-dir", "--log", str(log), target]
    install_s, _ = run(install, environment, ROOT)
    # The bytes are those of the installation: what Python compiles comes with it.
    disk_mb = (used(place) - empty) / 1e6
    demo_s, _ = run([python, "-m", "pyonednn_q", "demo"], environment, work)
    told = "from pyonednn_q.native import library as l; f = l.load(); print(f.source, f.runtime)"
    _, runtime = run([python, "-c", told], environment, work)
    said = log.read_text()
    download_mb = sum(float(size) * _MB[unit] for size, unit in _DOWNLOADED.findall(said))
    local = (Path(name) for name in _LOCAL.findall(said))
    download_mb += sum(file.stat().st_size for file in local if file.exists()) / 1e6
    return Cost(install_s, download_mb, disk_mb, demo_s, runtime.strip())


def run(command: list[str], environment: dict[str, str], place: Path) -> tuple[float, str]:
    """Return the seconds that a command took, and what it printed."""
    begin = time.monotonic()
    done = subprocess.run(
        command, env=environment, cwd=place, check=True, stdout=subprocess.PIPE, text=True
    )
    return time.monotonic() - begin, done.stdout


def used(place: Path) -> int:
    """Return the bytes on disk of all files under `place`."""
    stats = (path.lstat() for path in place.rglob("*"))
    return sum(about.st_blocks * 512 for about in stats)


if __name__ == "__main__":
    sys.exit(main())
