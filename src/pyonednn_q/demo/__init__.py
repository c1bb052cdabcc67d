"""The main job on real data: handwritten digits, in FP32 and in INT8.

`python -m pyonednn_q demo` fits a small convolutional network, runs its layers both ways through
oneDNN and reports accuracy, implementation names, attributes, times and SQNR.
Only `report` prints. Nothing but the command line may import this room: scikit-learn comes with
the optional extra `demo`.
"""

from __future__ import annotations

from pyonednn_q.demo.main import main

__all__ = ["main"]
