"""Windows over images, and images of other sizes, with all of their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from support.onnx_graphs.draw import Dims, GraphDraw, NotHere
from support.onnx_graphs.kinds import Kind


def _resize(draw: GraphDraw, operator: str) -> None:
    name = draw.tensor(3, 4)
    dims = draw.dims_of(name)
    if 0 in dims:
        raise NotHere("nothing to resize")
    mode = draw.one("nearest", "nearest", "linear", "cubic" if len(dims) == 4 else "linear")
    factors = (1, 2, 2, 3, 0.5) if draw.maybe() else (0.6, 1.3, 1.75, 2.5)
    by = [1.0, 1.0, *(float(draw.one(*factors)) for _ in dims[2:])]
    if any(int(n * s) < 1 for n, s in zip(dims, by, strict=True)):
        raise NotHere("nothing left")
    given: dict[str, Any] = {"mode": mode}
    if operator == "Upsample" or draw.opset < 11:
        if mode == "cubic" or (operator == "Upsample") != (draw.opset < 10):
            raise NotHere("no such mode")
        if draw.opset < 9:
            draw.add(operator, name, scales=by, **given)
            return
        draw.add(operator, name, draw.constant(np.array(by, np.float32)), **given)
        return
    where = draw.one(
        "half_pixel",
        "asymmetric",
        "align_corners",
        "pytorch_half_pixel",
        "half_pixel_symmetric" if draw.opset >= 19 else None,
        None,
    )
    given["coordinate_transformation_mode"] = where
    if mode == "nearest":
        how = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", None)
        given["nearest_mode"] = draw.one(*how)
    if mode == "cubic" and draw.maybe():
        given |= {"cubic_coeff_a": -0.5, "exclude_outside": draw.whole(0, 1)}
    if mode != "nearest" and draw.opset >= 18 and draw.maybe(0.2):
        given["antialias"] = 1
    if draw.maybe(0.7):
        draw.add(operator, name, "", draw.constant(np.array(by, np.float32)), **given)
    else:
        sizes = [int(n * s) for n, s in zip(dims, by, strict=True)]
        draw.add(operator, name, "", "", draw.whole_constant(*sizes), **given)


def window(draw: GraphDraw, spatial: int) -> dict[str, Any]:
    """Return attributes of windows that slide over so many dims."""
    kernel = [draw.whole(1, 4) for _ in range(spatial)]
    given: dict[str, Any] = {"kernel_shape": kernel}
    if draw.maybe(0.6):
        given["strides"] = [draw.whole(1, 3) for _ in range(spatial)]
    share = draw.rng.random()
    if share < 0.5:
        given["pads"] = [draw.whole(0, each - 1) if draw.maybe(0.7) else 0 for each in kernel * 2]
    elif share < 0.75:
        given["auto_pad"] = draw.one("SAME_UPPER", "SAME_LOWER", "VALID")
    return given


def image(draw: GraphDraw, given: Mapping[str, Any], dtype: Any = np.float32) -> str:
    """Return a tensor that windows fit into."""
    spatial = len(given["kernel_shape"])
    name = draw.tensor(spatial + 2, dtype=dtype)
    by = given.get("dilations", [1] * spatial)
    reach = [(k - 1) * d + 1 for k, d in zip(given["kernel_shape"], by, strict=True)]
    if any(n < k for n, k in zip(draw.dims_of(name)[2:], reach, strict=True)):
        lead = (draw.whole(1, 2), draw.one(1, 2, 3, 4, 8, 16))
        lengths = (k + draw.whole(0, 6) for k in reach)
        return draw.source((*lead, *lengths), dtype)
    return name


def _pool(draw: GraphDraw, operator: str) -> None:
    given = window(draw, draw.one(1, 2, 2, 3))
    spatial = len(given["kernel_shape"])
    if draw.opset >= 10 and draw.maybe(0.3) and "auto_pad" not in given:
        given["ceil_mode"] = 1
    outputs = 1
    dtype: Any = np.float32
    if operator == "MaxPool":
        if draw.opset >= 10 and draw.maybe(0.3) and given.get("auto_pad", "VALID") == "VALID":
            given["dilations"] = [draw.whole(1, 2) for _ in range(spatial)]
        outputs = 2 if draw.maybe(0.2) else 1
        given |= {"storage_order": 1} if outputs == 2 and draw.maybe() else {}
        dtype = np.uint8 if draw.opset >= 12 and draw.maybe(0.2) else np.float32
    elif operator == "AveragePool":
        given |= {"count_include_pad": draw.whole(0, 1)} if draw.maybe() else {}
        if draw.opset >= 19 and draw.maybe(0.3) and given.get("auto_pad", "VALID") == "VALID":
            given["dilations"] = [draw.whole(1, 2) for _ in range(spatial)]
    else:
        given |= {"p": draw.whole(1, 3)}
        given.pop("ceil_mode", None)
    src = image(draw, given, dtype)
    if given.get("ceil_mode") and draw.opset < 22 and _begins_outside(draw.dims_of(src)[2:], given):
        raise NotHere("opsets disagree")
    draw.add(operator, src, outputs=outputs, **given)


def _begins_outside(lengths: Dims, given: Mapping[str, Any]) -> bool:
    """Tell whether the last window of a dim begins behind the source."""
    count = len(lengths)
    pads = given.get("pads", [0] * 2 * count)
    by, steps = (given.get(name, [1] * count) for name in ("dilations", "strides"))
    rows = zip(lengths, given["kernel_shape"], pads, pads[count:], by, steps, strict=False)
    return any(
        -(-(n + lo + hi - (k - 1) * d - 1) // s) * s >= n + lo for n, k, lo, hi, d, s in rows
    )


def _global_pool(draw: GraphDraw, operator: str) -> None:
    given = {"p": draw.whole(1, 3)} if operator == "GlobalLpPool" else {}
    draw.add(operator, draw.tensor(3, 4, 4, 5), **given)


WINDOWS: Mapping[str, Kind] = MappingProxyType(
    {
        **dict.fromkeys(("Resize", "Upsample"), _resize),
        **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pool),
        **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), _global_pool),
    }
)
