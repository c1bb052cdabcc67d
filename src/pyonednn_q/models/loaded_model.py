"""load: one door to trained models. What it returns is called as operators are, and tells itself.

A model runs as `onnx.Model` does, which it is; what needs the commands' reports stands here, above
the room that runs it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyonednn_q.argument import named
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph.graph import Graph
from pyonednn_q.models.model_file import ModelFile, inputs_of
from pyonednn_q.onnx.calibration import Calibration
from pyonednn_q.onnx.fusion import fuse
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.model_reader import load_with_options
from pyonednn_q.onnx.model_writer import save
from pyonednn_q.onnx.open_dims import bound
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Iterable


__all__ = ["LoadedModel", "load"]

_NAMELESS = Path("model")
_NONE: Mapping[str, Any] = MappingProxyType({})


def load(
    model: Any,  # noqa: ANN401 - a path, bytes, a ModelProto, a Graph or a Calibration
    *,
    dims: Mapping[str, Any] | None = None,
    exact_rounding: bool | None = None,
    keep_rounding: bool | None = None,
    saturation: str | None = None,
    blocks: str | None = None,
) -> LoadedModel:
    """Return a trained model, ready to be called.

    Parameters
    ----------
    model : path, bytes, ModelProto, Graph or Calibration
        An ONNX model, of floats or quantized; or what `calibrate` made of one.
    dims : mapping, optional
        Lengths that the model leaves open, as in `onnx.load`. Each call sets the remaining open
        lengths; the model is compiled for them on demand. Not for a Graph or Calibration.
    exact_rounding, keep_rounding, saturation, blocks : optional
        Options of `onnx.fuse`. None: as stored in the Calibration or in a file that this package
        wrote; else the defaults of `fuse`. Float layers run as float32 primitives.

    Raises
    ------
    ArgumentError, UnsupportedError, LibraryError
        Errors of `onnx.load`, `onnx.fuse` and `onnx.Model`.

    Examples
    --------
    >>> import numpy as np
    >>> from onnx import helper
    >>> x, y = (helper.make_tensor_value_info(name, 1, ["batch", 4]) for name in "xy")
    >>> nodes = [helper.make_node("Relu", ["x"], ["y"])]
    >>> relu = load(helper.make_model(helper.make_graph(nodes, "g", [x], [y])))
    >>> relu(np.array([[-1, 0, 1, 2]], np.float32))
    array([[0., 0., 1., 2.]], dtype=float32)
    """
    if isinstance(model, (Graph, Calibration)) and dims is not None:
        raise ArgumentError("dims", f"one beside a {type(model).__name__}", "none: it was read")
    graph, stored = _read(model, dims)
    told = {
        "exact_rounding": exact_rounding,
        "keep_rounding": keep_rounding,
        "saturation": saturation,
        "blocks": blocks,
    }
    settled = {name: each for name, each in told.items() if each is not None}
    options = {**stored, **settled}
    path = Path(model) if isinstance(model, (str, os.PathLike)) else _NAMELESS
    return LoadedModel(graph, fuse(graph, **options), path, options)


def _read(model: Any, dims: Mapping[str, Any] | None) -> tuple[Graph, dict[str, Any]]:  # noqa: ANN401
    """Return the graph of what `load` takes, and the options of `fuse` that come with it."""
    if isinstance(model, Calibration):
        return model.graph, model.options()
    return (model, {}) if isinstance(model, Graph) else load_with_options(model, dims)


class LoadedModel(Model):
    """A model as it was read, ready to be called; made by `load`.

    Parameters
    ----------
    source : Graph
        Graph as read.
    graph : Graph
        Graph that runs.
    path : Path
        File of the model, or a name for reports.
    options : mapping of str to object
        Options of `fuse`.

    Attributes
    ----------
    source : Graph
        Graph that `save` writes.
    options : mapping of str to object
        Options of `fuse` that `save` writes.
    """

    def __init__(
        self,
        source: Graph,
        graph: Graph,
        path: Path = _NAMELESS,
        options: Mapping[str, Any] = _NONE,
    ) -> None:
        super().__init__(graph)
        self.source = source
        self.options = MappingProxyType(dict(options))
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.source, self.graph, self._path, dict(self.options))

    def __repr__(self) -> str:
        ends = [f"{', '.join(each)}" for each in (self.source.inputs, self.source.outputs)]
        return f"<LoadedModel {self._path.name}: {' -> '.join(ends)}>"

    def explain(self, *, trace: bool = False) -> str:
        """Return the text of ``pyonednn-q explain``: a line for each call, and why.

        Parameters
        ----------
        trace : bool
            Tell all of each node.

        Raises
        ------
        ArgumentError
            Lengths that are open, and no call that bound them.
        """
        from pyonednn_q.models.model_report import ModelReport

        return ModelReport.of(self._file()).text(trace=trace)

    def bench(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        peers: Iterable[str] = (),
        min_time: float = 0.15,
        seed: int = 0,
    ) -> str:
        """Return the text of ``pyonednn-q bench``: times whole and by layer, INT8 beside FP32.

        Parameters
        ----------
        inputs : mapping of str to array_like, optional
            Inputs of the run, which also set its lengths. None: random arrays of the lengths of the
            last call.
        peers : iterable of {"onnxruntime", "openvino"}
            Other runtimes to measure in turn with it.
        min_time : float
            Timed seconds of each whole model.
        seed : int
            Seed of random arrays.

        Raises
        ------
        ArgumentError
            Lengths that are open, and no call that bound them; another runtime.
        """
        from pyonednn_q.models import times_report
        from pyonednn_q.models.model_times import measure
        from pyonednn_q.models.peer_sessions import checked_peers
        from pyonednn_q.native import runtime
        from pyonednn_q.native.timing import Budget

        rivals = checked_peers("peers", peers)
        arrays = None
        if inputs is not None:
            known = named("inputs", inputs, object)
            arrays = {n: as_array(f"inputs[{shown(n)}]", each) for n, each in known.items()}
            self.run(arrays)
        file = self._file()
        arrays = inputs_of(file.graph.inputs, arrays, seed)
        times = measure(file, arrays, rivals, Budget(min_time), runtime.get_num_threads())
        return times_report.text(times)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the model as ONNX, with its quantizers and open lengths; `load` returns the same.

        What `fuse` was told stands in the file, as metadata; the graph is any runtime's.

        Parameters
        ----------
        file : path
            File to write; an existing one is overwritten.

        Raises
        ------
        ArgumentError
            More than protobuf takes: 2 GB.
        """
        save(self.source, file, self.options)

    def _file(self) -> ModelFile:
        """Return what reports are made of: the model at the lengths of the last call."""
        model = self.bound()
        graph = self.source
        if graph.symbols:
            lengths = {name: model.graph.inputs[name].dims or () for name in graph.symbols}
            graph = bound(graph, lengths)
        return ModelFile(self._path, graph, model)
