"""Shape: what is computed, without data types or layout, and the one line that says it.

    conv   1x64x56x56  64x64x3x3  stride=2 padding=1 dilation=2
    conv   1x32x56x56  32x1x3x3   padding=1 groups=32
    conv   1x32x56x56  32x1x1x3x3 padding=1                   the same: groups come first
    deconv 1x64x28x28  64x64x4x4  stride=2 padding=1 out=57x57
    ip     1x2048      1000x2048
    matmul 128x768     768x3072
    matmul 12x128x64   12x64x128  wei=transposed              both operands come with each call

Source first, then weights, in oneDNN's logical order (output channels of a convolution lead, of a
matmul trail). A value may be given for each spatial dimension (``stride=2x1``), a padding for each
side (``padding=0:1``).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyonednn_q.argument import instance, integers, one_of, whole
from pyonednn_q.bench.precision import Precision
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec, cross
from pyonednn_q.primitive.window import padding_sides, per_dim
from pyonednn_q.primitive.windowed import laid_out, with_groups
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.primitive.windowed import Layout

    DenseProblem = ConvProblem | DeconvProblem | InnerProductProblem | MatMulProblem

__all__ = ["KINDS", "Shape"]

Dims = tuple[int, ...]
Sides = tuple[tuple[int, int], ...]

KINDS = ("conv", "deconv", "ip", "matmul")
_WINDOWED = ("conv", "deconv")
_NUMBERS = re.compile(r"\d{1,18}(x\d{1,18})*")
_FORM = "a kind, src and wei, as in 'conv 1x64x56x56 64x64x3x3 padding=1'"


@dataclass(frozen=True, slots=True)
class Shape:
    """A convolution, deconvolution, inner product or matmul of given sizes.

    Parameters
    ----------
    kind : {"conv", "deconv", "ip", "matmul"}
        Kind of the layer, in benchdnn's words.
    src, wei : tuple of int
        Logical dimensions, as the problems of `pyonednn_q` take them.
    stride, dilation : tuple of int
        One per spatial dimension; empty: 1 everywhere.
    padding : tuple of (int, int)
        Low and high side per spatial dimension; empty: none.
    out : tuple of int
        Spatial dimensions of a deconvolution's dst; empty: the least that use all of src.
    transposed : bool
        The second operand of a batched matmul lies in memory as (..., N, K).

    Raises
    ------
    ShapeError, ArgumentError
        Anything that does not fit.
    """

    kind: str
    src: Dims
    wei: Dims
    stride: Dims = ()
    dilation: Dims = ()
    padding: Sides = ()
    out: Dims = ()
    transposed: bool = False
    dst: Dims = field(init=False, compare=False)

    def __post_init__(self) -> None:
        one_of("kind", self.kind, KINDS)
        object.__setattr__(self, "src", integers("src", self.src))
        object.__setattr__(self, "wei", integers("wei", self.wei))
        if min(self.src + self.wei, default=0) < 1:
            raise ShapeError("src", f"{self.src} with wei {self.wei}", "no empty dimension")
        if self.kind in _WINDOWED:
            spatial = len(self.src) - 2
            for name in ("stride", "dilation"):
                values = per_dim(name, getattr(self, name) or 1, spatial)
                object.__setattr__(self, name, values)
            sides = padding_sides(self.padding or 0, spatial)
            object.__setattr__(self, "padding", tuple(zip(*sides, strict=True)))
        elif self.stride or self.dilation or self.padding:
            raise ArgumentError("stride", f"a window for {self.kind}", "conv or deconv")
        if self.out and self.kind != "deconv":
            raise ArgumentError("out", f"out for {self.kind}", "deconv: others follow from src")
        if self.transposed and not self.has_two_sources:
            raise ArgumentError("transposed", "constant weights", "a matmul of two activations")
        problem = self._problem("f32", "f32", "f32", "channels_last")
        object.__setattr__(self, "dst", problem.dst.dims)
        if self.out == self._least_out():
            object.__setattr__(self, "out", ())

    @property
    def has_two_sources(self) -> bool:
        """Whether the second operand is no constant: it comes with each call, and is not packed."""
        return self.kind == "matmul" and len(self.wei) > 2 and max(self.wei[:-2]) > 1

    @property
    def groups(self) -> int:
        """Number of groups of a convolution."""
        return self.wei[0] if self.has_groups else 1

    @property
    def has_groups(self) -> bool:
        """Whether the weights have a group dimension."""
        return self.kind in _WINDOWED and len(self.wei) > len(self.src)

    @property
    def out_padding(self) -> Dims:
        """Places of a deconvolution's dst beyond the least number, per spatial dimension."""
        if not self.out:
            return (0,) * (len(self.src) - 2) if self.kind == "deconv" else ()
        least = replace(self, out=()).dst[2:]
        return tuple(size - low for size, low in zip(self.out, least, strict=True))

    @property
    def macs(self) -> int:
        """Multiplications; those with padding are counted, as is usual for networks."""
        if self.kind == "matmul":
            return math.prod(self.dst) * self.src[-1]
        if self.kind == "deconv":
            per_point = math.prod(self.wei) // self.src[1]
            return math.prod(self.src) * per_point
        channels = self.dst[1]
        return math.prod(self.dst) * (math.prod(self.wei) // channels)

    @property
    def products(self) -> int:
        """Multiplications of a source and a weight: those with padding are not counted.

        Padding means, for a convolution, products whose source lies outside; for a deconvolution,
        those that would be added outside of dst.
        """
        if self.kind not in _WINDOWED:
            return self.macs
        spatial = len(self.src) - 2
        moves, kernel = (self.dst, self.wei) if self.kind == "conv" else (self.src, self.wei)
        bounds = self.src[2:] if self.kind == "conv" else self.dst[2:]
        products = self.macs
        for n, k, stride, dilation, (lo, _), bound in zip(
            moves[2:], kernel[-spatial:], self.stride, self.dilation, self.padding, bounds,
            strict=True,
        ):  # fmt: skip
            within = sum(_steps(n, stride, tap * dilation - lo, bound) for tap in range(k))
            products = products // (n * k) * within
        return products

    @property
    def ops(self) -> int:
        """Operations that are computed: a multiplication and an addition each, none of padding."""
        return 2 * self.products

    @property
    def padded_ops(self) -> int:
        """Operations as papers count them, those with padding among them."""
        return 2 * self.macs

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Elements of src, wei and dst."""
        return math.prod(self.src), math.prod(self.wei), math.prod(self.dst)

    def batched(self, times: int) -> Shape:
        """Return the same work on `times` as many inputs: the first dimension of src grows."""
        times = whole("batch", times, lo=1)
        src = (self.src[0] * times, *self.src[1:])
        if self.has_two_sources and self.wei[0] > 1:
            return replace(self, src=src, wei=(self.wei[0] * times, *self.wei[1:]))
        return replace(self, src=src)

    def problem(self, precision: Precision, layout: Layout) -> DenseProblem:
        """Return the problem in these data types, with an f32 bias, unless it multiplies sources.

        Parameters
        ----------
        precision : Precision
            Data types of src, wei and dst.
        layout : {"channels_last", "dense"}
            Layout in memory of src and dst of convolutions; matrices are row-major.
        """
        instance("precision", precision, Precision)
        precision.check_primitive()
        return self._problem(precision.src, precision.wei, precision.dst, layout)

    def _problem(self, src: str, wei: str, dst: str, layout: Layout) -> DenseProblem:
        types: dict[str, Any] = {"src": src, "wei": wei, "dst": dst}
        if self.kind == "matmul":
            bias = None if self.has_two_sources else "f32"
            product = MatMulProblem.of(self.src, self.wei, bias=bias, **types)
            return replace(product, wei=self._transposed(wei)) if self.transposed else product
        if self.kind == "ip":
            if self.wei[1:] != self.src[1:]:
                wanted = f"(OC, {cross(self.src[1:])}), as src"
                raise ShapeError("wei", cross(self.wei), wanted)
            return InnerProductProblem.of(self.src, self.wei[0], bias="f32", layout=layout, **types)
        problem_class = ConvProblem if self.kind == "conv" else DeconvProblem
        problem = problem_class.of(
            self.src,
            self.wei,
            bias="f32",
            stride=self.stride,
            dilation=self.dilation,
            padding=self.padding,
            layout=layout,
            **types,
        )
        if not self.out:
            return problem
        return replace(problem, dst=laid_out((*problem.dst.dims[:2], *self.out), dst, layout))

    def _transposed(self, dtype: str) -> TensorSpec:
        *lead, k, n = self.wei
        strides = TensorSpec.dense((*lead, n, k), dtype).strides
        assert strides is not None
        return TensorSpec(self.wei, dtype, (*strides[:-2], strides[-1], strides[-2]))

    def _least_out(self) -> Dims:
        if self.kind != "deconv" or not self.out:
            return ()
        return replace(self, out=()).dst[2:]

    def text(self) -> str:
        """Return the line that `parse` reads."""
        words = [self.kind, cross(self.src), cross(self.wei)]
        if max(self.stride, default=1) > 1:
            words.append("stride=" + _shortest(list(map(str, self.stride))))
        if max(map(max, self.padding), default=0) > 0:
            sides = [f"{lo}" if lo == hi else f"{lo}:{hi}" for lo, hi in self.padding]
            words.append("padding=" + _shortest(sides))
        if max(self.dilation, default=1) > 1:
            words.append("dilation=" + _shortest(list(map(str, self.dilation))))
        if self.out:
            words.append("out=" + cross(self.out))
        if self.transposed:
            words.append("wei=transposed")
        return " ".join(words)

    __str__ = text

    @classmethod
    def parse(cls, text: str) -> Shape:
        """Return the shape that a line describes.

        Raises
        ------
        ArgumentError
            Words that it does not know.
        ShapeError
            Sizes that do not fit each other.

        Examples
        --------
        >>> Shape.parse("conv 1x64x56x56 64x64x3x3 stride=2 padding=1").dst
        (1, 64, 28, 28)
        """
        instance("problem", text, str)
        words = text.split()
        if len(words) < 3 or words[0] not in KINDS:
            raise ArgumentError("problem", shown(text), _FORM)
        kind, src, wei = words[0], _dims("src", words[1]), _dims("wei", words[2])
        options = dict(_option(word) for word in words[3:])
        if len(options) != len(words) - 3:
            raise ArgumentError("problem", shown(text), "every option once")
        layout = options.pop("wei", "")
        if layout not in {"", "transposed"}:
            raise ArgumentError("wei", layout, "transposed")
        if options and kind not in _WINDOWED:
            raise ArgumentError("problem", shown(text), f"no {', '.join(options)} in a {kind}")
        spatial = len(src) - 2
        groups = _groups(options["groups"]) if "groups" in options else 1
        return cls(
            kind,
            src,
            with_groups(src, wei, groups),
            stride=_each("stride", options, spatial),
            dilation=_each("dilation", options, spatial),
            padding=_sides(options["padding"], spatial) if "padding" in options else (),
            out=_each("out", options, spatial),
            transposed=bool(layout),
        )


_OPTIONS = ("stride", "padding", "dilation", "groups", "out", "wei")


def _option(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    if name not in _OPTIONS or not value:
        wanted = ", ".join(f"{option}=..." for option in _OPTIONS)
        raise ArgumentError("problem", shown(word), f"one of {wanted}")
    return name, value


def _dims(name: str, word: str) -> Dims:
    if not _NUMBERS.fullmatch(word):
        raise ArgumentError(name, shown(word), "numbers joined by x")
    return tuple(map(int, word.split("x")))


def _groups(word: str) -> int:
    many = _dims("groups", word)
    if len(many) > 1 or many[0] < 1:
        raise ArgumentError("groups", shown(word), "one number from 1")
    return many[0]


def _each(name: str, options: dict[str, str], spatial: int) -> Dims:
    if name not in options:
        return ()
    values = _dims(name, options[name])
    return values * spatial if len(values) == 1 else values


def _sides(word: str, spatial: int) -> Sides:
    pairs = []
    for part in word.split("x"):
        lo, _, hi = part.partition(":")
        if not (_NUMBERS.fullmatch(lo) and _NUMBERS.fullmatch(hi or lo)):
            raise ArgumentError(
                "padding", shown(word), "numbers joined by x, or lo:hi in their place"
            )
        pairs.append((int(lo), int(hi or lo)))
    return tuple(pairs * spatial if len(pairs) == 1 else pairs)


def _steps(count: int, stride: int, offset: int, bound: int) -> int:
    """Return how many of `count` steps of a stride from `offset` on are from 0 up to bound."""
    first = max(-(offset // stride), 0)
    last = min((bound - 1 - offset) // stride, count - 1)
    return max(last - first + 1, 0)


def _shortest(values: list[str]) -> str:
    return values[0] if len(set(values)) == 1 else "x".join(values)
