"""Guard: one fault of oneDNN, whether it strikes, and where faults lie."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
DENSE = ("convolution", "deconvolution", "inner_product", "matmul")

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
    condition : callable
        Takes a problem of one of the kinds, and attributes; exact where the fault is understood,
        otherwise wider.
    effect : str
        What goes wrong, in words.
    remedy : str
        What to do instead.
    source : str
        Where this is known from.
    """

    id: str
    since: Version
    until: Version | None
    isas: Callable[[InstructionSet], bool]
    kinds: tuple[str, ...]
    impl: str | None
    condition: Callable[[Any, Attr], bool]  # the problem of one of the kinds
    effect: str
    remedy: str
    source: str

    def matches(self, problem: Problem, attr: Attr, facts: Facts | None, impl: str) -> bool:
        """Tell whether implementation `impl` has this fault on the problem, in that process.

        In some process, if `facts` is ``None``.
        """
        return self.is_in(facts, problem.kind) and self.strikes(problem, attr, impl)

    def is_in(self, facts: Facts | None, kind: str) -> bool:
        """Tell whether a process has this fault on some problem of a kind."""
        if kind not in self.kinds:
            return False
        if facts is None:
            return True
        is_before = self.until is None or facts.version < self.until
        return self.since <= facts.version and is_before and self.isas(facts.isa)

    def strikes(self, problem: Problem, attr: Attr, impl: str) -> bool:
        """Tell whether implementation `impl` has this fault on a problem of the row's kinds."""
        is_impl = not impl or self.impl is None or re.search(self.impl, impl) is not None
        return is_impl and self.condition(problem, attr)
