"""Kernel models: the order of operations, one rounding at a time, and what has no model."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, NoModelError
from pyonednn_q.faults import guards
from pyonednn_q.predict.float_order import ORDERS, Order, destination
from pyonednn_q.predict.kernel_model import KernelModel, features, kernel_model
from pyonednn_q.predict.region import Proof, Region, proofs
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.primitive.post_ops import BinaryPostOp, EltwisePostOp, PReluPostOp, SumPostOp
from pyonednn_q.primitive.problem import ConvProblem, MatMulProblem
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from pyonednn_q.primitive.post_ops import PostOp

NOTHING: frozenset[str] = frozenset()


def f32(value: Fraction) -> Fraction:
    """Round to the nearest float32, ties to even, from the definition."""
    if value == 0:
        return value
    unit = Fraction(1)
    size = abs(value)
    while size / unit >= 2**24:
        unit *= 2
    while size / unit < 2**23:
        unit /= 2
    return round(value / unit) * unit


def binary(alg: str) -> BinaryPostOp:
    return BinaryPostOp(alg, TensorSpec((1, 1), "f32"))


@pytest.mark.parametrize("order", ORDERS, ids=Order.text)
def test_each_operation_rounds_once(order: Order) -> None:
    rng = np.random.default_rng(0)
    count = 200
    problem = MatMulProblem.of((1, 4), (4, count), dst="f32", bias="f32")
    attr = Attr(
        src_scale=Scale(),
        wei_scale=Scale(2),
        dst_scale=Scale(),
        post_ops=(
            EltwisePostOp("linear", 1.37, -0.21),
            SumPostOp(0.37),
            BinaryPostOp("mul", TensorSpec((1, count), "f32")),
        ),
    )
    values: dict[str, Any] = {
        "src_scale": rng.random(1, np.float32),
        "wei_scale": rng.random(count, np.float32),
        "dst_scale": rng.random(1, np.float32),
        "post_op_2": rng.random((1, count), np.float32),
    }
    bias, before = rng.random(count, np.float32), rng.random((1, count), np.float32)
    sums = rng.integers(-(2**30), 2**30, (1, count))
    got = destination(problem, attr, sums, order, values, bias=bias, before=before)

    def exact(name: str, at: int = 0) -> Fraction:
        return Fraction(float(values[name].ravel()[at]))

    for at in range(count):
        x = f32(Fraction(int(sums[0, at])))
        src, wei = exact("src_scale"), exact("wei_scale", at)
        x = f32(x * f32(src * wei)) if order.together else f32(f32(x * src) * wei)
        x = f32(x + Fraction(float(bias[at])))
        pairs = [
            (Fraction(float(np.float32(1.37))), x, Fraction(float(np.float32(-0.21)))),
            (Fraction(float(np.float32(0.37))), Fraction(float(before[0, at])), None),
        ]
        for a, y, c in pairs:
            added = x if c is None else c
            x = f32(a * y + added) if order.fused else f32(f32(a * y) + added)
        x = f32(x * exact("post_op_2", at))
        by = exact("dst_scale")
        x = f32(x / by) if order.divided else f32(x * f32(1 / by))
        assert float(got[0, at]) == float(x)


def test_signs_of_zeros() -> None:
    problem = MatMulProblem.of((1, 4), (4, 1), dst="f32")
    attr = Attr(post_ops=(EltwisePostOp("relu"),))
    rounded = Attr(wei_scale=Scale(), post_ops=(EltwisePostOp("round"),))
    for zeros, of_relu, of_round in (
        ("kept", False, True),
        ("negative", True, True),
        ("positive", False, False),
    ):
        order = Order(together=True, fused=True, zeros=zeros)
        relu = destination(problem, attr, np.array([[-3]]), order, {})
        scale = {"wei_scale": np.array([0.1], np.float32)}
        nearest = destination(problem, rounded, np.array([[-3]]), order, scale)
        assert relu[0, 0] == nearest[0, 0] == 0
        assert (np.signbit(relu[0, 0]), np.signbit(nearest[0, 0])) == (of_relu, of_round)


# As measured: of -0 and 0, generated and plain code store these signs (True: minus).
ZEROS: dict[str, tuple[PostOp, float, tuple[bool, bool], tuple[bool, bool]]] = {
    "relu": (EltwisePostOp("relu"), 0, (False, False), (True, False)),
    "leaky relu": (EltwisePostOp("relu", 0.1), 0, (True, False), (True, False)),
    "abs": (EltwisePostOp("abs"), 0, (False, False), (False, True)),
    "clip from 0": (EltwisePostOp("clip", 0, 7), 0, (False, False), (False, False)),
    "clip to 0": (EltwisePostOp("clip", -7, 0), 0, (False, False), (True, False)),
    "clip_v2 to 0": (EltwisePostOp("clip_v2", -7, 0), 0, (False, False), (False, False)),
    "round": (EltwisePostOp("round"), 0, (True, False), (True, False)),
    "max with 0": (binary("max"), 0.0, (False, False), (False, False)),
    "max with -0": (binary("max"), -0.0, (True, True), (True, True)),
    "min with 0": (binary("min"), 0.0, (False, False), (False, False)),
    "min with -0": (binary("min"), -0.0, (True, True), (True, True)),
    "-0 >= 0": (binary("ge"), 0.0, (False, False), (False, False)),
}


@pytest.mark.parametrize("name", ZEROS)
def test_zeros_on_their_way(name: str) -> None:
    post_op, operand, kept, negative = ZEROS[name]
    problem = MatMulProblem.of((1, 4), (4, 2), dst="f32")
    attr = Attr(wei_scale=Scale(2), post_ops=(binary("mul"), post_op))
    values: dict[str, Any] = {
        "wei_scale": np.array([-1, 1], np.float32),
        "post_op_0": np.array([[1.0]], np.float32),
        "post_op_1": np.array([[operand]], np.float32),
    }
    for zeros, wanted in (("kept", kept), ("negative", negative)):
        order = Order(together=True, fused=True, zeros=zeros)
        got = destination(problem, attr, np.zeros((1, 2), int), order, values)
        assert tuple(np.signbit(got[0]).tolist()) == wanted
        if kept != negative:
            assert order.seen(problem, attr) == order


@pytest.mark.parametrize(
    ("zeros", "level", "wanted"),
    [
        # Of -0 and 0 with slope -1, and of -3 with slope 0.
        ("kept", 0, (False, False, True)),
        ("kept", 1, (False, False, True)),
        ("kept", 2, (False, True, True)),
        ("negative", 2, (True, False, True)),
    ],
)
def test_zeros_of_prelu(zeros: str, level: int, wanted: tuple[bool, ...]) -> None:
    problem = MatMulProblem.of((1, 4), (4, 3), dst="f32")
    attr = Attr(wei_scale=Scale(2), post_ops=(PReluPostOp(2),))
    values: dict[str, Any] = {
        "wei_scale": np.array([-1, 1, 1], np.float32),
        "post_op_0": np.array([[-1, -1, 0]], np.float32),
    }
    order = Order(together=True, fused=True, zeros=zeros)
    got = destination(problem, attr, np.array([[0, 0, -3]]), order, values, level=level)
    assert got[0].tolist() == [0, 0, 0]
    assert tuple(np.signbit(got[0]).tolist()) == wanted
    assert order.seen(problem, attr) == order


def test_slopes_go_along_their_mask() -> None:
    problem = ConvProblem.of((1, 1, 1, 2), (2, 1, 1, 1), dst="f32")
    attr = Attr(post_ops=(PReluPostOp(2),))
    slopes = {"post_op_0": np.array([0.5, -2.0], np.float32)}
    sums = np.array([-4, 4, -4, 4]).reshape(1, 2, 1, 2)
    got = destination(problem, attr, sums, ORDERS[0], slopes)
    assert got.ravel().tolist() == [-2, 4, 8, 4]


@pytest.mark.parametrize(
    ("dst", "sums", "wanted"),
    [
        ("u8", [-3, 5, 7, 511, 2**24], [0, 2, 4, 255, 255]),
        ("s8", [-300, -5, -3, 3, 300], [-128, -2, -2, 2, 127]),
        ("s32", [5, 7, 2**26 + 6, -(2**30), 3], [2, 4, 2**25 + 4, -(2**29), 2]),
    ],
)
def test_halves_go_to_even_and_ends_hold(dst: str, sums: list[int], wanted: list[int]) -> None:
    problem = MatMulProblem.of((1, 4), (4, 5), dst=dst)
    attr, scale = Attr(wei_scale=Scale()), {"wei_scale": np.array([0.5], np.float32)}
    got = destination(problem, attr, np.array([sums]), ORDERS[0], scale)
    assert got[0].tolist() == wanted


def test_s32_holds_at_the_largest_float_below_its_end() -> None:
    problem = MatMulProblem.of((1, 4), (4, 1), dst="s32")
    attr, scale = Attr(wei_scale=Scale()), {"wei_scale": np.array([1e9], np.float32)}
    assert destination(problem, attr, np.array([[99]]), ORDERS[0], scale)[0, 0] == 2147483520
    bare = destination(problem, Attr(), np.array([[2**24 + 1]]), ORDERS[0], {})
    assert bare[0, 0] == 2**24 + 1


def test_a_model_goes_from_tensors_to_destination() -> None:
    rng = np.random.default_rng(1)
    problem = ConvProblem.of((1, 3, 4, 4), (2, 3, 3, 3), padding=1, bias="f32")
    attr = Attr(
        wei_scale=Scale(1),
        src_zero_point=ZeroPoint(),
        dst_zero_point=ZeroPoint(),
        post_ops=(EltwisePostOp("relu"),),
    )
    src = rng.integers(0, 256, problem.src.dims).astype(np.uint8)
    wei = rng.integers(-9, 10, problem.wei.dims).astype(np.int8)
    values: dict[str, Any] = {
        "wei_scale": np.array([0.25, 0.125], np.float32),
        "src_zero_point": np.array([9], np.int32),
        "dst_zero_point": np.array([3], np.int32),
    }
    bias = np.array([1.5, -2.25], np.float32)
    model = KernelModel(
        problem, attr, "jit", InstructionSet("AVX2_VNNI"), Proof(ORDERS[0], NOTHING, Region({}))
    )
    got = model.run(src, wei, bias=bias, values=values)
    padded = np.pad(src.astype(int) - 9, ((0, 0), (0, 0), (1, 1), (1, 1)))
    for channel, row, column in np.ndindex(2, 4, 4):
        acc = int((padded[0, :, row : row + 3, column : column + 3] * wei[channel]).sum())
        x = max(acc * float(values["wei_scale"][channel]) + float(bias[channel]), 0.0) + 3
        assert got[0, channel, row, column] == min(round(x), 255)


def test_a_model_asks_for_what_it_needs() -> None:
    problem = MatMulProblem.of((1, 2), (2, 1), bias="f32")
    attr = Attr(wei_scale=Scale(2), post_ops=(SumPostOp(),))
    model = KernelModel(
        problem, attr, "jit", InstructionSet("AVX2_VNNI"), Proof(ORDERS[0], NOTHING, Region({}))
    )
    src, wei = np.zeros((1, 2), np.uint8), np.zeros((2, 1), np.int8)
    values, bias = {"wei_scale": np.ones(1, np.float32)}, np.ones(1, np.float32)
    with pytest.raises(ArgumentError, match=r"^wei_scale: got nothing"):
        model.run(src, wei, bias=bias)
    with pytest.raises(ArgumentError, match=r"^bias: got None"):
        model.run(src, wei, values=values)
    with pytest.raises(ArgumentError, match=r"^before: got None"):
        model.run(src, wei, bias=bias, values=values)


def test_open_sums_are_no_model_only_where_they_differ() -> None:
    """Two columns on AVX-512: threads decide which side is made unsigned."""
    problem = MatMulProblem.of((5, 2), (2, 2), src="s8", dst="s32")
    proof = Proof(ORDERS[0], NOTHING, Region({}))
    model = KernelModel(problem, Attr(), "gemm:jit", InstructionSet("AVX512_CORE"), proof)
    src, wei = np.full((5, 2), -128, np.int8), np.full((2, 2), 127, np.int8)
    with pytest.raises(NoModelError, match=r"its sums may be added by .* or "):
        model.run(src, wei)
    assert (model.run(src // 2, np.ones_like(wei)) == -128).all()
    elsewhere = KernelModel(problem, Attr(), "gemm:jit", InstructionSet("AVX512_CORE_VNNI"), proof)
    assert (elsewhere.run(src, wei) == -128 * 127 * 2).all()


def test_what_ran_with_byte_permutation_is_not_proven_without() -> None:
    problem = ConvProblem.of((1, 1, 3, 9), (2, 1, 3, 3), dst="s32")
    src, wei = np.full((1, 1, 3, 9), 255, np.uint8), np.full((2, 1, 3, 3), 127, np.int8)
    impl, proof = "brg_conv_fwd:avx512_core", Proof(ORDERS[0], NOTHING, Region({}))
    with_it, without, unknown = (
        KernelModel(problem, Attr(), impl, InstructionSet("AVX512_CORE", vbmi=vbmi), proof)
        for vbmi in (True, False, None)
    )
    # Down three columns of three: four pairs, and the last product alone.
    assert (with_it.run(src, wei) == 4 * (2**15 - 1) + 255 * 127).all()
    for model in (without, unknown):
        with pytest.raises(NoModelError, match="its sums may be added by channels or column"):
            model.run(src, wei)


@pytest.mark.parametrize("version", [(3, 7, 2), (3, 13, 2)])
def test_kernels_for_avx2_vnni_have_models_beside_avx512(version: tuple[int, ...]) -> None:
    """On AMD Zen 5, but not under a limit that takes AVX_VNNI away."""
    problem = ConvProblem.of((1, 2, 3, 3), (8, 2, 1, 1), dst="s32")
    zen5, limited = "AVX512_CORE_BF16+AVX_VNNI", "AVX512_CORE_BF16"
    src, wei = np.full((1, 2, 3, 3), 255, np.uint8), np.full((8, 2, 1, 1), 127, np.int8)
    whole, pair = 2 * 255 * 127, 2**15 - 1
    for impl in ("brgconv_1x1:avx2_vnni", "jit_uni_int8_1x1:avx2_vnni"):
        assert (kernel_model(problem, None, impl, zen5, version).run(src, wei) == whole).all()
        with pytest.raises(NoModelError, match=f"no model of {impl} on AVX512_CORE_BF16: nothing"):
            kernel_model(problem, None, impl, limited, version)
    for isa, sums in ((zen5, whole), (limited, pair)):
        model = kernel_model(problem, None, "jit_uni_int8_1x1:sse41", isa, version)
        assert (model.run(src, wei) == sums).all()
    with pytest.raises(NoModelError, match="nothing is proven"):
        kernel_model(problem, None, "jit_uni_int8_1x1:avx2", zen5, version)
    model = kernel_model(problem, None, "jit_uni_int8_1x1:avx2", limited, version)
    assert (model.run(src, wei) == pair).all()


def test_what_is_not_proven_has_no_model() -> None:
    problem = MatMulProblem.of((1, 2), (2, 1), dst="s8")
    with pytest.raises(NoModelError, match=r"nothing is proven for u8 matmul of oneDNN 3\.13"):
        kernel_model(problem, None, "brg_matmul:avx99", "AVX2", (3, 13))
    with pytest.raises(ArgumentError, match=r"^problem: "):
        kernel_model(MatMulProblem.of((1, 2), (2, 1), src="f32"), None, "x", "AVX2", (3, 13))
    key = next(key for key in proofs() if key[0] == "matmul" and key[1] == "u8")
    equal = Attr(post_ops=(BinaryPostOp("eq", TensorSpec((1, 1), "f32")),))
    version = tuple(map(int, key[4].split(".")))
    with pytest.raises(NoModelError, match="not proven with binary eq per tensor"):
        kernel_model(problem, equal, key[2], key[3], version)


def test_known_faults_are_those_of_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Down to its last number, which is 0 where it is not told."""
    asked: list[Any] = []

    def matching(_problem: Any, _attr: Any, facts: Any, _impl: str) -> tuple[()]:
        asked.append(facts.version)
        return ()

    monkeypatch.setattr(guards, "matching", matching)
    problem = ConvProblem.of((1, 2, 3, 3), (8, 2, 1, 1), dst="s32")
    for version in ((3, 13), (3, 13, 2), (3, 7, 1)):
        kernel_model(problem, None, "jit_uni_int8_1x1:sse41", "AVX512_CORE_BF16", version)
    assert asked == [(3, 13, 0), (3, 13, 2), (3, 7, 1)]


