"""predict: every output bit of a kernel before it runs, and how two arithmetics differ.

Pure: NumPy in the operation order of each implementation, over the region that was compared.
"""

from __future__ import annotations

from pyonednn_q.acc.emulation import as_if
from pyonednn_q.acc.repair import Repair, half_range, repair, repair_source
from pyonednn_q.acc.verdict import Verdict, counts, saturation, witness
from pyonednn_q.predict.difference import DifferenceReport, difference_report, tie_mask
from pyonednn_q.predict.grouped_kernels import GroupedKernel, grouped_kernel
from pyonednn_q.predict.kernel_model import KernelModel, kernel_model
from pyonednn_q.predict.matmul_nbits import matmul_nbits
from pyonednn_q.predict.plan_model import PlanModel, plan_model

__all__ = [
    "DifferenceReport",
    "GroupedKernel",
    "KernelModel",
    "PlanModel",
    "Repair",
    "Verdict",
    "as_if",
    "counts",
    "difference_report",
    "grouped_kernel",
    "half_range",
    "kernel_model",
    "matmul_nbits",
    "plan_model",
    "repair",
    "repair_source",
    "saturation",
    "tie_mask",
    "witness",
]
