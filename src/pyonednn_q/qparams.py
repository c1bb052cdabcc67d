"""Scales and zero points, and the only place where an axis becomes a oneDNN mask.

A quantized tensor stands for

    real = scale · (q − zero_point)

and a primitive computes, with post-ops step_1 ... step_n:

    acc[oc]  = Σ (src_q − src_zp) · (wei_q − wei_zp)            integers
    x0       = src_scale · wei_scale[oc] · acc + bias[oc]       f32; the bias is not scaled
    x(k+1)   = step_k(x(k))                                     f32, in order
    dst_q    = saturate(rne(x(n) / dst_scale + dst_zp))         a float dst is a cast instead

oneDNN adds the zero point before it rounds (to nearest, ties to even), ONNX's QuantizeLinear and
`QParams.quantize` after: the two differ at ties when the zero point is odd.

Examples
--------
>>> import numpy as np
>>> src_q, wei_q = np.array([200, 10, 255], "u1"), np.array([[3, -5, 7], [0, 1, -1]], "i1")
>>> src = QParams(0.5, 128, "u8")
>>> wei = QParams([0.25, 0.5], 0, "s8", axis=0)
>>> dst = QParams(2.0, 100, "u8")
>>> acc = (wei_q.astype(int) - wei.zero_point[:, None]) @ (src_q.astype(int) - src.zero_point)
>>> acc
array([1695, -245])
>>> x = src.scale * wei.scale * acc + np.array([1.0, -2.0])
>>> np.array_equal(x, wei.dequantize(wei_q) @ src.dequantize(src_q) + [1.0, -2.0])
True
>>> np.clip(np.rint(x / dst.scale + dst.zero_point), 0, 255), dst.quantize(x)
(array([206.,  68.]), array([206,  68], dtype=uint8))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import integers, numbers, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pyonednn_q.dtypes import DType

_HELD = {"s4": "s8", "u4": "u8"}  # what holds codes of 4 bits, one in each byte


@dataclass(frozen=True, slots=True, eq=False, init=False)
class QParams:
    """Quantization of a tensor: real = scale · (q − zero_point).

    A value: compared by content, hashable, its arrays are copies that cannot be written.

    Parameters
    ----------
    scale : float or (C,) array_like
        Real value of one step, finite and positive; scales of groups may be negative. Kept as
        float, or as float64 array with `axis`.
    zero_point : int or (C,) array_like of int
        Code that means 0, within the range of `dtype`. With `axis`, one value holds for all
        channels, as for `scale`.
    dtype : data type
        Integer type of the codes: ``"u8"``, ``"uint8"``, ``np.uint8``.
    axis : int, optional
        Dimension of the channels; negative counts from the end. None: one scale and one zero point
        for the tensor. With `block`, the dimension that is divided into groups.
    block : tuple of int, optional
        Size of a group, one int: this number of neighbours along `axis` share a scale, as in ONNX's
        blocked QuantizeLinear. Scales and zero points then have the tensor's dims, except that
        `axis` is divided by the size.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError
        Naming the parameter.

    Examples
    --------
    >>> QParams([[0.5], [2.0]], 0, "s4", axis=1, block=(2,)).dequantize(np.ones((2, 2), "i1"))
    array([[0.5, 0.5],
           [2. , 2. ]])
    """

    scale: float | Array
    zero_point: int | Array
    dtype: str
    axis: int | None = None
    block: tuple[int, ...] = ()

    # Written by hand: it takes more types than the fields have.
    def __init__(
        self,
        scale: ArrayLike,
        zero_point: ArrayLike,
        dtype: DType,
        axis: int | None = None,
        block: tuple[int, ...] = (),
    ) -> None:
        dtype = dtypes.checked(dtype)
        if not dtypes.is_integer(dtype):
            raise DTypeError(argument="dtype", got=dtype, wanted="an integer type")
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "axis", None if axis is None else whole("axis", axis))
        object.__setattr__(self, "block", integers("block", block))
        scales = _scales(scale, are_signed=bool(self.block))
        zero_points = _zero_points(zero_point, dtype)
        if self.block:
            self._set_groups(scales, zero_points)
            return
        if axis is None:
            for name, values in (("scale", scales), ("zero_point", zero_points)):
                if values.ndim:
                    raise ShapeError(name, f"shape {values.shape}", "one value, or an axis")
            object.__setattr__(self, "scale", float(scales))
            object.__setattr__(self, "zero_point", int(zero_points))
            return
        shapes = {values.shape for values in (scales, zero_points) if values.ndim}
        if len(shapes) != 1 or len(shape := shapes.pop()) != 1 or shape[0] < 1:
            got = f"shapes {scales.shape} of scale, {zero_points.shape} of zero_point"
            wanted = "one value per channel, equally many"
            raise ShapeError(argument="scale", got=got, wanted=wanted)
        object.__setattr__(self, "scale", _frozen(scales, shape))
        object.__setattr__(self, "zero_point", _frozen(zero_points, shape))

    def _set_groups(self, scales: Array, zero_points: Array) -> None:
        """Keep scales and zero points of groups along the axis."""
        if len(self.block) != 1 or self.block[0] < 1:
            raise ArgumentError("block", str(self.block), "the size of a group: (32,)")
        shape = scales.shape
        if self.axis is None or not -len(shape) <= self.axis < len(shape) or not scales.size:
            wanted = "scales in the tensor's dimensions, and the axis that is cut into groups"
            raise ShapeError("scale", f"shape {shape} and axis {self.axis}", wanted)
        if zero_points.shape not in {(), shape}:
            raise ShapeError(
                "zero_point", f"shape {zero_points.shape}", f"one, or {shape} as scale"
            )
        object.__setattr__(self, "scale", _frozen(scales, shape))
        object.__setattr__(self, "zero_point", _frozen(zero_points, shape))

    @property
    def channels(self) -> int | None:
        """Number of channels, or of groups along the axis; None per tensor."""
        if not isinstance(self.scale, np.ndarray):
            return None
        return self.scale.shape[self.axis or 0] if self.block else len(self.scale)

    def quantize(self, x: ArrayLike) -> Array:
        """Return saturate(rne(x / scale) + zero_point), as ONNX's QuantizeLinear does.

        Computed in float64, rounding ties to even.

        Parameters
        ----------
        x : array_like of float
            Real values; infinities saturate.

        Returns
        -------
        ndarray
            Codes of `dtype`, shaped like `x`.

        Raises
        ------
        ArgumentError
            A value is NaN.
        ShapeError
            `x` has another number of channels.
        """
        values = numbers("x", x).astype(np.float64)
        if np.isnan(values).any():
            raise ArgumentError(argument="x", got="NaN", wanted="numbers")
        scale, zero_point = self._along(values.shape)
        with np.errstate(over="ignore"):
            rounded = np.rint(values / scale) + zero_point
        limits = dtypes.qmin(self.dtype), dtypes.qmax(self.dtype)
        return np.asarray(np.clip(rounded, *limits)).astype(dtypes.numpy_dtype(self.dtype))

    def dequantize(self, q: ArrayLike) -> Array:
        """Return scale · (q − zero_point) in float64.

        Parameters
        ----------
        q : array_like
            Codes of `dtype`; those of 4 bits also in int8 (s4) or uint8 (u4), as `unpack4` returns
            them.

        Raises
        ------
        DTypeError
            `q` is of another type.
        ArgumentError
            A code that is stored in 8 bits does not fit into 4.
        ShapeError
            `q` has another number of channels.
        """
        values = numbers("q", q, "iuV")
        wide = _HELD.get(self.dtype)
        wanted = f"{self.dtype}, or its codes in {dtypes.numpy_dtype(wide)}" if wide else self.dtype
        name = dtypes.from_numpy(values.dtype, "q", wanted)
        if name not in {self.dtype, wide}:
            raise DTypeError(argument="q", got=name, wanted=wanted)
        if name == wide:
            _refuse_beyond(values, self.dtype)
        scale, zero_point = self._along(values.shape)
        real: Array = scale * (values.astype(np.float64) - zero_point)
        return real

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QParams) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        names = ("scale", "zero_point", "dtype", "axis", *(("block",) if self.block else ()))
        with np.printoptions(threshold=8, edgeitems=2):  # of many channels the ends are told
            return f"QParams({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, or the copy's arrays could be written.
        return QParams, (self.scale, self.zero_point, self.dtype, self.axis, self.block)

    def _key(self) -> tuple[Any, ...]:
        values = (np.asarray(self.scale), np.asarray(self.zero_point))
        dims = values[0].shape
        return self.dtype, self.axis, self.block, dims, *(value.tobytes() for value in values)

    def _along(self, shape: tuple[int, ...]) -> tuple[float | Array, int | Array]:
        """Scale and zero point, shaped to broadcast over an array of `shape`."""
        if self.axis is None:
            return self.scale, self.zero_point
        if self.block:
            return self._in_groups(shape)
        channels = self.channels
        if not -len(shape) <= self.axis < len(shape) or shape[self.axis] != channels:
            wanted = f"{channels} along axis {self.axis}"
            raise ShapeError(argument="x", got=f"shape {shape}", wanted=wanted)
        scale, point = np.asarray(self.scale), np.asarray(self.zero_point)
        return along(scale, self.axis, len(shape)), along(point, self.axis, len(shape))

    def _in_groups(self, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Scales and zero points, each as often as its group has elements."""
        values = (np.asarray(self.scale), np.asarray(self.zero_point))
        dims = list(values[0].shape)
        assert self.axis is not None
        dims[self.axis] *= self.block[0]
        if shape != tuple(dims):
            raise ShapeError(argument="x", got=f"shape {shape}", wanted=f"{tuple(dims)}")
        scale, point = (np.repeat(value, self.block[0], self.axis) for value in values)
        return scale, point


