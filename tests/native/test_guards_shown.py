"""Faults of oneDNN, shown: the library's wrong answer beside our right or refused one.

Each case names a row of the guard table. The unguarded escape walks the library's list by hand;
where the library may crash it runs in a process of its own. Rows that this library version or
instruction set does not have are skipped by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.compose import guards
from pyonednn_q.compose.attr import Attr, Scale, ZeroPoint
from pyonednn_q.compose.implementation import has_vnni
from pyonednn_q.compose.post_ops import BinaryPostOp, EltwisePostOp, SumPostOp
from pyonednn_q.compose.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from pyonednn_q.compose.tensor import TensorSpec
from pyonednn_q.errors import KnownWrongError, ReferenceKernelError, SaturationError
from pyonednn_q.native import runtime
from support import oracle
from support.children import run_child
from support.oracle_numbers import numpy_dtype
from support.unguarded import first_result

if TYPE_CHECKING:
    from pyonednn_q.compose.problem import Problem

SRC_POINT = Attr(src_zero_point=ZeroPoint())


@dataclass(frozen=True)
class Fault:
    """A problem on which a row's fault shows, and what to fill it with."""

    row: str
    problem: Problem
    attr: Attr = Attr()  # noqa: RUF009 - frozen
    values: Any = None


def deconv(kernel: int, stride: int, src: str = "u8", padding: int = 0) -> DeconvProblem:
    wei = (16, 16, kernel, kernel)
    return DeconvProblem.of((1, 16, 5, 5), wei, src=src, dst="s32", strides=stride, padding=padding)


def matmul(
    a: tuple[int, ...], b: tuple[int, ...], dst: str = "f32", *, plain: bool = False
) -> MatMulProblem:
    problem = MatMulProblem.of(a, b, dst=dst)
    if not plain:
        return problem
    return MatMulProblem(problem.src, TensorSpec.dense(b, "s8"), problem.dst, None)


POWERS = 2.0 ** (np.arange(64) % 5)
ROW_OPERAND = TensorSpec.dense((1, 1, 31, 1), "f32")
MASK_OPERAND = TensorSpec.dense((1, 1, 31, 48), "f32")
OPERAND = {"post_op_0": "fill"}

