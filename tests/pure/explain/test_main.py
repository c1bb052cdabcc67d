"""The command: what it takes, what it prints, and that it never ends in a traceback."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyonednn_q.commands import cli, explain
from pyonednn_q.compose.plan import Plan
from pyonednn_q.errors import LibraryError
from pyonednn_q.explain import presets, read
from pyonednn_q.explain.plan_report import Report
from pyonednn_q.primitive.isa import Facts, InstructionSet

SOURCES = Path(cli.__file__).parents[2]
TOML = """
op = "inner_product"
src = {dims = [8, 64], scale = 0.5}
wei = {dims = [10, 64]}
chain = ["relu", {step = "multiply", value = 3}]
"""


def call(*argv: str, here: Callable[[], Facts] | None = None) -> int:
    """Run the command; `here` stands for what the library of this process is."""
    with pytest.MonkeyPatch.context() as patch:
        if here is not None:
            patch.setattr(explain, "_facts_here", here)
        return cli.main(["explain", *argv])


def out(capsys: pytest.CaptureFixture[str], *argv: str, **here: Any) -> str:
    assert call(*argv, **here) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def complaint(capsys: pytest.CaptureFixture[str], *argv: str, **here: Any) -> str:
    assert call(*argv, **here) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("pyonednn-q explain: ")
    return printed.err.removeprefix("pyonednn-q explain: ").strip()


def test_a_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert out(capsys, "relu") == Report.of(read(presets.get("relu"))).text() + "\n"


def test_the_list_has_every_preset(capsys: pytest.CaptureFixture[str]) -> None:
    printed = out(capsys, "--list")
    lines = [line.split()[0] for line in printed.splitlines() if line.startswith("  ")]
    assert lines == list(presets.names())


@pytest.mark.parametrize("suffix", ["toml", "json", "txt"])
def test_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str) -> None:
    path = tmp_path / f"layer.{suffix}"
    told = {"op": "inner_product", "src": {"dims": [8, 64]}, "wei": {"dims": [10, 64]}}
    path.write_text(json.dumps(told) if suffix == "json" else TOML)
    assert "inner_product src:u8:8x64" in out(capsys, str(path))


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = ("\ufeff" + TOML).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert "chain: relu(x) > x * 3" in out(capsys, "-")


def test_show_is_a_description(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(out(capsys, "depthwise", "--show"))
    assert out(capsys, str(path)) == out(capsys, "depthwise")


def test_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert "3 post-ops; REAL" in out(capsys, "quantized_residual")
    assert "2 post-ops; BOUNDED(1)" in out(capsys, "quantized_residual", "--policy", "fast")


def test_another_dst(capsys: pytest.CaptureFixture[str]) -> None:
    assert "-> f32" in out(capsys, "fq_pc", "--dst", "f32")
    assert "dst.dtype: got 'u9'" in complaint(capsys, "fq_pc", "--dst", "u9")


def test_trace_and_benchdnn(capsys: pytest.CaptureFixture[str]) -> None:
    printed = out(capsys, "fq_pc", "--trace", "--benchdnn")
    assert "    before: " in printed
    assert printed.splitlines()[-1].startswith("benchdnn --conv ")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(out(capsys, "fq_pc", "--json"))
    assert Plan.from_json(json.dumps(told["plan"])).post_ops == ()


def test_html(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "plan.html"
    out(capsys, "fq_pc", "--html", str(page))
    assert page.read_text("utf-8") == Report.of(read(presets.get("fq_pc"))).html()
    said = complaint(capsys, "fq_pc", "--html", str(tmp_path / "no" / "x.html"))
    assert "a folder that exists" in said


@pytest.mark.parametrize("isa", ["avx2", "AVX512_CORE_BF16+avx_vnni"])
def test_a_process_that_is_named(capsys: pytest.CaptureFixture[str], isa: str) -> None:
    printed = out(capsys, "fq_pc", "--isa", isa, "--version", "3.13")
    assert f"holds for oneDNN 3.13.0 on {isa.upper()}" in printed


def test_the_instruction_set_decides(capsys: pytest.CaptureFixture[str]) -> None:
    """A sum behind other steps leaves the fast kernels of a matmul, but only without VNNI."""
    late = """
        op = "matmul"
        src = {dims = [8, 64]}
        wei = {dims = [64, 16]}
        chain = ["tanh", "sum"]
        dst = "f32"
    """
    for isa, left in (("AVX2", True), ("AVX512_CORE_VNNI", False)):
        told = io.TextIOWrapper(io.BytesIO(late.encode()))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", told)
            printed = out(capsys, "-", "--isa", isa, "--version", "3.13.2")
        assert ("late_sum" in printed) == left


def test_this_process(capsys: pytest.CaptureFixture[str]) -> None:
    def here() -> Facts:
        return Facts((3, 8, 1), InstructionSet("AVX512_CORE"), "TBB")

    assert "holds for oneDNN 3.8.1 on AVX512_CORE" in out(capsys, "relu", "--here", here=here)


def test_this_process_without_a_library(capsys: pytest.CaptureFixture[str]) -> None:
    def here() -> Facts:
        raise LibraryError(message="no oneDNN here")

    assert complaint(capsys, "relu", "--here", here=here) == "no oneDNN here"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "LAYER: got nothing; wanted a preset"),
        (["no_such_preset"], "preset: got 'no_such_preset'"),
        (["no/such/file"], "No such file or directory"),
        (["nothing.toml"], "No such file or directory"),
        (["."], "preset: got '.'"),
        (["/tmp"], "Is a directory"),
        (["relu", "--isa", "AVX2"], "--version: got nothing; wanted both"),
        (["relu", "--version", "3.7"], "--isa: got nothing; wanted both"),
        (["relu", "--isa", "AVX9", "--version", "3.7"], "--isa: got 'AVX9'"),
        (["relu", "--isa", "AVX9+AVX_VNNI", "--version", "3.7"], "--isa: got 'AVX9'"),
        (["relu", "--isa", "AVX2", "--version", "3.6"], "--version: got '3.6'; wanted 3.7"),
        (["relu", "--isa", "AVX2", "--version", "4.0"], "--version: got '4.0'; wanted 3.7"),
        (["relu", "--isa", "AVX2", "--version", "new"], "--version: got 'new'; wanted 3.7"),
        (["relu", "--here", "--isa", "AVX2"], "--here: got --isa or --version"),
    ],
)
def test_complaints(capsys: pytest.CaptureFixture[str], argv: list[str], message: str) -> None:
    assert complaint(capsys, *argv).startswith(message)


def test_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two_sums.json"
    told = {
        **presets.get("relu"),
        "dst": "f32",
        "chain": ["sum", "relu", {"step": "sum", "scale": 3}],
    }
    path.write_text(json.dumps(told))
    assert "left over" in out(capsys, str(path))
    assert "sums_that_differ" in complaint(capsys, str(path), "--strict")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"{", b"op = 3", b"[]", b"", b"\0"])
def test_bad_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    assert "; wanted " in complaint(capsys, str(path))


@pytest.mark.parametrize("argv", [["relu", "--policy", "quick"], ["--nonsense"], ["relu", "abs"]])
def test_bad_options_end_with_the_usage(
    capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        call(*argv)
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("usage: pyonednn-q explain")


# --- as a process --------------------------------------------------------------------------------


def process(
    code: str, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    start = f"import sys; sys.path.insert(0, {str(SOURCES)!r})\n"
    return subprocess.run(
        [sys.executable, "-c", start + code],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        env=os.environ | environment,
    )


CALL = "from pyonednn_q.commands.cli import main; sys.exit(main(['explain', *{argv!r}]))"
NO_EXTENSION = "sys.modules['pyonednn_q._core'] = None\n"


def test_without_the_extension() -> None:
    """The plan for any process needs none, and native is not even imported."""
    code = NO_EXTENSION + CALL.replace("sys.exit", "code = ").format(argv=["fq_pc"])
    done = process(code + "\nassert code == 0 and 'pyonednn_q.native' not in sys.modules")
    assert done.returncode == 0, done.stderr
    assert b"no post-op; REAL" in done.stdout


def test_here_without_the_extension() -> None:
    done = process(NO_EXTENSION + CALL.format(argv=["relu", "--here"]))
    assert done.returncode == 2
    assert done.stderr.startswith(b"pyonednn-q explain: ")
    assert b"Traceback" not in done.stderr


def test_a_terminal_of_few_letters() -> None:
    done = process(CALL.format(argv=["relu"]), PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert b"convolution u8 ? s8 -> u8" in done.stdout


def test_a_reader_that_had_enough() -> None:
    """More than a pipe holds, and nobody to read it."""
    code = CALL.format(argv=["transformer_ffn", "--json"])
    start = f"import sys; sys.path.insert(0, {str(SOURCES)!r})\n"
    command = [sys.executable, "-c", start + code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.read(1)
        child.stdout.close()
        complained = child.stderr.read()
    assert complained == b""


def test_the_command_lists_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "explain" in capsys.readouterr().err
    assert cli.main(["explain", "relu"]) == 0
