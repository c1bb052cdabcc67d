"""A model's file, made ready to run, and arrays for its inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q import onnx
from pyonednn_q.errors import ArgumentError
from pyonednn_q.inspection.layer_file import named_arrays
from pyonednn_q.models.model_arguments import dims_of
from pyonednn_q.onnx.choices import Bindings
from pyonednn_q.onnx.fused_node import is_fused
from pyonednn_q.onnx.model_reader import load_with_options
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from pyonednn_q.graph.graph import Graph, Value

__all__ = ["ModelFile", "inputs_of", "read"]

Array = np.ndarray[Any, Any]
_MOST_BYTES = 1 << 32  # of the inputs
_CODES = ("uint8", "int8")
_USUAL = {"exact_rounding": False, "saturation": "f32"}  # on the command line


class ModelFile(NamedTuple):
    """A model as it was read, and what runs of it.

    Attributes
    ----------
    path : Path
        Its file.
    graph : Graph
        Its nodes.
    model : Model
        The same, fused and prepared.
    """

    path: Path
    graph: Graph
    model: onnx.Model

    def chosen(self, inputs: Mapping[str, Array]) -> ModelFile:
        """Return the same with the branches that inputs choose, where they choose some.

        Parameters
        ----------
        inputs : mapping of str to ndarray
            All inputs of a call.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the input.
        """
        if is_fused(self.model.graph):
            return self
        self.model.run(inputs)
        _, known = Bindings(self.graph).of(inputs)
        return ModelFile(self.path, known(), self.model.bound())


def read(
    path: Path,
    options: argparse.Namespace,
    arrays: Mapping[str, Array] | None = None,
    *,
    as_written: bool = False,
) -> ModelFile:
    """Read, fuse and prepare a model.

    Parameters
    ----------
    path : Path
        Its file.
    options : Namespace
        Options of the command line, with `dims`, `exact_rounding` and `saturation`.
    arrays : mapping of str to ndarray, optional
        Inputs, whose dims are those of the model where it leaves them open.
    as_written : bool
        Whether it runs as other runtimes have it: with a rounding at each of its quantizers.
        Else as `load` has it.

    Raises
    ------
    ArgumentError
        Lengths of an input that neither says.
    Error
        Not a model that can be read or run: see `onnx.load` and `onnx.Model`.
    """
    dims = {name: array.shape for name, array in (arrays or {}).items()}
    graph, stored = load_with_options(path, {**dims, **dims_of(options.dims)})
    for name, symbols in graph.symbols.items():
        lengths = "x".join(str(each) if isinstance(each, int) else "N" for each in symbols)
        got = f"nothing for {shown(name)}, whose lengths are open"
        raise ArgumentError("--dims", got, f"--dims {shown(name)[1:-1]}={lengths}")
    told = {"exact_rounding": options.exact_rounding, "saturation": options.saturation}
    if not as_written:
        said = {name: each for name, each in told.items() if each != _USUAL[name]}
        told = {**stored, **said}
    fused = onnx.fuse(graph, **told)
    return ModelFile(path, graph, onnx.Model(fused))


def arrays_of(file: Path) -> dict[str, Array]:
    """Return the arrays of a file by name; no more than 4 GiB of them."""
    arrays = named_arrays(file, max_bytes=_MOST_BYTES)
    if not arrays:
        raise ArgumentError(str(file), "no arrays", "the model's inputs by name")
    return arrays


def inputs_of(
    inputs: Mapping[str, Value], arrays: Mapping[str, Array] | None, seed: int
) -> dict[str, Array]:
    """Return arrays for a model's inputs: those of a file, or random ones.

    Random floats are normal with deviation 1, u8 and s8 uniform over all codes, bool either; other
    integers, which may be indices, are 0.

    Raises
    ------
    ArgumentError
        A file that has other names than the model.
    """
    if arrays is not None:
        if set(arrays) != set(inputs):
            raise ArgumentError("--input", shown(sorted(arrays)), shown(sorted(inputs)))
        return dict(arrays)
    rng = np.random.default_rng(seed)
    return {name: _random(rng, name, info) for name, info in inputs.items()}


def _random(rng: np.random.Generator, name: str, info: Value) -> Array:
    assert info.dims is not None  # of an input they are always known
    if info.dtype in {"float16", "float32", "float64"}:
        return rng.normal(0, 1, info.dims).astype(info.dtype)
    if info.dtype in _CODES:
        codes = np.iinfo(info.dtype)
        return rng.integers(codes.min, codes.max + 1, info.dims).astype(info.dtype)
    if info.dtype == "bool":
        return rng.integers(0, 2, info.dims).astype(np.bool_)
    if info.dtype.startswith(("int", "uint")) and hasattr(np, info.dtype):
        return np.zeros(info.dims, info.dtype)
    raise ArgumentError("--input", f"nothing, for {shown(name)} of {info.dtype}", "a file with it")
