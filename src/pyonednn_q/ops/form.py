"""Form: another problem and chain for the same numbers.

Where the layout is not that of the arrays, or channels are added, the library copies source and
result in each call; that is timed with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.acc.pairing import is_int8
from pyonednn_q.dtypes import Array
from pyonednn_q.expr.steps import Binary, Chain, Leaf, Sum
from pyonednn_q.ops.weights import merged
from pyonednn_q.primitive.convolution import ConvProblem, DeconvProblem
from pyonednn_q.primitive.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.primitive.windowed import laid_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyonednn_q.primitive.dense_facts import DenseProblem

AS_ASKED = "as asked"
WHY_IMAGE = "without VNNI a matmul runs on gemm, and a 1x1 convolution up to seven times as fast"
RESIDUAL_LEAF = "what_the_sum_reads"
_IMAGE, _INNER = "1x1 convolution", "inner product"
_MOST_COLUMNS = 1 << 20  # of an image: composing looks at each
_MOST_MERGED = 32  # groups
_WINDOWED = (ConvProblem, DeconvProblem)
_FEW_CHANNELS = (4, 8, 16)  # what kernels load at once, from the narrowest


@dataclass(frozen=True, slots=True)
class Form:
    """A problem and a chain that mean the same as another problem and chain.

    Attributes
    ----------
    asked, problem : problems
        Problem as asked for, and problem that it becomes.
    chain : Chain
        Steps behind the sums.
    name : str
        Name of the form; by default, of the one that changes nothing.
    has_leaf : bool
        Whether what a Sum reads is an operand.
    arrays : mapping of str to TensorSpec
        Layouts of arrays of calls, where the problem's tensors lie otherwise; as in `prepare`.
    """

    asked: DenseProblem
    problem: DenseProblem
    chain: Chain
    name: str = AS_ASKED
    has_leaf: bool = False
    arrays: Mapping[str, TensorSpec] = field(default_factory=dict, hash=False)

    @property
    def is_product(self) -> bool:
        """Whether tensors are seen as matrices, or matrices as images."""
        return self.problem.kind != self.asked.kind or self.problem.src.ndim != self.asked.src.ndim

    @property
    def is_image(self) -> bool:
        """Whether matrices are seen as images of one line."""
        return self.name == _IMAGE

    @property
    def takes_zero_points(self) -> bool:
        """Whether zero points come to it as they come to what was asked."""
        return self.name != _INNER

    def wei(self, wei: Array) -> Array:
        """Return the weights of what was asked, as this form has them."""
        if self.is_product:
            # What rows of channels-last sources are multiplied by: channels last, too.
            last = wei if self.asked.row_axis is not None else np.moveaxis(wei, 1, -1)
            rows = self.asked.channel_rows(last)
            return self.problem.from_channel_rows(rows)
        asked, problem = self.asked, self.problem
        if isinstance(asked, _WINDOWED) and isinstance(problem, _WINDOWED):
            count = asked.groups // problem.groups
            if count > 1:
                flat = wei.reshape(asked.oc, *asked.wei.dims[2:])
                return merged(flat, asked.groups, count).reshape(problem.wei.dims)
        more = [(0, to - have) for to, have in zip(self.problem.wei.dims, wei.shape, strict=True)]
        return np.pad(wei, more) if self.problem.wei.dims != self.asked.wei.dims else wei

    def inward(self, array: Array) -> Array:
        """Return a source, or a tensor of dst's dims, as this form has it."""
        if not self.is_product:
            return array
        rows = np.moveaxis(array, self.asked.channel_axis, -1)
        if self.is_image:
            columns: Array = rows.reshape(self.problem.src.dims[-1], -1).T
            return np.expand_dims(columns, _lines(self.problem.src.ndim))
        return rows.reshape(self.problem.src.dims[0], -1)

    def operand(self, value: object) -> object:
        """Return the value of a leaf as this form has it; what is no tensor of dst's dims stays."""
        if isinstance(value, np.ndarray) and value.shape == self.asked.dst.dims:
            return self.inward(value)
        return value

    def stored(self, run: Callable[[Array | None], Array], out: Array | None) -> Array:
        """Return the result of f(out), where arrays have this form, in the dims that were asked.

        Parameters
        ----------
        run : callable
            Returns a new array for ``None``, else writes into the array and returns it.
        out : ndarray or None
            Array of the dims that were asked, which is written and returned.
        """
        target = None if out is None else self.inward(out)
        is_view = target is not None and out is not None and np.may_share_memory(target, out)
        dst = self.outward(run(target if is_view else None))
        if out is None:
            return dst
        if not is_view:
            np.copyto(out, dst)
        return out

    def outward(self, dst: Array) -> Array:
        """Return a result in the dims that were asked for, without a copy."""
        if self.is_image:
            rows: Array = np.squeeze(dst, _lines(dst.ndim)).T
            return rows.reshape(self.asked.dst.dims)
        if not self.is_product or dst.shape == self.asked.dst.dims:
            return dst
        dims, axis = list(self.asked.dst.dims), self.asked.channel_axis
        channels = dims.pop(axis)
        return np.moveaxis(dst.reshape(*dims, channels), -1, axis)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the caller."""
        return () if self.name == AS_ASKED else (f"asked as {self.name}, which is the same",)

    def seen(self, dst: TensorSpec) -> dict[str, TensorSpec]:
        """Return source and result of what was asked, over the memory of this form's tensors.

        Empty where tensors have the dims that were asked.

        Parameters
        ----------
        dst : TensorSpec
            Tensor that the primitive stores.
        """
        if not self.is_product:
            return {}
        asked = self.asked
        make = TensorSpec.channels_last if asked.row_axis is None else TensorSpec.dense
        tensors = {"src": asked.src, "dst": dst}
        dims = {"src": asked.src.dims, "dst": asked.dst.dims}
        return {name: make(dims[name], spec.dtype) for name, spec in tensors.items()}


# --- forms of what was asked: f(as asked, layout of arrays), rows of `ways` ----------------------


def as_matmul(asked: Form, _layout: str) -> Iterator[Form]:
    """Ask for the matmul of matrices over the same memory.

    There is one for a 1x1 convolution of channels-last arrays, an inner product, and a matmul of
    more dimensions.
    """
    problem, product = asked.problem, _product(asked)
    if product is not None and (problem.row_axis is None or problem.src.ndim > 2):
        rows, inner, oc = product
        matmul = MatMulProblem.of((rows, inner), (inner, oc), **problem.types)
        yield replace(asked, name="matmul", problem=matmul)


def as_inner_product(asked: Form, _layout: str) -> Iterator[Form]:
    """Ask for a matmul whose batch shares its weights as an inner product; without zero points."""
    product = _product(asked)
    if product is not None and asked.problem.row_axis is not None:
        rows, inner, oc = product
        problem = InnerProductProblem.of((rows, inner), oc, **asked.problem.types)
        yield replace(asked, name=_INNER, problem=problem)


def as_image(asked: Form, _layout: str) -> Iterator[Form]:
    """Ask for the 1x1 convolution of one image whose columns are the rows of the matrix."""
    problem, product = asked.problem, _product(asked)
    if product is None or problem.window is not None or product[0] > _MOST_COLUMNS:
        return
    rows, inner, oc = product
    # Of another rank than what was asked: no dims of the one are dims of the other.
    flat = (1,) * (1 if problem.src.ndim == 4 else 2)
    dims = (1, inner, *flat[1:], rows), (oc, inner, *flat)
    yield replace(asked, name=_IMAGE, problem=ConvProblem.of(*dims, **problem.types))


def faster_image(asked: Form, layout: str) -> Iterator[Form]:
    """Give the image where that may be faster: generated code need not take it."""
    problem = asked.problem
    is_spatial = problem.src.ndim > problem.dst.ndim  # a row-major image would be copied by NumPy
    if is_int8(problem) and problem.macs and not is_spatial:
        yield from (form for form in as_image(asked, layout) if form.problem.src.dims[1] > 1)


def with_binary_add(asked: Form, layout: str) -> Iterator[Form]:
    """Ask for an operand in place of a Sum of scale 1: what it reads stays without a copy."""
    added = _with_leaf(asked.chain, asked.problem.dst.dtype)
    if added is not None:
        yield replace(asked, name="binary add", chain=added, has_leaf=True)
        for form in as_matmul(asked, layout):
            yield replace(form, name="matmul with binary add", chain=added, has_leaf=True)


def other_layouts(asked: Form, layout: str) -> Iterator[Form]:
    """Ask for source and result row-major, and as the library likes them: perhaps in blocks."""
    problem = asked.problem
    if isinstance(problem, _WINDOWED):
        lying, dense = _lying(problem, layout), _lying(problem, "dense")
        rows = replace(problem, src=dense["src"], dst=dense["dst"])
        yield replace(asked, name="row-major", problem=rows, arrays=lying)
        free = replace(problem, src=_free(problem.src), dst=_free(problem.dst))
        yield replace(asked, name="any layout", problem=free, arrays=lying)
    elif isinstance(problem, InnerProductProblem) and problem.src.ndim > 2:
        free_src = replace(problem, src=_free(problem.src))
        arrays = {"src": _lying(problem, layout)["src"]}
        yield replace(asked, name="any layout", problem=free_src, arrays=arrays)


def more_channels(asked: Form, layout: str) -> Iterator[Form]:
    """Ask for more input channels, with weights of 0, where a convolution has few."""
    problem = asked.problem
    if not isinstance(problem, ConvProblem) or problem.has_groups:
        return
    lying = _lying(problem, layout)
    for channels in _FEW_CHANNELS:
        if channels <= problem.ic:
            continue
        batch, _, *lengths = problem.src.dims
        src = TensorSpec.channels_last((batch, channels, *lengths), problem.src.dtype)
        oc, _, *kernel = problem.wei.dims
        wei = replace(problem.wei, dims=(oc, channels, *kernel))
        wider = replace(problem, src=src, wei=wei)
        name = f"{channels} input channels"
        yield replace(asked, name=name, problem=wider, arrays=lying)


def fewer_groups(asked: Form, _layout: str) -> Iterator[Form]:
    """Ask for fewer groups, from the most of them, of a convolution with groups.

    Each multiplies by zeros, as many times more as groups are merged; reference loops are slower
    than the last. Not of floats: 0 times infinity is no 0.
    """
    problem = asked.problem
    if not isinstance(problem, _WINDOWED) or not problem.has_groups or not is_int8(problem):
        return
    groups, dims = problem.groups, problem.wei.dims[1:]
    for count in range(2, min(groups, _MOST_MERGED) + 1):
        if not groups % count:
            lead = (groups // count,) if count < groups else ()
            wider = (*lead, count * dims[0], count * dims[1], *dims[2:])
            fewer = replace(problem, wei=replace(problem.wei, dims=wider))
            left = groups // count
            name = f"{left} group{'s' * (left > 1)} instead of {groups}"
            yield replace(asked, name=name, problem=fewer)


def _lying(problem: DenseProblem, layout: str) -> dict[str, TensorSpec]:
    """Return source and result as arrays of calls have them: row-major if "dense", or last."""
    arrays = "dense" if layout == "dense" else "channels_last"
    tensors = {"src": problem.src, "dst": problem.dst}
    return {name: laid_out(spec.dims, spec.dtype, arrays) for name, spec in tensors.items()}


def _free(spec: TensorSpec) -> TensorSpec:
    return TensorSpec(spec.dims, spec.dtype)


def _product(asked: Form) -> tuple[int, int, int] | None:
    """Return rows, inner dimension and columns, unless a leaf has a value for each row.

    That is no row of another form.
    """
    operands = (step.operand for step in asked.chain if isinstance(step, Binary))
    is_by_row = any(isinstance(leaf, Leaf) and leaf.extent == "per_row" for leaf in operands)
    return None if is_by_row else asked.problem.product


def _lines(ndim: int) -> tuple[int, ...]:
    """Return the axes of an image that are 1: all but channels and columns."""
    return (0, *range(2, ndim - 1))


def _with_leaf(chain: Chain, dst: str) -> Chain | None:
    sums = [step for step in chain if isinstance(step, Sum)]
    if len(sums) != 1 or (sums[0].scale, sums[0].zero_point) != (1.0, 0):
        return None
    added = Binary("add", Leaf(RESIDUAL_LEAF, sums[0].dtype or dst))
    return Chain(*(added if isinstance(step, Sum) else step for step in chain))
