"""The raw escape: what the library computes when nobody stops it. Tests only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.native import arrays as native_arrays
from pyonednn_q.native import preparation, runtime
from pyonednn_q.native.selection import Selection, first_candidate, named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from pyonednn_q.compose.attr import Attr
    from pyonednn_q.compose.problem import Problem


def first_result(
    problem: Problem,
    attr: Attr,
    arrays: Mapping[str, NDArray[Any]],
    values: Mapping[str, NDArray[Any]],
) -> tuple[str, NDArray[Any]]:
    """Run the first implementation the library offers; return its name and dst."""
    return next(results(problem, attr, arrays, values))


def results(
    problem: Problem,
    attr: Attr,
    arrays: Mapping[str, NDArray[Any]],
    values: Mapping[str, NDArray[Any]],
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Run every implementation the library offers, in its order; give names and dst."""
    candidate = first_candidate(problem, attr)
    wei, bias = arrays.get("wei"), arrays.get("bias")
    while True:
        impl = named(candidate)
        selection = Selection(candidate, impl, "unguarded", ())
        bound = preparation.bind(selection, problem, attr, values, wei, bias)
        specs = {name: preparation.spec_of(selection, name) for name in ("src", "dst")}
        core = runtime.core().Prepared(candidate, ["src", "dst"], bound)
        dst = native_arrays.empty(specs["dst"])
        # Beyond the end of a short array lies whatever was there; make it the same each time.
        dst[...] = np.zeros((), dst.dtype)
        core.run(native_arrays.in_layout(arrays["src"], specs["src"]), dst)
        yield impl, np.array(dst)
        if not candidate.next():
            return
