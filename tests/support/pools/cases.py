"""Drawn pools: every combination of attributes, as floats, as codes and between quantizers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]

OPSETS = (7, 8, 10, 11, 12, 13, 17, 19, 20, 21, 22)
OPERATORS = (
    *("MaxPool", "AveragePool") * 4,
    *("LpPool", "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"),
)
CODES = {"u8": np.uint8, "s8": np.int8}
THEIRS = "com.microsoft"


@dataclass
class PoolCase:
    """A pool of one tensor.

    form: "float", codes alone ("codes"), between quantizers ("qdq"), or an operator of onnxruntime
    on codes ("qlinear"). scales, points: of source and result, where there are any.
    """

    seed: int
    operator: str
    opset: int
    form: str
    x: Array
    given: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    scales: tuple[Any, Any] = (1.0, 1.0)
    points: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        q = f", {self.scales}, {self.points}" if self.form in {"qdq", "qlinear"} else ""
        x = f"{self.x.dtype}{list(self.x.shape)}"
        return f"{self.seed}: {self.operator} {self.opset} {self.form} {x} {self.given}{q}"

    @property
    def attributes(self) -> dict[str, Any]:
        """Those of windows; a global pool has one of all places."""
        if not self.operator.startswith("Global"):
            return self.given
        return {**self.given, "kernel_shape": list(self.x.shape[2:])}

    @property
    def pool(self) -> str:
        """The operator of windows that it is."""
        return self.operator.removeprefix("Global")

    def model(self) -> bytes:
        """Return it as a model of x and y."""
        number = helper.np_dtype_to_tensor_dtype
        names = ["y", "places"][: self.outputs]
        held = []
        if self.form == "qdq":
            q = self._quantizers()
            nodes = [
                helper.make_node("DequantizeLinear", ["x", *list(q)[:2]], ["real"]),
                helper.make_node(self.operator, ["real"], ["mean"], **self.given),
                helper.make_node("QuantizeLinear", ["mean", *list(q)[2:]], ["y"]),
            ]
            held = [numpy_helper.from_array(array, name) for name, array in q.items()]
        elif self.form == "qlinear":
            q = self._quantizers()
            held = [numpy_helper.from_array(array, name) for name, array in q.items()]
            kind = f"QLinear{self.operator}"
            nodes = [helper.make_node(kind, ["x", *q], ["y"], domain=THEIRS, **self.given)]
        else:
            nodes = [helper.make_node(self.operator, ["x"], names, **self.given)]
        src = helper.make_tensor_value_info("x", number(self.x.dtype), self.x.shape)
        kinds = zip(names, (self.x.dtype, np.dtype(np.int64)), strict=False)
        rank = [None] * self.x.ndim
        ends = [helper.make_tensor_value_info(n, number(kind), rank) for n, kind in kinds]
        graph = helper.make_graph(nodes, "pool", [src], ends, held)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(THEIRS, 1)]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        return bytes(made.SerializeToString())

    def _quantizers(self) -> dict[str, Array]:
        kind = self.x.dtype
        return {
            "src_scale": np.float32(self.scales[0]),
            "src_point": np.asarray(self.points[0], kind),
            "dst_scale": np.float32(self.scales[1]),
            "dst_point": np.asarray(self.points[1], kind),
        }


def draw(seed: int) -> PoolCase:
    """Return a case; the same for the same seed."""
    rng = np.random.default_rng(seed)
    operator = str(rng.choice(OPERATORS))
    opset = int(rng.choice(OPSETS))
    form = _form(rng, operator, opset)
    count = int(rng.choice([1, 2, 2, 3]))
    given: dict[str, Any] = {}
    lead = (int(rng.integers(1, 3)), int(rng.choice([1, 2, 3, 4, 8, 16, 17])))
    longest = {1: 24, 2: 9, 3: 6}[count]
    lengths = tuple(int(rng.integers(1, longest)) for _ in range(count))
    if not operator.startswith("Global"):
        given = _window(rng, operator, opset, count)
        if form != "qlinear" and rng.random() < 0.9:
            lengths = _fitting(given, lengths)
    if operator.endswith("LpPool"):
        given["p"] = int(rng.integers(1, 4))
    x, scales, points = _values(rng, form, operator, (*lead, *lengths))
    outputs = 1
    if operator == "MaxPool" and form in {"float", "codes"} and opset >= 8 and rng.random() < 0.15:
        outputs = 2
        if rng.random() < 0.5:
            given["storage_order"] = 1
    return PoolCase(seed, operator, opset, form, x, given, outputs, scales, points)


def _form(rng: np.random.Generator, operator: str, opset: int) -> str:
    forms = ["float", "float"]
    if operator == "MaxPool" and opset >= 12:
        forms.append("codes")
    if opset >= 10 and "Lp" not in operator:
        forms += ["qdq", "qdq"]
        if operator.endswith("AveragePool"):
            forms.append("qlinear")
    return str(rng.choice(forms))


def _window(rng: np.random.Generator, operator: str, opset: int, count: int) -> dict[str, Any]:
    kernel = [int(rng.integers(1, 5)) for _ in range(count)]
    given: dict[str, Any] = {"kernel_shape": kernel}
    if rng.random() < 0.7:
        given["strides"] = [int(rng.integers(1, 5)) for _ in range(count)]
    since = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[operator]
    if opset >= since and rng.random() < 0.4:
        given["dilations"] = [int(rng.integers(1, 4)) for _ in range(count)]
    share = rng.random()
    if share < 0.55:
        # On both sides, on one, on either side of some dims.
        on = rng.random(2 * count) < rng.choice([0.3, 0.7, 1.0])
        most = [each - int(rng.random() < 0.97) for each in kernel * 2]
        given["pads"] = [
            int(rng.integers(0, m + 1)) if o else 0 for m, o in zip(most, on, strict=True)
        ]
    elif share < 0.85:
        given["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]))
    if opset >= (18 if operator == "LpPool" else 10) and rng.random() < 0.4:
        given["ceil_mode"] = 1
    if operator == "AveragePool" and rng.random() < 0.6:
        given["count_include_pad"] = int(rng.random() < 0.8)
    return given


def _fitting(given: dict[str, Any], lengths: Dims) -> Dims:
    """Return lengths into which a window fits."""
    count = len(lengths)
    by = given.get("dilations", [1] * count)
    reach = [(k - 1) * d + 1 for k, d in zip(given["kernel_shape"], by, strict=True)]
    return tuple(max(n, r) for n, r in zip(lengths, reach, strict=True))


def _values(
    rng: np.random.Generator, form: str, operator: str, dims: Dims
) -> tuple[Array, tuple[Any, Any], tuple[int, int]]:
    if form == "float":
        kind: Any = np.float32
        if rng.random() < 0.1 and operator != "LpPool":
            kind = (np.float64, np.float16)[int(rng.integers(2))]
        values = rng.normal(0, 2, dims) if rng.random() < 0.8 else rng.integers(-3, 4, dims)
        return np.asarray(values, kind), (1.0, 1.0), (0, 0)
    kind = CODES[str(rng.choice([*CODES]))]
    info = np.iinfo(kind)
    x = rng.integers(info.min, info.max, dims, endpoint=True).astype(kind)
    if form == "codes":
        return x, (1.0, 1.0), (0, 0)
    scales = [float(np.float32(rng.uniform(0.01, 0.2))) for _ in range(2)]
    points = [int(rng.choice([0, info.min, info.max, int(rng.integers(info.min, info.max))]))
              for _ in range(2)]  # fmt: skip
    if rng.random() < 0.6:  # codes stay what they mean
        scales[1], points[1] = scales[0], points[0]
    return x, (scales[0], scales[1]), (points[0], points[1])
