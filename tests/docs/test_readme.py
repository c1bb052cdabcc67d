"""What the documents show runs, as they show it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{index}")
    for page in PAGES
    for index, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_run(block: str) -> None:
    assert run("-c", block)


SHOWN = [
    shown
    for page in ("README.md", "docs/calls.md", "docs/fake_quantize.md", "docs/quantize.md")
    for shown in re.findall(
        r"```python\n(.*?)```(?:(?!```).)*```text\n(.*?)```", (ROOT / page).read_text(), re.DOTALL
    )
]


@pytest.mark.parametrize("flags", [(), ("-O",), ("-OO",)], ids=["", "-O", "-OO"])
@pytest.mark.parametrize(("block", "shown"), SHOWN)
def test_pages_show_what_its_examples_print(block: str, shown: str, flags: tuple[str, ...]) -> None:
    printed = run(*flags, "-c", block)
    # Which kernel runs, and so how weights are packed, is the machine's business.
    own = re.compile(r"implementation|wei |scratchpad|note  ")

    def common(lines: str) -> list[str]:
        return [line for line in lines.splitlines() if not own.search(line)]

    assert common(printed) == common(shown)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(example: Path) -> None:
    assert run(str(example))


def test_there_are_examples() -> None:
    assert BLOCKS
    assert len(SHOWN) >= 2
    assert EXAMPLES
