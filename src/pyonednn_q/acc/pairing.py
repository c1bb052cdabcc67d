"""Sums of 8-bit products by kernels without VNNI: pairs of products are added in 16 bits.

They multiply unsigned source bytes by signed weight bytes and add the products of neighbours in 16
bits with saturation (vpmaddubsw), then go on in 32 bits. Who is whose neighbour depends on how a
kernel walks over its sum. That was found by giving each two positions of a kernel the largest
weights and looking which results saturate, and then proven on whole sums
(docs/reference/saturation.md):

    channels    input channels 2k and 2k+1 of one group, at one tap or spatial position
    taps        the same, but taps follow each other without a gap (matrix products of patches)
    k           rows 2k and 2k+1 of a matmul's weights
    dense       an inner product's source as it lies in memory, row-major
    last        the same with channels last
    row         one input channel: taps 2k and 2k+1 of a kernel row
    column      one input channel: taps in the order of columns, then rows
    none        depthwise kernels and reference loops sum in 32 bits

Row and column belong to `brg_conv_fwd` on AVX-512, which rearranges a single input channel if the
processor has the byte permutation of AVX512_VBMI. The processor itself is asked, whatever
`ONEDNN_MAX_CPU_ISA` says: without VNNI, only Cannon Lake has it, and newer processors that this
variable limits to instruction sets without VNNI. `jit_int8`, which takes over where the other is
known to be wrong, sums a single channel in 32 bits.

An s8 source is made unsigned by adding 128, which is taken off again in 32 bits. Convolutions also
halve the weights (ties to even) and double the result, so that nothing can saturate; an odd weight
then loses its last bit.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyonednn_q.argument import flag, instance
from pyonednn_q.primitive.isa import InstructionSet, classify
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from pyonednn_q.primitive.problem import Problem

Weighted = ConvProblem | DeconvProblem | InnerProductProblem | MatMulProblem
Windowed = ConvProblem | DeconvProblem


class Pairing(enum.Enum):
    """Rule by which products become neighbours in 16 bits: see the head of this module."""

    NONE = "none"
    CHANNELS = "channels"
    TAPS = "taps"
    K = "k"
    DENSE = "dense"
    LAST = "last"
    ROW = "row"
    COLUMN = "column"


@dataclass(frozen=True, slots=True)
class Summation:
    """Arithmetic of a kernel's sums.

    Attributes
    ----------
    pairing : Pairing
        Rule by which products are paired for additions in 16 bits.
    block : int, optional
        Products are paired anew from each multiple of this index on: where it is odd, the pairs
        behind it shift by one.
    halved : bool
        Whether the weights are halved and the sums doubled, which loses the lowest bit of odd
        weights.
    shifted : {None, "src", "wei"}
        The operand that is made unsigned by adding 128, which is taken off the sums again.
    """

    pairing: Pairing = Pairing.NONE
    block: int | None = None
    halved: bool = False
    shifted: str | None = None

    def text(self) -> str:
        """Return the summation in a few words."""
        parts = [self.pairing.value]
        parts += [f"in blocks of {self.block}"] if self.block else []
        parts += ["halved"] if self.halved else []
        parts += [f"{self.shifted} + 128"] if self.shifted else []
        return ", ".join(parts)


EXACT = Summation()
_FEW_COLUMNS = 4


def is_int8(problem: Problem) -> bool:
    """Tell whether a problem multiplies 8-bit sources by signed 8-bit weights."""
    if not isinstance(problem, Weighted):
        return False
    return problem.wei.dtype == "s8" and problem.src.dtype in {"u8", "s8"}


def is_empty(problem: Weighted) -> bool:
    """Tell whether there is nothing to sum: no outputs, or no products in any."""
    return 0 in (problem.dst.size, problem.wei.size)


def summations(
    problem: Problem,
    isa: InstructionSet | str,
    impl: str | None = None,
    *,
    src_zero_point: bool | None = None,
) -> tuple[Summation, ...]:
    """Return the ways in which a kernel may sum: one way, when enough is known.

    Parameters
    ----------
    problem : Problem
        Any; without 8-bit sums the answer is `EXACT`.
    isa : InstructionSet or str
        The machine's instruction set, or its name as in ``ONEDNN_MAX_CPU_ISA``.
    impl : str, optional
        oneDNN's name of the implementation. None: any that may be chosen on that instruction set,
        whatever the attributes; with VNNI, any that uses it.
    src_zero_point : bool, optional
        Whether the source has a zero point other than 0; None: not known.
    """
    isa = InstructionSet.of(isa)
    if impl is not None:
        instance("impl", impl, str)
    if src_zero_point is not None:
        flag("src_zero_point", src_zero_point)
    if not isinstance(problem, Weighted) or not is_int8(problem) or isa.has_vnni(impl or ""):
        return (EXACT,)
    if is_empty(problem):
        return (EXACT,)
    kind = None if impl is None else classify(impl)
    if kind == "reference":
        return (EXACT,)
    if kind == "unknown":
        impl = None
    if isinstance(problem, Windowed):
        ways = _of_window(problem, isa, impl, src_zero_point)
    elif isinstance(problem, MatMulProblem):
        ways = _of_matmul(problem, isa, impl, src_zero_point=src_zero_point)
    else:
        ways = _of_inner_product(problem, isa, impl)
    return tuple(dict.fromkeys(ways))


def _of_window(
    problem: Windowed, isa: InstructionSet, impl: str | None, zero_point: bool | None
) -> list[Summation]:
    """Convolutions and deconvolutions: generated code, or a product of patches."""
    is_gemm = impl is not None and classify(impl) == "gemm"
    ways = [] if is_gemm else _of_kernel(problem, isa, impl)
    if is_gemm or (impl is None and _falls_to_gemm(problem, isa)):
        ways += _of_patches(problem, isa, zero_point)
    return ways


def _falls_to_gemm(problem: Windowed, isa: InstructionSet) -> bool:
    """Tell whether a product of patches may be all that takes a problem.

    With AVX-512 that is so for groups of odd sizes, for groups of one channel in 3-D, for weights
    whose layout is given, and where src or dst has gaps; below, only deconvolutions have one.
    """
    if isinstance(problem, DeconvProblem):
        return True
    is_single = problem.ic == problem.groups == problem.oc
    of_groups = problem.spatial == 3 if is_single else problem.groups > 1
    is_laid_out = problem.wei.strides is not None or any(map(_has_gaps, (problem.src, problem.dst)))
    return isa.has_avx512() and (of_groups or is_laid_out)


def _has_gaps(spec: TensorSpec) -> bool:
    return spec.nbytes > TensorSpec(spec.dims, spec.dtype).nbytes


def _of_patches(problem: Windowed, isa: InstructionSet, zero_point: bool | None) -> list[Summation]:
    """Products of patches; those of a deconvolution are made afterwards: it sums channels only."""
    length, columns = problem.ic // problem.groups, problem.oc // problem.groups
    taps = math.prod(problem.window.kernel)
    if isinstance(problem, DeconvProblem):
        rows = math.prod(problem.src.dims[2:])
        product = Product(rows, columns * taps, length, Pairing.CHANNELS, rows_first=True)
        return _of_gemm(product, isa, False, signed=problem.src.dtype == "s8")
    if problem.src.dtype == "s8":
        return [Summation(halved=True, shifted="src")]
    rows = math.prod(problem.dst.dims[2:])
    if columns == 1:
        # The source itself is a product's operand, even of one row; patches are laid out otherwise.
        if _gathers(problem):
            return [Summation(Pairing.TAPS, _block(length * taps, isa))]
        rows = max(rows, 2)
    product = Product(rows, columns, length * taps, Pairing.TAPS)
    return _of_gemm(product, isa, zero_point, signed=False)


def _gathers(problem: Windowed) -> bool:
    """Tell whether a product of patches has to copy them from the source first."""
    window = problem.window
    sides = (*window.padding_lo, *window.padding_hi)
    return max(*window.kernel, *window.stride) > 1 or max(sides) > 0


def _of_kernel(problem: Windowed, isa: InstructionSet, impl: str | None) -> list[Summation]:
    if problem.src.dtype == "s8":
        return [Summation(halved=True, shifted="src")]
    if problem.is_depthwise:
        return [EXACT]
    plain, rearranged = Summation(Pairing.CHANNELS), _rearranged(problem, isa, impl)
    if rearranged is None or isa.vbmi is False:
        return [plain]
    # Without a name it may be `jit_int8`, which never rearranges.
    is_certain = isa.vbmi and impl is not None
    return [Summation(rearranged)] if is_certain else [plain, Summation(rearranged)]


def _of_matmul(
    problem: MatMulProblem, isa: InstructionSet, impl: str | None, *, src_zero_point: bool | None
) -> list[Summation]:
    """Sum as generated code does, which only AVX-512 has, or as the library's own product.

    That takes batches for which the generated code is known to be wrong.
    """
    signed = problem.src.dtype == "s8"
    avx512 = isa.has_avx512()
    is_gemm = not avx512 if impl is None else classify(impl) == "gemm"
    ways = [] if is_gemm else [Summation(Pairing.K, shifted="src" if signed else None)]
    if not is_gemm and (impl is not None or not problem.batch):
        return ways
    if signed and src_zero_point and not avx512:
        return [EXACT]  # there is no kernel for it but the reference loop
    rows_first = None if problem.wei.strides else False
    product = Product(problem.m, problem.n, problem.k, Pairing.K, rows_first)
    return ways + _of_gemm(product, isa, src_zero_point, signed=signed)


def _of_inner_product(
    problem: InnerProductProblem, isa: InstructionSet, impl: str | None
) -> list[Summation]:
    """Flatten the source, but for brgemm's own kernel of 3.7, which goes position by position."""
    shifted = "src" if problem.src.dtype == "s8" else None
    avx512 = isa.has_avx512()
    ways = []
    for order in _memory_orders(problem):
        if impl is None or classify(impl) == "gemm":
            rows, length = problem.src.dims[0], math.prod(problem.src.dims[1:])
            # The library lays weights with spatial dimensions out in more than one way.
            product = Product(rows, problem.oc, length, order, problem.src.ndim == 2 or None)
            ways += _of_gemm(product, isa, False, signed=problem.src.dtype == "s8")
        if (avx512 and impl is None) or (impl or "").startswith("brg_matmul"):
            ways.append(Summation(order, shifted=shifted))
        if (avx512 and impl is None) or (impl or "").startswith("brgemm"):
            by_position = Pairing.CHANNELS if problem.src.ndim > 2 else order
            ways.append(Summation(by_position, shifted=shifted))
    return ways


