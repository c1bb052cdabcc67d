"""load: a model of torch as a graph, by torch's own exporters, in memory."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from onnxscript import opset20 as op
from torch.ao.quantization.fx import _decomposed  # noqa: F401 - it registers PT2E's operators
from torch.export import Dim, ExportedProgram, ShapesCollection
from torch.utils import _pytree

from pyonednn_q.argument import instance
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph.graph import Graph
from pyonednn_q.onnx.model_reader import load as read
from pyonednn_q.onnx.shape_inference import with_tensors
from pyonednn_q.shown import shortened

__all__ = ["load"]

_BATCH = "batch"
_CODES = {2: (0, 255), 3: (-128, 127)}  # of uint8 and int8, by ONNX's numbers of types


def load(
    model: Any,  # noqa: ANN401 - torch's types are not looked at
    example: Any = None,  # noqa: ANN401
    *,
    dynamic_shapes: Any = None,  # noqa: ANN401
) -> Graph:
    """Read any model of torch: what `torch.export` takes, of floats or as torchao's PT2E makes it.

    Parameters
    ----------
    model : torch.nn.Module or torch.export.ExportedProgram
        A module is read in its evaluation mode, and stays as it is. Quantizers of PT2E become
        QuantizeLinear and DequantizeLinear of the same scales and zero points.
    example : Tensor, sequence of Tensor, or mapping of str to Tensor
        Inputs of a module in order, or by name. None for a program.
    dynamic_shapes : optional
        Lengths that stay open, as `torch.export.export` takes them; ``{}``: none. None: the first
        of each tensor, the batch, unless the model itself fixes it. None of a program.

    Returns
    -------
    Graph
        Graph that `pyonednn_q.load` runs, and that `pyonednn_q.calibrate` makes INT8 if it is of
        floats.

    Raises
    ------
    ArgumentError
        A model that `torch.export` or its ONNX exporter does not take; both say why.
    LibraryError
        One of the packages torch, onnx and onnxscript is not installed.

    Examples
    --------
    >>> import torch
    >>> from pyonednn_q.torch import load
    >>> layers = torch.nn.Conv2d(1, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 2)
    >>> load(torch.nn.Sequential(*layers), torch.ones(1, 1, 8, 8))
    <Graph 3 nodes, 5 constants, opset 20; input: float32[batch, 1, 8, 8] -> linear: float32[?]>
    """
    instance("model", model, torch.nn.Module, ExportedProgram)
    if isinstance(model, ExportedProgram):
        if example is not None or dynamic_shapes is not None:
            raise ArgumentError("example", "one beside a program", "none: a program has its own")
        program = model
    else:
        program = _exported(model, example, dynamic_shapes)
    with _quiet():
        try:
            onnx_program = torch.onnx.export(
                program, dynamo=True, verbose=False, custom_translation_table=_translations()
            )
        except Exception as error:  # of torch.onnx, whatever it is
            raise _refused(error, "a program that torch.onnx.export takes") from error
    return _with_named_batch(read(onnx_program.model_proto))


def _translations() -> dict[Any, Any]:
    """Return what torch's exporter, of onnxscript 0.7, does not do with PT2E's operators."""
    return {torch.ops.quantized_decomposed.quantize_per_tensor.default: _quantize_per_tensor}


def _quantize_per_tensor(
    input: Any,  # noqa: A002, ANN401
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: int,
) -> Any:  # noqa: ANN401
    """Write a quantizer whose codes end before their type does, as those of 7 bits, with a Clip.

    The exporter lets such codes go to the ends of the type, which torch does not. The parameters
    have the names that torch passes them by.
    """
    if (quant_min, quant_max) != _CODES.get(dtype, (quant_min, quant_max)):
        ends = (float((end - zero_point) * scale) for end in (quant_min, quant_max))
        input = op.Clip(input, *(op.Constant(value_float=end) for end in ends))  # noqa: A001
    zero = op.Cast(op.Constant(value_int=zero_point), to=dtype)
    return op.QuantizeLinear(input, op.Constant(value_float=scale), zero)


def _exported(model: Any, example: Any, dynamic_shapes: Any) -> Any:  # noqa: ANN401
    if example is None:
        raise ArgumentError("example", "None", "what the model is called with")
    by_name = isinstance(example, Mapping)
    inputs: Any = dict(example) if by_name else example
    if not isinstance(inputs, (dict, tuple, list)):
        inputs = (inputs,)
    if dynamic_shapes is None:
        inputs, dynamic_shapes = _with_open_batch(inputs)
    args, kwargs = ((), inputs) if by_name else (tuple(inputs), None)
    was_training = {module: module.training for module in model.modules()}
    with _quiet(), torch.no_grad():
        try:
            _to_eval(model)
            return torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes or None)
        except Exception as error:  # of torch.export, whatever it is
            raise _refused(error, "a model that torch.export takes") from error
        finally:
            for module, mode in was_training.items():
                module.training = mode


def _to_eval(model: Any) -> None:  # noqa: ANN401
    try:
        model.eval()
    except NotImplementedError:  # of modules that torch.export made: they have one mode
        return


def _with_open_batch(inputs: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return inputs of which torch.export learns that batches differ, and which lengths are open.

    It takes a length of 1 for one that is always 1: a batch of one is given twice.
    """
    batches = [each for each in _pytree.tree_leaves(inputs) if _has_batch(each)]
    if all(each.shape[0] == 1 for each in batches):
        inputs = _pytree.tree_map(lambda x: torch.cat([x, x]) if _has_batch(x) else x, inputs)
    lengths = ShapesCollection()
    for each in filter(_has_batch, _pytree.tree_leaves(inputs)):
        lengths[each] = {0: Dim.AUTO}
    return inputs, lengths


def _has_batch(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, torch.Tensor) and value.ndim > 0


def _with_named_batch(graph: Graph) -> Graph:
    """Name the one length that is open, if it is the first of inputs, as what it is."""
    names = {each for dims in graph.symbols.values() for each in dims if isinstance(each, str)}
    if len(names) != 1 or any(isinstance(n, str) for d in graph.symbols.values() for n in d[1:]):
        return graph
    inputs = {
        name: replace(each, lengths=(_BATCH, *each.lengths[1:])) if each.lengths else each
        for name, each in graph.inputs.items()
    }
    return with_tensors(replace(graph, inputs=inputs))


def _refused(error: Exception, wanted: str) -> ArgumentError:
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    return ArgumentError("model", shortened(f"{type(error).__name__}: {lines[0]}", 250), wanted)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what torch's exporter says of torch's own code from a user's screen."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", "The tensor attributes")  # that nn.LSTM sets itself
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)