def along(values: Array, axis: int, ndim: int) -> Array:
    """Return values of an axis, shaped to broadcast over arrays of `ndim` dimensions."""
    dims = [1] * ndim
    dims[axis] = -1
    return values.reshape(dims)


def mask_from_axis(
    kind: str, axis: int | None, ndims: int, groups: int = 1, arg: str = "wei"
) -> int:
    """Return the mask for one value per index along `axis`.

    Parameters
    ----------
    kind : str
        Kind of the primitive, for example ``"convolution"``.
    axis : int or None
        Dimension of the tensor as oneDNN orders it; None: one value. In grouped weights
        (G, OC/G, IC/G, spatial), axis 0 means G and OC/G together, the output channels of all.
    ndims : int
        Number of dimensions of the tensor, the group dimension included.
    groups : int
        Number of groups; more than 1 in convolution and deconvolution only.
    arg : str
        ``"src"``, ``"wei"``, ``"dst"`` or ``"src1"``; groups matter in ``"wei"`` only.

    Raises
    ------
    ArgumentError
        No mask expresses the axis.

    Examples
    --------
    >>> mask_from_axis("convolution", 0, 4), mask_from_axis("convolution", 0, 5, groups=2)
    (1, 3)
    >>> mask_from_axis("matmul", -1, 3), mask_from_axis("convolution", 1, 4, arg="dst")
    (4, 2)
    """
    if axis is None:
        return 0
    if not -ndims <= axis < ndims:
        raise ArgumentError(argument="axis", got=str(axis), wanted=f"one of {ndims} dimensions")
    positive = axis % ndims
    if groups > 1 and kind not in ("convolution", "deconvolution"):
        raise ArgumentError(argument="groups", got=str(groups), wanted=f"1 for a {kind}")
    if groups == 1 or arg != "wei":
        return 1 << positive
    if positive != 0:
        raise ArgumentError(argument="axis", got=str(axis), wanted="0 in grouped weights")
    return 0b11


