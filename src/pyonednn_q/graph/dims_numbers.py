"""Elements of tensors that are made of dims: what Shape gives, and arithmetic of few integers.

So a Reshape is known whose lengths a model computes of those of a tensor. Each function returns the
elements of a node's first result in order; where it cannot, LookupError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyonednn_q.graph.dims_rule import KnownSources, Length, Numbers, place, product

__all__ = ["arithmetic", "chosen", "count", "joined", "kept", "lengths_of", "part_of", "quotient"]

_INTEGERS = {"int32", "int64"}


def lengths_of(node: KnownSources) -> Numbers:
    """Return the dims of the source, from start to end (Shape)."""
    return node.dims(0)[node.attributes.get("start", 0) : node.attributes.get("end")]


def count(node: KnownSources) -> Numbers:
    """Return the number of elements of the source (Size)."""
    return (product(node.dims(0)),)


def kept(node: KnownSources) -> Numbers:
    """Return the elements of the source, of integers (Identity, Cast, Squeeze, Unsqueeze)."""
    target = node.attributes.get("to")
    if target is not None and target not in {6, 7}:  # int32, int64
        raise LookupError(target)
    return _integers(node, 0)


def joined(node: KnownSources) -> Numbers:
    """Return the elements of all sources of one dim (Concat)."""
    sources = range(len(node.tensors))
    return tuple(each for at in sources for each in _vector(node, at))


def chosen(node: KnownSources) -> Numbers:
    """Return the elements of a vector at indices (Gather)."""
    values = _vector(node, 0)
    return tuple(values[place(index, len(values))] for index in _integers(node, 1))


def part_of(node: KnownSources) -> Numbers:
    """Return the elements of a vector from a start to an end (Slice)."""
    values = _vector(node, 0)
    parts = [node.told(*each) for each in (("starts", 1), ("ends", 2), ("steps", 4))]
    ((start,), (end,), (step,)) = (each or (1,) for each in parts)
    if any(isinstance(each, str) for each in (start, end, step)):
        raise LookupError(start)
    if step < 0 and start < -len(values):
        raise LookupError(start)
    return values[start:end:step]


def arithmetic(
    compute: Callable[[Any, Any], Any], neutral: int
) -> Callable[[KnownSources], Numbers]:
    """Return what computes with two sources, of as many elements each or of one (Add, Mul).

    Parameters
    ----------
    compute : callable
        A function of two integers.
    neutral : int
        Second operand with which a symbol stays itself.
    """

    def computed(node: KnownSources) -> Numbers:
        first, second = _integers(node, 0), _integers(node, 1)
        size = max(len(first), len(second))
        if {len(first), len(second)} - {1, size}:
            raise LookupError(size)
        pairs = zip(_wide(first, size), _wide(second, size), strict=True)
        return tuple(_of_two(compute, neutral, *pair) for pair in pairs)

    return computed


def _of_two(compute: Callable[[Any, Any], Any], neutral: int, one: Length, other: Length) -> Length:
    if isinstance(one, str) or isinstance(other, str):
        return one if other == neutral else ""
    return int(compute(one, other))


def quotient(one: int, other: int) -> int:
    """Return a quotient of lengths; of others runtimes do not agree where it is rounded to."""
    if one < 0 or other <= 0:
        raise LookupError(other)
    return one // other


def _wide(values: Sequence[Length], size: int) -> Sequence[Length]:
    return values if len(values) == size else [*values] * size


def _vector(node: KnownSources, at: int) -> Numbers:
    """Return the elements of a source of one dim."""
    (_,) = node.dims(at)
    return _integers(node, at)


def _integers(node: KnownSources, at: int) -> Numbers:
    tensor = node.tensors[at]
    if tensor is None or tensor.dtype not in _INTEGERS or len(tensor.dims or ()) > 1:
        raise LookupError(at)
    return node.numbers(at)
