"""A small decoder of bytes, and what trains it on the help topics of Python: nothing to run else.

Before each attention and each MLP a LayerNorm, learned places, ReLU, biases, as OPT's. It is for
comparing ways to quantize weights, not for what it writes.

    python benchmarks/small_decoder.py decoder.npz           # a few minutes; needs torch
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

Array = np.ndarray[Any, Any]
Weights = dict[str, Array]

WIDTH, HEADS, LAYERS, PLACES, BYTES = 128, 4, 3, 128, 256
HELD_OUT = 0.1  # of the text, its end


def text() -> Array:
    """Return the help topics that come with Python, as bytes, one behind another."""
    from pydoc_data.topics import topics

    parts = [topics[name] for name in sorted(topics)]
    return np.frombuffer("\n".join(parts).encode(), np.uint8)


def windows(*, held_out: bool, count: int, seed: int = 0) -> Array:
    """Return (count, PLACES + 1) bytes from the text's end, or from what trains."""
    codes = text()
    start = int(len(codes) * (1 - HELD_OUT))
    part = codes[start:] if held_out else codes[:start]
    places = np.random.default_rng(seed).integers(0, len(part) - PLACES - 1, count)
    return np.stack([part[at : at + PLACES + 1] for at in places]).astype(np.int64)


def drawn() -> Weights:
    """Return weights to begin with, (K, N) of products."""
    rng = np.random.default_rng(0)

    def matrix(*dims: int) -> Array:
        return (rng.standard_normal(dims) / math.sqrt(dims[0])).astype(np.float32)

    weights = {"bytes": matrix(BYTES, WIDTH) * 4, "places": matrix(PLACES, WIDTH)}
    for at in range(LAYERS):
        dims = dict.fromkeys("qkvo", (WIDTH, WIDTH))
        dims |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
        for name, of in dims.items():
            weights[f"{at}.{name}"] = matrix(*of)
            weights[f"{at}.{name}.bias"] = np.zeros(of[1], np.float32)
    for name in [f"{at}.{norm}" for at in range(LAYERS) for norm in ("n1", "n2")] + ["n"]:
        weights[f"{name}.gain"] = np.ones(WIDTH, np.float32)
        weights[f"{name}.shift"] = np.zeros(WIDTH, np.float32)
    weights["head"] = matrix(WIDTH, BYTES)
    return weights


def trained(steps: int, batch: int) -> Weights:
    """Return weights that torch trained."""
    import torch
    from torch.nn import functional as f

    torch.manual_seed(0)
    p = {name: torch.tensor(each, requires_grad=True) for name, each in drawn().items()}

    def logits(x: torch.Tensor) -> torch.Tensor:
        h = p["bytes"][x] + p["places"][: x.shape[1]]
        for at in range(LAYERS):
            n = f.layer_norm(h, (WIDTH,), p[f"{at}.n1.gain"], p[f"{at}.n1.shift"])
            q, k, v = (
                (n @ p[f"{at}.{name}"] + p[f"{at}.{name}.bias"])
                .unflatten(-1, (HEADS, -1))
                .transpose(1, 2)
                for name in "qkv"
            )
            mixed = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            h = h + mixed.transpose(1, 2).flatten(2) @ p[f"{at}.o"] + p[f"{at}.o.bias"]
            n = f.layer_norm(h, (WIDTH,), p[f"{at}.n2.gain"], p[f"{at}.n2.shift"])
            wide = f.relu(n @ p[f"{at}.up"] + p[f"{at}.up.bias"])
            h = h + wide @ p[f"{at}.down"] + p[f"{at}.down.bias"]
        return f.layer_norm(h, (WIDTH,), p["n.gain"], p["n.shift"]) @ p["head"]

    optimizer = torch.optim.AdamW(list(p.values()), lr=1e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, steps)
    for step in range(steps):
        some = torch.tensor(windows(held_out=False, count=batch, seed=step + 1))
        loss = f.cross_entropy(logits(some[:, :-1]).flatten(0, 1), some[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            sys.stderr.write(f"step {step}: {loss.item():.3f} nats a byte\n")
    return {name: each.detach().numpy() for name, each in p.items()}


def proto(weights: Weights) -> onnx.ModelProto:
    """Return it as an ONNX model from bytes (N, PLACES) to logits (N, PLACES, BYTES)."""
    from onnx import TensorProto, helper, numpy_helper

    nodes: list[Any] = []
    arrays = {name: np.ascontiguousarray(each) for name, each in weights.items()}
    arrays["heads"] = np.array([0, 0, HEADS, WIDTH // HEADS])
    arrays["flat"] = np.array([0, 0, WIDTH])
    arrays["root"] = np.array(math.sqrt(WIDTH // HEADS), np.float32)
    mask = np.triu(np.full((PLACES, PLACES), -1e9, np.float32), 1)
    arrays["mask"] = mask

    def add(operator: str, *inputs: str, name: str = "", **attributes: object) -> str:
        out = f"t{len(nodes)}"
        nodes.append(helper.make_node(operator, list(inputs), [out], name or out, **attributes))
        return out

    def norm(x: str, name: str) -> str:
        parts = (f"{name}.gain", f"{name}.shift")
        return add("LayerNormalization", x, *parts, name=name, axis=-1, epsilon=1e-5)

    def dense(x: str, name: str) -> str:
        return add("Add", add("MatMul", x, name, name=name), f"{name}.bias")

    h = add("Add", add("Gather", "bytes", "x"), "places")
    for at in range(LAYERS):
        n = norm(h, f"{at}.n1")
        q, k, v = (add("Reshape", dense(n, f"{at}.{name}"), "heads") for name in "qkv")
        q, v = (add("Transpose", each, perm=[0, 2, 1, 3]) for each in (q, v))
        scores = add("Div", add("MatMul", q, add("Transpose", k, perm=[0, 2, 3, 1])), "root")
        shares = add("Softmax", add("Add", scores, "mask"), axis=-1)
        mixed = add("Transpose", add("MatMul", shares, v), perm=[0, 2, 1, 3])
        h = add("Add", h, dense(add("Reshape", mixed, "flat"), f"{at}.o"))
        wide = add("Relu", dense(norm(h, f"{at}.n2"), f"{at}.up"))
        h = add("Add", h, dense(wide, f"{at}.down"))
    add("MatMul", norm(h, "n"), "head", name="head")
    nodes[-1].output[0] = "y"
    ends = [
        helper.make_tensor_value_info("x", TensorProto.INT64, ["n", PLACES]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", PLACES, BYTES]),
    ]
    held = [numpy_helper.from_array(each, name) for name, each in arrays.items()]
    graph = helper.make_graph(nodes, "decoder", ends[:1], ends[1:], held)
    opsets = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def main() -> None:
    """Train, and write the weights."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    weights: dict[str, Any] = trained(options.steps, options.batch)
    np.savez(options.file, **weights)


if __name__ == "__main__":
    main()
