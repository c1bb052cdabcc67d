"""A shape as benchdnn describes it, and back; and the command line of a whole plan.

benchdnn is oneDNN's own harness: with its line a maintainer reproduces a row without this package.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyonednn_q.argument import instance, one_of, whole
from pyonednn_q.bench.shape import KINDS, Shape
from pyonednn_q.errors import ArgumentError
from pyonednn_q.primitive.tensor import cross
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.bench.case import Case, Setting
    from pyonednn_q.compose.plan import Plan

__all__ = ["command", "descriptor", "parse"]

_AXES = "dhw"
_ENTRY = re.compile(r"(mb|g|ic|oc|[iokspd][dhw])(\d{1,18})_?")


def descriptor(shape: Shape) -> str:
    """Return the problem descriptor, every value written out.

    Padding on the high side is not named: benchdnn finds it from the output.

    Examples
    --------
    >>> descriptor(Shape.parse("conv 1x64x56x56 64x64x3x3 padding=1"))
    'mb1ic64oc64_ih56oh56kh3sh1ph1dh0_iw56ow56kw3sw1pw1dw0'
    """
    if shape.kind == "matmul":
        return f"{cross(shape.src)}:{cross(shape.wei)}"
    spatial = len(shape.src) - 2
    axes = _AXES[len(_AXES) - spatial :]
    groups = f"g{shape.groups}" if shape.has_groups else ""
    head = f"{groups}mb{shape.src[0]}ic{shape.src[1]}oc{shape.dst[1]}"
    if shape.kind == "ip":
        return "_".join([head, *(f"i{a}{n}" for a, n in zip(axes, shape.src[2:], strict=True))])
    parts = [head]
    for index, axis in enumerate(axes):
        parts.append(
            f"i{axis}{shape.src[2 + index]}o{axis}{shape.dst[2 + index]}"
            f"k{axis}{shape.wei[index - spatial]}s{axis}{shape.stride[index]}"
            f"p{axis}{shape.padding[index][0]}d{axis}{shape.dilation[index] - 1}"
        )
    return "_".join(parts)


def parse(kind: str, text: str) -> Shape:
    """Return the shape of a problem descriptor; missing parts follow benchdnn's own rules.

    A smaller dimension that is not there is as the next larger one; strides are 1, dilation is 0,
    the batch is 2; of output and padding, one follows from the other; a name is ignored.

    Raises
    ------
    ArgumentError
        Not a descriptor.
    ShapeError
        Sizes that do not fit each other.

    Examples
    --------
    >>> print(parse("conv", 'mb1ic3ih224oc64oh112kh7sh2ph3n"conv1"'))
    conv 1x3x224x224 64x3x7x7 stride=2 padding=3:2
    """
    one_of("kind", kind, KINDS)
    instance("problem", text, str)
    text = text.partition("n")[0]
    if kind == "matmul":
        return Shape.parse(f"matmul {text.replace(':', ' ')}")
    entries = {name: int(value) for name, value in _ENTRY.findall(text)}
    if _ENTRY.sub("", text) or not {"ic", "oc"} <= entries.keys():
        raise ArgumentError("problem", shown(text), "a descriptor such as mb1ic64ih56oc64kh3ph1")
    batch, groups = entries.get("mb", 2), whole("g", entries.get("g", 1), lo=1)
    first = min((_AXES.index(a) for a in _AXES if f"i{a}" in entries), default=len(_AXES))
    axes = _AXES[first:]
    src = (batch, entries["ic"], *(_entry(entries, "i", axis, 1) for axis in axes))
    if kind == "ip":
        return Shape("ip", src, (entries["oc"], *src[1:]))
    grouped = (groups,) if "g" in entries else ()
    kernel = tuple(_entry(entries, "k", axis, 1) for axis in axes)
    sides = [_side(entries, axis, is_conv=kind == "conv") for axis in axes]
    out = tuple(_entry(entries, "o", axis, 0) for axis in axes) if f"o{axes[0]}" in entries else ()
    return Shape(
        kind,
        src,
        (*grouped, entries["oc"] // groups, entries["ic"] // groups, *kernel),
        tuple(_entry(entries, "s", axis, 1) for axis in axes),
        tuple(_entry(entries, "d", axis, 0) + 1 for axis in axes),
        tuple(sides),
        out if kind == "deconv" else (),
    )


def _entry(entries: dict[str, int], letter: str, axis: str, usual: int) -> int:
    """Return a value of an axis, else that of the next larger axis that has one."""
    for larger in reversed(_AXES[: _AXES.index(axis) + 1]):
        if f"{letter}{larger}" in entries:
            return entries[f"{letter}{larger}"]
    return usual


def _side(entries: dict[str, int], axis: str, *, is_conv: bool) -> tuple[int, int]:
    """Return the padding of both sides: what is not given follows from the output."""
    length, out = _entry(entries, "i", axis, 1), _entry(entries, "o", axis, 0)
    low = _entry(entries, "p", axis, -1)
    reach = (_entry(entries, "k", axis, 1) - 1) * (_entry(entries, "d", axis, 0) + 1) + 1
    if not out:
        return max(low, 0), max(low, 0)
    gathered, spread = (out, length) if is_conv else (length, out)
    total = (gathered - 1) * _entry(entries, "s", axis, 1) + reach - spread
    low = low if low >= 0 else max(total // 2, 0)
    return low, max(total - low, 0)


def command(case: Case, setting: Setting, plan: Plan) -> str:
    """Return the line that makes benchdnn time the same primitive."""
    environment = [f"ONEDNN_MAX_CPU_ISA={setting.isa}"] if setting.isa else []
    environment.append(f"OMP_NUM_THREADS={setting.threads}")
    words = [f"--{case.shape.kind}", "--mode=P"]
    words += ["--cold-cache=all"] if setting.cache == "cold" else []
    words += [*_tags(case), plan.benchdnn(), descriptor(case.shape)]
    return " ".join([*environment, "./benchdnn", *words])


def _tags(case: Case) -> list[str]:
    shape = case.shape
    if shape.kind == "matmul":
        if shape.has_two_sources:
            axes = "abcdefghijkl"[: len(shape.wei)]
            wtag = axes[:-2] + axes[-1] + axes[-2] if shape.transposed else axes
        else:
            wtag = "any"
        return ["--stag=abx", f"--wtag={wtag}", "--dtag=abx"]
    is_matrix = shape.kind == "ip" and len(shape.src) == 2
    tag = "abx" if case.layout == "dense" or is_matrix else "axb"
    return [f"--stag={tag}", "--wtag=any", "--dtag=" + ("ab" if shape.kind == "ip" else tag)]
