"""Write the vectors of StableHLO's quantized test data: constants, types, and expected results.

    python tools/vectors/stablehlo_vectors.py CHECKOUT tests/data/stablehlo.npz

CHECKOUT is the openxla/stablehlo repository. Each module of its `testdata/quantized`, and of the
quantized operators of its interpreter's tests, is one case: the constants, and the operators in
their order with the attributes and types that they are given. The project is Apache 2.0, of The
StableHLO Authors; what is written here are numbers.
"""

from __future__ import annotations

import argparse
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from vectors import Case, save

Tensors = dict[str, np.ndarray[Any, Any]]

DTYPES = {"f32": "float32", "i32": "int32", "i64": "int64", "i8": "int8", "i1": "bool"}
CONSTANT = re.compile(r"%(\w+) = stablehlo\.constant dense<(.*)> : tensor<([^>]*)>$")
STEP = re.compile(r"%(\w+) = \"?stablehlo\.(\w+)\"?[ (](.*) : (.*)$")
EXPECTED = re.compile(r"check\.expect_(?:almost_)?eq_const %(\w+), dense<(.*)> : tensor<([^>]*)>$")
WINDOW = ("stride", "pad", "lhs_dilate", "rhs_dilate", "reverse")
COUNTS = ("feature_group_count", "batch_group_count")
GATHERED = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims")
INDICES = ("start_indices_batching_dims", "start_index_map", "slice_sizes")


def modules(checkout: Path) -> Iterator[tuple[str, str]]:
    """Give a name and the text of every module that has a quantized type."""
    data = checkout / "stablehlo/testdata/quantized"
    files = sorted(
        [*data.glob("*.mlir"), checkout / "stablehlo/tests/interpret/quantized_ops.mlir"]
    )
    for file in files:
        for at, text in enumerate(file.read_text().split("// -----")):
            if "!quant.uniform" in text:
                yield f"{file.name.split('.')[0]}#{at}", text


def read(name: str, text: str) -> Case:
    """Return a module as steps from constants to what is expected."""
    tensors: Tensors = {}
    steps: list[dict[str, Any]] = []
    expected: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        if match := CONSTANT.match(line):
            tensors[match[1]] = dense(match[2], match[3])
        elif match := EXPECTED.match(line):
            expected["want"], expected["got"] = f"want_{match[1]}", match[1]
            tensors[expected["want"]] = dense(match[2], match[3])
        elif "@check.eq" in line:
            expected["want"], expected["got"] = re.findall(r"%(\w+)", line)[1:3]
        elif match := STEP.match(line):
            steps.append(step(*match.groups()))
    cores = [one["op"] for one in steps if one["op"] not in AROUND]
    core = cores[-1] if cores else "uniform_quantize"
    if core not in KEPT:
        return {"name": name, "op": core, "attributes": {}, "tensors": {}}
    if expected["got"] == steps[-1]["out"] and steps[-1]["op"] == "uniform_dequantize":
        undo(steps, expected, tensors)
    attributes = {"steps": steps, **expected}
    return {"name": name, "op": core, "attributes": attributes, "tensors": tensors}


def undo(steps: list[dict[str, Any]], expected: dict[str, str], tensors: Tensors) -> None:
    """Put codes in place of the reals that they stand for: these must be exactly those."""
    last = steps[-2]["to"]
    if "axis" in last:
        return
    scale, zero_point = np.float32(last["scale"][0]), last["zero_point"][0]
    real = tensors[expected["want"]]
    codes = np.rint(real / scale).astype(np.int16) + zero_point
    assert ((codes - zero_point).astype(np.float32) * scale == real).all()
    tensors[expected["want"]] = codes.astype(np.int8)
    (expected["got"],) = steps.pop()["in"]


# The operators whose numbers are kept; of the others, the names of the cases.
KEPT = ("convolution", "dot_general", "add", "gather", "uniform_quantize")
# What stands around the operator that a case is about.
AROUND = ("uniform_quantize", "uniform_dequantize", "transpose", "reshape", "bitcast_convert")


def step(out: str, op: str, call: str, types: str) -> dict[str, Any]:
    """Return one operator: where its operands are, its attributes, and the type of its result."""
    result = types.rsplit("->", maxsplit=1)[-1].strip()
    names = re.findall(r"%(\w+)", call)
    return {"out": out, "op": op, "in": names, "to": kind(result), **attributes(op, call)}


