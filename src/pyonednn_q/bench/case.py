"""Case: one thing to measure. Setting: under what conditions."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal, get_args

from pyonednn_q.argument import one_of, whole
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.tail import Tail
from pyonednn_q.primitive.isa import ISA_ORDER
from pyonednn_q.primitive.windowed import Layout

__all__ = ["LAYOUTS", "Cache", "Case", "Setting", "repro"]

LAYOUTS: tuple[Layout, ...] = get_args(Layout)
Cache = Literal["warm", "cold"]


@dataclass(frozen=True, slots=True)
class Case:
    """A shape in given data types, with a tail, in a layout.

    Parameters
    ----------
    shape : Shape
        Kind of the layer, its dims (batch included) and its window.
    precision : Precision
        Data types of src, weights and dst.
    tail : Tail
        The steps that follow the products.
    layout : {"channels_last", "dense"}
        Layout in memory of src and dst of convolutions; matrices are row-major.
    """

    shape: Shape
    precision: Precision
    tail: Tail = Tail("none")  # noqa: RUF009 - Tail is frozen
    layout: Layout = "channels_last"

    def __post_init__(self) -> None:
        one_of("layout", self.layout, LAYOUTS)

    @property
    def nbytes(self) -> int:
        """Bytes that must move at least once: src, weights, dst, and a residual."""
        src, wei, dst = self.shape.sizes
        reads = dst * (2 if self.tail.reads_dst else 1)
        residual = 4 * dst if self.tail.adds_residual else 0
        return self.precision.nbytes((src, wei, reads)) + residual

    def words(self) -> list[str]:
        """Return the arguments of ``pyonednn-q bench`` that name this case."""
        words = [self.shape.text(), "--dtype", self.precision.name]
        if self.tail.words:
            words += ["--tail", self.tail.name]
        if self.layout != LAYOUTS[0]:
            words += ["--layout", self.layout]
        return words


@dataclass(frozen=True, slots=True)
class Setting:
    """Conditions of a measurement.

    Parameters
    ----------
    threads : int
        Number of threads of the library.
    cache : {"warm", "cold"}
        Warm: an untimed call goes before each timed sample. Cold: much other memory is touched
        before each timed call.
    isa : str
        Limit of the instruction set, as in ``ONEDNN_MAX_CPU_ISA``; empty: the whole machine.
    """

    threads: int
    cache: Cache = "warm"
    isa: str = ""

    def __post_init__(self) -> None:
        whole("threads", self.threads, lo=1)
        one_of("cache", self.cache, get_args(Cache))
        one_of("isa", self.isa, ("", *ISA_ORDER))

    def words(self) -> list[str]:
        """Return the arguments of ``pyonednn-q bench`` that set these conditions."""
        words = ["--threads", str(self.threads)]
        words += ["--cold"] if self.cache == "cold" else []
        return words + (["--isa", self.isa] if self.isa else [])


def repro(case: Case, setting: Setting) -> str:
    """Return the command line that measures `case` under `setting` again."""
    return shlex.join(["pyonednn-q", "bench", *case.words(), *setting.words()])
