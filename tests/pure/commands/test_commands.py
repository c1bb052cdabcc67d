"""The tree of commands: what it has, what shells make of it, and its exit codes."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from pyonednn_q.bench import suite
from pyonednn_q.commands import cli, completion
from pyonednn_q.commands.cli import parser

DOCS = Path(__file__).parents[3] / "docs"
TREE = parser()
(BRANCHES,) = [a.choices for a in TREE._actions if isinstance(a, argparse._SubParsersAction)]
COMMANDS = tuple(BRANCHES)
SHELLS = ("bash", "zsh", "tcsh")


def flags(command: str) -> list[str]:
    actions = BRANCHES[command]._actions
    return [flag for action in actions for flag in action.option_strings if flag[:2] == "--"]


def test_every_command_is_there() -> None:
    assert set(COMMANDS) == {
        "doctor", "explain", "inspect", "saturation", "why", "demo", "bench", "compare", "run",
        "quantize", "diff", "completion",
    }  # fmt: skip


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"pyonednn_q {version('pyonednn_q')}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_the_commands_own(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main([command, "--help"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: pyonednn-q {command}")
    assert all(flag in out for flag in flags(command))


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option_is_bad_use(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main([command, "--nonsense"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith(f"usage: pyonednn-q {command}")


@pytest.mark.parametrize(
    ("line", "option", "wanted"),
    [
        ("saturation x --isa FOO", "--isa", "one of SSE41, .*AVX10_2"),
        ("inspect x --layout foo", "--layout", "one of channels_last, dense"),
        ("inspect x --tail foo", "--tail", "none, or words joined by _: relu, "),
        ("bench x --layout foo", "--layout", "one of channels_last, dense"),
        ("demo --seed x", "--seed", "whole number from 0 to "),
        ("demo --seed=-1", "--seed", "whole number from 0 to "),
        ("demo --batch 0", "--batch", "whole number from 1 to "),
    ],
)
def test_a_bad_value_is_told_what_would_do(
    line: str, option: str, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line behind the usage, as the page of the command line has it."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(line.split())
    assert stopped.value.code == 2
    usage, _, last = capsys.readouterr().err.rstrip("\n").rpartition("\n")
    assert usage.startswith("usage: pyonednn-q ")
    assert re.match(f"pyonednn-q [a-z]+: error: argument {option}: .*{wanted}", last)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("benhc", "got 'benhc'; wanted one of doctor, .*did you mean bench"),
        ("inspect x --layuot dense", "unrecognized arguments: --layuot .did you mean --layout"),
        ("bench x --rep 3", "unrecognized arguments: --rep .did you mean --repro"),
        ("explain x --policy reel", "--policy: got 'reel'; .*did you mean real"),
        ("inspect x --layout dens", "wanted one of channels_last, dense .did you mean dense"),
        ("completion zhs", "SHELL: got 'zhs'; wanted one of bash, zsh, tcsh .did you mean zsh"),
    ],
)
def test_a_wrong_word_is_told_which_was_meant(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(line.split())
    assert stopped.value.code == 2
    assert re.search(said, capsys.readouterr().err)


def test_a_wrong_suite_is_told_which_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "resnet51"]) == 2
    assert "(did you mean resnet50?)" in capsys.readouterr().err


def test_no_command_is_helped(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert capsys.readouterr().err.startswith("usage: pyonednn-q [-h]")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_parsed_without_the_others(command: str) -> None:
    """Else each of them would import what all of them need."""
    (branches,) = [
        a.choices for a in parser(command)._actions if isinstance(a, argparse._SubParsersAction)
    ]
    counts = {name: len(branch._actions) for name, branch in branches.items()}
    assert counts.pop(command) == len(BRANCHES[command]._actions)
    assert set(counts.values()) == {1}  # the help


def test_the_page_has_every_command_and_option() -> None:
    page = (DOCS / "command_line.md").read_text()
    for command in COMMANDS:
        assert f"pyonednn-q {command}" in page
        for flag in set(flags(command)) - {"--help"}:
            assert f"`{flag}" in page, (command, flag)


def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "command_line.md").read_text()
    ((call, shown),) = re.findall(r"\$ pyonednn-q (.*)\n((?:.+\n)*?)```", page)
    assert cli.main(shlex.split(call)) == 1
    assert capsys.readouterr().out == shown


def test_the_suite_of_the_page_is_one() -> None:
    page = (DOCS / "command_line.md").read_text()
    found = suite.parse("page", re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0])
    assert len(found.lines) == 2


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command prints for each shell."""
    folder = tmp_path_factory.mktemp("completion")
    for shell in SHELLS:
        with (folder / shell).open("w") as out, pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            assert cli.main(["completion", shell]) == 0
    return folder


