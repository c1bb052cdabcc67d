"""Options of a calibration, and the decisions that follow from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from pyonednn_q.argument import applied, each, function, named, one_of, real
from pyonednn_q.errors import ArgumentError
from pyonednn_q.onnx.float_types import Floats, Values, float_types
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.quantize.calibrate import ESTIMATORS, estimator, gathered, made_by
from pyonednn_q.quantize.config import QuantizationConfig
from pyonednn_q.quantize.config_reader import read_config
from pyonednn_q.quantize.quantizers import Quantizers
from pyonednn_q.quantize.weight_widths import Traces, WeighedLayer, with_widths
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.quantize.estimator import Estimator

ROUNDED = "rounded"
PASSES = ("renormalized", "equalized", "smoothed", ROUNDED)
_NOUGHT = np.zeros(1, np.float32)

Config: TypeAlias = "Mapping[str, Any] | str | os.PathLike[str] | QuantizationConfig"
Decide: TypeAlias = "Callable[[QuantizationConfig | None], Quantizers]"


class CalibrationOptions(NamedTuple):
    """Options of a caller.

    Attributes
    ----------
    config : QuantizationConfig or None
        Configuration; None: `estimators` and `wei_bits` decide.
    estimators : callable
        Function that makes an estimator for a tensor.
    floats : iterable of str, or mapping of str to {"f32", "bf16"}
        Layers that stay in floats.
    wei_bits : int
        Width of weights.
    traces : mapping of str to float, callable or None
        Traces for a configuration with HAWQ.
    metric : callable or None
        Metric for a configuration with AutoQ.
    bias_correction : bool
        Whether biases take back what rounding of weights adds.
    passes : frozenset of str
        Passes that change the model before.
    """

    config: QuantizationConfig | None
    estimators: Callable[[], Estimator]
    floats: Floats
    wei_bits: int
    traces: Traces | None
    metric: Callable[[Any], float] | None
    bias_correction: bool = False
    passes: frozenset[str] = frozenset()

    def deciding(
        self, layers: tuple[str, ...], readers: Mapping[str, str], inputs: frozenset[str]
    ) -> Decide:
        """Return what makes Quantizers of a configuration, for the layers of a network.

        Parameters
        ----------
        layers : tuple of str
            Names of all layers, in order.
        readers : mapping of str to str
            Layers by the tensors that they read.
        inputs : frozenset of str
            Names of the network's inputs.
        """

        def decide(config: QuantizationConfig | None) -> Quantizers:
            if config is None:
                return Quantizers(self.wei_bits)
            return Quantizers.of(config, self.wei_bits, layers, readers, inputs)

        return decide

    def staying(self, quantizers: Quantizers, layers: tuple[str, ...]) -> dict[str, str]:
        """Return the layers that stay in floats, by the configuration or the caller."""
        left = dict.fromkeys(quantizers.floats(), "f32")
        return {**left, **float_types(self.floats, layers)}

    def settled(
        self,
        layers: Mapping[str, WeighedLayer],
        calibrated: Callable[[QuantizationConfig], object],
    ) -> QuantizationConfig | None:
        """Return the configuration with a width for each layer.

        Parameters
        ----------
        layers : mapping of str to WeighedLayer
            Layers that become INT8.
        calibrated : callable
            Function from a configuration with fixed widths to a model.
        """
        if self.config is None:
            return None
        metric = self.metric
        if metric is None:
            return with_widths(self.config, layers, self.traces, None)
        function("metric", metric)

        def score(config: QuantizationConfig) -> float:
            return scored(metric, calibrated(config))

        return with_widths(self.config, layers, self.traces, score)


def estimators_of(estimators: str | Callable[[], Estimator]) -> Callable[[], Estimator]:
    """Return what makes estimators, of a kind's name or of itself.

    Raises
    ------
    ArgumentError
        Another name; what cannot be called.
    """
    if not isinstance(estimators, str):
        function("estimators", estimators)
        return estimators
    return partial(estimator, one_of("estimators", estimators, tuple(ESTIMATORS)))


def passes_of(passes: str | Iterable[str]) -> frozenset[str]:
    """Return the passes of a name, or of several.

    Raises
    ------
    ArgumentError
        Another name.
    """
    names = [passes] if isinstance(passes, str) else each("passes", passes)
    return frozenset(one_of("passes", name, PASSES) for name in names)


def known_config(
    config: Config | None, *, estimators: bool, wei_bits: int | None
) -> QuantizationConfig | None:
    """Return what a configuration says, which nothing else may say as well.

    Parameters
    ----------
    config : mapping, path of a JSON file, QuantizationConfig or None
        Configuration, or None.
    estimators : bool
        Whether estimators were given.
    wei_bits : int or None
        The width of weights that was given.

    Raises
    ------
    ArgumentError
        Both; what `read_config` refuses.
    """
    if config is None:
        return None
    for name, is_given in (("estimators", estimators), ("wei_bits", wei_bits is not None)):
        if is_given:
            raise ArgumentError(name, "one beside config", "none: the configuration decides")
    return config if isinstance(config, QuantizationConfig) else read_config(config)


def found_ranges(
    run: Callable[[Any], Values],
    batches: Iterable[Any],
    quantizers: Callable[[], Quantizers],
    estimators: Callable[[], Estimator],
) -> dict[str, tuple[float, float]]:
    """Return the ranges of tensors, in one pass over batches; none for values that are not finite.

    Parameters
    ----------
    run : callable
        Function from a batch to tensors; batches may have different tensors.
    batches : iterable
        Samples along dimension 0 of each tensor.
    quantizers : callable
        Gives what knows the estimator of a tensor, and how many samples to read, where it was told.
    estimators : callable
        Function that makes further estimators.
    """
    endless: set[str] = set()

    def finite(batch: Any) -> Values:  # noqa: ANN401
        values = run(batch)
        # A sum is finite where all are, but for those near float32's ends; and read once.
        with np.errstate(all="ignore"):
            doubtful = (n for n in values if not np.isfinite(values[n].sum()))
            endless.update(n for n in doubtful if not np.isfinite(values[n]).all())
        return {name: _NOUGHT if name in endless else each for name, each in values.items()}

    def estimator_of(name: str) -> Estimator:
        return quantizers().estimator(name) or made_by(estimators)

    most = quantizers().samples()
    read = batches if most is None else first_batches(batches, most)
    states = gathered(finite, read, estimator_of, progress=False)
    ends = {name: state.range() for name, state in states.items() if name not in endless}
    known = {name: (float(lo), float(hi)) for name, (lo, hi) in ends.items()}
    return {**dict.fromkeys(endless, (-inf, inf)), **known}


def named_inputs(names: tuple[str, ...], batch: object) -> Values:
    """Return a batch as arrays by the names of a network's inputs.

    Parameters
    ----------
    names : tuple of str
        Names of the inputs.
    batch : mapping of str to array_like, sequence of array_like, or array_like
        Inputs by name, in order, or the input, where there is one. Other items, such as labels, are
        ignored.

    Raises
    ------
    ArgumentError
        Inputs that are missing.
    """
    known = _by_name(names, batch)
    left = [name for name in names if name not in known]
    if left:
        raise ArgumentError("batches", shown(sorted(known)), shown(sorted(names)))
    arrays = {name: as_array(f"batches[{shown(name)}]", known[name]) for name in names}
    return {name: np.asarray(array, order="C") for name, array in arrays.items()}


def _by_name(names: tuple[str, ...], batch: object) -> dict[str, Any]:
    if isinstance(batch, Mapping):
        return named("batches", batch, object)
    arrays = batch if isinstance(batch, Sequence) and not hasattr(batch, "__dlpack__") else [batch]
    if len(arrays) < len(names):
        raise ArgumentError("batches", f"{len(arrays)} arrays", f"inputs: {shown(names)}")
    return dict(zip(names, arrays, strict=False))


def first_batches(batches: Iterable[Any], most: int) -> Iterator[Any]:
    """Return the batches that hold the first samples.

    Parameters
    ----------
    batches : iterable
        Batches, of samples along dimension 0.
    most : int
        Largest number of samples.
    """
    seen = 0
    for batch in each("batches", batches):
        yield batch
        arrays: Sequence[Any] = batch if isinstance(batch, (tuple, list)) else [batch]
        arrays = list(batch.values()) if isinstance(batch, Mapping) else arrays
        seen += max((np.shape(array)[0] for array in arrays if np.ndim(array)), default=1)
        if seen >= most:
            return


def scored(metric: Callable[[Any], float], runs: object) -> float:
    """Return the score of a metric for a model.

    Raises
    ------
    ArgumentError
        An exception in the metric, or a result that is no number.
    """
    result = np.asarray(applied("metric", metric, runs))
    if result.size != 1:
        raise ArgumentError("metric", f"a result of shape {result.shape}", "a number")
    return real("metric", result.item(), wide=True, infinite=True)
