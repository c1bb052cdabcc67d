"""PrimitiveFacts: what the composer must know of the primitive that a chain follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import flag, instance, integers, one_of, real, whole
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.interval import ANYTHING, Interval
from pyonednn_q.expr.steps import Extent, Leaf
from pyonednn_q.expr.vec import Vec, VecLike, constant
from pyonednn_q.primitive.convolution import ConvProblem, DeconvProblem
from pyonednn_q.primitive.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.primitive.isa import Facts
from pyonednn_q.primitive.windowed import arranged
from pyonednn_q.qparams import mask_from_axis
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

DenseProblem: TypeAlias = ConvProblem | DeconvProblem | InnerProductProblem | MatMulProblem
DENSE = (ConvProblem, DeconvProblem, InnerProductProblem, MatMulProblem)

ACC_MAP = "acc_map"  # the name of the operand that PrimitiveFacts.acc_map announces
SRC_SCALE, SRC_ZERO_POINT = "src_scale", "src_zero_point"  # and of those that src_later does

KINDS = ("convolution", "deconvolution", "inner_product", "matmul")
# What src_later may be with rows, and the extent of the operand that is their scale.
_ROW_EXTENTS: dict[str, Extent] = {"per_row": "per_row", "per_row_of_batch": "full"}


@dataclass(frozen=True, slots=True)
class PrimitiveFacts:
    """A convolution, deconvolution, inner product or matmul, without its sizes.

    The chain receives  x = src_scale · wei_scale[oc] · acc + bias[oc]  and what it gives is stored
    as  saturate(rne(y / dst_scale + dst_zero_point)).

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    channels : int
        Output channels; for matmul, columns.
    src, wei, dst : str
        Data types.
    ndims, wei_ndims : int
        Dimensions of dst and of the weights. One more in the weights: the group dimension.
    src_scale, wei_scale : float and VecLike
        Real values of codes of 1 in src and wei; wei_scale per tensor or per output channel.
    src_zero_point, wei_zero_point : int, optional
        Zero points of src and wei. None: the primitive has none, which is another primitive than
        one with 0.
    bias : VecLike, optional
        Values of the bias, when they are known.
    bias_later : bool
        There is a bias whose values come when the primitive is prepared.
    bias_in_acc : bool
        The bias is in units of the accumulator (whole numbers, worth src_scale · wei_scale each),
        as in ONNX and TFLite; otherwise it is in real units, as oneDNN v3 takes it.
    dst_scale, dst_zero_point : float and int
        Real value of a step of dst, and its code for real 0.
    acc : Interval, optional
        Bounds of the accumulator; `acc_interval` finds them from the weights.
    acc_map : bool
        A tensor of dst's dims, in units of the accumulator, is added to it: known when the
        primitive is prepared. It stands in for a source zero point; `acc` is that of the sum.
    src_later : {"", "per_tensor", "per_row", "per_row_of_batch"}
        The scale of the source comes with each call, and so does its zero point, if it has one:
        one for the tensor, or one for each row of a matmul; for those of a batch it is a tensor of
        dst's dims, which every kernel takes. `src_scale` is 1 and nothing is known of the
        accumulator then.
    wei_has_min : bool
        Integer weights may hold the lowest value of their type, so that a channel of them cannot
        change its sign.
    dst_dims : tuple of int, optional
        Needed only by operands of full size.
    process : Facts, optional
        Version and instruction set. None: what the composer asks for must hold for all.

    Attributes
    ----------
    is_int8 : bool
        Whether sums are of integers.
    axis : int
        The channel axis of dst.
    folded_scale : Vec
        src_scale · wei_scale, in float64.
    row_scale : Leaf or None
        The scale of each row of the source, where that is what comes with each call.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument, what came and what would do.
    """

    kind: str
    channels: int
    src: str = "u8"
    wei: str = "s8"
    dst: str = "u8"
    ndims: int = 4
    wei_ndims: int = 4
    src_scale: float = 1.0
    wei_scale: Vec = Vec(1.0)  # noqa: RUF009 - Vec is frozen
    src_zero_point: int | None = None
    wei_zero_point: int | None = None
    bias: Vec | None = None
    bias_later: bool = False
    bias_in_acc: bool = False
    dst_scale: float = 1.0
    dst_zero_point: int = 0
    acc: Interval = ANYTHING
    acc_map: bool = False
    src_later: str = ""
    wei_has_min: bool = True
    dst_dims: tuple[int, ...] | None = None
    process: Facts | None = None
    is_int8: bool = field(init=False, repr=False, compare=False)
    axis: int = field(init=False, repr=False, compare=False)
    folded_scale: Vec = field(init=False, repr=False, compare=False)
    row_scale: Leaf | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", one_of("kind", self.kind, KINDS))
        for name, *ends in (("channels", 1), ("ndims", 2, 12), ("wei_ndims", 2, 12)):
            object.__setattr__(self, name, whole(name, getattr(self, name), *ends))
        for name in ("bias_later", "bias_in_acc", "acc_map", "wei_has_min"):
            flag(name, getattr(self, name))
        for name in ("src", "wei", "dst"):
            object.__setattr__(self, name, dtypes.checked(getattr(self, name), name))
        object.__setattr__(self, "is_int8", dtypes.is_integer(self.wei))
        object.__setattr__(self, "axis", self.ndims - 1 if self.kind == "matmul" else 1)
        if (self.src in dtypes.FLOATS) != (self.wei in dtypes.FLOATS) or (
            self.is_int8 and self.src not in dtypes.INT8
        ):
            got = f"src {self.src} with wei {self.wei}"
            raise DTypeError("src", got, "u8 or s8 with integer weights, or both floating")
        object.__setattr__(self, "wei_scale", constant("wei_scale", self.wei_scale))
        if self.bias is not None:
            object.__setattr__(self, "bias", constant("bias", self.bias))
            if self.bias_later:
                raise ArgumentError("bias_later", "True with a bias", "one of the two")
        for name in ("src_zero_point", "wei_zero_point"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole(name, getattr(self, name)))
        self._check_scales()
        self._check_later()
        instance("acc", self.acc, Interval)
        if self.process is not None:
            instance("process", self.process, Facts)
        if self.dst_dims is not None:
            self._check_dims(self.dst_dims)

    def _check_dims(self, dst_dims: tuple[int, ...]) -> None:
        dims = integers("dst_dims", dst_dims)
        object.__setattr__(self, "dst_dims", dims)
        if len(dims) != self.ndims or dims[self.axis] != self.channels:
            wanted = f"{self.ndims} of them, {self.channels} channels on axis {self.axis}"
            raise ShapeError("dst_dims", str(dims), wanted)

    def _check_scales(self) -> None:
        for name in ("src_scale", "dst_scale"):
            object.__setattr__(self, name, real(name, getattr(self, name)))
            if getattr(self, name) <= 0.0:
                raise ArgumentError(name, str(getattr(self, name)), "a finite number above 0")
        if not (self.wei_scale.is_finite and self.wei_scale.least > 0.0):
            got = self.wei_scale.first(lambda s: ~(np.isfinite(s) & (s > 0)))
            raise ArgumentError("wei_scale", got, "finite numbers above 0")
        object.__setattr__(self, "folded_scale", self.wei_scale * self.src_scale)
        if self.folded_scale.least == 0.0:
            got = f"{self.src_scale} with wei_scale {self.wei_scale}"
            raise ArgumentError("src_scale", got, "scales whose product is not 0 in float64")
        if self.bias is not None and not self.bias.is_finite:
            raise ArgumentError("bias", str(self.bias), "finite numbers")
        for name, vec in (("wei_scale", self.wei_scale), ("bias", self.bias)):
            if vec is not None and vec.channels not in (None, self.channels):
                raise ShapeError(name, f"{vec.channels} channels", f"{self.channels}, or one value")
        is_integer = dtypes.is_integer(self.dst)
        ends = (dtypes.qmin(self.dst), dtypes.qmax(self.dst)) if is_integer else ()
        zero_point = whole("dst_zero_point", self.dst_zero_point, *ends)
        object.__setattr__(self, "dst_zero_point", zero_point)
        if zero_point and not is_integer:
            raise ArgumentError("dst_zero_point", str(zero_point), f"0 for {self.dst}")

    def _check_later(self) -> None:
        later = one_of("src_later", self.src_later, ("", "per_tensor", *_ROW_EXTENTS))
        object.__setattr__(self, "src_later", later)
        extent = _ROW_EXTENTS.get(later)
        row_scale = None if extent is None else Leaf(SRC_SCALE, "f32", extent)
        object.__setattr__(self, "row_scale", row_scale)
        if not self.src_later:
            return
        if not self.is_int8 or self.src_scale != 1.0 or self.acc != ANYTHING or self.bias_in_acc:
            wanted = "integers, src_scale=1, an unknown accumulator, a bias in real units"
            raise ArgumentError("src_later", shown(self.src_later), wanted)
        if self.src_later in _ROW_EXTENTS and (self.kind != "matmul" or self.bias_later):
            wanted = "'per_tensor': rows are those of a matmul whose bias is known"
            raise ArgumentError("src_later", shown(self.src_later), wanted)

    @classmethod
    def of(
        cls,
        problem: DenseProblem,
        *,
        wei: NDArray[Any] | None = None,
        src_scale: float = 1.0,
        wei_scale: VecLike = 1.0,
        src_zero_point: int | None = None,
        wei_zero_point: int | None = None,
        bias: VecLike | None = None,
        bias_in_acc: bool = False,
        dst_scale: float = 1.0,
        dst_zero_point: int = 0,
        src_later: str = "",
        process: Facts | None = None,
    ) -> PrimitiveFacts:
        """Return the facts of a problem.

        Parameters
        ----------
        problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
            Problem. If it has a bias and none is given, the values of the bias come later.
        wei : ndarray, optional
            The weights, in the problem's dims or as the operators take them. Known, they bound the
            accumulator, channel by channel.

        Other parameters are those of the class.
        """
        instance("problem", problem, *DENSE)
        is_int8 = dtypes.is_integer(problem.wei.dtype)
        one_of("src_later", src_later, ("", "per_tensor", *_ROW_EXTENTS))
        interval, has_min = ANYTHING, is_int8
        if is_int8:
            interval = Interval(integer=True)
        if wei is not None and is_int8:
            src_point = 0 if src_zero_point is None else whole("src_zero_point", src_zero_point)
            wei_point = 0 if wei_zero_point is None else whole("wei_zero_point", wei_zero_point)
            wei = _in_dims(problem, wei)
            if not src_later:
                interval = acc_interval(problem, wei, src_point, wei_point)
            has_min = bool((wei == dtypes.qmin(problem.wei.dtype)).any())
        return cls(
            kind=problem.kind,
            channels=problem.oc,
            src=problem.src.dtype,
            wei=problem.wei.dtype,
            dst=problem.dst.dtype,
            ndims=problem.dst.ndim,
            wei_ndims=problem.wei.ndim,
            src_scale=src_scale,
            wei_scale=constant("wei_scale", wei_scale),
            src_zero_point=src_zero_point,
            wei_zero_point=wei_zero_point,
            bias=None if bias is None else constant("bias", bias),
            bias_later=bias is None and problem.bias is not None,
            bias_in_acc=bias_in_acc,
            dst_scale=dst_scale,
            dst_zero_point=dst_zero_point,
            acc=ANYTHING if src_later else interval,
            src_later=src_later,
            wei_has_min=has_min,
            dst_dims=problem.dst.dims,
            process=process,
        )

    @property
    def has_bias(self) -> bool:
        """Whether the primitive has a bias already."""
        return self.bias is not None or self.bias_later

    def wei_mask(self, vec: Vec) -> int:
        """Return the mask of weight scales: one, or one per output channel."""
        instance("vec", vec, Vec)
        if vec.array is None:
            return 0
        if self.kind == "matmul":
            return mask_from_axis(self.kind, self.wei_ndims - 1, self.wei_ndims)
        in_groups = self.kind != "inner_product" and self.wei_ndims > self.ndims
        # Any number of groups above 1 stands for "there is a group dimension".
        return mask_from_axis(self.kind, 0, self.wei_ndims, groups=2 if in_groups else 1)

    def text(self) -> str:
        """Return one readable line."""
        bias = "" if not self.has_bias else " with bias"
        process = self.process
        where = "" if process is None else f", oneDNN {'.'.join(map(str, process.version))} on "
        where += "" if process is None else process.isa.text()
        types = f"{self.src} · {self.wei} -> {self.dst}"
        return f"{self.kind} {types}, {self.channels} channels{bias}{where}"


def acc_interval(
    problem: DenseProblem,
    wei: NDArray[Any],
    src_zero_point: float = 0,
    wei_zero_point: float = 0,
    src_range: tuple[int, int] | None = None,
) -> Interval:
    """Bound the accumulator of every output channel by its weights and the source's data type.

    Exact for a source that may hold anything; padded places count as 0, so any part of the taps
    may be missing. A source that is known to hold less has a `src_range`, both ends included.

    Examples
    --------
    >>> from pyonednn_q.primitive.problem import ConvProblem
    >>> wei = np.array([[[[1]], [[-2]]], [[[3]], [[4]]]], np.int8)
    >>> print(acc_interval(ConvProblem.of((1, 2, 5, 5), wei.shape), wei))
    [[-510, 0], [255, 1785]] whole
    """
    wei = _in_dims(problem, wei)
    if src_range is None:
        src_range = dtypes.qmin(problem.src.dtype), dtypes.qmax(problem.src.dtype)
    # With 0 among the codes, as padding makes it, every bound holds for parts of the taps, too.
    least = min(src_range[0] - src_zero_point, 0.0)
    greatest = max(src_range[1] - src_zero_point, 0.0)
    # Integers as they are: of large weights, copies in float64 take most of the time.
    is_plain = wei.dtype.kind in "iu" and not wei_zero_point
    values = wei if is_plain else wei.astype(np.float64) - wei_zero_point
    # A batch of a matmul's weights shares one chain.
    rows = problem.channel_rows(values).reshape(problem.oc, -1, max(problem.terms, 1))
    positive = np.maximum(rows, 0).sum(axis=2, dtype=np.float64)
    negative = np.minimum(rows, 0).sum(axis=2, dtype=np.float64)
    low = (positive * least + negative * greatest).min(axis=1, initial=0.0)
    high = (positive * greatest + negative * least).max(axis=1, initial=0.0)
    whole_points = float(src_zero_point).is_integer() and float(wei_zero_point).is_integer()
    return Interval(Vec(low), Vec(high), integer=whole_points)


def _in_dims(problem: DenseProblem, wei: NDArray[Any]) -> NDArray[Any]:
    """Return weights in the problem's dims; refuse what is none."""
    instance("wei", wei, np.ndarray)
    if wei.dtype.kind in "OcmMSUT":
        raise DTypeError("wei", str(wei.dtype), "real numbers")
    wei = arranged(problem, wei)
    if wei.shape != problem.wei.dims:
        raise ShapeError("wei", str(wei.shape), str(problem.wei.dims))
    return wei
