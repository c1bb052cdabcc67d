"""What the demo says on standard output. Nothing else here prints."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from pyonednn_q.demo.experiment import Findings, Models, Platform
from pyonednn_q.demo.layers import Step
from pyonednn_q.demo.measure import Accuracy, LayerNoise, Pair
from pyonednn_q.demo.network import Conv, Dense, Network


def write(text: str) -> None:
    """Print `text` and a line end."""
    sys.stdout.write(text + "\n")


def complain(text: str) -> None:
    """Print an error."""
    sys.stderr.write(f"demo: {text}\n")


def whole(
    platform: Platform,
    models: Models,
    findings: Findings,
    times: Mapping[int, Sequence[Pair]],
    rounds: int,
) -> str:
    """Return the report.

    Parameters
    ----------
    platform : Platform
        Library and machine.
    models : Models
        What was fitted and quantised.
    findings : Findings
        Accuracy, and the layers as they ran.
    times : mapping of int to sequence of Pair
        Timings by batch.
    rounds : int
        Timed calls per layer and way.

    Returns
    -------
    str
        Several paragraphs, without a line end at the end.
    """
    parts = [
        "Handwritten digits in FP32 and in INT8, both by oneDNN in this process",
        facts_text(platform, models),
        accuracy_text(findings.accuracy),
        layers_text(findings.float32, findings.int8),
        noise_text(findings.int8, findings.noises),
    ]
    for batch, pairs in times.items():
        title = f"Batch {batch}: medians of {rounds} warm calls each way, FP32 and INT8 in turn"
        parts.append(f"{title}\n{times_text(pairs)}")
    return "\n\n".join(parts)


def facts_text(platform: Platform, models: Models) -> str:
    """Return what ran on what, one fact a line."""
    data = models.data
    rows = [
        ("library", f"oneDNN {platform.version} ({platform.runtime})"),
        ("machine", machine_text(platform)),
        ("data", f"{len(data.train_labels)} digits fitted on, {len(data.test_labels)} held out"),
        ("network", network_text(models.network)),
        ("fit", f"{models.fit_seconds:.1f} s; activation ranges measured on the same digits"),
        ("INT8", "u8 activations, s8 weights with a scale per channel, f32 bias and logits;"),
        ("", "relu needs no post-op, the u8 store cuts at 0"),
        *zip(("weights", ""), weights_text(platform, models.wei_qmax), strict=False),
    ]
    return "\n".join(f"  {name:<7}  {value}" for name, value in rows)


def machine_text(platform: Platform) -> str:
    """Return instruction set and threads, with a warning when other work shares the CPUs."""
    text = f"{platform.isa.text()}, {platform.threads} threads, load average {platform.load:.1f}"
    busy = platform.load > platform.threads / 2
    return f"{text}: BUSY, times include waiting" if busy else text


def network_text(network: Network) -> str:
    """Return the layers and their sizes in one line."""
    parts = []
    for layer in network:
        if isinstance(layer, Conv):
            size = f"{layer.wei.shape[1]}->{layer.wei.shape[0]} 3x3"
        elif isinstance(layer, Dense):
            size = f"{layer.wei.shape[0]}->{layer.wei.shape[1]}"
        else:
            size = f"max {layer.kernel}x{layer.kernel}"
        parts.append(f"{layer.name} {size}")
    return ", ".join(parts)


def weights_text(platform: Platform, wei_qmax: int) -> tuple[str, ...]:
    """Say which weights this CPU can multiply without saturation, and why."""
    if platform.isa.has_vnni():
        return (
            f"within [-{wei_qmax}, {wei_qmax}]: {platform.isa.text()} has VNNI, which adds u8 x s8",
            "products in 32 bits, so none saturates",
        )
    return (
        f"within [-{wei_qmax}, {wei_qmax}], 7 bits: {platform.isa.text()} has no VNNI, so pairs of",
        "u8 x s8 products are added in 16 bits, where larger weights can saturate",
    )


def accuracy_text(accuracy: Accuracy) -> str:
    """Return right answers and agreement."""
    counts = [
        ("FP32 right", accuracy.float32),
        ("INT8 right", accuracy.int8),
        ("same answer", accuracy.same),
    ]
    rows = [
        (name, f"{count} of {accuracy.images}", f"{count / accuracy.images:.2%}")
        for name, count in counts
    ]
    return f"Accuracy\n{table(('held-out digits', 'count', 'share'), rows)}"


def layers_text(float32: Sequence[Step], int8: Sequence[Step]) -> str:
    """Return implementation, attributes and post-ops of every layer, both ways."""
    rows = []
    for exact, quantised in zip(float32, int8, strict=True):
        for name, label, step in ((exact.name, "FP32", exact), ("", "INT8", quantised)):
            prepared = step.prepared
            rows.append((name, label, prepared.impl, prepared.attr.text() or "none"))
    title = "What ran; a mask of 0 means one value, another one value per output channel"
    header = ("layer", "", "implementation", "attributes and post-ops (scale:mask)")
    notes = [
        f"  note on {step.name}: {note}"
        for step in (*float32, *int8)
        for note in step.prepared.notes
    ]
    return "\n".join([title, table(header, rows, left=4), *notes])


def noise_text(int8: Sequence[Step], noises: Sequence[LayerNoise]) -> str:
    """Return the SQNR of every INT8 layer."""
    rows = [
        (step.name, f"{noise.alone_db:.1f}", f"{noise.in_network_db:.1f}")
        for step, noise in zip(int8, noises, strict=True)
    ]
    title = "SQNR in dB of each INT8 layer against FP32: with the FP32 source in u8, and as it ran"
    return f"{title}\n{table(('layer', 'alone', 'in the network'), rows)}"


def times_text(pairs: Sequence[Pair]) -> str:
    """Return medians both ways, one row a layer and one for all of them in a row."""
    rows = [
        (pair.name, f"{pair.float_us:.1f}", f"{pair.int8_us:.1f}", pair.verdict) for pair in pairs
    ]
    return table(("layer", "FP32 us", "INT8 us", "INT8 is (95 % interval)"), rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return rows under a header, the first `left` columns left-aligned, the others right-aligned.

    Examples
    --------
    >>> print(table(("a", "b"), [("x", "10"), ("yy", "7")]))
      a    b
      --  --
      x   10
      yy   7
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    lines = []
    for row in (header, rule, *rows):
        cells = [
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(lines)
