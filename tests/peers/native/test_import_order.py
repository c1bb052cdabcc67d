"""Other packages with libraries of their own, imported before us and after us in one process.

Each brings an OpenMP runtime, a TBB or an oneDNN. Both sides compute on several threads, in turns
and at the same time, and both must get what NumPy gets.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from pyonednn_q.native import runtime

OURS = """
import numpy as np
import pyonednn_q as pq

rng = np.random.default_rng(0)
src = rng.integers(0, 256, (256, 512)).astype(np.uint8)
wei = rng.integers(-15, 16, (512, 256)).astype(np.int8)  # no pair of products saturates anywhere
exact = src.astype(np.int64) @ wei

def ours():
    problem = pq.primitive.MatMulProblem.of(src.shape, wei.shape, src="u8", wei="s8", dst="s32")
    assert np.array_equal(pq.prepare(problem, wei=wei)(src), exact)

ours()
"""

# Each defines a function of its name, and computes with it at once.
PEERS = {
    "torch": """
import numpy as np, torch
def use_torch():
    src = torch.arange(3 * 16 * 20 * 20, dtype=torch.float32).reshape(3, 16, 20, 20) % 7
    wei = torch.arange(32 * 16 * 9, dtype=torch.float32).reshape(32, 16, 3, 3) % 5
    sums = torch.nn.functional.conv2d(src, wei)
    windows = np.lib.stride_tricks.sliding_window_view(src.numpy(), (3, 3), axis=(2, 3))
    assert np.array_equal(sums.numpy(), np.einsum("nchwij,ocij->nohw", windows, wei.numpy()))
use_torch()
""",
    "onnxruntime": """
import numpy as np, onnxruntime
try:
    import onnx
except ImportError:
    def use_onnxruntime():
        assert "CPUExecutionProvider" in onnxruntime.get_available_providers()
else:
    node = onnx.helper.make_node("MatMulInteger", ["a", "b"], ["c"])
    types = (("a", 2), ("b", 3), ("c", 6))  # uint8, int8, int32
    a, b, c = (onnx.helper.make_tensor_value_info(name, kind, [None, None]) for name, kind in types)
    opset = onnx.helper.make_opsetid("", 13)
    graph = onnx.helper.make_graph([node], "product", [a, b], [c])
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    def use_onnxruntime():
        a = (np.arange(300 * 200) % 200).reshape(300, 200).astype(np.uint8)
        b = (np.arange(200 * 100) % 31 - 15).reshape(200, 100).astype(np.int8)
        (c,) = session.run(None, {"a": a, "b": b})
        assert np.array_equal(c, a.astype(np.int64) @ b)
use_onnxruntime()
""",
    "openvino": """
import numpy as np, openvino
from openvino import opset13
a, b = (opset13.parameter([128, 128], np.float32) for _ in range(2))
product = openvino.Core().compile_model(
    openvino.Model([opset13.matmul(a, b, False, False)], [a, b]), "CPU",
    {"INFERENCE_PRECISION_HINT": "f32"},
)
def use_openvino():
    a, b = (np.arange(128 * 128).reshape(128, 128) % n for n in (7, 5))
    request = product.create_infer_request()  # of its own: one request serves one thread at a time
    c = request.infer([a.astype(np.float32), b.astype(np.float32)])[0]
    assert np.array_equal(c, a @ b)
use_openvino()
""",
    "sklearn": """
import numpy as np
from sklearn.cluster import KMeans
def use_sklearn():
    points = np.repeat(np.eye(4) * 100, 500, axis=0) + np.linspace(0, 1, 2000)[:, None]
    found = KMeans(4, n_init=2, random_state=0).fit(points).labels_.reshape(4, 500)
    assert all(len(set(row)) == 1 for row in found) and len(set(found[:, 0])) == 4
use_sklearn()
""",
}

TOGETHER = """
from concurrent.futures import ThreadPoolExecutor

for _ in range(3):
    for use in uses:
        use()
        ours()
with ThreadPoolExecutor(4) as pool:
    for done in [pool.submit(use) for _ in range(4) for use in (*uses, ours, ours)]:
        done.result()
print("both are right")
"""


def lacking(names: tuple[str, ...]) -> str:
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize(
    "names", [*((name,) for name in PEERS), tuple(PEERS)], ids=[*PEERS, "all of them"]
)
def test_both_compute(names: tuple[str, ...], order: str) -> None:
    reason = lacking(names)
    if reason:
        pytest.skip(reason)
    if runtime.threading_runtime() == "SYCL" and order == "before" and "openvino" in names:
        pytest.skip(
            "the SYCL wheel finds no CPU after openvino: tests/peers/bench/test_openvino.py"
        )
    theirs = "".join(PEERS[name] for name in names)
    uses = f"uses = [{', '.join(f'use_{name}' for name in names)}]\n"
    program = (theirs + OURS if order == "before" else OURS + theirs) + uses + TOGETHER
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "OMP_NUM_THREADS": "4"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-2000:]
    assert "both are right" in child.stdout
