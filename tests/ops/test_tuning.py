"""tune: every way computes the same, the usual one stays unless another is surely faster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q import dtypes
from pyonednn_q.errors import AliasError, DTypeError, LayoutError, ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import Timed
from pyonednn_q.ops import tuning
from pyonednn_q.ops.form import AS_ASKED, Form, forms
from pyonednn_q.ops.ready import Layer
from pyonednn_q.ops.tuning import ratios_of, sure_gain, way
from pyonednn_q.ops.verification import verify

RNG = np.random.default_rng(4)
Q: dict[str, Any] = {
    "src_q": pq.QParams(0.5, 0, "u8"),
    "wei_q": pq.QParams(0.25, 0, "s8"),
    "dst_q": pq.QParams(2.0, 0, "u8"),
}
SUM = pq.Chain(pq.Sum(1.0), pq.Eltwise("relu"))
LEAF = pq.Chain(pq.Binary("mul", pq.Leaf("r", "f32")), pq.Sum(1.0))


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    pq.clear_tuning()
    yield
    pq.clear_tuning()


def codes(*dims: int) -> Any:
    return RNG.integers(-4, 5, dims).astype(np.int8)


CASES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "3x3": (pq.Conv(codes(16, 8, 3, 3), **Q, padding=1, post=SUM), (2, 8, 6, 5)),
    "1x1": (pq.Conv(codes(16, 8, 1, 1), **Q, post=SUM), (2, 8, 6, 5)),
    "1x1 with a leaf": (pq.Conv(codes(16, 8, 1, 1), **Q, post=LEAF), (2, 8, 6, 5)),
    "1x1 over one dimension": (pq.Conv(codes(16, 8, 1), **Q), (2, 8, 6)),
    "of an RGB image": (pq.Conv(codes(16, 3, 3, 3), **Q, stride=2, padding=1), (2, 3, 9, 7)),
    "floats": (pq.Conv(codes(16, 8, 3, 3).astype(np.float32), padding=1), (2, 8, 6, 5)),
    "strided": (pq.Conv(codes(16, 8, 1, 1), **Q, stride=2), (2, 8, 6, 5)),
    "inner product": (pq.InnerProduct(codes(16, 8), **Q), (3, 8)),
    "of an image": (pq.InnerProduct(codes(16, 8, 3, 3), **Q, post=SUM), (2, 8, 3, 3)),
    "matmul": (pq.MatMul(codes(8, 16), **Q, post=SUM), (5, 8)),
    "batched matmul": (pq.MatMul(codes(8, 16), **Q, post=SUM), (3, 5, 8)),
    "matmul of many": (pq.MatMul(codes(3, 8, 16), **Q), (3, 5, 8)),
    "deconv": (pq.Deconv(codes(16, 8, 2, 2), **Q, stride=2), (1, 8, 5, 4)),
}
POINT = "1x1 convolution"
EXPECTED = {
    "3x3": {"binary add", "16 input channels"},
    "1x1": {"matmul", "binary add", "matmul with binary add", "16 input channels"},
    "of an RGB image": {f"{channels} input channels" for channels in (4, 8, 16)},
    "strided": {"16 input channels"},
    "inner product": {"matmul", POINT},
    "matmul": {"binary add", "inner product", POINT},
    "batched matmul": {"matmul", "binary add", "matmul with binary add", "inner product", POINT},
    "matmul of many": set(),
    "of an image": {"matmul", "binary add", "matmul with binary add", POINT},
}


def asked(name: str) -> Layer:
    """What an operator has to make ready for a case."""
    operator, dims = CASES[name]
    problem = operator._problem(dims, "u8" if operator.settings.is_int8 else "f32")
    wei = operator._wei_of(problem)
    return Layer(problem, wei, operator.weights, None, operator.settings, {}, ())


def made(name: str) -> Iterator[tuple[Form, Any]]:
    """Every form of a case, made ready."""
    layer = asked(name)
    for form in forms(layer.problem, layer.settings.post):
        try:
            yield form, layer._formed(form, None)
        except pq.UnsupportedError:
            continue


@pytest.mark.parametrize("name", EXPECTED)
def test_forms_that_mean_the_same_are_offered(name: str) -> None:
    layer = asked(name)
    assert {form.name for form in forms(layer.problem, layer.settings.post)} - {
        AS_ASKED,
        "row-major",
        "any layout",
    } == EXPECTED[name]


@pytest.mark.parametrize("chain", [pq.Chain(pq.Sum(0.5)), pq.Chain(pq.Sum(1.0, 3)), pq.Chain()])
def test_a_sum_with_a_scale_is_no_operand(chain: pq.Chain) -> None:
    problem = pq.MatMulProblem.of((4, 8), (8, 3))
    assert not any("add" in form.name for form in forms(problem, chain))


@pytest.mark.parametrize("name", CASES)
def test_every_form_computes_what_was_asked(name: str) -> None:
    layer = asked(name)
    for _, planned in made(name):
        verify(planned, layer._meaning(planned.plan), layer.problem, layer.wei)


@pytest.mark.parametrize("name", ["1x1", "1x1 with a leaf", "floats", "matmul"])
def test_copies_compute_what_was_asked(name: str) -> None:
    layer = asked(name)
    for _, planned in made(name):
        again = copy(planned)
        assert type(again) is type(planned)
        assert (again.hot is None) == (planned.hot is None)
        verify(again, layer._meaning(planned.plan), layer.problem, layer.wei)


@pytest.mark.parametrize("name", ["1x1", "inner product", "matmul", "batched matmul"])
def test_every_form_refuses_what_cannot_take_a_result(name: str) -> None:
    dims = CASES[name][1]
    for _, planned in made(name):
        src = np.zeros(dims, np.uint8)
        good = np.zeros(planned.dst.dims, dtypes.numpy_dtype(planned.dst.dtype))
        given = {} if name == "inner product" else {"residual": good}
        once = np.lib.stride_tricks.as_strided(good[:1], good.shape, (0,) * good.ndim)
        with pytest.raises(LayoutError, match="out"):
            planned(src, out=once, **given)
        with pytest.raises(DTypeError, match="out"):
            planned(src, out=good.astype(np.float16), **given)
        with pytest.raises(ShapeError, match="out"):
            planned(src, out=good[:1], **given)
        over = np.ndarray(good.shape, good.dtype, np.zeros(good.nbytes + src.nbytes, np.uint8))
        inside = np.ndarray(dims, np.uint8, over)
        with pytest.raises(AliasError, match="src"):
            planned(inside, out=over, **given)


def test_layouts_in_blocks_are_copied_into_and_out_of() -> None:
    """Floats have kernels over blocks of channels; sums of small integers are always exact."""
    dims = CASES["floats"][1]
    layer = asked("floats")
    usual = layer._usual().planned
    src = RNG.integers(-9, 10, dims).astype(np.float32)
    expected = usual(src)
    found = tuning._others(usual, layer._formed, layer.problem, pq.Chain(), "preserve")
    blocked = [planned for planned in found if "packed" in planned.primitive.copied.get("src", "")]
    assert blocked
    for planned in blocked:
        assert "any layout" in way(planned)
        assert (planned.src_dims, planned.dst.dims) == (dims, expected.shape)
        last = np.empty((2, 6, 5, 8), np.float32).transpose(0, 3, 1, 2)
        last[...] = src
        assert planned.hot is not None
        for got in (planned(src), planned(last), planned.hot(last, None)):
            np.testing.assert_array_equal(got, expected)
        out = planned.empty()
        assert planned(src, out=out) is out
        np.testing.assert_array_equal(out, expected)
        shown = pq.inspect(planned)
        copies = {copy.tensor: copy.us for copy in shown.reorders if copy.when == "each call"}
        assert set(copies) == {"src", "dst"}
        assert min(copies.values()) > 0
        assert "any" in shown.benchdnn
        with ThreadPoolExecutor(4) as pool:
            for got in pool.map(planned, [last] * 16):
                np.testing.assert_array_equal(got, expected)


def test_row_major_arrays_are_copied_by_the_library_in_the_usual_way_too() -> None:
    layer = pq.Conv(codes(16, 16, 3, 3), **Q, padding=1, layout="dense", tune=True)
    planned = layer.prepare((1, 16, 9, 8))
    assert planned.dst.strides == pq.TensorSpec.dense(planned.dst.dims, "u8").strides
    src = codes(1, 16, 9, 8).view(np.uint8)
    plain = pq.Conv(layer.weights.values, **Q, padding=1)
    np.testing.assert_array_equal(layer(src), plain(src))
    assert set(planned.primitive.copies.values()) == {0}


@pytest.mark.parametrize("name", ["1x1", "1x1 with a leaf", "3x3", "of an image", "matmul"])
def test_forms_take_arrays_of_any_layout_and_write_in_place(name: str) -> None:
    operator, dims = CASES[name]
    src = RNG.integers(0, 256, dims).astype(np.uint8)
    usual = operator.prepare(dims)
    before = RNG.integers(0, 30, usual.dst.dims).astype(np.uint8)
    leaf = {"r": RNG.integers(0, 3, usual.dst.dims).astype(np.float32)}
    leaves = {name: leaf[name] for name in usual.leaves}
    expected = usual(src, residual=before, **leaves)
    last = np.moveaxis(np.moveaxis(src, 1, -1).copy(), -1, 1)
    for form, planned in made(name):
        for array in (src, last):
            got = planned(array, residual=before, **leaves)
            np.testing.assert_array_equal(got, expected, err_msg=form.name)
            assert got.dtype == expected.dtype
        for out in (planned.empty(), np.empty(usual.dst.dims, np.uint8)):
            out[...] = before
            assert planned(src, out=out, **leaves) is out
            np.testing.assert_array_equal(out, expected, err_msg=form.name)


def test_forms_refuse_what_plans_refuse() -> None:
    for form, planned in made("1x1"):
        assert form.name in way(planned)
        src = np.zeros((2, 8, 6, 5), np.uint8)
        with pytest.raises(pq.ArgumentError):
            planned(src)  # what does the Sum read?
        with pytest.raises(pq.ArgumentError):
            planned(src, residual=np.zeros((2, 16, 6, 5), np.uint8), other=src)
        with pytest.raises(pq.ShapeError):
            planned(src[:, :, :2], residual=np.zeros((2, 16, 6, 5), np.uint8))
        with pytest.raises(pq.ShapeError):
            planned(src, residual=np.zeros((2, 16, 5, 6), np.uint8))
        with pytest.raises(pq.DTypeError):
            planned(src.astype(np.int8), residual=np.zeros((2, 16, 6, 5), np.uint8))


def clock(speeds: dict[str, float]) -> Callable[..., list[Timed]]:
    """Timings as if ways had these speeds, without noise."""

    def times(primitives: Any, budget: Any) -> list[Timed]:
        del budget
        return [Timed(1, (speeds.get(way(call.planned), 10.0),) * 40) for call in primitives]

    return times


class Call:
    """A way that says which it is."""

    def __init__(self, planned: Any, *args: Any) -> None:
        self.planned = planned
        self.place: int = args[3] if len(args) > 3 else 0

    def __call__(self, calls: int) -> float:
        return calls * 1e-5


@pytest.mark.parametrize(
    ("speed", "taken"), [(5.0, True), (9.6, True), (9.8, False), (10.0, False)]
)
def test_a_way_is_taken_only_if_it_is_surely_faster(
    monkeypatch: pytest.MonkeyPatch, speed: float, *, taken: bool
) -> None:
    operator, dims = CASES["3x3"]
    other = next(way(planned) for form, planned in made("3x3") if form.name == "binary add")
    monkeypatch.setattr(tuning, "calls_of", Call)
    monkeypatch.setattr(tuning, "interleaved", clock({other: speed}))
    tuned = pq.Conv(
        operator.weights.values, **Q, padding=1, post=SUM, tune=True, self_check=True
    ).prepare(dims)
    assert tuned.tuning is not None
    assert (way(tuned) == other) is taken
    assert tuned.tuning.way == way(tuned)
    assert tuned.tuning.gain == pytest.approx(10.0 / speed if taken else 1.0)
    assert other in {timing.way for timing in tuned.tuning.timings}


def test_noise_is_no_gain() -> None:
    """Samples that scatter by a fifth say nothing of two percent; a true half is seen."""
    rng = np.random.default_rng(0)

    def noisy(us: float) -> Timed:
        return Timed(1, tuple(us * rng.lognormal(0, 0.2, 41)))

    def is_kept(before: float, after: float) -> bool:
        return sure_gain(ratios_of(noisy(before), noisy(after)))[1] > tuning.LEAST_GAIN

    assert np.mean([is_kept(10.0, 10.0) for _ in range(300)]) < 0.05
    assert all(is_kept(10.0, 5.0) for _ in range(100))


def test_a_way_that_is_slower_anywhere_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as fast where arrays start on a cache line, slower behind one."""
    operator, dims = CASES["3x3"]
    other = next(way(planned) for form, planned in made("3x3") if form.name == "binary add")

    def times(calls: Any, budget: Any) -> list[Timed]:
        del budget
        slow = len(calls) == 2 and calls[0].place % 64
        return [
            Timed(1, ((11.0 if slow else 5.0) if way(call.planned) == other else 10.0,) * 9)
            for call in calls
        ]

    monkeypatch.setattr(tuning, "calls_of", Call)
    monkeypatch.setattr(tuning, "interleaved", times)
    wei = operator.weights.values
    tuned = pq.Conv(wei, **Q, padding=1, post=SUM, tune=True).prepare(dims)
    assert tuned.tuning is not None
    assert tuned.tuning.way == tuned.tuning.usual == way(tuned) != other


