"""Layers with weights in groups: equal, bit for bit, to what they mean, whoever computes it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import AliasError, ArgumentError, DTypeError, ShapeError
from pyonednn_q.ops.predicted import model_of
from support.children import run_child
from support.group_cases import DTYPES, SOURCES, GroupCase, codes_of, drawn, meaning, on_a_level
from support.threads import run_together

pytestmark = pytest.mark.executed

F = np.float32
ROWS = (1, 2, 3, 4, 5, 8, 33)
ROW = pq.Dynamic("s8", "per_row")


@pytest.mark.parametrize("src_q", SOURCES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_bit_is_what_it_means(dtype: str, src_q: Any, pytestconfig: pytest.Config) -> None:
    rng = np.random.default_rng((*DTYPES,).index(dtype) * len(SOURCES) + SOURCES.index(src_q))
    compared, wanted = 0, pytestconfig.getoption("--compared-outputs")
    while compared < wanted:
        case = drawn(rng, dtype, src_q)
        x = case.source(rng, int(rng.choice(ROWS)))
        want = meaning(case, x)
        layer = case.layer
        np.testing.assert_array_equal(layer(x), want)
        np.testing.assert_array_equal(layer(x), want)  # without a frame of Python
        np.testing.assert_array_equal(case.turned(x), want)
        np.testing.assert_array_equal(model_of(layer, x.shape).run(x), want)
        compared += want.size
    print(f"{dtype}, {src_q}: {compared:,} outputs")  # noqa: T201


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_rows_gives_the_bits_of_the_model(dtype: str) -> None:
    rng = np.random.default_rng(3)
    for src_q in SOURCES:
        for _ in range(3):
            case = drawn(rng, dtype, src_q)
            model = model_of(case.layer, (1, len(case.wei)))
            for rows in (*ROWS, 64, 70):
                x = case.source(rng, rows)
                np.testing.assert_array_equal(case.layer(x), model.run(x))


@pytest.mark.parametrize("level", ["SSE41", "AVX2", "AVX2_VNNI", "AVX512_CORE"])
@pytest.mark.parametrize("dtype", ["s4", "u8"])
def test_every_instruction_set_gives_the_same_bits(dtype: str, level: str) -> None:
    outcome = run_child(on_a_level, dtype, environment={"ONEDNN_MAX_CPU_ISA": level})
    assert outcome.value is True


def test_long_groups_of_the_largest_codes_stay_exact() -> None:
    size = 33_000
    for dtype, code, point in (("u8", 255, 0), ("u8", 0, 255), ("s8", -128, 127)):
        holder = np.uint8 if dtype == "u8" else np.int8
        wei_q = pq.QParams(np.ones((1, 3)), point, dtype, axis=0, block=(size,))
        wei = np.full((size, 3), code, holder)
        for src, src_point in ((255, 0), (0, 255)):
            layer = pq.MatMul(wei, src_q=pq.QParams(1.0, src_point, "u8"), wei_q=wei_q)
            acc = size * (src - src_point) * (code - point)
            got = layer(np.full((2, size), src, np.uint8))
            np.testing.assert_array_equal(got, np.full((2, 3), F(acc)))


def layer_of(src_q: object = SOURCES[0]) -> tuple[GroupCase, Any]:
    rng = np.random.default_rng(11)
    wei_q = pq.QParams(rng.uniform(0.1, 0.2, (4, 96)), 0, "s4", axis=0, block=(32,))
    wei = rng.integers(-8, 8, (128, 96)).astype(np.int8)
    case = GroupCase(wei, wei_q, rng.standard_normal(96).astype(F), src_q)
    return case, case.source(rng, 6)


def test_sources_lie_and_results_go_where_callers_want() -> None:
    case, x = layer_of()
    layer, want = case.layer, meaning(case, x)
    np.testing.assert_array_equal(layer(np.asfortranarray(x)), want)
    np.testing.assert_array_equal(layer(x[::-1])[::-1], want)
    np.testing.assert_array_equal(layer(x.reshape(2, 3, -1)), want.reshape(2, 3, -1))
    out = np.empty((6, 96), F)
    assert layer(x, out=out) is out
    np.testing.assert_array_equal(out, want)
    gaps = np.zeros((6, 192), F)[:, ::2]
    assert layer(x, out=gaps) is gaps
    np.testing.assert_array_equal(gaps, want)
    assert layer(x[:0]).shape == (0, 96)
    dst = layer(x)
    assert (dst.dtype, dst.flags.c_contiguous, dst.flags.writeable) == (F, True, True)


def test_codes_of_a_known_scale_are_taken_as_they_are() -> None:
    for src_q in SOURCES[-2:]:
        case, x = layer_of(src_q)
        codes = codes_of(case, x)[0].astype(np.int8 if case.src_q.dtype == "s8" else np.uint8)
        np.testing.assert_array_equal(case.layer(codes), meaning(case, x))
    with pytest.raises(DTypeError, match=r"^src: got s8"):
        case.layer(x.astype(np.int8))


def test_copies_and_pickles_are_the_same_layer() -> None:
    case, x = layer_of()
    layer, want = case.layer, meaning(case, x)
    assert layer.wei_bytes == 0
    layer(x)
    # Nibbles, scales and a bias; columns in tiles of 64.
    assert layer.wei_bytes == 128 * 128 // 2 + 128 * 4 * 4 + 96 * 4
    for other in (copy.copy(layer), pickle.loads(pickle.dumps(layer))):
        np.testing.assert_array_equal(other(x), want)
    layer.clear()  # packed, they are the only copy
    np.testing.assert_array_equal(layer(x), want)
    for each in (layer, case.turned):
        each(x)
        codes = case.wei if each is layer else case.wei.T
        assert np.array_equal(each.weights.values, codes)
        assert (each.weights.values.dtype, each.weights.dims) == (codes.dtype, codes.shape)
        assert repr(each).startswith(
            f"<{type(each).__name__} {codes.shape[0]} x {codes.shape[1]} of s4"
        )
    assert "s4 in groups of 32" in layer.notes[0]


def test_threads_share_a_layer_and_each_other() -> None:
    rng = np.random.default_rng(5)
    case, _ = layer_of()
    layer = case.layer
    sources = [case.source(rng, 1 + 9 * at) for at in range(6)]
    wants = [model_of(layer, x.shape).run(x) for x in sources]
    results = run_together(6, lambda at: np.array_equal(layer(sources[at]), wants[at]), rounds=20)
    assert all(all(each) for each in results)
    for count in (1, 2, 3):
        with pq.threads(count):
            assert np.array_equal(layer(sources[5]), wants[5])


def test_a_check_of_all_bits_passes() -> None:
    case, x = layer_of()
    layer = pq.MatMul(case.wei, case.bias, src_q=case.src_q, wei_q=case.wei_q, self_check=True)
    np.testing.assert_array_equal(layer(x), meaning(case, x))


def test_real_weights_come_close_to_what_they_were() -> None:
    rng = np.random.default_rng(1)
    wei, x = rng.standard_normal((256, 64)).astype(F), rng.standard_normal((9, 256)).astype(F)
    right = x.astype(np.float64) @ wei
    for bits, most in ((4, 0.25), (8, 0.02)):
        for symmetric in (True, False):
            layer = pq.MatMul.from_float(
                wei, src_q=pq.Dynamic("s8", "per_row"), groups=32, bits=bits, symmetric=symmetric
            )
            # Steps of half a scale each, of random signs: a fraction of the products' own spread.
            assert np.abs(layer(x) - right).std() < most * right.std()
            twin = pq.InnerProduct.from_float(
                np.ascontiguousarray(wei.T),
                src_q=pq.Dynamic("s8", "per_row"),
                groups=32,
                bits=bits,
                symmetric=symmetric,
            )
            np.testing.assert_array_equal(twin(x), layer(x))


def test_a_layer_from_floats_has_the_codes_of_its_method() -> None:
    rng = np.random.default_rng(8)
    wei, src = rng.standard_normal((64, 24)), rng.standard_normal((99, 64)).astype(F)
    for method in ("search", "gptq"):
        layer = pq.MatMul.from_float(
            wei.astype(F), src_q=ROW, groups=16, bits=4, method=method, samples=src
        )
        codes, wei_q = pq.quantize.group_codes(
            wei.astype(F), 16, axis=-1, method=method, samples=src
        )
        same = pq.MatMul(codes, src_q=ROW, wei_q=wei_q)
        np.testing.assert_array_equal(layer(src), same(src))


WEI_Q = pq.QParams(np.full((4, 96), 0.5), 0, "s4", axis=0, block=(32,))
WEI = np.zeros((128, 96), np.int8)

REFUSED: list[tuple[Any, dict[str, Any], type, str]] = [
    (WEI[:100], {}, ShapeError, "^wei_q: got groups of 32; wanted a divisor of 100"),
    (WEI[:96], {}, ShapeError, "^wei_q: got scales of shape"),
    (WEI[None], {}, ShapeError, "^wei: got .*; wanted two dimensions"),
    (WEI + np.int8(8), {}, ArgumentError, "^wei: got 8; wanted codes from -8 to 7"),
    (WEI.astype(np.uint8), {}, DTypeError, "^wei: got uint8; wanted int8"),
    (WEI.astype(F), {}, DTypeError, "^wei: got float32; wanted int8"),
    (WEI, {"src_q": None}, ArgumentError, "^src_q: got None; wanted Dynamic"),
    (WEI, {"dst": "bf16"}, DTypeError, "^dst: got bf16; wanted f32"),
    (WEI, {"dst_q": pq.QParams(1.0, 0, "u8")}, DTypeError, "^dst: got u8; wanted f32"),
    (WEI, {"post": pq.Chain(pq.Eltwise("relu"))}, ArgumentError, "^post: got "),
    (WEI, {"bias": np.zeros(96, np.int32)}, DTypeError, "^bias: got s32; wanted f32"),
    (WEI, {"bias": np.zeros(95, F)}, ShapeError, "^bias: got "),
    (
        WEI,
        {"wei_q": pq.QParams(np.ones((128, 3)), 0, "s4", axis=1, block=(32,))},
        ArgumentError,
        "^wei_q: got groups along axis 1; wanted 0",
    ),
    (
        WEI,
        {"wei_q": pq.QParams(np.full((4, 96), 1e-40), 0, "s4", axis=0, block=(32,))},
        ArgumentError,
        "^wei_q: got a scale of 1e-40",
    ),
    (
        WEI.astype(np.int32),
        {"wei_q": pq.QParams(np.ones((4, 96)), 0, "s32", axis=0, block=(32,))},
        DTypeError,
        "^wei_q: got s32",
    ),
]


@pytest.mark.parametrize(("wei", "options", "error", "says"), REFUSED)
def test_what_the_kernel_does_not_do_is_refused(
    wei: Any, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    asked = {"src_q": ROW, "wei_q": WEI_Q, **options}
    with pytest.raises(error, match=says):
        pq.MatMul(wei, **asked)


def test_groups_too_long_for_32_bits_are_refused() -> None:
    size = 33_100
    wei_q = pq.QParams(np.ones((1, 1)), 0, "s8", axis=0, block=(size,))
    with pytest.raises(ShapeError, match="at most 33025"):
        pq.MatMul(np.zeros((size, 1), np.int8), src_q=ROW, wei_q=wei_q)


def test_calls_refuse_what_does_not_fit() -> None:
    case, x = layer_of()
    layer = case.layer
    for source in (x[:, 1:], x[0]):
        with pytest.raises(ShapeError, match=r"^src: got .* wanted .*128"):
            layer(source)
    with pytest.raises(ShapeError, match=r"^src: got"):
        case.turned(x.reshape(2, 3, -1))
    for _ in range(2):  # with Python, and without
        for value in (np.nan, np.inf):
            wrong = x.copy()
            wrong[3, 5] = value
            with pytest.raises(ArgumentError, match=r"^src: got values that are not finite"):
                layer(wrong)
        layer(x)
    with pytest.raises(DTypeError, match=r"^src: got"):
        layer(x.astype(np.int8))
    with pytest.raises(ArgumentError, match=r"^residual: got"):
        layer(x, residual=np.zeros((6, 96), F))
    with pytest.raises(ArgumentError, match=r"^operands: got"):
        layer(x, scale=x)
    with pytest.raises(DTypeError, match=r"^out: got float64"):
        layer(x, out=np.zeros((6, 96)))
    with pytest.raises(ShapeError, match=r"^out: got"):
        layer(x, out=np.zeros((6, 95), F))
    with pytest.raises(AliasError, match=r"^src: got"):
        layer(x, out=x.reshape(-1)[: 6 * 96].reshape(6, 96))
    with pytest.raises(ArgumentError, match="no plan"):
        layer.plan((1, 128))


def test_others_refuse_groups_by_name() -> None:
    with pytest.raises(ArgumentError, match=r"^src_q: got a range per group; wanted 'per_row'"):
        pq.MatMul.from_float(np.ones((4, 4), F), src_q=pq.Dynamic("s8", "per_group"))
    wei_q = pq.QParams(np.ones((8, 2, 3, 3)), 0, "s8", axis=1, block=(4,))
    with pytest.raises(ArgumentError, match=r"^wei_q: got groups of 4; wanted one scale"):
        pq.Conv(np.zeros((8, 8, 3, 3), np.int8), src_q=pq.QParams(1.0, 0, "u8"), wei_q=wei_q)
    for options, says in (
        ({"bits": 4}, "^groups: got None"),
        ({"symmetric": False}, "^groups: got None"),
        ({"method": "search"}, "^groups: got None"),
        ({"samples": np.ones((2, 4), F)}, "^groups: got None"),
        ({"groups": 2, "method": "gptq"}, "^samples: got None"),
        ({"groups": 2, "method": "awq"}, "^method: got 'awq'"),
        ({"groups": 3}, "^groups: got 3; wanted a divisor of 4"),
        ({"groups": 2, "bits": 5}, "^bits: got 5"),
        ({"groups": 2, "wei_levels": 15}, "^wei_levels: got 15"),
        ({"groups": 2, "wei_fq": pq.FakeQuantize(-1, 1, -1, 1)}, "^wei_fq: got"),
    ):
        with pytest.raises(ArgumentError, match=says):
            pq.MatMul.from_float(np.ones((4, 4), F), src_q=ROW, **options)
