"""Decoders of language models as exporters write them: ONNX with GroupQueryAttention.

Llama's blocks: RMS norms, rotary embedding, queries in groups that share keys and values, SwiGLU.
Nodes and names are those of onnxruntime-genai's exports; weights are random, float32 in MatMul or
4 or 8 bits in MatMulNBits. `session` runs one in onnxruntime, a token after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
_THEIRS = "com.microsoft"


@dataclass(frozen=True)
class DecoderSizes:
    """Sizes of a decoder; `longest`: places that have angles; packed: q, k and v in one product.

    Standard: norms, angles and attentions of ONNX's opset 23, and places as an input.
    """

    hidden: int = 768
    layers: int = 12
    heads: int = 12
    groups: int = 4
    depth: int = 64
    inner: int = 2048
    words: int = 32000
    longest: int = 2048
    is_packed: bool = False
    is_standard: bool = False

    @property
    def weights(self) -> int:
        """How many numbers its matrices have."""
        attention = self.hidden * self.depth * 2 * (self.heads + self.groups)
        return (
            self.layers * (attention + 3 * self.hidden * self.inner) + 2 * self.words * self.hidden
        )


SMALL = DecoderSizes(64, 2, 4, 2, 16, 96, 101, 64)


class _Writing:
    """Nodes and constants of a decoder in the making."""

    def __init__(self, sizes: DecoderSizes, seed: int, bits: int, block: int, level: int) -> None:
        self.sizes, self.bits, self.block, self.level = sizes, bits, block, level
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: Array) -> str:
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def node(self, kind: str, reads: list[str], dst: str | list[str], **told: object) -> str:
        writes = [dst] if isinstance(dst, str) else dst
        self.nodes.append(helper.make_node(kind, reads, writes, f"/{writes[0]}/{kind}", **told))
        return writes[0]

    def product(self, src: str, name: str, inner: int, columns: int) -> str:
        """Add a product with weights: of floats, or of codes in blocks."""
        wei = self.rng.standard_normal((inner, columns), np.float32) / np.float32(np.sqrt(inner))
        if not self.bits:
            return self.node("MatMul", [src, self.constant(f"{name}.weight", wei)], name)
        codes, scales = rounded(wei, self.bits, self.block)
        reads = [src, self.constant(f"{name}.codes", codes), self.constant(f"{name}.s", scales)]
        told = {"K": inner, "N": columns, "bits": self.bits, "block_size": self.block}
        return self.node(
            "MatMulNBits", reads, name, domain=_THEIRS, accuracy_level=self.level, **told
        )

    def gain(self, name: str) -> str:
        gain = 1 + 0.1 * self.rng.standard_normal(self.sizes.hidden)
        return self.constant(f"{name}.gain", gain.astype(np.float32))

    def norm(self, src: str, name: str) -> str:
        """Add a norm without a mean."""
        is_standard = self.sizes.is_standard
        kind = "RMSNormalization" if is_standard else "SimplifiedLayerNormalization"
        return self.node(kind, [src, self.gain(name)], name, epsilon=1e-5, axis=-1)

    def skipped(self, before: str, more: str, name: str) -> tuple[str, str]:
        """Add a norm of the sum of two tensors; return both."""
        if self.sizes.is_standard:
            total = self.node("Add", [before, more], f"{name}.sum")
            return self.norm(total, name), total
        dsts = [name, "", "", f"{name}.sum"]
        reads = [before, more, self.gain(name)]
        self.node("SkipSimplifiedLayerNormalization", reads, dsts, domain=_THEIRS, epsilon=1e-5)
        return name, dsts[-1]


def rounded(wei: Array, bits: int, block: int) -> tuple[Array, Array]:
    """Return codes and scales of MatMulNBits: symmetric, each block of a column by its largest."""
    inner, columns = wei.shape
    blocks = wei.T.reshape(columns, inner // block, block)
    half = 1 << (bits - 1)
    scales = np.maximum(np.abs(blocks).max(2) / (half - 1), 1e-8).astype(np.float32)
    codes = (np.rint(blocks / scales[:, :, None]) + half).astype(np.uint8)
    packed = codes if bits == 8 else codes[..., ::2] | (codes[..., 1::2] << 4)
    return packed, scales


def decoder(
    sizes: DecoderSizes, *, bits: int = 0, block: int = 32, level: int = 4, seed: int = 0
) -> onnx.ModelProto:
    """Return a decoder: of float32, or of weights of 4 or 8 bits in blocks."""
    at = _Writing(sizes, seed, bits, block, level)
    table = at.rng.standard_normal((sizes.words, sizes.hidden), np.float32)
    x = at.node("Gather", [at.constant("embedding", table), "input_ids"], "embedded")
    ends = ["position_ids"] if sizes.is_standard else _lengths(at)
    angles = np.arange(sizes.longest)[:, None] / 10000 ** (
        np.arange(sizes.depth // 2) * 2 / sizes.depth
    )
    caches = [
        at.constant(name, of(angles).astype(np.float32))
        for name, of in (("cos_cache", np.cos), ("sin_cache", np.sin))
    ]
    normal = at.norm(x, "norm.0")
    for layer in range(sizes.layers):
        more = _attention(at, layer, normal, [*ends, *caches])
        normal, x = at.skipped(x, more, f"post_norm.{layer}")
        more = _swiglu(at, layer, normal)
        normal, x = at.skipped(x, more, f"norm.{layer + 1}")
    at.product(normal, "logits", sizes.hidden, sizes.words)
    graph = helper.make_graph(at.nodes, "decoder", *_values(sizes), at.constants)
    opset = 23 if sizes.is_standard else 21
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(_THEIRS, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _lengths(at: _Writing) -> list[str]:
    """Add what makes lengths of sequences of the mask, as exporters have it."""
    one = at.constant("one", np.array([1], np.int64))
    total = at.node("ReduceSum", ["attention_mask", one], "mask_sum", keepdims=0)
    less = at.node("Sub", [total, one], "mask_less")
    lengths = at.node("Cast", [less], "seqlens_k", to=TensorProto.INT32)
    shape = at.node("Shape", ["attention_mask"], "mask_shape")
    last = at.constant("last", np.array(1, np.int64))
    longest = at.node("Gather", [shape, last], "mask_length", axis=0)
    return [lengths, at.node("Cast", [longest], "total_seq_len", to=TensorProto.INT32)]


def _attention(at: _Writing, layer: int, src: str, ends: list[str]) -> str:
    sizes, name = at.sizes, f"attn.{layer}"
    each = [n * sizes.depth for n in (sizes.heads, sizes.groups, sizes.groups)]
    if sizes.is_packed:
        q, k, v = at.product(src, f"{name}.qkv", sizes.hidden, sum(each)), "", ""
    else:
        q, k, v = (
            at.product(src, f"{name}.{n}", sizes.hidden, columns)
            for n, columns in zip("qkv", each, strict=True)
        )
    both = ("key", "value")
    past, present = (
        [f"{which}.{layer}.{n}" for n in both] for which in ("past_key_values", "present")
    )
    if sizes.is_standard:
        _causal(at, [q, k, v, "", *past], [name, *present], ends)
        return at.product(name, f"{name}.o", sizes.heads * sizes.depth, sizes.hidden)
    at.node(
        "GroupQueryAttention",
        [q, k, v, *past, *ends],
        [name, *present],
        domain=_THEIRS,
        num_heads=sizes.heads,
        kv_num_heads=sizes.groups,
        scale=float(1 / np.sqrt(sizes.depth)),
        do_rotary=1,
        rotary_interleaved=0,
        local_window_size=-1,
        softcap=0.0,
    )
    return at.product(name, f"{name}.o", sizes.heads * sizes.depth, sizes.hidden)


def _causal(at: _Writing, reads: list[str], dsts: list[str], ends: list[str]) -> None:
    """Add an Attention of ONNX, on queries and keys that are turned before."""
    sizes, (places, *angles) = at.sizes, ends
    for place, heads in ((0, sizes.heads), (1, sizes.groups)):
        name = f"{reads[place]}.turned"
        src = [reads[place], *angles, places]
        reads[place] = at.node("RotaryEmbedding", src, name, num_heads=heads)
    told = {"q_num_heads": sizes.heads, "kv_num_heads": sizes.groups}
    at.node("Attention", reads, dsts, is_causal=1, **told)


def _swiglu(at: _Writing, layer: int, src: str) -> str:
    sizes, name = at.sizes, f"mlp.{layer}"
    gate, up = (at.product(src, f"{name}.{n}", sizes.hidden, sizes.inner) for n in ("gate", "up"))
    open_gate = at.node("Sigmoid", [gate], f"{name}.open")
    swish = at.node("Mul", [gate, open_gate], f"{name}.swish")
    return at.product(
        at.node("Mul", [swish, up], f"{name}.both"), f"{name}.down", sizes.inner, sizes.hidden
    )


def _values(sizes: DecoderSizes) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    info = helper.make_tensor_value_info
    other, length = "attention_mask", "total_sequence_length"
    if sizes.is_standard:
        other, length = "position_ids", "sequence_length"
    inputs = [
        info("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
        info(other, TensorProto.INT64, ["batch_size", length]),
    ]
    outputs = [info("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", sizes.words])]
    for layer in range(sizes.layers):
        for which in ("key", "value"):
            for names, values, length in (
                ("past_key_values", inputs, "past_sequence_length"),
                ("present", outputs, "total_sequence_length"),
            ):
                dims = ["batch_size", sizes.groups, length, sizes.depth]
                values.append(info(f"{names}.{layer}.{which}", TensorProto.FLOAT, dims))
    return inputs, outputs


class Session:
    """A decoder in onnxruntime: logits of new tokens, keys and values of before kept."""

    def __init__(self, model: onnx.ModelProto, sizes: DecoderSizes, threads: int = 0) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        providers = ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers)
        self._sizes = sizes
        self.reset()

    def reset(self) -> None:
        """Forget all tokens."""
        sizes = self._sizes
        empty = np.zeros((1, sizes.groups, 0, sizes.depth), np.float32)
        names = [f"{n}.{w}" for n in range(sizes.layers) for w in ("key", "value")]
        self._past = dict.fromkeys(names, empty)

    def __call__(self, tokens: Array) -> Array:
        """Return logits (1, tokens, words) of tokens (1, tokens)."""
        before = next(iter(self._past.values())).shape[2]
        feeds = {"input_ids": tokens}
        if self._sizes.is_standard:
            feeds["position_ids"] = before + np.arange(tokens.shape[1])[None]
        else:
            feeds["attention_mask"] = np.ones((1, before + tokens.shape[1]), np.int64)
        feeds |= {f"past_key_values.{name}": each for name, each in self._past.items()}
        logits, *present = self._session.run(None, feeds)
        self._past = dict(zip(self._past, present, strict=True))
        return np.asarray(logits)


def greedy(
    step: Callable[[Array], Array], prompt: Array, count: int
) -> Iterator[tuple[int, Array]]:
    """Yield tokens one after the other, each with the logits (words,) that it is the largest of."""
    tokens = prompt
    for _ in range(count):
        logits = np.asarray(step(tokens))[0, -1]
        token = int(logits.argmax())
        yield token, logits
        tokens = np.array([[token]], np.int64)
