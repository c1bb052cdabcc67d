"""AutoRound's weights of the decoder of `small_decoder.py`, as `weight_methods.py` compares them.

Needs torch, transformers and auto-round, which have an environment of their own. Writes the real
values that the codes stand for, under the decoder's own names.

    python benchmarks/autoround_weights.py decoder.npz autoround.npz --groups 64
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from small_decoder import BYTES, HEADS, LAYERS, PLACES, WIDTH, windows

Array = np.ndarray[Any, Any]
# Names of OPT's modules by ours.
_OF_LAYER = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.out_proj",
    "up": "fc1",
    "down": "fc2",
}
_NORMS = {"n1": "self_attn_layer_norm", "n2": "final_layer_norm"}


def opt(weights: dict[str, Array]) -> torch.nn.Module:
    """Return the decoder as transformers has it."""
    from transformers import OPTConfig, OPTForCausalLM

    config = OPTConfig(
        vocab_size=BYTES,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        ffn_dim=4 * WIDTH,
        max_position_embeddings=PLACES,
        num_attention_heads=HEADS,
        word_embed_proj_dim=WIDTH,
        dropout=0.0,
        tie_word_embeddings=False,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = OPTForCausalLM(config).eval()
    state = model.state_dict()
    inner = "model.decoder"
    held = {
        f"{inner}.embed_tokens.weight": weights["bytes"],
        # Two places before the first one are OPT's own.
        f"{inner}.embed_positions.weight": np.pad(weights["places"], ((2, 0), (0, 0))),
        f"{inner}.final_layer_norm.weight": weights["n.gain"],
        f"{inner}.final_layer_norm.bias": weights["n.shift"],
        "lm_head.weight": weights["head"].T,
    }
    for at in range(LAYERS):
        for name, theirs in _OF_LAYER.items():
            held[f"{inner}.layers.{at}.{theirs}.weight"] = weights[f"{at}.{name}"].T
            held[f"{inner}.layers.{at}.{theirs}.bias"] = weights[f"{at}.{name}.bias"]
        for name, theirs in _NORMS.items():
            held[f"{inner}.layers.{at}.{theirs}.weight"] = weights[f"{at}.{name}.gain"]
            held[f"{inner}.layers.{at}.{theirs}.bias"] = weights[f"{at}.{name}.shift"]
    for name, array in held.items():
        state[name].copy_(torch.tensor(np.ascontiguousarray(array)))
    return model


def main() -> None:
    """Quantize, and write what the codes stand for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="what small_decoder.py wrote")
    parser.add_argument("into", type=Path)
    parser.add_argument("--groups", type=int, default=64)
    parser.add_argument("--zero-points", action="store_true")
    parser.add_argument("--iters", type=int, default=200)
    options = parser.parse_args()
    from auto_round import AutoRound
    from transformers import ByT5Tokenizer

    weights = dict(np.load(options.file))
    model = opt(weights)
    rows = np.concatenate(
        [windows(held_out=False, count=4, seed=1_000_000 + at)[:, :-1] for at in range(8)]
    )
    samples = [{"input_ids": torch.tensor(row[None])} for row in rows]
    start = time.perf_counter()
    rounder = AutoRound(
        model,
        tokenizer=ByT5Tokenizer(),  # it wants one, and none is used: samples are codes
        scheme="W4A16",
        bits=4,
        group_size=options.groups,
        sym=not options.zero_points,
        dataset=samples,
        seqlen=PLACES,
        nsamples=len(samples),
        batch_size=4,
        iters=options.iters,
        device_map="cpu",
        enable_torch_compile=False,
    )
    rounded, _ = rounder.quantize()
    seconds = time.perf_counter() - start
    state = rounded.state_dict()
    for at in range(LAYERS):
        for name, theirs in _OF_LAYER.items():
            key = f"model.decoder.layers.{at}.{theirs}.weight"
            weights[f"{at}.{name}"] = state[key].float().numpy().T
    weights["seconds"] = np.array(seconds)
    np.savez(options.into, **weights)
    sys.stderr.write(f"{seconds:.0f} s\n")


if __name__ == "__main__":
    main()
