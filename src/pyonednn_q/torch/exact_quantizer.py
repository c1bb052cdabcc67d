"""ExactQuantizer: what torchao's PT2E is asked for, so that all of it runs in INT8 here.

Codes are wanted where layers read them, and go back from there: through what moves codes, with one
observer on both sides, and into what a layer adds or multiplies to its result. What stands between
a layer and those codes is part of it, and is asked for nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torchao.quantization.pt2e import MinMaxObserver, PerChannelMinMaxObserver
from torchao.quantization.pt2e.quantizer import (
    QuantizationAnnotation,
    QuantizationSpec,
    Quantizer,
    SharedQuantizationSpec,
)

from pyonednn_q.argument import function, whole
from pyonednn_q.onnx.float_types import usual_wei_bits

__all__ = ["ExactQuantizer"]

# Names of aten's operators, without the underscore of those that work in place.
_LAYERS = frozenset({"conv1d", "conv2d", "conv3d", "linear"})
_TRANSPOSED = frozenset({"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"})
_PRODUCTS = frozenset({"matmul", "bmm"})
_MOVES = frozenset(
    {
        *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"),
        *("avg_pool1d", "avg_pool2d", "avg_pool3d"),
        *("max_pool1d", "max_pool2d", "max_pool3d"),
        *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
        *("cat", "concat", "concatenate", "clone", "contiguous", "dropout", "expand", "flatten"),
        *("mean", "permute", "pixel_shuffle", "pixel_unshuffle", "reshape", "select"),
        *("slice", "squeeze", "transpose", "unflatten", "unsqueeze", "view"),
    }
)
_PARTS = frozenset({"chunk", "split", "split_with_sizes", "tensor_split", "unbind"})
_FUNCTIONS = frozenset(
    {
        *("relu", "relu6", "leaky_relu", "prelu", "hardtanh", "clamp", "clamp_min", "elu"),
        *("gelu", "silu", "mish", "sigmoid", "hardsigmoid", "hardswish", "tanh"),
        *("batch_norm", "dropout"),
    }
)
_ARITHMETIC = frozenset({"add", "sub", "mul", "div"})
_KEY = "quantization_annotation"  # of a node's meta, where PT2E looks for it


class ExactQuantizer(Quantizer):
    """A quantizer of torchao's PT2E that asks for what oneDNN computes exactly.

    Sources are uint8 with a zero point, per tensor; weights int8, symmetric, a scale for each
    output channel; biases stay floats. Activations and additions behind a layer stay with it.
    Pools, concatenations and what moves elements share an observer with what they read. What has
    no INT8 kernel, and results that no layer reads, are asked for nothing: of attention that is
    written out, the product with values is INT8, that of queries and keys is not.

    Parameters
    ----------
    observer : callable, optional
        torchao's observer of sources, or what makes one: MinMaxObserver unless said, which finds
        what `pyonednn_q.calibrate` does; HistogramObserver, and others, leave out outliers.
    wei_bits : int, optional
        Width of the weights: 8; or 7, which processors without VNNI multiply exactly. None: what
        this one does.

    Examples
    --------
    >>> import torch
    >>> from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    >>> from pyonednn_q.torch import ExactQuantizer, load
    >>> layers = torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 3)
    >>> images = torch.ones(2, 1, 8, 8)
    >>> program = torch.export.export(torch.nn.Sequential(*layers), (images,))
    >>> observed = prepare_pt2e(program.module(), ExactQuantizer())
    >>> _ = observed(images)
    >>> [node.operator for node in load(convert_pt2e(observed), images).nodes][-5:]
    ['Conv', 'Relu', 'QuantizeLinear', 'DequantizeLinear', 'Conv']
    """

    def __init__(
        self, observer: Callable[..., Any] = MinMaxObserver, wei_bits: int | None = None
    ) -> None:
        function("observer", observer)
        bits = usual_wei_bits() if wei_bits is None else whole("wei_bits", wei_bits, lo=2, hi=8)
        self._codes = QuantizationSpec(
            dtype=torch.uint8,
            quant_min=0,
            quant_max=255,
            qscheme=torch.per_tensor_affine,
            observer_or_fake_quant_ctr=observer,
        )
        most = 2 ** (bits - 1) - 1
        self._weights = {
            axis: QuantizationSpec(
                dtype=torch.int8,
                quant_min=-most,
                quant_max=most,
                qscheme=torch.per_channel_symmetric,
                ch_axis=axis,
                observer_or_fake_quant_ctr=PerChannelMinMaxObserver,
            )
            for axis in (0, 1)
        }
        self._grouped = replace(
            self._weights[0],
            qscheme=torch.per_tensor_symmetric,
            ch_axis=None,
            observer_or_fake_quant_ctr=MinMaxObserver,
        )

    def annotate(self, model: Any) -> Any:  # noqa: ANN401 - torch's types are not looked at
        """Say of each node which of its tensors become codes; PT2E calls it."""
        for node in model.graph.nodes:
            if _is_layer(node):
                src, wei = node.args[:2]
                if wei.op == "get_attr" and _is_float(src):
                    _annotation(node).input_qspec_map[wei] = self._of_weights(node)
                    self._ask(node, src)
        return model

    def validate(self, model: Any) -> None:  # noqa: ANN401
        """Accept what `annotate` asked for; PT2E calls it."""

    def _of_weights(self, node: Any) -> Any:  # noqa: ANN401
        if _name(node) in _LAYERS:
            return self._weights[0]
        groups = node.args[6] if len(node.args) > 6 else 1
        return self._weights[1] if groups == 1 else self._grouped

    def _ask(self, node: Any, *sources: Any) -> None:  # noqa: ANN401
        """Ask for codes of what a node reads, and of what they come from."""
        for src in sources:
            known = _annotation(node).input_qspec_map
            if src not in known and _is_float(src):
                known[src] = self._codes
                self._reach(src)

    def _reach(self, node: Any) -> None:  # noqa: ANN401
        """Ask for codes of what a node reads whose result is wanted as codes."""
        name = _name(node)
        both = [each for each in dict.fromkeys(_tensors(node)) if each.op != "get_attr"]
        if name in _FUNCTIONS or (name in _ARITHMETIC and len(both) == 1):
            self._reach(both[0])
        elif name == "add":
            layers = [each for each in both if _ends_layer(each) and _dims(each) == _dims(node)]
            self._ask(node, *(each for each in both if each not in layers[:1]))
        elif name == "mul" and (value := _activated(*both)) is not None:
            self._reach(value)
        elif name in {"sub", "mul"} or name in _PRODUCTS:
            self._ask(node, *both)
        elif name in _MOVES:
            self._share(node, node)
        elif node.target is operator.getitem and _name(node.args[0]) in _PARTS:
            self._share(node, node.args[0])

    def _share(self, result: Any, node: Any) -> None:  # noqa: ANN401
        """Ask for the same codes on both sides of what moves them: of a node, and of a result."""
        sources = list(dict.fromkeys(_tensors(node)))
        if _annotation(result).output_qspec is not None or not all(map(_is_float, sources)):
            return
        first = SharedQuantizationSpec((sources[0], node))
        known = _annotation(node).input_qspec_map
        known[sources[0]] = self._codes
        known.update(dict.fromkeys(sources[1:], first))
        _annotation(result).output_qspec = first
        for src in sources:
            self._reach(src)


def _annotation(node: Any) -> Any:  # noqa: ANN401
    return node.meta.setdefault(_KEY, QuantizationAnnotation(_annotated=True))


def _name(node: Any) -> str:  # noqa: ANN401
    """Return the name of a node's operator of aten, as if it did not work in place."""
    schema = getattr(node.target, "_schema", None)
    domain, _, name = str(schema.name if schema else "").partition("::")
    return name.removesuffix("_") if node.op == "call_function" and domain == "aten" else ""


