"""Keep what a hunt has covered: src/pyonednn_q/faults/hunted.json, which the package reads.

Counts of problems that ran right, by version and runtime of oneDNN, instruction set, kind and
implementation. What results bring replaces what is there of the same version, runtime and
instruction set, so give all results of them; a kernel that was found wrong in any is left out.

    python tools/hunt/hunt.py --seconds 3600 --results a.json
    python tools/hunt/hunt.py --plain --seconds 600 --results b.json
    python tools/hunt/hunt_registry.py a.json b.json
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyonednn_q.faults import hunted

FILE = Path(hunted.__file__).with_name(hunted.NAME)
_FOUND = re.compile(r" on (?P<impl>\S*): ")


def counted(told: Iterable[dict[str, Any]]) -> dict[str, dict[str, Counter[str]]]:
    """Return counts by oneDNN and instruction set, of results of the hunt.

    Examples
    --------
    >>> one = {"onednn": "3.7.2 OMP", "isa": "AVX2", "ran": {"matmul: a": 7, "matmul: b": 5}}
    >>> wrong = {**one, "ran": {"matmul: a": 1}, "findings": ["8: 1 of 9 on b: matmul src:u8"]}
    >>> counted([one | {"findings": []}, wrong])["3.7.2 OMP"]["AVX2"]
    Counter({'matmul: a': 8})
    """
    registry: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    wrong: dict[tuple[str, str], set[str]] = defaultdict(set)
    for tally in told:
        place = tally["onednn"], tally["isa"]
        registry[place[0]][place[1]].update(tally["ran"])
        found = (_FOUND.search(finding) for finding in tally["findings"])
        wrong[place] |= {match["impl"] for match in found if match}
    for (onednn, isa), impls in wrong.items():
        counts = registry[onednn][isa]
        for what in [what for what in counts if what.partition(": ")[2] in impls]:
            del counts[what]
    return {onednn: dict(by_isa) for onednn, by_isa in registry.items()}


def main() -> None:
    """Write the file anew."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", type=Path, help="of tools/hunt/hunt.py --results")
    asked = parser.parse_args()
    lines = [line for path in asked.results for line in path.read_text().splitlines()]
    registry = json.loads(FILE.read_text())
    # What was run behind a row that did not count shows faults, not what is right.
    told = [tally for tally in map(json.loads, lines) if not tally.get("ignored")]
    for onednn, by_isa in counted(told).items():
        registry.setdefault(onednn, {}).update(by_isa)
    FILE.write_text(json.dumps(registry, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
