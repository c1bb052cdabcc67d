"""A model's file, made ready to run, and arrays for its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q import onnx
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, Error, ShapeError, UnsupportedError
from pyonednn_q.inspection.layer_file import named_arrays
from pyonednn_q.onnx.choices import Bindings
from pyonednn_q.onnx.float_form import CODES
from pyonednn_q.onnx.fused_node import is_fused
from pyonednn_q.onnx.model_reader import load_with_options
from pyonednn_q.onnx.open_dims import refusal_of_lengths
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import Graph, Value

__all__ = ["ModelFile", "inputs_of", "read"]

_MOST_BYTES = 1 << 32  # of the inputs
_USUAL = {"exact_rounding": False, "saturation": "f32"}  # on the command line


class ModelFile(NamedTuple):
    """A model as it was read, and what runs of it.

    Attributes
    ----------
    path : Path
        File of the model.
    graph : Graph
        Graph of the model.
    model : Model
        The same, fused and prepared.
    told : mapping of str to str
        Inputs whose lengths the command line says, and the option that does.
    """

    path: Path
    graph: Graph
    model: onnx.Model
    told: Mapping[str, str] = MappingProxyType({})

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return the outputs; lengths that a node does not take are the input's fault.

        Parameters
        ----------
        inputs : mapping of str to ndarray
            All inputs.

        Raises
        ------
        Error
            Errors of `onnx.Model.run`.
        """
        try:
            return self.model.run(inputs)
        except (ShapeError, UnsupportedError) as error:
            is_of_input = isinstance(error, ShapeError) and error.argument.startswith("inputs")
            cause = error.__cause__ if is_of_input else error  # of a node
            if not self.told or not isinstance(cause, Error):
                raise
            dims = {name: inputs[name].shape for name in self.told}
            got = ", ".join(f"{name}={'x'.join(map(str, each))}" for name, each in dims.items())
            option, wanted = next(iter(self.told.values())), refusal_of_lengths(dims, cause).wanted
            raise ShapeError(option, got, wanted) from error

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
        self.run(inputs)
        _, known = Bindings(self.graph).of(inputs)
        return ModelFile(self.path, known(), self.model.bound(), self.told)


def read(
    path: Path,
    arrays: Mapping[str, Array] | None = None,
    *,
    dims: Mapping[str, Any],
    exact_rounding: bool,
    saturation: str,
    as_written: bool = False,
) -> ModelFile:
    """Read, fuse and prepare a model.

    Parameters
    ----------
    path : Path
        File of the model.
    arrays : mapping of str to ndarray, optional
        Inputs, whose dims are those of the model where it leaves them open.
    dims : mapping of str to int or tuple of int
        Lengths that the model leaves open, by symbol or input.
    exact_rounding : bool
        Whether to round before a zero point is added.
    saturation : str
        One of `SATURATIONS`.
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
    shapes = {name: array.shape for name, array in (arrays or {}).items()}
    try:
        graph, stored = load_with_options(path, {**shapes, **dims})
    except ArgumentError as error:
        if error.argument == "dims" and error.got in map(shown, shapes):
            raise ArgumentError("--input", error.got, error.wanted) from None
        for name in shapes.keys() - dims.keys():
            if error.argument == f"dims[{shown(name)}]":
                argument = f"--input {name}"
                raise type(error)(argument, error.got, error.wanted) from None
        raise
    if graph.symbols:
        wanted = [
            f"--dims {shown(name)[1:-1]}="
            + "x".join(str(each) if isinstance(each, int) else "N" for each in symbols)
            for name, symbols in graph.symbols.items()
        ]
        names = ", ".join(map(shown, graph.symbols))
        got = f"nothing for {names}, whose lengths are open"
        raise ArgumentError("--dims", got, " ".join(wanted))
    told: dict[str, Any] = {"exact_rounding": exact_rounding, "saturation": saturation}
    if not as_written:
        said = {name: each for name, each in told.items() if each != _USUAL[name]}
        told = {**stored, **said}
    told_by = dict.fromkeys(graph.inputs, "--dims" if dims else "--input")
    fused = onnx.fuse(graph, **told)
    return ModelFile(path, graph, onnx.Model(fused), told_by if dims or shapes else {})


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
    if info.dtype in CODES:
        codes = np.iinfo(info.dtype)
        return rng.integers(codes.min, codes.max + 1, info.dims).astype(info.dtype)
    if info.dtype == "bool":
        return rng.integers(0, 2, info.dims).astype(np.bool_)
    if info.dtype.startswith(("int", "uint")) and hasattr(np, info.dtype):
        return np.zeros(info.dims, info.dtype)
    raise ArgumentError("--input", f"nothing, for {shown(name)} of {info.dtype}", "a file with it")
