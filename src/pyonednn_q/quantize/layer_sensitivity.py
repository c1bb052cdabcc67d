"""Error of each layer if it alone is INT8, and the time that measuring it took."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from time import perf_counter

from pyonednn_q.report.progress import counted
from pyonednn_q.report.table import Column, Table
from pyonednn_q.report.told import Told, joined

__all__ = ["LayerSensitivity"]


class LayerSensitivity(Mapping[str, float], Told):
    """SQNR of the outputs if a layer alone is INT8, in dB, by its name; the worst first.

    Attributes
    ----------
    seconds : mapping of str to float
        Seconds of the pass that told it, of each layer.

    Examples
    --------
    >>> found = LayerSensitivity.of(["conv1", "conv2"], {"conv1": 30.5, "conv2": 21.25}.get)
    >>> next(iter(found)), len(found.seconds)
    ('conv2', 2)
    """

    def __init__(self, sqnr: Mapping[str, float], seconds: Mapping[str, float]) -> None:
        self._sqnr = dict(sorted(sqnr.items(), key=lambda each: each[1]))
        self.seconds = {name: seconds[name] for name in self._sqnr}

    @classmethod
    def of(cls, names: Iterable[str], sqnr: Callable[[str], float]) -> LayerSensitivity:
        """Ask a pass for each layer, and time it.

        Parameters
        ----------
        names : iterable of str
            Names of layers.
        sqnr : callable
            Function from the name of a layer to the SQNR, in dB.
        """
        lost: dict[str, float] = {}
        seconds: dict[str, float] = {}
        for name in counted(names, "sensitivity of layers"):
            start = perf_counter()
            lost[name] = sqnr(name)
            seconds[name] = perf_counter() - start
        return cls(lost, seconds)

    def __getitem__(self, name: str) -> float:
        return self._sqnr[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sqnr)

    def __len__(self) -> int:
        return len(self._sqnr)

    def took(self) -> str:
        """Return in words what it took: passes, seconds of a pass and in all."""
        whole = sum(self.seconds.values())
        a_pass = whole / max(len(self), 1)
        return f"{len(self)} passes, {a_pass:.2g} s a pass, {whole:.3g} s in all"

    def __str__(self) -> str:
        return joined(self._parts())

    def _parts(self) -> Iterator[str | Table]:
        columns = [Column("layer"), Column("SQNR dB", right=True), Column("s", right=True)]
        rows = [[name, f"{self[name]:.1f}", f"{self.seconds[name]:.2g}"] for name in self]
        yield Table(columns, rows)
        yield self.took()

    def __repr__(self) -> str:
        return repr(self._sqnr)
