"""Quantizers of a network: how a target runs tensors quantized, and where they stand.

`pyonednn_q.quantize.propagation` finds the places.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyonednn_q import dtypes
from pyonednn_q.argument import flag, instance, items
from pyonednn_q.errors import ArgumentError
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Placement",
    "QuantizationTarget",
    "QuantizerSpec",
    "onednn_target",
    "scoped",
]

_RE = "{re}"
AGNOSTIC = (
    *("concat", "flatten", "max_pool", "pad", "permute", "reshape", "slice", "split"),
    *("squeeze", "transpose", "unsqueeze", "upsample"),
)
DENSE = ("conv", "deconv", "inner_product", "matmul")
_POINTWISE = ("abs", "clip", "elu", "gelu", "hard_swish", "leaky_relu", "prelu", "relu", "sigmoid")


@dataclass(frozen=True, slots=True)
class QuantizerSpec:
    """Data type and granularity with which a tensor may be quantized.

    Attributes
    ----------
    dtype : str
        Data type of the codes.
    symmetric : bool
        Whether the zero point is in the middle of the type (0 for s8).
    note : str
        Properties on the target: fast, exact, saturating.

    Raises
    ------
    ArgumentError
        Naming the argument, what came and what would do.
    """

    dtype: str
    symmetric: bool
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", dtypes.checked(self.dtype, "dtype"))
        flag("symmetric", self.symmetric)
        instance("note", self.note, str)

    def __str__(self) -> str:
        way = "symmetric" if self.symmetric else "asymmetric"
        return f"{self.dtype} {way}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True, slots=True)
class QuantizationTarget:
    """Operators that a target runs quantized, as plain data.

    Attributes
    ----------
    quantized : tuple of (str, tuple of QuantizerSpec)
        Kinds of operators that run on codes, and the ways to quantize their sources, best first.
    weights : tuple of (str, QuantizerSpec)
        Quantization of the weights of these kinds.
    agnostic : tuple of str
        Kinds that quantizers move through.
    linked : tuple of str
        Agnostic kinds whose sources must have one scale.
    fused : tuple of str
        Kinds that a dense operator includes if they follow it, in any number and order.
    on_codes : tuple of str
        Kinds that compute codes from codes only if their result is quantized: their sources then
        have quantizers, in the ways of the first kind of `quantized`.

    Raises
    ------
    ArgumentError
        Naming the argument, what came and what would do.
    """

    quantized: tuple[tuple[str, tuple[QuantizerSpec, ...]], ...]
    weights: tuple[tuple[str, QuantizerSpec], ...]
    agnostic: tuple[str, ...] = AGNOSTIC
    linked: tuple[str, ...] = ("concat",)
    fused: tuple[str, ...] = ("add", "batch_norm", "mul", *_POINTWISE)
    on_codes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("agnostic", "linked", "fused", "on_codes"):
            object.__setattr__(self, name, items(name, getattr(self, name), str))
        for name in ("quantized", "weights"):
            pairs = [items(name, pair, object) for pair in items(name, getattr(self, name), object)]
            object.__setattr__(self, name, tuple(_pair(name, pair) for pair in pairs))


def _pair(name: str, pair: Sequence[object]) -> tuple[str, object]:
    if len(pair) != 2 or not isinstance(pair[0], str):
        raise ArgumentError(name, shown(pair), "pairs of a kind and how it is quantized")
    if name == "weights":
        instance(name, pair[1], QuantizerSpec)
        return pair[0], pair[1]
    specs = items(name, pair[1], QuantizerSpec)
    if not specs:
        raise ArgumentError(name, shown(pair), "at least one way for each kind")
    return pair[0], specs


@dataclass(frozen=True, slots=True)
class Placement:
    """One quantizer of an activation.

    Attributes
    ----------
    tensor : str
        Name of the tensor that it quantizes.
    readers : tuple of str
        Results of the operators that read the codes; other readers read floats. Empty if the codes
        are only an output of the network.
    spec : QuantizerSpec
    group : int or None
        Number of a group; quantizers of one group share their scale.
    reason : str
        Reason for its place.
    """

    tensor: str
    readers: tuple[str, ...]
    spec: QuantizerSpec
    group: int | None
    reason: str

    def __str__(self) -> str:
        group = "" if self.group is None else f", scale of group {self.group}"
        readers = ", ".join(self.readers) or "output"
        return f"{self.tensor} -> {readers}: {self.spec}{group}; {self.reason}"


def onednn_target(isa: InstructionSet | str) -> QuantizationTarget:
    """Return oneDNN's target on a CPU: u8 or s8 sources, s8 weights by output channel.

    With VNNI everything is exact. Without VNNI, pairs of products of u8 and full-range s8 may
    saturate, and weights are marked "saturating"; half of the range is exact. Convolutions with s8
    sources lose one bit of the weights.

    Parameters
    ----------
    isa : InstructionSet or str
        Instruction set that kernels may use: ``"AVX2"``, ``"AVX512_CORE_VNNI"``.

    Raises
    ------
    ArgumentError
        No instruction set.
    """
    exact = InstructionSet.of(isa).has_vnni()
    u8 = QuantizerSpec("u8", symmetric=False, note="fast, exact" if exact else "fast")
    s8 = QuantizerSpec(
        "s8", symmetric=True, note="fast, exact" if exact else "odd weights lose a bit"
    )
    plain_s8 = QuantizerSpec("s8", symmetric=True, note="fast, exact" if exact else "fast")
    weights = QuantizerSpec(
        "s8", symmetric=True, note="exact" if exact else "saturating beyond half of the range"
    )
    ways = {kind: (u8, s8 if "conv" in kind else plain_s8) for kind in DENSE}
    return QuantizationTarget(tuple(ways.items()), tuple((kind, weights) for kind in DENSE))


def scoped(name: str, scopes: Sequence[str]) -> bool:
    """Return whether one of the scopes matches an operator.

    Parameters
    ----------
    name : str
        Name of the operator: that of its result.
    scopes : sequence of str
        Names, or ``{re}`` and a regular expression that matches anywhere in a name, as in NNCF.

    Raises
    ------
    ArgumentError
        An invalid regular expression.

    Examples
    --------
    >>> scoped("block1/conv", ["head", "{re}block[12]/"])
    True
    """
    instance("name", name, str)
    for scope in items("scopes", scopes, str):
        if not scope.startswith(_RE):
            if scope == name:
                return True
            continue
        try:
            match = re.search(scope.removeprefix(_RE), name)
        except re.error as error:
            raise ArgumentError("scopes", shown(scope), f"a regular expression: {error}") from None
        if match:
            return True
    return False
