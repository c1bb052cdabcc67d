"""The command `demo`: runs the experiment and reports it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyonednn_q.bench.progress import Progress
from pyonednn_q.demo import digits, experiment, fit, report
from pyonednn_q.errors import Error

BATCHES = (digits.HELD_OUT, 1)
ROUNDS = 100


def main(argv: Sequence[str] | None = None) -> int:
    """Run `python -m pyonednn_q demo`.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after `demo`; those of the process when left out.

    Returns
    -------
    int
        0, or 1 when something that the demo needs is missing.
    """
    parser = argparse.ArgumentParser(
        prog="pyonednn-q demo", description="Handwritten digits in FP32 and in INT8, compared."
    )
    parser.add_argument(
        "--batch",
        type=_batch,
        nargs="+",
        default=BATCHES,
        metavar="N",
        help="digits per timed call, up to the 449 held out (default: 449 1)",
    )
    parser.add_argument(
        "--rounds",
        type=_positive,
        default=ROUNDS,
        metavar="N",
        help=f"timed calls per layer and way (default: {ROUNDS})",
    )
    options = parser.parse_args(argv)
    try:
        show(options.batch, options.rounds)
    except Error as error:
        report.complain(str(error))
        return 1
    return 0


def show(batches: Sequence[int], rounds: int) -> None:
    """Run the experiment with a progress bar, then write the report.

    Parameters
    ----------
    batches : sequence of int
        Digits per timed call.
    rounds : int
        Timed calls per layer and way.
    """
    platform = experiment.platform()
    timings = fit.LAYERS + 1
    progress = Progress(fit.STEPS + 1 + len(batches) * timings)
    progress.phase("fitting the network")
    models = experiment.make_models(progress.tick)
    progress.phase(f"running {len(models.data.test_labels)} held-out digits")
    findings = experiment.compare(models)
    progress.tick()
    times = {}
    for batch in batches:
        progress.phase(f"timing batches of {batch}")
        times[batch] = experiment.time_layers(models, batch, rounds, progress.tick)
    progress.clear()
    report.write(report.whole(platform, models, findings, times, rounds))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        message = f"{number} is less than 1"
        raise argparse.ArgumentTypeError(message)
    return number


def _batch(text: str) -> int:
    number = _positive(text)
    if number > digits.HELD_OUT:
        message = f"{number} is more than the {digits.HELD_OUT} held-out digits"
        raise argparse.ArgumentTypeError(message)
    return number
