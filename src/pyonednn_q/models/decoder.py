"""Decoder: a language model as exporters write it, called token after token.

Its programs are made once: of one token, and of 2, 4, 8, ... tokens, of which a prompt is put
together. They share their layers, and write keys and values into a cache that stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pyonednn_q.argument import flag, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.graph.graph import Graph
from pyonednn_q.network import KeyValueCache
from pyonednn_q.onnx.decoder_form import CACHE, decoder_form
from pyonednn_q.onnx.fused_node import report
from pyonednn_q.onnx.fusion import fuse
from pyonednn_q.onnx.last_token import with_last_token_alone
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.model_reader import load_with_options
from pyonednn_q.onnx.open_dims import bound
from pyonednn_q.onnx.shared_layers import with_layers_of
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.report.table import Table
from pyonednn_q.report.told import Told
from pyonednn_q.shown import shown

__all__ = ["Decoder"]

_TOKENS, _PLACES = "input_ids", "position_ids"
_MOST = 128  # tokens of one program


class Decoder(Told):
    """An ONNX decoder with a cache of keys and values; each call appends its tokens to the cache.

    Parameters
    ----------
    model : path, bytes, ModelProto or Graph
        Decoder as onnxruntime-genai exports it: GroupQueryAttention with past keys and values as
        inputs and present ones as outputs; products are MatMul or MatMulNBits. Instead of
        GroupQueryAttention, causal Attention of opset 23 or MultiHeadAttention without a mask,
        except in a Graph.
    capacity : int
        Largest number of tokens of a sequence; rounded up to a multiple of 16.
    batch : int
        Number of sequences; all have the same number of tokens.
    cache : {"s8", "f32"}
        Data type of the cache: codes with one scale for each token and head, in little more than a
        quarter of the memory, or floats. `predict.attention_rows` computes attention on both, bit
        for bit.
    **options : optional
        Options of `onnx.fuse`: ``blocks="s8"``.

    Attributes
    ----------
    cache : KeyValueCache
        Cache that calls append to; it may be replaced by another one of the same shape.

    Raises
    ------
    ArgumentError, UnsupportedError
        The model is no such decoder; names the node.

    Notes
    -----
    One call at a time. A call that fails leaves the cache as long as it was.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - see above
        *,
        capacity: int,
        batch: int = 1,
        cache: str = "s8",
        **options: Any,  # noqa: ANN401
    ) -> None:
        graph, stored = (model, {}) if isinstance(model, Graph) else _read(model)
        self._options: dict[str, Any] = {**stored, **options}
        self._batch = whole("batch", batch, lo=1)
        self._graph, shape = decoder_form(graph, batch=batch, capacity=capacity, dtype=cache)
        unknown = self._graph.inputs.keys() - {_TOKENS, _PLACES, CACHE}
        if unknown or _TOKENS not in self._graph.inputs or len(self._graph.outputs) != 1:
            got = f"inputs {shown(sorted(self._graph.inputs))}"
            wanted = f"{_TOKENS}, {_PLACES} or none, and logits as the only other output"
            raise ArgumentError("model", got, wanted)
        self.cache = KeyValueCache(shape)
        self._models: dict[tuple[int, bool], Model] = {}

    def __call__(self, tokens: Any, *, last: bool = False) -> Array:  # noqa: ANN401 - see as_array
        """Return the logits of tokens behind those that the cache holds, and add them to it.

        Parameters
        ----------
        tokens : (batch, count) array_like of int64
            A prompt, or a token of each sequence.
        last : bool
            Only the last token's are computed, and returned: a prompt is faster.

        Returns
        -------
        (batch, count, words) ndarray of float32
            Logits for each token; (batch, 1, words) of the last token alone, also of a model that
            was exported so.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the argument; a cache that has no room for them.
        """
        ids = as_array("tokens", tokens)
        if ids.dtype != np.int64:
            raise DTypeError("tokens", str(ids.dtype), "int64")
        if ids.ndim != 2 or len(ids) != self._batch or not ids.size:
            raise ShapeError("tokens", str(ids.shape), f"({self._batch}, count)")
        flag("last", last)
        self.cache.check_room(ids.shape[1])
        begin, before = 0, self.cache.length
        results: list[Array] = []
        try:
            for count in _parts(ids.shape[1]):
                logits = self._step(ids[:, begin : begin + count], last=last)
                self.cache.append(count)
                begin += count
                last |= logits.shape[1] < count  # a model that computes no others
                results = [logits[:, -1:]] if last else [*results, logits]
        except BaseException:
            self.cache.truncate(before)
            raise
        return results[0] if len(results) == 1 else np.concatenate(results, 1)

    def generate(self, prompt: Any, count: int) -> Iterator[Array]:  # noqa: ANN401
        """Yield the likeliest next tokens, (batch,) of int64, one after another.

        Parameters
        ----------
        prompt : (batch, tokens) array_like of int64
            Tokens that follow those in the cache.
        count : int
            Number of tokens to generate.
        """
        tokens = as_array("prompt", prompt)
        for _ in range(whole("count", count, lo=0)):
            best = self(tokens, last=True)[:, -1].argmax(1)
            yield best
            tokens = best[:, None]

    def reset(self) -> None:
        """Forget all tokens."""
        self.cache.truncate(0)

    def model(self, count: int, *, last: bool = False) -> Model:
        """Return the model that runs calls of `count` tokens; it is made once.

        Parameters
        ----------
        count : int
            1, 2, 4, ..., 128.
        last : bool
            Whether only the logits of the last token are returned.
        """
        key = count, last and count > 1
        if key not in self._models:
            graph = with_last_token_alone(self._graph) if key[1] else self._graph
            dims = dict.fromkeys(graph.symbols, (self._batch, count))
            graph = fuse(bound(graph, dims), **self._options)
            if self._models:
                graph = with_layers_of(graph, next(iter(self._models.values())).graph)
            self._models[key] = Model(graph)
        return self._models[key]

    def report(self) -> str:
        """Return a table of the nodes of a step of one token: how each runs, and why."""
        return report(self.model(1).graph).text()

    def _parts(self) -> Iterator[str | Table]:
        yield from (repr(self)[1:-1], report(self.model(1).graph))

    def _step(self, ids: Array, *, last: bool) -> Array:
        count = ids.shape[1]
        inputs: dict[str, Array] = {_TOKENS: np.ascontiguousarray(ids), CACHE: self.cache.memory}
        if _PLACES in self._graph.inputs:
            places = np.arange(self.cache.length, self.cache.length + count)
            inputs[_PLACES] = np.repeat(places[None], self._batch, 0)
        (logits,) = self.model(count, last=last).run(inputs).values()
        return logits

    def __repr__(self) -> str:
        return f"<Decoder of {self.cache!r}>"


def _read(model: Any) -> tuple[Graph, dict[str, Any]]:  # noqa: ANN401
    return load_with_options(model, None, keeps_attentions=True)


def _parts(count: int) -> Iterator[int]:
    """Yield powers of two that are so many together, the largest first."""
    while count:
        part = min(_MOST, 1 << (count.bit_length() - 1))
        yield part
        count -= part