FAULTS = [
    Fault("matmul-plain-b-k-tail", matmul((64, 197), (197, 64), plain=True)),
    Fault("matmul-plain-b-k-tail", matmul((2, 197, 100), (2, 100, 64), plain=True)),
    Fault(
        "conv-one-column-out", ConvProblem.of((1, 16, 9, 3), (16, 16, 3, 3), dst="s32", strides=2)
    ),
    Fault(
        "conv-one-column-out", ConvProblem.of((2, 32, 12, 5), (32, 32, 3, 5), dst="s32", strides=3)
    ),
    Fault(
        "grouped-conv-src-zero-point",
        ConvProblem.of((1, 12, 7, 7), (2, 16, 6, 3, 3), dst="s32", padding=1),
        SRC_POINT,
        {"src_zero_point": 4},
    ),
    Fault("deconv-stride-src-zero-point", deconv(3, 3), SRC_POINT, {"src_zero_point": 4}),
    Fault("deconv-stride-src-zero-point", deconv(5, 4), SRC_POINT, {"src_zero_point": 4}),
    Fault("deconv-stride-s8", deconv(3, 3, "s8")),
    Fault("deconv-stride-s8", deconv(6, 4, "s8")),
    Fault(
        "deconv-kernel-below-stride",
        deconv(2, 4, padding=1),
        SRC_POINT,
        {"src_zero_point": 4},
    ),
    Fault("deconv-kernel-below-stride", deconv(2, 4, "s8")),
    Fault(
        "deconv-places-without-taps",
        deconv(2, 3),
        Attr(post_ops=(EltwisePostOp("linear", 1.0, 3.0),)),
    ),
    Fault(
        "deconv-places-without-taps",
        DeconvProblem.of((1, 16, 5, 5), (16, 16, 3, 3), dst="u8", strides=4),
        Attr(dst_zero_point=ZeroPoint()),
        {"dst_zero_point": 5},
    ),
    Fault(
        "conv-bias-and-operand",
        ConvProblem.of((1, 2, 4), (2, 4, 1, 4), dst="s8", bias="f32", strides=2, padding=((2, 0),)),
        Attr(post_ops=(BinaryPostOp("add", TensorSpec.channels_last((1, 8, 2), "f32")),)),
        OPERAND,
    ),
    Fault("matmul-4d-broadcast-b", matmul((2, 3, 31, 64), (1, 1, 64, 48))),
    Fault("matmul-4d-broadcast-b", matmul((2, 3, 8, 16), (1, 3, 16, 16))),
    Fault(
        "matmul-4d-per-row-binary",
        matmul((2, 3, 31, 64), (2, 3, 64, 48)),
        Attr(post_ops=(BinaryPostOp("add", ROW_OPERAND),)),
        OPERAND,
    ),
    Fault(
        "matmul-4d-mask-binary",
        matmul((2, 3, 31, 64), (2, 3, 64, 48)),
        Attr(post_ops=(BinaryPostOp("add", MASK_OPERAND),)),
        OPERAND,
    ),
    Fault("inner-product-spatial-packing", InnerProductProblem.of((4, 16, 3, 3), 32, dst="s32")),
    Fault(
        "conv-per-channel-dst-scale",
        ConvProblem.of((1, 16, 5, 5), (16, 16, 3, 3), dst="f32"),
        Attr(dst_scale=Scale(2)),
        {"dst_scale": POWERS[:16]},
    ),
    Fault(
        "matmul-per-column-dst-scale",
        matmul((4, 16), (16, 8)),
        Attr(dst_scale=Scale(2)),
        {"dst_scale": POWERS[:8]},
    ),
    Fault(
        "matmul-wei-scale-along-k",
        matmul((4, 16), (16, 8)),
        Attr(wei_scale=Scale(1)),
        {"wei_scale": POWERS[:16]},
    ),
    Fault(
        "matmul-wei-scale-along-k",
        matmul((4, 16), (16, 8)),
        Attr(wei_scale=Scale(3)),
        {"wei_scale": 2.0 ** (np.arange(128) % 7)},
    ),
    *(
        Fault(
            "conv-sum-twice",
            ConvProblem.of((1, 3, 1, 7), (oc, 3, 3, 3), padding=1),
            Attr(dst_zero_point=ZeroPoint(), post_ops=(SumPostOp(),)),
            {"dst_zero_point": 2},
        )
        for oc in (16, 32)
        if runtime.isa() == {16: "SSE41", 32: "AVX2"}[oc]
    ),
    Fault(
        "depthwise-wei-zero-point",
        ConvProblem.of((1, 32, 7, 7), (32, 1, 1, 3, 3), dst="s32"),
        Attr(wei_zero_point=ZeroPoint()),
        {"wei_zero_point": 3},
    ),
    Fault("conv-bf16-bias", ConvProblem.of((1, 16, 5, 5), (16, 16, 3, 3), dst="f32", bias="bf16")),
    Fault(
        "matmul-scale-groups",
        matmul((8, 64), (64, 32)),
        Attr(wei_scale=Scale(3, groups=(32, 1))),
        {"wei_scale": 2.0 ** (np.arange(64) % 5)},
    ),
    Fault(
        "matmul-src-scale-unit-groups",
        matmul((8, 64), (64, 32)),
        Attr(src_scale=Scale(3, groups=(1, 1))),
        {"src_scale": 2.0 ** (np.arange(512) % 5)},
    ),
    Fault(
        "matmul-scale-groups-along-n",
        matmul((8, 64), (64, 32)),
        Attr(wei_scale=Scale(3, groups=(1, 16))),
        {"wei_scale": 2.0 ** (np.arange(128) % 5)},
    ),
]


