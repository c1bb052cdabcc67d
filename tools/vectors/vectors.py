"""A compact file for the vectors of an outside suite: facts, without a line of its code.

One NPZ archive: `index`, JSON in UTF-8, says where the numbers are from and lists the cases; the
arrays of all cases lie one after another in one array for each dtype, equal ones once. It comes out
the same, byte by byte, each time. `tests/support/outside/vectors.py` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

Case = dict[str, Any]  # name, op, attributes, and tensors: arrays by name


def save(path: Path, origin: dict[str, str], cases: Iterable[Case]) -> int:
    """Write cases, and return the size of the file in bytes."""
    rows: list[dict[str, Any]] = []
    parts: dict[str, list[np.ndarray[Any, Any]]] = {}
    places: dict[tuple[str, bytes], int] = {}
    for case in cases:
        tensors = {}
        for name, array in case["tensors"].items():
            dtype = array.dtype.name
            before = parts.setdefault(dtype, [])
            at = places.get((dtype, array.tobytes()))
            if at is None:
                at = places[dtype, array.tobytes()] = sum(part.size for part in before)
                before.append(array.ravel())
            tensors[name] = [dtype, at, list(array.shape)]
        rows.append(case | {"tensors": tensors})
    index = json.dumps({"origin": origin, "cases": rows}, separators=(",", ":"))
    arrays: dict[str, Any] = {name: np.concatenate(parts[name]) for name in sorted(parts)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        np.savez_compressed(file, index=np.frombuffer(index.encode(), np.uint8), **arrays)
    return path.stat().st_size
