"""Hunted: on how many problems a hunt has run a kernel without finding anything wrong.

`hunted.json` is written by ``tools/hunt/hunt_registry.py`` from results of the hunt: problems that
ran, by version and runtime of oneDNN, instruction set, kind and implementation. A kernel that was
found wrong is not in it, nor is what no hunt has run: a newer oneDNN, or other features.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyonednn_q.primitive.isa import Facts

ENOUGH = 1000  # problems, of which then fewer than one in 330 are wrong, with 95 % certainty

NAME = "hunted.json"


def problems(facts: Facts, kind: str, impl: str) -> int:
    """Return on how many problems a kernel ran right, on that version and these features.

    Parameters
    ----------
    facts : Facts
        Version, runtime and instruction set of a process.
    kind : str
        Kind of the problems.
    impl : str
        The implementation's name.
    """
    return kernels(facts).get(f"{kind}: {impl}", 0)


def kernels(facts: Facts) -> Mapping[str, int]:
    """Return the same for all kernels that a hunt ran there, by ``kind: implementation``."""
    onednn = f"{'.'.join(map(str, facts.version))} {facts.runtime}"
    rows: Mapping[str, int] = _registry().get(onednn, {}).get(facts.isa.text(), {})
    return rows


@lru_cache(maxsize=1)
def _registry() -> Any:  # noqa: ANN401 - of JSON
    return json.loads(files(__package__).joinpath(NAME).read_text(encoding="utf-8"))
