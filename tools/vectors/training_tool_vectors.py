"""Write what the training tool (NNCF 2.18) makes of configurations: ranges, end to end.

    python tools/vectors/training_tool_vectors.py tests/data/training_tool.json

It needs nncf==2.18.* and torch. A network of one convolution is quantized by each configuration,
what comes out are the ranges of weights and source as the tool exports them, or its error. The
tensors are drawn by `tests/support/training_tool.py`, so that the file holds results alone.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.training_tool import exported

KINDS = ("min_max", "mixed_min_max", "mean_min_max", "threesigma", "percentile", "mean_percentile")
FREE, CPU = "TRIAL", "CPU"


def cases() -> list[dict[str, Any]]:
    """Return the configurations: which tensors, which device, and the algorithm's section."""
    found: list[dict[str, Any]] = []
    for kind, mode, channels, tensors in product(
        KINDS, ("symmetric", "asymmetric"), (False, True), ("signed", "unsigned", "mostly unsigned")
    ):
        each = {"mode": mode, "per_channel": channels}
        spread = {"min_percentile": 2.0, "max_percentile": 97.0}
        begin = {"type": kind} | ({"params": spread} if "percentile" in kind else {})
        found.append(case(tensors, FREE, begin, weights=each, activations=each))
    for device, fix, mode, channels in product(
        (CPU, "ANY"), ("enable", "disable"), ("symmetric", "asymmetric"), (False, True)
    ):
        weights = {"mode": mode, "per_channel": channels}
        found.append(case("signed", device, {}, weights=weights, overflow_fix=fix))
    for bits, mode, signed in product((2, 4, 8), ("symmetric", "asymmetric"), (None, False, True)):
        each = {"mode": mode, "bits": bits} | ({} if signed is None else {"signed": signed})
        both = ("signed", "small")
        found += [case(tensors, FREE, {}, weights=each, activations=each) for tensors in both]
    for device, preset in product((FREE, CPU, "ANY"), ("performance", "mixed")):
        found.append(case("signed", device, {}, preset=preset))
    for device, bits in product((CPU, "ANY"), (3, 4)):
        found.append(case("signed", device, {}, weights={"bits": bits}))
        found.append(case("signed", device, {}, activations={"bits": bits}))
    for device, bits in product(("NPU", "GPU"), (2, 3, 4)):
        found.append(case("signed", device, {}, weights={"bits": bits}))
    for device in (CPU, "ANY", "NPU", "GPU"):
        found.append(case("signed", device, {}))
        found.append(case("signed", device, {}, activations={"per_channel": True}))
        found.append(case("signed", device, {}, activations={"mode": "asymmetric"}))
        found.append(case("signed", device, {}, weights={"signed": False}))
    ends = {"type": "min_max", "num_init_samples": 6}
    changes: list[dict[str, Any]] = [
        {"mode": "asymmetric"}, {"bits": 4}, {"signed": False}, {"initializer": {"range": ends}},
    ]  # fmt: skip
    for device, role, change in product((FREE, CPU, "NPU"), ("weights", "activations"), changes):
        found.append(case("signed", device, {}, scope_overrides={role: {"{re}.": change}}))
    return found


def case(tensors: str, device: str, begin: dict[str, Any], **section: object) -> dict[str, Any]:
    """Return one configuration."""
    initializer = {"range": begin | {"num_init_samples": 6}}
    section |= {"algorithm": "quantization", "initializer": initializer}
    return {"tensors": tensors, "target_device": device, "section": section}


def main() -> None:
    """Run every configuration, and write one file."""
    import nncf

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    nncf.set_log_level(logging.ERROR)
    rows = []
    for one in cases():
        try:
            rows.append(one | {"exported": exported(one)})
        except Exception as error:
            rows.append(one | {"error": f"{type(error).__name__}: {str(error)[:80]}"})
    text = ",\n".join(json.dumps(row) for row in rows)
    origin = json.dumps(f"NNCF {nncf.__version__}, by tools/vectors/training_tool_vectors.py")
    options.out.write_text(f'{{"origin": {origin}, "cases": [\n{text}\n]}}\n')
    print(f"{options.out}: {len(rows)} configurations, {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
