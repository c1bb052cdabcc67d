"""Every complaint about a description names the key by its path, what came, and what would do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from pyonednn_q.errors import ArgumentError, DTypeError, Error, ShapeError
from pyonednn_q.explain import read

LAYER: dict[str, Any] = {
    "op": "convolution",
    "padding": 1,
    "src": {"dims": [1, 4, 8, 8], "scale": 0.5},
    "wei": {"dims": [6, 4, 3, 3]},
    "bias": [1, 2, 3, 4, 5, 6],
    "chain": ["relu", {"step": "multiply", "value": 2}],
    "dst": {"dtype": "u8"},
}
MATMUL = {"op": "matmul", "src": {"dims": [2, 3]}, "wei": {"dims": [3, 5]}}


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the layer with another value under a path such as ``src.dims``."""
    keys = path.split(".")
    layer = dict(LAYER)
    inner = layer
    for key in keys[:-1]:
        inner[key] = dict(inner.get(key, {}))
        inner = inner[key]
    inner[keys[-1]] = value
    return layer


def chain(*steps: object) -> dict[str, Any]:
    return {**LAYER, "chain": list(steps)}


FQ = {"step": "fake_quantize", "input_low": 0, "input_high": 1}
STORE = {"input_low": 0, "input_high": 1}

WRONG: list[tuple[object, type[Exception], str]] = [
    ([], ArgumentError, "description: got a list of 0; wanted a table"),
    ({}, ArgumentError, "op: got nothing; wanted one of convolution, deconvolution"),
    (changed("op", "convolutoin"), ArgumentError, "op: .*did you mean convolution?"),
    (changed("op", 3), ArgumentError, "op: got 3"),
    (changed("tittle", 1), ArgumentError, "tittle: got an unknown key; .*did you mean title"),
    (changed("title", 3), ArgumentError, "title: got 3; wanted a text"),
    (changed("src", 3), ArgumentError, "src: got 3; wanted a table"),
    (changed("src", {}), ArgumentError, "src.dims: got nothing"),
    (changed("src.dims", 3), ShapeError, "src.dims: got 3"),
    (changed("src.dims", []), ShapeError, "src.dims: got a list of 0"),
    (changed("src.dims", [1, "4", 8, 8]), ShapeError, r"src.dims\[1\]: got '4'"),
    (changed("src.dims", [1, 0, 8, 8]), ShapeError, r"src.dims\[1\]: got 0"),
    (changed("src.dims", [1, True, 8, 8]), ShapeError, r"src.dims\[1\]: got true"),
    (changed("src.dims", [1, 2**31, 8, 8]), ShapeError, r"src.dims\[1\]: got 2147483648"),
    (changed("src.dims", [1, 2**9000, 8, 8]), ShapeError, r"src.dims\[1\]: got .* 9001 bits"),
    (changed("src.dims", [1, 5, 8, 8]), ShapeError, "src.dims: got .*4 channels, as in wei"),
    (changed("src.dims", [1, 4]), ShapeError, "src.dims: .*spatial"),
    ({**LAYER, "padding": 0, "src": {"dims": [1, 4, 2, 2]}}, ShapeError, "src.dims: .*an output"),
    (changed("src.dtype", "u9"), ArgumentError, "src.dtype: got 'u9'; wanted .*u8"),
    (changed("src.dtype", "f32"), DTypeError, "src.dtype: got src f32 with wei s8"),
    (changed("src.scale", 0), ArgumentError, "src.scale: got 0"),
    (changed("src.scale", [1, 2]), ArgumentError, "src.scale: got a list of 2; wanted a number"),
    (changed("src.scale", 10**400), ArgumentError, "src.scale: got an integer of 1329 bits"),
    (changed("src.zero_point", 1.5), ArgumentError, "src.zero_point: got 1.5; wanted a whole"),
    (changed("src.size", None), ArgumentError, "src.size: got an unknown key; .* dims, dtype"),
    (changed("src.size", 3), ArgumentError, "src.size: got an unknown key; .* dims, dtype"),
    (changed("wei.dims", [6, 4, 3]), ShapeError, "wei.dims"),
    (changed("wei.scale", [1, 2]), ShapeError, "wei.scale: got 2 values; wanted 1, or 6"),
    (changed("wei.scale", [1, 2, 3, 4, 5, "6"]), ArgumentError, r"wei.scale\[5\]: got '6'"),
    (changed("wei.scale", -1), ArgumentError, "wei.scale: got -1"),
    (changed("wei.scale", {"cycle": []}), ArgumentError, "wei.scale.cycle: got a list of 0"),
    (changed("wei.scale", {"cycle": [1] * 7}), ShapeError, "wei.scale.cycle: got 7 values"),
    (changed("wei.scale", {"cycel": [1]}), ArgumentError, "wei.scale.cycel: .*mean cycle"),
    (changed("wei.scale", float("nan")), ArgumentError, "wei.scale: got NaN"),
    (changed("wei.has_min", 1), ArgumentError, "wei.has_min: got 1; wanted true or false"),
    (
        {**MATMUL, "src": {"dims": [2, 3], "dtype": "f32"}, "dst": "f32",
         "wei": {"dims": [3, 5], "dtype": "f32", "has_min": False}},
        ArgumentError,
        "wei.has_min: got false; wanted nothing",
    ),
    (changed("bias", "yes"), ArgumentError, "bias: got 'yes'; wanted .*a number"),
    (changed("bias", [1, 2]), ShapeError, "bias: got 2 values"),
    (changed("bias", {"unit": "grams"}), ArgumentError, "bias.unit: got 'grams'"),
    (changed("bias", {"values": [1, 2]}), ShapeError, "bias.values: got 2 values"),
    (changed("bias", {"valeus": 1}), ArgumentError, "bias.valeus: got an unknown key"),
    (changed("bias", float("inf")), ArgumentError, "bias: got inf"),
    (changed("stride", 0), ArgumentError, "stride: got 0; wanted a whole number from 1"),
    (changed("stride", [1, 0]), ShapeError, r"stride\[1\]: got 0"),
    (changed("stride", [1, 1, 1]), ShapeError, "stride: got"),
    (changed("padding", [[1, 1], "1"]), ShapeError, r"padding\[1\]: got '1'"),
    (changed("padding", [[1, 1, 1], [1, 1]]), ShapeError, "padding: got"),
    (changed("padding", -1), ArgumentError, "padding: got -1"),
    (changed("groups", 4), ShapeError, "groups: got 4; wanted one that divides 6"),
    (changed("groups", 2), ShapeError, "src.dims: .*2 groups of 4"),
    (changed("policy", "quick"), ArgumentError, "policy: got 'quick'; wanted one of bitwise"),
    (changed("scales", "folded "), ArgumentError, "scales: .*did you mean folded"),
    (changed("exact_rounding", "no"), ArgumentError, "exact_rounding: got 'no'"),
    (changed("dst", 8), ArgumentError, "dst: got 8; wanted a table"),
    (changed("dst", "u88"), ArgumentError, "dst.dtype: got 'u88'; wanted .*did you mean u8"),
    (changed("dst.scale", -1), ArgumentError, "dst.scale: got -1"),
    (changed("dst.zero_point", 300), ArgumentError, "dst.zero_point: got 300"),
    (changed("dst", {"dtype": "f32", "zero_point": 3}), ArgumentError, "dst.zero_point: got 3"),
    (
        changed("dst", {"scale": 2, "fake_quantize": STORE}),
        ArgumentError,
        "dst.scale: got a value; wanted nothing beside fake_quantize",
    ),
    (
        changed("dst.fake_quantize", {**STORE, "levels": 257}),
        ArgumentError,
        "dst.fake_quantize.levels: got 257; wanted at most 256: dst is u8",
    ),
    (
        changed("dst.fake_quantize", {"input_low": 0, "input_high": 0, "levels": 2}),
        ArgumentError,
        "dst.fake_quantize: got .*outputs 0 and 1",
    ),
    (
        changed("dst.fake_quantize", {"input_low": 1, "input_high": 0}),
        ArgumentError,
        "dst.fake_quantize.input_low: got a reversed range",
    ),
    (changed("chain", "relu"), ArgumentError, "chain: got 'relu'; wanted a list"),
    (chain("relux"), ArgumentError, r"chain\[0\].step: got 'relux'; wanted .*did you mean relu"),
    (chain("relu", 3), ArgumentError, r"chain\[1\]: got 3; wanted a table"),
    (chain({"alg": "relu"}), ArgumentError, r"chain\[0\].step: got nothing"),
    (chain({"step": "relu", "beta": 1}), ArgumentError, r"chain\[0\].beta: got an unknown key"),
    (chain("swish"), ArgumentError, r"chain\[0\].alpha: got nothing; wanted a number"),
    (
        chain({"step": "eltwise", "alg": "tanhh"}),
        ArgumentError,
        r"chain\[0\].alg: got 'tanhh'; wanted .*did you mean tanh",
    ),
    (
        chain({"step": "soft_relu", "alpha": 0}),
        ArgumentError,
        r"chain\[0\].alpha: got 0; wanted another number: soft_relu divides",
    ),
    (chain("multiply"), ArgumentError, r"chain\[0\].value: got nothing"),
    (chain({"step": "divide", "value": 0}), ArgumentError, r"chain\[0\].value: got 0"),
    (chain({"step": "clip", "lo": 2, "hi": 1}), ArgumentError, r"chain\[0\].lo: got lo 2 with"),
    (chain({"step": "sum", "dtype": "u4"}), DTypeError, r"chain\[0\].dtype: got 'u4'"),
    (
        chain({"step": "binary", "alg": "add", "leaf": "a b"}),
        ArgumentError,
        r"chain\[0\].leaf: got 'a b'; wanted an identifier",
    ),
    (
        chain({"step": "binary", "alg": "add", "leaf": "r", "extent": "row"}),
        ArgumentError,
        r"chain\[0\].extent: got 'row'",
    ),
    (chain({**FQ, "levels": 1}), ArgumentError, r"chain\[0\].levels: got 1"),
    (chain({**FQ, "symmetric": 2}), ArgumentError, r"chain\[0\].input_low: got a value"),
    (
        chain({"step": "fake_quantize", "symmetric": -1}),
        ArgumentError,
        r"chain\[0\].symmetric: got -1; wanted numbers above 0",
    ),
    ({**MATMUL, "stride": 1}, ArgumentError, "stride: got an unknown key"),
    ({**MATMUL, "wei": {"dims": [4, 5]}}, ShapeError, "src.dims: .*4 columns"),
    ({**MATMUL, "wei": {"dims": [3, 1 << 21]}}, ShapeError, "wei.dims: got 2097152 output"),
    (
        {"op": "inner_product", "src": {"dims": [2, 3]}, "wei": {"dims": [5, 4]}},
        ShapeError,
        r"wei.dims: got \(5, 4\); wanted \(5, 3\), as in src",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "error", "message"), WRONG, ids=[row[2] for row in WRONG])
