"""Pages that commands write beside what they print: whole, and fit to be read on a telephone."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from pyonednn_q.commands import cli
from support.browser import FITS, asked, needs_browser

PROBLEM = "conv 1x16x8x8 32x16x3x3 padding=1"
# By command: its arguments, a word for each table's head, and what of standard output a page has.
PAGES = {
    "bench": (["MODEL", "--repeat", "5", "--peers", "onnxruntime"], "of roof", "memory of a call"),
    "inspect": ([PROBLEM], "copies us", "scratchpad"),
    "saturation": ([PROBLEM], "flagged", "output channels"),
    "diff": (["MODEL"], "unexplained", "of the whole model"),
    "quantize": (["FLOATS", "--data", "DATA", "--out", "OUT"], "SQNR dB", "layers in INT8"),
}


def written(
    command: str, made: Callable[[str, str], Path], folder: Path, *more: str
) -> tuple[int, Path]:
    model = made("resnet", "QDQ")
    np.savez(folder / "data.npz", x=np.zeros((2, 3, 16, 16), np.float32))
    paths = {"MODEL": model, "FLOATS": model.parent / "float.onnx"}
    paths |= {"DATA": folder / "data.npz", "OUT": folder / "out.onnx"}
    words = [str(paths.get(word, word)) for word in PAGES[command][0]]
    page = folder / "told.html"
    return cli.main([command, *words, "--html", str(page), *more]), page


@pytest.mark.parametrize("command", PAGES)
def test_a_page_has_what_is_printed(
    command: str,
    made: Callable[[str, str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, page = written(command, made, tmp_path)
    assert code in {0, 1}
    out, text = capsys.readouterr().out, unescape(page.read_text())
    _, head, words = PAGES[command]
    (line,) = [each.strip() for each in out.splitlines() if words in each][:1]
    assert re.sub(r"\s+", " ", line) in re.sub(r"\s+", " ", text)
    assert f">{head}</th>" in text
    assert not re.search(r"https?:|@import|url\((?!#)|fetch\(|\s(?:src|href)=", text)


def test_a_page_of_bench_draws_the_graph_with_times(
    made: Callable[[str, str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, page = written("bench", made, tmp_path)
    out = capsys.readouterr().out
    ((count, us),) = re.findall(r"^all nodes +(\d+) +([\d.]+) ", out, re.MULTILINE)
    drawn = page.read_text().partition("<h2>Graph, with the time of each node</h2>")[2]
    times = [float(each) for each in re.findall(r">([\d.]+) us</text>", drawn)]
    assert len(times) == int(count)
    assert sum(times) == pytest.approx(float(us), abs=0.1 * (len(times) + 1))


@needs_browser
@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("command", PAGES)
def test_a_page_fits_and_can_be_read(
    command: str, made: Callable[[str, str], Path], tmp_path: Path, *, is_dark: bool
) -> None:
    _, page = written(command, made, tmp_path, "--json")
    said = asked(page.read_text(), FITS, tmp_path, width=400, is_dark=is_dark)
    assert said["scrolls"] == 0
    assert min(said["contrasts"])[0] >= 4.5, min(said["contrasts"])
