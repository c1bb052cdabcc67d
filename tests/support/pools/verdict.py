"""What became of a drawn pool in each form in which it runs here, and in onnxruntime."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime

import pyonednn_q as pq
from pyonednn_q import emulate
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.network import Network, Node, Pool
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.reference_call import reference_call
from pyonednn_q.qparams import QParams
from support.pools.cases import PoolCase
from support.pools.text import NotSaid, Pooled, pooled

Array = np.ndarray[Any, Any]

_U = 2.0**-24
_NAMES = {"u8": np.uint8, "s8": np.int8}


@dataclass
class PoolVerdict:
    """What became of a case.

    faults: values, types or dims that are not the text's. refused: by what. ran: forms that gave
    the text's values. theirs: "right", "refused", or in which words onnxruntime differs. open:
    what the text does not say.
    """

    faults: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    theirs: str = ""
    open: str = ""


def judged(case: PoolCase) -> PoolVerdict:
    """Run a case in all forms that it has."""
    verdict = PoolVerdict()
    expected: Pooled | None = None
    try:
        expected = _expected(case)
    except NotSaid as error:
        verdict.open = str(error)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            verdict.theirs = _apart(case, expected, _of_onnxruntime(case))
        except Exception as error:  # of onnxruntime
            verdict.theirs = f"refused: {type(error).__name__}: {error}"[:300]
        for name, call in _forms(case):
            try:
                results = call()
            except pq.Error as error:
                verdict.refused[name] = f"{type(error).__name__}: {error}"
                continue
            except Exception as error:  # which must not be
                verdict.faults.append(f"{name}: {type(error).__name__}: {error}"[:300])
                continue
            apart = _apart(case, expected, results)
            verdict.ran.append(name)
            if expected is None or apart != "right":
                verdict.faults.append(f"{name}: {apart}")
    return verdict


def _expected(case: PoolCase) -> Pooled:
    x = case.x
    if case.form in {"qdq", "qlinear"}:
        x = (x.astype(np.int64) - case.points[0]).astype(np.float64) * case.scales[0]
    unit = {"float16": 2.0**-11, "float64": 2.0**-53}.get(str(case.x.dtype), _U)
    return pooled(case.pool, case.opset, x, case.attributes, unit)


def _apart(case: PoolCase, expected: Pooled | None, results: list[Array]) -> str:
    """Say how results differ from the text's; "right" where they do not."""
    if expected is None:
        return "something where the text has nothing"
    y = results[0]
    if y.shape != expected.values.shape or y.dtype != case.x.dtype:
        return f"{y.dtype}{list(y.shape)} where {list(expected.values.shape)} is right"
    if case.form in {"float", "codes"}:
        lo, hi = expected.values - expected.apart, expected.values + expected.apart
        if case.x.dtype == np.float16 and "Max" not in case.operator:
            lo, hi = (end + side * (2.0**-11 * np.abs(expected.values) + 2.0**-24)
                      for end, side in ((lo, -1), (hi, 1)))  # fmt: skip
    else:
        lo, hi = _codes(case, expected)
    wrong = ~((y >= lo) & (y <= hi))
    if len(results) > 1 and not np.array_equal(results[1], expected.places):
        return f"{np.count_nonzero(results[1] != expected.places)} places of maxima"
    if not wrong.any():
        return "right"
    at = tuple(int(each[0]) for each in np.nonzero(wrong))
    want = f"{lo[at]:.9g}..{hi[at]:.9g}"
    return f"{np.count_nonzero(wrong)} of {y.size}, as {y[at]:.9g} where {want} is right at {at}"