def filled(fault: Fault) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Arrays of the problem and values of the attributes, small even integers throughout."""
    rng = np.random.default_rng(5)
    tensors = fault.problem.tensors
    arrays = {
        "src": rng.integers(0, 20, tensors["src"].dims).astype(
            "u1" if tensors["src"].dtype == "u8" else "i1"
        ),
        "wei": (2 * rng.integers(-3, 4, tensors["wei"].dims)).astype("i1"),
    }
    if "bias" in tensors:
        bias = rng.integers(-9, 10, tensors["bias"].dims)
        arrays["bias"] = bias.astype(numpy_dtype(tensors["bias"].dtype))
    values: dict[str, np.ndarray] = {}
    for name, value in (fault.values or {}).items():
        if name.startswith("post_op"):
            op = fault.attr.post_ops[0]
            assert isinstance(op, BinaryPostOp)
            values[name] = rng.integers(-9, 10, op.src1.dims).astype("f4")
        else:
            values[name] = np.atleast_1d(np.asarray(value, "i4" if "zero" in name else "f4"))
    return arrays, values


def prepared_or_refused(
    fault: Fault, arrays: dict[str, np.ndarray], values: dict[str, np.ndarray]
) -> native.Prepared | KnownWrongError | ReferenceKernelError:
    """What comes of it through the guards: a primitive on another implementation, or a refusal."""
    wei, bias = arrays["wei"], arrays.get("bias")
    try:
        return native.prepare(fault.problem, fault.attr, wei=wei, bias=bias, values=values)
    except (KnownWrongError, ReferenceKernelError) as error:
        return error


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.row}-{fault.problem.text()}")
def test_the_library_is_wrong_and_we_are_not(fault: Fault) -> None:
    guard = next(guard for guard in guards.GUARDS if guard.id == fault.row)
    facts = runtime.facts()
    applies = guard.since <= facts.version and (guard.until is None or facts.version < guard.until)
    if not applies or not guard.isas(facts.isa):
        pytest.skip(f"{fault.row}: not in oneDNN {facts.version} on {facts.isa}")
    arrays, values = filled(fault)
    arrays["dst"] = np.zeros(fault.problem.tensors["dst"].dims, "u1")
    expected = oracle.run(fault.problem, fault.attr, arrays | values)

    shown = run_child(first_result, fault.problem, fault.attr, arrays, values)
    if shown.crashed:
        wrong = True
    else:
        impl, result = shown.value
        assert guard.matches(fault.problem, fault.attr, facts, impl), (
            f"{impl} is not the kernel at fault"
        )
        wrong = not expected.accepts(result).all()
    assert wrong, (
        f"oneDNN {facts.version} on {facts.isa} computes this right: is {fault.row} still needed?"
    )

    ours = prepared_or_refused(fault, arrays, values)
    if isinstance(ours, KnownWrongError):
        assert fault.row in ours.guards
        assert guard.remedy in str(ours)
    elif isinstance(ours, ReferenceKernelError):
        pytest.fail("a known fault must be named before a reference loop is mentioned")
    else:
        assert expected.accepts(ours(arrays["src"])).all(), ours.describe()
        assert any(fault.row in note for note in ours.notes)


def test_saturating_weights_are_refused_by_channel() -> None:
    if has_vnni(runtime.isa()):
        pytest.skip(f"{runtime.isa()} has VNNI: nothing saturates")
    problem = ConvProblem.of((1, 16, 4, 4), (4, 16, 1, 1), dst="s32")
    wei = np.ones((4, 16, 1, 1), np.int8)
    wei[2] = 127
    src = np.full((1, 16, 4, 4), 255, np.uint8)
    with pytest.raises(SaturationError, match="saturation='allow'") as caught:
        native.prepare(problem, wei=wei)
    assert caught.value.channels == (2,)
    allowed = native.prepare(problem, wei=wei, saturation="allow")
    assert any("VNNI" in note for note in allowed.notes)
    result = allowed(src)[0, :, 0, 0]
    assert result[0] == 16 * 255
    assert result[2] < 16 * 255 * 127  # what the refusal is about


def test_saturating_weights_of_a_call_are_refused() -> None:
    if has_vnni(runtime.isa()):
        pytest.skip(f"{runtime.isa()} has VNNI: nothing saturates")
    call = native.prepare(MatMulProblem.of((2, 8), (8, 3), dst="s32"))
    src = np.full((2, 8), 255, np.uint8)
    assert (call(src, np.full((8, 3), 64, np.int8)) == 8 * 255 * 64).all()
    with pytest.raises(SaturationError):
        call(src, np.full((8, 3), 65, np.int8))
