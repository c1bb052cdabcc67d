"""What a call will return, against what it returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import NoModelError
from pyonednn_q.native import runtime
from pyonednn_q.ops.ways import forms, in_form
from pyonednn_q.predict.plan_model import plan_model
from pyonednn_q.predict.region import proofs

RNG = np.random.default_rng(0)
SRC_Q, WEI_Q, DST_Q = (
    pq.QParams(0.02, 0, "u8"),
    pq.QParams(0.01, 0, "s8"),
    pq.QParams(0.7, 10, "u8"),
)
RELU = pq.Chain(pq.Eltwise("relu"))


def wei(*dims: int) -> Any:
    # Even and within 7 bits: sums are exact without VNNI, too.
    return (2 * RNG.integers(-31, 32, dims)).astype(np.int8)


def codes(*dims: int) -> Any:
    return RNG.integers(0, 256, dims).astype(np.uint8)


# Instruction sets on which regions have been compared, class by class; on others a region is what
# the random problems of the first comparison happened to be (docs/reference/kernel_models.md).
WHOLE_REGIONS = {
    "SSE41",
    "AVX2",
    "AVX2_VNNI",
    "AVX512_CORE",
    "AVX512_CORE_VNNI",
    "AVX512_CORE_BF16",
    "AVX512_CORE_BF16+AVX_VNNI",
}


def modelled(operator: Any, dims: tuple[int, ...]) -> Any:
    """Return the model; skip on instruction sets and versions of which too little is proven."""
    minor, isa = ".".join(map(str, runtime.version()[:2])), runtime.isa().text()
    if not any(key[3:] == (isa, minor) for key in proofs()):
        pytest.skip(f"nothing is proven for {isa} of oneDNN {minor}")
    try:
        return pq.model_of(operator, dims)
    except NoModelError as error:
        if isa in WHOLE_REGIONS:
            raise
        pytest.skip(str(error))


def bias(channels: int) -> Any:
    return RNG.uniform(-30, 30, channels).astype(np.float32)


def conv(**more: Any) -> pq.Conv:
    return pq.Conv(
        wei(64, 32, 3, 3), bias(64), src_q=SRC_Q, wei_q=WEI_Q, dst_q=DST_Q, padding=1, **more
    )


def test_a_convolution_in_one_line() -> None:
    operator, src = conv(post=RELU), codes(1, 32, 9, 9)
    got = modelled(operator, src.shape).run(src)
    assert got.dtype == np.uint8
    assert got.max() > got.min()
    assert np.array_equal(got, operator(src))


def test_real_values_become_codes_as_in_the_call() -> None:
    operator = conv(post=RELU)
    src = RNG.uniform(0, 5, (1, 32, 7, 7)).astype(np.float32)
    assert np.array_equal(modelled(operator, src.shape).run(src), operator(src))


def test_a_residual_and_a_leaf() -> None:
    chain = pq.Chain(pq.Sum(0.5, 3), pq.Binary("mul", pq.Leaf("gain", "f32", "per_channel")))
    operator, src = conv(post=chain), codes(1, 32, 8, 8)
    gain = RNG.uniform(0.5, 2, 64).astype(np.float32)
    residual = codes(1, 64, 8, 8)
    got = modelled(operator, src.shape).run(src, residual=residual, gain=gain)
    assert np.array_equal(got, operator(src, residual=residual, gain=gain))


def test_a_signed_source_and_another_than_the_model_is_for() -> None:
    operator = pq.Conv(
        wei(64, 32, 3, 3), src_q=pq.QParams(0.02, -3, "s8"), wei_q=WEI_Q, dst_q=DST_Q, post=RELU
    )
    src = codes(1, 32, 6, 6).view(np.int8)
    model = modelled(operator, src.shape)
    assert np.array_equal(model.run(src), operator(src))
    with pytest.raises(pq.ArgumentError, match=r"^src: got int8 \(1, 32, 7, 7\)"):
        model.run(codes(1, 32, 7, 7).view(np.int8))


def test_odd_weights_of_a_signed_source() -> None:
    """Without VNNI these run as u8, 128 more."""
    operator = pq.Conv(
        wei(64, 32, 3, 3) // 2, src_q=pq.QParams(0.02, -3, "s8"), wei_q=WEI_Q, dst_q=DST_Q
    )
    src = codes(1, 32, 6, 6).view(np.int8)
    assert np.array_equal(modelled(operator, src.shape).run(src), operator(src))


def test_every_kind() -> None:
    for operator, dims in (
        (pq.Deconv(wei(32, 16, 3, 3), src_q=SRC_Q, wei_q=WEI_Q, dst_q=DST_Q), (2, 16, 5, 5)),
        (pq.InnerProduct(wei(48, 64), bias(48), src_q=SRC_Q, wei_q=WEI_Q), (6, 64)),
        (pq.MatMul(wei(64, 48), src_q=SRC_Q, wei_q=WEI_Q, dst_q=DST_Q), (2, 3, 64)),
    ):
        src = codes(*dims)
        got = modelled(operator, dims).run(src)
        assert got.shape == operator(src).shape
        assert np.array_equal(got, operator(src)), operator


def test_a_function_has_ends() -> None:
    operator = pq.MatMul(
        wei(64, 48),
        src_q=SRC_Q,
        wei_q=WEI_Q,
        dst_q=pq.QParams(0.1, 3, "u8"),
        post=pq.Chain(pq.Eltwise("gelu_erf")),
    )
    src = codes(40, 64)
    model = modelled(operator, src.shape)
    lo, hi = model.bounds(src)
    got = operator(src)
    assert ((lo <= got) & (got <= hi)).all()
    assert np.mean(lo != hi) < 0.01
    with pytest.raises(NoModelError, match="use `bounds`"):
        model.run(src)


def test_a_plan_and_an_implementation() -> None:
    operator, src = conv(post=RELU), codes(1, 32, 6, 6)
    planned = modelled(operator, src.shape).planned
    problem: Any = planned.primitive.problem
    model = plan_model(
        planned.plan, problem, planned.primitive.impl, runtime.isa(), runtime.version()
    )
    assert np.array_equal(model.run(src, operator.weights.values), operator(src))


@pytest.mark.parametrize("src_dtype", ["u8", "s8"])
def test_a_source_with_the_range_of_each_call(src_dtype: str) -> None:
    """Padding makes a map of the zero point, or it is carried by the attribute."""
    src = RNG.normal(0.3, 1, (2, 32, 7, 7)).astype(np.float32)
    q: dict[str, Any] = {"src_q": pq.Dynamic(src_dtype), "wei_q": WEI_Q}
    operator = pq.Conv(wei(64, 32, 3, 3), bias(64), dst_q=DST_Q, post=RELU, padding=1, **q)
    model = modelled(operator, src.shape)
    for factor in (1.0, 3.7):
        assert np.array_equal(model.run(factor * src), operator(factor * src))
    matmul = pq.MatMul(wei(64, 48), bias(48), **q)
    rows = RNG.normal(0.3, 1, (5, 64)).astype(np.float32)
    assert np.array_equal(modelled(matmul, rows.shape).run(rows), matmul(rows))


def test_weights_in_parts() -> None:
    """Zero points of 128 on u8 codes, which go beyond s8."""
    operator = pq.Conv(
        RNG.integers(0, 256, (16, 8, 3, 3)).astype(np.uint8),
        src_q=SRC_Q,
        wei_q=pq.QParams(RNG.uniform(0.01, 0.02, 16), RNG.integers(0, 256, 16), "u8", axis=0),
        dst_q=DST_Q,
        padding=1,
        saturation="allow",
    )
    assert operator.weights.parts is not None
    src = codes(1, 8, 6, 6)
    assert np.array_equal(modelled(operator, src.shape).run(src), operator(src))


@pytest.mark.parametrize("name", ["tflite_2step", "onnxruntime", "caffe2", "onednn", "tpu_mlir"])
def test_the_arithmetic_of_another_runtime(name: str) -> None:
    src_q = pq.QParams(0.02, 7, "u8")
    q: dict[str, Any] = {"src_q": src_q, "wei_q": WEI_Q, "dst_q": DST_Q, "requantize": name}
    more = RNG.integers(-900, 900, 64).astype(np.int32)
    for operator, dims in (
        (pq.Conv(wei(64, 32, 3, 3), more, padding=1, **q), (2, 32, 7, 7)),
        (pq.Deconv(wei(64, 32, 3, 3), more, **q), (1, 32, 5, 5)),
        (pq.InnerProduct(wei(64, 48), more, **q), (6, 48)),
        (pq.MatMul(wei(48, 64), more, **q), (2, 3, 48)),
    ):
        src = codes(*dims)
        model = modelled(operator, dims)
        got = operator(src)
        assert got.max() > got.min()
        assert np.array_equal(model.run(src), got)
    real = (RNG.uniform(0, 5, dims)).astype(np.float32)
    assert np.array_equal(model.run(real), operator(real))
    with pytest.raises(pq.errors.ShapeError, match=r"^src: "):
        model.run(codes(2, 3, 49))


FORMS = {
    "matmul": (pq.Conv(wei(64, 32, 1, 1), src_q=SRC_Q, wei_q=WEI_Q, dst_q=DST_Q, post=RELU),
               (2, 32, 5, 5)),
    "inner product": (pq.MatMul(wei(32, 64), src_q=SRC_Q, wei_q=WEI_Q, dst_q=DST_Q), (2, 5, 32)),
    "binary add": (pq.Conv(wei(64, 32, 3, 3), src_q=SRC_Q, wei_q=WEI_Q, dst_q=DST_Q,
                           post=pq.Chain(pq.Sum(), pq.Eltwise("relu"))), (2, 32, 6, 6)),
    "matmul with binary add": (pq.Conv(wei(64, 32, 1, 1), src_q=SRC_Q, wei_q=WEI_Q, dst_q=DST_Q,
                                       post=pq.Chain(pq.Sum())), (2, 32, 6, 6)),
    "16 input channels": (pq.Conv(wei(32, 3, 3, 3), src_q=SRC_Q, wei_q=WEI_Q, dst_q=DST_Q),
                          (1, 3, 9, 9)),
    "any layout": (pq.Conv(wei(64, 32, 3, 3), src_q=SRC_Q, wei_q=WEI_Q, dst_q=DST_Q),
                   (1, 32, 9, 9)),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_what_was_tuned_into_another_form(name: str) -> None:
    operator, dims = FORMS[name]
    layer = operator._asking(dims, "u8")
    form = next(one for one in forms(layer.problem, layer.settings.post) if one.name == name)
    operator._ready.add((dims, "u8"), in_form(layer, form, None), 0)
    src = codes(*dims)
    more = {"residual": codes(*form.asked.dst.dims)} if "add" in name else {}
    assert np.array_equal(modelled(operator, dims).run(src, **more), operator(src, **more))


def test_a_source_with_rows_of_their_own() -> None:
    rows = RNG.normal(0.3, 1, (5, 64)).astype(np.float32)
    for src_dtype in ("u8", "s8"):
        src_q = pq.Dynamic(src_dtype, "per_row")
        operator = pq.MatMul(wei(64, 48), bias(48), src_q=src_q, wei_q=WEI_Q)
        assert np.array_equal(modelled(operator, rows.shape).run(rows), operator(rows))


@pytest.mark.parametrize("dst", ["bf16", "f16"])
def test_a_result_of_16_bits(dst: str) -> None:
    """Where no kernel stores it, a cast does."""
    operator = pq.Conv(wei(64, 32, 3, 3), bias(64), src_q=SRC_Q, wei_q=WEI_Q, dst=dst, post=RELU)
    src = codes(1, 32, 6, 6)
    assert modelled(operator, src.shape).run(src).tobytes() == operator(src).tobytes()


def test_what_has_no_model_says_why() -> None:
    chain = pq.Chain(pq.Sum(0.5, 3), pq.Eltwise("relu"))
    operator = pq.MatMul(wei(64, 48), src_q=SRC_Q, wei_q=WEI_Q, post=chain)
    with pytest.raises(NoModelError, match="the plan leaves steps over: float_sum_with_zero_point"):
        pq.model_of(operator, (3, 64))
    floating = pq.MatMul(RNG.normal(0, 1, (64, 48)).astype(np.float32))
    with pytest.raises(pq.ArgumentError, match=r"^operator: got one on f32 values"):
        pq.model_of(floating, (3, 64))
