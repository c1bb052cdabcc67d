"""self_check="auto": a sample of each new primitive's result is looked at, once, before its use."""

from __future__ import annotations

import ctypes
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.faults import hunted
from pyonednn_q.native import child, drawn, first_run
from pyonednn_q.primitive import (
    Attr,
    BinaryProblem,
    ConvProblem,
    DeconvProblem,
    EltwisePostOp,
    EltwiseProblem,
    InnerProductProblem,
    MatMulProblem,
    PoolingProblem,
    ReorderProblem,
    Scale,
    SoftmaxProblem,
    TensorSpec,
    ZeroPoint,
)
from support import unguarded
from support.calls.draw import random_call
from support.children import TWO_THREADS
from support.children import child as process
from support.fault import filled
from support.faults import FAULTS
from support.isa import LIMIT_VARIABLE
from support.planted import KINDS, Faulty, Grid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Rng = np.random.Generator
CHANNELS = (3, 8, 16, 17, 24, 32, 40, 48, 64, 96, 100, 128, 160)
LEAST = 0.95  # of planted faults


@pytest.fixture(autouse=True)
def _nothing_is_known() -> Iterator[None]:
    first_run.forget()
    yield
    first_run.forget()


def one(rng: Rng, values: Any) -> Any:
    """Give one of several."""
    return values[int(rng.integers(len(values)))]


