"""Definition: what an operator computes, whatever runs it."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.ops.grouped_weights import weights_in_groups
from pyonednn_q.ops.source import Codes, as_unsigned, dynamic_codes, static_codes
from pyonednn_q.ops.verification import Asked
from pyonednn_q.ops.weights import Weights, checked_bias
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

    from pyonednn_q.check.places import Kind
    from pyonednn_q.ops.asking import Ready
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.settings import Settings
    from pyonednn_q.primitive.dense_facts import DenseProblem

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


class Definition:
    """Weights, bias and settings, and the problem that they make with a source.

    Attributes
    ----------
    settings : Settings
        What it computes.
    weights : Weights
        As oneDNN takes them.
    bias : ndarray or None
        One value per output channel: real values if floating, else in units of the accumulator.
    asked : Asked or None
        What the caller wrote, for `self_check`.
    """

    axis: ClassVar[int] = 0  # of the output channels, in the caller's weights
    groups = 1
    kind: ClassVar[Kind]
    window: Mapping[str, Any] = MappingProxyType({})
    _takes_wei_point: ClassVar[bool] = False

    def __init__(self, wei: Array, bias: object, wei_q: QParams | None, settings: Settings) -> None:
        self._check_wei_dims(wei)
        if not wei.size:
            raise ShapeError("wei", str(wei.shape), "no empty dimension")
        channels = settings.post.channels
        if channels not in {None, wei.shape[self.axis]}:
            wanted = f"{wei.shape[self.axis]}, or constants of the whole tensor"
            raise ShapeError("post", f"constants of {channels} channels", wanted)
        self.settings = settings
        groups = self.groups
        self.asked = None
        if isinstance(wei_q, QParams) and wei_q.block:
            self.weights = weights_in_groups(wei, wei_q, self.kind, self.axis, settings)
            self.bias = None if bias is None else checked_bias(bias, wei.shape[self.axis])
            self._check_real_bias()
            return
        self.weights = Weights.of(
            wei,
            wei_q,
            self.axis,
            is_int8=settings.is_int8,
            takes_zero_point=self._takes_wei_point,
            groups=groups,
            limits=settings.wei_limits,
        )
        if self.weights.parts is not None:
            self.groups = self.weights.parts.groups
        self.bias = None if bias is None else checked_bias(bias, wei.shape[self.axis])
        if settings.dynamic is not None:
            if settings.dynamic.extent == "per_group":
                wanted = "'per_row'; or wei_q with a block, the size of a group"
                raise ArgumentError("src_q", "a range per group", wanted)
            self._check_dynamic(settings.dynamic)
        if settings.self_check is True:
            window = {**self.window, "groups": groups} if self.window else {}
            self.asked = Asked(self.kind, wei.copy(), self.bias, wei_q, settings, window)

    def alike(self, wei: Array, bias: Array | None, groups: int, options: dict[str, Any]) -> Self:
        """Return an operator of the same kind and window for other weights and options."""
        raise NotImplementedError

    def _check_wei_dims(self, wei: Array) -> None:
        raise NotImplementedError

    def _problem(self, src_dims: Dims, src_dtype: str) -> DenseProblem:
        raise NotImplementedError

    @property
    def _some_dims(self) -> Dims:
        """Dims of a source that has a result, with channels as the weights have them."""
        raise NotImplementedError

    def _wei_of(self, problem: DenseProblem) -> Array:
        """Return the weights in the problem's dims."""
        return self.weights.values.reshape(problem.wei.dims)

    def _check_dynamic(self, dynamic: Dynamic) -> None:
        if dynamic.extent == "per_row":
            wanted = "one per tensor; only products have rows"
            raise ArgumentError("src_q", "a range per row", wanted)
        self._check_real_bias()

    def _check_real_bias(self) -> None:
        if self.bias is not None and self.bias.dtype.kind in "iu":
            raise DTypeError("bias", "s32", "f32: units of the sums change with sources or groups")

    def _settings_for(self, _src_dims: Dims) -> Settings:
        """Return what a source of a shape asks for, where that is simpler than what any does."""
        return self.settings

    def _rows(self, src_dims: Dims) -> int:
        """Return how many rows a source has."""
        raise NotImplementedError

    def _dst_dims(self, _src_dims: Dims, planned: Planned) -> Dims:
        """Return the caller's dims of a result."""
        return planned.dst.dims

    def _src_dtype(self, src: Array) -> str:
        """Return the type of what the primitive takes for a source."""
        try:
            dtype = dtypes.from_numpy(src.dtype, "src")
        except DTypeError:  # again, with what would do here
            dtype = dtypes.from_numpy(src.dtype, "src", self.settings.src_wanted)
        if self.settings.src_q is not None and dtype == "f32":
            return self.settings.src_q.dtype
        if self.settings.dynamic is not None:
            raise DTypeError("src", dtype, "f32: each call makes codes of it")
        return dtype

    def _codes(self, src: Array, ready: Ready | None) -> Codes:
        """Return a source as the primitive takes it: float values as codes, if it takes those."""
        params = self.settings.src_q
        if isinstance(params, Dynamic):
            rows = None if params.extent == "per_tensor" else self._rows(src.shape)
            codes = dynamic_codes(src, params, rows)
        elif params is None or src.dtype != np.float32:
            codes = Codes(src)
        else:
            codes = static_codes(src, params, ready)
        return codes.unsigned() if ready is not None and ready.is_unsigned else codes

    def _stays(self, src: Array, planned: Planned) -> bool:
        """Tell whether a new result may lie in memory as the primitive stores it."""
        layout, dst = self.settings.layout, planned.dst
        if layout == "channels_last" or (layout == "preserve" and not src.flags.c_contiguous):
            return True
        return dst.ndim < 3 or dst.strides == TensorSpec.dense(dst.dims, dst.dtype).strides

    def _unsigned(self) -> Self:
        """Return the same for u8 codes, 128 more than those of the s8 source."""
        settings = self.settings
        assert settings.src_q is not None
        # How to carry a zero point was asked of the caller's own: where there is none, 128 goes
        # where it costs no rounding.
        carrier = settings.zero_point if settings.has_src_point else "auto"
        src_q = as_unsigned(settings.src_q)
        unsigned = copy(self)
        unsigned.settings = replace(settings, src_q=src_q, zero_point=carrier)
        return unsigned
