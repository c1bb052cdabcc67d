"""Every case that the package onnx makes or ships: models, inputs, and what they must give."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import defs, numpy_helper
from onnx.backend.test.case import node as node_cases
from onnx.backend.test.loader import load_model_tests

Array = np.ndarray[Any, Any]
Values = dict[str, Any]  # arrays; lists and nothing where a case has no tensors

SHIPPED = ("node", "simple", "pytorch-operator", "pytorch-converted")
_OWN = {"", "ai.onnx"}
_FIRST, _LAST = 7, 26  # opsets that models of today have


@dataclass(frozen=True)
class StandardCase:
    """One case. rtol, atol: as far as the standard lets a backend be off."""

    name: str
    source: str
    model: onnx.ModelProto
    feeds: Values
    expected: Sequence[Any]
    rtol: float
    atol: float

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of its nodes' operators, with the domain unless that is ONNX's own."""
        nodes = self.model.graph.node
        names = [n.op_type if n.domain in _OWN else f"{n.domain}.{n.op_type}" for n in nodes]
        return tuple(dict.fromkeys(names))

    @property
    def is_of_tensors(self) -> bool:
        """Whether all that goes in are arrays."""
        return all(isinstance(value, np.ndarray) for value in self.feeds.values())


def cases() -> Iterator[StandardCase]:
    """Give all of them: those that are made, and shipped ones that are not among those."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making some of them overflows on purpose
        made = node_cases.collect_testcases(None)
    names = {case.name for case in made}
    for case in made:
        inputs = [each.name for each in case.model.graph.input]
        for given, expected in case.data_sets or ():
            feeds = dict(zip(inputs, map(_value, given), strict=False))
            wanted = [_value(each) for each in expected]
            yield StandardCase(case.name, "made", case.model, feeds, wanted, case.rtol, case.atol)
    for kind in SHIPPED:
        for case in load_model_tests(kind=kind):
            if case.name not in names and case.model_dir:
                yield from _shipped(kind, case)


def _shipped(kind: str, case: Any) -> Iterator[StandardCase]:
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    held = {each.name for each in model.graph.initializer}
    for data in sorted(folder.glob("test_data_set_*")):
        given, expected = (sorted(data.glob(f"{end}_*.pb"), key=_number)
                           for end in ("input", "output"))  # fmt: skip
        inputs = [*model.graph.input]
        if len(given) < len(inputs):
            inputs = [each for each in inputs if each.name not in held]
        feeds = {info.name: _read(file, info) for file, info in zip(given, inputs, strict=False)}
        wanted = [
            _read(file, info) for file, info in zip(expected, model.graph.output, strict=True)
        ]
        yield StandardCase(case.name, kind, model, feeds, wanted, case.rtol, case.atol)


def _number(file: Path) -> int:
    return int(file.stem.rpartition("_")[2])


def _read(file: Path, info: onnx.ValueInfoProto) -> Any:
    if not info.type.HasField("tensor_type"):
        return None
    return numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))


def _value(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else value


def forms(case: StandardCase) -> Iterator[tuple[str, onnx.ModelProto, Values]]:
    """Give the forms in which a model may have a case, and what is fed to each.

    As it is; all inputs but the first as constants, which is how models have axes and shapes; all
    of them as constants; and of one node, by the first and the last opset that have it the same.
    """
    yield "as it is", case.model, case.feeds
    if not case.is_of_tensors:
        return
    names = list(case.feeds)
    for form, held in (("constants", names[1:]), ("of constants", names)):
        if held:
            left = {name: each for name, each in case.feeds.items() if name not in held}
            yield form, _holding(case.model, case.feeds, held), left
    for opset in _same_opsets(case.model):
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        for each in model.opset_import:
            if each.domain in _OWN:
                each.version = opset
        yield f"opset {opset}", model, case.feeds


def _holding(
    model: onnx.ModelProto, feeds: Mapping[str, Array], held: Sequence[str]
) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.ir_version = max(made.ir_version, 4)  # before, initializers had to be inputs
    graph = made.graph
    kept = [each for each in graph.input if each.name not in held]
    graph.initializer.extend(numpy_helper.from_array(feeds[name], name) for name in held)
    del graph.input[:]
    graph.input.extend(kept)
    return made


def _same_opsets(model: onnx.ModelProto) -> list[int]:
    """Return the first and the last opset of the version of an operator, but for the model's."""
    nodes = model.graph.node
    own = [each.version for each in model.opset_import if each.domain in _OWN]
    if len(nodes) != 1 or nodes[0].domain not in _OWN or not own:
        return []
    kind = nodes[0].op_type
    since = defs.get_schema(kind, own[0], "").since_version
    same = [
        opset
        for opset in range(max(since, _FIRST), _LAST + 1)
        if defs.get_schema(kind, opset, "").since_version == since
    ]
    return sorted({*same[:1], *same[-1:]} - {own[0]})
