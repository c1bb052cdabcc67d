"""WindowedProblem: what convolution and deconvolution share, and the dims of their weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from pyonednn_q.argument import instance, integers, one_of, whole
from pyonednn_q.errors import ShapeError
from pyonednn_q.primitive.dense_operation import DenseOperation, indices, numeric
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.primitive.window import Dims, Padding, PerDim, Window, padding_sides, per_dim
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from pyonednn_q.dtypes import Array, DType
    from pyonednn_q.primitive.tensor import Operation

Layout = Literal["channels_last", "dense"]
_set = object.__setattr__


def laid_out(dims: Iterable[int], dtype: DType, layout: str) -> TensorSpec:
    """Return a tensor without gaps, "channels_last" or "dense" (row-major)."""
    one_of("layout", layout, ("channels_last", "dense"))
    make = TensorSpec.dense if layout == "dense" else TensorSpec.channels_last
    return make(dims, dtype)


def bias_spec(channels: int, dtype: DType | None) -> TensorSpec | None:
    """Return a bias of one value per channel, or None."""
    return None if dtype is None else TensorSpec.dense((channels,), dtype)


@dataclass(frozen=True, slots=True)
class WindowedProblem(DenseOperation):
    """Common part of the problems of convolution and deconvolution: see those.

    Attributes
    ----------
    spatial : int
        Number of spatial dimensions.
    has_groups, groups : bool and int
        Whether the weights have a group dimension; number of groups, 1 without one.
    ic, oc : int
        Input and output channels of all groups.
    terms : int
        How many products a result is the sum of, where all taps meet the source.
    is_depthwise : bool
        Whether every group is one input and one output channel, and there are several.
    window : Window
        Kernel, stride, dilation and padding.
    """

    src: TensorSpec
    wei: TensorSpec
    dst: TensorSpec
    bias: TensorSpec | None
    stride: Dims
    dilation: Dims
    padding_lo: Dims
    padding_hi: Dims
    spatial: int = field(init=False, repr=False, compare=False)
    has_groups: bool = field(init=False, repr=False, compare=False)
    groups: int = field(init=False, repr=False, compare=False)
    ic: int = field(init=False, repr=False, compare=False)
    oc: int = field(init=False, repr=False, compare=False)
    terms: int = field(init=False, repr=False, compare=False)
    is_depthwise: bool = field(init=False, repr=False, compare=False)
    window: Window = field(init=False, repr=False, compare=False)

    # Not annotated in the class: these are no fields.
    _may_spread = False
    if TYPE_CHECKING:
        _lengths: ClassVar[staticmethod[[Window, Dims], Dims]]  # of dst, from those of src

    def __post_init__(self) -> None:
        for name in ("stride", "dilation", "padding_lo", "padding_hi"):
            _set(self, name, integers(name, getattr(self, name)))
        for name in ("src", "wei", "dst"):
            instance(name, getattr(self, name), TensorSpec)
        src, wei, dst = self.src, self.wei, self.dst
        _check_channels(src.dims, wei.dims)
        self._hold_geometry()
        if self.bias is not None:
            instance("bias", self.bias, TensorSpec)
            if self.bias.dims != (self.oc,):
                raise ShapeError(argument="bias", got=str(self.bias.dims), wanted=f"({self.oc},)")
        if dst.ndim != src.ndim or dst.dims[:2] != (src.dims[0], self.oc):
            wanted = f"({src.dims[0]}, {self.oc}, {self.spatial} spatial dimensions)"
            raise ShapeError(argument="dst", got=str(dst.dims), wanted=wanted)
        self._check_lengths()
        if dst.size and not src.size:
            raise ShapeError("src", str(src.dims), "elements: there is a result to compute")

    def _hold_geometry(self) -> None:
        """Keep what follows from the fields, and is asked of every problem many times."""
        ic, wei, spatial = self.src.dims[1], self.wei.dims, self.src.ndim - 2
        has_groups = len(wei) > self.src.ndim
        groups, oc = (wei[0], wei[0] * wei[1]) if has_groups else (1, wei[0])
        sides = self.padding_lo, self.padding_hi
        values = {
            "spatial": spatial,
            "has_groups": has_groups,
            "groups": groups,
            "ic": ic,
            "oc": oc,
            "terms": self.wei.size // oc,
            "is_depthwise": groups > 1 and ic == groups == oc,
            "window": Window(wei[-spatial:], self.stride, self.dilation, *sides),
        }
        for name, value in values.items():
            _set(self, name, value)

    def _check_lengths(self) -> None:
        raise NotImplementedError

    @classmethod
    def of(
        cls,
        src_dims: Iterable[int],
        wei_dims: Iterable[int],
        *,
        src: DType = "u8",
        wei: DType = "s8",
        dst: DType = "u8",
        bias: DType | None = None,
        stride: PerDim = 1,
        padding: Padding = 0,
        dilation: PerDim = 1,
        groups: int = 1,
        layout: Layout = "channels_last",
    ) -> Self:
        """Return the problem of these dimensions, with the output lengths that follow.

        Parameters
        ----------
        src_dims : (N, C, spatial)
            1 to 3 spatial dimensions.
        wei_dims : (OC, IC / groups, spatial) or (G, OC/G, IC/G, spatial)
            Dims of the weights, in the same order for a deconvolution. With one dimension more than
            src, groups come first.
        src, wei, dst : data type
            ``"u8"``, ``"uint8"`` or ``np.uint8``; so are all.
        bias : data type, optional
            Data type of the bias; None: no bias.
        stride, dilation : int or sequence of int
            Steps for all spatial dimensions, or for each. A dilation of 1 is dense.
        padding : int or sequence
            Places for all sides, for each dimension, or (lo, hi) for each; or all low sides, then
            all high ones.
        groups : int
            Number of groups of channels. Where `wei_dims` begin with them, it need not be said.
        layout : {"channels_last", "dense"}
            Layout of src and dst. The weights are packed as the implementation wants them.

        Raises
        ------
        ShapeError
            Dimensions that do not fit each other, or no output.
        """
        src_dims, wei_dims = integers("src", src_dims), integers("wei", wei_dims)
        wei_dims = with_groups(src_dims, wei_dims, whole("groups", groups, lo=1))
        _check_channels(src_dims, wei_dims)
        spatial = len(src_dims) - 2
        lo, hi = padding_sides(padding, spatial)
        steps, gaps = per_dim("stride", stride, spatial), per_dim("dilation", dilation, spatial)
        window = Window(wei_dims[-spatial:], steps, gaps, lo, hi)
        lengths = cls._lengths(window, src_dims[2:])
        if min(lengths) < 1:
            reach = f"src with padding {lo}, {hi} to give an output"
            raise ShapeError(argument="src", got=f"{src_dims}, output {lengths}", wanted=reach)
        oc = math.prod(wei_dims[: 1 + len(wei_dims) - len(src_dims)])
        dst_dims = (src_dims[0], oc, *lengths)
        try:
            dst_spec = laid_out(dst_dims, dst, layout)
        except ShapeError:  # nobody wrote its strides
            most = {"stride": max(steps), "dilation": max(gaps), "padding": max(lo + hi)}
            name = max(most, key=lambda part: most[part])
            value = {"stride": stride, "dilation": dilation, "padding": padding}[name]
            wanted = f"less: dst would be {dst_dims}, which no memory holds"
            raise ShapeError(name, shown(value), wanted) from None
        return cls(
            src=laid_out(src_dims, src, layout),
            wei=TensorSpec(wei_dims, wei),
            dst=dst_spec,
            bias=bias_spec(oc, bias),
            stride=steps,
            dilation=gaps,
            padding_lo=lo,
            padding_hi=hi,
        )

    @property
    def macs(self) -> int:
        """Multiplications; those with padding are counted, as is usual for networks."""
        raise NotImplementedError

    def reached(self, axis: int) -> Array:
        """Return which source each place of dst meets through each tap; -1: none.

        Parameters
        ----------
        axis : int
            Spatial dimension, counted from 0.

        Returns
        -------
        (places, taps) ndarray of int
            Indices along the dimension of src.
        """
        axis = whole("axis", axis, lo=0, hi=self.spatial - 1)
        places = np.arange(self.dst.dims[2 + axis])[:, np.newaxis]
        taps = np.arange(self.window.kernel[axis])[np.newaxis] * self.dilation[axis]
        at = self._at(axis, places, taps)
        return np.where((at >= 0) & (at < self.src.dims[2 + axis]), at, -1)

    def _at(self, axis: int, places: Array, taps: Array) -> Array:
        """Return where places of dst look through taps that reach so far: in src, or outside."""
        raise NotImplementedError

    @property
    def taps_seen(self) -> Array:
        """Whether some place of dst meets the source through a tap, in the kernel's dims."""
        axes = [(self.reached(axis) >= 0).any(axis=0) for axis in range(self.spatial)]
        return np.asarray(np.all(np.meshgrid(*axes, indexing="ij"), axis=0))

    def meets_everywhere(self) -> bool:
        """Tell whether every tap meets the source at every place of dst.

        Examples
        --------
        >>> from pyonednn_q.primitive.problem import ConvProblem
        >>> dims = (1, 8, 9, 9), (8, 8, 3, 3)
        >>> [ConvProblem.of(*dims, padding=padding).meets_everywhere() for padding in (0, 1)]
        [True, False]
        """
        return all(bool((self.reached(axis) >= 0).all()) for axis in range(self.spatial))

    def meets_together(self, index: Array) -> Array:
        """Tell of rows of weights whether some place of dst meets the source through all."""
        kernel = self.window.kernel
        index = indices(index)
        together = np.ones(len(index), np.bool_)
        for axis, taps in enumerate(np.unravel_index(index % math.prod(kernel), kernel)):
            met = self.reached(axis) >= 0
            together &= met[:, taps].all(axis=2).any(axis=0)
        return together

    def wei_sums(self, wei: Array) -> Array:
        """Return, in dst's dims, the sum of the weights that meet the source at each place."""
        per_group = self.ic // self.groups
        taps = numeric("wei", wei, self.wei.size).astype(np.float64)
        sums = taps.reshape(self.oc, per_group, *self.window.kernel).sum(axis=1)
        for axis in range(self.spatial):
            # The first kernel dimension goes, its places come last.
            met = (self.reached(axis) >= 0).astype(np.float64)
            sums = np.tensordot(sums, met, axes=(1, 1))
        return np.asarray(sums[np.newaxis])

    def assembled(self, sums: Array) -> Array:
        """Return sums of (images, groups, outputs of a group, places) in dst's dims."""
        return numeric("sums", sums, self.dst.size).reshape(self.dst.dims)

    @property
    def least_lengths(self) -> Dims:
        """Spatial dimensions of dst that the window gives: the least of those that may be."""
        return self._lengths(self.window, self.src.dims[2:])

    def spreads(self, axis: int) -> bool:
        """Tell whether neighbours in src lie further apart than one in dst."""
        axis = whole("axis", axis, lo=0, hi=self.spatial - 1)
        return self._may_spread and self.stride[axis] > 1

    @property
    def flat_padding(self) -> tuple[Dims, Dims]:
        """Low and high padding of the convolution of stride 1 that meets the same places."""
        raise NotImplementedError

    def params(self) -> dict[str, Any]:
        """Return stride, dilation and padding as the extension names them."""
        return {
            "strides": self.stride,
            "dilation": self.dilation,
            "padding_lo": self.padding_lo,
            "padding_hi": self.padding_hi,
        }

    def _shown(self) -> dict[str, Any]:
        parts = {"stride": self.stride} if max(self.stride) > 1 else {}
        parts |= {"dilation": self.dilation} if max(self.dilation) > 1 else {}
        if max(self.padding_lo + self.padding_hi) == 0:
            return parts
        if self.padding_lo == self.padding_hi:
            return parts | {"padding": self.padding_lo}
        return parts | {"padding_lo": self.padding_lo, "padding_hi": self.padding_hi}


