"""The hunt: its oracle, what it asks, and that it sees what it is there to see."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import hunt
import hunt_page
import hunt_plain
import hunt_run
from hunt_oracle import InexactError, amid_other_bytes, expected
from hunt_regions import REGIONS
from hunt_sample import KINDS, draw
from pyonednn_q import native
from pyonednn_q.faults import guards
from support import oracle

if TYPE_CHECKING:
    from hunt_oracle import Sample

pytest.importorskip("ml_dtypes")
SEED = 20


def drawn(count: int) -> list[tuple[Sample, Any]]:
    samples = []
    for number in range(count):
        sample = draw(np.random.default_rng([SEED, number]), wide=True)
        try:
            samples.append((sample, expected(sample)))
        except InexactError:
            continue
    return samples


def test_its_oracle_is_that_of_the_tests() -> None:
    compared: Counter[str] = Counter()
    for sample, right in drawn(400):
        problem, attr, arrays = hunt_run.as_problem(np.random.default_rng(1), sample)
        result = oracle.run(problem, attr, arrays)
        if result.is_exact or result.exact_s32:
            compared[sample.kind] += 1
            assert np.array_equal(result.dst.astype(right.dtype), right)
    assert min(compared[kind] for kind in set(KINDS)) > 10


def test_what_it_draws_is_odd() -> None:
    samples = [sample for sample, _ in drawn(600)]
    windowed = [sample for sample in samples if "conv" in sample.kind]
    assert {sample.src.ndim for sample in windowed} == {3, 4, 5}
    assert any(sample.groups > 1 and sample.wei.shape[1] == 1 for sample in windowed)
    assert any(max(sample.stride) > 1 and max(sample.dilation) > 1 for sample in windowed)
    assert any(sample.wei.shape[2] > sample.src.shape[2] for sample in windowed)
    assert {"u8", "s8", "f32", "bf16"} <= {sample.types["src"] for sample in samples}
    assert {"s8", "u8", "s4", "u4"} <= {sample.types["wei"] for sample in samples}
    assert {"s32", "f32", "u8", "s8", "bf16"} <= {sample.types["dst"] for sample in samples}
    assert {name for sample in samples for name in sample.points} == {"src", "wei", "dst"}
    assert {step.alg for sample in samples for step in sample.post_ops} >= {"sum", "add", "relu"}


def test_nothing_wrong_in_a_few() -> None:
    answers = [hunt_run.hunted(SEED, number) for number in range(60)]
    assert [answer.wrong for answer in answers if answer.wrong] == []
    assert sum(bool(answer.impl) for answer in answers) > 20  # AVX2 alone has the fewest


def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = hunt_run._prepared

    def off_by_one(*asked: Any) -> Any:
        dst, impl = run(*asked)
        dst[(-1,) * dst.ndim] += 1
        return dst, impl

    monkeypatch.setattr(hunt_run, "as_operator", lambda *_: None)
    monkeypatch.setattr(hunt_run, "_prepared", off_by_one)
    answers = [hunt_run.hunted(SEED, number) for number in range(40)]
    ran = [answer for answer in answers if answer.impl]
    assert ran
    assert all(answer.wrong.startswith("1 of ") for answer in ran)


def test_plain_problems_are_right_in_any_layout() -> None:
    seen: Counter[str] = Counter()
    for number in range(400):
        answer = hunt_plain.hunted_plain(SEED, number)
        assert answer.wrong == "", answer
        seen[answer.kind] += bool(answer.impl)
    assert min(seen[kind] for kind in hunt_plain.DRAW) > 3, seen


def test_bytes_beside_a_result_count(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = native.prepare

    def careless(*asked: Any, **options: Any) -> Any:
        call = prepare(*asked, **options)

        class Careless:
            inputs, impl = call.inputs, call.impl

            def __call__(self, *arrays: Any, out: Any) -> None:
                call(*arrays, out=out)
                out.base[0] = 1

        return Careless()

    monkeypatch.setattr(native, "prepare", careless)
    answers = [hunt_plain.hunted_plain(SEED, number) for number in range(40)]
    ran = [answer.wrong for answer in answers if answer.impl]
    assert len(ran) > 10
    assert set(ran) == {"bytes beside the result are written"}


@pytest.mark.parametrize("shape", [(5,), (3, 4096), (2, 3, 1365)])
def test_what_reads_on_behind_an_array_ends(shape: tuple[int, ...]) -> None:
    code = (
        "import ctypes, sys, numpy as np\nfrom hunt_oracle import before_no_memory\n"
        f"array = before_no_memory(np.ones({shape}, np.int16))\n"
        "assert array.sum() == array.size\n"
        "print(len(ctypes.string_at(array.ctypes.data, array.nbytes + int(sys.argv[1]))))"
    )
    path = {"PYTHONPATH": str(Path(hunt.__file__).parent)}
    ended = [
        subprocess.run(
            [sys.executable, "-c", code, more],
            env=os.environ | path,
            capture_output=True,
            text=True,
            check=False,
        )
        for more in ("0", "1")
    ]
    assert ended[0].stdout.strip() == str(2 * np.prod(shape)), ended[0].stderr
    assert ended[1].returncode == -signal.SIGSEGV


def test_a_row_that_is_left_out_shows_its_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "GUARDS", guards.GUARDS)  # put back behind the test
    monkeypatch.setattr(hunt_plain, "before_no_memory", amid_other_bytes)  # it reads on
    row = hunt_run.without("resampling-of-one-place")
    answers = (hunt_plain.hunted_plain(77, number, row) for number in range(2000))
    try:
        assert sum(bool(answer.wrong) for answer in answers) > 5
    finally:
        guards._rows_in.cache_clear()


def test_a_bare_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(*_: Any, **__: Any) -> None:
        raise KeyError("src")

    monkeypatch.setattr(hunt_run, "as_operator", lambda *_: None)
    monkeypatch.setattr(native, "prepare", prepare)
    assert hunt_run.hunted(SEED, 0).wrong == "KeyError: 'src'"


def test_a_crash_is_a_finding_and_the_next_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = []

    def follow(tally: hunt.Tally, mark: str, first: int, count: int, _seconds: float) -> int | None:
        begun.append((first, count))
        if first == 0:
            with open(mark, "r+b") as file:  # noqa: PTH123 - as a child that dies at the third
                file.write((2).to_bytes(8, "little"))
            tally.take({"done": 2, "ran": {"matmul: a": 2}, "refused": {}})
            return -signal.SIGSEGV
        tally.take({"done": count, "ran": {"matmul: a": count}, "refused": {}})
        return 0

    monkeypatch.setattr(hunt, "_follow", follow)
    tally = hunt.hunt("AVX2", 5, 0, 10, 60.0)
    assert begun == [(0, 10), (3, 7)]
    assert tally.done == 10
    assert tally.findings == ["2: exit code -11"]
    threads = hunt.threads_at("AVX2", 5, 2)
    assert f"--levels AVX2 --seed 5 --only 2 --threads {threads}" in capsys.readouterr().out


def test_children_take_turns_and_have_threads_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def follow(tally: hunt.Tally, _: str, first: int, count: int, _seconds: float) -> int:
        begun.append((first, count))
        tally.take({"done": count, "ran": {}, "refused": {}})
        return 0

    monkeypatch.setattr(hunt, "_follow", follow)
    monkeypatch.setattr(hunt, "_OF_ONE_CHILD", 4)
    assert hunt.hunt("AVX2", 5, 2, 10, 60.0).done == 10
    assert begun == [(2, 2), (4, 4), (8, 4)]
    assert {hunt.threads_at("AVX2", 5, number) for number, _ in begun} <= set(hunt.THREADS)
    assert len({hunt.threads_at("AVX2", 5, number) for number, _ in begun}) == 3


@pytest.mark.parametrize("region", sorted(REGIONS))
def test_a_region_is_right_and_is_what_it_says(region: str) -> None:
    answers = [hunt_run.hunted(SEED, number, region=region) for number in range(40)]
    assert [answer.wrong for answer in answers if answer.wrong] == []
    assert sum(bool(answer.impl) for answer in answers) > 15
    shapes = [REGIONS[region](np.random.default_rng([SEED, number])) for number in range(60)]
    if region == "products":
        assert any(shape.src[-2] == 1 < shape.src[0] for shape in shapes)
        return
    windows = [shape.window for shape in shapes]
    assert {len(window["stride"]) for window in windows} <= {2, 3}
    if region == "volumes":
        assert any(shape.wei[2] > shape.src[2] == 1 for shape in shapes)
    elif region == "skips":
        kernels = [shape.wei[2:] for shape in shapes]
        assert any(w["stride"][0] > k[0] for w, k in zip(windows, kernels, strict=True))
    else:
        assert any(w["stride"][1] == s.wei[3] > 3 for w, s in zip(windows, shapes, strict=True))


def test_children_tell_levels_apart() -> None:
    levels = hunt.available(["SSE41", "SSE41", "AVX2"])
    assert levels == ["SSE41", "AVX2"]
    tally = hunt.hunt("AVX2", SEED, 0, 3, 120.0)
    assert (tally.done, tally.isa, tally.findings) == (3, "AVX2", [])
    assert tally.features == hunt.features()
    assert os.environ.get("ONEDNN_MAX_CPU_ISA") != "SSE41"


def test_the_page_adds_up() -> None:
    refused = Counter({"matmul: known wrong: b, c": 3})
    one = hunt.Tally("AVX2", 1, 0, False, "", "AVX2", "3.13.2 OMP", 10, Counter(a=7), refused)
    lines = "\n".join(hunt_page.page([one, replace(one, seed=2, findings=["4: wrong"])]))
    assert "| layers | 3.13.2 OMP | AVX2 | 20 | 14 | 6 | 1 | 1, 2: 0 to 9 |" in lines
    assert "- 14 a" in lines
    assert "- 6 matmul: known wrong: c" in lines