def test_what_is_wrong_is_named(layer: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}"):
        read(layer)


def test_the_layer_itself_is_right() -> None:
    assert read(LAYER).plan().is_whole


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (changed("wei.zero_point", 1), "wei.zero_point: .*a matmul does"),
        (changed("wei.scale", 1e39), "wei.scale: got .*float32 can hold"),
        ({**changed("bias", 1), "exact_rounding": True}, "bias: got a bias in real units"),
        (
            {**LAYER, "src": {**LAYER["src"], "dtype": "bf16"},
             "wei": {**LAYER["wei"], "dtype": "bf16", "scale": 4}, "bias": True},
            "bias: got values that come later",
        ),
    ],
)  # fmt: skip
def test_what_only_composing_shows_is_named_as_well(layer: object, message: str) -> None:
    described = read(layer)
    with pytest.raises(ArgumentError, match=f"^{message}"):
        described.plan()


def places(value: object) -> Iterator[tuple[Any, ...]]:
    """Return the way to every value inside, tables and lists included."""
    pairs: Iterable[tuple[Any, object]] = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, item in pairs:
        yield (key,)
        yield from ((key, *way) for way in places(item))


def planted(value: Any, way: tuple[Any, ...], seed: object) -> Any:
    """Return a copy with something else in one place."""
    if not way:
        return seed
    copy = value.copy()
    copy[way[0]] = planted(value[way[0]], way[1:], seed)
    return copy


