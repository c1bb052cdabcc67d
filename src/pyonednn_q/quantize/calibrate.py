"""From a network and sample batches to the range of each of its tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from pyonednn_q.argument import count, each, flag, function, instance, named, one_of, whole
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.quantize.distribution import DISTRIBUTIONS, Distribution, checked_percent
from pyonednn_q.quantize.estimator import Estimator
from pyonednn_q.quantize.sample_extremes import AGGREGATES, SampleExtremes
from pyonednn_q.report.progress import counted
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["ESTIMATORS", "collect", "estimator", "merged"]

ESTIMATORS = {**AGGREGATES, **DISTRIBUTIONS}
"""Kinds of estimators by name, and what range each finds."""

Batch = TypeVar("Batch")


def estimator(
    kind: str = "min_max",
    *,
    axis: int | None = None,
    symmetric: bool = False,
    by_batch: bool = False,
    percent: tuple[float, float] | None = None,
    rate: float = 0.01,
    outliers: float = 0.01,
    bits: int = 8,
    precision: int = 12,
) -> Estimator:
    """Return a new estimator.

    Parameters
    ----------
    kind : str
        One of `ESTIMATORS`.
    axis : int, optional
        Dimension of the channels; each has its own range. None: one range for the tensor.
    symmetric : bool
        Whether to find (-t, t), or (0, t) if no value (or mean, or median) is below 0. Kinds that
        use each value then use magnitudes.
    by_batch : bool
        Whether a batch is one sample, as for weights.
    percent : (float, float), optional
        Percentiles of "percentile", by default (0.01, 99.99), and of "mean_percentile", by default
        (0.1, 99.9).
    rate : float
        Rate of "moving_average".
    outliers : float
        Share at each end that the kinds without outliers leave out.
    bits : int
        Bits of the codes, 2 to 16, whose error "histogram", "kl", "mse", "octav" and "search"
        estimate.
    precision : int
        Significant bits of each value that the kinds of `DISTRIBUTIONS` keep, from "percentile" to
        "search", 4 to 53: quantiles are right within 2^-precision of themselves (of 2.2e-308 where
        they are below that).

    Raises
    ------
    ArgumentError
        Naming the argument.

    Notes
    -----
    The min-max, mean, median and percentile kinds of `AGGREGATES` keep two numbers for each sample.
    Their results do not depend on how the data is split into batches or merged. "moving_average"
    depends on the order: merging appends the other's samples. The kinds of `DISTRIBUTIONS` do not
    depend on it either; their values are rounded to `precision` bits. Sources: NNCF's range
    initialisers, torch.ao's observers, TensorRT's calibration, OCTAV.

    Examples
    --------
    >>> found = estimator("mean_min_max")
    >>> found.update([[-1.0, 2.0], [-3.0, 4.0]])
    >>> found.range()
    (array(-2.), array(3.))
    """
    one_of("kind", kind, tuple(ESTIMATORS))
    if kind in AGGREGATES:
        ends = (0.1, 99.9) if percent is None else checked_percent(percent)
        return SampleExtremes(
            kind,
            axis=axis,
            symmetric=symmetric,
            by_batch=by_batch,
            rate=rate,
            percent=ends,
            outliers=outliers,
        )
    ends = (0.01, 99.99) if percent is None else checked_percent(percent)
    return Distribution(
        kind,
        axis=axis,
        symmetric=symmetric,
        by_batch=by_batch,
        percent=ends,
        bits=bits,
        precision=precision,
    )


def collect(
    run: Callable[[Batch], Mapping[str, ArrayLike]],
    batches: Iterable[Batch],
    estimators: Mapping[str, Estimator] | Callable[[], Estimator] = estimator,
    *,
    limit: int | None = None,
    progress: bool = True,
) -> dict[str, Estimator]:
    """Return estimators of the tensors of a network, in one pass over sample batches.

    Parameters
    ----------
    run : callable
        Function from a batch to tensors by name: anything that NumPy takes, or torch's tensors on
        the CPU.
    batches : iterable
        Batches of anything: arrays, a PyTorch loader, a generator. It is read once.
    estimators : mapping of str to Estimator, or callable
        Estimators of the tensors to observe, by name; they are changed in place. Or a function that
        makes one for every tensor that `run` returns.
    limit : int, optional
        Largest number of batches to read.
    progress : bool
        Whether to show progress on a terminal (standard error), from one second on.

    Raises
    ------
    ArgumentError
        No batches; a tensor that `run` did not return; values that are not finite, with the name of
        their tensor.

    Examples
    --------
    >>> import numpy as np
    >>> images = (np.full((2, 3), float(i)) for i in range(4))
    >>> found = collect(lambda x: {"x": x, "y": x - 5.0}, images)
    >>> [float(end) for end in found["y"].range()]
    [-5.0, -2.0]
    """
    function("run", run)
    flag("progress", progress)
    most = None if limit is None else whole("limit", limit, lo=1)
    if callable(estimators):
        make = estimators
        return gathered(run, batches, lambda _: made_by(make), limit=most, progress=progress)
    states = named("estimators", estimators, Estimator)
    if not states:
        raise ArgumentError("estimators", "no names", "a function, or an estimator by name")

    def wanted(batch: Batch) -> Mapping[str, ArrayLike]:
        tensors = named("run", run(batch), object)
        for name in states:
            if name not in tensors:
                raise ArgumentError("run", f"no tensor {shown(name)}", "every one of `estimators`")
        return {name: tensors[name] for name in states}

    return gathered(wanted, batches, states.__getitem__, limit=most, progress=progress)


def gathered(
    run: Callable[[Batch], Mapping[str, ArrayLike]],
    batches: Iterable[Batch],
    estimator_of: Callable[[str], Estimator],
    *,
    limit: int | None = None,
    progress: bool = True,
) -> dict[str, Estimator]:
    """Return estimators of all tensors that batches have; not each of them needs to have all.

    Parameters
    ----------
    run, batches, limit, progress
        Arguments of `collect`.
    estimator_of : callable
        Function from the name of a tensor to its estimator, called once.
    """
    states: dict[str, Estimator] = {}
    seen = 0
    total = min(filter(None, (limit, count("batches", batches))), default=None)
    read = islice(each("batches", batches), limit)
    for batch in counted(read, "collect", total) if progress else read:
        try:
            tensors = run(batch)
        except Error:
            raise
        except Exception as error:
            got = f"a function that raises {type(error).__name__}"
            raise ArgumentError("run", got, "one that takes a batch") from error
        if not isinstance(tensors, Mapping):
            raise ArgumentError("run", f"a result {shown(tensors)}", "tensors by name")
        for name, tensor in tensors.items():
            if name not in states:
                states[name] = estimator_of(name)
            _updated(name, states[name], tensor)
        seen += 1
    if not seen:
        raise ArgumentError("batches", "none", "at least one")
    return states


def merged(first: Mapping[str, Estimator], second: Mapping[str, Estimator]) -> dict[str, Estimator]:
    """Return the joined states of two parts of the data, as `collect` over both gives them.

    Parameters
    ----------
    first, second : mapping of str to Estimator
        Results of `collect`; an estimator that only one of them has is kept.

    Raises
    ------
    ArgumentError
        Estimators of one tensor differ in kind or parameters.
    """
    states = named("first", first, Estimator)
    for name, state in named("second", second, Estimator).items():
        states[name] = states[name].merge(state) if name in states else state
    return states


def made_by(estimators: Callable[[], Estimator]) -> Estimator:
    """Return an estimator that a caller's function makes.

    Raises
    ------
    ArgumentError
        An exception in the function, or a result that is no estimator.
    """
    try:
        state = estimators()
    except Error:
        raise
    except Exception as error:
        got = f"a function that raises {type(error).__name__}"
        raise ArgumentError("estimators", got, "one that makes an estimator") from error
    instance("estimators()", state, Estimator)
    return state


def _updated(name: str, state: Estimator, tensor: Any) -> None:  # noqa: ANN401
    detach = getattr(tensor, "detach", None)  # torch's gradients have no NumPy
    try:
        state.update(detach() if callable(detach) else tensor)
    except ArgumentError as error:
        argument = f"{name}: {error.argument}"
        raise type(error)(argument, error.got, error.wanted) from None