def layer(rng: Rng) -> Any:
    """Draw a layer, some of whose channels and columns are in no whole block."""
    types: dict[str, Any] = {
        "src": one(rng, ("u8", "s8")),
        "dst": one(rng, ("u8", "s8", "f32", "s32")),
    }
    images, oc = int(one(rng, (1, 1, 2, 3))), int(one(rng, CHANNELS))
    of = rng.random()
    if of < 0.2:
        batch = one(rng, ((), (), (3,)))
        m, k = int(one(rng, (2, 5, 64))), int(one(rng, (16, 33, 128, 300)))
        return MatMulProblem.of((*batch, m, k), (*batch, k, oc), **types)
    if of < 0.3:
        return InnerProductProblem.of((images, int(one(rng, (16, 33, 128)))), oc, **types)
    ic, kernel = int(one(rng, (1, 3, 8, 16, 17, 32))), int(one(rng, (1, 3, 3, 5)))
    length = int(one(rng, (5, 7, 9, 14, 28)))
    dims = (length, length + int(rng.integers(3)))
    if of < 0.4:
        return DeconvProblem.of((images, ic, *dims), (oc, ic, 3, 3), stride=2, **types)
    groups = int(one(rng, (1, 1, 2, 4)))
    wei = (
        (oc, ic, kernel, kernel) if groups == 1 else (groups, oc // groups + 1, ic, kernel, kernel)
    )
    window: dict[str, Any] = {"padding": kernel // 2, "stride": int(one(rng, (1, 1, 2)))}
    return ConvProblem.of((images, ic * groups, *dims), wei, **window, **types)


def made_ready(rng: Rng, problem: Any) -> tuple[Any, Any, dict[str, Any]] | None:
    """Give a primitive, its weights and values; None where nothing takes it."""
    factors: dict[str, Any] = {}
    values: dict[str, Any] = {}
    if problem.dst.dtype in ("u8", "s8"):
        factors["dst_scale"] = Scale()
        values["dst_scale"] = np.float32(60 * 9 * np.sqrt(problem.terms) / 40)
        if rng.random() < 0.5:
            factors["dst_zero_point"] = ZeroPoint()
            values["dst_zero_point"] = np.int32(100 if problem.dst.dtype == "u8" else 3)
    if problem.dst.dtype != "s32" and rng.random() < 0.4:
        factors["post_ops"] = (EltwisePostOp("relu"),)
    wei = 2 * rng.integers(-15, 16, problem.wei.dims).astype(np.int8)
    try:
        ready = pq.prepare(problem, Attr(**factors), wei=wei, values=values, self_check=False)
    except pq.UnsupportedError:
        return None
    return ready, wei, values


def test_planted_faults_are_noticed() -> None:
    rng = np.random.default_rng(20261127)
    planted: Counter[str] = Counter()
    noticed: Counter[str] = Counter()
    while planted.total() < 900:
        problem = layer(rng)
        ready = made_ready(rng, problem)
        if ready is None:
            continue
        prepared, wei, values = ready
        for kind in KINDS:
            faulty: Any = Faulty(prepared, kind(Grid(problem.dst.dims, problem.channel_axis), rng))
            what = first_run.looked_at(faulty, wei, None, values)
            if faulty.changed:
                planted[kind.__name__] += 1
                noticed[kind.__name__] += bool(what)
            else:
                assert not what
    assert min(planted.values()) > 20
    shares = {kind: noticed[kind] / count for kind, count in planted.items()}
    assert noticed.total() >= LEAST * planted.total(), shares
    assert min(shares.values()) >= LEAST - 0.1, shares


def plain_problems() -> Iterator[tuple[str, Any]]:
    """Give a problem of each kind without weights, of codes where there are kernels for them."""
    last, small = TensorSpec.channels_last, (2, 40, 9, 11)
    codes, floats = last(small, "u8"), last(small, "f32")
    pooled = last((2, 40, 5, 6), "u8")
    window = ((3, 3), (2, 2), (1, 1), (1, 1), (1, 1))
    yield "pooling", PoolingProblem(codes, pooled, "max", *window)
    mean = (floats, last((2, 40, 5, 6), "f32"), "avg_exclude_padding")
    yield "mean", PoolingProblem(*mean, *window)
    yield "reorder", ReorderProblem(TensorSpec.dense(small, "f32"), codes)
    yield "eltwise", EltwiseProblem(floats, floats, "tanh")
    yield "binary", BinaryProblem(floats, floats, floats, "add")
    rows = TensorSpec.dense((6, 5, 40), "f32")
    yield "softmax", SoftmaxProblem(rows, rows, 2)


@pytest.mark.parametrize(("kind", "problem"), [*plain_problems()])
def test_faults_beside_layers_are_noticed(kind: str, problem: Any) -> None:
    """Softmax has no channels: its rows are what is blocked."""
    rng = np.random.default_rng(3)
    try:
        prepared = pq.prepare(problem, self_check=False)
    except pq.UnsupportedError as error:
        pytest.skip(str(error))
    assert not first_run.looked_at(prepared, None, None, {})
    planted = noticed = 0
    for _ in range(3):
        for where in KINDS:
            faulty: Any = Faulty(prepared, where(Grid(problem.dst.dims, 1), rng))
            what = first_run.looked_at(faulty, None, None, {})
            planted += faulty.changed > 0
            noticed += bool(what)
            assert faulty.changed or not what
    assert noticed >= LEAST * planted, (kind, noticed, planted)


class Overflowing(Faulty):
    """A primitive that is right, and writes a byte so many behind its result."""

    def __init__(self, prepared: Any, behind: int) -> None:
        super().__init__(prepared, np.zeros(1, bool))
        self.behind = behind

    def __call__(self, *inputs: Any, out: Any) -> Any:
        """Run it, and change what is another's."""
        dst = self.prepared(*inputs, out=out)
        assert out.flags.forc, "no gaps: it ends where it is as long as it is"
        address = out.ctypes.data + out.nbytes + self.behind
        ctypes.memset(address, ctypes.string_at(address, 1)[0] ^ 1, 1)
        return dst


@pytest.mark.parametrize("behind", [0, 1, 700])
def test_bytes_behind_a_result_are_watched(behind: int) -> None:
    rows, image = TensorSpec.dense((6, 5, 40), "f32"), (2, 16, 5, 4)
    problem = MatMulProblem.of((6, 24), (24, 40), dst="u8")
    wei = np.ones((24, 40), np.int8)
    plain: list[Any] = [
        EltwiseProblem(rows, rows, "tanh"),
        ReorderProblem(TensorSpec.dense(image, "f32"), TensorSpec.dense(image, "s32")),
    ]
    for prepared, codes in (
        (pq.prepare(problem, wei=wei, self_check=False), wei),
        *((pq.prepare(each, self_check=False), None) for each in plain),
    ):
        if behind < prepared.layout("dst").nbytes:
            faulty: Any = Overflowing(prepared, behind)
            assert first_run.looked_at(faulty, codes, None, {}) == "bytes behind dst are written"


@pytest.mark.parametrize("rows", [1, 40, 1000])
def test_values_lie_behind_a_source_too(rows: int) -> None:
    """What a kernel reads there is noticed: it is not zero."""
    spec, values = TensorSpec.dense((rows, 33), "u8"), drawn.pool("u8", 1, 255)
    src = drawn.laid(spec, values)
    behind = ctypes.string_at(src.ctypes.data + src.nbytes, max(64, src.nbytes))
    at = src.nbytes % len(values)
    assert behind == (8 * values)[at : at + len(behind)]


def test_batches_that_land_elsewhere_are_noticed() -> None:
    """They are stored far behind dst: to notice it is to survive it."""
    fault = next(fault for fault in FAULTS if fault.row == "matmul-4d-broadcast-b")
    arrays, values = filled(fault)
    with process({LIMIT_VARIABLE: "AVX512_CORE"} | TWO_THREADS) as ask:
        if (found := ask(unguarded.struck, fault.row, fault.problem, fault.attr)) is None:
            pytest.skip(f"{fault.row}: not here")
        work = (found[0], fault.problem, fault.attr, arrays, values)
        for _ in range(3):
            assert "elements differ" in ask(unguarded.first_looked_at, *work)


@pytest.mark.parametrize("half", [2, 5, 20, 47, 90])
def test_a_source_of_one_value_is_not_nearly_nothing(half: int) -> None:
    """Whoever reads beyond it would not be noticed where it is beside the zero point."""
    for centre in range(100, 130):
        spec = TensorSpec.dense((1, 1, 1), "u8")
        src = drawn.laid(spec, drawn.pool("u8", centre - half, centre + half))
        assert abs(int(src[0, 0, 0]) - centre) == half


@pytest.mark.parametrize("seed", range(60))
def test_right_kernels_pass(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    call = random_call(np.random.default_rng([seed, 9]))
    try:
        call.run()
    except (pq.UnsupportedError, pq.ArgumentError) as error:
        pytest.skip(str(error))
    assert not caplog.records


def plant(monkeypatch: pytest.MonkeyPatch, is_wrong: Callable[[str], bool]) -> list[str]:
    """Make implementations wrong in one block of channels; return the names of those looked at."""
    looks: list[str] = []
    real = first_run.looked_at

    def look(prepared: Any, *arguments: Any) -> str:
        looks.append(prepared.impl)
        block = np.arange(prepared.problem.dst.dims[1])[:, np.newaxis, np.newaxis] // 16 == 1
        seen: Any = Faulty(prepared, block) if is_wrong(prepared.impl) else prepared
        return real(seen, *arguments)

    monkeypatch.setattr(first_run, "looked_at", look)
    return looks


CONV = ConvProblem.of((1, 16, 8, 8), (32, 16, 3, 3), padding=1, dst="f32")
Q: dict[str, Any] = {"src_q": pq.QParams(0.5, 0, "u8"), "wei_q": pq.QParams(0.25, 0, "s8")}
WEI = np.random.default_rng(1).integers(-9, 10, (32, 16, 3, 3)).astype(np.int8)


def test_a_wrong_implementation_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usual = pq.prepare(CONV, wei=WEI, self_check=False)
    plant(monkeypatch, lambda impl: impl == usual.impl)
    other = pq.prepare(CONV, wei=WEI)
    assert other.impl != usual.impl
    why = f"passed over {usual.impl}: wrong on seeded codes: "
    assert any(note.startswith(why) for note in other.notes)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("pyonednn_q", logging.WARNING)
    version = ".".join(map(str, pq.native.runtime.version()))
    line = record.getMessage()
    assert line.startswith(f"WRONG {version} ")
    assert f" on {usual.impl}: {CONV.text()}" in line
    src = np.random.default_rng(2).integers(0, 99, CONV.src.dims).astype(np.uint8)
    np.testing.assert_array_equal(other(src), usual(src))  # which was never wrong
    # It is known now: neither run nor told again.
    again = pq.prepare(CONV, wei=WEI)
    assert again.notes == other.notes
    assert len(caplog.records) == 1
    operator = pq.Conv(WEI, padding=1, src_q=pq.QParams(1, 0, "u8"), wei_q=pq.QParams(1, 0, "s8"))
    assert any("wrong on seeded codes" in note for note in operator.prepare((1, 16, 8, 8)).notes)


def test_where_all_are_wrong_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, lambda _: True)
    with pytest.raises(pq.errors.KnownWrongError, match="as self_check saw") as caught:
        pq.prepare(CONV, wei=WEI, allow_reference=True)
    assert "WRONG " in caught.value.detail
    assert CONV.text() in caught.value.problem
    assert caught.value.reasons


def test_a_primitive_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = plant(monkeypatch, lambda _: False)
    first = pq.prepare(CONV, wei=WEI)
    pq.prepare(CONV, wei=WEI)
    src = first.empty("src")
    src[...] = 1
    for _ in range(3):
        first(src)
    assert looks == [first.impl]
    pq.prepare(CONV, Attr(post_ops=(EltwisePostOp("relu"),)), wei=WEI)
    assert len(looks) == 2
    pq.prepare(CONV, Attr(post_ops=(EltwisePostOp("abs"),)), wei=WEI, self_check=False)
    pq.prepare(CONV, Attr(post_ops=(EltwisePostOp("abs"),)), wei=WEI, self_check=True)
    assert len(looks) == 2


def test_operators_look_unless_told_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = plant(monkeypatch, lambda _: False)
    pq.Conv(WEI, padding=1, self_check=False, **Q).prepare((1, 16, 8, 8))
    assert not looks
    pq.Conv(WEI, padding=1, **Q).prepare((1, 16, 8, 8))
    assert len(looks) == 1
    pq.conv(np.ones((1, 16, 8, 9), np.uint8), WEI, padding=1, **Q)
    assert len(looks) == 2


@pytest.mark.parametrize("value", [1, "all", None, "AUTO"])
def test_another_option_is_refused(value: Any) -> None:
    with pytest.raises(pq.ArgumentError, match="self_check"):
        pq.prepare(CONV, wei=WEI, self_check=value)
    with pytest.raises(pq.ArgumentError, match="self_check"):
        pq.Conv(WEI, self_check=value)


def test_what_crashes_is_passed_over_where_all_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that dies stands for a kernel that does: nothing here crashes when it is asked to."""
    usual = pq.prepare(CONV, wei=WEI, self_check=False)
    monkeypatch.setattr(hunted, "problems", lambda *_: 0)
    monkeypatch.setattr(
        first_run,
        "_ALONE",
        first_run._ALONE.replace(
            "prepare(**arguments)",
            f"import os\nif arguments['implementation'] == {usual.impl!r}: os.abort()\n"
            "prepare(**arguments)",
        ),
    )
    other = pq.prepare(CONV, wei=WEI, self_check=True)
    assert other.impl != usual.impl
    assert any("ended a process of its own by SIGABRT" in note for note in other.notes)
    assert pq.prepare(CONV, wei=WEI).impl == usual.impl
    operator = pq.Conv(WEI, padding=1, self_check=True, **Q)
    assert operator.prepare((1, 16, 8, 8)).primitive.impl != usual.impl


def test_a_kernel_that_was_hunted_runs_in_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "ending", lambda *_: pytest.fail("a child was started"))
    monkeypatch.setattr(hunted, "problems", lambda *_: 1)
    pq.prepare(CONV, wei=WEI, self_check=True)


def test_long_runs_of_hunted_kernels_are_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    impl = pq.prepare(CONV, wei=WEI, self_check=False).impl
    large = ConvProblem.of((1, 256, 60, 60), (256, 256, 3, 3), dst="f32")
    counts = {hunted.ENOUGH: True, hunted.ENOUGH - 1: False, 0: False}
    for count, spared in counts.items():
        monkeypatch.setattr(hunted, "problems", lambda *_, count=count: count)
        assert not first_run.is_spared(CONV, impl)
        assert first_run.is_spared(large, impl) is spared
        assert ("not looked at" in first_run.standing(large, impl)) is spared


def test_a_zero_point_of_floats_is_added() -> None:
    problem = ConvProblem.of((1, 16, 3, 3), (32, 16, 1, 1), dst="f32")
    attr = Attr(dst_zero_point=ZeroPoint())
    wei, values = np.ones((32, 16, 1, 1), np.int8), {"dst_zero_point": np.int32(7)}
    prepared = pq.prepare(problem, attr, wei=wei, values=values, self_check="auto")
    assert (prepared(np.ones((1, 16, 3, 3), np.uint8)) == 16 + 7).all()
