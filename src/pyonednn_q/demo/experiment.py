"""The experiment: fit, quantise, run both ways on held-out digits, compare, time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from pyonednn_q.bench.summary import sqnr_db
from pyonednn_q.compose.isa import InstructionSet
from pyonednn_q.demo import digits, fit, layers, measure, quantise
from pyonednn_q.demo.network import Network
from pyonednn_q.native import runtime

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Platform:
    """What the numbers depend on: library, instruction set, threads, and how busy the CPUs are."""

    version: str
    runtime: str
    isa: InstructionSet
    threads: int
    load: float


@dataclass(frozen=True, slots=True, eq=False)
class Models:
    """One network as numbers: what is run, for any batch.

    Attributes
    ----------
    data : Digits
        What it was fitted on, and what was held out.
    network : Network
        Float layers.
    quantised : Int8Network
        The same layers in integers.
    wei_qmax : int
        The largest magnitude of an integer weight.
    fit_seconds : float
        What the fit took.
    """

    data: digits.Digits
    network: Network
    quantised: quantise.Int8Network
    wei_qmax: int
    fit_seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """Both ways on all held-out digits.

    Attributes
    ----------
    float32, int8 : tuple of Step
        The layers as they ran.
    accuracy : Accuracy
        Right answers and agreement.
    noises : tuple of LayerNoise
        SQNR of each INT8 layer.
    """

    float32: tuple[layers.Step, ...]
    int8: tuple[layers.Step, ...]
    accuracy: measure.Accuracy
    noises: tuple[measure.LayerNoise, ...]


def platform() -> Platform:
    """Ask the loaded library what it is, and the machine how busy it is with other work."""
    return Platform(
        version=".".join(map(str, runtime.version())),
        runtime=runtime.threading_runtime(),
        isa=runtime.isa(),
        threads=runtime.get_num_threads(),
        load=os.getloadavg()[0],
    )


def make_models(tick: Callable[[], None] = lambda: None) -> Models:
    """Fit the network and quantise it for this CPU.

    Parameters
    ----------
    tick : callable, optional
        Called `fit.STEPS` times.

    Returns
    -------
    Models
        Weights within 7 bits unless the CPU has VNNI.
    """
    data = digits.load()
    start = time.perf_counter()
    network = fit.fit(data, tick)
    fit_seconds = time.perf_counter() - start
    maxima = quantise.measure_ranges(network, fit.real_images(data.train_images))
    wei_qmax = quantise.wei_qmax(has_vnni=runtime.isa().has_vnni())
    quantised = quantise.quantise(network, maxima, wei_qmax)
    return Models(data, network, quantised, wei_qmax, fit_seconds)


def compare(models: Models) -> Findings:
    """Run all held-out digits both ways and compare answers and layers.

    Parameters
    ----------
    models : Models
        From `make_models`.

    Returns
    -------
    Findings
    """
    pixels = models.data.test_images
    float32 = layers.float_steps(models.network, pixels.shape)
    int8 = layers.int8_steps(models.quantised, pixels.shape)
    exact = run(float32, fit.real_images(pixels))
    codes = run(int8, pixels)
    labels = models.data.test_labels
    accuracy = measure.Accuracy(
        images=len(labels),
        float32=measure.correct(exact[-1], labels),
        int8=measure.correct(codes[-1], labels),
        same=measure.correct(codes[-1], exact[-1].argmax(axis=1)),
    )
    sources = (fit.real_images(pixels), *exact[:-1])
    noises = []
    for step, src, dst, got in zip(int8, sources, exact, codes, strict=True):
        alone = step.prepared(step.view(step.encode(src)))
        noises.append(
            measure.LayerNoise(
                alone_db=sqnr_db(dst, step.decode(alone)),
                in_network_db=sqnr_db(dst, step.decode(got)),
            )
        )
    return Findings(float32, int8, accuracy, tuple(noises))


def run(steps: Sequence[layers.Step], images: Array) -> list[Array]:
    """Run every step once and return all results.

    Parameters
    ----------
    steps : sequence of Step
        The network.
    images : (N, 1, 8, 8)
        float32 in [0, 1] for FP32 steps, uint8 pixels for INT8 steps.

    Returns
    -------
    list of ndarray
        One per step; the last are the logits.
    """
    calls = layers.bind(steps, images)
    for call in calls:
        call()
    return [call.dst for call in calls]


def time_layers(
    models: Models, batch: int, rounds: int, tick: Callable[[], None]
) -> list[measure.Pair]:
    """Time every layer both ways, then all layers in a row.

    Parameters
    ----------
    models : Models
        From `make_models`.
    batch : int
        Held-out digits per call.
    rounds : int
        Timed calls per layer and way.
    tick : callable
        Called once per layer and once for the whole.

    Returns
    -------
    list of Pair
        The layers, then "all".
    """
    pixels = models.data.test_images[:batch]
    float32 = layers.float_steps(models.network, pixels.shape)
    float_calls = layers.bind(float32, fit.real_images(pixels))
    int8_calls = layers.bind(layers.int8_steps(models.quantised, pixels.shape), pixels)

    def all_of(calls: Sequence[layers.Call]) -> Callable[[], None]:
        def call_all() -> None:
            for call in calls:
                call()

        return call_all

    whole = ("all", all_of(float_calls), all_of(int8_calls))
    # Once through, so that every layer reads real activations.
    whole[1]()
    whole[2]()
    names = [step.name for step in float32]
    return measure.time_interleaved(
        [*zip(names, float_calls, int8_calls, strict=True), whole], rounds, tick
    )
