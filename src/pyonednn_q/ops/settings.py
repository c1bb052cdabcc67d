"""Settings: what an operator computes, apart from its weights; a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.pairs import exact_range
from pyonednn_q.argument import instance, one_of
from pyonednn_q.compose.zero_point import CARRIERS
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.expr.steps import Binary, Chain, Clip, Leaf
from pyonednn_q.native import runtime
from pyonednn_q.native.first_run import SelfCheck, checked_self_check
from pyonednn_q.ops.arrays import check_name
from pyonednn_q.ops.staged import SourceLevels
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from pyonednn_q.requantize import dialect
from pyonednn_q.requantize.catalogue import DialectName
from pyonednn_q.requantize.rounding import round_real
from pyonednn_q.rewrite.rule import Policy
from pyonednn_q.shown import shown

__all__ = ["DialectName", "Layout", "Saturation", "SelfCheck", "Settings", "ZeroPointCarrier"]

Layout: TypeAlias = Literal["preserve", "channels_last", "dense"]
Saturation: TypeAlias = Literal["refuse", "allow"]
ZeroPointCarrier: TypeAlias = Literal["auto", "attribute", "bias", "map"]

_STORED = ("f32", "s32", "s8", "u8", "bf16", "f16")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of an operator: how its source is read, which steps follow, how it stores.

    What each field means is said by `Conv`, whose options they are, checked.

    Attributes
    ----------
    src_q : QParams, SourceLevels, Dynamic or None
        Scale and zero point of an integer source, per tensor; or how each call quantizes its float
        source. None: the source is floating, as the weights are.
    dst : str
        Data type of the result.
    zero_point : {"auto", "attribute", "bias", "map"}
        Carrier of the source's zero point; see `pyonednn_q.compose.zero_point`. Auto is the
        attribute; and if oneDNN is known to compute it wrong or has no fast kernel for it, bias or
        map, which round the zero point's share on its own, so not with policy "bitwise".
    dynamic : Dynamic or None
        How each call quantizes its source, if it does.
    has_src_point : bool
        Whether the source has a zero point other than 0.
    """

    src_q: QParams | SourceLevels | Dynamic | None
    dst_q: QParams | None
    dst: str
    post: Chain = Chain()  # noqa: RUF009 - a Chain is frozen
    policy: Policy = "real"
    exact_rounding: bool = False
    layout: Layout = "preserve"
    strict: bool = False
    allow_reference: bool = False
    saturation: Saturation = "refuse"
    zero_point: ZeroPointCarrier = "auto"
    requantize: DialectName | None = None
    self_check: SelfCheck = "auto"
    tune: bool = False
    dynamic: Dynamic | None = field(init=False, repr=False, compare=False)
    has_src_point: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dst", dtypes.checked(self.dst, "dst", _STORED))
        instance("post", self.post, Chain)
        for step in self.post.steps:
            if isinstance(step, Binary) and isinstance(step.operand, Leaf):
                check_name("post", step.operand.name)
        object.__setattr__(
            self, "layout", one_of("layout", self.layout, ("preserve", "channels_last", "dense"))
        )
        object.__setattr__(
            self, "saturation", one_of("saturation", self.saturation, ("refuse", "allow"))
        )
        object.__setattr__(
            self, "policy", one_of("policy", self.policy, ("bitwise", "real", "fast"))
        )
        for name in ("exact_rounding", "strict", "allow_reference", "tune"):
            instance(name, getattr(self, name), bool)
        object.__setattr__(self, "self_check", checked_self_check(self.self_check))
        object.__setattr__(
            self, "zero_point", one_of("zero_point", self.zero_point, ("auto", *CARRIERS))
        )
        self._check_dynamic()
        for name in ("src_q", "dst_q"):
            params = getattr(self, name)
            is_source = name == "src_q" and isinstance(params, (Dynamic, SourceLevels))
            if params is not None and not is_source:
                instance(name, params, QParams)
                by_channel = name == "dst_q" and self.requantize is not None
                if params.axis is not None and not by_channel:
                    wanted = "one scale for the tensor; per channel it belongs into `post`"
                    raise ArgumentError(name, f"{params.channels} channels", wanted)
        if self.src_q is not None and self.src_q.dtype not in {"u8", "s8"}:
            raise DTypeError("src_q", self.src_q.dtype, "u8 or s8")
        if self.dst_q is not None and self.dst_q.dtype != self.dst:
            raise DTypeError("dst", self.dst, f"{self.dst_q.dtype}, as dst_q says")
        if self.requantize is not None:
            self._check_requantize(self.requantize)
        src_q = self.src_q
        dynamic = src_q if isinstance(src_q, Dynamic) else None
        point = 0 if src_q is None or isinstance(src_q, Dynamic) else src_q.zero_point
        has_point = point != 0 if dynamic is None else not dynamic.is_symmetric
        object.__setattr__(self, "dynamic", dynamic)
        object.__setattr__(self, "has_src_point", has_point)

    def _check_requantize(self, name: str) -> None:
        instance("requantize", name, str)
        # Its own name, not an alias: settings are compared.
        object.__setattr__(self, "requantize", dialect(name, "requantize").name)
        for argument in ("src_q", "dst_q"):
            params = getattr(self, argument)
            if not isinstance(params, QParams):
                wanted = "QParams: requantize makes codes of sums of codes"
                raise ArgumentError(argument, type(params).__name__, wanted)
        object.__setattr__(self, "dst", dtypes.checked(self.dst, "dst_q", ("u8", "s8", "s32")))
        assert self.dst_q is not None
        if np.ptp(self.dst_q.zero_point) > 0:
            wanted = "one zero point for all channels; scales may differ with requantize"
            raise ArgumentError("dst_q", "zero points that differ", wanted)
        if self.exact_rounding:
            wanted = "False: with requantize nothing comes between sums and codes"
            raise ArgumentError("exact_rounding", "True", wanted)
        self.code_bounds()

    def code_bounds(self) -> tuple[int | None, int | None]:
        """Return the least and the greatest code that a fused activation leaves, with requantize.

        z + lo/s and z + hi/s, halves away from zero, as TFLite's kernels and SNPS-Caffe have it.

        Raises
        ------
        ArgumentError
            Anything but one clip of the whole tensor, or one that leaves no code.
        """
        if self.requantize is None or not self.post.steps:
            return None, None
        wanted = "none, or one Clip per tensor: with requantize no more comes behind sums"
        clip = self.post.steps[0]
        assert self.dst_q is not None
        plain = isinstance(clip, Clip) and clip.lo.array is None and clip.hi.array is None
        if len(self.post.steps) > 1 or not plain or np.ndim(self.dst_q.scale):
            raise ArgumentError("post", str(self.post), wanted)
        assert isinstance(clip, Clip)
        point = int(np.max(self.dst_q.zero_point))
        least, greatest = dtypes.qmin(self.dst), dtypes.qmax(self.dst)
        with np.errstate(over="ignore"):
            scale = np.float32(self.dst_q.scale)
            if not (scale > 0 and np.isfinite(scale)):
                wanted = "one that is finite and positive in float32"
                raise ArgumentError("dst_q", f"a scale of {self.dst_q.scale}", wanted)
            ends = np.array([clip.lo.least, clip.hi.least], np.float32) / scale
        lo, hi = np.clip(round_real(ends, "half_away_from_zero") + point, least - 1, greatest + 1)
        if lo > greatest or hi < least:
            raise ArgumentError("post", str(self.post), f"a clip that leaves codes of {self.dst}")
        return max(int(lo), least), min(int(hi), greatest)

    def _check_dynamic(self) -> None:
        is_dynamic = isinstance(self.src_q, Dynamic)
        if is_dynamic and self.tune:
            wanted = "False: the source's scale comes with each call"
            raise ArgumentError("tune", "True with a dynamic source", wanted)
        if is_dynamic and self.exact_rounding:
            wanted = "False: the scale of each call's source cannot be part of one multiplier"
            raise ArgumentError("exact_rounding", "True with a dynamic source", wanted)
        if isinstance(self.src_q, SourceLevels) and not self.src_q.zero_point.is_integer():
            got = f"0 at code {self.src_q.zero_point:g}"
            if self.exact_rounding:
                raise ArgumentError("src_q", got, "a whole one with exact_rounding")
            if self.policy == "bitwise":
                raise ArgumentError("src_q", got, "a whole one with policy='bitwise'")
        if self.exact_rounding and self.zero_point in {"bias", "map"}:
            wanted = "'auto' or 'attribute' with exact_rounding"
            raise ArgumentError("zero_point", shown(self.zero_point), wanted)
        if is_dynamic and self.zero_point == "bias":
            wanted = "'auto', 'attribute' or 'map': a bias cannot follow the zero point of a call"
            raise ArgumentError("zero_point", "'bias' with a dynamic source", wanted)

    @property
    def is_int8(self) -> bool:
        """Whether sums are of integers."""
        return self.src_q is not None

    @staticmethod
    def as_written(error: ArgumentError) -> ArgumentError:
        """Return an error of composing that names what an operator is made with."""
        name = {"chain": "post", "dst_scale": "dst_q"}.get(error.argument, error.argument)
        return type(error)(name, error.got, error.wanted)

    def bare(self, dtype: str) -> dict[str, Any]:
        """Return parameters for plain products of codes of a type with s8 weights, exact in s32."""
        names = ("layout", "allow_reference", "self_check", "tune")
        return {
            "src_q": QParams(1.0, 0, dtype),
            "wei_q": QParams(1.0, 0, "s8"),
            "dst": "s32",
            **{name: getattr(self, name) for name in names},
        }

    def wei_limits(self) -> tuple[int, int]:
        """Return the range of parts of weights: what this CPU multiplies exactly."""
        if self.src_q is None or self.src_q.dtype != "u8":
            return -128, 127
        return exact_range(runtime.isa())

    @property
    def src_wanted(self) -> str:
        """Sources that are accepted, in words."""
        if self.src_q is None:
            return (
                "array.astype('float32'), or the type of the weights: without src_q the source "
                "is floating"
            )
        if isinstance(self.src_q, Dynamic):
            return "float32: array.astype('float32'); each call makes codes of it"
        name = dtypes.numpy_dtype(self.src_q.dtype).name
        codes = f"{name}, as src_q says: array.astype({name!r}) if these are codes"
        return f"{codes}; array.astype('float32') if they are real values"

    def check_src(self, dtype: object) -> str:
        """Return the data type of a source; refuse another than this operator takes.

        Raises
        ------
        DTypeError
            The type is not that of `src_q`; or integers came where there is no `src_q`.
        """
        name = dtypes.checked(dtype, "src", dtypes.FLOATS if self.src_q is None else dtypes.NAMES)
        if self.src_q is not None and name != self.src_q.dtype:
            wanted = f"{self.src_q.dtype}, as src_q says, or f32, which is quantized so"
            raise DTypeError("src", name, wanted)
        return name
