"""tune: the usual way stays unless another is surely faster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import Timed
from pyonednn_q.ops import tuning
from pyonednn_q.ops.form import AS_ASKED
from pyonednn_q.ops.gain import ratios_of, sure_gain
from pyonednn_q.ops.tuning import way
from support.forms import CASES, RNG, SUM, Q, codes, made


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    pq.ops.clear_tuning()
    yield
    pq.ops.clear_tuning()


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
    other = next(way(planned) for form, planned in made("3x3") if form.name == "16 input channels")
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
    other = next(way(planned) for form, planned in made("3x3") if form.name == "16 input channels")

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
    other = next(way(planned) for form, planned in made("3x3") if form.name == "16 input channels")
    monkeypatch.setattr(tuning, "calls_of", Call)
    monkeypatch.setattr(tuning, "interleaved", clock({other: 4.0}))

    def prepare() -> Any:
        wei = operator.weights.values
        return pq.Conv(wei, **Q, padding=1, post=SUM, tune=True).prepare(dims)

    first = prepare()
    path = tmp_path / "tuning.json"
    assert pq.ops.save_tuning(path) == 1
    pq.ops.clear_tuning()
    assert pq.ops.load_tuning(path) == 1

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
    assert key["isa"] == runtime.isa().text()
    key["cpu"] = "another"
    path.write_text(json.dumps(data))
    pq.ops.clear_tuning()
    assert pq.ops.load_tuning(path) == 0


def test_a_choice_that_cannot_be_made_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tuning, "calls_of", Call)
    monkeypatch.setattr(tuning, "interleaved", clock({}))
    operator, dims = CASES["matmul"]
    layer = pq.MatMul(operator.weights.values, **Q, post=SUM, tune=True)
    usual = way(layer.prepare(dims))
    path = tmp_path / "tuning.json"
    pq.ops.save_tuning(path)
    data = json.loads(path.read_text())
    for gone in ("matmul on another:kernel", "as asked on another:kernel"):
        data["tunings"][0]["tuning"]["way"] = gone
        path.write_text(json.dumps(data))
        pq.ops.load_tuning(path)
        fresh = pq.MatMul(operator.weights.values, **Q, post=SUM, tune=True)
        assert way(fresh.prepare(dims)) == usual


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": 1}',
        '{"schema": 2, "tunings": [1]}',
        '{"schema": 2, "tunings": [{"key": 1, "tuning": {"way": "", "usual": "", "gain": 1}}]}',
        '{"schema": 2, "tunings": [{"key": {}, "tuning": {"way": 1, "usual": "", "gain": 1}}]}',
        "[" * 100_000,
        '{"schema": 2, "tunings": ' + "[" * 900 + "]" * 900 + "}",
        '{"schema": ' + "9" * 5000 + "}",
    ],
    ids=range(10),
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "no tuning"
    path.write_text(text)
    with pytest.raises(pq.ArgumentError, match="path"):
        pq.ops.load_tuning(path)
    path.write_bytes(text.encode("utf-16"))
    with pytest.raises(pq.ArgumentError, match="path"):
        pq.ops.load_tuning(path)


@pytest.mark.parametrize("path", ["a\0b", "\ud800", 3, None, b"\xff", object()])
def test_what_no_file_is_called_is_refused(path: Any) -> None:
    for function in (pq.ops.load_tuning, pq.ops.save_tuning):
        with pytest.raises(pq.ArgumentError, match=r"path: got .* wanted the name of a file"):
            function(path)


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
    problem = pq.primitive.MatMulProblem.of((4, 16), (16, 8), dst="s32")
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


@pytest.mark.parametrize("extent", ["per_tensor", "per_channel", "full"])
def test_operands_of_every_extent_are_tuned(extent: Any) -> None:
    chain = pq.Chain(pq.Binary("mul", pq.Leaf("g", "f32", extent)))
    src_q, wei_q = pq.QParams(1.0, 0, "u8"), pq.QParams(1.0, 0, "s8")
    wei = np.ones((8, 4), np.int8)
    operator = pq.MatMul(wei, src_q=src_q, wei_q=wei_q, post=chain, tune=True)
    dims = {"per_tensor": (1,), "per_channel": (4,), "full": (2, 4)}[extent]
    dst = operator(np.ones((2, 8), np.uint8), g=np.full(dims, 3, np.float32))
    np.testing.assert_array_equal(dst, 24.0)
