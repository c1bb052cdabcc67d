"""Write gemmlowp's GEMM vectors: one captured from a network, and two per channel.

    python tools/vectors/gemmlowp_vectors.py CHECKOUT tests/data/gemmlowp.npz

CHECKOUT is the google/gemmlowp repository. Its matrices lie as (m, k) and (n, k), results as
(n, m). The project is Apache 2.0, of The Gemmlowp Authors; what is written here are numbers.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np

from vectors import Case, save

# Where each vector stands: a file, and what its block begins with.
SOURCES = {
    "TestWithRealData": ("test/test_data.cc", "namespace test_data"),
    "TestWithSmallDataPerChannelQuantization": ("test/test.cc", "void {name}()"),
    "TestWithLargeDataPerChannelQuantization": ("test/test.cc", "void {name}()"),
}


def read(checkout: Path, name: str) -> Case:
    """Return a case: matrices, offsets, and the multipliers and shift of the output stage."""
    file, head = SOURCES[name]
    _, block = (checkout / file).read_text().split(head.format(name=name) + " {\n")
    text = re.sub(r"//.*", "", re.split(r"\n\}(?!;)", block)[0])
    m, n, k = (int(numbers(text, one)[0]) for one in "mnk")
    shapes = {"a_data": (m, k), "b_data": (n, k), "expected_c_data": (n, m)}
    tensors = {}
    for key, (rows, columns) in shapes.items():
        values = np.array(numbers(text, key), np.uint8)
        # One list of results is longer than the matrix, and compared as far as that goes.
        tensors[key] = values[: rows * columns].reshape(rows, columns)
    for key in ("a_offset", "b_offset", "c_offset", "c_mult_int"):
        tensors[key] = np.array(numbers(text, key), np.int32)
    (shift,) = numbers(text, "c_shift")
    return {"name": name, "op": "gemm", "attributes": {"c_shift": shift}, "tensors": tensors}


def numbers(text: str, name: str) -> list[int]:
    """Return the integers that a name is set to."""
    match = re.search(rf"\b{name}(?:\[\w*\])? = \{{?([-\d,\s]+)\}}?;", text)
    assert match, name
    return [int(word) for word in re.findall(r"-?\d+", match[1])]


def main() -> None:
    """Read every vector, and write one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    cases = [read(options.checkout, name) for name in SOURCES]
    origin = {"source": "google/gemmlowp", "licence": "Apache-2.0, The Gemmlowp Authors"}
    size = save(options.out, origin, cases)
    print(f"{options.out}: {len(cases)} cases, {size} bytes")


if __name__ == "__main__":
    main()
