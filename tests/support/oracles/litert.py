"""LiteRT on models of one operator, written with the schema that its package brings.

Arrays are NHWC here, weights as TFLite has them. Nothing but ai-edge-litert and flatbuffers is
needed, no TensorFlow.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

RESOLVERS = {
    "reference": "BUILTIN_REF",
    "optimised": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "xnnpack": "BUILTIN",
}
_TYPES = {"u8": "UINT8", "s8": "INT8", "s32": "INT32", "f32": "FLOAT32", "s64": "INT64"}
_DTYPES = {"u8": "u1", "s8": "i1", "s32": "<i4", "f32": "<f4", "s64": "<i8"}


@dataclass(frozen=True)
class Tensor:
    """A tensor of a model: constant if it has data.

    axis: the dimension that several scales run along.
    """

    dims: tuple[int, ...]
    dtype: str
    scale: Any = None
    zero_point: Any = 0
    axis: int = 0
    data: Array | None = None

    @classmethod
    def of(
        cls, data: Array, dtype: str, scale: Any = None, zero_point: int = 0, axis: int = 0
    ) -> Tensor:
        """Return a constant."""
        return cls(data.shape, dtype, scale, zero_point, axis, data)


def model(
    op: str,
    inputs: list[Tensor],
    output: Tensor,
    options: dict[str, Any],
    *,
    options_of: str | None = None,
    op_version: int = 1,
) -> bytes:
    """Return a model of one operator.

    op: its name in TFLite's schema. options: fields of its options table, which is called as the
    operator is unless `options_of` says otherwise; an empty `options_of` stands for none.
    """
    from ai_edge_litert import schema_py_generated as schema
    from flatbuffers import Builder

    title = "".join(part.capitalize() for part in op.split("_"))
    table = f"{title if options_of is None else options_of}Options"
    tensors = [*inputs, output]
    buffers = [schema.BufferT()]
    written = [_tensor(schema, tensor, at, buffers) for at, tensor in enumerate(tensors)]
    code = schema.OperatorCodeT()
    code.builtinCode = getattr(schema.BuiltinOperator, op)
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    code.version = op_version
    operator = schema.OperatorT()
    operator.inputs, operator.outputs = list(range(len(inputs))), [len(inputs)]
    if options_of != "":
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, table)
        operator.builtinOptions = getattr(schema, f"{table}T")()
        for name, value in options.items():
            assert hasattr(operator.builtinOptions, name), name
            setattr(operator.builtinOptions, name, value)
    graph = schema.SubGraphT()
    graph.tensors, graph.operators = written, [operator]
    graph.inputs = [at for at, tensor in enumerate(inputs) if tensor.data is None]
    graph.outputs = [len(inputs)]
    whole = schema.ModelT()
    whole.version, whole.operatorCodes, whole.subgraphs, whole.buffers = 3, [code], [graph], buffers
    builder = Builder(1024)
    builder.Finish(whole.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def run(content: bytes, resolver: str, *given: Array) -> Array:
    """Return what a model makes of its inputs.

    resolver: one of `RESOLVERS`, the kernels that are used.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interpreter = Interpreter(
            model_content=content,
            num_threads=1,
            experimental_op_resolver_type=OpResolverType[RESOLVERS[resolver]],
        )
    interpreter.allocate_tensors()
    for details, array in zip(interpreter.get_input_details(), given, strict=True):
        interpreter.set_tensor(details["index"], array)
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def _tensor(schema: Any, tensor: Tensor, at: int, buffers: list[Any]) -> Any:
    written = schema.TensorT()
    written.name, written.shape = f"tensor_{at}", list(tensor.dims)
    written.type = getattr(schema.TensorType, _TYPES[tensor.dtype])
    written.buffer = len(buffers)
    buffer = schema.BufferT()
    if tensor.data is not None:
        raw = np.ascontiguousarray(tensor.data, _DTYPES[tensor.dtype]).tobytes()
        buffer.data = np.frombuffer(raw, np.uint8)
    buffers.append(buffer)
    if tensor.scale is not None:
        parameters = schema.QuantizationParametersT()
        scales = np.atleast_1d(np.asarray(tensor.scale, np.float32))
        parameters.scale = scales
        parameters.zeroPoint = np.broadcast_to(np.int64(tensor.zero_point), scales.shape).copy()
        parameters.quantizedDimension = tensor.axis
        written.quantization = parameters
    return written
