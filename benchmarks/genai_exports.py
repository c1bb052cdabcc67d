"""Exports of onnxruntime-genai's builder, of small seeded models: pq.Decoder beside onnxruntime.

    python benchmarks/genai_exports.py exports

Needs onnxruntime-genai, transformers and torch. Models are drawn and saved by transformers, the
builder reads them from the folder; nothing is fetched. Of each it prints how many of 16 tokens are
those that onnxruntime generates, and the largest distance of all logits in parts of their standard
deviation, with a cache of floats and with one of codes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import pyonednn_q as pq

Array = np.ndarray[Any, Any]

SIZES: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_WINDOW = {"head_dim": 32, "sliding_window": 8}
_CAPS = {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0}
CONFIGS: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Qwen2": {},
    "Qwen3": {"head_dim": 32},
    "Mistral": {"sliding_window": 8},
    "Gemma2": {**_WINDOW, **_CAPS, "query_pre_attn_scalar": 32},
    "Phi3": {"original_max_position_embeddings": 256},
    "Phi": {},
    "SmolLM3": {},
}
EXPORTS = (
    *((name, "fp32", ()) for name in CONFIGS),
    ("Llama", "int8", ()),
    ("Llama", "int8", ("accuracy_level=0",)),
    ("Llama", "int4", ()),
    ("Qwen3", "int4", ("is_symmetric=false",)),
    ("Gemma2", "int4", ()),
    ("Phi3", "int4", ("prune_lm_head=true",)),
)
PROMPT, TOKENS = np.array([[3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8, 97, 93, 23, 84, 62, 64]]), 16


def saved(name: str, folder: Path) -> Path:
    """Draw a model and save it with a tokenizer of words, where it is not there yet."""
    source = folder / name
    if source.exists():
        return source
    import tokenizers
    import torch
    import transformers

    config = getattr(transformers, f"{name}Config")(**SIZES, **CONFIGS[name])
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 1:
                weight.add_(torch.randn_like(weight) * 0.1)
            else:
                weight.mul_(3.0)
    model.save_pretrained(source)
    words = {f"w{at}": at for at in range(SIZES["vocab_size"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(source)
    return source


def exported(name: str, precision: str, options: tuple[str, ...], folder: Path) -> Path:
    """Let the builder export a model for CPUs; return the file."""
    source = saved(name, folder)
    target = folder / "-".join([name, precision, *(each.partition("=")[0] for each in options)])
    if not (target / "model.onnx").exists():
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", name]
        command += ["-i", str(source), "-o", str(target), "-p", precision, "-e", "cpu"]
        command += ["-c", str(folder / "cache")]
        command += ["--extra_options", *options] if options else []
        told = {**os.environ, "HF_HUB_OFFLINE": "1"}
        subprocess.run(command, check=True, capture_output=True, env=told)
    return target / "model.onnx"


class Session:
    """An export in onnxruntime: logits of new tokens, keys and values of before kept."""

    def __init__(self, file: Path) -> None:
        providers = ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(str(file), providers=providers)
        told = json.loads((file.parent / "genai_config.json").read_text())["model"]["decoder"]
        dims = 1, told["num_key_value_heads"], 0, told["head_size"]
        names = [each.name for each in self._session.get_inputs() if "past" in each.name]
        self._past = {name: np.zeros(dims, np.float32) for name in names}
        for node in onnx.load(file, load_external_data=False).graph.node:
            attributes = {each.name: each.i for each in node.attribute}
            if attributes.get("sliding_window_cache", 0):  # as many rows from the beginning on
                rows = (*dims[:2], attributes["local_window_size"], dims[3])
                self._past |= dict.fromkeys(node.input[3:5], np.zeros(rows, np.float32))
        self._length = 0

    def __call__(self, tokens: Array) -> Array:
        """Return logits of the last token, or of all."""
        self._length += tokens.shape[1]
        fed = {"input_ids": tokens, "attention_mask": np.ones((1, self._length), np.int64)}
        names = [each.name for each in self._session.get_outputs()]
        results = dict(zip(names, self._session.run(None, {**fed, **self._past}), strict=True))
        self._past = {
            name: results[name.replace("past_key_values", "present")] for name in self._past
        }
        return np.asarray(results["logits"])


def compared(file: Path, cache: str) -> tuple[int, float]:
    """Return how many tokens are theirs, told theirs each time, and how far logits are off."""
    theirs, ours = Session(file), pq.Decoder(file, capacity=64, cache=cache)
    tokens, same, off = PROMPT, 0, 0.0
    for _ in range(TOKENS):
        real, own = theirs(tokens), ours(tokens)
        off = max(off, float(np.abs(own - real).max() / real.std()))
        tokens = real[:, -1:].argmax(-1)
        same += int(own[0, -1].argmax() == tokens[0, 0])
    return same, off


def main() -> None:
    """Export, compare and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where models and exports are kept")
    folder = parser.parse_args().folder
    print("| export | precision | floats: tokens, off | codes: tokens, off |\n|---|---|---|---|")
    for name, precision, options in EXPORTS:
        file = exported(name, precision, options, folder)
        cells = []
        for cache in ("f32", "s8"):
            same, off = compared(file, cache)
            cells.append(f"{same} of {TOKENS}, {off:.0e}")
        how = ", ".join([precision, *options])
        print(f"| {name} | {how} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
