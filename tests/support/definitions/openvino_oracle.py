"""OpenVINO's own FakeQuantize, and answers recorded from it.

Three paths through it compute in three orders: the operator's reference, the CPU plugin's node, and
the plugin's fused elementwise code. The low-precision pass is off: it changes ranges.
To record again, with OpenVINO installed: `python -m support.definitions.openvino_oracle`.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from support.definitions import rational

RECORDED = Path(__file__).parents[2] / "others" / "golden" / "openvino_fake_quantize.json"
LEVELS = (2, 16, 255, 256, 65536)
PER_TENSOR = (-1.3, 2.1, -3.0, 5.0)
PER_CHANNEL = ([-1.0, -0.25, 0.1], [0.7, 2.0, 3.3], -2.0, [2.0, 1.0, 5.5])
EDGES = {
    "input range reversed": (1.3, -0.7, 0.0, 255.0),
    "output range reversed": (-1.3, 2.1, 5.0, -3.0),
    "empty input range": (0.5, 0.5, -1.0, 2.0),
}

Array = np.ndarray[Any, Any]
Ranges = tuple[Any, ...]


def answer(order: str, x: Array, ranges: Ranges, levels: int) -> Array:
    """Compute on the path that has this order."""
    ov, ops = import_module("openvino"), import_module("openvino.opset13")
    bounds = [np.asarray(value, np.float32) for value in ranges]
    parameter = ops.parameter(list(x.shape), np.float32)
    node = ops.fake_quantize(parameter, *map(ops.constant, bounds), levels)
    if order == "core":
        out = ov.TensorVector([ov.Tensor(np.zeros_like(x))])
        node.evaluate(out, ov.TensorVector([ov.Tensor(array) for array in (x, *bounds)]))
        return np.array(out[0].data)
    options = {
        "LP_TRANSFORMS_MODE": "OFF",
        "INFERENCE_PRECISION_HINT": "f32",
        "SNIPPETS_MODE": "DISABLE" if order == "fma" else "ENABLE",
    }
    model = ov.Model([ops.result(node)], [parameter])
    return np.array(ov.Core().compile_model(model, "CPU", options)(x)[0])


def along_channels(ranges: Ranges, ndim: int) -> Ranges:
    """Shape per-channel ranges for channels on axis 1."""
    dims = (1, -1, *(1,) * (ndim - 2))
    return tuple(np.reshape(value, dims if np.ndim(value) else ()) for value in ranges)


def _record() -> list[dict[str, Any]]:
    cases = []
    for levels in LEVELS:
        for name, ranges in (("per tensor", PER_TENSOR), ("per channel", PER_CHANNEL)):
            orders = tuple(rational.ORDERS) if levels != 2 else ("core", "fma")
            cases.append(_case(name, ranges, levels, orders))
        cases.append(_case("per element", _elementwise(levels), levels, ("core",)))
    cases += [_case(name, ranges, 256, ("core",)) for name, ranges in EDGES.items()]
    return cases


def _elementwise(levels: int) -> Ranges:
    rng = np.random.default_rng(levels)
    low = rng.normal(size=(1, 3, 1, 8)).astype(np.float32)
    width = rng.uniform(0.5, 3.0, low.shape).astype(np.float32)
    return low, low + width, -width, low * width


def _case(name: str, ranges: Ranges, levels: int, orders: tuple[str, ...]) -> dict[str, Any]:
    shaped = ranges if name == "per element" else along_channels(ranges, 4)
    width = 8 if name == "per element" else 4096
    low, high = np.minimum(shaped[0], shaped[1]), np.maximum(shaped[0], shaped[1])
    x = rational.beside_ties(low, high + (low == high), levels, (1, 3, 1, width), seed=levels)
    answers = {order: answer(order, x, shaped, levels) for order in orders}
    if width > 8:
        keep = _most_telling(answers)
        x, answers = x[..., keep], {order: y[..., keep] for order, y in answers.items()}
    return {
        "name": name,
        "levels": levels,
        "ranges": [_short(np.asarray(value, np.float32)) for value in shaped],
        "x": _short(x),
        **{order: _short(y) for order, y in answers.items()},
    }


def _short(values: Array) -> Any:
    """Write float32 values with the fewest digits that lead back to them."""
    digits = [float(str(value)) for value in values.reshape(-1)]
    assert np.array_equal(np.array(digits, np.float32), values.reshape(-1))
    return np.reshape(digits, values.shape).tolist()


def _most_telling(answers: dict[str, Array]) -> Array:
    """Choose the columns in which the orders disagree most, and some others."""
    first, *others = answers.values()
    differ = sum(((first != y).sum(axis=(0, 1, 2)) for y in others), np.zeros(first.shape[-1]))
    if len(answers) == 3:  # the last two are nearly alike: what tells them apart comes first
        differ = differ + 10 * (others[0] != others[1]).sum(axis=(0, 1, 2))
    order = np.argsort(-differ, kind="stable")
    return np.sort(np.concatenate([order[:6], order[-4:]]))


if __name__ == "__main__":
    lines = [json.dumps(case) for case in _record()]
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n")
