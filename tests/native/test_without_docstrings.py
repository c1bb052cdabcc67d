"""`python -O` leaves out assertions, `python -OO` docstrings as well: everything works the same."""

from __future__ import annotations

import functools
import subprocess
import sys

import pytest

CALLS = """
import numpy as np
import pyonednn_q as pq
from pyonednn_q.expr.steps import Binary, Eltwise, Leaf, Round

q = {"src_q": pq.QParams(0.5, 3, "u8"), "wei_q": pq.QParams(0.25, 0, "s8")}
dst_q = pq.QParams(1.0, 5, "u8")
image, kernel = np.full((1, 8, 4, 4), 7, np.uint8), np.full((16, 8, 3, 3), 2, np.int8)
rows, wei = np.full((2, 8), 7, np.uint8), np.full((8, 4), -2, np.int8)
chain = pq.Chain(pq.Affine(0.5, 2.0), Eltwise("relu"), pq.FakeQuantize(0, 8, 0, 8).chain(), Round())

for operator, src in (
    (pq.Conv(kernel, **q, post=chain, self_check=True), image),
    (pq.Deconv(kernel, **q, dst_q=dst_q, self_check=True), image),
    (pq.InnerProduct(wei.T, **q, post=chain, dst_q=dst_q, self_check=True), rows),
    (pq.MatMul(wei, **q, dst_q=dst_q, requantize="exact"), rows),
    (pq.MatMul(wei, src_q=pq.Dynamic("u8"), wei_q=q["wei_q"]), rows.astype(np.float32)),
):
    print(operator, operator(src).sum(dtype=np.float64))
    if src is image:
        print(pq.inspect(operator, src.shape).rejected)
print(pq.MatMul(wei, **q, post=chain).plan(rows.shape).explain())
r = np.ones((2, 4), np.float32)
leaf = pq.Chain(Binary("add", Leaf("r", "f32")))
print(pq.matmul(rows, wei, **q, post=leaf, operands={"r": r}))
try:
    pq.MatMul(wei, **q, post=3)
except pq.ArgumentError as error:
    print(error)
"""


@functools.cache
def printed(flag: str, *arguments: str) -> str:
    command = [sys.executable, *filter(None, [flag]), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("flag", ["-O", "-OO"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("-c", CALLS),
        ("-m", "pyonednn_q", "explain", "conv_bias_relu", "--trace", "--policy", "fast"),
        ("-m", "pyonednn_q", "doctor", "--json"),
        ("-m", "pyonednn_q", "--help"),
    ],
    ids=["calls", "explain", "doctor", "help"],
)
def test_it_prints_the_same(arguments: tuple[str, ...], flag: str) -> None:
    assert printed(flag, *arguments) == printed("", *arguments)
