"""What quantizers of a network are: how a target runs tensors quantized, and where they stand.

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
    """How a tensor may be quantized.

    Attributes
    ----------
    dtype : str
        Data type of the codes.
    symmetric : bool
        Whether the zero point is that in the middle (0 of s8).
    note : str
        What this way has on the target: fast, exact, saturating.
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
    """What a target runs quantized: plain data.

    Attributes
    ----------
    quantized : tuple of (str, tuple of QuantizerSpec)
        Kinds of operators that run on codes, and how their sources may be quantized, best first.
    weights : tuple of (str, QuantizerSpec)
        How the weights of those kinds are.
    agnostic : tuple of str
        Kinds that quantizers move through.
    linked : tuple of str
        Those of them whose sources must have one scale.
    fused : tuple of str
        Kinds that a dense operator takes in behind it, in any number and order.
    on_codes : tuple of str
        Kinds that compute codes of codes, but are not worth codes by themselves: their sources have
        quantizers where their result has one, in the ways of the first kind of `quantized`.
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
    """One quantizer.

    Attributes
    ----------
    tensor : str
        What it quantizes.
    readers : tuple of str
        Results of the operators that read the codes; those of other readers read floats. None where
        the codes are the network's output alone.
    spec : QuantizerSpec
    group : int or None
        Quantizers of one number share their scale.
    reason : str
        Why it stands here.
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
    """Return what oneDNN runs quantized on a CPU: u8 or s8 sources, s8 weights by output channel.

    With VNNI all of it is exact. Without, products of u8 and full-range s8 saturate in pairs: the
    weights are marked so, half of the range is exact; convolutions of s8 sources lose a bit.

    Parameters
    ----------
    isa : InstructionSet or str
        What kernels may use: ``"AVX2"``, ``"AVX512_CORE_VNNI"``.

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
    """Return whether scopes name an operator.

    Parameters
    ----------
    name : str
        Name of the operator: that of its result.
    scopes : sequence of str
        Names, or regular expressions behind ``{re}`` that match anywhere in one, as NNCF has it.

    Raises
    ------
    ArgumentError
        An expression that is none.

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
