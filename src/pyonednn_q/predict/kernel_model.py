"""Every output bit of a kernel: its sums, and the order of its operations in float32.

Models exist for what was compared with execution, every output equal: the table
`kernel_models.toml` says for which primitive, source, implementation, instruction set and version,
with which features, and on which shapes. For anything else there is no model.

Examples
--------
>>> import numpy as np
>>> from pyonednn_q.primitive.attr import Attr, Scale
>>> from pyonednn_q.primitive.problem import MatMulProblem
>>> problem = MatMulProblem.of((1, 2), (2, 1), dst="s8")
>>> attr = Attr(wei_scale=Scale(2))
>>> model = kernel_model(problem, attr, "gemm:jit", "AVX2", (3, 13, 2))
>>> src, wei = np.array([[3, 4]], np.uint8), np.array([[1], [-2]], np.int8)
>>> model.run(src, wei, values={"wei_scale": np.array([0.5], np.float32)})  # -2.5, to even
array([[-2]], dtype=int8)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.acc.emulation import checked, sums, weighted
from pyonednn_q.acc.pairing import summations
from pyonednn_q.acc.split import parts, stores_sums
from pyonednn_q.argument import instance, integers, named, numbers
from pyonednn_q.dtypes import F32_WHOLE, Array
from pyonednn_q.errors import ArgumentError, NoModelError, ShapeError
from pyonednn_q.faults import guards
from pyonednn_q.predict.float_bounds import ends, is_bounded, level
from pyonednn_q.predict.float_order import destination, is_whole
from pyonednn_q.predict.region import Proof, proofs
from pyonednn_q.primitive.attr import Attr, Scale
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyonednn_q.acc.pairing import Weighted
    from pyonednn_q.primitive.attr import ZeroPoint
    from pyonednn_q.primitive.problem import Problem


@dataclass(frozen=True, slots=True)
class KernelModel:
    """The arithmetic of one implementation on one problem."""

    problem: Weighted
    attr: Attr
    impl: str
    isa: InstructionSet
    proof: Proof
    version: tuple[int, ...] = (3, 7, 0)

    def text(self) -> str:
        """Return one line: the problem, and the order of operations."""
        order = self.proof.order.text()
        return f"{self.problem.text()} on {self.impl} for {self.isa.text()}: {order}"

    def run(
        self,
        src: Array,
        wei: Array,
        *,
        bias: Array | None = None,
        values: Mapping[str, Array] | None = None,
        before: Array | None = None,
    ) -> Array:
        """Return the values that the kernel stores.

        Parameters
        ----------
        src, wei, bias : ndarray
            The tensors in the problem's logical dimensions and data types.
        values : mapping
            Arrays of scales, zero points and operands, by the names of `Attr.runtime_names`.
        before : ndarray, optional
            Values of dst before the call, in its dims and data type; a sum post-op reads them.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the argument.
        NoModelError
            Sums depend on an order of additions that is not known (`acc.pairing`), or a function is
            known within bounds only.
        """
        if self.bounded:
            why = f"{', '.join(self.bounded)} is known within bounds only: use `bounds`"
            raise NoModelError(self.impl, self.isa.text(), why)
        arrays = self._given(values, bias, before)
        acc = self._sums(src, wei, arrays)
        if is_whole(self.problem, self.attr):
            self._check_whole(wei)
        at = level(self.impl, self.isa)
        return destination(
            self.problem,
            self.attr,
            acc,
            self.proof.order,
            arrays,
            bias=bias,
            before=before,
            level=at,
        )

    def bounds(
        self,
        src: Array,
        wei: Array,
        *,
        bias: Array | None = None,
        values: Mapping[str, Array] | None = None,
        before: Array | None = None,
    ) -> tuple[Array, Array]:
        """Return the lowest and the highest value that the kernel may store.

        They differ after a function that is known within bounds only (`eltwise_bounds`). Results of
        NaN have no bounds.

        Parameters
        ----------
        src, wei, bias, values, before
            Arguments of `run`.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError, NoModelError
            Errors of `run`, except those of the function.
        """
        arrays = self._given(values, bias, before)
        acc = self._sums(src, wei, arrays)
        at = level(self.impl, self.isa)
        return ends(
            self.problem, self.attr, acc, self.proof.order, arrays, at, bias=bias, before=before
        )

    def _check_whole(self, wei: Array) -> None:
        """Refuse bare sums that an implementation may lead through float32."""
        stores = stores_sums(self.problem, self.impl, self.version)
        if len(parts(self.problem, wei, 2**31 if stores else F32_WHOLE)) > 1:
            why = "s32 sums beyond 2^24, which it may lead through float32"
            raise NoModelError(self.impl, self.isa.text(), why)

    @property
    def bounded(self) -> tuple[str, ...]:
        """Functions among the post-ops that are known within bounds only."""
        return tuple(post_op.text() for post_op in self.attr.post_ops if is_bounded(post_op))

    def _given(
        self, values: Mapping[str, Array] | None, bias: Array | None, before: Array | None
    ) -> dict[str, Array]:
        problem = self.problem
        passed = named("values", values, object)
        arrays = {name: numbers(name, value, "iufV") for name, value in passed.items()}
        for name in self.attr.runtime_names(problem):
            if name not in arrays:
                raise ArgumentError(name, "nothing", "a value in `values`: attr declares it")
        if ("bias" in problem.tensors) is (bias is None):
            raise ArgumentError("bias", "None" if bias is None else "an array", "as the problem")
        if any(isinstance(value, SumPostOp) for value in self.attr.post_ops) and before is None:
            raise ArgumentError("before", "None", "what dst holds: the sum reads it")
        if bias is not None:
            instance("bias", bias, np.ndarray)
            wanted = problem.tensors["bias"]
            if bias.size != wanted.size:
                raise ShapeError("bias", str(bias.shape), str(wanted.dims))
        if before is not None:
            instance("before", before, np.ndarray)
            if before.shape != problem.dst.dims:
                raise ShapeError("before", str(before.shape), str(problem.dst.dims))
        return arrays

    def _sums(self, src: Array, wei: Array, arrays: Mapping[str, Array]) -> Array:
        instance("src", src, np.ndarray)
        problem, wei = checked(self.problem, wei, src)
        point = int(arrays["src_zero_point"].ravel()[0]) if self.attr.src_zero_point else 0
        # Proofs ran on processors with AVX512_VBMI; for others, all ways that are left must agree.
        isa = self.isa if self.isa.vbmi else replace(self.isa, vbmi=None)
        ways = summations(problem, isa, self.impl, src_zero_point=point != 0)
        first, *others = (sums(problem, src, wei, way, point) for way in ways)
        if any(not np.array_equal(first, other) for other in others):
            choice = " or ".join(way.text() for way in ways)
            raise NoModelError(self.impl, self.isa.text(), f"its sums may be added by {choice}")
        return first


def kernel_model(
    problem: Problem,
    attr: Attr | None,
    impl: str,
    isa: InstructionSet | str,
    version: tuple[int, ...],
) -> KernelModel:
    """Return the model of an implementation, if one is proven for this problem.

    Parameters
    ----------
    problem : Problem
        A convolution, deconvolution, inner product or matmul of 8-bit source and s8 weights.
    attr : Attr, optional
        Scales, zero points and post-ops of the primitive.
    impl : str
        oneDNN's name of the implementation.
    isa : InstructionSet or str
        The instruction set of the process, or its name as in ``ONEDNN_MAX_CPU_ISA``.
    version : tuple of int
        Version of oneDNN: (major, minor), or with the patch.

    Raises
    ------
    NoModelError
        No model is proven for this implementation, these features or shapes like these; or the
        implementation is known to be wrong here (docs/reference/guards.md).
    ArgumentError
        The problem has no sums of 8-bit products.
    """
    dense, attr = weighted(problem), Attr() if attr is None else attr
    isa = InstructionSet.of(isa)
    instance("attr", attr, Attr)
    instance("impl", impl, str)
    version = integers("version", version)
    if len(version) < 2:
        raise ArgumentError("version", shown(version), "major, minor and patch")
    minor = ".".join(map(str, version[:2]))
    proof = proofs().get((dense.kind, dense.src.dtype, impl, isa.text(), minor))
    if proof is None:
        why = f"nothing is proven for {dense.src.dtype} {dense.kind} of oneDNN {minor}"
        raise NoModelError(impl, isa.text(), why)
    missing = sorted(features(dense, attr) - proof.features)
    if missing:
        raise NoModelError(impl, isa.text(), f"not proven with {', '.join(missing)}")
    outside = proof.region.outside(dense)
    if outside:
        raise NoModelError(impl, isa.text(), outside)
    facts = Facts((version[0], version[1], version[2] if version[2:] else 0), isa, "")
    wrong = [row.id for row in guards.matching(dense, attr, facts, impl)]
    if wrong:
        raise NoModelError(impl, isa.text(), f"known to be wrong here: {', '.join(wrong)}")
    return KernelModel(dense, attr, impl, isa, proof, version)


def features(problem: Problem, attr: Attr) -> frozenset[str]:
    """Return features of a problem besides its sums, in words."""
    words = {f"dst {problem.tensors['dst'].dtype}"}
    if "bias" in problem.tensors:
        words.add(f"bias {problem.tensors['bias'].dtype}")
    for name in ("src", "src1", "wei", "dst"):
        scale, point = attr.scale(name), None if name == "src1" else attr.zero_point(name)
        if scale is not None:
            words.add(f"{name} scale{_along(problem, name, scale)}")
        if point is not None:
            words.add(f"{name} zero point{_along(problem, name, point)}")
    for post_op in attr.post_ops:
        words.update(_features(problem, post_op))
    return frozenset(words)


def _along(problem: Problem, name: str, value: Scale | ZeroPoint) -> str:
    """Return what is unusual in how many values there are, and of which type."""
    usual = {0, problem.wei_mask} if name == "wei" else {0}
    words = "" if value.mask in usual else f" of mask {value.mask}"
    if value.dtype != ("f32" if isinstance(value, Scale) else "s32"):
        words += f" of {value.dtype}"
    return words + (f" in groups {value.groups}" if value.groups else "")


def _features(problem: Problem, post_op: PostOp) -> Iterator[str]:
    match post_op:
        case EltwisePostOp(alg="relu", alpha=alpha) if alpha:
            yield "leaky relu"
        case EltwisePostOp(alg=alg):
            yield alg
        case BinaryPostOp(alg=alg, src1=src1):
            extent = _extent(problem, src1.dims)
            yield f"binary {alg} {extent}"
            if src1.dtype != "f32":  # converted first, whatever is done with it
                yield f"operand of {src1.dtype} {extent}"
        case SumPostOp(dtype=None):
            yield "sum"
        case PReluPostOp(mask=mask):
            dims = problem.tensors["dst"].dims
            slopes = tuple(dim if mask >> axis & 1 else 1 for axis, dim in enumerate(dims))
            yield f"prelu {_extent(problem, slopes)}"
        case _:
            yield post_op.text()


def _extent(problem: Problem, dims: tuple[int, ...]) -> str:
    """Return along what an operand varies."""
    varies = {at for at, dim in enumerate(dims) if dim > 1}
    if varies <= {problem.channel_axis}:
        return "per channel" if varies else "per tensor"
    if varies == {problem.row_axis}:
        return "per row"
    if dims == problem.tensors["dst"].dims:
        return "of a tensor"
    return f"of mask {sum(1 << at for at in varies)}"
