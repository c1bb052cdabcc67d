"""Precision: the data types of src, wei and dst under one name, as in ``u8s8u8``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyonednn_q import dtypes
from pyonednn_q.errors import DTypeError
from pyonednn_q.shown import shown

__all__ = ["FLOATS", "Precision"]

FLOATS = ("f32", "bf16", "f16")
_ACTIVATIONS = ("u8", "s8")
_STORED = ("u8", "s8", "s32", "f32", "bf16", "f16")
_NAME = re.compile("(" + "|".join(dtypes.NAMES) + ")")
_WANTED = "one type for all (f32, bf16, f16), or three as in u8s8u8, s8s8f32, bf16bf16f32"


@dataclass(frozen=True, slots=True)
class Precision:
    """Data types of src, wei and dst.

    Examples
    --------
    >>> Precision.parse("u8s8f32").dst, Precision.parse("f32").name
    ('f32', 'f32')
    """

    src: str
    wei: str
    dst: str

    @classmethod
    def parse(cls, name: str) -> Precision:
        """Return the types that `name` stands for.

        Raises
        ------
        DTypeError
            No such types, or no primitive takes them together.
        """
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
        if self.src in FLOATS and self.src == self.dst:
            return self.src
        return self.src + self.wei + self.dst

    @property
    def is_int8(self) -> bool:
        """Whether products are of integers."""
        return self.src in _ACTIVATIONS

    def nbytes(self, sizes: tuple[int, int, int]) -> int:
        """Return the bytes of that many elements of src, wei and dst."""
        types = (self.src, self.wei, self.dst)
        return sum(n * dtypes.bits(name) // 8 for n, name in zip(sizes, types, strict=True))

    def __str__(self) -> str:
        return self.name