def _check_channels(src: Dims, wei: Dims) -> None:
    if not 3 <= len(src) <= 5:
        raise ShapeError(argument="src", got=str(src), wanted="(N, C, 1 to 3 spatial dimensions)")
    if not len(src) <= len(wei) <= len(src) + 1:
        wanted = f"{len(src)} dimensions, or {len(src) + 1} with groups"
        raise ShapeError(argument="wei", got=str(wei), wanted=wanted)
    if min(wei) < 1:
        raise ShapeError(argument="wei", got=str(wei), wanted="no empty dimension")
    groups = wei[0] if len(wei) > len(src) else 1
    ic = wei[-(len(src) - 1)]
    if src[1] != groups * ic:
        wanted = f"{groups} groups of {ic} channels" if groups > 1 else f"{ic} channels"
        told = f"{wanted}, as in wei {wei}{_other_order(src, wei, groups * ic)}"
        raise ShapeError(argument="src", got=str(src), wanted=told)


def _other_order(src: Dims, wei: Dims, channels: int) -> str:
    """Say what would do where dims are those of an array whose channels are last."""
    last = len(src) - 1
    if src[last] == channels:
        axes = (0, last, *range(1, last))
        return f"; an array of channels last goes as src.transpose{axes}, which copies nothing"
    if len(wei) == len(src) and wei[-2] == src[1]:
        axes = (last, last - 1, *range(last - 1))
        return f"; weights that end in (in, out) go as wei.transpose{axes}"
    return ""


