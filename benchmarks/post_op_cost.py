"""What post-ops add to a convolution: rows of `pyonednn_q.compose.choice.COSTS`, measured again.

Each row is the difference of two primitives, interleaved in one process on one thread, as a part of
the bare one. Run ``python benchmarks/post_op_cost.py``, and again with ``ONEDNN_MAX_CPU_ISA`` set.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import native
from pyonednn_q.compose.choice import COSTS
from pyonednn_q.native import runtime
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.problem import ConvProblem
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from pyonednn_q.native import Prepared

CALLS = 5
LEAST = 5  # percentile of the rounds: what the machine does when nobody else is on it
PROBLEMS = {
    "64x56x56 3x3": ConvProblem.of((1, 64, 56, 56), (64, 64, 3, 3), padding=1, bias="f32"),
    "256x14x14 1x1": ConvProblem.of((1, 256, 14, 14), (256, 256, 1, 1), bias="f32"),
}
PARAMETERS = {"elu": (1.0,), "swish": (1.0,), "soft_relu": (1.0,), "clip": (0.0, 200.0)} | {
    "hardswish": (0.2, 0.5), "hardsigmoid": (0.2, 0.5), "linear": (1.1, 0.3), "pow": (1.0, 0.5),
}  # fmt: skip

Case = tuple[tuple[PostOp, ...], Attr]


def rows(problem: ConvProblem) -> dict[str, tuple[Case, Case]]:
    """Return, for each row of the table, a case with it and a case without."""
    dims = problem.dst.dims
    one, each = (TensorSpec.dense((1, c, 1, 1), "f32") for c in (1, dims[1]))
    number = BinaryPostOp("add", one)
    mul, add, div = (BinaryPostOp(alg, each) for alg in ("mul", "add", "div"))
    # What multiplies is measured behind an addition; see "product_of_product".
    pairs: dict[str, tuple[tuple[PostOp, ...], tuple[PostOp, ...]]] = {
        "leaky_relu": ((number, EltwisePostOp("relu", 0.25)), (number,)),
        "sum": ((SumPostOp(),), ()),
        "binary_per_tensor": ((number,), ()),
        "binary_per_channel": ((add,), ()),
        "another_per_channel": ((add, add), (add,)),
        "prelu_per_tensor": ((PReluPostOp(0),), ()),
        "prelu_per_channel": ((PReluPostOp(2),), ()),
        "binary_full": ((BinaryPostOp("add", TensorSpec.channels_last(dims, "f32")),), ()),
        "binary_full_of_bytes": ((BinaryPostOp("add", TensorSpec.channels_last(dims, "u8")),), ()),
        "division": ((div,), (mul,)),
        "product_of_product": ((mul,), (add,)),
    }
    attrs = {
        "src_zero_point": Attr(src_zero_point=ZeroPoint()),
        "dst_zero_point": Attr(dst_zero_point=ZeroPoint()),
        "dst_scale": Attr(dst_scale=Scale()),
    }
    cases: dict[str, tuple[Case, Case]] = {}
    for name in COSTS:
        if name in attrs:
            cases[name] = (((), attrs[name]), ((), Attr()))
        elif name in pairs:
            cases[name] = ((pairs[name][0], Attr()), (pairs[name][1], Attr()))
        else:
            behind = (number,) if name in {"linear", "hardswish", "hardsigmoid"} else ()
            op = EltwisePostOp(name, *PARAMETERS.get(name, ()))
            cases[name] = (((*behind, op), Attr()), (behind, Attr()))
    return cases


def prepare(problem: ConvProblem, case: Case, rng: np.random.Generator) -> Prepared:
    """Make a case ready, on weights that no instruction set overflows with."""
    post_ops, attr = case
    attr = Attr(
        wei_scale=Scale(1),
        dst_scale=attr.dst_scale,
        src_zero_point=attr.src_zero_point,
        dst_zero_point=attr.dst_zero_point,
        post_ops=post_ops,
    )
    channels = problem.oc
    scales = {"wei_scale": rng.uniform(1e-3, 2e-3, channels), "dst_scale": np.array([1.5])}
    values: dict[str, Any] = {name: np.array([3], np.int32) for name in attr_points(attr)}
    values |= {name: v.astype(np.float32) for name, v in scales.items() if getattr(attr, name)}
    for index, op in enumerate(post_ops):
        if isinstance(op, BinaryPostOp):
            operand = rng.uniform(0.5, 2.0, op.src1.dims)
            values[f"post_op_{index}"] = operand.astype("f4" if op.src1.dtype == "f32" else "u1")
        elif isinstance(op, PReluPostOp):
            values[f"post_op_{index}"] = np.full(channels if op.mask else 1, 0.25, np.float32)
    wei = rng.integers(-60, 61, problem.wei.dims).astype(np.int8)
    bias = rng.uniform(-1.0, 1.0, channels).astype(np.float32)
    return native.prepare(problem, attr, wei=wei, bias=bias, values=values)


def attr_points(attr: Attr) -> list[str]:
    """Return the names of the zero points that an attribute declares."""
    return [f"{t}_zero_point" for t in ("src", "dst") if attr.zero_point(t) is not None]


def measure(problem: ConvProblem, rounds: int) -> dict[str, float]:
    """Return what each row adds, in parts of the bare primitive."""
    rng = np.random.default_rng(0)
    table = rows(problem)
    bare: Case = ((), Attr())
    cases = list(dict.fromkeys([bare, *(case for pair in table.values() for case in pair)]))
    ready = {}
    for case in cases:
        primitive = prepare(problem, case, rng)
        src, dst = primitive.empty("src"), primitive.empty("dst")
        for array in (src, dst):
            array[...] = rng.integers(0, 256, array.shape)
        ready[case] = (primitive, src, dst)
    times: dict[Case, list[float]] = {case: [] for case in cases}
    for _ in range(rounds):
        for case, (primitive, *pair) in ready.items():
            times[case].append(primitive.time_calls(*pair, calls=CALLS))
    least = {case: float(np.percentile(taken, LEAST)) for case, taken in times.items()}
    return {name: (least[a] - least[b]) / least[bare] for name, (a, b) in table.items()}


def main() -> None:
    """Measure and print, beside the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=150)
    options = parser.parse_args()
    version = ".".join(map(str, runtime.version()))
    print(f"oneDNN {version} on {runtime.isa().text()}, one thread; table: AMX, VNNI, AVX2")
    with runtime.threads(1):
        costs = {name: measure(problem, options.rounds) for name, problem in PROBLEMS.items()}
    print(f"{'':<22}" + "".join(f"{name:>15}" for name in costs) + f"{'table':>22}")
    for name, row in COSTS.items():
        measured = "".join(f"{values[name]:>+15.2f}" for values in costs.values())
        print(f"{name:<22}{measured}     {row.amx:>+5.2f} {row.vnni:>+5.2f} {row.avx2:>+5.2f}")


if __name__ == "__main__":
    main()
