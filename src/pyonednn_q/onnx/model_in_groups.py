"""ModelInGroups: a model whose products have weights in groups, and what that cost."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph
from pyonednn_q.onnx.fusion import fuse
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.model_writer import save
from pyonednn_q.report.table import Column, Table
from pyonednn_q.report.told import Told, joined

__all__ = ["LayerInGroups", "ModelInGroups"]

_SCALE_BITS = 32


class LayerInGroups(NamedTuple):
    """Weights of a product, quantized in groups.

    Attributes
    ----------
    name : str
        Name of its node.
    dims : tuple of int
        (K, N).
    groups : int
        Size of a group.
    bits : int
        Width of codes.
    method : str
        Method that chose the codes; without "awq" where nothing could be divided.
    error : float
        Σ (y − y_real)² / Σ y_real² of its outputs over the samples, by codes of weights alone; the
        same of its weights where there were no samples.
    """

    name: str
    dims: tuple[int, ...]
    groups: int
    bits: int
    method: str
    error: float

    @property
    def nbytes(self) -> int:
        """Bytes of codes and float32 scales."""
        inner, columns = self.dims
        return columns * (inner * self.bits + inner // self.groups * _SCALE_BITS) // 8


class ModelInGroups(Told):
    """A model with weights in groups.

    Parameters
    ----------
    graph : Graph
        Model with MatMulNBits, or with DequantizeLinear of blocks.
    layers : tuple of LayerInGroups
        Products in groups, in order.
    floats : mapping of str to str
        Other products with constant weights, and why they stay in floats.
    has_samples : bool
        Whether errors are those of outputs.

    Attributes
    ----------
    graph, layers, floats
        Arguments of the constructor.
    """

    def __init__(
        self,
        graph: Graph,
        layers: tuple[LayerInGroups, ...],
        floats: Mapping[str, str],
        *,
        has_samples: bool,
    ) -> None:
        self.graph, self.layers = graph, layers
        self.floats = MappingProxyType(dict(floats))
        self._has_samples = has_samples

    @property
    def mean_bits(self) -> float:
        """Bits of a weight in groups on average, scales not counted."""
        sizes = [each.dims[0] * each.dims[1] for each in self.layers]
        bits = sum(size * each.bits for size, each in zip(sizes, self.layers, strict=True))
        return bits / sum(sizes)

    def model(self, *, blocks: str | None = None) -> Model:
        """Return what runs.

        Parameters
        ----------
        blocks : {"model", "s8", "f32"}, optional
            Form of the sources of these products: see `fuse`. None: 8-bit codes, unless the model
            says another accuracy level.
        """
        how = self.options()["blocks"] if blocks is None else blocks
        return Model(fuse(self.graph, blocks=how))

    def options(self) -> dict[str, Any]:
        """Return the options by which `fuse` makes the calls of `model` from `graph`."""
        has_bits = any(node.row is kinds.MATMUL_BITS for node in self.graph.nodes)
        return {"blocks": "model" if has_bits else "s8"}

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the model; `pyonednn_q.load` makes the same calls of it.

        Parameters
        ----------
        file : path
            File to write; an existing one is overwritten.
        """
        save(self.graph, file, self.options())

    def report(self) -> str:
        """Return a table, a line for each product: bits, method, error; why others are floats."""
        return joined(self._parts())

    def _parts(self) -> Iterator[str | Table]:
        error = "error" if self._has_samples else "error of weights"
        heads = [Column("layer"), Column("K x N")]
        heads += [Column(name, right=True) for name in ("group", "bits", "KiB", error)]
        rows = [
            [
                each.name,
                f"{each.dims[0]} x {each.dims[1]}",
                str(each.groups),
                str(each.bits),
                f"{each.nbytes / 1024:.0f}",
                f"{each.error:.2e}",
                each.method,
            ]
            for each in self.layers
        ]
        yield Table([*heads, Column("method")], rows)
        yield from (f"{name}: floats, {why}" for name, why in self.floats.items())

    def __repr__(self) -> str:
        return f"<ModelInGroups of {len(self.layers)} layers, {self.mean_bits:.2f} bits a weight>"
