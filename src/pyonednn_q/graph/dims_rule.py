"""DimsRule: how the dims of an operator's results follow from what is known of its sources.

A length is a number, a symbol (a text: the same length wherever it stands, which a call says), or
the empty text: not known. A rule hands a symbol on where the length is the source's own, and says
that it does not know wherever it would have to guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

__all__ = ["DimsRule", "KnownSources", "KnownTensor", "Length", "Lengths", "product"]

Length = int | str
Lengths = tuple[Length, ...]
Numbers = tuple[Any, ...]
Dtype = int | str  # of an input, of "@attribute", or a name

_MOST_NUMBERS = 64  # elements of a tensor that may say dims
_MOST_DIMS = 128  # of what anything is computed for; `onnx.load` refuses less
_LARGEST = 1 << 62


class KnownTensor(NamedTuple):
    """Facts about a tensor that are known before anything runs.

    Parameters
    ----------
    dtype : str
        NumPy's name; empty where it is not known.
    dims : tuple of (int or str), or None
        Dims, or None where not even their number is known.
    numbers : ndarray, tuple of (int or str), or None
        A constant; or the elements, in order, of what is made of dims.
    """

    dtype: str = ""
    dims: Lengths | None = None
    numbers: Any = None

    @property
    def whole(self) -> tuple[int, ...] | None:
        """Its dims, if all of them are numbers."""
        known = tuple(each for each in self.dims or () if not isinstance(each, str))
        return None if self.dims is None or len(known) < len(self.dims) else known


class KnownSources:
    """Facts that a rule may read: a node's attributes, and what is known of its sources.

    Parameters
    ----------
    attributes : mapping
        The node's own.
    tensors : sequence of (KnownTensor or None)
        Sources in order; None for an omitted input.
    outputs : int
        Number of results.
    opset : int
        Version of its domain.
    """

    __slots__ = ("attributes", "opset", "outputs", "tensors")

    def __init__(
        self,
        attributes: Mapping[str, Any],
        tensors: Sequence[KnownTensor | None],
        outputs: int = 1,
        opset: int = 0,
    ) -> None:
        self.attributes = attributes
        self.tensors = tensors
        self.outputs = outputs
        self.opset = opset

    def has(self, at: int) -> bool:
        """Tell whether there is an input in a place."""
        return at < len(self.tensors) and self.tensors[at] is not None

    def dims(self, at: int) -> Lengths:
        """Return the dims of an input.

        Raises
        ------
        LookupError
            The dims are not known: the rule ends there.
        """
        tensor = self.tensors[at]
        if tensor is None or tensor.dims is None:
            raise LookupError(at)
        return tensor.dims

    def dtype(self, at: int) -> str | None:
        """Return the type of an input, empty where it is not known; None where there is none."""
        tensor = self.tensors[at] if at < len(self.tensors) else None
        return None if tensor is None else tensor.dtype

    def numbers(self, at: int) -> Numbers:
        """Return the elements of an input, those of a constant, or lengths.

        Raises
        ------
        LookupError
            The elements are not known, or too many.
        """
        tensor = self.tensors[at]
        values = None if tensor is None else tensor.numbers
        if isinstance(values, np.ndarray) and values.size <= _MOST_NUMBERS:
            return tuple(values.ravel().tolist())
        if isinstance(values, tuple):
            return values
        raise LookupError(at)

    def lengths(self, at: int) -> Numbers:
        """Return the elements of a one-dimensional input; they may be unknown lengths."""
        try:
            return self.numbers(at)
        except LookupError:
            (count,) = self.dims(at)
            if not isinstance(count, int) or count > _MOST_DIMS:
                raise
            return ("",) * count

    def told(self, name: str, at: int) -> Numbers | None:
        """Return integers of an attribute, or, since some opset, of an input; None of neither."""
        value = self.attributes.get(name)
        if value is not None:
            return tuple(value)
        return self.numbers(at) if self.has(at) else None

    def axis(self, rank: int, default: int = 0) -> int:
        """Return the attribute axis, counted from the first dim."""
        return place(self.attributes.get("axis", default), rank)


def place(axis: int, rank: int) -> int:
    """Return an axis counted from the first of some dims.

    Raises
    ------
    LookupError
        There is none.
    """
    if not -rank <= axis < rank:
        raise LookupError(axis)
    return axis % rank


def product(lengths: Sequence[Length]) -> Length:
    """Return the number of elements: a number, or one symbol, if all other dims are 1."""
    opened = [each for each in lengths if isinstance(each, str)]
    number = math.prod(each for each in lengths if not isinstance(each, str))
    if not opened or number == 0:
        return number
    return opened[0] if number == 1 and len(opened) == 1 else ""


@dataclass(frozen=True, slots=True)
class DimsRule:
    """Rule from sources to dims, types and, if made of dims, elements of results.

    Attributes
    ----------
    lengths : callable
        Function from `KnownSources` to the dims of results, in order: (int or str)s, or None.
        LookupError: they are not known.
    dtypes : tuple of tuple of (int or str)
        Sources of each result's type, of which the first that is there counts; the last entry is
        for all further results. A number: that input; "@name": that attribute; else NumPy's name.
    numbers : callable, optional
        Function from `KnownSources` to the elements of the first result.
    reads : tuple of int, or slice, optional
        Inputs of the node that are the sources of the rule.
    """

    lengths: Callable[[KnownSources], Sequence[Lengths | None]]
    dtypes: tuple[tuple[Dtype, ...], ...] = ((0,),)
    numbers: Callable[[KnownSources], Numbers] | None = None
    reads: tuple[int, ...] | slice | None = None

    @property
    def name(self) -> str:
        """Its name in words."""
        return self.lengths.__name__.strip("_").replace("_", " ")

    def making(self, *dtypes: Dtype | tuple[Dtype, ...]) -> DimsRule:
        """Return the same rule of results of other types."""
        told = tuple(each if isinstance(each, tuple) else (each,) for each in dtypes)
        return replace(self, dtypes=told)

    def reading(self, places: tuple[int, ...] | slice) -> DimsRule:
        """Return the same rule of a node whose sources are other ones of its inputs."""
        return replace(self, reads=places)

    def counting(self, numbers: Callable[[KnownSources], Numbers]) -> DimsRule:
        """Return the same rule of what computes with dims."""
        return replace(self, numbers=numbers)

    def of(self, sources: KnownSources) -> Sequence[Lengths | None]:
        """Return the dims of all results; None where they do not follow, or contradict."""
        unknown = (None,) * sources.outputs
        try:
            results = [*self.lengths(self._seen(sources))]
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return unknown
        for each in results:
            if each is not None and (len(each) > _MOST_DIMS or not all(map(_is_length, each))):
                return unknown
        return (*results, *unknown)[: sources.outputs]

    def elements(self, sources: KnownSources) -> Numbers | None:
        """Return the elements of the first result, if they follow."""
        if self.numbers is None:
            return None
        try:
            values = self.numbers(self._seen(sources))
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return None
        are_few = len(values) <= _MOST_NUMBERS
        is_right = are_few and all(isinstance(e, str) or abs(e) <= _LARGEST for e in values)
        return values if is_right else None

    def _seen(self, sources: KnownSources) -> KnownSources:
        """Return what is known of the inputs of which the rule speaks."""
        if self.reads is None:
            return sources
        known = sources.tensors
        if isinstance(self.reads, slice):
            chosen = known[self.reads]
        else:
            chosen = [known[at] if at < len(known) else None for at in self.reads]
        return KnownSources(sources.attributes, chosen, sources.outputs, sources.opset)


def _is_length(length: object) -> bool:
    """Tell whether it is one; what an attribute of the wrong type says is none."""
    return isinstance(length, str) or (isinstance(length, int) and length >= 0)