def kind(text: str) -> dict[str, Any]:
    """Return shape, element type, and how a quantized one is to be read."""
    match = re.fullmatch(r"tensor<((?:\d+x)*)(.*)>", text)
    assert match, text
    shape = [int(n) for n in match[1].split("x")[:-1]]
    quantized = re.fullmatch(r"!quant\.uniform<(\w+):f32(?::(\d+))?, (.*)>", match[2])
    if quantized is None:
        return {"shape": shape, "dtype": match[2]}
    pairs = [one.split(":") for one in quantized[3].strip("{}").split(",")]
    scales, zero_points = zip(*((float(p[0]), int((*p, 0)[1])) for p in pairs), strict=True)
    how = {"shape": shape, "dtype": quantized[1], "scale": scales, "zero_point": zero_points}
    return how | ({} if quantized[2] is None else {"axis": int(quantized[2])})


def attributes(op: str, call: str) -> dict[str, Any]:
    """Return what an operator is given besides operands."""
    if op == "convolution":
        dims = re.search(r"dim_numbers = \[(.*?)\]x\[(.*?)\]->\[(.*?)\]", call)
        assert dims
        lists = {name: listed(name, call) for name in WINDOW}
        counts = {
            name: int(match[1]) for name in COUNTS if (match := re.search(rf"{name} = (\d+)", call))
        }
        return {"dims": [one.split(", ") for one in dims.groups()], **lists, **counts}
    if op == "dot_general":
        pairs = {
            name: re.search(rf"{name} = (\[.*?\]) x (\[.*?\])", call)
            for name in ("batching_dims", "contracting_dims")
        }
        return {name: [numbers(pair[1]), numbers(pair[2])] for name, pair in pairs.items() if pair}
    if op == "gather":
        lists = {name: listed(name, call) for name in (*GATHERED, *INDICES)}
        vector = re.search(r"index_vector_dim = (\d+)", call)
        return lists | {"index_vector_dim": int(vector[1]) if vector else 0}
    if op == "transpose":
        return {"dims": listed("dims", call)}
    if op == "concatenate":
        (dim,) = re.findall(r"dim = (\d+)", call)
        return {"dim": int(dim)}
    return {}


def listed(name: str, call: str) -> Any:  # noqa: ANN401
    """Return the integers of an attribute, or None."""
    match = re.search(rf"{name} = (?:array<i64: ([^>]*)>|(\[\[.*?\]\]|\[.*?\]))", call)
    return None if match is None else numbers(match[1] or match[2])


def numbers(text: str) -> Any:  # noqa: ANN401
    """Return integers, or pairs of them."""
    if "[[" in text:
        return [numbers(pair) for pair in re.findall(r"\[([^\[\]]*)\]", text)]
    return [int(n) if n[-1].isdigit() else int(n == "true") for n in re.findall(r"-?\w+", text)]


def dense(text: str, kind_of: str) -> np.ndarray[Any, Any]:
    """Return the value of a dense constant: bytes in hexadecimal, a list, or one for all."""
    *dims, element = kind_of.split("x")
    dtype, shape = np.dtype(DTYPES[element]), [int(n) for n in dims]
    if text.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(text[3:-1]), dtype).reshape(shape)
    words = re.findall(r"[^\s,\[\]]+", text)
    values = np.array([number(word, dtype) for word in words], dtype)
    return np.full(shape, values[0]) if len(values) == 1 else values.reshape(shape)


def number(word: str, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401
    """Return one element of a list."""
    if word.startswith("0x"):  # the bits of what has no decimal form
        return struct.unpack(">f", bytes.fromhex(word[2:]))[0]
    return word == "true" if dtype.kind == "b" else dtype.type(word)


def main() -> None:
    """Read every module, and write one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    cases = [read(*module) for module in modules(options.checkout)]
    origin = {"source": "openxla/stablehlo", "licence": "Apache-2.0, The StableHLO Authors"}
    size = save(options.out, origin, cases)
    print(f"{options.out}: {len(cases)} cases, {size} bytes")


if __name__ == "__main__":
    main()