RICH: dict[str, Any] = {
    **LAYER,
    "bias": {"values": {"cycle": [1, 2]}, "unit": "acc"},
    "stride": [1, 2],
    "padding": [[1, 1], [0, 1]],
    "chain": [
        {"step": "fake_quantize", "symmetric": 3, "output_low": 0, "levels": 16},
        {"step": "affine", "scale": [1, 2, 3, 4, 5, 6], "shift": {"cycle": [1, 2]}},
        {"step": "clip", "lo": 0, "hi": 6},
        {"step": "sum", "scale": 2, "zero_point": 3, "dtype": "s8"},
        {"step": "binary", "alg": "max", "leaf": "r", "dtype": "s8", "extent": "full"},
        {"step": "prelu", "slope": 0.5},
        {"step": "eltwise", "alg": "elu", "alpha": 1},
    ],
    "dst": {"dtype": "s8", "fake_quantize": {"input_low": -1, "input_high": 1}},
}
NONSENSE: tuple[object, ...] = (
    None,
    -1,
    0,
    1 << 70,
    1e300,
    float("nan"),
    "x",
    [],
    {},
    [[]],
    {"a": 1},
    True,
    "\0",
)


@pytest.mark.parametrize("way", list(places(RICH)), ids=str)
def test_nonsense_is_refused_by_an_error_of_ours(way: tuple[Any, ...]) -> None:
    for nonsense in NONSENSE:
        with suppress(Error):
            read(planted(RICH, way, nonsense)).plan()
    assert read(RICH).plan().facts.channels == 6