def test_ways_are_those_that_the_guards_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "calls_of", Call)
    monkeypatch.setattr(tuning, "interleaved", clock({}))
    for operator, dims in (CASES["1x1"], CASES["inner product"]):
        wei = operator.weights.values
        found = type(operator)(wei, **Q, post=operator.settings.post, tune=True).prepare(dims)
        assert found.tuning is not None
        names = [timing.way for timing in found.tuning.timings]
        assert 2 <= len(names) <= tuning.MOST_WAYS
        assert len(set(names)) == len(names)
        assert not any("ref:" in name or "ref_" in name for name in names)
        assert {name.partition(" on ")[0] for name in names} >= {AS_ASKED, "matmul"}


def test_a_choice_is_made_once_and_comes_back_from_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    operator, dims = CASES["3x3"]
    other = next(way(planned) for form, planned in made("3x3") if form.name == "binary add")
    monkeypatch.setattr(tuning, "calls_of", Call)
    monkeypatch.setattr(tuning, "interleaved", clock({other: 4.0}))

    def prepare() -> Any:
        wei = operator.weights.values
        return pq.Conv(wei, **Q, padding=1, post=SUM, tune=True).prepare(dims)

    first = prepare()
    path = tmp_path / "tuning.json"
    assert pq.save_tuning(path) == 1
    pq.clear_tuning()
    assert pq.load_tuning(path) == 1

    def never(*_: object) -> list[Timed]:
        pytest.fail("timed again")

    monkeypatch.setattr(tuning, "interleaved", never)
    again = prepare()
    assert way(again) == way(first) == other
    assert (again.tuning.gain, again.tuning.timings) == (first.tuning.gain, ())
    assert "loaded" in pq.inspect(again).tuning
    assert other in pq.inspect(again).tuning

    data = json.loads(path.read_text())
    key = data["tunings"][0]["key"]
    assert key["library"] == ".".join(map(str, runtime.version()))
    assert key["isa"] == runtime.isa()
    key["cpu"] = "another"
    path.write_text(json.dumps(data))
    pq.clear_tuning()
    assert pq.load_tuning(path) == 0


