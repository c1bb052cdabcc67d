"""Models that somebody tampered with: bytes and fields of valid ones changed, from a seed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pyonednn_q.graph.graph import Graph
from pyonednn_q.onnx.fusion import fuse
from pyonednn_q.onnx.model_reader import load
from support.hostile import public
from support.hostile.public import PublicAttempt, judge_public
from support.hostile.verdict import Verdict
from support.hostile.worse import one_of

if TYPE_CHECKING:
    from support.hostile.chunk import Report
    from support.hostile.worse import Rng

_NUMBERS = (0, 1, -1, 2, 3, 127, 128, 2**16, 2**31 - 1, 2**31, 2**40, 2**60, 2**63 - 1, -(2**63))
_TEXTS: tuple[str, ...] = (
    "",
    "x",
    "y",
    "Conv",
    "Relu",
    "Constant",
    "If",
    "../../etc/passwd",
    "/etc/passwd",
)
_TEXTS += ("\0", "a" * 100_000, "ai.onnx", "com.microsoft", "999999999999999999999999", "é☃")
_FLOATS = (0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), 1e-45, 3.4e38)


@functools.cache
def valid_models() -> tuple[bytes, ...]:
    """Return models of all that is read: quantized and float, constants in every kind of field."""
    conv = onnx.parser.parse_model("""
        <ir_version: 10,
         opset_import: ["" : 21, "com.microsoft" : 1, "org.openvinotoolkit" : 1]>
        two_layers (float[1, 3, 8, 8] x) => (float[1, N, 8, 8] y, uint8[1, 4, 8, 8] conv)
        <float scale = {0.05}, uint8 point = {128}, float w_scale = {0.01}, int8 w_point = {0},
         int8[4, 3, 1, 1] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, int64[2] axes = {2, 3}>
        {
            codes = QuantizeLinear (x, scale, point)
            conv = QLinearConv <pads = [0, 0, 0, 0]> (
                codes, scale, point, w, w_scale, w_point, scale, point)
            real = DequantizeLinear (conv, scale, point)
            twice = com.microsoft.QLinearAdd (conv, scale, point, conv, scale, point, scale, point)
            positive = LeakyRelu <alpha = 0.1> (real)
            one = Constant <value_float = 1.0> ()
            low = Constant <value_float = -1.28> ()
            high = Constant <value_float = 1.27> ()
            faked = org.openvinotoolkit.FakeQuantize <levels = 256> (positive, low, high, low, high)
            weights = Constant <value_floats = [1.0]> ()
            fixed = org.openvinotoolkit.FakeQuantize (weights, low, high, low, high)
            shifted = Add (faked, fixed)
            y = Add (shifted, one)
        }
    """)
    layers = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        layers (float[1, 2, 4, 4] x) => (float[1, 3] y)
        <float s = {0.05}, uint8 z = {128}, float[2] ws = {0.01, 0.02}, int8[2] wz = {0, 0},
         int8[2, 2, 1, 1] w = {1, -2, 3, 4}, int8[2, 3] v = {1, 2, 3, 4, 5, 6}, int8 vz = {0},
         int32[2] b = {10, -20}, float[2] bs = {0.0005, 0.001}, float[3] c = {0.5, 0.25, 1.0},
         int8[3, 3] square = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3, 1] column = {1.0, 2.0, 3.0}>
        {
            xq = QuantizeLinear (x, s, z)
            xr = DequantizeLinear (xq, s, z)
            wr = DequantizeLinear <axis = 0> (w, ws, wz)
            br = DequantizeLinear <axis = 0> (b, bs)
            f = Conv <pads = [0, 0, 0, 0]> (xr, wr, br)
            fq = QuantizeLinear (f, s, z)
            fr = DequantizeLinear (fq, s, z)
            a = Add (fr, xr)
            h = HardSigmoid <alpha = 0.3> (a)
            g = Mul (a, h)
            gq = QuantizeLinear (g, s, z)
            gr = DequantizeLinear (gq, s, z)
            vr = DequantizeLinear <axis = 1> (w, ws, wz)
            d = ConvTranspose <strides = [2, 2]> (gr, vr)
            dq = QuantizeLinear (d, s, z)
            dr = DequantizeLinear (dq, s, z)
            p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (dr)
            pq = QuantizeLinear (p, s, z)
            pr = DequantizeLinear (pq, s, z)
            j = Concat <axis = 1> (pr, gr)
            jq = QuantizeLinear (j, s, z)
            jr = DequantizeLinear (jq, s, z)
            m = GlobalAveragePool (jr)
            mq = QuantizeLinear (m, s, z)
            mr = DequantizeLinear (mq, s, z)
            shape = Constant <value_ints = [-1, 2]> ()
            r = Reshape (mr, shape)
            rq = QuantizeLinear (r, s, z)
            rr = DequantizeLinear (rq, s, z)
            one = DequantizeLinear (v, s, vz)
            t = Gemm <alpha = 0.5> (rr, one, c)
            u = Clip (t, s)
            row = Constant <value_ints = [0]> ()
            dyn, dyn_s, dyn_z = DynamicQuantizeLinear (u)
            acc = MatMulInteger (dyn, square, dyn_z)
            real = Cast <to = 1> (acc)
            both = Mul (dyn_s, s)
            scaled = Mul (real, both)
            turn = Transpose <perm = [1, 0]> (column)
            added = Add (scaled, turn)
            y = Gather (added, row)
        }
    """)
    shapes = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17], producer_name: "somebody">
        shapes (float[2, 3, 4] x) => (float[6, 4] y, int64[3] s)
        {
            shape = Constant <value_ints = [-1, 4]> ()
            y = Reshape (x, shape)
            s = Shape (x)
            z = Softmax <axis = -1> (x)
            t = Resize <mode = "nearest"> (x, , scales)
            scales = Constant <value_floats = [1.0, 1.0, 2.0]> ()
        }
    """)
    nodes = shapes.graph.node
    nodes.append(nodes[4])
    del nodes[4]  # behind what it reads
    arrays: dict[str, Any] = {
        "a": np.arange(6, dtype=np.int64).reshape(2, 3),
        "b": np.array([1.0, 2.0]),
        "c": np.array([True, False]),
        "d": np.array([1, 2, 3], np.float16),
        "e": np.arange(4, dtype=np.uint32),
    }
    tensors = [numpy_helper.from_array(each, name) for name, each in arrays.items()]
    tensors += [
        helper.make_tensor("f", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0]),
        helper.make_tensor("g", TensorProto.INT64, [2, 1], [1, 2]),
        helper.make_tensor("h", TensorProto.INT4, [3], [1, -2, 7]),
        helper.make_tensor("i", TensorProto.BFLOAT16, [2], [1.0, 2.0]),
        helper.make_tensor("j", TensorProto.UINT64, [1], [2**63]),
        helper.make_tensor("k", TensorProto.DOUBLE, [], [0.5]),
        helper.make_tensor("l", TensorProto.FLOAT8E4M3FN, [2], [1.0, 2.0]),
    ]
    same = [helper.make_node("Identity", [each.name], [f"{each.name}_out"]) for each in tensors]
    outputs = [
        helper.make_tensor_value_info(f"{each.name}_out", each.data_type, list(each.dims))
        for each in tensors
    ]
    graph = helper.make_graph(same, "every type", [], outputs, tensors)
    types = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return tuple(each.SerializeToString() for each in (conv, layers, shapes, types))


def mutant(seed: int, models: tuple[bytes, ...]) -> tuple[bytes, list[str]]:
    """Return one of some models, by a seed, and what was done to it."""
    rng = np.random.default_rng(seed)
    data = one_of(rng, models)
    ways: list[str] = []
    for _ in range(int(one_of(rng, (0, 1, 1, 1, 2, 3, 8)))):
        way = one_of(rng, (_fields, _fields, _fields, _bits, _bytes, _cut, _copied, _grown))
        data = way(data, rng)
        ways.append(way.__name__.strip("_"))
    return data, ways


def _bits(data: bytes, rng: Rng) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        if changed:
            changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _bytes(data: bytes, rng: Rng) -> bytes:
    at = int(rng.integers(len(data) + 1))
    more = rng.integers(0, 256, int(rng.integers(1, 12))).astype(np.uint8).tobytes()
    return data[:at] + more + data[at + int(one_of(rng, (0, len(more)))) :]


def _cut(data: bytes, rng: Rng) -> bytes:
    start, end = sorted(int(each) for each in rng.integers(0, len(data) + 1, 2))
    return data[:start] if rng.random() < 0.3 else data[:start] + data[end:]


def _copied(data: bytes, rng: Rng) -> bytes:
    start, end = sorted(int(each) for each in rng.integers(0, len(data) + 1, 2))
    at = int(rng.integers(len(data) + 1))
    return data[:at] + data[start:end] * int(one_of(rng, (1, 2, 50))) + data[at:]


def _grown(data: bytes, rng: Rng) -> bytes:
    """Put in a length or a number that is far too large."""
    at = int(rng.integers(len(data) + 1))
    many = bytes([255] * int(rng.integers(1, 10)) + [int(rng.integers(128))])
    return data[:at] + many + data[at + 1 :]


def _fields(data: bytes, rng: Rng) -> bytes:
    """Change fields of messages, however deep."""
    try:
        model = onnx.ModelProto.FromString(data)
    except Exception:  # bytes changed before
        return data
    for _ in range(int(rng.integers(1, 4))):
        message: Any = model
        while True:
            inner = [
                each
                for field, value in message.ListFields()
                if field.message_type is not None
                for each in (value if _is_repeated(value) else [value])
            ]
            if not inner or rng.random() < 0.15:
                break
            message = one_of(rng, inner)
        _change(message, rng)
    return bytes(model.SerializePartialToString())


def _is_repeated(value: Any) -> bool:
    return hasattr(value, "append") or hasattr(value, "add")


def _change(message: Any, rng: Rng) -> None:
    field = one_of(rng, message.DESCRIPTOR.fields)
    value = getattr(message, field.name)
    if _is_repeated(value):
        way = one_of(rng, ("delete", "again", "add", "reverse"))
        items = list(value)
        if way == "delete" and items:
            del value[int(rng.integers(len(items)))]
        elif way == "again" and items:
            value.extend([one_of(rng, items)] * int(one_of(rng, (1, 2, 300))))
        elif way == "reverse":
            del value[:]
            value.extend(items[::-1])
        elif field.message_type is not None:
            value.add()
        else:
            value.append(_another(field, rng))
    elif field.message_type is not None:
        message.ClearField(field.name) if rng.random() < 0.5 else value.SetInParent()
    elif field.enum_type is not None:
        number = one_of(rng, [each.number for each in field.enum_type.values])
        setattr(message, field.name, number)
    else:
        setattr(message, field.name, _another(field, rng))


def _another(field: Any, rng: Rng) -> Any:
    kinds = {field.CPPTYPE_STRING: _TEXTS, field.CPPTYPE_FLOAT: _FLOATS}
    value: Any = one_of(
        rng, kinds.get(field.cpp_type, _FLOATS if "DOUBLE" in field.name else _NUMBERS)
    )
    if field.cpp_type == field.CPPTYPE_STRING:
        return value.encode() if field.type == field.TYPE_BYTES else value
    if field.cpp_type == field.CPPTYPE_INT32:
        return int(np.array(value).astype(np.int32)) if abs(value) >= 2**31 else value
    if field.cpp_type in {field.CPPTYPE_UINT64, field.CPPTYPE_UINT32}:
        return abs(value) % 2**32
    return value


def one_model(seed: int, report: Report) -> None:
    """Judge what is made of the model of a seed: a typed error, or all that it holds."""
    data, ways = mutant(seed, valid_models())
    before = public._most_memory()
    graphs: list[Graph] = []
    attempt = PublicAttempt("load", lambda each: graphs.append(load(each)), [data], {}, ways)
    verdict = judge_public(attempt)
    if verdict.outcome == "right":
        fused = judge_public(PublicAttempt("fuse", lambda: str(fuse(graphs[0])), [], {}, ways))
        report.outcomes[f"fused: {fused.outcome}"] += 1
        if not fused.is_allowed:
            report.wrong.append(f"seed {seed}: {', '.join(ways)}: fuse: {fused.text}")
        verdict = _compared(graphs[0], onnx.ModelProto.FromString(data))
    if (taken := public._most_memory() - before) > 256:
        verdict = Verdict("WRONG", f"{taken} MB more than ever before")
    report.outcomes[verdict.outcome] += 1
    report.ways.update(ways)
    if not ways:
        report.plain[verdict.outcome] += 1
    if not verdict.is_allowed:
        report.wrong.append(f"seed {seed}: {', '.join(ways) or 'a valid model'}: {verdict.text}")


def _compared(graph: Graph, model: Any) -> Verdict:
    """Compare a graph with what the package onnx reads."""
    constants = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    nodes = [each for each in model.graph.node if each.op_type != "Constant" or each.domain]
    for name, array in constants.items():
        found = graph.constants[name]
        if found.dtype != array.dtype or found.tobytes() != array.tobytes():
            return Verdict("WRONG", f"constant {name!r}")
        if found.shape != array.shape or found.flags.writeable:
            return Verdict("WRONG", f"constant {name!r} of shape {found.shape}")
    for ours, theirs in zip(graph.nodes, nodes, strict=True):
        if (list(ours.inputs), list(ours.outputs)) != (list(theirs.input), list(theirs.output)):
            return Verdict("WRONG", f"node {theirs.name!r}")
        if set(ours.attributes) != {each.name for each in theirs.attribute}:
            return Verdict("WRONG", f"attributes of {theirs.name!r}")
    if list(graph.outputs) != [each.name for each in model.graph.output]:
        return Verdict("WRONG", "outputs")
    return Verdict("right")