def with_groups(src: Dims, wei: Dims, groups: int) -> Dims:
    """Return the dimensions of the weights with their groups in front, where there are any."""
    if len(wei) > len(src) and groups not in (1, wei[0]):
        raise ShapeError("groups", str(groups), f"{wei[0]}, as in wei {wei}, or nothing")
    if groups == 1 or len(wei) != len(src):
        return wei
    if wei[0] % groups:
        raise ShapeError("groups", str(groups), f"one that divides {wei[0]} output channels")
    return (groups, wei[0] // groups, *wei[1:])


def arranged(problem: Operation, wei: Array) -> Array:
    """Return weights in the problem's dims, where groups lead, if they came as `Conv` takes them.

    Examples
    --------
    >>> from pyonednn_q.primitive.problem import ConvProblem
    >>> problem = ConvProblem.of((1, 4, 5, 5), (6, 2, 3, 3), groups=2)
    >>> problem.wei.dims, arranged(problem, np.ones((6, 2, 3, 3))).shape
    ((2, 3, 2, 3, 3), (2, 3, 2, 3, 3))
    """
    if not problem.has_groups:
        return wei
    dims = problem.tensors["wei"].dims
    # Whoever takes them says what else may come.
    as_conv = getattr(wei, "shape", None) == (dims[0] * dims[1], *dims[2:])
    return wei.reshape(dims) if as_conv else wei


def swapped(wei: Array, groups: int) -> Array:
    """Return weights (M, N / groups, spatial) as (N, M / groups, spatial), or back.

    Operators here have outputs first; transposed convolutions of ONNX and PyTorch have inputs.

    Examples
    --------
    >>> swapped(np.ones((6, 2, 3, 3)), 2).shape
    (4, 3, 3, 3)
    """
    first, second, *kernel = wei.shape
    by_group = wei.reshape(groups, first // groups, second, *kernel).swapaxes(1, 2)
    other: Array = by_group.reshape(groups * second, first // groups, *kernel)
    return other
