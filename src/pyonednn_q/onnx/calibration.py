"""Calibration: a float model, the ranges of its tensors, and the choice of INT8 layers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyonednn_q.argument import flag, function, one_of, real, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph.graph import Graph, Value
from pyonednn_q.onnx.bias_correction import with_biases_corrected
from pyonednn_q.onnx.calibration_options import scored
from pyonednn_q.onnx.calibration_table import described, table, times_of
from pyonednn_q.onnx.dynamic_recurrences import (
    recurrences_worth_codes,
    with_dynamic_recurrences,
)
from pyonednn_q.onnx.fake_quantize_form import fake_quantize_form
from pyonednn_q.onnx.float_types import FLOAT_TYPES, Floats, Values, float_types
from pyonednn_q.onnx.fusion import fuse
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.model_writer import save
from pyonednn_q.onnx.open_quantizers import at_inputs, opened, standing_for
from pyonednn_q.onnx.passes import passed
from pyonednn_q.onnx.quantized_form import (
    Ends,
    QuantizerPlacement,
    codes_name,
    layers_of,
    shared_ranges,
    with_quantizers,
)
from pyonednn_q.onnx.shared_layers import with_known_operators
from pyonednn_q.quantize.group_search import most_questions, smallest_group
from pyonednn_q.quantize.layer_sensitivity import LayerSensitivity
from pyonednn_q.quantize.quality import quality
from pyonednn_q.quantize.quantizers import PLAIN, Quantizers
from pyonednn_q.report.progress import Progress
from pyonednn_q.report.told import Told, joined

if TYPE_CHECKING:
    from pyonednn_q.network import Network
    from pyonednn_q.ops.operator import Operator
    from pyonednn_q.qparams import QParams
    from pyonednn_q.report.table import Table

# Passes of a float graph, after `with_norms_as_layers`.
PASSES = (with_biases_corrected, with_quantizers, with_dynamic_recurrences)


class Calibration(Told):
    """A float model, the ranges of its tensors, and which of its layers are INT8.

    Parameters
    ----------
    source : Graph
        Model without quantizers. Lengths of its inputs, and branches, may be open: `inputs` decide
        where quantizers go.
    ranges : mapping of str to (lo, hi)
        Range of each float tensor, in its units.
    inputs, values : mapping of str to ndarray
        One batch of inputs, and every tensor that the float model computes from it.
    floats : iterable of str, or mapping of str to {"f32", "bf16"}
        Names of layers that stay in floats, with a data type; f32 by default.
    quantizers : Quantizers
        QParams of the tensors that become codes.
    others : iterable of (mapping of str to ndarray, mapping of str to ndarray)
        Batches that take other branches, one for each choice of branches, and their tensors.

    Attributes
    ----------
    graph : Graph
        Model with quantizers, for `fuse`.
    changes : tuple of Change
        Tensors that become codes, each with the reason.
    source, ranges, quantizers
        Arguments of the constructor.
    floats : mapping of str to str
        Data types of the layers that stay in floats.
    layers : tuple of str
        Names of all layers, in order; then names of LSTMs that may run on codes.
    """

    def __init__(
        self,
        source: Graph,
        ranges: Mapping[str, tuple[float, float]],
        inputs: Values,
        values: Values,
        floats: Floats = (),
        quantizers: Quantizers = PLAIN,
        others: Iterable[tuple[Values, Values]] = (),
    ) -> None:
        self.source = source
        self.ranges = MappingProxyType(dict(ranges))
        self.quantizers = quantizers
        self._inputs, self._values = inputs, values
        self._batches = ((inputs, values), *others)
        self._plains = [at_inputs(source, each) for each, _ in self._batches]
        layers = [node.name for plain in self._plains for node in layers_of(plain)]
        of_steps = [each for plain in self._plains for each in recurrences_worth_codes(plain)]
        recurrences = [] if quantizers.config is not None else [node.name for node in of_steps]
        self._recurrences = frozenset(recurrences)
        self.layers = tuple(dict.fromkeys([*layers, *recurrences]))
        self._sensitivity: LayerSensitivity | None = None
        self._settle(floats)

    def _settle(self, floats: Floats) -> None:
        self.floats = MappingProxyType(float_types(floats, self.layers))
        stay = frozenset(self.floats)
        placements = [QuantizerPlacement(each, stay, self.ranges) for each in self._plains]
        changes = (change for placement in placements for change in placement.changes())
        self.changes = tuple(dict.fromkeys(changes))
        ranges, quantizers = self._shared(placements), self.quantizers
        corrected, placed, of_steps = PASSES
        shared = (
            partial(placed, ranges=ranges, floats=stay, quantizers=quantizers),
            partial(of_steps, names=self._recurrences - stay, quantize=quantizers.weights),
        )
        self._seen = []
        for plain, placement in zip(self._plains, placements, strict=True):
            first = partial(corrected, layers=placement.layers, quantizers=quantizers)
            self._seen.append(passed(plain, (first, *shared)))
        graph = opened(self.source, self._plains, self._seen)
        told = (change for seen in self._seen for change in seen.changes)
        self.graph = replace(graph, changes=tuple(dict.fromkeys(told)))

    def _shared(self, placements: Sequence[QuantizerPlacement]) -> Ends:
        """Return ranges that hold for all choices of branches: what one shares, all do."""
        if len(placements) == 1:
            return self.ranges
        names = dict.fromkeys(name for placement in placements for name in placement.tensors)
        groups = [group for placement in placements for group in placement.moved()]
        groups += standing_for(self.source, self._plains)
        return {**self.ranges, **shared_ranges(names, groups, self.ranges)}

    def notes(self) -> dict[str, str]:
        """Return notes: unmet wishes of a configuration, layers left in floats, times."""
        told = {f"config [{at}]": note for at, note in enumerate(self.quantizers.notes(), 1)}
        if self._sensitivity is not None:
            told["sensitivity"] = self._sensitivity.took()
        whys = self.quantizers.floats()
        return {**{name: why for name, why in whys.items() if name in self.floats}, **told}

    def model(self, *, exact_rounding: bool = False) -> Model:
        """Return the INT8 model; its `network()` runs it in one call.

        Parameters
        ----------
        exact_rounding : bool
            Option of `fuse`.
        """
        return Model(self._fused(self.graph, exact_rounding=exact_rounding))

    @property
    def network(self) -> Network:
        """The INT8 model as a network, compiled for the dims of the first batch."""
        model = self.model()
        model.run(self._inputs)
        return model.network()

    def save(self, file: str | os.PathLike[str], *, form: str = "qdq") -> None:
        """Write the model with its quantizers; `pyonednn_q.load` makes the same calls of it.

        Parameters
        ----------
        file : path
            File to write; an existing one is overwritten.
        form : {"qdq", "fake_quantize"}
            QuantizeLinear and DequantizeLinear; or FakeQuantize of OpenVINO's domain, the default
            of the training tool. Float layers are float32 in both.
        """
        one_of("form", form, ("qdq", "fake_quantize"))
        graph = self.graph if form == "qdq" else fake_quantize_form(self.graph)
        save(graph, file, self.options())

    def options(self, *, exact_rounding: bool = False) -> dict[str, Any]:
        """Return the options by which `fuse` makes the calls of `model` from `graph`."""
        flag("exact_rounding", exact_rounding)
        floats = dict(self.floats)
        return {"exact_rounding": exact_rounding, "keep_rounding": False, "floats": floats}

    def with_floats(self, floats: Floats) -> Calibration:
        """Return the same calibration with other layers in floats.

        Parameters
        ----------
        floats : iterable of str, or mapping of str to {"f32", "bf16"}
            Names of the layers, or patterns of names, with a data type; f32 by default.
        """
        other = Calibration.__new__(Calibration)
        other.__dict__.update(self.__dict__)  # what follows from the batch alone
        other._settle(floats)  # noqa: SLF001 - of its kind
        return other

    def sensitivity(self) -> LayerSensitivity:
        """Return the SQNR of the outputs if a layer alone is INT8, in dB, the worst layer first.

        One run for each layer, on the first batch that takes its branch; layers in floats are made
        ready once for all.
        The result is computed once for all choices of layers. Its `seconds`, its text, and notes of
        `summary` have the time it took.
        """
        if self._sensitivity is None:
            ready: dict[str, list[Operator]] = {}
            self._sensitivity = LayerSensitivity.of(self.layers, partial(self._alone, ready))
        return self._sensitivity

    def _alone(self, ready: dict[str, list[Operator]], layer: str) -> float:
        """Return the SQNR of the outputs if a layer alone is INT8, the worst of them."""
        alone = self.with_floats(name for name in self.layers if name != layer)
        lost = []
        for seen, (inputs, values) in zip(alone._seen, self._batches, strict=True):  # noqa: SLF001
            if layer in {node.name for node in seen.nodes}:
                fused = with_known_operators(fuse(seen, **alone.options()), ready)
                outputs = Model(fused).run(inputs)
                lost += [quality(values[name], y).sqnr for name, y in outputs.items()]
        return min(lost)

    def within(
        self,
        metric: Callable[[Any], float],
        least: float,
        *,
        dtype: str = "f32",
        tries: int | None = None,
    ) -> Calibration:
        """Turn back as few layers to floats as a metric needs.

        The most sensitive layers become floats together until the metric is reached; then each of
        them that the metric does not need in floats becomes INT8 again (`quantize.group_search`).

        Parameters
        ----------
        metric : callable
            Function from a `Model` to a number, higher for a better model: a share of right
            answers.
        least : float
            Value that the metric must reach.
        dtype : {"f32", "bf16"}
            Data type of the layers that are turned back.
        tries : int, optional
            Largest number of calls of `metric`, from 1 on; after that, the smallest set found so
            far is used. None: about two calls for each float layer, and a few more.

        Returns
        -------
        Calibration
            Reaches `least`; with one float layer less it does not (or that was not tried).

        Raises
        ------
        ArgumentError
            Not even the float model reaches `least`.
        """
        function("metric", metric)
        least = real("least", least, wide=True)
        one_of("dtype", dtype, FLOAT_TYPES)
        if tries is not None:
            whole("tries", tries, lo=1)
        if scored(metric, self.model()) >= least:
            return self

        def reached_with(group: Iterable[str]) -> float:
            return scored(metric, self._with(group, dtype).model())

        reached = reached_with(name for name in self.layers if name not in self.floats)
        if reached < least:
            raise ArgumentError("least", f"{least:g}, where no layer is INT8", f"<= {reached:g}")
        order = [name for name in self.sensitivity() if name not in self.floats]
        most = most_questions(len(order))
        total = most if tries is None else min(tries, most)
        with Progress(total, "layers that the metric needs in floats") as progress:

            def suffices(names: Sequence[str]) -> bool:
                enough = bool(names) and reached_with(names) >= least
                progress.tick()
                return enough

            group = smallest_group(order, suffices, tries)
        return self._with(group, dtype)

    def _with(self, names: Iterable[str], dtype: str) -> Calibration:
        """Return the same with more layers in floats."""
        return self.with_floats({**self.floats, **dict.fromkeys(names, dtype)})

    def summary(self, *, times: bool = False) -> str:
        """Return a table of nodes: how each runs, plan, exactness, SQNR, time.

        SQNR, in dB, compares a node's result with the float model's. It includes errors of earlier
        nodes, and is taken on the first batch of the calibration and the branches which that batch
        takes. Below the table are the reasons why layers run in floats.

        Parameters
        ----------
        times : bool
            Also measure microseconds of each layer with its chain, and of the same layer in
            float32.
        """
        flag("times", times)
        return joined(self._parts(times=times))

    def _parts(self, *, times: bool = False) -> Iterable[str | Table]:
        ready = Model(
            self._fused(self._seen[0])
        ).graph  # with the nodes of layers that no kernel takes
        names = [name for node in ready.nodes for name in node.outputs if name]
        outputs = {name: ready.tensors.get(name, Value("float32", None)) for name in names}
        seen = Model(replace(ready, outputs=MappingProxyType({**outputs, **ready.outputs})))
        values = {**self._inputs, **seen.run(self._inputs)}
        reals = codes_name(self._seen[0].nodes)
        rows = []
        for node in seen.nodes:
            name = reals.get(node.output, node.output)
            sqnr = self._sqnr(name, values[node.output], outputs[node.output].qparams)
            measured = times_of(node, values) if times else []
            rows.append([*described(node, values), sqnr, *measured])
        heads = ("nodes", "how", "runs", "implementation", "exactness")
        whys = {
            node.name: node.why
            for node in seen.nodes
            if any(part.name in self.layers for part in node.parts) and node.why
        }
        return table(heads, rows, {**whys, **self.notes()}, times=times)

    def _fused(self, graph: Graph, *, exact_rounding: bool = False) -> Graph:
        return fuse(graph, **self.options(exact_rounding=exact_rounding))

    def _sqnr(self, real: str, result: Array, q: QParams | None) -> str:
        """Return the cell of a table that compares a result, or its codes, with the real tensor."""
        if real not in self._values or real in self._inputs:
            return "-"
        result = result if q is None else q.dequantize(result)
        return f"{quality(self._values[real], result).sqnr:.1f}"

    def __reduce__(self) -> tuple[Any, ...]:
        batch = self._inputs, self._values
        own = (self.source, dict(self.ranges), *batch, dict(self.floats), self.quantizers)
        return type(self), (*own, self._batches[1:])

    def __repr__(self) -> str:
        return f"<Calibration of {len(self.layers)} layers, {len(self.floats)} in floats>"
