"""``pyonednn-q quantize``: make an INT8 model from a float ONNX model and samples of its inputs.

It calibrates, writes the model, reads it again as anybody would, and compares its outputs with the
float model's. With --within layers are turned back to floats, the most sensitive first, until the
outputs are that near; no labels are needed for that.

{form}

pyonednn-q quantize model.onnx --data samples.npz --out int8.onnx
pyonednn-q quantize model.onnx --data folder --out int8.onnx --estimators mse --within 30
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pyonednn_q.commands.words import dims_of
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, UnsupportedError
from pyonednn_q.models.sample_files import FORM, SampleFiles
from pyonednn_q.report.page import document, paragraphs, wide
from pyonednn_q.report.progress import Progress, counted
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import printable, shortened, shown

if TYPE_CHECKING:
    import argparse

    import numpy as np

    from pyonednn_q.graph.graph import Graph
    from pyonednn_q.models.outputs_compared import OutputCompared
    from pyonednn_q.onnx.calibration import Calibration
    from pyonednn_q.onnx.model import Model

    Batch = Mapping[str, np.ndarray[Any, Any]]

__doc__ = (__doc__ or "").format(form=FORM)
__all__ = ["run"]

SCHEMA = 1
FINDING = 1
_WIDE = 60  # characters of a reason


def run(options: argparse.Namespace) -> int:
    """Quantize, check, write and report."""
    out: Path = options.out
    if out.exists() and options.model.exists() and out.samefile(options.model):
        raise ArgumentError("--out", shown(str(out)), "another file than the model")
    for argument, number in (("--batch", options.batch), ("--limit", options.limit)):
        if number is not None and number < 1:
            raise ArgumentError(argument, str(number), "a number above 0")
    told = _quantized(options, out)
    print(json.dumps(told.plain(), indent=1) if options.json else told.text())
    if options.html is not None:
        options.html.write_text(told.html(), "utf-8", "replace")
    return 0 if told.is_fine else FINDING


def _quantized(options: argparse.Namespace, out: Path) -> _QuantizationReport:
    from pyonednn_q.models.loaded_model import load
    from pyonednn_q.models.outputs_compared import CHECKED, bound_of, compared, least_of
    from pyonednn_q.onnx.calibrator import calibrate
    from pyonednn_q.onnx.model_reader import load as read_graph

    bound = None if options.within is None else bound_of(options.within)
    graph = read_graph(options.model, dims=dims_of(options.dims))
    samples = SampleFiles(options.data, graph, options.batch)
    settings: dict[str, Any] = {"floats": options.floats}
    settings |= {} if options.config is None else {"config": options.config}
    settings |= {} if options.estimators is None else {"estimators": options.estimators}
    settings |= {} if options.passes is None else {"passes": options.passes.split(",")}
    with Progress(5) as progress:
        progress.phase("reading samples")
        batches = list(samples.first(CHECKED))
        progress.tick()

        start = perf_counter()
        progress.phase("calibrating")
        calibration = calibrate(graph, samples.first(options.limit), **settings)
        progress.tick()
        progress.phase("searching what to keep in floats" if bound else "running the float model")
        floats = calibration.with_floats(["*"]).model()
        reals = _run(floats, batches)
        if bound is not None:
            measure, least = bound

            def worst(model: Model) -> float:
                return least_of(measure, compared(reals, _run(model, batches)))

            calibration = calibration.within(worst, least)
        seconds = perf_counter() - start
        progress.tick()

        progress.phase("comparing what was written")
        calibration.save(out, form=options.form)
        model = load(out, dims=dims_of(options.dims))
        outputs = compared(reals, _run(model, batches))
        progress.tick()
        progress.phase("measuring")
        milliseconds = _milliseconds(model, floats, graph, batches[0])
    return _QuantizationReport(
        model=options.model.name,
        out=out,
        layers=len(calibration.layers),
        floats=_floats(calibration, model),
        samples=len(batches) if samples.is_by_file else _count(batches),
        seconds=seconds,
        sensitivity=calibration.notes().get("sensitivity", ""),
        nbytes=(options.model.stat().st_size, out.stat().st_size),
        milliseconds=milliseconds,
        outputs=outputs,
    )


def _run(model: Model, batches: Sequence[Batch]) -> list[dict[str, Array]]:
    return [model.run(each) for each in counted(batches, "batches")]


@dataclass(frozen=True, slots=True)
class _QuantizationReport:
    """Report of a calibration.

    Attributes
    ----------
    model, out
        The model's file, and what was written.
    layers : int
        Number of layers.
    floats : mapping of str to str
        Layers in floats, with the reason of each.
    samples : int
        Number of samples that were compared.
    seconds : float
        Time of calibrating, in seconds, with what --within took.
    sensitivity : str
        Time of the passes that order layers for --within; empty: there were none.
    nbytes : pair of int
        Bytes of the float file and of the INT8 file.
    milliseconds : mapping of str to float
        Medians of a call on the first batch, by what was called.
    outputs : sequence of OutputCompared
        Each output.
    """

    model: str
    out: Path
    layers: int
    floats: Mapping[str, str]
    samples: int
    seconds: float
    sensitivity: str
    nbytes: tuple[int, int]
    milliseconds: Mapping[str, float]
    outputs: Sequence[OutputCompared]

    @property
    def is_fine(self) -> bool:
        """Whether some layer is INT8, and all outputs are finite."""
        return len(self.floats) < self.layers and all(each.is_finite for each in self.outputs)

    def plain(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "schema": SCHEMA,
            "model": self.model,
            "out": str(self.out),
            "layers": self.layers,
            "floats": dict(self.floats),
            "samples": self.samples,
            "seconds": self.seconds,
            "sensitivity": self.sensitivity,
            "float_bytes": self.nbytes[0],
            "int8_bytes": self.nbytes[1],
            "milliseconds": dict(self.milliseconds),
            "outputs": [each.plain() for each in self.outputs],
        }

    def html(self) -> str:
        """Return it as a page."""
        floats = [[name, why] for name, why in self.floats.items()]
        beside = f"Outputs beside those of the float model, {self.samples} samples"
        parts = [("What came of it", paragraphs(self._about())), (beside, wide(self._outputs()))]
        if floats:
            parts.append(
                ("Layers in floats", wide(Table([Column("layer"), Column("why")], floats)))
            )
        return document("pyonednn-q quantize", f"{self.model} -> {self.out.name}", parts)

    def _outputs(self) -> Table:
        columns = [Column("output"), *(Column(name, right=True) for name in _COLUMNS)]
        cells = [
            [
                printable(each.name),
                str(each.values),
                _sqnr(each),
                f"{each.cosine:.6f}",
                f"{each.largest:.4g}",
                "-" if each.top1 is None else f"{each.top1:.2%}",
            ]
            for each in self.outputs
        ]
        return Table(columns, cells)

    def _about(self) -> list[str]:
        before, after = self.nbytes
        count = f"{self.layers - len(self.floats)} of {self.layers} layers in INT8"
        times = ", ".join(f"{ms:.3g} ms {name}" for name, ms in self.milliseconds.items())
        return [
            f"{count}, found in {self.seconds:.1f} s",
            *([f"sensitivity: {self.sensitivity}"] if self.sensitivity else []),
            f"{before / 1e6:.2f} MB before, {after / 1e6:.2f} MB now",
            f"a call: {times}",
        ]

    def text(self) -> str:
        """Return it as lines, and a table of outputs."""
        floats = [
            printable(f"  {name}: {shortened(why, _WIDE)}") for name, why in self.floats.items()
        ]
        return "\n".join(
            [
                printable(f"{self.model} -> {self.out}"),
                *self._about(),
                "",
                f"outputs beside those of the float model, {self.samples} samples",
                self._outputs().text(),
                *(["", "layers in floats", *floats] if floats else []),
            ]
        )


def _sqnr(each: OutputCompared) -> str:
    if not each.is_alike:
        return "other dims"
    return f"{each.sqnr:.1f}" if each.is_finite else "not finite"


_COLUMNS = ("values", "SQNR dB", "cosine", "largest difference", "same top 1")


def _floats(calibration: Calibration, model: Model) -> dict[str, str]:
    """Return the layers that run in floats, each with the reason."""
    running = {
        part.name: node for node in model.nodes for part in node.parts
    }  # of the same names as the calibration's
    told = calibration.notes()
    known = {name: told.get(name, "as asked for") for name in calibration.floats}
    for name in calibration.layers:
        node = running.get(name)
        if name not in known and node is not None and not node.how.startswith("INT8"):
            known[name] = node.why or node.how
    return known


def _count(batches: Sequence[Batch]) -> int:
    return sum(max((len(each) for each in b.values() if each.ndim), default=1) for b in batches)


def _milliseconds(model: Model, floats: Model, graph: Graph, batch: Batch) -> dict[str, float]:
    """Return times of calls of both forms, and of onnxruntime if it is installed."""
    from pyonednn_q.models.peer_sessions import installed, ready
    from pyonednn_q.native import runtime
    from pyonednn_q.native.first_run import LOGGER
    from pyonednn_q.native.timing import REST_S, Budget, interleaved, looped
    from pyonednn_q.onnx.open_dims import bound

    calls = {
        "INT8": looped(lambda: model.run(batch)),
        "FP32": looped(lambda: floats.run(batch)),
    }
    known = bound(graph, {name: batch[name].shape for name in graph.symbols})
    for peer in installed(["onnxruntime"]):
        try:
            call = ready(peer, known, batch, runtime.get_num_threads())
        except UnsupportedError as error:
            LOGGER.warning("not timed: %s: %s", peer, error)
            continue
        calls[f"FP32 by {peer}"] = looped(call)
    timed = interleaved([*calls.values()], Budget(), rest_s=REST_S)
    return {name: median(t.samples_us) / 1e3 for name, t in zip(calls, timed, strict=True)}
