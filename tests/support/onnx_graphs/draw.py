"""A graph in the making: nodes of any operator on tensors whose types and dims are inferred."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]

LENGTHS = (1, 1, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17)


class NotHere(Exception):
    """A node that this opset, or these tensors, do not have."""


class GraphDraw:
    """A graph while it is drawn.

    seed: of all that is drawn. opset: of ONNX's own operators. empty: share of dims that are 0.
    """

    def __init__(self, seed: int, opset: int, empty: float = 0.02) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = opset
        self.empty = empty
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}
        self.inputs: dict[str, Array] = {}
        self.types: dict[str, tuple[np.dtype[Any], Dims]] = {}  # of what nodes compute
        self.open: dict[str, np.dtype[Any]] = {}  # of that whose dims are not known
        self._count = 0

    # What is drawn.

    def maybe(self, share: float = 0.5) -> bool:
        return bool(self.rng.random() < share)

    def one(self, *of: Any) -> Any:
        return of[self.rng.integers(len(of))]

    def whole(self, lo: int, hi: int) -> int:
        """Return a number from lo to hi, both among them."""
        return int(self.rng.integers(lo, hi + 1))

    def length(self) -> int:
        return 0 if self.maybe(self.empty) else int(self.one(*LENGTHS))

    def dims(self, *ranks: int) -> Dims:
        rank = int(self.one(*(ranks or (0, 1, 2, 3, 4, 4, 5))))
        dims = tuple(self.length() for _ in range(rank))
        while np.prod(dims, dtype=int) > 4000:
            dims = tuple(max(1, each // 2) for each in dims)
        return dims

    def array(self, dims: Dims, dtype: Any = np.float32) -> Array:
        kind = np.dtype(dtype)
        if kind.kind == "f":
            values = self.rng.normal(0, self.one(0.5, 1, 3), dims)
            return np.asarray(np.rint(values) if self.maybe(0.1) else values).astype(kind)
        if kind.kind == "b":
            return np.asarray(self.rng.random(dims) < 0.5)
        info = np.iinfo(kind)
        lo, hi = max(info.min, -128), min(info.max, 255)
        return np.asarray(self.rng.integers(lo, hi + 1, dims)).astype(kind)

    # Tensors.

    def name(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def constant(self, value: Any) -> str:
        name = self.name()
        self.constants[name] = np.asarray(value)
        return name

    def whole_constant(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def source(self, dims: Dims, dtype: Any = np.float32) -> str:
        """Return a new tensor: mostly an input, or a constant."""
        array = self.array(dims, dtype)
        if self.maybe(0.25):
            return self.constant(array)
        name = self.name()
        self.inputs[name] = array
        return name

    def type(self, name: str) -> tuple[np.dtype[Any], Dims]:
        known = self.constants.get(name, self.inputs.get(name))
        return (known.dtype, known.shape) if known is not None else self.types[name]

    def dims_of(self, name: str) -> Dims:
        return self.type(name)[1]

    def tensor(self, *ranks: int, dtype: Any = np.float32) -> str:
        """Return a tensor of one of some ranks: mostly one that is computed."""
        kind = np.dtype(dtype)
        known = [
            name
            for name in (*self.types, *self.inputs)
            if self.type(name)[0] == kind and (not ranks or len(self.dims_of(name)) in ranks)
        ]
        if known and self.maybe(0.85):
            return known[max(self.whole(0, len(known) - 1), self.whole(0, len(known) - 1))]
        return self.source(self.dims(*ranks), kind)

    def beside(self, name: str, dtype: Any = None) -> str:
        """Return a tensor that broadcasts against another: of its dims, or of fewer."""
        kind, dims = self.type(name)
        kind = kind if dtype is None else np.dtype(dtype)
        same = [n for n in (*self.types, *self.inputs) if self.type(n) == (kind, dims)]
        if same and self.maybe(0.6):
            return str(self.one(*same))
        cut = self.whole(0, len(dims))
        return self.source(tuple(1 if self.maybe(0.3) else each for each in dims[cut:]), kind)

    # Nodes.

    def add(self, operator: str, *inputs: str, outputs: Any = 1, **attributes: Any) -> list[str]:
        """Add a node; return its outputs."""
        domain = "com.microsoft" if attributes.pop("microsoft", False) else ""
        names = [self.name() for _ in range(outputs)]
        node = helper.make_node(operator, inputs, names, f"n{names[0]}", domain=domain)
        for key, value in attributes.items():
            if value is not None:
                kind = onnx.AttributeProto.INTS if value == [] else None
                node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
        self.nodes.append(node)
        if domain:
            return names
        ends = [helper.make_empty_tensor_value_info(each) for each in names]
        read = [each for each in dict.fromkeys(inputs) if each]
        given = [self._info(each) for each in read if each not in self.constants]
        held = [
            numpy_helper.from_array(self.constants[each], each)
            for each in read
            if each in self.constants
        ]
        graph = helper.make_graph([node], "one", given, ends, held)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        try:
            onnx.checker.check_node(node, _context(self.opset))
            known = onnx.shape_inference.infer_shapes(model, True, True, True).graph.output
        except Exception as error:
            self.nodes.pop()
            raise NotHere(str(error)[:200]) from None
        for each in known:
            kind = each.type.tensor_type
            lengths = tuple(d.dim_value for d in kind.shape.dim if d.HasField("dim_value"))
            if kind.elem_type:
                self.open[each.name] = np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
            if kind.HasField("shape") and len(lengths) == len(kind.shape.dim):
                self.types[each.name] = (
                    np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type)),
                    lengths,
                )
        return names

    def says(self, name: str, dtype: Any, dims: Dims) -> str:
        """Note the type of what an operator makes that onnx does not know."""
        self.types[name] = (np.dtype(dtype), dims)
        return name

    def _info(self, name: str) -> Any:
        kind, dims = self.type(name)
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(kind), dims)

    def model(self) -> bytes:
        """Return the model; its outputs are the tensors that nothing reads."""
        read = {each for node in self.nodes for each in node.input}
        inputs = [self._info(each) for each in self.inputs if each in read]
        computed = [each for node in self.nodes for each in node.output if each]
        ends = [each for each in computed if each not in read]
        others = [each for each in computed if each in read]
        if others and self.maybe(0.3):
            ends.append(self.one(*others))
        if self.feeds and self.maybe(0.05):
            ends.append(self.one(*self.feeds))
        held = [numpy_helper.from_array(v, k) for k, v in self.constants.items() if k in read]
        kinds = [
            self.type(name)
            if name in self.inputs
            else self.types.get(name, (self.open.get(name, np.dtype(np.float32)), None))
            for name in ends
        ]
        outputs = [
            helper.make_tensor_value_info(each, helper.np_dtype_to_tensor_dtype(kind), dims)
            for each, (kind, dims) in zip(ends, kinds, strict=True)
        ]
        graph = helper.make_graph(self.nodes, "drawn", inputs, outputs, held)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return bytes(model.SerializeToString())

    @property
    def feeds(self) -> dict[str, Array]:
        """The inputs that nodes read."""
        read = {each for node in self.nodes for each in node.input}
        return {name: each for name, each in self.inputs.items() if name in read}


def _context(opset: int) -> Any:
    context = onnx.checker.C.CheckerContext()
    context.ir_version = 10
    context.opset_imports = {"": opset}
    return context