def completed(script: Path, *words: str) -> list[str]:
    """Return what bash offers for the last of some words."""
    array = " ".join(f"'{word}'" for word in words)
    line = (
        f"source {script}; COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; "
        f"COMP_LINE='{' '.join(words)}'; COMP_POINT=${{#COMP_LINE}}; "
        "$(complete -p pyonednn-q | sed 's/.*-F \\([^ ]*\\) .*/\\1/'); "
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bash_completes_the_commands(scripts: Path) -> None:
    assert set(COMMANDS) <= set(completed(scripts / "bash", "pyonednn-q", ""))
    assert completed(scripts / "bash", "pyonednn-q", "sat") == ["saturation"]


@pytest.mark.parametrize("command", COMMANDS)
def test_bash_completes_the_options_of(command: str, scripts: Path) -> None:
    assert set(flags(command)) <= set(completed(scripts / "bash", "pyonednn-q", command, "--"))


def test_bash_completes_what_a_choice_may_be(scripts: Path) -> None:
    assert completed(scripts / "bash", "pyonednn-q", "completion", "z") == ["zsh"]
    assert set(completed(scripts / "bash", "pyonednn-q", "saturation", "--src", "")) >= {"u8", "s8"}


def test_bash_completes_files(
    scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("layer.npz").write_bytes(b"")
    assert "layer.npz" in completed(scripts / "bash", "pyonednn-q", "why", "lay")


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_can_read_theirs(shell: str, scripts: Path) -> None:
    script = scripts / shell
    text = script.read_text()
    assert all(command in text for command in COMMANDS)
    assert all(flag.lstrip("-") in text for command in COMMANDS for flag in flags(command))
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n" if shell == "zsh" else "-nf", str(script)], check=True)


def test_without_shtab_completion_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(completion, "find_spec", lambda _: None)
    assert cli.main(["completion", "bash"]) == 2
    assert "pip install" in capsys.readouterr().err


def saturation(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = cli.main(["saturation", *map(str, words)])
    printed = capsys.readouterr()
    assert len(printed.err.splitlines()) == (code == 2)
    return code, printed.out + printed.err


def weights(folder: Path, *dims: int, most: int = 127) -> Path:
    path = folder / "weights.npy"
    np.save(path, np.full(dims, most, np.int8))
    return path


def test_saturation_of_weights_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """255 * (127 + 127) is beyond 16 bits, 255 * (64 + 64) is not."""
    code, out = saturation(capsys, weights(tmp_path, 2, 4, 3, 3))
    assert code == 1
    assert out.startswith(
        "AVX2: 2 of 2 output channels saturate\n  0: sums of pairs from 0 to 64770"
    )
    assert saturation(capsys, weights(tmp_path, 2, 4, 3, 3, most=64))[0] == 0
    assert saturation(capsys, weights(tmp_path, 2, 4, 3, 3), "--isa", "AVX512_CORE_VNNI")[0] == 0


@pytest.mark.parametrize("op", ["conv", "deconv", "inner_product", "matmul"])
def test_saturation_of_each_operator(
    op: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dims = (4, 6) if op in {"inner_product", "matmul"} else (4, 6, 3)
    code, out = saturation(capsys, weights(tmp_path, *dims), "--op", op, "--json")
    (verdict,) = json.loads(out)["verdicts"]
    assert len(verdict["channels"]) == (6 if op == "matmul" else 4)
    assert code == (0 if verdict["is_exact"] else 1)


def test_saturation_counts_the_errors_of_a_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wei = np.full((2, 4), 127, np.int8)
    src = np.array([[255] * 4, [1] * 4], np.uint8)
    np.savez(tmp_path / "layer.npz", src=src, wei=wei)
    code, out = saturation(capsys, tmp_path / "layer.npz")
    assert code == 1
    lost = 2 * (2 * 255 * 127 - 32767)
    assert f"of this source: 2 of 4 sums wrong, by {lost} at most" in out


def test_saturation_of_a_suite_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = saturation(capsys, "bert_base", "ip 1x4 2x4")
    assert code == 1
    assert out.splitlines()[0].split() == [
        "line",
        "channels",
        "flagged",
        "sums",
        "from",
        "to",
        "verdict",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["none.npy"], ["none.npz"], ["f32.npy"], ["flat.npy"], ["text.npy"], ["scalar.npz"],
        ["odd.npz"], ["nothing"], ["conv 1x2"], ["resnet50", "--filter", "nobody"],
        ["matmul 2x3x4 2x4x3"],
    ],
)  # fmt: skip
def test_saturation_refuses_in_a_line(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("f32.npy", np.ones((2, 2), np.float32))
    np.save("flat.npy", np.ones(2, np.int8))
    Path("text.npy").write_text("no array")
    np.savez("scalar.npz", wei=np.int8(1))
    np.savez("odd.npz", weights=np.ones((2, 2), np.int8))
    code, said = saturation(capsys, *words)
    assert code == 2
    assert said.startswith("pyonednn-q saturation: ")
    assert len(said) < 560
