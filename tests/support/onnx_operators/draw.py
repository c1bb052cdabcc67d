"""Random calls of ONNX's operators: geometry, types, zero points, scales that tie on purpose."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Generator = np.random.Generator


class NodeCall(NamedTuple):
    """An operator, its inputs (None: left out) and its attributes."""

    op_type: str
    inputs: list[Any]
    attributes: dict[str, Any]


def code_type(rng: Generator) -> Any:
    """Return uint8 or int8."""
    return (np.uint8, np.int8)[rng.integers(2)]


def code_tensor(rng: Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def point(rng: Generator, dtype: Any, shape: tuple[int, ...] = ()) -> Array:
    """Return zero points: zero, the ends and any code, all often."""
    info = np.iinfo(dtype)
    drawn: Array = np.asarray(rng.integers(info.min, info.max + 1, shape))
    kind = rng.integers(4)
    if kind == 0:
        drawn = np.zeros(shape)
    elif kind == 1:
        drawn = np.full(shape, rng.choice([info.min, info.max]))
    return np.asarray(drawn).astype(dtype)


def scales(rng: Generator, acc: Array, shape: tuple[int, ...] = ()) -> tuple[Any, Any, Any]:
    """Return scales of two operands and of a result whose codes are spread.

    Half of the time they are powers of two: then many sums tie.
    """
    spread = max(1.0, float(np.abs(acc).max(initial=0)) / 100)
    if rng.integers(2):
        first, second = 2.0 ** -rng.integers(0, 6), 2.0 ** -rng.integers(0, 6, shape)
        third = first * 2.0 ** np.ceil(np.log2(spread)) * 2.0**-3
    else:
        first, second = rng.uniform(0.01, 1), rng.uniform(0.01, 1, shape)
        third = first * spread * rng.uniform(0.2, 1)
    one, two, three = (np.asarray(value, np.float32) for value in (first, second, third))
    return one, two, three


def window(rng: Generator, spatial: int, *, is_same_dense: bool = False) -> dict[str, Any]:
    """Return attributes of a convolution, some left out; and its kernel and least lengths."""
    kernel = [int(rng.integers(1, 4)) for _ in range(spatial)]
    found: dict[str, Any] = {}
    if rng.integers(2):
        found["strides"] = [int(rng.integers(1, 4)) for _ in range(spatial)]
    if rng.integers(3) == 0:
        found["dilations"] = [int(rng.integers(1, 3)) for _ in range(spatial)]
    choice = rng.integers(5)
    if choice < 2:
        found["pads"] = [int(rng.integers(0, 3)) for _ in range(2 * spatial)]
    elif choice == 2:
        found["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
        if is_same_dense:
            found.pop("dilations", None)
    if rng.integers(2):
        found["kernel_shape"] = kernel
    return {"kernel": kernel, "attributes": found}


def _dims(rng: Generator, spatial: int, drawn: dict[str, Any]) -> tuple[int, int, int, list[int]]:
    """Return groups, input and output channels of each, and lengths that the kernel fits."""
    dilations = drawn["attributes"].get("dilations", [1] * spatial)
    groups = int(rng.choice([1, 1, 1, 2, 3]))
    inputs, outputs = int(rng.integers(1, 9)), int(rng.integers(1, 9))
    lengths = [
        (k - 1) * d + 1 + int(rng.integers(0, 5))
        for k, d in zip(drawn["kernel"], dilations, strict=True)
    ]
    if groups > 1:
        drawn["attributes"]["group"] = groups
    return groups, inputs, outputs, lengths


def code_convolution(rng: Generator, types: tuple[Any, Any] | None = None) -> dict[str, Any]:
    """Return x, w, zero points and attributes of a convolution of codes."""
    spatial = int(rng.choice([1, 2, 2, 3]))
    drawn = window(rng, spatial, is_same_dense=types is not None)
    groups, inputs, outputs, lengths = _dims(rng, spatial, drawn)
    src, wei = types or (code_type(rng), code_type(rng))
    channels = outputs * groups
    x = code_tensor(rng, (int(rng.integers(1, 3)), inputs * groups, *lengths), src)
    w = code_tensor(rng, (channels, inputs, *drawn["kernel"]), wei)
    return {
        "x": x,
        "x_zero_point": point(rng, src),
        "w": w,
        "w_zero_point": point(rng, wei, (channels,) if rng.integers(2) else ()),
        "B": rng.integers(-2000, 2000, channels).astype(np.int32) if rng.integers(2) else None,
        "attributes": drawn["attributes"],
    }


def float_convolution(rng: Generator, *, is_transposed: bool, dtype: Any = np.float32) -> NodeCall:
    """Return a Conv or ConvTranspose of floats."""
    spatial = int(rng.choice([1, 2, 2, 3]))
    drawn = window(rng, spatial, is_same_dense=True)
    attributes = drawn["attributes"]
    groups, inputs, outputs, lengths = _dims(rng, spatial, drawn)
    lead = (inputs * groups, outputs) if is_transposed else (outputs * groups, inputs)
    if is_transposed:
        if attributes.get("pads"):
            attributes["pads"] = [0] * spatial + [int(rng.integers(0, 2)) for _ in range(spatial)]
            reach = drawn["kernel"], attributes.get("dilations", [1] * spatial)
            attributes["pads"] = [
                min(pad, (reach[0][i % spatial] - 1) * reach[1][i % spatial])
                for i, pad in enumerate(attributes["pads"])
            ]
        strides = attributes.get("strides", [1] * spatial)
        if rng.integers(2) and "auto_pad" not in attributes:
            attributes["output_padding"] = [int(rng.integers(0, step)) for step in strides]
    batch = int(rng.integers(1, 3))
    x = rng.normal(0, 1, (batch, inputs * groups, *lengths)).astype(dtype)
    w = rng.normal(0, 1, (*lead, *drawn["kernel"])).astype(dtype)
    bias = rng.normal(0, 1, outputs * groups).astype(dtype) if rng.integers(2) else None
    name = "ConvTranspose" if is_transposed else "Conv"
    return NodeCall(name, [x, w, bias], attributes)


def stacks(rng: Generator) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return dims of two operands of a matmul, which broadcast."""
    m, k, n = (int(rng.integers(1, 20)) for _ in range(3))
    kind = rng.integers(7)
    lead = tuple(int(rng.integers(1, 4)) for _ in range(rng.integers(1, 3)))
    return (
        ((m, k), (k, n)),
        ((*lead, m, k), (k, n)),
        ((*lead, m, k), (*lead, k, n)),
        ((m, k), (*lead, k, n)),
        ((*lead[:-1], 1, m, k), (*lead, k, n)),
        ((k,), (*lead, k, n)),
        ((*lead, m, k), (k,)),
    )[kind]


def code_product(rng: Generator, *, is_plain: bool = False) -> dict[str, Any]:
    """Return operands and zero points of a product of codes; one for each row only if not plain."""
    dims_a, dims_b = stacks(rng)
    src, wei = code_type(rng), code_type(rng)
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    if len(dims_b) == 2 and rng.integers(2):
        columns = dims_b[-1:]
    if len(dims_b) > 2 and len(dims_a) > 1 and not is_plain and rng.integers(2):
        columns = (*dims_b[:-2], 1, dims_b[-1])
    if len(dims_a) >= 2 and not is_plain and rng.integers(3) == 0:
        rows = dims_a[:-1] if len(dims_a) == 2 else (*dims_a[:-1], 1)
        if len(dims_b) == 1:
            rows = ()
    return {
        "a": code_tensor(rng, dims_a, src),
        "a_zero_point": point(rng, src, rows),
        "b": code_tensor(rng, dims_b, wei),
        "b_zero_point": point(rng, wei, columns),
    }
