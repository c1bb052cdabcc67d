"""``pyonednn-q why``: which arithmetic gives another runtime's codes, and what differs from ours.

FILE is what numpy.savez writes. It holds src, wei and theirs; src_scale, wei_scale and dst_scale;
and, where there are any, src_zero_point, wei_zero_point, dst_zero_point, bias, stride, padding,
dilation, groups and relu. Weights of 3 to 5 dimensions are a convolution's unless op says deconv,
inner_product or matmul. The exit code is 0 if something gives all of theirs, 1 if nothing does, and
2 where the file cannot be used. docs/inspect.md has an example.
"""

from __future__ import annotations

import argparse

from pyonednn_q.inspection.explainer import explain_difference
from pyonednn_q.inspection.layer_file import NEEDED, arrays_of, operator_of

__all__ = ["run"]

NOT_EXPLAINED = 1


def run(options: argparse.Namespace) -> int:
    """Run the command, and return its exit code: see the head of this module."""
    arrays = arrays_of(options.file, (*NEEDED, "theirs", "dst_scale"))
    explanation = explain_difference(operator_of(arrays), arrays["src"], arrays["theirs"])
    print(explanation.to_json() if options.json else explanation)
    return 0 if explanation.is_explained else NOT_EXPLAINED
