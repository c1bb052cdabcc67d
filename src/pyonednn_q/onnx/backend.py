"""A backend as the package onnx defines them: models in, results out, and how each node ran.

    from onnx.backend.test import BackendTest
    from pyonednn_q.onnx.backend import OnnxBackend

    globals().update(BackendTest(OnnxBackend, __name__).test_cases)

Nodes of our operators run on oneDNN. The others, and those that are refused, run through
`onnx.reference`; `OnnxModel.nodes` lists every one with its reason. Needs the package onnx.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.checker
from onnx.backend.base import Backend, BackendRep
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op

from pyonednn_q.argument import instance
from pyonednn_q.errors import ArgumentError, Error, UnsupportedError
from pyonednn_q.graph import kinds
from pyonednn_q.onnx.code_convolutions import conv_integer, qlinear_conv
from pyonednn_q.onnx.convolutions import conv, conv_transpose
from pyonednn_q.onnx.linear import dequantize_linear, dynamic_quantize_linear, quantize_linear
from pyonednn_q.onnx.matmuls import gemm, matmul, matmul_integer, qlinear_matmul
from pyonednn_q.onnx.reference_repairs import repaired_operators
from pyonednn_q.onnx.trace import trace
from pyonednn_q.shown import shortened, shown

OPERATORS: Mapping[str, Callable[..., Any]] = {
    kinds.CONV.name: conv,
    kinds.CONV_INTEGER.name: conv_integer,
    kinds.CONV_TRANSPOSE.name: conv_transpose,
    kinds.DEQUANTIZE.name: dequantize_linear,
    kinds.DYNAMIC_QUANTIZE.name: dynamic_quantize_linear,
    kinds.GEMM.name: gemm,
    kinds.MATMUL.name: matmul,
    kinds.MATMUL_INTEGER.name: matmul_integer,
    kinds.QLINEAR_CONV.name: qlinear_conv,
    kinds.QLINEAR_MATMUL.name: qlinear_matmul,
    kinds.QUANTIZE.name: quantize_linear,
}
_NOT_OURS = "onnx.reference: no operator of ours"
_NOT_RUN = "not run yet"


class NodeRun(NamedTuple):
    """Way in which a node of a model runs.

    Parameters
    ----------
    name : str
        Name of the node, or of its first output where it has none.
    operator : str
        Operator, with the domain unless it is ONNX's own.
    how : str
        The kernels and notes of its last call; or that `onnx.reference` ran it, and why.
    """

    name: str
    operator: str
    how: str


class OnnxModel(BackendRep):
    """A model that is ready to run.

    Parameters
    ----------
    model : ModelProto
        A model that `onnx.checker` passed.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._ran: dict[str, str] = {}
        operators = [_operator_class(name, self._ran) for name in OPERATORS]
        opsets = {each.domain: each.version for each in model.opset_import}
        self._evaluator = ReferenceEvaluator(
            model, new_ops=[*operators, *repaired_operators(opsets)]
        )

    def run(self, inputs: Any, **_options: Any) -> tuple[Any, ...]:  # noqa: ANN401 - the package's
        """Return the outputs of the graph, in its order.

        Parameters
        ----------
        inputs : sequence or mapping
            Arrays, in the order of the graph's inputs without initializers, or by their names.

        Raises
        ------
        ArgumentError
            More of them, or fewer.
        """
        if not isinstance(inputs, Mapping):
            values = list(inputs) if isinstance(inputs, Sequence) else [inputs]
            known = {each.name for each in self._model.graph.initializer}
            names = [each.name for each in self._model.graph.input]
            wanted = names if len(values) == len(names) else [n for n in names if n not in known]
            if len(values) > len(wanted):
                raise ArgumentError("inputs", f"{len(values)} of them", f"{len(wanted)}")
            inputs = dict(zip(wanted, values, strict=False))
        return tuple(self._evaluator.run(None, dict(inputs)))

    @property
    def nodes(self) -> tuple[NodeRun, ...]:
        """Way in which each node ran; nodes of subgraphs follow the node that has them."""
        functions = [node for function in self._model.functions for node in _within(function.node)]
        return tuple(self._said(node) for node in (*_within(self._model.graph.node), *functions))

    def _said(self, node: onnx.NodeProto) -> NodeRun:
        is_ours = node.domain == "" and node.op_type in OPERATORS
        how = self._ran.get(_key(node), _NOT_RUN) if is_ours else _NOT_OURS
        operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        return NodeRun(node.name or _key(node), operator, how)


