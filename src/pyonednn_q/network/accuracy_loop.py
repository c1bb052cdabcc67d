"""Which layers stay in floats, in which type, and how many for a metric to be good enough."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from pyonednn_q.argument import applied, function, items, named, one_of, real, whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime
from pyonednn_q.quantize.group_search import smallest_group
from pyonednn_q.quantize.quality import quality
from pyonednn_q.shown import shown
from pyonednn_q.tables import Column, Table

if TYPE_CHECKING:
    from typing_extensions import Self

    from pyonednn_q.qparams import QParams
    from pyonednn_q.quantize.quantizers import Quantizers

FLOAT_TYPES = ("f32", "bf16")
Floats: TypeAlias = Iterable[str] | Mapping[str, str]
Source = TypeVar("Source")
Runs = TypeVar("Runs")
Array: TypeAlias = np.ndarray[Any, Any]
Values: TypeAlias = dict[str, Array]

_BF16_LEVELS = ("AVX512_CORE_BF16", "AVX2_VNNI_2")


def float_type(asked: str) -> tuple[str, str]:
    """Return in which type a layer runs here that was asked for in one, and why.

    Parameters
    ----------
    asked : {"f32", "bf16"}
        bf16 becomes f32 on a processor without instructions for it.
    """
    isa = runtime.isa()
    if asked == "bf16" and not any(isa.has(level) for level in _BF16_LEVELS):
        return "f32", f"f32 in place of bf16, for which {isa.text()} has no instructions"
    return asked, f"{asked}, as asked for"


def float_types(floats: object, layers: tuple[str, ...]) -> dict[str, str]:
    """Return the types of layers that stay in floats.

    Parameters
    ----------
    floats : iterable of str, or mapping of str to {"f32", "bf16"}
        Names of layers, or patterns of names (``*``, ``?``, ``[seq]``); f32 unless said.
    layers : tuple of str
        All that there are.

    Raises
    ------
    ArgumentError
        A name that is no layer's, a pattern of none; another type.
    """
    if isinstance(floats, Mapping):
        types = named("floats", floats, str)
    else:
        types = dict.fromkeys(items("floats", floats, str), "f32")
    known: dict[str, str] = {}
    for name in sorted(types, key=layers.__contains__):  # what is named comes last, and wins
        dtype = types[name]
        alike = [name] if name in layers else [each for each in layers if fnmatchcase(each, name)]
        if not alike:
            raise ArgumentError("floats", shown(name), f"layers of {shown(layers)}")
        known |= dict.fromkeys(alike, one_of(f"floats[{shown(name)}]", dtype, FLOAT_TYPES))
    return known


def usual_wei_bits() -> int:
    """Return how many bits weights may have for this processor to add products exactly: 8 or 7."""
    return 8 if runtime.isa().has_vnni() else 7


class MixedCalibration(ABC, Generic[Source, Runs]):
    """A float model, the ranges of its tensors, and which of its layers are INT8.

    Parameters
    ----------
    source : Network or Graph
        The float model.
    layers : iterable of str
        Names of all layers that may become INT8, in order.
    ranges : mapping of str to (lo, hi)
        Of its float32 tensors, in their units.
    inputs, values : mapping of str to ndarray
        One batch, and what the float model makes of it: every tensor.
    floats : iterable of str, or mapping of str to {"f32", "bf16"}
        Layers that stay in floats; f32 unless said.
    quantizers : Quantizers
        What tensors become.

    Attributes
    ----------
    source, ranges, quantizers
        As given.
    floats : mapping of str to str
        Data types of the layers that stay in floats.
    layers : tuple of str
        Names of all layers, in order.
    """

    def __init__(
        self,
        source: Source,
        layers: Iterable[str],
        ranges: Mapping[str, tuple[float, float]],
        inputs: Values,
        values: Values,
        floats: Floats,
        quantizers: Quantizers,
    ) -> None:
        self.source = source
        self.layers = tuple(layers)
        self.ranges = MappingProxyType(dict(ranges))
        self.floats = MappingProxyType(float_types(floats, self.layers))
        self.quantizers = quantizers
        self._inputs, self._values = inputs, values

    @abstractmethod
    def _make(self) -> Runs:
        """Return what runs."""

    @abstractmethod
    def _outputs(self, runs: Runs) -> Values:
        """Return what it makes of the batch."""

    def with_floats(self, floats: Floats) -> Self:
        """Return the same with other layers in floats.

        Parameters
        ----------
        floats : iterable of str, or mapping of str to {"f32", "bf16"}
            Their names, or patterns of names; f32 unless said.
        """
        again: Callable[..., Self] = type(self)
        return again(*self._arguments(), floats, self.quantizers)

    def sensitivity(self) -> dict[str, float]:
        """Return the SQNR of the outputs if a layer alone is INT8, in dB, the worst layer first."""
        lost = {}
        for layer in self.layers:
            alone = self.with_floats(name for name in self.layers if name != layer)._make()
            outputs = self._outputs(alone)
            lost[layer] = min(quality(self._values[name], y).sqnr for name, y in outputs.items())
        return dict(sorted(lost.items(), key=lambda each: each[1]))

    def within(
        self,
        metric: Callable[[Any], float],
        least: float,
        *,
        dtype: str = "f32",
        tries: int | None = None,
    ) -> Self:
        """Turn back the fewest layers to floats with which a metric is good enough.

        Layers are tried together, the most sensitive first, as many as it takes; then each that can
        do without becomes INT8 again (`quantize.group_search`).

        Parameters
        ----------
        metric : callable
            From what runs, a `Network` or a `Model`, to a number that is higher where it is better:
            a share of right answers.
        least : float
            What it must reach.
        dtype : {"f32", "bf16"}
            Of the layers that are turned back.
        tries : int, optional
            How often the metric may be asked on the way, from 1 on; then the fewest layers found so
            far are turned back. None: about twice for each of them, and a few times more.

        Returns
        -------
        NetworkCalibration or Calibration
            That reaches it, and with any one of its layers less in floats does not (or was not
            tried).

        Raises
        ------
        ArgumentError
            Not even the float model does.
        """
        function("metric", metric)
        least = real("least", least, wide=True)
        one_of("dtype", dtype, FLOAT_TYPES)
        if tries is not None:
            whole("tries", tries, lo=1)
        if scored(metric, self._make()) >= least:
            return self

        def reached_with(group: Iterable[str]) -> float:
            return scored(metric, self._with(group, dtype)._make())

        reached = reached_with(name for name in self.layers if name not in self.floats)
        if reached < least:
            raise ArgumentError("least", f"{least:g}, where no layer is INT8", f"<= {reached:g}")
        order = [name for name in self.sensitivity() if name not in self.floats]
        group = smallest_group(
            order, lambda names: bool(names) and reached_with(names) >= least, tries
        )
        return self._with(group, dtype)

    def _with(self, names: Iterable[str], dtype: str) -> Self:
        """Return the same with more layers in floats."""
        return self.with_floats({**self.floats, **dict.fromkeys(names, dtype)})

    def notes(self) -> dict[str, str]:
        """Return what a configuration asks for and does not get, and what it leaves in floats."""
        noted = {f"config [{at}]": note for at, note in enumerate(self.quantizers.notes(), 1)}
        whys = self.quantizers.floats()
        return {**{name: why for name, why in whys.items() if name in self.floats}, **noted}

    def _sqnr(self, real: str, result: Array, q: QParams | None) -> str:
        """Return the cell of a table that compares a result, or its codes, with the real tensor."""
        if real not in self._values or real in self._inputs:
            return "-"
        result = result if q is None else q.dequantize(result)
        return f"{quality(self._values[real], result).sqnr:.1f}"

    def _arguments(self) -> tuple[Source, dict[str, tuple[float, float]], Values, Values]:
        return self.source, dict(self.ranges), self._inputs, self._values

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self._arguments(), dict(self.floats), self.quantizers)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.layers)} layers, {len(self.floats)} in floats>"


def table(
    heads: Iterable[str], rows: Sequence[Sequence[str]], whys: Mapping[str, str], *, times: bool
) -> str:
    """Return the table of a calibration, and below it why layers run in floats.

    Parameters
    ----------
    heads : iterable of str
        Of the columns before SQNR and, if measured, the times.
    rows : sequence of sequence of str
        Cells, a row for each node.
    whys : mapping of str to str
        Reasons, by the names of layers.
    times : bool
        Whether rows have times.
    """
    numbers = ("SQNR dB", "us", "FP32 us") if times else ("SQNR dB",)
    columns = [*map(Column, heads), *(Column(name, right=True) for name in numbers)]
    lines = [f"{name}: {why}" for name, why in whys.items()]
    return "\n".join([Table(columns, rows).text(), *lines])


def scored(metric: Callable[[Any], float], runs: object) -> float:
    """Return what a metric says of something that runs.

    Raises
    ------
    ArgumentError
        What it raises, and what is no number.
    """
    result = np.asarray(applied("metric", metric, runs))
    if result.size != 1:
        raise ArgumentError("metric", f"a result of shape {result.shape}", "a number")
    return real("metric", result.item(), wide=True, infinite=True)
