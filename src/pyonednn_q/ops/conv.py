"""Convolution and deconvolution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyonednn_q.argument import named, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ShapeError
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.ops.float_layer import quantized_layer
from pyonednn_q.ops.operator import Operator
from pyonednn_q.ops.options import ConvOptions, FloatConvOptions, filled, takes
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem
from pyonednn_q.primitive.window import Window, kept, padding_sides, per_dim

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Dims = tuple[int, ...]


class _Windowed(Operator):
    """Common part of convolution and deconvolution: weights (OC, IC / groups, spatial), window."""

    _problem_of: type[ConvProblem | DeconvProblem]

    @takes(ConvOptions)
    def __init__(self, /, wei: object, bias: object = None, **options: Unpack[ConvOptions]) -> None:
        values = filled(type(self).__name__, ConvOptions, options)
        self.groups = whole("groups", values.pop("groups"), lo=1)
        names = ("stride", "padding", "dilation")
        self.window = {name: kept(name, values.pop(name)) for name in names}
        wei_array = as_array("wei", wei)
        self._check_wei_dims(wei_array)
        spatial = wei_array.ndim - 2
        for name in ("stride", "dilation"):
            per_dim(name, self.window[name], spatial)
        padding_sides(self.window["padding"], spatial)
        super().__init__(wei_array, bias, values)

    @classmethod
    @takes(FloatConvOptions)
    def from_float(
        cls, /, wei: object, bias: object = None, **options: Unpack[FloatConvOptions]
    ) -> Self:
        """Quantize a float layer. It is called on float sources, or on codes of them.

        Parameters
        ----------
        wei : tensor of floats
            Real weights in the dims that the class takes. They become s8 codes, one scale an output
            channel.
        bias : tensor of floats, optional
            Real values.
        src_q : QParams, (lo, hi), FakeQuantize or Dynamic
            Scale and zero point of the source: given as `QParams`, by the range of its values, by a
            FakeQuantize of up to 256 levels (0 need not be one of them), or found by each call
            (`Dynamic`). Required.
        src_dtype : {"u8", "s8"}
            Data type of the source's codes, for a range or a FakeQuantize.
        dst_q : QParams, (lo, hi) or FakeQuantize, optional
            Scale and zero point of the result. A FakeQuantize may have any levels and a range for
            every channel.
        dst : data type, optional
            Data type of the result: f32 without `dst_q`, u8 with a range or a FakeQuantize.
        wei_fq : FakeQuantize, optional
            FakeQuantize of the weights, for the tensor or each output channel. By default, each
            channel's largest magnitude.
        wei_levels : int
            Number of levels of that default: 255; or 129, codes within ±64, which CPUs without VNNI
            multiply exactly.
        **options
            Options of the class: `post` follows the bias.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the argument, what came and what would do.

        Examples
        --------
        >>> wei = np.full((1, 2, 1, 1), 0.5, np.float32)
        >>> layer = Conv.from_float(wei, src_q=(0.0, 2.55), wei_levels=129)
        >>> layer(np.ones((1, 2, 1, 1), np.float32)).round(6).item()
        1.0
        """
        values = filled(f"{cls.__name__}.from_float", FloatConvOptions, options)
        dst_axis = 1 - as_array("wei", wei).ndim
        codes, real_bias, values = quantized_layer(wei, bias, cls.axis, values, dst_axis)
        return cls(codes, real_bias, **values)

    def alike(self, wei: Array, bias: Array | None, groups: int, options: dict[str, Any]) -> Self:
        """Return an operator of the same kind and window for other weights and options."""
        known = named("options", options, object)
        return type(self)(wei, bias, **{**known, **self.window, "groups": groups})

    def _check_wei_dims(self, wei: Array) -> None:
        if not 3 <= wei.ndim <= 5:
            wanted = "(OC, IC / groups, 1 to 3 spatial dimensions)"
            raise ShapeError("wei", str(wei.shape), wanted)
        if wei.shape[0] % self.groups:
            wanted = f"a multiple of {self.groups} groups"
            raise ShapeError("wei", f"{wei.shape[0]} output channels", wanted)

    @property
    def _some_dims(self) -> Dims:
        _, ic, *kernel = self.weights.values.shape
        lo, hi = padding_sides(self.window["padding"], len(kernel))
        gaps = per_dim("dilation", self.window["dilation"], len(kernel))
        window = Window(tuple(kernel), (1,) * len(kernel), gaps, lo, hi)
        # Further than the window reaches, so that a deconvolution leaves something within padding.
        return (1, ic * self.groups, *map(sum, zip(window.reach, lo, hi, strict=True)))

    def _problem(self, src_dims: Dims, src_dtype: str) -> ConvProblem | DeconvProblem:
        dims = self.weights.values.shape
        if len(src_dims) != len(dims):
            raise ShapeError("src", str(src_dims), f"{len(dims)} dimensions, as wei has")
        return self._problem_of.of(
            src_dims,
            dims,
            src=src_dtype,
            wei=self.weights.dtype,
            dst=self.settings.dst,
            bias=None if self.bias is None else "f32",
            groups=self.groups,
            **self.window,
        )


class Conv(_Windowed):
    """A convolution made ready: dst = store(post(src_scale · wei_scale · acc + bias)).

    Parameters
    ----------
    wei : (OC, IC / groups, spatial) array
        s8 or u8 codes with `wei_q`; f32, bf16 or f16 without (f16 where the CPU has AVX512_FP16
        or AVX-NE-CONVERT).
    bias : (OC,) array, optional
        Floats (f32, float64, f16, bf16): real values, as oneDNN v3 adds them in f32. s32: units of
        the accumulator, worth src_scale · wei_scale each, as ONNX and TFLite have them.
    src_q, wei_q : QParams, optional
        Scale and zero point of integer tensors; both or neither. `wei_q` per tensor, or along axis
        0. With `src_q`, f32 sources are taken, too, and quantized so; with a `Dynamic` in its
        place, by a range that each call finds.
    dst_q : QParams, optional
        Scale and zero point of an integer result, per tensor.
    dst : data type, optional
        Data type of a result without `dst_q`: ``"u8"``, ``"uint8"`` or ``np.uint8``; f32 by
        default.
    stride, dilation : int or sequence of int
        A dilation of 1 is dense.
    padding : int or sequence
        Places for all sides, for each dimension, or (lo, hi) for each; or the low sides of all
        dimensions and then the high ones, as ONNX's pads. Padded places hold real 0.
    groups : int
        Number of groups of channels.
    post : Chain, optional
        Steps behind the sums: FakeQuantize, activations, Sum, operands.
    policy : {"real", "bitwise", "fast"}
        Values that a rewrite of the chain must keep: every value in real arithmetic, every bit of
        f32, or every code but a few that lie beside a tie.
    exact_rounding : bool
        Round before the zero point of the result is added, as ONNX's QLinear operators do.
    layout : {"preserve", "channels_last", "dense"}
        Layout of results in memory: that of the source, or always the same.
    strict : bool
        Refuse a chain that needs more than one primitive.
    allow_reference : bool
        Accept a reference loop, about a thousand times slower, where nothing else takes the
        problem.
    saturation : {"refuse", "allow"}
        Treatment of weights that can overflow 16 bits on a CPU without VNNI; with `requantize`,
        which has none of these, of sums that may exceed 32 bits: allowed, they saturate.
    zero_point : {"auto", "attribute", "bias", "map"}
        Carrier of the source's zero point. Auto is oneDNN's attribute; where that is known to be
        computed wrong or has no fast kernel, the bias, or a map that is added to the sums.
    requantize : str, optional
        A dialect of docs/reference/dialects.md, such as ``"tflite_2step"``, that makes the codes
        of `dst_q` from exact s32 sums; `post` may be one Clip then, and `dst_q` have a scale for
        each channel. None: oneDNN.
    self_check : {"auto"} or bool
        Auto: run each new primitive once on seeded codes, compare a sample of its result with exact
        sums, and pass over an implementation that is wrong. True: run whatever is made ready for a
        new shape on seeded data, and compare all of it with what the arguments mean, in float64.
        False: neither.
    tune : bool
        Time the ways to compute a new shape, and keep the fastest if it surely is.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument, what came and what would do.

    Examples
    --------
    >>> from pyonednn_q.qparams import QParams
    >>> src_q, wei_q = QParams(0.5, 0, "u8"), QParams(0.25, 0, "s8")
    >>> layer = Conv(np.ones((16, 8, 3, 3), np.int8), src_q=src_q, wei_q=wei_q, padding=1)
    >>> dst = layer(np.full((1, 8, 4, 4), 2, np.uint8))
    >>> dst.shape, dst.dtype, float(dst[0, 0, 1, 1]), float(dst[0, 0, 0, 0])
    ((1, 16, 4, 4), dtype('float32'), 18.0, 8.0)

    With codes as the result, after an activation:

    >>> from pyonednn_q.expr.steps import Chain
    >>> from pyonednn_q.expr.steps import Eltwise
    >>> relu = Chain(Eltwise("relu"))
    >>> layer = Conv(
    ...     np.ones((16, 8, 3, 3), np.int8),
    ...     np.full(16, -8.0),
    ...     src_q=src_q,
    ...     wei_q=wei_q,
    ...     dst_q=QParams(0.1, 0, "u8"),
    ...     post=relu,
    ... )
    >>> int(layer(np.full((1, 8, 3, 3), 2, np.uint8))[0, 0, 0, 0])
    100
    """

    kind = "convolution"
    _problem_of = ConvProblem


class Deconv(_Windowed):
    """A deconvolution made ready: dst = store(post(src_scale · wei_scale · acc + bias)).

    Parameters
    ----------
    wei : (OC, IC / groups, spatial) array
        Integer codes in oneDNN's order of dims; other frameworks swap the first two.
    bias, **options
        Arguments of `Conv`.
    """

    kind = "deconvolution"
    _problem_of = DeconvProblem
