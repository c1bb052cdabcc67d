"""What the documents show runs, as they show it."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from support.peers.packaged_models import MODELS, path_of

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "reference").glob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
PEERS = ("PIL", "onnx", "onnxruntime", "onnxscript", "openvino", "tensorboard", "torch", "torchao")


def skip_without(code: str) -> None:
    """Skip what imports a framework that is not installed, by its name."""
    packages = re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)
    if "pq.torch." in code:
        packages += ["onnx", "onnxscript"]
    for package in packages:
        if package in PEERS and importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install .[peers] pillow")


def skip_without_files(code: str) -> None:
    """Skip what reads a model that was not fetched, or writes in a font that is not there."""
    for name in re.findall(r'folder / "([\w.-]+\.onnx)"', code):
        if not any(path_of(each).is_file() for each in MODELS if each.endswith(f"/{name}")):
            pytest.skip(f"{name} is not there: python tools/vectors/models.py fetch")
    for name in re.findall(r'"(\w[\w-]+\.ttf)"', code):
        from PIL import ImageFont

        try:
            ImageFont.truetype(name)
        except OSError:
            pytest.skip(f"{name} is not there: the fonts of DejaVu")


def run(*arguments: str, folder: Path | None = None) -> str:
    return finished(*arguments, folder=folder).stdout


def finished(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done


SHOWN = [
    shown
    for page in (
        "README.md",
        "docs/calls.md",
        "docs/calls_in_use.md",
        "docs/c_slots.md",
        "docs/composer.md",
        "docs/errors.md",
        "docs/fake_quantize.md",
        "docs/from_onnx.md",
        "docs/from_openvino.md",
        "docs/from_torch.md",
        "docs/index.md",
        "docs/language_models.md",
        "docs/small_weights.md",
        "docs/mixed_precision.md",
        "docs/networks.md",
        "docs/onnx_models.md",
        "docs/onnx_nodes.md",
        "docs/onnx_operators.md",
        "docs/quantize.md",
        "docs/ranges.md",
        "docs/reference/dialects.md",
        "docs/torch_ao.md",
        "docs/training_tool.md",
    )
    for shown in re.findall(
        r"```python\n((?:(?!```).)*)```(?:(?!```).)*```text\n(.*?)```",
        (ROOT / page).read_text(),
        re.DOTALL,
    )
]

# Those that print what the page shows run below, where what they print is compared.
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{index}")
    for page in PAGES
    for index, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
    if block not in {each for each, _ in SHOWN}
]


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_run(block: str) -> None:
    skip_without(block)
    assert run("-c", block)


# -OO leaves out all that -O does.
@pytest.mark.parametrize("flags", [(), ("-OO",)], ids=["", "-OO"])
@pytest.mark.parametrize(("block", "shown"), SHOWN)
def test_pages_show_what_its_examples_print(block: str, shown: str, flags: tuple[str, ...]) -> None:
    skip_without(block)
    done = finished(*flags, "-c", block)
    if "which has no VNNI: they run as" in done.stderr:
        pytest.skip("without VNNI these weights run in another way, as it says")
    # Which kernel runs, and so how weights are packed, is the machine's business.
    own = re.compile(r"implementation|wei |scratchpad|note  ")

    def common(lines: str) -> list[str]:
        return [line for line in lines.splitlines() if not own.search(line)]

    assert common(done.stdout) == common(shown)


def test_commands_on_a_model_do_what_the_page_says(tmp_path: Path) -> None:
    """On the model of the page: they find nothing wrong, write their files, print what is shown."""
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    page = (ROOT / "docs" / "onnx_models.md").read_text()
    whole = page[page.index("## A whole model") :]
    (block, *_) = re.findall(r"```python\n(.*?)```", whole, re.DOTALL)
    (console, *_) = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    run("-c", block + 'onnx.save(model, "model.onnx"); np.savez("x.npz", x=x)', folder=tmp_path)
    commands = [part.partition("\n") for part in console.split("$ ")[1:]]
    assert {line.split()[1] for line, _, _ in commands} == {"explain", "run", "diff", "bench"}
    for line, _, shown in commands:
        program, *words = shlex.split(line, comments=True)
        assert program == "pyonednn-q"
        printed = run("-m", "pyonednn_q", *words, folder=tmp_path)
        written = [each for flag, each in pairwise(words) if flag in {"--html", "--output"}]
        assert all((tmp_path / name).stat().st_size for name in written)
        assert bool(printed) == ("--output" not in words)
        assert shown in {"", printed}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(example: Path) -> None:
    assert run(str(example))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_print_what_they_show(notebook: Path, tmp_path: Path) -> None:
    """Cells run in order, in one process; marks between them tell their outputs apart."""
    cells = [
        each for each in json.loads(notebook.read_text())["cells"] if each["cell_type"] == "code"
    ]
    mark = "<end of a cell>"
    code = "".join(f"{''.join(each['source'])}\nprint({mark!r})\n" for each in cells)
    skip_without(code)
    skip_without_files(code)
    printed = run("-c", code, folder=tmp_path).split(f"{mark}\n")
    shown = ["".join("".join(out["text"]) for out in each["outputs"]) for each in cells]
    # What was measured is the machine's business.
    here = re.compile(r"^here: .*$", re.MULTILINE)
    assert [here.sub("here", each) for each in printed] == [
        here.sub("here", each) for each in [*shown, ""]
    ]
    assert any(shown)


def test_there_are_examples() -> None:
    assert NOTEBOOKS
    assert BLOCKS
    assert len(SHOWN) >= 2
    assert EXAMPLES
