"""Creation: what the library's own log says when it makes a primitive."""

from __future__ import annotations

import functools
import os
import pickle
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.errors import Error, Reasons
from pyonednn_q.native import child, runtime
from pyonednn_q.native.arrays import pack
from pyonednn_q.native.selection import first_candidate, named
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from pyonednn_q._core import Candidate, Memory
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.problem import Problem

Question: TypeAlias = "tuple[Problem, Attr, str]"

_MADE = re.compile(r"^onednn_verbose,(?:v1,)?(?:primitive,)?create:cache_(?:miss|hit),.*$")
_TENSOR = re.compile(r"\b(src|wei|bia|dst)(?:0)?:\w+:\w*:blocked:(\w+):")
_FOUND, _NEXT = "pyonednn_q,found", "pyonednn_q,next"
_NAMES = {"bia": "bias"}
_CODE = "from pyonednn_q.native.creation import serve; serve()"


@dataclass(frozen=True, slots=True)
class Creation:
    """The log of one primitive.

    Attributes
    ----------
    line : str
        The library's line; empty where a fresh process does not come to the same implementation.
    refused : tuple of (str, str)
        (implementation, reason) of those that the library asked before and that refused.
    """

    line: str
    refused: Reasons

    @property
    def tags(self) -> dict[str, str]:
        """The layouts of tensors as oneDNN writes them, ``acdb`` for channels last.

        Examples
        --------
        >>> Creation("src:u8::blocked:acdb::f0 wei:s8:a:blocked:AcdB16a4b::f8:zpm1", ()).tags
        {'src': 'acdb', 'wei': 'AcdB16a4b'}
        """
        return {_NAMES.get(name, name): tag for name, tag in _TENSOR.findall(self.line)}


@functools.lru_cache(maxsize=256)
def creation(problem: Problem, attr: Attr, impl: str) -> Creation:
    """Return the library's log of making a problem's primitive on an implementation.

    A process of its own makes it again; that takes a few tenths of a second.
    """
    return creations([(problem, attr, impl)])[0]


def creations(questions: Sequence[Question]) -> list[Creation]:
    """Return the same for several primitives, of which one process makes all.

    Parameters
    ----------
    questions : sequence of (Problem, Attr, str)
        Problems with the implementations that they run on.
    """
    answers: dict[Question, Creation] = {}
    waiting = list(dict.fromkeys(questions))
    while waiting:
        question = pickle.dumps((waiting, runtime.get_num_threads()))
        # Before the first is what the library says of itself.
        _, *parts = child.log(_CODE, question, "dispatch,profile_create").split(_NEXT)
        # One of which a process dies ends it: the others are asked of another.
        parts = parts or [""]
        answers |= {one: _read(log, one[2]) for one, log in zip(waiting, parts, strict=False)}
        waiting = waiting[len(parts) :]
    return [answers[one] for one in questions]


def _read(log: str, impl: str) -> Creation:
    before, marker, after = log.partition(_FOUND)
    primitives = [line for line in after.splitlines() if _MADE.match(line)]
    # The last one: packing what it needs made other primitives before it.
    is_it = bool(primitives) and f",{impl}," in primitives[-1]
    return Creation(primitives[-1] if is_it else "", child.parse(before) if marker else ())


def serve() -> None:
    """Make the primitives that standard input asks for. What a child process runs."""
    questions, threads = pickle.load(sys.stdin.buffer)
    if runtime.get_num_threads() != threads:
        runtime.set_num_threads(threads)
    for question in questions:
        os.write(1, f"\n{_NEXT}\n".encode())
        with suppress(Error):
            _make(*question)


def _make(problem: Problem, attr: Attr, impl: str) -> None:
    candidate = first_candidate(problem, attr)
    while named(candidate) != impl:
        if not candidate.next():
            return
    os.write(1, f"\n{_FOUND}\n".encode())
    bound = {name: _stand_in(candidate, problem, attr, name) for name in _constants(problem, attr)}
    inputs = [name for name in problem.tensors if name not in bound and name != "dst"]
    # Where the library chose the layout, arrays of any plain one do.
    arrays = {
        name: TensorSpec.dense(problem.tensors[name].dims, problem.tensors[name].dtype).boundary()
        for name in (*inputs, "dst")
        if problem.tensors[name].strides is None
    }
    runtime.core.Prepared(candidate, [*inputs, "dst"], bound, arrays)


def _constants(problem: Problem, attr: Attr) -> list[str]:
    names = [name for name in ("wei", "bias") if name in problem.tensors]
    return names + list(attr.runtime_names(problem))


def _stand_in(candidate: Candidate, problem: Problem, attr: Attr, name: str) -> Memory:
    """Return a constant of the right kind: the library makes the same primitive for any value."""
    if not name.endswith(("_scale", "_zero_point")):
        layout = candidate.layout(name)
        spec = TensorSpec(tuple(layout.dims), layout.dtype)
        return pack(candidate, name, np.zeros(spec.dims, dtypes.numpy_dtype(spec.dtype)), spec)
    value = getattr(attr, name)
    dims = problem.tensors[name.removesuffix("_zero_point").removesuffix("_scale")].dims
    groups = (1,) * (len(dims) - len(value.groups)) + value.groups
    many = [
        d // g for i, (d, g) in enumerate(zip(dims, groups, strict=True)) if value.mask >> i & 1
    ]
    numbers = np.ones(int(np.prod(many)), dtypes.numpy_dtype(value.dtype))
    return candidate.hold(name, numbers)
