r"""Write vectors of TOSA's integer profile: inputs of its test generator, outputs of its model.

    pip install tosa-tools                  # an environment of its own: it pins NumPy
    python tools/vectors/tosa_vectors.py tests/data/tosa.npz
    python tools/vectors/tosa_vectors.py part.npz --tests DIR   # what its generators wrote into DIR

Runs where tosa-tools is, and needs nothing else. The cases of tests/data are small ones of
`tosa_verif_build_tests`; those of the conformance suite are megabytes each:

    tosa_verif_conformance_generator --op conv2d --profile tosa-pro-int --test-type positive \
        --output-type binary --output-directory DIR

tosa-tools is Apache 2.0, of Arm Limited; what is written here are numbers that it computes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module, metadata, util
from pathlib import Path
from typing import Any

import numpy as np

from vectors import Case, save

DTYPES = {3: "int8", 4: "int16", 5: "int32"}
CONST = 67
FIELDS = {
    "CONV2D": ("Conv2d", "pad", "stride", "dilation"),
    "CONV3D": ("Conv3d", "pad", "stride", "dilation"),
    "DEPTHWISE_CONV2D": ("DepthwiseConv2d", "pad", "stride", "dilation"),
    "TRANSPOSE_CONV2D": ("TransposeConv2d", "out_pad", "stride"),
    "MATMUL": ("MatMul",),
    "AVG_POOL2D": ("AvgPool2d", "kernel", "stride", "pad"),
    "MAX_POOL2D": ("MaxPool2d", "kernel", "stride", "pad"),
    "CLAMP": ("Clamp", "min_val", "max_val"),
    "MUL": ("Mul",),
    "ADD": ("Add",),
    "RESCALE": (
        "Rescale",
        "scale32",
        "rounding_mode",
        "per_channel",
        "input_unsigned",
        "output_unsigned",
    ),
}
INPUTS = {
    "RESCALE": ("src", "multiplier", "shift", "src_zero_point", "dst_zero_point"),
    "MATMUL": ("src", "wei", "src_zero_point", "wei_zero_point"),
    "AVG_POOL2D": ("src", "src_zero_point", "dst_zero_point"),
    "MUL": ("a", "b", "shift"),
    "ADD": ("a", "b"),
}
Line = tuple[str, tuple[str, ...], int]
WINDOWED = ("src", "wei", "bias", "src_zero_point", "wei_zero_point")
# Operator, arguments of the generator, and how many of its cases are kept, spread evenly.
SMALL = ("--tensor-dim-range", "2,6")
WINDOWS = (*SMALL, "--target-shape", "1,6,5,5", "2,4,5,3", "--conv-kernel", "1,1", "2,3", "3,3")
CUBES = (*SMALL, "--target-shape", "1,4,4,3,3", "--conv-kernel", "1,1,1", "2,2,3", "3,3,3")
PLAN = (
    ("rescale", (*SMALL, "--target-rank", "1", "2", "3", "4"), 240),
    ("conv2d", WINDOWS, 40),
    ("conv3d", CUBES, 20),
    ("depthwise_conv2d", WINDOWS, 40),
    ("transpose_conv2d", WINDOWS, 30),
    ("matmul", ("--target-shape", "1,9,33"), 1),
    ("matmul", ("--target-shape", "3,4,70"), 1),
    ("avg_pool2d", ("--target-shape", "1,9,8,5", "2,6,7,4"), 40),
    ("max_pool2d", ("--target-shape", "1,9,8,5", "2,6,7,4"), 20),
    ("clamp", SMALL, 10),
    ("mul", SMALL, 30),
    ("add", SMALL, 10),
)


QUICK = (
    ("rescale", ("--tensor-dim-range", "2,9", "--target-rank", "2"), 80),
    ("conv2d", (*SMALL, "--target-shape", "1,6,5,5", "--conv-kernel", "2,3"), 10),
    ("matmul", ("--tensor-dim-range", "2,40"), 4),
    ("avg_pool2d", ("--target-shape", "1,9,8,5"), 20),
)


def generated(plan: Iterable[Line], seed: int, into: Path) -> Iterator[Path]:
    """Run the generator for each line of a plan, and give the directories of its tests."""
    spec = util.find_spec("tosa_reference_model")
    assert spec is not None
    assert spec.origin is not None
    library = Path(spec.origin).parent / "libtosa_reference_generate_lib.so"
    for at, (operator, arguments, kept) in enumerate(plan):
        directory = into / str(at)
        extensions = ("tosa-ext-doubleround", "tosa-ext-inexactround")
        command = [
            *(str(Path(sys.executable).parent / "tosa_verif_build_tests"), "-o", str(directory)),
            *("--seed", str(seed), "--filter", f"^{operator}$", "--profile", "tosa-pro-int"),
            *("--extension", *(extensions if operator == "rescale" else ("none",))),
            *("--test-type", "positive", "--target-dtype", "int8", "int16", "int32"),
            *("--generate-lib-path", str(library), *arguments),
            *(() if operator == "rescale" else ("--no-special-tests",)),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        tests = sorted(directory.glob("*/*/desc.json"), key=lambda path: path.parent.name)
        count = min(kept, len(tests))
        yield from (tests[i * len(tests) // count].parent for i in range(count))


def read(directory: Path) -> Case:
    """Return a test as plain arrays, with what the reference model makes of it."""
    description = json.loads((directory / "desc.json").read_text())
    graph = (directory / description["tosa_file"]).read_bytes()
    block = import_module("tosa.TosaGraph").TosaGraph.GetRootAs(graph, 0).Regions(0).Blocks(0)
    operators = [block.Operators(i) for i in range(block.OperatorsLength())]
    (operator,) = (one for one in operators if one.Op() != CONST)
    op = description["test_details"]["operator"]
    tensors = {one.Name(): one for one in map(block.Tensors, range(block.TensorsLength()))}
    loaded = {
        name.encode(): np.load(directory / file)
        for name, file in zip(description["ifm_name"], description["ifm_file"], strict=True)
    }
    names = [operator.Inputs(i) for i in range(operator.InputsLength())]
    inputs = [loaded[name] if name in loaded else _constant(tensors[name]) for name in names]
    arrays = [loaded[name.encode()] for name in description["ifm_name"]]
    run = import_module("tosa_reference_model").run
    (output,), status = run(graph, arrays)
    assert status.name == "TOSA_VALID", directory
    result = tensors[operator.Outputs(0)]
    dst = np.asarray(output).view(DTYPES[result.Type()]).reshape(result.ShapeAsNumpy())
    keys = (*INPUTS.get(op, WINDOWED)[: len(inputs)], "dst")
    return {
        "name": directory.name,
        "op": op,
        "attributes": _attributes(op, operator.Attribute()),
        "tensors": dict(zip(keys, [*inputs, dst], strict=True)),
    }


def _constant(tensor: Any) -> np.ndarray[Any, Any]:  # noqa: ANN401
    data = tensor.DataAsNumpy().tobytes()
    values = np.frombuffer(data, DTYPES[tensor.Type()])
    shape = [int(n) for n in tensor.ShapeAsNumpy()] if tensor.ShapeLength() else []
    return values[: int(np.prod(shape))].reshape(shape)


def _attributes(op: str, table: Any) -> dict[str, Any]:  # noqa: ANN401
    kind, *fields = FIELDS[op]
    if not fields:
        return {}
    attribute = getattr(import_module(f"tosa.{kind}Attribute"), f"{kind}Attribute")()
    attribute.Init(table.Bytes, table.Pos)
    values = {}
    for field in fields:
        name = re.sub(r"(?:^|_)(\w)", lambda match: match[1].upper(), field)
        vector = getattr(attribute, name + "AsNumpy", None)
        value = getattr(attribute, name)() if vector is None else vector()
        values[field] = value.tolist() if vector else int(value)
    return values


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate, or read what is generated, and write one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--quick", action="store_true", help="fewer operators, in seconds")
    parser.add_argument("--tests", type=Path, help="a directory of tests in binary form")
    options = parser.parse_args(arguments)
    version = metadata.version("tosa-tools")
    origin = {"source": f"tosa-tools {version}", "licence": "Apache-2.0, Arm Limited"}
    with tempfile.TemporaryDirectory() as temporary:
        if options.tests is None:
            directories: Iterator[Path] = generated(
                QUICK if options.quick else PLAN, options.seed, Path(temporary)
            )
        else:
            directories = (path.parent for path in sorted(options.tests.rglob("desc.json")))
        cases = [read(directory) for directory in directories]
    size = save(options.out, origin, cases)
    outputs = sum(case["tensors"]["dst"].size for case in cases)
    print(f"{options.out}: {len(cases)} cases, {outputs} outputs, {size} bytes")


if __name__ == "__main__":
    main()