def test_what_is_known_to_be_wrong_has_no_model() -> None:
    """A depthwise convolution that adds the sum twice, by a kernel proven for sums elsewhere."""
    impl, isa = "jit_uni_int8:avx2_vnni", "AVX512_CORE_AMX"
    attr = Attr(wei_scale=Scale(3), post_ops=(SumPostOp(0.5),))
    depthwise = ConvProblem.of((1, 16, 9, 9), (16, 1, 1, 3, 3), dst="f32")
    with pytest.raises(NoModelError, match="known to be wrong here: depthwise-sum-twice"):
        kernel_model(depthwise, attr, impl, isa, (3, 13, 2))
    plain = Attr(wei_scale=Scale(1), post_ops=(SumPostOp(0.5),))
    dense = ConvProblem.of((1, 16, 9, 9), (16, 16, 3, 3), dst="f32")
    assert kernel_model(dense, plain, impl, isa, (3, 13)).proof.features


def test_features_in_words() -> None:
    problem = MatMulProblem.of((2, 2), (2, 3), dst="bf16", bias="f32")
    attr = Attr(
        wei_scale=Scale(2),
        src_zero_point=ZeroPoint(),
        post_ops=(
            EltwisePostOp("relu", 0.5),
            SumPostOp(0.5),
            BinaryPostOp("add", TensorSpec((1, 3), "f32")),
            BinaryPostOp("mul", TensorSpec((2, 3), "f32")),
            BinaryPostOp("max", TensorSpec((1, 1), "s32")),
            PReluPostOp(1),
        ),
    )
    wanted = {"dst bf16", "bias f32", "wei scale", "src zero point", "leaky relu", "sum"}
    wanted |= {"binary add per channel", "binary mul of a tensor"}
    wanted |= {"binary max per tensor", "operand of s32 per tensor", "prelu per row"}
    assert features(problem, attr) == wanted


def test_every_proof_is_of_features_and_shapes() -> None:
    assert all(proof.features and proof.region.visited for proof in proofs().values())


def test_sums_beyond_32_bits_have_no_model() -> None:
    """An implementation that stores s32 sums as they are wraps round there."""
    proof = Proof(ORDERS[0], NOTHING, Region({}))
    for terms, fits in ((66_000, True), (67_000, False)):  # 2^31 is 66 311 times 255 · 127
        problem = MatMulProblem.of((1, terms), (terms, 1), dst="s32")
        isa = InstructionSet("AVX512_CORE_VNNI")
        model = KernelModel(problem, Attr(), "brg_matmul:avx512_core_vnni", isa, proof)
        src, wei = np.full((1, terms), 1, np.uint8), np.full((terms, 1), 127, np.int8)
        if fits:
            assert model.run(src, wei).tolist() == [[terms * 127]]
        else:
            with pytest.raises(NoModelError, match="s32 sums"):
                model.run(src, wei)
