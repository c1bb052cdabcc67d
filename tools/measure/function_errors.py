"""How far functions of float32 are from their values: oneDNN's kernels, and onnxruntime's.

    python tools/measure/function_errors.py      # every 64th float32 of magnitude 2^-30 to 2^7
    ONEDNN_MAX_CPU_ISA=AVX2 python tools/measure/function_errors.py --every 1

Prints maxima in units of 2^-24 · max(1, |f(x)|), or of exp(x): onnxruntime's stand in
`pyonednn_q.models.function_bounds`, oneDNN's in `pyonednn_q.predict.float_bounds`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from scipy import special

from pyonednn_q import native
from pyonednn_q.dtypes import F32_UNIT
from pyonednn_q.graph.kinds import KINDS
from pyonednn_q.native import runtime
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.problem import EltwiseProblem
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.report.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Array = np.ndarray[Any, Any]

EXPONENTS = range(-30, 7)
LEAST = 2.0**-125  # of exponentials; kernels have 0 for smaller ones
EXACT: dict[str, Callable[[Array], Array]] = {
    "Erf": special.erf,
    "Exp": np.exp,
    "Gelu": lambda x: 0.5 * x * special.erfc(-x / np.sqrt(2.0)),
    "Sigmoid": special.expit,
    "Tanh": np.tanh,
}
FLT_MAX = float(np.finfo(np.float32).max)
_OPSET = 20  # Gelu's first
_IR = 9


def pieces(every: int) -> Iterator[Array]:
    """Yield floats of one sign and one exponent."""
    for sign in (0, 1):
        for exponent in EXPONENTS:
            mantissas = np.arange(0, 1 << 23, every, dtype=np.uint32)
            bits = mantissas | np.uint32((exponent + 127) << 23) | np.uint32(sign << 31)
            yield bits.view(np.float32)


def onednn(kind: str, count: int) -> Callable[[Array], Array] | None:
    """Return oneDNN's kernel, where it has the function."""
    if not KINDS[kind].alg:
        return None
    spec = TensorSpec.dense((count,), "f32")
    return native.prepare(EltwiseProblem(spec, spec, KINDS[kind].alg), Attr())


def peer(kind: str) -> Callable[[Array], Array]:
    """Return onnxruntime's."""
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [None]) for n in "xy"]
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"])], "one", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return lambda x: np.asarray(session.run(None, {"x": x})[0])


def error(kind: str, x: Array, values: Array) -> float:
    """Return the largest error of some values, in units of 2^-24."""
    wide = x.astype(np.float64)
    with np.errstate(over="ignore"):
        exact = EXACT[kind](wide)
        size = exact if kind == "Exp" else np.maximum(1.0, np.abs(exact))
        is_normal = (exact >= LEAST) & (exact <= FLT_MAX) if kind == "Exp" else np.isfinite(exact)
        gap = np.abs(values.astype(np.float64) - exact)
    return float((gap[is_normal] / size[is_normal]).max(initial=0.0)) / F32_UNIT


def measured(kind: str, every: int) -> tuple[float, float]:
    """Return the errors of oneDNN, not a number where it has no kernel, and of onnxruntime."""
    ours, theirs = onednn(kind, -(-(1 << 23) // every)), peer(kind)
    worst = [np.nan if ours is None else 0.0, 0.0]
    for x in pieces(every):
        if ours is not None:
            worst[0] = max(worst[0], error(kind, x, ours(x)))
        worst[1] = max(worst[1], error(kind, x, theirs(x)))
    return worst[0], worst[1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=64)
    every = parser.parse_args().every
    facts = runtime.facts()
    print(f"oneDNN {'.'.join(map(str, facts.version))}, {facts.isa.text()}; ", end="")
    print(f"onnxruntime {onnxruntime.__version__}")
    rows = []
    for kind, known in ((row.name, row.units) for row in KINDS.values() if row.units):
        ours, theirs = measured(kind, every)
        rows.append([kind, f"{ours:.2f}", f"{theirs:.2f}", f"{known:g}"])
    names = ("function", "oneDNN", "onnxruntime", "bound of onnxruntime")
    print(Table([Column(name) for name in names], rows).text())


if __name__ == "__main__":
    main()
