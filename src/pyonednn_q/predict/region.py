"""Problems that a proof visited, and the table of proofs.

A kernel that is right on every problem that was tried may be wrong on the next one, whose blocks
are not full or whose window does not fit. So a problem has a class, and traits within it. A proof
is a set of both, and says nothing about a problem with a trait that it never met in that class.

Examples
--------
>>> from pyonednn_q.primitive.problem import ConvProblem
>>> problem = ConvProblem.of((1, 2, 4, 4), (2, 48, 1, 3, 3))
>>> class_of(problem)
'2-D, groups of one channel'
>>> region = Region.of([ConvProblem.of((1, 2, 4, 4), (2, 16, 1, 3, 3)), problem])
>>> region.outside(ConvProblem.of((1, 2, 5, 5), (2, 16, 1, 3, 3), stride=2))
'no 2-D convolution of groups of one channel was compared with stride 2'

`kernel_models.toml` states each fact once, of blocks of kernels; its first lines tell how.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

from pyonednn_q.predict.float_order import ORDERS, Order
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyonednn_q.acc.pairing import Weighted


@dataclass(frozen=True, slots=True)
class Region:
    """The problems that a proof visited.

    Attributes
    ----------
    visited : mapping
        Traits that problems had, all of them, for each class of problems.
    """

    visited: Mapping[str, frozenset[str]] = field(hash=False)  # mappings have no hash

    @classmethod
    def of(cls, problems: Iterable[Weighted]) -> Region:
        """Return the region of these problems."""
        visited: dict[str, frozenset[str]] = defaultdict(frozenset)
        for problem in problems:
            visited[class_of(problem)] |= traits(problem)
        return cls(dict(visited))

    def joined(self, other: Region) -> Region:
        """Return the region that one of two proofs visited."""
        visited = dict(self.visited)
        for of, names in other.visited.items():
            visited[of] = visited.get(of, frozenset()) | names
        return Region(visited)

    def outside(self, problem: Weighted) -> str:
        """Return the part of a problem that was never compared, as a sentence; "" in the region."""
        of = class_of(problem)
        rank, _, channels = of.partition(", ")
        words = f"{rank} {problem.kind.replace('_', ' ')}" + (f" of {channels}" if channels else "")
        if of not in self.visited:
            return f"no {words} was compared"
        missing = sorted(traits(problem) - self.visited[of])
        return f"no {words} was compared with {', '.join(missing)}" if missing else ""


def class_of(problem: Weighted) -> str:
    """Return the kind of shape: how many dimensions, and groups of what, or which batches."""
    if isinstance(problem, (ConvProblem, DeconvProblem)):
        return f"{problem.spatial}-D, {_channels(problem)}"
    if isinstance(problem, InnerProductProblem):
        return f"{problem.src.ndim - 2}-D" if problem.src.ndim > 2 else "plain"
    return _batches(problem)


def traits(problem: Weighted) -> frozenset[str]:
    """Return further traits of a shape that may change the code that runs, in words."""
    if isinstance(problem, (ConvProblem, DeconvProblem)):
        words = {*_blocks(problem), *_window(problem), *_ends(problem)}
        words.add("one image" if problem.src.dims[0] == 1 else "several images")
    elif isinstance(problem, InnerProductProblem):
        words = {_rows(problem.src.dims[0]), *_columns(problem.oc)}
        words.add(_divided("src channels", problem.src.dims[1]))
    else:
        words = {_rows(problem.m), *_columns(problem.n), _divided("K", problem.k)}
        if problem.bias is not None and problem.bias.size != problem.n:
            words.add("bias of more than a row")
    words.update(_layouts(problem))
    if any(0 in spec.dims for spec in problem.tensors.values()):
        words.add("nothing in it")
    return frozenset(words)


def _channels(problem: ConvProblem | DeconvProblem) -> str:
    if problem.groups == 1:
        return "one channel" if problem.ic == 1 else "one group"
    if problem.is_depthwise:
        return "depthwise"
    return "groups of one channel" if problem.ic == problem.groups else "groups"


def _batches(problem: MatMulProblem) -> str:
    rank = f"{problem.dst.ndim}-D"
    if problem.dst.ndim == 2:
        return rank
    src, wei = problem.src.dims[:-2], problem.wei.dims[:-2]
    if max(problem.batch) <= 1:
        return f"{rank}, a batch of one"
    if src == wei:
        return f"{rank}, batches"
    if max(wei) <= 1:
        return f"{rank}, batches by one wei"
    return f"{rank}, one src by batches" if max(src) <= 1 else f"{rank}, batches that are repeated"


def _blocks(problem: ConvProblem | DeconvProblem) -> Iterator[str]:
    """Give how channels come out in the blocks of kernels: fours of src, sixteens of dst."""
    inputs, outputs = problem.ic // problem.groups, problem.oc // problem.groups
    if inputs > 1:
        yield _divided("src channels", inputs)
    # Kernels for depthwise convolutions have their blocks across groups.
    outputs = problem.groups if problem.is_depthwise else outputs
    yield "one dst channel" if outputs == 1 else _rest("dst channels", outputs)
    if inputs == 1 < outputs and not problem.is_depthwise:  # such kernels take several at once
        yield _number(-(-outputs // 16))
    if problem.has_groups and problem.groups == 1:
        yield "a dimension of one group"


def _number(blocks: int) -> str:
    if blocks > 2:
        return "dst in blocks by fours" if blocks % 4 == 0 else "dst in another number of blocks"
    return "dst in a block of 16" if blocks == 1 else "dst in two blocks"


def _window(problem: ConvProblem | DeconvProblem) -> Iterator[str]:
    window = problem.window
    wide = [kernel > 1 for kernel in window.kernel]
    if all(wide):
        yield "wider kernel"
    else:
        yield "kernel of 1 along an axis" if any(wide) else "kernel of 1"
    if max(window.kernel) > 7:
        yield "kernel beyond 7"
    if window.reach != window.kernel:
        yield "dilation"
    steps = max(window.stride)
    yield f"stride {steps}" if steps < 3 else "stride beyond 2"
    if len(set(window.stride)) > 1:
        yield "strides that differ"
    if any(k < step for k, step in zip(window.kernel, window.stride, strict=True)):
        yield "kernel shorter than stride"
    lo, hi = window.padding_lo, window.padding_hi
    yield "padding" if any(lo + hi) else "no padding"
    if lo != hi:
        yield "padding of one side"
    if any(max(sides) >= reach for *sides, reach in zip(lo, hi, window.reach, strict=True)):
        yield "padding as long as the kernel"


def _ends(problem: ConvProblem | DeconvProblem) -> Iterator[str]:
    """Give which lengths are too short for a kernel to be in its inner loop."""
    reach, lengths = problem.window.reach, problem.src.dims[2:]
    pairs = list(zip(reach, lengths, strict=True))
    if any(far > length for far, length in pairs):
        yield "kernel longer than src"
    if any(far > 1 == length for far, length in pairs):
        yield "one place of src along the kernel"
    if problem.dst.dims[-1] == 1:
        yield "one column of dst"
    if problem.dst.dims[2:] != problem.least_lengths:
        yield "dst beyond the taps"


def _divided(name: str, count: int) -> str:
    if count < 4:
        return f"{name} of 1" if count == 1 else f"{name} of 2 or 3"
    if count % 16 == 0:
        return f"{name} in sixteens"
    return f"{name} beside fours" if count % 4 else f"{name} in fours"


def _rest(name: str, count: int) -> str:
    if count % 16 == 0:
        return f"{name} in sixteens"
    return f"{name} beside eights" if count % 8 else f"{name} in eights"


def _rows(count: int) -> str:
    if count == 1:
        return "one row"
    return "up to 15 rows" if count < 16 else "16 rows or more"


def _columns(count: int) -> Iterator[str]:
    if count == 1:
        yield "one column"
        return
    yield _rest("columns", count)
    yield "columns in a block of 16" if count <= 16 else "columns in several blocks"


def _layouts(problem: Weighted) -> Iterator[str]:
    layout = _of_images if problem.row_axis is None else _of_matrices
    for name in ("src", "dst"):
        yield f"{name} {layout(problem.tensors[name])}"
    if problem.wei.strides is not None:  # else packed, as every kernel prefers them
        yield f"wei {layout(problem.wei)}"


def _of_images(spec: TensorSpec) -> str:
    if spec.strides is None:
        return "in any layout"
    if spec.ndim > 2 and spec.strides == TensorSpec.channels_last(spec.dims, spec.dtype).strides:
        return "channels last"
    if spec.strides != TensorSpec.dense(spec.dims, spec.dtype).strides:
        return "with gaps"
    # Of one channel, both are the same bytes.
    return "channels last" if spec.ndim > 2 and spec.dims[1] == 1 else "row-major"


def _of_matrices(spec: TensorSpec) -> str:
    if spec.strides is None:
        return "in any layout"
    if spec.strides == TensorSpec.dense(spec.dims, spec.dtype).strides:
        return "row-major"
    return "transposed" if spec.strides[-2] == 1 else "with gaps"


Key = tuple[str, str, str, str, str]
_ORDERS = {order.text(): order for order in ORDERS}


@dataclass(frozen=True, slots=True)
class Proof:
    """Problems that were compared with execution, without a difference.

    Attributes
    ----------
    order : Order
        The order of operations that was found.
    features : frozenset of str
        Features of the compared problems besides their sums: see `kernel_model.features`.
    region : Region
        Shapes of those problems.
    undecided : frozenset of str
        Features that ran, but whose outputs could not tell two orders of operations apart.
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
    """Return the proofs of a table, by (primitive, source, implementation, ISA, version)."""
    data = msgspec.toml.decode(text)
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