def _codes(case: PoolCase, expected: Pooled) -> tuple[Array, Array]:
    """Return the least and the greatest code that roundings in any order leave."""
    info = np.iinfo(case.x.dtype)
    real = expected.values / case.scales[1]
    # Codes and the zero point may be added up apart: 256 is more than any of them.
    ratio = case.scales[0] / case.scales[1]
    number = int(np.prod(case.attributes["kernel_shape"]))
    gap = (number + 8) * _U * (np.abs(real) + (256 * ratio if "Max" not in case.operator else 0))
    gap = gap + expected.apart / case.scales[1]
    ends = (np.rint(real + side * gap) + case.points[1] for side in (-1, 1))
    lo, hi = (np.clip(each, info.min, info.max) for each in ends)
    return lo, hi


def _of_onnxruntime(case: PoolCase) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        case.model(), options, providers=["CPUExecutionProvider"]
    )
    return [np.asarray(each) for each in session.run(None, {"x": case.x})]


def _forms(case: PoolCase) -> Iterator[tuple[str, Callable[[], list[Array]]]]:
    """Give every way in which a case runs here, by name."""
    made: list[Model] = []

    def model() -> Model:
        if not made:
            made.append(Model(pq.onnx.fuse(pq.onnx.load(case.model()))))
        return made[0]

    def run() -> list[Array]:
        results = model().run({"x": case.x})
        return [results[name] for name in ("y", "places")[: case.outputs]]

    def network() -> list[Array]:
        results = model().network()(case.x)
        names = ("y", "places")[: case.outputs]
        return [results[name] for name in names]

    yield "run", run
    yield "network", network
    if case.form in {"float", "codes"}:
        names = ("y", "places")[: case.outputs]
        node = GraphNode("n", case.operator, ("x",), names, case.given)
        yield "node in Python", lambda: [*reference_call(node, {"": case.opset})({"x": case.x})]
    given = case.attributes
    if set(given) - {"kernel_shape", "strides", "pads", "dilations", "count_include_pad"}:
        return
    if case.x.dtype.name in {"float16", "float64"} or case.outputs > 1:
        return
    if case.pool == "MaxPool" and (case.scales[0], case.points[0]) != (
        case.scales[1],
        case.points[1],
    ):
        return
    yield "network.Pool", lambda: [_of_pool(case)]
    if case.form != "float" and set(given.get("dilations", ())) <= {1} and case.x.ndim < 6:
        yield "emulate", lambda: [_emulated(case)]


def _options(case: PoolCase) -> dict[str, Any]:
    given = case.attributes
    count = len(given["kernel_shape"])
    pads = given.get("pads", [0] * 2 * count)
    return {
        "kernel": tuple(given["kernel_shape"]),
        "stride": tuple(given.get("strides", [1] * count)),
        "padding": tuple(zip(pads[:count], pads[count:], strict=True)),
    }


def _of_pool(case: PoolCase) -> Array:
    given = case.attributes
    whole = bool(given.get("count_include_pad", 0))
    mean = "avg_include_padding" if whole else "avg_exclude_padding"
    own: dict[str, Any] = {"alg": "max" if case.pool == "MaxPool" else mean, **_options(case)}
    own["dilation"] = tuple(given.get("dilations", [1] * len(own["kernel"])))
    if case.form in {"qdq", "qlinear"} and case.pool != "MaxPool":
        own["src_q"], own["dst_q"] = _params(case)
    pool = Network(["x"], [Node("y", Pool(**own), ("x",))], ["y"])
    result: Array = pool(case.x)["y"]
    return result


def _params(case: PoolCase) -> tuple[QParams, QParams]:
    name = next(n for n, kind in _NAMES.items() if case.x.dtype == kind)
    src, dst = (QParams(s, z, name) for s, z in zip(case.scales, case.points, strict=True))
    return src, dst


def _emulated(case: PoolCase) -> Array:
    if case.pool == "MaxPool":
        return emulate.max_pool(case.x, **_options(case), dialect="onednn")
    src_q, dst_q = _params(case)
    whole = bool(case.attributes.get("count_include_pad", 0))
    return emulate.average_pool(
        case.x, **_options(case), src_q=src_q, dst_q=dst_q, count_padding=whole,
        dialect="onnxruntime",
    )  # fmt: skip
