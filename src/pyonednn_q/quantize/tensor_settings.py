"""Quantization of one tensor by a configuration: its estimator, and its FakeQuantize.

    mean kinds       a batch is a sample; for "mixed_min_max" of activations each image is
    symmetric        of "min_max" kinds the largest |x|, of percentiles and sigmas the larger end
    both signs       where the least value, as aggregated, or the lower percentile is below 0

Source: the range initializers and quantizers of NNCF 2.18, compared with it over 100 and more
configurations (`tools/vectors/training_tool_vectors.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyonednn_q.argument import flag, instance
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize.calibrate import estimator
from pyonednn_q.quantize.estimator import Estimator
from pyonednn_q.quantize.fq_ranges import fq_from_range

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pyonednn_q.expr.fake_quantize import FakeQuantize

__all__ = ["ROLES", "TensorSettings"]

ROLES = ("weights", "activations")
_FLOAT32 = 24  # significant bits


@dataclass(frozen=True, slots=True)
class TensorSettings:
    """Settings by which one tensor of a layer is quantized.

    Attributes
    ----------
    bits : int
        Width of the codes.
    symmetric : bool
        Whether there is no zero point.
    signed : bool or None
        Whether symmetric ranges have codes of both signs, or none below 0; None: as the statistics
        need.
    per_channel : bool
        Whether each channel has a range: dimension 0 of weights, 1 of activations.
    narrow, half_range : bool
        Options of `fq_from_range`.
    range_kind : str
        Kind of estimator, one of `ESTIMATORS`.
    percent : (float, float)
        Percentages of the percentile estimator.
    samples : int
        Number of samples for the range; 0 for none.
    role : str
        Role of the tensor, one of `ROLES`.
    """

    bits: int = 8
    symmetric: bool = True
    signed: bool | None = None
    per_channel: bool = False
    narrow: bool = False
    half_range: bool = False
    range_kind: str = "mixed_min_max"
    percent: tuple[float, float] = (0.1, 99.9)
    samples: int = 256
    role: str = "activations"

    def estimator(self, axis: int) -> Estimator:
        """Return an estimator for the tensor: what the tool calls a range initializer.

        For the mean kinds a batch is one sample, except for "mixed_min_max" of activations.

        Parameters
        ----------
        axis : int
            Dimension of the channels: 0 of weights, 1 of activations; ignored for one range per
            tensor.

        Raises
        ------
        ArgumentError
            No integer.
        """
        return estimator(
            self.range_kind,
            axis=axis if self.per_channel else None,
            symmetric=self._of_magnitudes(),
            by_batch=self.role == "weights" or self.range_kind != "mixed_min_max",
            percent=self.percent,
            bits=self.bits,
            precision=_FLOAT32,
        )

    def _of_magnitudes(self) -> bool:
        """Return whether the estimator is to be symmetric.

        Percentiles and sigmas of symmetric ranges are those of values, and become magnitudes later.
        """
        return self.symmetric and self.range_kind.endswith("min_max")

    def fake_quantize(self, state: Estimator, *, exported: bool = True) -> FakeQuantize:
        """Return the FakeQuantize that the tool exports for the range that an estimator found.

        With half range, it is right for clipped values only: `quantized` returns those.

        Parameters
        ----------
        state : Estimator
            Result of `estimator`.
        exported : bool
            False: the FakeQuantize that the tool itself computes. With half range, it has half as
            many levels, clips at their ends, and 0 is a level; in exported ranges of asymmetric
            weights, 0 is between two levels.

        Raises
        ------
        ArgumentError
            There are no values, or the range is symmetric where these settings need an asymmetric
            one.
        """
        flag("exported", exported)
        if exported or not self.half_range:
            return self._fake_quantize(state, self.bits, half=self.half_range)
        return self._fake_quantize(state, self.bits - 1, half=False)

    def quantized(self, values: ArrayLike, axis: int) -> tuple[Array, FakeQuantize]:
        """Return weights as the tool exports them, and their FakeQuantize.

        The weights are on the levels of training; with half range, on the levels of one bit less,
        clipped to their ends.

        Parameters
        ----------
        values : array_like
            Real weights, in float32.
        axis : int
            Axis of the output channels.

        Examples
        --------
        >>> import numpy as np
        >>> wei, fq = TensorSettings(half_range=True, role="weights").quantized([[1.0], [-0.5]], 0)
        >>> [round(float(each.least), 4) for each in (fq.input_low, fq.input_high, fq.zero_in)]
        [-2.0317, 2.0159, 128.0]
        """
        state = self.estimator(axis)
        state.update(values)
        trained = self.fake_quantize(state, exported=False)
        return trained.evaluate_f32(values, axis=axis, order="nncf"), self.fake_quantize(state)

    def _fake_quantize(self, state: Estimator, bits: int, *, half: bool) -> FakeQuantize:
        instance("state", state, Estimator)
        if state.symmetric != self._of_magnitudes():
            got = f"an estimator with symmetric={state.symmetric}"
            raise ArgumentError("state", got, f"symmetric={self._of_magnitudes()}")
        return fq_from_range(
            *state.range(),
            bits,
            symmetric=self.symmetric,
            signed=self.signed,
            narrow=self.narrow,
            half_range=half,
            version=2,
        )
