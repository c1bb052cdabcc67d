"""Guard: one fault of oneDNN, whether it strikes, and where faults lie."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyonednn_q.primitive.post_ops import COMPARISONS, BinaryPostOp, PReluPostOp, SumPostOp
from pyonednn_q.primitive.windowed import WindowedProblem

if TYPE_CHECKING:
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.isa import Facts, InstructionSet, Version
    from pyonednn_q.primitive.problem import Problem

FLOOR = (3, 7, 0)
AFTER_3_7 = (3, 8, 0)  # seen in 3.13, not in 3.7
BEFORE_3_13 = (3, 13, 0)  # seen in 3.7, not in 3.13

CONV = ("convolution",)
DECONV = ("deconvolution",)
MATMUL = ("matmul",)

# Patterns of names. Reference loops are right unless a row has no pattern; "gemm:jit" is a gemm.
FAST = r"brg|brdgmm|jit|gemm"
JIT = r"^(?!.*(?<!br)gemm).*(?:brg|brdgmm|jit)"
AMX = r"amx"
STRIDED = r"brgconv_strided"  # the kernel in a deconvolution by brgemm


def any_isa(isa: InstructionSet) -> bool:  # noqa: ARG001
    """Every instruction set."""
    return True


def bare_avx512(isa: InstructionSet) -> bool:
    """AVX-512 without VNNI."""
    return isa.has_avx512() and not isa.has("AVX512_CORE_VNNI")


def ymm(isa: InstructionSet) -> bool:
    """AVX2, with VNNI or without, and nothing wider."""
    return isa.has("AVX2") and not isa.has_avx512()


def traits(problem: Problem, attr: Attr) -> frozenset[str]:
    """Name what the conditions of rows may ask for: most problems have little of it.

    Returns
    -------
    frozenset of str
        The type of each tensor (``"src s8"``); scales and zero points by their names; of post-ops
        ``sum``, ``operand`` (binary or prelu) and ``comparison``; ``int8``, a source of 8 bits;
        ``shifted``, sums of weights make up for what is added to or taken from such a source; of a
        convolution or deconvolution ``grouped``, ``depthwise``, ``one_channel`` (of src, a group),
        ``pointwise`` (one tap), ``strided``, ``dilated``, ``padded`` and ``gaps`` (in src or dst).
    """
    has = set(attr.structures)
    for name, spec in problem.tensors.items():
        has.add(f"{name} {spec.dtype}")
    for op in attr.post_ops:
        if isinstance(op, SumPostOp):
            has.add("sum")
        elif isinstance(op, (BinaryPostOp, PReluPostOp)):
            has.add("operand")
            if isinstance(op, BinaryPostOp) and op.alg in COMPARISONS:
                has.add("comparison")
    if has & {"src u8", "src s8"}:
        has.add("int8")
        if has & {"src s8", "src_zero_point"}:
            has.add("shifted")
    if isinstance(problem, WindowedProblem):
        window, groups = problem.window, problem.groups
        geometry = {
            "grouped": groups > 1,
            "depthwise": problem.is_depthwise,
            "one_channel": problem.ic == groups,
            "pointwise": max(window.kernel) == 1,
            "strided": max(window.stride) > 1,
            "dilated": max(window.dilation) > 1,
            "padded": max(window.padding_lo + window.padding_hi) > 0,
            "gaps": problem.src.has_gaps or problem.dst.has_gaps,
        }
        for name, holds in geometry.items():
            if holds:
                has.add(name)
    return frozenset(has)


class Condition:
    """On which problems a fault shows: those that have all of `needs`, and where `rest` holds.

    A name and a docstring are those of `rest`, and tell of both.
    """

    __doc__: str | None
    __name__: str

    def __init__(self, needs: frozenset[str], rest: Callable[[Any, Attr], bool]) -> None:
        self.needs, self.rest = needs, rest
        functools.update_wrapper(self, rest)

    def __call__(self, problem: Problem, attr: Attr) -> bool:
        """Tell whether the fault shows on a problem of the kinds that the rows name."""
        return self.needs <= traits(problem, attr) and self.rest(problem, attr)


def condition(*needs: str) -> Callable[[Callable[[Any, Attr], bool]], Condition]:
    """Make a condition of a function: it is asked of problems that have these `traits`."""
    return functools.partial(Condition, frozenset(needs))


@dataclass(frozen=True, slots=True)
class Guard:
    """One fault.

    Parameters
    ----------
    id : str
        A name that stays the same between versions.
    since, until : (int, int, int) or None
        First version with it and first version without; None: still there.
    isas : callable
        Takes the instruction set of a process.
    kinds : tuple of str
        Kinds of problems that it concerns.
    impl : str or None
        Regular expression searched in the implementation's name. None: all, reference loops too.
    condition : Condition
        Test of a problem of these kinds and its attributes; exact where the fault is understood,
        otherwise wider.
    effect : str
        Description of the fault.
    remedy : str
        Remedy, in words.
    source : str
        Source of this knowledge.
    """

    id: str
    since: Version
    until: Version | None
    isas: Callable[[InstructionSet], bool]
    kinds: tuple[str, ...]
    impl: str | None
    condition: Condition
    effect: str
    remedy: str
    source: str

    def matches(self, problem: Problem, attr: Attr, facts: Facts | None, impl: str) -> bool:
        """Tell whether implementation `impl` has this fault on the problem, in that process.

        In some process, if `facts` is ``None``.
        """
        return self.is_in(facts, problem.kind) and self.strikes(
            problem, attr, impl, traits(problem, attr)
        )

    def is_in(self, facts: Facts | None, kind: str) -> bool:
        """Tell whether a process has this fault on some problem of a kind."""
        if kind not in self.kinds:
            return False
        if facts is None:
            return True
        is_before = self.until is None or facts.version < self.until
        return self.since <= facts.version and is_before and self.isas(facts.isa)

    def strikes(self, problem: Problem, attr: Attr, impl: str, has: frozenset[str]) -> bool:
        """Tell whether implementation `impl` has this fault on a problem that has these `traits`.

        The problem is of one of the row's kinds.
        """
        if not self.condition.needs <= has:
            return False
        is_impl = not impl or self.impl is None or re.search(self.impl, impl) is not None
        return is_impl and self.condition.rest(problem, attr)