def test_a_choice_that_cannot_be_made_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tuning, "calls_of", Call)
    monkeypatch.setattr(tuning, "interleaved", clock({}))
    operator, dims = CASES["matmul"]
    layer = pq.MatMul(operator.weights.values, **Q, post=SUM, tune=True)
    usual = way(layer.prepare(dims))
    path = tmp_path / "tuning.json"
    pq.save_tuning(path)
    data = json.loads(path.read_text())
    for gone in ("matmul on another:kernel", "as asked on another:kernel"):
        data["tunings"][0]["tuning"]["way"] = gone
        path.write_text(json.dumps(data))
        pq.load_tuning(path)
        fresh = pq.MatMul(operator.weights.values, **Q, post=SUM, tune=True)
        assert way(fresh.prepare(dims)) == usual


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": 2}',
        '{"schema": 1, "tunings": [1]}',
        '{"schema": 1, "tunings": [{"key": 1, "tuning": {"way": "", "usual": "", "gain": 1}}]}',
        '{"schema": 1, "tunings": [{"key": {}, "tuning": {"way": 1, "usual": "", "gain": 1}}]}',
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "no tuning"
    path.write_text(text)
    with pytest.raises(pq.ArgumentError, match="path"):
        pq.load_tuning(path)


def test_it_is_really_timed() -> None:
    """No clock of ours: samples of real calls."""
    layer = pq.Conv(codes(32, 32, 1, 1), **Q, post=SUM, tune=True)
    found = layer.prepare((1, 32, 14, 14))
    assert found.tuning is not None
    assert all(timing.us > 0 for timing in found.tuning.timings)
    src = RNG.integers(0, 256, (1, 32, 14, 14)).astype(np.uint8)
    before = np.full((1, 32, 14, 14), 9, np.uint8)
    plain = pq.Conv(layer.weights.values, **Q, post=SUM)
    np.testing.assert_array_equal(layer(src, residual=before), plain(src, residual=before))


def test_an_implementation_can_be_asked_for_by_name() -> None:
    problem = pq.MatMulProblem.of((4, 16), (16, 8), dst="s32")
    wei = codes(16, 8)
    src = RNG.integers(0, 256, (4, 16)).astype(np.uint8)
    names = [o.impl for o in pq.native.implementations(problem) if o.kind != "reference"]
    expected = src.astype(int) @ wei.astype(int)
    for name in dict.fromkeys(names):
        ready = pq.prepare(problem, wei=wei, implementation=name, saturation="allow")
        assert ready.impl == name
        assert (ready(src) == expected).all()
    with pytest.raises(pq.ArgumentError, match="another:kernel"):
        pq.prepare(problem, wei=wei, implementation="another:kernel")