def _memory_orders(problem: InnerProductProblem) -> tuple[Pairing, ...]:
    if problem.src.ndim == 2:
        return (Pairing.DENSE,)
    if problem.src.strides is None:
        return Pairing.DENSE, Pairing.LAST
    return (Pairing.LAST if problem.src.is_channels_last else Pairing.DENSE,)


@dataclass(frozen=True, slots=True)
class Product:
    """A product of matrices: source rows by columns of weights, sums of some length.

    `rows_first`: a single row has a kernel of its own, as a single column has, and before it; None:
    perhaps.
    """

    rows: int
    columns: int
    length: int
    pairing: Pairing
    rows_first: bool | None = False


def _of_gemm(
    product: Product, isa: InstructionSet, zero_point: bool | None, *, signed: bool
) -> list[Summation]:
    """Cut long sums in halves; AVX-512 has kernels of its own for single rows and columns.

    Not beside a zero point of the source.
    """
    block, shifted = _block(product.length, isa), "src" if signed else None
    plain = Summation(product.pairing, block, shifted=shifted)
    of_row = Summation(product.pairing, shifted=shifted)
    of_column = Summation(product.pairing, shifted="wei" if signed else None)
    if not isa.has_avx512() or zero_point:
        return [plain]
    perhaps = [plain] if zero_point is None else []
    if product.rows == 1:
        if product.rows_first is None or (product.rows_first and product.columns == 1):
            return [of_row, of_column, plain]
        return [of_row, *perhaps] if product.rows_first else [plain]
    if product.columns == 1:
        return [of_column, *perhaps]
    if product.columns < _FEW_COLUMNS:
        return [plain, of_row, of_column]  # threads may get a part of one column
    return [plain]


def _block(length: int, isa: InstructionSet) -> int | None:
    """Return where a matrix product cuts a sum of that length, if that parts neighbours."""
    whole, most = (384, 768) if isa.has_avx512() else (256, 256)
    if isa.has("AVX2") and not isa.has_avx512():
        most = 384
    if length <= whole or length >= 2 * most:
        return None
    half = (length + 1) // 2
    return half if half % 2 else None


def _rearranged(problem: Windowed, isa: InstructionSet, impl: str | None) -> Pairing | None:
    """Return the order of taps in a convolution of one input channel, if the processor has one."""
    possible = (
        isinstance(problem, ConvProblem)
        and problem.ic == problem.groups
        and isa.has_avx512()
        and (impl is None or impl.startswith("brg_conv_fwd"))
    )
    if not possible:
        return None
    kernel, dense = problem.window.kernel, max(problem.dilation) == 1
    two_rows = problem.spatial == 2 and kernel[0] > 1
    if two_rows and dense and problem.dst.dims[-1] > 4:
        return Pairing.COLUMN
    flat = problem.spatial < 3 or problem.src.dims[2] == 1
    if kernel[-1] > 1 and problem.dilation[-1] == 1 and flat:
        return Pairing.ROW
    return None
