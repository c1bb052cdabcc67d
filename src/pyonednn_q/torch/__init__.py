"""torch: PyTorch's layers on oneDNN. Needs the package torch; `import pyonednn_q` does not.

`swap` puts oneDNN's kernels into a quantized model, which stays a model of torch. `sequential`
reads float layers as a `pyonednn_q.network.Network`; `pyonednn_q.calibrate` makes it INT8.
"""

from __future__ import annotations

from pyonednn_q.torch.sequence_reader import sequential
from pyonednn_q.torch.swapped_layers import QuantizedLayer, swap

__all__ = ["QuantizedLayer", "sequential", "swap"]
