"""The table of proofs: for which kernels a model was compared with execution, on which problems.

`kernel_models.toml` states each fact once, of blocks of kernels; its first lines tell how.
"""

from __future__ import annotations

import functools
import itertools
import sys
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from pyonednn_q.predict.float_order import ORDERS, Order
from pyonednn_q.predict.region import Region

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Key = tuple[str, str, str, str, str]
_ORDERS = {order.text(): order for order in ORDERS}


@dataclass(frozen=True, slots=True)
class Proof:
    """What was compared with execution, without a difference.

    Attributes
    ----------
    order : Order
        The order of operations that was found.
    features : frozenset of str
        What the compared problems did besides their sums: see `kernel_model.features`.
    region : Region
        Which shapes those problems had.
    undecided : frozenset of str
        Features that were run, but with no result by which orders differ: not proven.
    """

    order: Order
    features: frozenset[str]
    region: Region
    undecided: frozenset[str] = field(default=frozenset())


@functools.cache
def proofs() -> Mapping[Key, Proof]:
    """Return all that is proven, by (primitive, source, implementation, ISA, version)."""
    return read(resources.files("pyonednn_q.predict").joinpath("kernel_models.toml").read_text())


def read(text: str) -> dict[Key, Proof]:
    """Return what a table says, by (primitive, source, implementation, ISA, version)."""
    data = tomllib.loads(text)
    regions: dict[Key, Region] = {}
    for row in data["region"]:
        traits = data["traits"][row["primitive"]]
        visited = {}
        for line in row["visited"].splitlines():
            name, _, letters = line.partition("|")
            visited[name.strip()] = frozenset(
                traits[letter] for letter in letters.strip(" .") if letter != "."
            )
        regions.update(dict.fromkeys(_keys(row), Region(visited)))
    table = {}
    for row in data["kernel"]:
        lacks = data["without"][row["without"]]
        undecided = frozenset(name[1:-1] for name in lacks if name.startswith("("))
        features = frozenset(data["features"][row["primitive"]]).difference(lacks, undecided)
        order = _ORDERS[row["order"]]
        for key in _keys(row):
            table[key] = Proof(order, features, regions[key], undecided)
    return table


def _keys(row: Mapping[str, Any]) -> Iterator[Key]:
    """Give the kernels of a row's blocks; a line that is indented goes on with the one before."""
    for block in row["at"].replace("\n ", " ").splitlines():
        names = [words.split() for words in block.split("|")]
        for src, impl, version, isa in itertools.product(*names):
            yield row["primitive"], src, impl, isa, version
