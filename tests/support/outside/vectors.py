"""Vectors of outside suites, as `tools/vectors/vectors.py` packs them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

DATA = Path(__file__).parents[2] / "data"


@dataclass(frozen=True)
class Case:
    """One case of a suite.

    Attributes
    ----------
    name : str
        As the suite calls it.
    op : str
        The operator.
    attributes : dict
        Its attributes by the suite's names.
    tensors : dict of ndarray
        Its inputs and outputs by the suite's names.
    """

    name: str
    op: str
    attributes: dict[str, Any]
    tensors: dict[str, Array]


def load(path: Path) -> tuple[dict[str, str], list[Case]]:
    """Return where a file's numbers are from, and its cases."""
    with np.load(path) as archive:
        index = json.loads(archive["index"].tobytes())
        flat = {name: archive[name] for name in archive.files if name != "index"}
    cases = []
    for row in index["cases"]:
        places = row["tensors"].items()
        row["tensors"] = {
            name: flat[dtype][at : at + prod(shape)].reshape(shape)
            for name, (dtype, at, shape) in places
        }
        cases.append(Case(**row))
    return index["origin"], cases
