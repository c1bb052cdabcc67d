"""Every line of every suite once, for correctness: ``pyonednn-q bench check``.

Spatial sizes, batches and what would take gigabytes are cut down; kernel, strides, padding, groups
and the remainders of channel counts stay. Sources and weights are small whole numbers and scales
are powers of two, so that float32 is exact in any order and the comparison is for equality.

What only reference loops take here is refused and said; a line that is refused in every type is
dead, and as bad as a wrong one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyonednn_q import dtypes
from pyonednn_q.bench import suite
from pyonednn_q.bench.case import Case
from pyonednn_q.bench.data import channels
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.trial import way
from pyonednn_q.check.places import Geometry, exact_sums
from pyonednn_q.errors import Error
from pyonednn_q.expr.steps import Chain, Eltwise
from pyonednn_q.qparams import along
from pyonednn_q.report.progress import counted

if TYPE_CHECKING:
    from pyonednn_q.bench.suite import Line
    from pyonednn_q.check.places import Kind

__all__ = ["Finding", "check", "findings", "is_bad", "reduced", "verdict"]

Array = NDArray[Any]

TYPES = ("f32", "u8s8u8", "s8s8s8")
_OUTPUTS = 5
_BATCHES = 3
_ROWS = 33
_CHANNELS = 512
_SUMS = 4096
_REMAINDER = 64  # the widest tile: remainders by it, and by all that divides it, are kept


@dataclass(frozen=True, slots=True)
class Finding:
    """A line in one type: `wrong` values of `count`, or why there are none."""

    line: Line
    shape: Shape
    dtype: str
    impl: str
    wrong: int
    count: int
    refused: str

    def plain(self) -> dict[str, object]:
        """Return all of it for JSON."""
        return {
            "line": self.line.label,
            "problem": str(self.shape),
            "dtype": self.dtype,
            "implementation": self.impl,
            "wrong": self.wrong,
            "values": self.count,
            "refused": self.refused,
        }

    def text(self) -> str:
        """Return one line for people."""
        name = f"{self.line.suite} {self.line.label} {self.dtype}".lstrip()
        if self.refused:
            return f"refused: {name}: {self.refused}"
        return f"WRONG: {name}: {self.wrong} of {self.count} values, {self.impl}, {self.shape}"


def findings(
    what: Sequence[str], precisions: Sequence[Precision] | None = None
) -> Iterator[tuple[str, list[Finding]]]:
    """Check suites and problems; yield the name of each and what was found, one after the other.

    Parameters
    ----------
    what : sequence of str
        Suites and problems; none: every suite of the package.
    precisions : sequence of Precision, optional
        Types in which each line is computed.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        No such suite or problem; weights in groups.
    """
    for each in precisions or ():
        each.check_primitive()
    suites = [suite.find(word) for word in what or suite.names()]
    precisions = precisions or tuple(map(Precision.parse, TYPES))
    for at, checked in enumerate(suites, 1):
        of_suite: list[Finding] = []
        for line in counted(checked.lines, f"checking {checked.name}, {at} of {len(suites)}"):
            of_suite += [check(line, precision) for precision in precisions]
        yield checked.name, of_suite


def is_bad(findings: Sequence[Finding]) -> bool:
    """Tell whether something is wrong, or a line is refused in every type."""
    of_lines: dict[str, list[Finding]] = {}
    for finding in findings:
        of_lines.setdefault(f"{finding.line.label} {finding.line.shape}", []).append(finding)
    dead = any(all(each.refused for each in of_line) for of_line in of_lines.values())
    return dead or any(finding.wrong for finding in findings)


def verdict(name: str, findings: Sequence[Finding]) -> str:
    """Return the number of a suite's right lines, and a line of text for each other line."""
    wrong = [finding for finding in findings if finding.wrong]
    refused = [finding for finding in findings if finding.refused]
    counts = {"right": len(findings) - len(wrong) - len(refused)}
    counts |= {"WRONG": len(wrong), "refused": len(refused)}
    counted = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return "\n".join([f"{name}: {counted}", *(finding.text() for finding in (*wrong, *refused))])


def check(line: Line, precision: Precision) -> Finding:
    """Run a line, cut down, in one precision, and compare every value."""
    shape = reduced(line.shape)
    try:
        impl, dst, expected = _run(shape, precision)
    except Error as error:
        why = getattr(error, "detail", "").partition(";")[0] or str(error)
        return Finding(line, shape, precision.name, "", 0, 0, why)
    wrong = int((dst.astype(np.float64) != expected.astype(np.float64)).sum())
    return Finding(line, shape, precision.name, impl, wrong, dst.size, "")


