"""Change the rooms that need no extension at random, and count the changes that tests notice.

    python tools/mutants/mutants.py --count 300 --seed 1
    python tools/mutants/mutants.py --count 0 expr/vec.py faults/guards     # every place of these
    python tools/mutants/mutants.py --tests tests/pure          # without tests/others/definitions

Each mutant is put into a copy of the package without the extension. A forked child runs the tests
that reach the changed place, quickest first and half a minute's worth at most, until one fails.
Mutants that no test can notice are in ``tests/mutants_equivalent.toml``, each with its reason. What
reaches what is kept in ``build``.

No tool that others keep draws a sample by a seed, changes what stands outside of functions (our
tables), and does without a new interpreter and all of the tests for each mutant.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import ml_dtypes  # noqa: F401 - loaded once, before all forks
import numpy as np  # noqa: F401 - the same
import pytest

from mutant import PACKAGE, ROOT, Mutant, places
from mutant_reach import ROOMS, Reach, ReachPlugin
from mutant_trial import OPTIONS, Chosen, Copy, Warm, in_fork, set_limits

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EQUIVALENT = ROOT / "tests" / "mutants_equivalent.toml"
_ENOUGH = 0.9


def drawn(rooms: list[str], count: int, seed: int) -> list[Mutant]:
    """Return so many mutants of rooms or files, one a place; all of them for a count of 0."""
    paths = sorted({p for r in rooms for p in [PACKAGE / r, *(PACKAGE / r).rglob("*.py")]})
    sites = [place for path in paths if path.is_file() for place in places(path)]
    print(f"{len(sites)} places in {', '.join(rooms)}; seed {seed}", flush=True)
    if count == 0:
        return [mutant for place in sites for mutant in place]
    draw = random.Random(seed)
    return [draw.choice(place) for place in draw.sample(sites, min(count, len(sites)))]


def measure(reach: Reach, copy: Copy, kept: Path) -> None:
    """Run the test files that have changed, to know what they reach."""

    def run() -> int:
        plugin = ReachPlugin(copy.package)
        pytest.main([*OPTIONS, "--capture=fd", *reach.stale()], plugins=[plugin])
        kept.write_text(json.dumps(plugin.measured()))
        return 0

    if reach.stale():
        print(f"measuring what {len(reach.stale())} test files reach", flush=True)
        in_fork(run)
        reach.keep(json.loads(kept.read_text()))


class Fates:
    """What became of each mutant: a file, because children write it."""

    def __init__(self, file: Path, mutants: list[Mutant]) -> None:
        self._file = file
        self._mutants = mutants
        file.touch()

    def all(self) -> dict[int, str]:
        """Return the fates that are known, by the number of the mutant."""
        lines = (line.partition(" ") for line in self._file.read_text().splitlines())
        return {int(number): fate for number, _, fate in lines}

    def tell(self, number: int, fate: str) -> None:
        """Write a fate down; say where a mutant is alive, and from time to time how many are."""
        with self._file.open("a") as lines:
            lines.write(f"{number} {fate}\n")
        if fate != "killed":
            print(f"{self._mutants[number]}\n    {fate}", flush=True)
        if len(self.all()) % 50 == 0:
            print(self, flush=True)

    def __str__(self) -> str:
        fates = Counter(self.all().values())
        counts = ", ".join(f"{count} {fate}" for fate, count in sorted(fates.items()))
        return f"{fates['killed'] / max(fates.total(), 1):.1%} of {fates.total()}: {counts}"


def try_all(
    mutants: list[Mutant], fates: Fates, reach: Reach, copy: Copy, folders: list[str]
) -> None:
    """Try every mutant: those of functions in one run of pytest, the others each in its own."""
    same, warm = equivalent(), {}
    for number, mutant in enumerate(mutants):
        if mutant.key in same:
            fates.tell(number, "equivalent")
        elif not any(reach.tests(mutant)):
            fates.tell(number, "not reached")
        elif mutant.function:
            warm[number] = mutant
    if warm:
        plugin = Warm(warm, reach, copy, fates.tell)
        in_fork(lambda: pytest.main([*OPTIONS, *folders], plugins=[plugin]))
    for number, mutant in enumerate(mutants):
        if number not in fates.all():
            fates.tell(number, alone(mutant, reach, copy))


def alone(mutant: Mutant, reach: Reach, copy: Copy) -> str:
    """Return the fate of a mutant whose file is imported anew."""
    direct, others = reach.tests(mutant)
    tests = [*direct, *others]
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))

    def run() -> int:
        set_limits()
        return pytest.main([*OPTIONS, "-x", *files], plugins=[Chosen(tests, reach.seconds)])

    with copy.changed(mutant):
        return "killed" if in_fork(run) else "alive"


def equivalent() -> set[tuple[str, str, str]]:
    """Return the file and the line before and after of each mutant that no test can notice."""
    rows = tomllib.loads(EQUIVALENT.read_text())["mutant"]
    return {(row["file"], row["before"], row["after"]) for row in rows}


def main() -> int:
    """Print the mutants that survive, and how many do not."""
    form = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("rooms", nargs="*", default=ROOMS, help="rooms or files of the package")
    parser.add_argument("--count", type=int, default=300, help="mutants; 0: all")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--tests", nargs="+", default=["tests/pure", "tests/others/definitions"])
    arguments = parser.parse_args()
    mutants = drawn(arguments.rooms, arguments.count, arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        sys.path.insert(0, name)
        os.environ |= {"PYTHONPATH": name, "HYPOTHESIS_STORAGE_DIRECTORY": f"{name}/hypothesis"}
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = f"{name}/compiled"
        os.chdir(ROOT)
        copy, reach = Copy(Path(name)), Reach([ROOT / folder for folder in arguments.tests])
        fates = Fates(Path(name) / "fates", mutants)
        measure(reach, copy, Path(name) / "reach")
        try_all(mutants, fates, reach, copy, arguments.tests)
        print(fates)
        killed = list(fates.all().values()).count("killed")
    return int(killed < _ENOUGH * len(mutants))


if __name__ == "__main__":
    sys.exit(main())
