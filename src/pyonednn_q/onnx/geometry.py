"""ONNX's window attributes, as numbers: auto_pad, output_shape and output_padding resolved.

Lengths, per spatial dimension, with r = (kernel − 1) · dilation + 1:

    convolution      out = floor((in + lo + hi − r) / stride) + 1
      SAME_*         out = ceil(in / stride);  lo + hi = max(0, (out − 1) · stride + r − in)
    transposed       out = (in − 1) · stride + output_padding + r − lo − hi
      SAME_*         out = in · stride
      output_shape   lo + hi = (in − 1) · stride + output_padding + r − output_shape

An odd number is padded once more at the end for SAME_UPPER, else at the beginning. Places beyond
what a transposed convolution reaches, padding below 0, are all at the end.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from pyonednn_q.argument import integers, one_of, whole
from pyonednn_q.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    Integers: TypeAlias = Iterable[int] | None

Dims = tuple[int, ...]

_AUTO_PAD = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


class Sliding(NamedTuple):
    """Window of a kernel that slides over a source: one value per spatial dimension.

    Parameters
    ----------
    stride, dilation : tuple of int
        Attributes of the node, 1 by default.
    lo, hi : tuple of int
        Padding of both sides; of a transposed convolution less than 0 where places are added.
    groups : int
        Number of groups of channels.
    dst : tuple of int
        Spatial lengths of the result.
    """

    stride: Dims
    dilation: Dims
    lo: Dims
    hi: Dims
    groups: int
    dst: Dims

    @property
    def options(self) -> tuple[tuple[str, Any], ...]:
        """Pairs of option and value, as our operators take them; padding below 0 is left out."""
        sides = tuple((max(lo, 0), max(hi, 0)) for lo, hi in zip(self.lo, self.hi, strict=True))
        return (
            ("stride", self.stride),
            ("padding", sides),
            ("dilation", self.dilation),
            ("groups", self.groups),
        )


def convolution(
    names: tuple[str, str],
    src: Dims,
    wei: Dims,
    auto_pad: str,
    dilations: Integers,
    group: int,
    kernel_shape: Integers,
    pads: Integers,
    strides: Integers,
) -> Sliding:
    """Return the window of a convolution.

    Parameters
    ----------
    names : (str, str)
        Names of source and weights, for errors.
    src, wei : tuple of int
        Their dims: (N, C, spatial) and (M, C / group, spatial).
    auto_pad, dilations, group, kernel_shape, pads, strides
        ONNX's attributes.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.
    """
    return _convolution(
        names,
        src,
        wei,
        one_of("auto_pad", auto_pad, _AUTO_PAD),
        _listed("dilations", dilations),
        whole("group", group, lo=1),
        _listed("kernel_shape", kernel_shape),
        _listed("pads", pads),
        _listed("strides", strides),
    )


@functools.lru_cache(maxsize=1024)
def _convolution(
    names: tuple[str, str],
    src: Dims,
    wei: Dims,
    auto_pad: str,
    dilations: Dims | None,
    group: int,
    kernel_shape: Dims | None,
    pads: Dims | None,
    strides: Dims | None,
) -> Sliding:
    stride, dilation, reach = _window(
        names, src, wei, auto_pad, dilations, kernel_shape, pads, strides
    )
    if src[1] != wei[1] * group:
        wanted = f"{wei[1]} · {group} channels, as {names[1]} and group say"
        raise ShapeError(names[0], str(src), wanted)
    if wei[0] % group:
        raise ShapeError(names[1], str(wei), f"a multiple of {group} output channels, for group")
    lengths, spatial = src[2:], len(stride)
    lo = hi = (0,) * spatial
    if auto_pad.startswith("SAME"):
        total = tuple(
            max(0, (-(-length // step) - 1) * step + r - length)
            for length, step, r in zip(lengths, stride, reach, strict=True)
        )
        lo, hi = _split(total, auto_pad)
    elif pads is not None:
        lo, hi = pads[:spatial], pads[spatial:]
    dst = tuple(
        (length + a + b - r) // step + 1
        for length, a, b, r, step in zip(lengths, lo, hi, reach, stride, strict=True)
    )
    if min(dst) < 1:
        wanted = f"spatial lengths of at least {reach} with their padding, as the kernel reaches"
        raise ShapeError(names[0], str(src), wanted)
    return Sliding(stride, dilation, lo, hi, group, dst)


def transposed(
    src: Dims,
    wei: Dims,
    auto_pad: str,
    dilations: Integers,
    group: int,
    kernel_shape: Integers,
    output_padding: Integers,
    output_shape: Integers,
    pads: Integers,
    strides: Integers,
) -> Sliding:
    """Return the window of a transposed convolution.

    Parameters
    ----------
    src, wei : tuple of int
        Their dims: (N, C, spatial) and (C, M / group, spatial).
    auto_pad, dilations, group, kernel_shape, output_padding, output_shape, pads, strides
        ONNX's attributes.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.
    """
    return _transposed(
        src,
        wei,
        one_of("auto_pad", auto_pad, _AUTO_PAD),
        _listed("dilations", dilations),
        whole("group", group, lo=1),
        _listed("kernel_shape", kernel_shape),
        _listed("output_padding", output_padding),
        _listed("output_shape", output_shape),
        _listed("pads", pads),
        _listed("strides", strides),
    )


@functools.lru_cache(maxsize=1024)
def _transposed(
    src: Dims,
    wei: Dims,
    auto_pad: str,
    dilations: Dims | None,
    group: int,
    kernel_shape: Dims | None,
    output_padding: Dims | None,
    output_shape: Dims | None,
    pads: Dims | None,
    strides: Dims | None,
) -> Sliding:
    stride, dilation, reach = _window(
        ("X", "W"), src, wei, auto_pad, dilations, kernel_shape, pads, strides
    )
    if src[1] != wei[0]:
        raise ShapeError("X", str(src), f"{wei[0]} channels, as W has")
    if wei[0] % group:
        raise ShapeError("W", str(wei), f"a multiple of {group} input channels, for group")
    spatial = len(stride)
    extra = _of_length("output_padding", output_padding, (0,) * spatial, 0)
    full = tuple(
        (length - 1) * step + more + r
        for length, step, more, r in zip(src[2:], stride, extra, reach, strict=True)
    )
    lo = hi = (0,) * spatial
    if output_shape is not None or auto_pad.startswith("SAME"):
        same = tuple(length * step for length, step in zip(src[2:], stride, strict=True))
        dst = _of_length("output_shape", output_shape, same, 1)
        lo, hi = _split(tuple(f - d for f, d in zip(full, dst, strict=True)), auto_pad)
    else:
        if pads is not None:
            lo, hi = pads[:spatial], pads[spatial:]
        dst = tuple(f - a - b for f, a, b in zip(full, lo, hi, strict=True))
        if min(dst) < 1:
            raise ShapeError("pads", str(pads), f"less than the full lengths {full}")
    hi = tuple(b - more for b, more in zip(hi, extra, strict=True))
    return Sliding(stride, dilation, lo, hi, group, dst)


def _window(
    names: tuple[str, str],
    src: Dims,
    wei: Dims,
    auto_pad: str,
    dilations: Dims | None,
    kernel_shape: Dims | None,
    pads: Dims | None,
    strides: Dims | None,
) -> tuple[Dims, Dims, Dims]:
    """Return stride, dilation and how far the kernel reaches, after checks that all share."""
    if len(src) < 3:
        raise ShapeError(names[0], str(src), "(N, C, at least one spatial dimension)")
    if len(wei) != len(src):
        raise ShapeError(names[1], str(wei), f"{len(src)} dimensions, as {names[0]} has")
    spatial = len(src) - 2
    kernel = wei[2:]
    if kernel_shape is not None and kernel_shape != kernel:
        raise ShapeError("kernel_shape", str(kernel_shape), f"{kernel}, as {names[1]} has")
    sides = _of_length("pads", pads, (0,) * (2 * spatial), 0)
    if auto_pad != "NOTSET" and any(sides):
        raise ArgumentError("pads", str(pads), f"none with auto_pad {auto_pad}")
    stride = _of_length("strides", strides, (1,) * spatial, 1)
    dilation = _of_length("dilations", dilations, (1,) * spatial, 1)
    reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    return stride, dilation, reach


def _listed(name: str, values: Integers) -> Dims | None:
    return None if values is None else integers(name, values)


def _of_length(name: str, values: Dims | None, default: Dims, least: int) -> Dims:
    if values is None:
        return default
    if len(values) != len(default):
        raise ShapeError(name, str(values), f"{len(default)} values")
    if values and min(values) < least:
        raise ShapeError(name, str(values), f"values of at least {least}")
    return values


def _split(total: Dims, auto_pad: str) -> tuple[Dims, Dims]:
    """Return (lo, hi) with the sum `total`; a negative total is all in `hi`."""
    halves = tuple((max(each, 0) // 2, max(each, 0) - max(each, 0) // 2) for each in total)
    less, more = (tuple(half[side] for half in halves) for side in (0, 1))
    lo, hi = (less, more) if auto_pad == "SAME_UPPER" else (more, less)
    return lo, tuple(side + min(each, 0) for side, each in zip(hi, total, strict=True))
