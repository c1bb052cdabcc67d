"""The command: whatever it is given or cut off from, it says in a line."""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyonednn_q.commands import bench as command
from pyonednn_q.commands import cli
from pyonednn_q.errors import LibraryError
from pyonednn_q.report.progress import Progress
from support import bench_runs

DEEP = '{"op": ' + "[" * 100_000


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line in which `pq` is the command; no process may end in a traceback."""
    done = subprocess.run(
        ["bash", "-c", f'pq() {{ {sys.executable} -m pyonednn_q "$@"; }}; {line}'],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=600,
        check=False,
    )
    for word in ("Traceback", "Exception ignored", "Error:"):
        assert word not in done.stderr, done.stderr
    return done


class Here:
    """The command in this process, run in a folder: a new one takes a third of a second."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self.monkeypatch, self.capsys = folder, monkeypatch, capsys
        monkeypatch.chdir(folder)

    def __call__(self, line: str) -> tuple[int, str]:
        """Return exit code and standard error of a command line; `< name` is its standard input."""
        words, _, name = line.partition(" < ")
        with Path(name or os.devnull).open(errors="replace") as stdin:
            self.monkeypatch.setattr(sys, "stdin", stdin)
            code = cli.main(words.split())
        return code, self.capsys.readouterr().err


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """The command, beside files that are of no use to it."""
    return Here(folder, monkeypatch, capsys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that are no descriptions, no suites and no runs."""
    runs = bench_runs.run(bench_runs.row("a", "f32", 5.0))
    (tmp_path / "run.json").write_text(runs.to_json())
    (tmp_path / "latin1.toml").write_bytes("title = 'é'".encode("latin-1"))
    (tmp_path / "latin1.json").write_bytes('{"title": "é"}'.encode("latin-1"))
    for suffix in ("json", "toml"):
        (tmp_path / f"deep.{suffix}").write_text(DEEP if suffix == "json" else f"a = {'[' * 9999}")
    (tmp_path / "levels.json").write_text(json.dumps({"op": _levels(400)}))
    (tmp_path / "long.json").write_text('{"schema": ' + "9" * 5000 + "}")
    (tmp_path / "number.toml").write_text('op = "matmul"\nchain = 3\n')
    (tmp_path / "null.json").write_text('{"op": null, "chain": [null]}')
    (tmp_path / "surrogate.json").write_text('{"title": "\\ud800", "op": "matmul"}')
    return tmp_path


def _levels(count: int) -> list[object]:
    inner: list[object] = []
    for _ in range(count):
        inner = [inner]
    return inner


NO_DESCRIPTIONS = (
    *("latin1.toml", "latin1.json", "deep.json", "deep.toml", "levels.json", "long.json"),
    *("number.toml", "null.json", "surrogate.json", "none.json"),
)
SHOWN = {"number.toml", "surrogate.json"}  # which asks nothing of their contents


@pytest.mark.parametrize("name", NO_DESCRIPTIONS)
def test_what_is_no_description_is_refused_in_a_line(name: str, here: Here) -> None:
    lines = [f"explain {name}", f"explain {name} --show"]
    lines += [f"explain - < {name}"] if name != "none.json" else []
    for line in lines:
        code, said = here(line)
        may_be_shown = "--show" in line and name == "levels.json"  # newer Pythons go that deep
        if ("--show" in line and name in SHOWN) or (may_be_shown and code == 0):
            assert (code, said) == (0, "")
        else:
            assert code == 2
            assert 0 < len(said) < 600
            assert len(said.splitlines()) == 1


@pytest.mark.parametrize("name", ["latin1.json", "deep.json", "levels.json", "long.json", "."])
def test_what_is_no_run_is_refused(name: str, here: Here) -> None:
    for pair in (f"run.json {name}", f"{name} run.json"):
        code, said = here(f"compare {pair}")
        assert code == 2
        assert said.startswith("pyonednn-q compare: ")
        assert len(said.splitlines()) == 1


@pytest.mark.parametrize("name", ["latin1.toml", "deep.toml", "number.toml", "none.toml"])
def test_what_is_no_suite_is_refused(name: str, here: Here) -> None:
    for line in (f"bench {name}", f"bench check {name}"):
        code, said = here(line)
        assert code == 2
        assert said.startswith("pyonednn-q bench: ")


def test_a_process_of_its_own_says_the_same(folder: Path) -> None:
    for line in ("pq explain deep.json", "pq explain - < latin1.json", "pq compare . run.json"):
        done = shell(line, folder)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1


LINES = {
    "explain relu": 0,
    "compare run.json run.json": 0,
    "bench": 0,
    "explain --help": 0,
    "explain nobody": 2,
    "--version": 0,
    "completion bash": 0,
    "saturation 'ip 1x4 2x4' --isa AVX512_CORE_VNNI": 0,
    "saturation 'ip 1x4 2x4'": 1,
    "why none.npz": 2,
    "inspect nothing": 2,
    "": 2,
}


@pytest.mark.parametrize("line", LINES)
def test_streams_that_are_closed_lead_nowhere(line: str, folder: Path) -> None:
    for closed in ("<&-", ">&-", "<&- >&- 2>&-"):
        assert shell(f"pq {line} {closed}", folder).returncode == LINES[line]


def test_a_closed_standard_input_says_nothing(folder: Path) -> None:
    done = shell("pq explain - <&-", folder)
    assert done.returncode == 2
    assert done.stderr.startswith("pyonednn-q explain: op: got nothing")


@pytest.mark.parametrize(
    "line",
    ["explain --list", "explain relu --json", "bench", "completion zsh", "bench --help"],
)
def test_a_full_device_and_a_reader_that_leaves_are_no_success(line: str, folder: Path) -> None:
    for buffering in ("", "PYTHONUNBUFFERED=1 "):
        done = shell(f"{buffering}pq {line} > /dev/full", folder)
        assert done.returncode == 2
        assert "No space left on device" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    done = shell(f"set -o pipefail; pq {line} | head -0", folder)
    assert done.returncode in {0, 141}  # 0: it was done before its reader was gone
    assert done.stderr == ""
    assert shell(f"pq {line} 2> /dev/full", folder).returncode == 0


WRITTEN = ("--save", "--csv", "--html")


@pytest.mark.parametrize("option", WRITTEN)
def test_a_run_that_cannot_be_written_is_told_and_not_lost(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = bench_runs.run(bench_runs.row("a", "f32", 5.0))
    monkeypatch.setattr(command, "measured", lambda *_: made)
    monkeypatch.setattr(command, "request", lambda _: SimpleNamespace(peers=()))
    assert cli.main(["bench", "ip 1x8 8x8", option, "/dev/full"]) == 2
    printed = capsys.readouterr()
    assert "brgemm:avx2" in printed.out
    assert printed.err == "pyonednn-q bench: No space left on device\n"
    monkeypatch.setattr(command, "measured", lambda *_: pytest.fail("it measured"))
    assert cli.main(["bench", "ip 1x8 8x8", option, "none/x"]) == 2
    assert "a folder that exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
        (OSError(28, "No space left on device"), 2),
        (LibraryError("none here", ()), 2),
        (subprocess.TimeoutExpired("a child", 60), 2),
    ],
)
@pytest.mark.parametrize("name", ["doctor", "bench", "compare", "explain", "why", "saturation"])
def test_whatever_ends_a_command_has_the_same_code(
    name: str,
    raised: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def end(*_: object, **__: object) -> int:
        raise raised

    monkeypatch.setattr(cli, "_run", end)
    words = {"compare": ["a", "b"], "why": ["a"], "saturation": ["a"]}.get(name, [])
    assert cli.main([name, *words]) == code
    said = capsys.readouterr().err
    assert said.startswith(f"pyonednn-q {name}: ") if code == 2 else not said


def test_a_full_standard_error_does_not_end_what_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        monkeypatch.setattr(full, "isatty", lambda: True, raising=False)
        with Progress(2) as progress:
            progress.phase("one")
            progress.tick()
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            full.close()


def test_a_page_that_cannot_be_written_is_told(folder: Path) -> None:
    for where, why in (("/dev/full", "No space left"), ("none/x.html", "a folder that exists")):
        done = shell(f"pq explain relu --html {where}", folder)
        assert done.returncode == 2
        assert why in done.stderr


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """Heed interrupts, and so have children do: what a shell runs in the background does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_an_interrupt_ends_it_quietly(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "pyonednn_q", "explain", "-"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None
        assert child.stderr is not None
        child.stdin.write(b"#")
        child.stdin.flush()
        end = time.monotonic() + 600
        waiting = array.array("i", [1])
        while waiting[0] and time.monotonic() < end:  # until it reads
            fcntl.ioctl(child.stdin, termios.FIONREAD, waiting)
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        assert child.wait(600) == 130
        assert child.stderr.read() == b""
