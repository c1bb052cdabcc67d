"""Maxima and means of windows or of all places, for floats or codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyonednn_q.argument import one_of, whole
from pyonednn_q.errors import ArgumentError, DTypeError, ReferenceKernelError, ShapeError
from pyonednn_q.native import prepare, runtime
from pyonednn_q.native.program import Pass
from pyonednn_q.network.operations import CODES, Dequantize, Quantize, check_params
from pyonednn_q.primitive.problem import PoolingProblem, ReorderProblem
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.primitive.window import Window, kept, padding_sides, per_dim
from pyonednn_q.qparams import QParams
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.native import Prepared
    from pyonednn_q.network.lowering import Lowering
    from pyonednn_q.primitive.window import Padding, PerDim

_ALGS = ("max", "avg_include_padding", "avg_exclude_padding")


@dataclass(frozen=True, slots=True)
class Pool:
    """Maximum or mean of every window; codes keep their scale unless `src_q` and `dst_q` are given.

    Parameters
    ----------
    alg : {"max", "avg_include_padding", "avg_exclude_padding"}
        Function of a window.
    kernel : int or sequence of int, optional
        Extent of the window, one per spatial dimension; ``None``: all of the source.
    stride, padding, dilation
        Arguments of `Conv`.
    src_q, dst_q : QParams, optional
        Scales and zero points of source and result, per tensor. A mean over the whole source
        is the exact sum, rounded once; a mean over windows is computed in float32. Needed if pads
        count: a pad is real 0, so its code is the zero point.
    """

    alg: str
    kernel: PerDim | None = None
    stride: PerDim = 1
    padding: Padding = 0
    dilation: PerDim = 1
    src_q: QParams | None = None
    dst_q: QParams | None = None

    def __post_init__(self) -> None:
        one_of("alg", self.alg, _ALGS)
        self._check_codes()
        for name in ("kernel", "stride", "padding", "dilation"):
            value = kept(name, getattr(self, name))
            object.__setattr__(self, name, value)
            if name != "padding" and value is not None:
                per_dim(name, value, len(value) if isinstance(value, tuple) else 1)
        sides = self.padding if isinstance(self.padding, tuple) else (self.padding,)
        for side in sides:
            if not isinstance(side, tuple):
                whole("padding", side, lo=0)

    def _check_codes(self) -> None:
        if (self.src_q is None) != (self.dst_q is None):
            name = "src_q" if self.src_q is None else "dst_q"
            raise ArgumentError(name, "None", "one, as there is one of the other end")
        for name in ("src_q", "dst_q"):
            check_params(name, getattr(self, name))
        if self.src_q is not None and self.alg == "max":
            raise ArgumentError("src_q", "one", "None: the largest code has the source's scale")

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add its primitive, or our pass for the mean of codes over all places."""
        (name,) = src
        spec = at.specs[name]
        if self.src_q is not None and spec.dtype != self.src_q.dtype:
            raise DTypeError("src", spec.dtype, f"{self.src_q.dtype}, as src_q says")
        if self.counts_pads and self.src_q is None and spec.dtype in CODES:
            raise ArgumentError("src_q", "None", "what codes mean: pads that count are 0, no code")
        if self._is_mean_of_all and spec.dtype in CODES and spec.ndim > 2:
            same = QParams(1.0, 0, spec.dtype)
            src_q, dst_q = self.src_q or same, self.dst_q or same
            name = at.in_layout(name, TensorSpec.channels_last(spec.dims, spec.dtype))
            mean = TensorSpec.channels_last((*spec.dims[:2], *(1,) * (spec.ndim - 2)), dst_q.dtype)
            at.add(Pass.mean(spec.dims, src_q, dst_q), (name,), dst, mean)
        elif self.src_q is not None and self.dst_q is not None and not self._keeps_codes:
            reals, means = at.fresh(dst), at.fresh(dst)
            Dequantize(self.src_q).lower(at, reals, src)
            replace(self, src_q=None, dst_q=None).lower(at, means, (reals,))
            Quantize(self.dst_q).lower(at, dst, (means,))
        else:
            self._lower(at, dst, name)

    @property
    def counts_pads(self) -> bool:
        """Whether pads are part of a mean."""
        sides = self.padding if isinstance(self.padding, tuple) else (self.padding,)
        return self.alg == "avg_include_padding" and any(side not in {0, (0, 0)} for side in sides)

    @property
    def _keeps_codes(self) -> bool:
        """Whether a mean of codes is the code of the mean, with pads of code 0."""
        is_zero = self.src_q is not None and self.src_q.zero_point == 0
        return self.src_q == self.dst_q and (is_zero or not self.counts_pads)

    @property
    def _is_mean_of_all(self) -> bool:
        is_whole = self.kernel is None and self.padding == 0 and self.dilation == 1
        return is_whole and self.alg != "max"

    def _lower(self, at: Lowering, dst: str, name: str) -> None:
        spec = at.specs[name]
        count = spec.ndim - 2
        lengths = spec.dims[2:]
        kernel = lengths if self.kernel is None else per_dim("kernel", self.kernel, count)
        stride = per_dim("stride", self.stride, count)
        # Of one tap it says nothing, and some are refused.
        dilation = tuple(
            each if taps > 1 else 1
            for each, taps in zip(per_dim("dilation", self.dilation, count), kernel, strict=True)
        )
        window = Window(kernel, stride, dilation, *padding_sides(self.padding, count))
        if self.alg != "avg_include_padding" and window.misses(lengths):
            wanted = "an element of the source in every window: of padding alone nothing is made"
            raise ShapeError("padding", shown(self.padding), wanted)
        if self.alg == "avg_exclude_padding" and window.exceeds():
            raise ShapeError(
                "padding", shown(self.padding), f"less than {window.reach}, for oneDNN"
            )
        dims = (*spec.dims[:2], *window.gathered(lengths))
        sides = (window.padding_lo, window.padding_hi)
        if self.alg == "max" and 1 <= count <= 3 and _is_ours(spec.dtype, dilation):
            if min(dims[2:]) < 1:
                raise ShapeError("kernel", shown(kernel), f"at most what {spec.dims} has room for")
            name = at.in_layout(name, TensorSpec.channels_last(spec.dims, spec.dtype))
            run = Pass.largest(spec.dtype, spec.dims, dims, window)
            at.add(run, (name,), dst, TensorSpec.channels_last(dims, spec.dtype))
            return

        def prepared(dtype: str) -> Prepared:
            read = TensorSpec.channels_last(spec.dims, dtype)
            stored = TensorSpec.channels_last(dims, dtype)
            problem = PoolingProblem(read, stored, self.alg, kernel, stride, dilation, *sides)
            return prepare(problem)

        try:
            pool, stored = prepared(spec.dtype), spec.dtype
        except ReferenceKernelError:  # of codes: AVX2 has no kernel for their mean
            pool, stored = prepared("f32"), "f32"
        name = at.in_layout(name, pool.layout("src"))
        if stored == spec.dtype:
            at.add(pool, (name,), dst, pool.layout("dst"))
            return
        mean = at.fresh(dst)
        at.add(pool, (at.copied(name, pool.layout("src")),), mean, pool.layout("dst"))
        codes = TensorSpec.channels_last(dims, spec.dtype)
        at.add(prepare(ReorderProblem(pool.layout("dst"), codes)), (mean,), dst, codes)


def _is_ours(dtype: str, dilation: tuple[int, ...]) -> bool:
    """Tell whether our pass takes the largest of windows.

    The library's own loop over dilated windows is its reference; over codes it takes 1.1 to 9 times
    as long as ours, which has one thread where threads are not OpenMP's.
    """
    if max(dilation) > 1:
        return dtype in {"f32", *CODES}
    return dtype in CODES and runtime.threading_runtime() in {"OMP", "SEQ"}