def reduced(shape: Shape) -> Shape:
    """Return the shape with fewer outputs, batches and, beyond some hundreds, channels."""
    if shape.kind == "matmul":
        return _reduced_matmul(shape)
    src, wei = list(shape.src), list(shape.wei)
    src[0] = min(src[0], _BATCHES)
    if shape.has_groups:
        groups = _cut(wei[0], _CHANNELS // (wei[1] * wei[2]) or 1)
        src[1], wei[0] = groups * wei[2], groups
    else:
        wei[0], wei[1] = _cut(wei[0], _CHANNELS), _cut(wei[1], _CHANNELS)
        src[1] = wei[1]
    if shape.kind == "ip":
        src[2:] = wei[2:] = [min(n, 3) for n in shape.src[2:]]
        return Shape("ip", tuple(src), tuple(wei))
    src[2:], out = _lengths(shape)
    return replace(shape, src=tuple(src), wei=tuple(wei), out=out)


def _reduced_matmul(shape: Shape) -> Shape:
    *batch, m, k = shape.src
    n = _cut(shape.wei[-1], _CHANNELS)
    m, k = min(m, _ROWS), _cut(k, _SUMS)
    lead = [min(size, _BATCHES) for size in batch]
    wei_lead = [min(size, _BATCHES) for size in shape.wei[:-2]]
    return replace(shape, src=(*lead, m, k), wei=(*wei_lead, k, n))


def _cut(size: int, most: int) -> int:
    """Return `size`, or about `most` with the same remainder."""
    return size if size <= most + _REMAINDER else most - most % _REMAINDER + size % _REMAINDER or 1


def _lengths(shape: Shape) -> tuple[list[int], tuple[int, ...]]:
    """Return the source's spatial dimensions for a few outputs, and a deconvolution's outputs."""
    spatial = zip(shape.src[2:], shape.dst[2:], shape.stride, strict=True)
    if shape.kind == "deconv":
        lengths = [min(n, _OUTPUTS) for n in shape.src[2:]]
        dropped = (n - length for n, length in zip(shape.src[2:], lengths, strict=True))
        return lengths, tuple(
            out - less * s for (_, out, s), less in zip(spatial, dropped, strict=True)
        )
    # What the last window does not reach stays out of reach.
    return [max(n - max(out - _OUTPUTS, 0) * s, 1) for n, out, s in spatial], ()


def _run(shape: Shape, precision: Precision) -> tuple[str, Array, Array]:
    """Return the implementation, its result and the right result."""
    rng = np.random.default_rng(11)
    lo = 0 if precision.src == "u8" else -3
    src = rng.integers(lo, 4, shape.src).astype(dtypes.numpy_dtype(precision.src))
    # Even: without VNNI, kernels for s8 sources halve the weights.
    wei = 2 * rng.integers(-1, 2, shape.wei)
    wei = wei.astype(dtypes.numpy_dtype(precision.wei))
    count = channels(shape)
    wei_scale = 0.5 ** rng.integers(0, 3, count).astype(np.float64)
    bias = rng.integers(-4, 5, count).astype(np.float64)
    terms = shape.macs / math.prod(shape.dst)
    dst_scale = 2.0 ** math.ceil(math.log2(max(math.sqrt(terms) / 16, 0.125)))
    if not precision.is_int8:
        wei_scale, dst_scale = np.ones(1), 1.0
    if not dtypes.is_integer(precision.dst):
        dst_scale = 1.0
    if shape.has_two_sources:
        wei_scale, bias = wei_scale[:1], np.zeros(1)

    ready = way(
        Case(shape, precision),
        wei,
        bias.astype(np.float32),
        Chain(Eltwise("relu")),
        src_scale=1.0,
        wei_scale=wei_scale,
        dst_scale=dst_scale,
        dst_zero_point=0,
    )
    problem = ready.form.asked
    arrays = {"src": ready.form.inward(src.reshape(problem.src.dims)), "wei": wei}
    dst = ready.form.outward(ready.prepared(*(arrays[name] for name in ready.prepared.inputs)))
    axis = -1 if shape.kind == "matmul" else 1
    scale, shift = (along(values, axis, len(shape.dst)) for values in (wei_scale, bias))
    real = np.maximum(accumulate(shape, src, wei) * scale + shift, 0.0)
    return ready.prepared.impl, dst.reshape(shape.dst), _stored(real / dst_scale, precision.dst)


def accumulate(shape: Shape, src: Array, wei: Array) -> NDArray[np.float64]:
    """Return Σ src · wei in dst's dims: exact while sums stay below 2^53."""
    if shape.kind in {"matmul", "ip"}:
        kind: Kind = "matmul" if shape.kind == "matmul" else "inner_product"
        return exact_sums(Geometry.of(kind, src.shape, wei.shape), src, wei)
    if shape.has_groups:
        wei = wei.reshape(-1, *wei.shape[2:])
    more = shape.out_padding or (0,) * len(shape.stride)
    geometry = Geometry.of(
        "convolution" if shape.kind == "conv" else "deconvolution",
        src.shape,
        wei.shape,
        stride=shape.stride,
        padding=[(lo, hi - out) for (lo, hi), out in zip(shape.padding, more, strict=True)],
        dilation=shape.dilation,
        groups=shape.groups,
    )
    return exact_sums(geometry, src, wei)


def _stored(values: NDArray[np.float64], dtype: str) -> Array:
    if dtypes.is_integer(dtype):
        values = np.clip(np.rint(values), dtypes.qmin(dtype), dtypes.qmax(dtype))
    return np.asarray(values.astype(np.float32).astype(dtypes.numpy_dtype(dtype)))