def _tensors(node: Any) -> list[Any]:  # noqa: ANN401
    """Return the nodes that a node reads as tensors, those of a list as well."""
    return list(_nodes(node.args))


def _nodes(values: Any) -> Iterator[Any]:  # noqa: ANN401
    for value in values:
        if isinstance(value, torch.fx.Node):
            if isinstance(value.meta.get("val"), torch.Tensor) or value.op == "get_attr":
                yield value
        elif isinstance(value, (list, tuple)):
            yield from _nodes(value)


def _is_float(node: Any) -> bool:  # noqa: ANN401
    """Tell whether a node is a tensor of float32 that is no weight."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32


def _dims(node: Any) -> str:  # noqa: ANN401
    """Return a tensor's dims as text: comparing open ones would bind them."""
    return str(node.meta["val"].shape)


def _is_layer(node: Any) -> bool:  # noqa: ANN401
    return _name(node) in _LAYERS or _name(node) in _TRANSPOSED


def _ends_layer(node: Any) -> bool:  # noqa: ANN401
    """Tell whether a layer computes a node's result, and nobody else reads what it passes."""
    while len(node.users) == 1 and _name(node) in _FUNCTIONS:
        node = node.args[0]
    return len(node.users) == 1 and _is_layer(node)


def _activated(first: Any, second: Any) -> Any:  # noqa: ANN401
    """Return x of x · f(x), an activation that is written out; None of another product."""
    for value, other in ((first, second), (second, first)):
        gate = other
        while _name(gate) in _FUNCTIONS or (
            _name(gate) in _ARITHMETIC and len(_tensors(gate)) == 1
        ):
            gate = _tensors(gate)[0]
            if gate is value:
                return value
    return None
