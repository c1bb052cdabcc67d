"""Casts between float32 and the 16-bit floating types, by loops of our own on every CPU.

oneDNN has plain loops for them where the CPU has no instruction (bf16 below AVX-512, f16 below
AVX512_CORE_FP16), a hundred times slower; and where it has one, subnormal bf16 becomes 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.native import runtime
from pyonednn_q.native.arrays import aligned, checked

if TYPE_CHECKING:
    from pyonednn_q.primitive.problem import ReorderProblem
    from pyonednn_q.primitive.tensor import TensorSpec

__all__ = ["Cast", "is_cast"]

Array = np.ndarray[Any, Any]


def is_cast(problem: ReorderProblem) -> bool:
    """Tell whether a reorder is one between f32 and a 16-bit type, in the same layout."""
    types = {problem.src.dtype, problem.dst.dtype}
    same = problem.src.strides == problem.dst.strides
    return same and types in ({"f32", "bf16"}, {"f32", "f16"})


class Cast:
    """f32 to bf16 or f16, to nearest with ties to even; or back, exactly.

    What is too large becomes infinite, and NaN stays NaN. One pass over memory on one thread.

    Parameters
    ----------
    src, dst : TensorSpec
        Dims, data type and strides of both: row-major, of the same dims, one of f32, the other of
        bf16 or f16.
    """

    impl = "cast"
    inputs = ("src",)

    def __init__(self, src: TensorSpec, dst: TensorSpec) -> None:
        self._specs = {"src": src, "dst": dst}

    def layout(self, name: str) -> TensorSpec:
        """Return the layout of a tensor by name."""
        return self._specs[name]

    def __call__(self, src: Array, *, out: Array | None = None) -> Array:
        """Cast.

        Parameters
        ----------
        src : ndarray
            Values in the dims and the data type of the source, of any strides.
        out : ndarray, optional
            Written in place and returned.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the argument.
        """
        src = np.require(checked("src", src, self._specs["src"]), requirements=["C", "A"])
        spec = self._specs["dst"]
        dst = out
        if dst is None or not dst.flags.carray:
            dst = aligned(spec.dims, dtypes.numpy_dtype(spec.dtype))
        if out is not None:
            checked("out", out, spec)
        if spec.dtype == "f32":
            runtime.core.widen(self._specs["src"].dtype, src.view(np.uint16), dst)
        else:
            runtime.core.narrow(spec.dtype, src, dst.view(np.uint16))
        if out is None or out is dst:
            return dst
        np.copyto(out, dst)
        return out