class OnnxBackend(Backend):
    """The backend: what `onnx.backend.test.BackendTest` and `run_model` drive."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **_options: Any) -> bool:  # noqa: ANN401
        """Tell whether a model can be prepared: all of its operators are known somewhere."""
        try:
            cls.prepare(model, device)
        except Error:
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **_options: Any) -> OnnxModel:  # noqa: ANN401
        """Return a model ready to run.

        Parameters
        ----------
        model : ModelProto
            Model; it is checked first.
        device : str
            "CPU".

        Raises
        ------
        ArgumentError
            Another device, or no model that passes `onnx.checker`.
        UnsupportedError
            Operators that neither we nor `onnx.reference` know, by name.
        """
        instance("model", model, onnx.ModelProto)
        if not cls.supports_device(device):
            raise ArgumentError("device", shown(device), "'CPU'")
        try:
            onnx.checker.check_model(model)
        except onnx.checker.ValidationError as error:
            raise ArgumentError("model", shortened(str(error), 200), "a valid model") from None
        return cls.unchecked(model)

    @staticmethod
    def unchecked(model: onnx.ModelProto) -> OnnxModel:
        """Return a model ready to run that `onnx.checker` need not see."""
        try:
            return OnnxModel(model)
        except (NotImplementedError, RuntimeError, TypeError, ValueError, KeyError) as error:
            operators = ", ".join(sorted({node.op_type for node in _within(model.graph.node)}))
            detail = f"{type(error).__name__}: {shortened(str(error), 150)}"
            raise UnsupportedError("unimplemented", "onnx.reference", operators, detail) from None

    @classmethod
    def run_node(
        cls,
        node: Any,  # noqa: ANN401 - a NodeProto
        inputs: Any,  # noqa: ANN401 - arrays
        device: str = "CPU",
        outputs_info: Any = None,  # noqa: ANN401 - the package's
        **options: Any,  # noqa: ANN401
    ) -> tuple[Any, ...]:
        """Return the outputs of one node, as of a model of it alone.

        Parameters
        ----------
        node : NodeProto
            Node of ONNX's own domain.
        inputs : sequence of ndarray
            One for each input that it names.
        device : str
            "CPU".
        outputs_info : None
            Not read.
        **options
            `opset_version`, the newest by default.
        """
        instance("node", node, onnx.NodeProto)
        super().run_node(node, inputs, device, outputs_info, **options)  # checks it
        opset = options.get("opset_version", onnx.defs.onnx_opset_version())
        named = dict(zip([name for name in node.input if name], inputs, strict=True))
        helper = onnx.helper
        starts = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype), np.shape(value)
            )
            for name, value in named.items()
        ]
        ends = [helper.make_empty_tensor_value_info(name) for name in node.output]
        graph = helper.make_graph([node], "node", starts, ends)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        return cls.unchecked(model).run(named)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Tell whether it is a CPU."""
        return str(device).partition(":")[0] == "CPU"


is_compatible = OnnxBackend.is_compatible
prepare = OnnxBackend.prepare
run_model = OnnxBackend.run_model
run_node = OnnxBackend.run_node
supports_device = OnnxBackend.supports_device


class _ReferenceOperator(OpRun):
    """A node of an operator of ours, as `onnx.reference` calls it."""

    ran: dict[str, str]

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:  # noqa: ANN401
        node = self.onnx_node
        operator = OPERATORS[node.op_type]
        unknown = set(attributes) - set(signature(operator).parameters)
        try:
            if unknown:  # of another opset
                names = ", ".join(sorted(unknown))
                raise ArgumentError("attributes", names, "those of the newest opset")
            with trace() as calls:
                results = operator(*inputs, **attributes)
        except Error as error:  # a type that has no kernel, or a problem that has none
            results = self._through_reference(inputs, attributes)
            self.ran[_key(node)] = f"onnx.reference: {shortened(str(error), 300)}"
        else:
            self.ran[_key(node)] = str(calls[-1]).removeprefix(f"{node.op_type}: ")
        return results if isinstance(results, tuple) else (results,)

    def _through_reference(self, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> Any:  # noqa: ANN401
        node = self.onnx_node
        known = load_op(
            node.domain, node.op_type, self.run_params["opsets"][node.domain], evaluator_cls=None
        )
        instance_of = known(node, self.run_params)
        return instance_of._run(  # noqa: SLF001 - as OpRun.run calls it
            *inputs, **{name: attributes[name] for name in instance_of.attributes_names_}
        )


def _operator_class(name: str, ran: dict[str, str]) -> type[OpRun]:
    """Return the class by whose name `onnx.reference` finds it; it notes what ran in `ran`."""
    return type(name, (_ReferenceOperator,), {"op_domain": "", "ran": ran})


def _key(node: onnx.NodeProto) -> str:
    return str(next(iter(node.output), node.op_type))


def _within(nodes: Any) -> Iterator[onnx.NodeProto]:  # noqa: ANN401 - a repeated field
    """Give nodes, each followed by those of its subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _within(graph.node)
