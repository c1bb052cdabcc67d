"""How the hunt asks: a sample as a problem or as an operator, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import pyonednn_q as pq
from hunt_layouts import random_spec
from hunt_oracle import Array, Dims, InexactError, PostOp, Sample, before_no_memory, expected
from hunt_regions import REGIONS
from hunt_sample import draw
from pyonednn_q import native
from pyonednn_q.dtypes import numpy_dtype
from pyonednn_q.errors import (
    Error,
    KnownWrongError,
    OneDNNError,
    ReferenceKernelError,
    SaturationError,
)
from pyonednn_q.faults import guards
from pyonednn_q.faults.guards import Guard
from pyonednn_q.native import runtime, selection
from pyonednn_q.native.arrays import in_layout
from pyonednn_q.ops.operator import Operator
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import BinaryPostOp, EltwisePostOp, SumPostOp
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
    Problem,
)
from pyonednn_q.primitive.tensor import TensorSpec

Rng = np.random.Generator

OPERATORS: dict[str, type[Operator]] = {
    "convolution": pq.Conv,
    "deconvolution": pq.Deconv,
    "inner_product": pq.InnerProduct,
    "matmul": pq.MatMul,
}
ANY_LAYOUT = 0.35  # of problems
_UNWRITTEN = 37  # what a result holds where nothing is written


@dataclass(frozen=True)
class Answer:
    """What came of one sample.

    Attributes
    ----------
    kind : str
        Of the sample.
    text : str
        What was asked, in a line.
    impl : str
        The implementation that ran; empty where none did.
    refused : str
        Why none did: an error's class, or rows of the guard table.
    wrong : str
        How its result differs from the right one; empty where it does not.
    """

    kind: str
    text: str
    impl: str = ""
    refused: str = ""
    wrong: str = ""


def without(row: str) -> Guard:
    """Take a row out of the guard table of this process; return it."""
    (taken,) = (guard for guard in guards.GUARDS if guard.id == row)
    guards.GUARDS = tuple(guard for guard in guards.GUARDS if guard is not taken)
    guards._rows_in.cache_clear()  # noqa: SLF001 - what it remembers is of the whole table
    return taken


def hunted(seed: int, index: int, ignored: Guard | None = None, region: str = "") -> Answer:
    """Draw the sample of that place, ask for its result in some way, and compare.

    Parameters
    ----------
    seed, index : int
        Its place.
    ignored : Guard, optional
        A row that was taken out of the table: only problems that it matches are of interest.
    region : str, optional
        Which of `REGIONS` shapes are of; then most problems run as operators.
    """
    rng = np.random.default_rng([seed, index])
    sample, right = _drawn(rng, region)
    share = 0.7 if region else 0.25
    asked = as_operator(rng, sample) if rng.random() < share and not ignored else None
    text = ""
    try:
        if asked is not None:
            operator, arrays = asked
            text = _operator_text(operator, sample)
            dst = operator(sample.src, **arrays)
            impl = operator.prepare(sample.src.shape).primitive.impl
        else:
            problem, attr, arrays = as_problem(rng, sample)
            text = f"{problem.text()} {attr.text()}".rstrip()
            dst, impl = _prepared(rng, problem, attr, arrays)
            if ignored and not ignored.matches(problem, attr, runtime.facts(), impl):
                return Answer(sample.kind, text, refused="not of that row")
    except Error as error:
        return Answer(sample.kind, text, refused=reason(error))
    except Exception as error:  # a bare one is a finding
        return Answer(sample.kind, text, wrong=f"{type(error).__name__}: {error}"[:300])
    return Answer(sample.kind, text, impl, wrong=difference(dst, right))


def _drawn(rng: Rng, region: str = "") -> tuple[Sample, Array]:
    """Draw a sample with only one right answer, and that."""
    while True:
        wide = runtime.isa().has_vnni() or rng.random() < 0.1
        sample = draw(rng, wide=wide, region=REGIONS.get(region))
        try:
            return sample, expected(sample)
        except InexactError:
            pass


def reason(error: Error) -> str:
    """Return why nothing ran, in some words."""
    if isinstance(error, KnownWrongError):
        return f"known wrong: {', '.join(error.guards)}"
    if isinstance(error, ReferenceKernelError):
        return "only reference loops"
    if isinstance(error, SaturationError):
        return "weights that may saturate"
    if isinstance(error, OneDNNError):  # whose whole text costs a process
        return f"{type(error).__name__}: {error.call} {error.status}"
    return f"{type(error).__name__}: {getattr(error, 'argument', '')}"


def difference(dst: Array, right: Array) -> str:
    """Return how a result differs from the right one; nothing where it does not."""
    if dst.dtype != right.dtype or dst.shape != right.shape:
        return f"{dst.dtype} {dst.shape}, should be {right.dtype} {right.shape}"
    differ = dst != right
    count = int(np.count_nonzero(differ))
    if not count:
        return ""
    place = tuple(int(axis[0]) for axis in np.nonzero(differ))
    return f"{count} of {dst.size}, first at {place}: {dst[place]}, should be {right[place]}"


# --- as a problem -------------------------------------------------------------------------------


def as_problem(rng: Rng, sample: Sample) -> tuple[Problem, Attr, dict[str, Array]]:
    """Give problem and attributes of a sample, and arrays: tensors, and values of the attributes.

    ``dst`` is among them where a sum reads it.
    """
    problem = _laid_anew(rng.spawn(1)[0], _problem(rng, sample))
    tensors, types = problem.tensors, sample.types
    arrays = {"src": sample.src.astype(numpy_dtype(types["src"]))}
    arrays["wei"] = sample.wei.astype(numpy_dtype(types["wei"])).reshape(tensors["wei"].dims)
    if sample.bias is not None:
        dtype = numpy_dtype(types["bias"])
        arrays["bias"] = sample.bias.astype(dtype).reshape(tensors["bias"].dims)
    if sample.before is not None:
        arrays["dst"] = sample.before
    arrays |= {f"{name}_scale": factor.values for name, factor in sample.scales.items()}
    arrays |= {f"{name}_zero_point": factor.values for name, factor in sample.points.items()}
    for place, step in enumerate(sample.post_ops):
        if step.operand is not None:
            arrays[f"post_op_{place}"] = step.operand
    return problem, _attr(rng.spawn(1)[0], sample), arrays


def _problem(rng: Rng, sample: Sample) -> Problem:
    types = {name: sample.types[name] for name in ("src", "wei", "dst")}
    bias = sample.types.get("bias")
    src, wei = sample.src.shape, sample.wei.shape
    if sample.kind == "matmul":
        return _matmul(rng, MatMulProblem.of(src, wei, **types, bias=bias))
    layout: Any = "dense" if rng.random() < 0.06 else "channels_last"
    if sample.kind == "inner_product":
        return InnerProductProblem.of(src, wei[0], **types, bias=bias, layout=layout)
    if sample.groups > 1 or rng.random() < 0.05:
        wei = (sample.groups, wei[0] // sample.groups, *wei[1:])
    kind: Any = ConvProblem if sample.kind == "convolution" else DeconvProblem
    problem: ConvProblem | DeconvProblem = kind.of(
        src, wei, **types, bias=bias, layout=layout, **_window(sample)
    )
    if any(sample.tail):
        make = TensorSpec.dense if layout == "dense" else TensorSpec.channels_last
        problem = replace(problem, dst=make(sample.dst_dims, types["dst"]))
    if rng.random() < 0.1:
        free = {name: TensorSpec(problem.tensors[name].dims, types[name]) for name in types}
        problem = replace(problem, src=free["src"], dst=free["dst"])
    return problem


def _window(sample: Sample) -> dict[str, Any]:
    return {
        "stride": sample.stride,
        "dilation": sample.dilation,
        "padding": tuple(zip(sample.lo, sample.hi, strict=True)),
    }


def _matmul(rng: Rng, problem: MatMulProblem) -> MatMulProblem:
    """Lay operands otherwise now and then: weights plain or transposed, sources with gaps."""
    of = rng.random()
    if of < 0.25:
        problem = replace(problem, wei=TensorSpec.dense(problem.wei.dims, problem.wei.dtype))
    elif of < 0.4:
        problem = replace(problem, wei=_transposed(problem.wei))
    of = rng.random()
    if of < 0.08:
        problem = replace(problem, src=_transposed(problem.src))
    elif of < 0.2:
        *batch, _, k = problem.src.dims
        dense = TensorSpec.dense(
            (*batch, problem.m, k + int(rng.integers(1, 9))), problem.src.dtype
        )
        problem = replace(problem, src=replace(problem.src, strides=dense.strides))
    return problem


def _laid_anew(rng: Rng, problem: Problem) -> Problem:
    """Now and then lay some tensors in any order, with gaps or without."""
    if rng.random() > ANY_LAYOUT:
        return problem
    names = [name for name in ("src", "wei", "dst") if rng.random() < 0.4]
    specs = {name: problem.tensors[name] for name in names}
    laid: dict[str, Any] = {
        name: random_spec(rng, spec.dims, spec.dtype)
        for name, spec in specs.items()
        if spec.dtype not in ("s4", "u4")
    }
    return replace(problem, **laid)


def _transposed(spec: TensorSpec) -> TensorSpec:
    *batch, rows, columns = spec.dims
    steps = TensorSpec.dense((*batch, columns, rows), spec.dtype).strides
    assert steps is not None
    return TensorSpec(spec.dims, spec.dtype, (*steps[:-2], steps[-1], steps[-2]))


def _attr(rng: Rng, sample: Sample) -> Attr:
    scales: dict[str, Any] = {
        f"{name}_scale": Scale(f.mask, f.dtype, f.groups) for name, f in sample.scales.items()
    }
    points: dict[str, Any] = {
        f"{name}_zero_point": ZeroPoint(f.mask, f.dtype, f.groups)
        for name, f in sample.points.items()
    }
    return Attr(**scales, **points, post_ops=tuple(_post_op(rng, step) for step in sample.post_ops))


def _post_op(rng: Rng, step: PostOp) -> BinaryPostOp | SumPostOp | EltwisePostOp:
    if step.operand is not None:
        return BinaryPostOp(step.alg, _operand(rng, step.operand.shape))
    if step.alg == "sum":
        return SumPostOp(step.alpha, int(step.beta))
    return EltwisePostOp(step.alg, step.alpha, step.beta)


def _operand(rng: Rng, dims: Dims) -> TensorSpec:
    """Lay an operand as dst lies; now and then row-major, or with gaps."""
    of = rng.random()
    if of < 0.1:
        wider = TensorSpec.dense((*dims[:-1], dims[-1] + int(rng.integers(1, 4))), "f32")
        return TensorSpec(dims, "f32", wider.strides)
    if of < 0.2 or len(dims) < 3:
        return TensorSpec.dense(dims, "f32")
    return TensorSpec.channels_last(dims, "f32")


def _prepared(
    rng: Rng, problem: Problem, attr: Attr, arrays: dict[str, Array]
) -> tuple[Array, str]:
    # What is wrong is to be found, not to be passed over.
    options: dict[str, Any] = {"allow_reference": rng.random() < 0.06, "self_check": False}
    if rng.random() < 0.25:
        options["implementation"] = other(rng, problem, attr)
    free = {
        name: TensorSpec.dense(spec.dims, spec.dtype)
        for name in ("src", "dst")
        if (spec := problem.tensors[name]).strides is None
    }
    # Packed weights of 4 bits are no argument of a call.
    whole = isinstance(problem, MatMulProblem) and problem.wei.dtype not in ("s4", "u4")
    with_call = whole and rng.random() < 0.25
    call = native.prepare(
        problem,
        attr,
        wei=None if with_call else arrays["wei"],
        bias=arrays.get("bias"),
        values={name: arrays[name] for name in attr.names},
        arrays=free,
        **options,
    )
    out = call.empty()
    out[...] = arrays.get("dst", _UNWRITTEN)
    inputs = (in_layout(arrays[name], call.layout(name)) for name in call.inputs)
    return call(*map(before_no_memory, inputs), out=out), call.impl


def other(rng: Rng, problem: Problem, attr: Attr) -> str | None:
    """Give one of the implementations that may be trusted, not always the first."""
    attr.check(problem)
    offers = selection.implementations(problem, attr)
    trusted = [offer.impl for offer in offers if not offer.guards and offer.kind != "reference"]
    return trusted[int(rng.integers(len(trusted)))] if trusted else None


# --- as an operator -----------------------------------------------------------------------------


def as_operator(rng: Rng, sample: Sample) -> tuple[Operator, dict[str, Array]] | None:
    """Give the operator that computes a sample, and arrays of its call; None where none does."""
    types = sample.types
    if types["src"] in ("f32", "bf16") or types["wei"] not in ("s8", "u8") or any(sample.tail):
        return None
    if "dst" in sample.scales.keys() | sample.points.keys() and types["dst"] not in ("u8", "s8"):
        return None
    if any(step.operand is not None for step in sample.post_ops):
        return None
    if sample.kind != "matmul" and "wei" in sample.points:
        return None
    if any(factor.groups for factor in sample.scales.values()):
        return None
    if sample.bias is not None and types["bias"] not in ("f32", "s8"):
        return None
    axis = -1 if sample.kind == "matmul" else 0
    options: dict[str, Any] = {
        "src_q": _qparams(sample, "src"),
        "wei_q": _qparams(sample, "wei", axis),
        "self_check": False,
    }
    if types["dst"] in ("u8", "s8"):
        options["dst_q"] = _qparams(sample, "dst")
    else:
        options["dst"] = types["dst"]
    if sample.kind in ("convolution", "deconvolution"):
        window = _window(sample)
        options |= {"stride": window["stride"], "padding": window["padding"]}
        options |= {"dilation": window["dilation"], "groups": sample.groups}
    options["post"] = pq.Chain(*map(_step, sample.post_ops))
    if rng.random() < 0.1:
        options["zero_point"] = "map"
    options["self_check"] = False
    options["layout"] = ("preserve", "preserve", "channels_last", "dense")[int(rng.integers(4))]
    bias = None if sample.bias is None else sample.bias.reshape(-1).astype(np.float32)
    arrays = {} if sample.before is None else {"residual": sample.before}
    return OPERATORS[sample.kind](sample.wei, bias, **options), arrays


def _qparams(sample: Sample, name: str, axis: int | None = None) -> pq.QParams:
    scale, point = sample.scales.get(name), sample.points.get(name)
    zero = 0 if point is None else int(point.values[0])
    if scale is None or scale.mask == 0:
        return pq.QParams(
            1.0 if scale is None else float(scale.values[0]), zero, sample.types[name]
        )
    return pq.QParams(scale.values.astype(np.float64), zero, sample.types[name], axis=axis)


def _step(step: PostOp) -> pq.Eltwise | pq.Affine | pq.Clip | pq.Sum:
    if step.alg == "relu":
        return pq.Eltwise("relu", step.alpha)
    if step.alg == "linear":
        return pq.Affine(step.alpha, step.beta)
    if step.alg == "clip":
        return pq.Clip(step.alpha, step.beta)
    return pq.Sum(step.alpha, int(step.beta))


def _operator_text(operator: Operator, sample: Sample) -> str:
    s = operator.settings
    wei = "x".join(map(str, sample.wei.shape))
    src = "x".join(map(str, sample.src.shape))
    return f"{type(operator).__name__} {src} {wei} {_window(sample)} groups {sample.groups} {s}"
