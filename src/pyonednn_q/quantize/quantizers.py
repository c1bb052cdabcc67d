"""Quantization of the tensors of a graph: by a number of bits, or by a configuration.

A range of activations becomes scale and zero point of 8 bits, one for the tensor; weights become
s8 codes with a scale for each output channel, or for all. Where a configuration asks for what no
kernel has, the nearest runs, and a note says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.fq_qparams import qparams_from_fq
from pyonednn_q.quantize.config import LayerSettings, QuantizationConfig
from pyonednn_q.quantize.dead_channels import without_dead_channels
from pyonednn_q.quantize.fq_ranges import fq_from_range
from pyonednn_q.quantize.integer_weights import integer_weights
from pyonednn_q.quantize.ranges import qparams_from_range
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.expr.fake_quantize import FakeQuantize
    from pyonednn_q.qparams import QParams
    from pyonednn_q.quantize.estimator import Estimator
    from pyonednn_q.quantize.tensor_settings import TensorSettings

__all__ = ["PLAIN", "Quantizers"]

_BITS = 8
_CHANNELS = 1  # the dimension of activations that channels run along


@dataclass(frozen=True, slots=True)
class Quantizers:
    """Quantization of each tensor of a graph.

    Attributes
    ----------
    wei_bits : int
        Bits of weights that no configuration speaks of.
    config : QuantizationConfig or None
        Configuration; None: activations u8 with a zero point, weights symmetric.
    layers : mapping of str to LayerSettings
        Settings of each layer by the configuration.
    readers : mapping of str to str
        The layer whose settings an activation has: the first one that reads it.
    entering : frozenset of str
        Layers that read the graph's inputs.
    means : mapping of str to ndarray
        Mean of each channel of a layer's source, by layers whose biases are corrected.
    codes : mapping of str to ndarray
        Codes of weights that are not the nearest, by layers.
    told : tuple of str
        Unmet wishes of a configuration.
    """

    wei_bits: int = _BITS
    config: QuantizationConfig | None = None
    layers: Mapping[str, LayerSettings] = field(default_factory=dict, hash=False)
    readers: Mapping[str, str] = field(default_factory=dict, hash=False)
    entering: frozenset[str] = frozenset()
    means: Mapping[str, Array] = field(default_factory=dict, hash=False, compare=False)
    codes: Mapping[str, Array] = field(default_factory=dict, hash=False, compare=False)
    told: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        config: QuantizationConfig,
        wei_bits: int,
        layers: tuple[str, ...],
        readers: Mapping[str, str],
        inputs: frozenset[str],
    ) -> Quantizers:
        """Return the quantizers that a configuration decides for the layers of a graph.

        Parameters
        ----------
        config : QuantizationConfig
            Configuration of the training tool.
        wei_bits : int
            Bits of weights that it does not speak of.
        layers : tuple of str
            Names of all layers, in order.
        readers : mapping of str to str
            Layers by the activations that they read.
        inputs : frozenset of str
            Names of the graph's inputs.

        Raises
        ------
        ArgumentError
            Scopes that name no layer; a tensor that no range, or several, is for.
        """
        entering = tuple(name for name in layers if any(readers.get(x) == name for x in inputs))
        settings = config.layers(layers, first=entering or None)
        return cls(wei_bits, config, settings, dict(readers), frozenset(entering))

    def floats(self) -> dict[str, str]:
        """Return the layers that the configuration leaves in floats, each with the reason."""
        whys = {}
        for name, settings in self.layers.items():
            if settings.weights is None or settings.activations is None:
                role = "weights" if settings.weights is None else "source"
                whys[name] = f"the configuration leaves its {role} in floats"
            elif self.config and not self.config.quantize_inputs and name in self.entering:
                whys[name] = "it reads an input, and quantize_inputs is false"
        return whys

    def estimator(self, tensor: str) -> Estimator | None:
        """Return the estimator of an activation's range, or None where nothing names one."""
        settings = self._activation(tensor)
        return None if settings is None else settings.estimator(_CHANNELS)

    def samples(self) -> int | None:
        """Return the largest number of samples for ranges; None: all that there are."""
        if self.config is None:
            return None
        known = [each.activations for each in self.layers.values() if each.activations is not None]
        return max((each.samples for each in (*known, self.config.activations)), default=None)

    def activation(self, tensor: str, lo: float, hi: float) -> QParams:
        """Return scale and zero point of an activation.

        Parameters
        ----------
        tensor : str
            Name of the tensor.
        lo, hi : float
            Range of the tensor, in real units.
        """
        settings = self._activation(tensor)
        if settings is None:
            return qparams_from_range(lo, hi, "u8")
        fq = fq_from_range(
            lo,
            max(hi, -lo) if settings.symmetric else hi,
            _BITS,
            symmetric=settings.symmetric,
            signed=settings.signed,
            narrow=settings.narrow,
            version=2,
        )
        is_signed = settings.symmetric and bool(fq.input_low.least < 0.0)
        return qparams_from_fq(fq, "s8" if is_signed else "u8").qparams

    def weights(self, layer: str, wei: Array, axis: int | None) -> tuple[Array, QParams]:
        """Return a layer's weights as s8 codes, and what these mean.

        Parameters
        ----------
        layer : str
            Name of the layer.
        wei : ndarray of float32
            Real weights.
        axis : int or None
            Dimension of the output channels; None: one scale for all.
        """
        codes, q = self._nearest(layer, wei, axis)
        return self.codes.get(layer, codes), q

    def weights_fq(self, layer: str, wei: Array, axis: int | None) -> tuple[Array, FakeQuantize]:
        """Return a layer's weights as the tool exports them, and the FakeQuantize behind them.

        Parameters
        ----------
        layer : str
            One that the configuration speaks of.
        wei : ndarray of float32
            Real weights.
        axis : int or None
            Dimension of the output channels; None: one range for all.
        """
        settings = self.layers[layer].weights
        if settings is None:
            raise ArgumentError("layer", layer, "one whose weights the configuration quantizes")
        if not settings.per_channel or axis is None:
            return replace(settings, per_channel=False).quantized(wei, 0)
        moved = np.moveaxis(wei, axis, 0)
        values, fq = settings.quantized(moved, 0)
        return np.moveaxis(values, 0, axis), fq

    def linked(self, tensors: Mapping[str, str]) -> list[list[str]]:
        """Return the sets of activations that must share one scale.

        Parameters
        ----------
        tensors : mapping of str to str
            The node that makes each activation, by the activation's name.

        Raises
        ------
        ArgumentError
            A name of a set that is no such tensor's, nor its node's.
        """
        groups = []
        for names in () if self.config is None else self.config.linked:
            known = {*tensors, *tensors.values()}
            if missing := [name for name in names if name not in known]:
                wanted = f"tensors that become codes: {shown(sorted(tensors))}, or their nodes"
                raise ArgumentError("unified_scale_ops", shown(missing), wanted)
            meant = [t for t, maker in tensors.items() if t in names or maker in names]
            if len(meant) > 1:
                groups.append(meant)
        return groups

    def notes(self) -> tuple[str, ...]:
        """Return requests of the configuration that are not fulfilled, or decide nothing here."""
        if self.config is None:
            return ()
        return tuple(dict.fromkeys(self._notes()))

    def _notes(self) -> Iterator[str]:
        config = self.config
        assert config is not None
        for key in config.unused:
            yield f"{key} decides nothing here"
        yield from self.told
        for name, settings in self.layers.items():
            source = settings.activations
            if source is not None and source.bits != _BITS:
                yield f"{name}: a source of {source.bits} bits runs in {_BITS}, as kernels have it"
            if source is not None and source.per_channel:
                yield f"{name}: one range of its source, as no kernel has one for each channel"

    def _nearest(self, layer: str, wei: Array, axis: int | None) -> tuple[Array, QParams]:
        settings = self.layers[layer].weights if layer in self.layers else None
        if settings is None:
            extent: Any = "per_tensor" if axis is None else "per_channel"
            plain = integer_weights(wei, self.wei_bits, granularity=extent, axis=axis or 0)
            return without_dead_channels(plain.codes, plain.qparams, axis or 0)
        values, fq = self.weights_fq(layer, wei, axis)
        meaning = qparams_from_fq(fq, "s8", axis=axis or 0)
        codes = meaning.qparams.quantize(values)
        last = meaning.first + fq.levels - 1
        codes = np.clip(codes, meaning.first, last).astype(np.int8)
        return without_dead_channels(codes, meaning.qparams, axis or 0)

    def _activation(self, tensor: str) -> TensorSettings | None:
        if self.config is None:
            return None
        settings = self.layers.get(self.readers.get(tensor, ""))
        known = self.config.activations if settings is None else settings.activations
        known = self.config.activations if known is None else known
        return replace(known, per_channel=False, bits=_BITS)  # as kernels have it


PLAIN = Quantizers()
"""Activations u8 with a zero point, weights of 8 bits with a scale for each output channel."""
