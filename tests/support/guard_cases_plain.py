"""What the guard table must match where layouts matter, or weights are none, as `guard_cases`."""

from __future__ import annotations

from typing import Any

from pyonednn_q.faults.guards import layer_layouts, layouts, plain
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.problem import Problem
from support.guard_borders.layer_layouts import BORDERS as LAYERS
from support.guard_borders.layouts import BORDERS as LAYOUTS
from support.guard_borders.plain import BORDERS
from support.guard_cases import AVX2, NEW, OLD, VNNI

ANYWHERE = ((OLD, AVX2), (NEW, VNNI))
WITHIN = layer_layouts.float_wei_batches_within
IN_STEPS = layer_layouts.deconvolved_in_steps_with_gaps
STEPS = "brg_deconv:avx2+brgconv_strided:avx2"
GEMM = "x64:gemm_s8u8s32:jit"
NCSP = "conv:any+jit_uni_ncsp:matmul+brg_matmul:avx512_core"
IN_NEW = ((NEW, AVX2), (NEW, VNNI))
IN_YMM = ((OLD, AVX2), (NEW, "AVX2_VNNI_2"))
IN_OLD = ((OLD, AVX2), (OLD, VNNI))
# Rows, their conditions, where they are, a kernel that has the fault, and one that has not.
ROWS: list[tuple[str, Any, Any, str, str]] = [
    ("s32-in-float32", plain.s32_in_float32, ANYWHERE, "ref:any", ""),
    ("s32-maxima", plain.s32_maxima, ANYWHERE, "ref:any", "jit_int:avx2"),
    ("maxima-stored-early", plain.maxima_stored_early, ((NEW, VNNI),), "ref:any", "jit_int:avx2"),
    ("prelu-beyond-registers", plain.slopes_beyond_registers, IN_YMM, "jit_uni", "ref:any"),
    ("reorder-of-gaps-alike", layouts.gaps_alike, IN_OLD, "jit_direct_copy:uni", "jit:uni"),
    ("reorder-shifted-blocks", layouts.shifted_in_another_order, ANYWHERE, "jit:uni", "ref"),
    ("binary-of-other-layouts", layouts.other_layouts_stored_narrow, ANYWHERE, "jit:uni", "ref"),
    ("binary-operand-across-layout", layouts.operand_across_layout, ANYWHERE, "jit:uni", "ref"),
    ("binary-operand-along-rows", layouts.operand_along_rows, IN_NEW, "jit:uni", "ref"),
    ("resampling-of-one-place", layouts.one_place_in_two_orders, ANYWHERE, "simple:any", "ref"),
    ("pooling-beside-operand", layouts.pooled_beside_operand, ANYWHERE, "jit:avx2", "simple"),
    ("prelu-across-layout", layouts.slopes_across_layout, ANYWHERE, "jit_uni", "ref:any"),
    ("sum-into-gaps", layouts.sum_with_gaps, IN_OLD, "ref:any", "simple:any"),
    ("deconv-into-gaps", layer_layouts.deconvolved_into_gaps, ANYWHERE, "conv:any+ref:any", "ref"),
    ("deconv-pointwise-plain-wei", layer_layouts.pointwise_plain_wei, ANYWHERE, NCSP, "ref"),
    ("inner-product-in-two-orders", layer_layouts.spatial_orders_differ, IN_NEW, "gemm:jit", "ref"),
    ("inner-product-innermost-images", layer_layouts.innermost_images, ANYWHERE, GEMM, "gemm:jit"),
    ("conv-gemm-with-gaps", layer_layouts.convolved_with_gaps, ANYWHERE, "x64:gemm:jit", "ref:any"),
    ("deconv-strided-with-gaps", IN_STEPS, ANYWHERE, STEPS, "jit_deconvolution:avx2"),
    ("matmul-column-with-gaps", layer_layouts.column_with_gaps, ANYWHERE, "gemm:jit", "ref:any"),
    (
        "matmul-row-declared-short",
        layer_layouts.row_declared_short,
        ANYWHERE,
        "gemm:jit",
        "ref:any",
    ),
    ("matmul-batches-within-rows", layer_layouts.batches_within_rows, ANYWHERE, "gemm:jit", "ref"),
    ("matmul-4d-wei-batches-within", WITHIN, ANYWHERE, "brg_matmul:avx2", "gemm:jit:f32"),
    ("operand-with-gaps", layouts.operand_with_gaps, IN_OLD, "jit_uni_int8:avx2", "ref:any"),
]
_MATCHED = {border[0]: border[1] for border in (*BORDERS, *LAYOUTS, *LAYERS)}

PLAIN_WRONG: list[tuple[str, Problem, Attr, Any, str, str]] = [
    (row, problem, attr, version, isa, impl)
    for row, condition, where, impl, _ in ROWS
    for version, isa in where
    for problem, attr in _MATCHED[condition]
]
PLAIN_RIGHT: list[tuple[Problem, Attr, Any, str, str]] = [
    (problem, attr, version, isa, right)
    for _, condition, where, _, right in ROWS
    if right
    for version, isa in where
    for problem, attr in _MATCHED[condition]
] + [
    (problem, attr, NEW, isa, impl)
    for _, condition, where, impl, _ in ROWS
    if where is IN_OLD
    for _, isa in where
    for problem, attr in _MATCHED[condition]
]
