"""Texts and pages rendered in fonts of this machine, with what stands on them: nothing to run."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Array: TypeAlias = np.ndarray[Any, Any]
Box: TypeAlias = tuple[float, float, float, float]

FONTS = sorted(
    path
    for path in Path("/usr/share/fonts").glob("**/DejaVu*.ttf")
    if "Mono" not in path.name and "ExtraLight" not in path.name
)
WORDS = [
    "quantized",
    "convolution",
    "saturates",
    "without",
    "VNNI",
    "oneDNN",
    "scale",
    "zero",
    "point",
    "per",
    "channel",
    "matmul",
    "bias",
    "accumulator",
    "round",
    "nearest",
    "even",
    "2026",
    "INT8",
    "8-bit",
    "fused",
    "weights",
]
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_SPREAD = np.array([0.229, 0.224, 0.225], np.float32)
_NOISE = 0.03


def line(seed: int, height: int, width: int, words: int = 2) -> tuple[Array, str]:
    """Return (1, 3, height, width) of -1 to 1, BGR, noisy, and the text; behind it is nothing."""
    rng = np.random.default_rng(seed)
    text = " ".join(rng.choice(WORDS, words))
    image = Image.new("RGB", (1200, 100), _color(rng, 180, 256))
    draw, font = ImageDraw.Draw(image), _font(rng, int(rng.integers(24, 60)))
    left, top, right, bottom = draw.textbbox((10, 10), text, font=font)
    draw.text((10, 10), text, font=font, fill=_color(rng, 0, 100))
    image = image.crop((int(left) - 4, int(top) - 4, int(right) + 4, int(bottom) + 4))
    own = min(width, max(8, round(image.width * height / image.height)))
    values = np.asarray(image.resize((own, height)), np.float32) / 127.5 - 1
    values += rng.normal(0, _NOISE, values.shape).astype(np.float32)
    whole = np.zeros((height, width, 3), np.float32)
    whole[:, :own] = values[:, :, ::-1]
    return _channels_first(whole), text


def page(seed: int, size: int = 320) -> tuple[Array, list[Box]]:
    """Return (1, 3, size, size), normalized, of lines of text, and their boxes."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (size, size), _color(rng, 180, 256))
    draw, boxes, y = ImageDraw.Draw(image), list[Box](), 8
    while y < size - 40:
        height = int(rng.integers(14, 30))
        text = " ".join(rng.choice(WORDS, int(rng.integers(1, 3))))
        at, font = (int(rng.integers(4, 60)), y), _font(rng, height)
        draw.text(at, text, font=font, fill=_color(rng, 0, 100))
        boxes.append(draw.textbbox(at, text, font=font))
        y += height + int(rng.integers(12, 24))
    values = (np.asarray(image, np.float32) / 255 - _MEAN) / _SPREAD
    return _channels_first(values), boxes


def picture(seed: int, size: int) -> Array:
    """Return (1, 3, size, size) of 0 to 255: shapes in all colors, noisy."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (size, size), _color(rng, 180, 256))
    draw = ImageDraw.Draw(image)
    for _ in range(12):
        x, y = (int(each) for each in rng.integers(0, size, 2))
        reach = int(rng.integers(8, 80))
        shape = draw.ellipse if rng.integers(2) else draw.rectangle
        shape((x - reach, y - reach, x + reach, y + reach), fill=_color(rng, 0, 256))
    values = np.asarray(image, np.float32) + rng.normal(0, 6, (size, size, 3)).astype(np.float32)
    return _channels_first(values)


def read_ctc(scores: Array, characters: list[str]) -> str:
    """Return the text of (steps, characters) scores; 0 is between characters, repeats are one."""
    best = (int(each) for each in scores.argmax(axis=-1))
    known = [each for each, _ in groupby(best) if each]
    return "".join(characters[each - 1] if each <= len(characters) else " " for each in known)


def boxes_of(scores: Array) -> list[Box]:
    """Return boxes of connected places above 0.3, grown back as the detectors' training shrank."""
    left = {(int(y), int(x)) for y, x in np.argwhere(scores > 0.3)}
    boxes = []
    while left:
        edge, members = [left.pop()], list[tuple[int, int]]()
        while edge:
            y, x = edge.pop()
            members.append((y, x))
            beside = {(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)} & left
            left -= beside
            edge += beside
        (top, first), (bottom, last) = np.min(members, axis=0), np.max(members, axis=0)
        grown = 0.6 * min(last - first + 1, bottom - top + 1)
        if (last - first) * (bottom - top) > 20:
            boxes.append((first - grown, top - grown, last + grown, bottom + grown))
    return boxes


def f1(found: list[Box], right: list[Box]) -> float:
    """Return 2 · hits / (found + right); a hit overlaps by half of the union."""
    left, hits = list(right), 0
    for box in found:
        best = max(left, key=lambda each: _overlap(box, each), default=None)
        if best is not None and _overlap(box, best) >= 0.5:
            left.remove(best)
            hits += 1
    return 2 * hits / max(len(found) + len(right), 1)


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    both = max(width, 0) * max(height, 0)
    areas = sum((each[2] - each[0]) * (each[3] - each[1]) for each in (one, other))
    return both / (areas - both)


def _font(rng: np.random.Generator, size: int) -> Any:  # noqa: ANN401 - Pillow's
    return ImageFont.truetype(str(FONTS[int(rng.integers(len(FONTS)))]), size)


def _color(rng: np.random.Generator, lo: int, hi: int) -> tuple[int, ...]:
    return tuple(int(each) for each in rng.integers(lo, hi, 3))


def _channels_first(values: Array) -> Array:
    return np.ascontiguousarray(values.transpose(2, 0, 1)[None], np.float32)