def _scales(value: object, *, are_signed: bool) -> Array:
    scale = numbers("scale", value).astype(np.float64)
    bad = ~(np.isfinite(scale) & ((scale > 0) | (are_signed & (scale < 0))))
    if bad.any():
        got = f"{scale[bad].flat[0]}"
        wanted = "finite values other than 0" if are_signed else "finite positive values"
        raise ArgumentError(argument="scale", got=got, wanted=wanted)
    return scale


def _zero_points(value: object, dtype: str) -> Array:
    zero_point = numbers("zero_point", value, "iuV")
    if zero_point.dtype.kind == "V":  # of 4 bits, or none
        if dtypes.from_numpy(zero_point.dtype, "zero_point") not in _HELD:
            raise DTypeError("zero_point", str(zero_point.dtype), "integers")
        zero_point = zero_point.astype(np.int64)
    lo, hi = dtypes.qmin(dtype), dtypes.qmax(dtype)
    bad = (zero_point < lo) | (zero_point > hi)
    if bad.any():
        got = f"{zero_point[bad].flat[0]}"
        wanted = f"values from {lo} to {hi}, the range of {dtype}"
        raise ArgumentError(argument="zero_point", got=got, wanted=wanted)
    return zero_point.astype(np.int64)


def _refuse_beyond(codes: Array, dtype: str) -> None:
    lo, hi = dtypes.qmin(dtype), dtypes.qmax(dtype)
    beyond = codes[(codes < lo) | (codes > hi)]
    if beyond.size:
        wanted = f"codes from {lo} to {hi}, the range of {dtype}"
        raise ArgumentError("q", f"{beyond.flat[0]}", wanted)


def _frozen(values: Array, shape: tuple[int, ...]) -> Array:
    copy: Array = np.broadcast_to(values, shape).copy()
    copy.flags.writeable = False
    return copy
