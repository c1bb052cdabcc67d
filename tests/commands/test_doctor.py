"""doctor: right on a healthy installation, and no crash on any broken one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyonednn_q import examination
from pyonednn_q.commands import doctor
from pyonednn_q.commands.cli import main

HEALTHY = {
    "numpy": "2.0",
    "extension": "/somewhere/_core.so",
    "library": "/somewhere/libdnnl.so.3",
    "runtime": "OMP",
    "isa": "AVX512_CORE_VNNI",
    "vnni": "yes",
    "trial": "right: u8*s8 matmul by brg_matmul",
}


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pyonednn_q", "doctor", *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_healthy() -> None:
    from pyonednn_q.native import library, runtime

    result = run("--json")
    assert result.returncode == 0, result.stdout
    report = json.loads(result.stdout)
    assert report["usable"] is True
    assert report["library"] == library.loaded().path
    assert report["onednn"].startswith(".".join(map(str, runtime.version())))
    assert report["isa"] == runtime.isa().text()
    assert all(name in report["features"] for name in runtime.isa().features())
    assert set(report) >= {"python", "numpy", "extension", "source", "runtime", "threads", "cpu"}


def test_text_names_all_that_matters() -> None:
    result = run(ONEDNN_VERBOSE="all")  # the library's chatter must not get into the report
    assert result.returncode == 0, result.stdout
    names = [line.split()[0] for line in result.stdout.splitlines()]
    assert names[:5] == [
        *("package", "python", "numpy", "extension", "searched"),
    ]
    assert {"library", "source", "verdict"} <= set(names)
    assert "onednn_verbose" not in result.stdout


def test_missing_library(tmp_path: Path) -> None:
    result = run(PYONEDNN_Q_LIBDNNL=str(tmp_path / "libdnnl.so.3"))
    assert result.returncode == 1
    assert str(tmp_path) in result.stdout
    assert "NOT usable" in result.stdout
    assert "pip install onednn" in result.stdout
    assert result.stderr == ""


def test_broken_numpy(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('broken on purpose')")
    search = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    result = run(PYTHONPATH=search)
    assert result.returncode == 1
    assert "broken on purpose" in result.stdout
    assert "NumPy cannot be imported" in result.stdout


@pytest.mark.parametrize(
    ("hazard", "expected"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "signal SIGKILL"),
        ("import os; os._exit(3)", "exit code 3"),
        ("import time; time.sleep(600)", "no answer within"),
    ],
)
def test_a_child_that_dies_is_a_finding(
    hazard: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # NumPy is the first thing that the examination imports from outside.
    (tmp_path / "numpy.py").write_text(hazard)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    if "sleep" in hazard:
        monkeypatch.setattr(examination, "_TIMEOUT_S", 6)
    facts = examination.examine()
    assert expected in facts["failure"]
    assert "python" in facts  # what was known before is not lost
    assert not examination.judge(facts).usable


def test_main_prints_what_it_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: {**HEALTHY, "failure": "first line\nsecond"})
    assert main(["doctor"]) == 1
    printed = capsys.readouterr().out
    assert "first line\n            second" in printed


def test_judging_nothing_at_all() -> None:
    verdict = examination.judge({})
    assert not verdict.usable
    assert verdict.advice


@pytest.mark.parametrize(
    ("change", "usable", "word"),
    [
        ({}, True, None),
        ({"runtime": "SYCL on TBB threads"}, True, "7 us"),
        ({"runtime": "THREADPOOL"}, True, "one thread"),
        ({"vnni": "no"}, True, "[-64, 64]"),
        ({"trial": "WRONG: u8*s8 matmul by x"}, False, "PYONEDNN_Q_LIBDNNL"),
        ({"failure": "trial: x"}, False, "PYONEDNN_Q_LIBDNNL"),
        (
            {"failure": "trial: no CPU", "runtime": "SYCL on TBB threads"},
            False,
            "OCL_ICD_FILENAMES",
        ),
        ({"failure": "runtime: x", "extension": "not built"}, False, "pip install ."),
        ({"failure": "library: x"}, False, "pip install onednn"),
        ({"failure": "numpy: x"}, False, "pip install numpy"),
    ],
)
def test_advice(
    change: dict[str, str], usable: bool, word: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    verdict = examination.judge(HEALTHY | change)
    assert verdict.usable is usable
    if word is None:
        assert verdict.advice == ()
    else:
        assert any(word in line for line in verdict.advice)


def test_a_limited_isa_is_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert "AVX2" in examination.judge(HEALTHY).advice[0]


def test_no_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "doctor" in capsys.readouterr().err


def test_help_behind_a_command_is_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["doctor", "--help"])
    assert stopped.value.code == 0
    assert "--json" in capsys.readouterr().out
