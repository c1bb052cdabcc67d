"""Precision: the data types of src, wei and dst under one name, as in ``u8s8u8``, ``s4g128``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyonednn_q import dtypes
from pyonednn_q.dtypes import FLOATS
from pyonednn_q.errors import DTypeError
from pyonednn_q.shown import shown

__all__ = ["Precision"]

_ACTIVATIONS = ("u8", "s8")
_STORED = ("u8", "s8", "s32", "f32", "bf16", "f16")
_NAME = re.compile("(" + "|".join(dtypes.NAMES) + ")")
_GROUPED = re.compile(r"([su][48])g([1-9]\d{0,5})")
_WANTED = (
    "one type for all (f32, bf16, f16), three as in u8s8u8, s8s8f32, bf16bf16f32, or weights in "
    "groups as in s4g128"
)


@dataclass(frozen=True, slots=True)
class Precision:
    """Data types of src, wei and dst.

    Attributes
    ----------
    src, wei, dst : str
        Data types that are multiplied, and that of the result.
    group : int
        Number of weights of a column that share a scale; 0: all. Such a layer takes float32 rows,
        and makes s8 codes of each in the call.

    Examples
    --------
    >>> Precision.parse("u8s8f32").dst, Precision.parse("f32").name
    ('f32', 'f32')
    >>> Precision.parse("s4g128")
    Precision(src='s8', wei='s4', dst='f32', group=128)
    """

    src: str
    wei: str
    dst: str
    group: int = 0

    @classmethod
    def parse(cls, name: str) -> Precision:
        """Return the precision with this name.

        Raises
        ------
        DTypeError
            No such types, or no primitive takes them together.
        """
        if grouped := _GROUPED.fullmatch(name):
            return cls("s8", grouped[1], "f32", int(grouped[2]))
        parts = _NAME.findall(name)
        if "".join(parts) != name or len(parts) != (1 if name in FLOATS else 3):
            raise DTypeError("dtype", shown(name), _WANTED)
        src, wei, dst = parts * 3 if name in FLOATS else parts
        quantized = src in _ACTIVATIONS and wei == "s8" and dst in _STORED
        floating = src in FLOATS and wei == src and dst in {src, "f32"}
        if not (quantized or floating):
            raise DTypeError("dtype", shown(name), _WANTED)
        return cls(src, wei, dst)

    @property
    def name(self) -> str:
        """The name that `parse` reads."""
        if self.group:
            return f"{self.wei}g{self.group}"
        if self.src in FLOATS and self.src == self.dst:
            return self.src
        return self.src + self.wei + self.dst

    def check_primitive(self) -> None:
        """Refuse weights in groups where a primitive is needed: such layers have none.

        Raises
        ------
        DTypeError
        """
        if self.group:
            raise DTypeError("dtype", self.name, "types of a primitive; such layers have none")

    @property
    def is_int8(self) -> bool:
        """Whether products are of integers."""
        return self.src in _ACTIVATIONS

    def nbytes(self, sizes: tuple[int, int, int]) -> int:
        """Return the bytes of that many elements of src, wei and dst."""
        types = ("f32" if self.group else self.src, self.wei, self.dst)
        scales = 4 * (sizes[1] // self.group) if self.group else 0
        return scales + sum(
            n * dtypes.bits(name) // 8 for n, name in zip(sizes, types, strict=True)
        )

    def __str__(self) -> str:
        return self.name
