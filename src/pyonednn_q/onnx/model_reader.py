"""load: from the bytes of an untrusted model to a checked `Graph`.

No more memory is allocated than the bytes account for. Fields are counted before they are parsed, a
tensor's dims are compared with its data, and files beside the model are read only as far as tensors
reach. Nothing is recursive, and time is at most proportional to the number of bytes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import integers, named, path, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, LibraryError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode, Value
from pyonednn_q.onnx.external_data import ExternalData
from pyonednn_q.onnx.half_precision import in_float32
from pyonednn_q.onnx.model_skeleton import check_model, domain_of, skeleton_of
from pyonednn_q.onnx.model_writer import options_of
from pyonednn_q.onnx.open_dims import check_lengths
from pyonednn_q.onnx.opset_raising import raised_opset
from pyonednn_q.onnx.own_functions import is_own_function
from pyonednn_q.onnx.passes import passed
from pyonednn_q.onnx.shape_inference import with_tensors
from pyonednn_q.onnx.subgraphs import (
    WITH_GRAPHS,
    captured,
    check_graphs,
    check_inlined,
    with_names_apart,
)
from pyonednn_q.onnx.tensor_reader import MOST_DIMS, TensorReader, refused
from pyonednn_q.onnx.their_operators import with_operators_of_onnx
from pyonednn_q.onnx.wire import count_fields, fields_of
from pyonednn_q.onnx.written_out import with_parts_written_out
from pyonednn_q.report.progress import counted
from pyonednn_q.shown import install, shortened, shown

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

PASSES = (
    with_names_apart,
    raised_opset,
    with_tensors,
    in_float32,
    with_operators_of_onnx,
    with_parts_written_out,
)
_AS_IT_IS = PASSES[:-1]  # of who writes attentions otherwise

Dims = tuple[int, ...]

_FIELDS_A_NODE = 20  # on average, of as many nodes as there may be: seconds to count
_OPEN = -1  # what some write instead of no length
_OF_TORCH = {
    ("torch.nn.modules.module", "Module"),
    ("torch.export.exported_program", "ExportedProgram"),
}


def load(
    model: Any,  # noqa: ANN401 - a path, bytes or a ModelProto
    *,
    dims: Mapping[str, Any] | None = None,
    max_bytes: int = 1 << 31,
    max_nodes: int = 100_000,
    max_elements: int = 1 << 28,
) -> Graph:
    """Read an ONNX model; the file need not be trusted.

    Parameters
    ----------
    model : path, bytes or ModelProto
        Model. External data is read only for a path, from files in its directory or below.
    dims : mapping, optional
        Values of open lengths: of a symbol, ``{"batch": 1}``, or all dims of an input,
        ``{"x": (1, 3, 224, 224)}``. Each call sets the lengths that stay open: see `Model`.
    max_bytes : int
        Largest size of the model, and of all its external data, in bytes.
    max_nodes : int
        Largest number of nodes.
    max_elements : int
        Largest number of elements of a tensor that is stored or computed while reading.

    Returns
    -------
    Graph
        Values of Constant nodes, and initializers that are also inputs, are constants. Functions of
        the model are expanded, opsets 7 to 12 are rewritten as opset 13, and layers of float16 or
        bfloat16 as layers of float32.

    Raises
    ------
    ArgumentError
        Not a valid model; larger than a limit; an input without a rank; external data elsewhere.
    UnsupportedError
        Unsupported subgraphs, sparse tensors, sequences, text; named in the message.
    LibraryError
        The package onnx is not installed.

    Examples
    --------
    >>> from onnx import helper
    >>> x, y = (helper.make_tensor_value_info(name, 1, ["batch", 4]) for name in "xy")
    >>> nodes = [helper.make_node("Relu", ["x"], ["y"])]
    >>> graph = load(helper.make_model(helper.make_graph(nodes, "g", [x], [y])), dims={"batch": 2})
    >>> print(*graph.nodes, graph.tensors["y"])
    y = Relu(x) float32[2, 4]
    """
    limits = {"max_bytes": max_bytes, "max_nodes": max_nodes, "max_elements": max_elements}
    known: dict[str, Any] = {n: whole(n, each, lo=1, hi=1 << 40) for n, each in limits.items()}
    return load_with_options(model, dims, **known)[0]


def load_with_options(
    model: Any,  # noqa: ANN401 - a path, bytes or a ModelProto
    dims: Mapping[str, Any] | None,
    *,
    max_bytes: int = 1 << 31,
    max_nodes: int = 100_000,
    max_elements: int = 1 << 28,
    keeps_attentions: bool = False,
) -> tuple[Graph, dict[str, Any]]:
    """Return the result of `load`, and the options of `fuse` that are stored with the model.

    Parameters
    ----------
    model, dims, max_bytes, max_nodes, max_elements
        Arguments of `load`.
    keeps_attentions : bool
        Whether an Attention stays one node, as `decoder_form` wants them.
    """
    fixed = named("dims", dims, object)
    proto, directory = _parsed(model, max_bytes, max_nodes)
    reader = TensorReader(ExternalData(directory, max_bytes), max_elements)
    try:
        graph = _graph(proto, reader, fixed, max_nodes)
        graph = passed(graph, _AS_IT_IS if keeps_attentions else PASSES)
    except UnicodeDecodeError:
        raise ArgumentError("model", "names that are not UTF-8", "an ONNX model") from None
    for name, info in graph.tensors.items():
        reader.check_elements(name, info.dims or ())
    return graph, options_of((each.key, each.value) for each in proto.metadata_props)


def _parsed(model: Any, max_bytes: int, max_nodes: int) -> tuple[ModelProto, Path | None]:  # noqa: ANN401
    try:
        import onnx
    except ImportError:
        message = f"models need the package onnx: {install('onnx')}"
        raise LibraryError(message) from None
    if isinstance(model, onnx.ModelProto):
        if model.ByteSize() > max_bytes:
            raise _too_long(model.ByteSize(), max_bytes)
        return model, None
    directory = None
    if not isinstance(model, (bytes, bytearray, memoryview)):
        refuse_torch(model)
        file = path("model", model)
        model, directory = _file_bytes(file, max_bytes), file.resolve().parent
    data = bytes(model)
    if len(data) > max_bytes:
        raise _too_long(len(data), max_bytes)
    count_fields(data, fields_of(onnx.ModelProto.DESCRIPTOR), _FIELDS_A_NODE * max_nodes)
    try:
        return onnx.ModelProto.FromString(data), directory
    except Exception as error:  # of protobuf, whose package is none of ours
        raise ArgumentError("model", shortened(str(error), 150), "an ONNX model") from None


def refuse_torch(model: object) -> None:
    """Refuse a model of torch, which is not imported for that, by the name of what takes it."""
    homes = {(kind.__module__, kind.__name__) for kind in type(model).__mro__}
    if homes & _OF_TORCH:
        got = f"{type(model).__name__}, a model of torch"
        raise ArgumentError("model", got, "what pyonednn_q.torch.load(model, example) returns")


def _file_bytes(file: Path, max_bytes: int) -> bytes:
    try:
        # A pipe must not block.
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as opened:  # noqa: PTH123 - of a handle
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise ArgumentError("model", shown(str(file)), "an ordinary file")
            if status.st_size > max_bytes:
                raise _too_long(status.st_size, max_bytes)
            return opened.read(max_bytes + 1)
    except OSError as error:
        raise ArgumentError("model", shortened(str(error), 150), "a file to read") from None


def _too_long(nbytes: int, max_bytes: int) -> ArgumentError:
    return ArgumentError("model", f"{nbytes} bytes", f"at most max_bytes = {max_bytes}")


def _graph(proto: ModelProto, reader: TensorReader, fixed: dict[str, Any], max_nodes: int) -> Graph:
    source = proto.graph
    if len(source.node) > max_nodes:
        raise ArgumentError("model", f"{len(source.node)} nodes", f"at most {max_nodes}")
    if len(source.sparse_initializer):
        raise refused("make them dense", "sparse initializers")
    stored = counted(source.initializer, "reading constants")
    constants = {each.name: reader.array(each) for each in stored}
    if not all(map(is_own_function, proto.functions)):
        proto = _inlined(proto, max_nodes)
    nodes = _nodes(proto.graph.node, reader, constants)
    check_model(proto)
    for kind, values in (("inputs", source.input), ("outputs", source.output)):
        if len({each.name for each in values}) < len(values):
            raise ArgumentError("model", f"{kind} of one name", f"{kind} of different names")
    open_inputs = [each for each in source.input if each.name not in constants]
    for name in fixed:
        if not any(name == each.name or name in _symbols(each) for each in open_inputs):
            names = [each.name for each in open_inputs]
            raise ArgumentError("dims", shown(name), f"inputs or symbols of {shown(names)}")
    inputs = {each.name: _input(each, fixed) for each in open_inputs}
    told = {name: value.dims for name, value in inputs.items() if name in fixed}
    shaped = (each for each in open_inputs if each.type.tensor_type.HasField("shape"))
    symbols = {each.name: _symbols_of(each) for each in shaped if told.get(each.name)}
    check_lengths(symbols, told, {n: each for n, each in fixed.items() if n not in inputs})
    opsets = {
        ("" if each.domain == "ai.onnx" else each.domain): each.version
        for each in proto.opset_import
    }
    return Graph(
        nodes=tuple(nodes),
        constants=constants,
        inputs=inputs,
        outputs={each.name: Value("", None) for each in source.output},
        opsets=opsets,
        tensors={},
    )


def _inlined(proto: ModelProto, max_nodes: int) -> ModelProto:
    """Return a model without large constants and without functions of its own."""
    from onnx import inliner

    check_inlined(proto, max_nodes)
    skeleton = skeleton_of(proto)
    skeleton.functions.extend(each for each in proto.functions if not is_own_function(each))
    try:
        return inliner.inline_local_functions(skeleton)
    except Exception as error:  # of onnx, whatever it is
        got = shortened(str(error), 200)
        raise ArgumentError("model", got, "functions that can be written out") from None


def _nodes(
    protos: Iterable[NodeProto], reader: TensorReader, constants: dict[str, Array]
) -> list[GraphNode]:
    """Return nodes but for those that are constants, which are added to the others."""
    nodes = []
    for each in protos:
        node = _node(each, reader)
        if node.row is kinds.CONSTANT:
            constants[node.outputs[0]] = _constant(node)
        else:
            nodes.append(node)
    return nodes


def _node(proto: NodeProto, reader: TensorReader) -> GraphNode:
    domain = domain_of(proto)
    kind = f"{domain}.{proto.op_type}" if domain else proto.op_type
    attributes: dict[str, Any] = {}
    argument = f"node {shown(proto.name)}, {shown(kind)}"
    for each in proto.attribute:
        if each.name in attributes:
            raise ArgumentError(argument, f"{each.name} twice", "each attribute once")
        is_graph = kind in WITH_GRAPHS and each.type == each.GRAPH
        attributes[each.name] = (
            _within(each.g, reader) if is_graph else reader.attribute(kind, each)
        )
    inputs, outputs = tuple(proto.input), tuple(proto.output)
    if not any(outputs):
        raise ArgumentError(argument, "no output", "at least one")
    if kind in WITH_GRAPHS:
        check_graphs(argument, kind, inputs, outputs, attributes)
        inputs += captured(attributes)
    number = attributes.get("num_outputs", len(outputs))
    if kind == kinds.SPLIT.name and number != len(outputs):  # onnx's inference ends the process
        raise ArgumentError(argument, f"num_outputs {number}", f"{len(outputs)}, as it has outputs")
    name = proto.name or next(filter(None, outputs))
    return GraphNode(name, proto.op_type, inputs, outputs, attributes, domain, originals=(name,))


def _within(proto: GraphProto, reader: TensorReader) -> Graph:
    """Return a graph within a node: it reads tensors of the graph around it."""
    if len(proto.sparse_initializer):
        raise refused("make them dense", "sparse initializers of a subgraph")
    inputs = {each.name: _known(each) for each in proto.input}
    constants = {each.name: reader.array(each) for each in proto.initializer}
    nodes = _nodes(proto.node, reader, constants)
    outputs = {each.name: _known(each) for each in proto.output}
    if len(outputs) != len(proto.output) or len(inputs) != len(proto.input):
        raise refused("names that differ", "inputs or outputs of a subgraph")
    return Graph(tuple(nodes), constants, inputs, outputs, {}, {})


def _constant(node: GraphNode) -> Array:
    known = {
        "value": None,
        "value_float": np.float32,
        "value_floats": np.float32,
        "value_int": np.int64,
        "value_ints": np.int64,
    }
    ((name, value),) = node.attributes.items() if len(node.attributes) == 1 else (("", None),)
    if name not in known:
        raise refused("numbers do", f"Constant {shown(node.name)} of {name or 'several values'}")
    array = value if name == "value" else np.array(value, known[name])
    assert isinstance(array, np.ndarray)
    array.flags.writeable = False
    return array


def _input(proto: Any, fixed: dict[str, Any]) -> Value:  # noqa: ANN401
    kind = proto.type.WhichOneof("value")
    if kind != "tensor_type":
        raise refused("tensors do", f"input {shown(proto.name)} that is a {kind}")
    tensor = proto.type.tensor_type
    argument = f"dims[{shown(proto.name)}]"
    dtype = TensorReader.dtype(argument, tensor.elem_type).name
    if tensor.HasField("shape") and len(tensor.shape.dim) > MOST_DIMS:
        raise ArgumentError(argument, f"{len(tensor.shape.dim)} dims", f"at most {MOST_DIMS}")
    dims: tuple[int | str, ...]
    if proto.name in fixed:
        value = fixed[proto.name]
        dims = integers(argument, (value,) if isinstance(value, int) else value)
        if tensor.HasField("shape") and len(dims) != len(tensor.shape.dim):
            raise ArgumentError(argument, str(dims), f"{len(tensor.shape.dim)} of them")
    else:
        if not tensor.HasField("shape"):
            wanted = f"fixed ones: dims={{{shown(proto.name)}: (...)}}"
            raise ArgumentError(argument, "none", wanted)
        dims = tuple(_length(each, fixed) for each in tensor.shape.dim)
    known = tuple(each for each in dims if isinstance(each, int))
    if any(not 0 <= length < 1 << 40 for length in known):
        raise ArgumentError(argument, shown(dims), "lengths of at least 0")
    return Value(dtype, known) if len(known) == len(dims) else Value(dtype, None, lengths=dims)


def _known(proto: Any) -> Value:  # noqa: ANN401 - ValueInfoProto
    """Return the known type and dims of an input or output of a subgraph."""
    tensor = proto.type.tensor_type
    if not tensor.elem_type:
        return Value("", None)
    dtype = TensorReader.dtype(f"type of {shown(proto.name)}", tensor.elem_type).name
    is_known = tensor.HasField("shape") and all(e.HasField("dim_value") for e in tensor.shape.dim)
    return Value(dtype, tuple(e.dim_value for e in tensor.shape.dim) if is_known else None)


def _length(dim: Any, fixed: dict[str, Any]) -> int | str:  # noqa: ANN401
    """Return a length, or its symbol, which is empty where it has no name."""
    if dim.WhichOneof("value") == "dim_value":
        return int(dim.dim_value) if dim.dim_value != _OPEN else ""
    if dim.dim_param in fixed:
        return whole(f"dims[{shown(dim.dim_param)}]", fixed[dim.dim_param], lo=1)
    return "" if dim.dim_param == "?" else str(dim.dim_param)


def _symbols_of(proto: Any) -> tuple[int | str, ...]:  # noqa: ANN401 - ValueInfoProto
    """Return a length or symbol for each dim; one of 0 is open, as one without a name is."""
    return tuple(_length(each, {}) or "" for each in proto.type.tensor_type.shape.dim)


def _symbols(proto: Any) -> set[str]:  # noqa: ANN401 - ValueInfoProto
    return {dim.dim_param for dim in proto.type.tensor_type.shape.dim if dim.dim_param}
