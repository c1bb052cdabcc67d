"""quantize: a float model of torch and batches of a data loader to an INT8 network."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch.export import ExportedProgram

from pyonednn_q.argument import each, instance
from pyonednn_q.errors import ArgumentError
from pyonednn_q.onnx.calibrator import calibrate
from pyonednn_q.shown import shown
from pyonednn_q.torch.program_reader import load

if TYPE_CHECKING:
    from pyonednn_q.onnx.calibration import Calibration

__all__ = ["quantize"]


def quantize(
    model: Any,  # noqa: ANN401 - torch's types are not looked at
    batches: Iterable[Any],
    *,
    example: Any = None,  # noqa: ANN401
    dynamic_shapes: Any = None,  # noqa: ANN401
    **options: Any,  # noqa: ANN401
) -> Calibration:
    """Read a float model of torch and make an INT8 network of it: `load`, then `calibrate`.

    Parameters
    ----------
    model : torch.nn.Module or torch.export.ExportedProgram
        Model that `load` takes: with branches, attention, recurrences, whatever `torch.export`
        takes.
    batches : iterable of (Tensor, sequence of Tensor, or mapping of str to Tensor)
        Batches as data loaders give them. In a sequence such as (x, y), only the inputs are read
        that the model's `forward` needs; in a mapping, only those that `forward` has a parameter
        for. Read once.
    example : Tensor, sequence of Tensor, or mapping of str to Tensor, optional
        Inputs of a call of the model, where batches hold more than that: labels by a name that
        `forward` takes as well. None: found in the first batch, or model is a program.
    dynamic_shapes : optional
        Option of `load`.
    **options
        Options of `pyonednn_q.calibrate`: estimators, floats, config and others.

    Returns
    -------
    Calibration
        Calibration whose `model()` runs in INT8 and takes tensors of any batch; `save` writes it as
        ONNX.

    Raises
    ------
    ArgumentError
        Errors of `load` and `calibrate`; a first batch that `forward` has no use for.
    LibraryError
        One of the packages torch, onnx and onnxscript is not installed.

    Examples
    --------
    >>> import torch
    >>> from pyonednn_q.torch import quantize
    >>> layers = torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten()
    >>> images = torch.ones(2, 1, 8, 8)
    >>> quantize(torch.nn.Sequential(*layers), [(images, torch.zeros(2))]).layers
    ('node_conv2d',)
    """
    instance("model", model, torch.nn.Module, ExportedProgram)
    samples = each("batches", batches)
    if example is None and not isinstance(model, ExportedProgram):
        try:
            first = next(samples)
        except StopIteration:
            raise ArgumentError("batches", "none", "one at least") from None
        example = _inputs(model, first)
        samples = chain([first], samples)
    graph = load(model, example, dynamic_shapes=dynamic_shapes)
    return calibrate(graph, samples, **options)


def _inputs(model: Any, batch: Any) -> Any:  # noqa: ANN401
    """Return the inputs of the model in a batch."""
    kinds = inspect.Parameter
    parameters = inspect.signature(model.forward).parameters.values()
    if isinstance(batch, Mapping):
        if any(each.kind is kinds.VAR_KEYWORD for each in parameters):
            return dict(batch)
        names = {each.name for each in parameters}
        known = {name: value for name, value in batch.items() if name in names}
        if not known:
            raise ArgumentError("batches", shown(sorted(batch)), f"some of {shown(sorted(names))}")
        return known
    if isinstance(batch, torch.Tensor) or not isinstance(batch, Sequence):
        return (batch,)
    if any(each.kind is kinds.VAR_POSITIONAL for each in parameters):
        return tuple(batch)
    places = (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    needed = [each for each in parameters if each.kind in places and each.default is kinds.empty]
    if len(batch) < len(needed):
        wanted = f"inputs: {shown([each.name for each in needed])}"
        raise ArgumentError("batches", f"{len(batch)} tensors", wanted)
    return tuple(batch[: max(1, len(needed))])
