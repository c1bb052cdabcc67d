"""``pyonednn-q completion``: print a script that lets a shell complete this command.

It needs shtab.

bash  source <(pyonednn-q completion bash)
zsh   pyonednn-q completion zsh > a file _pyonednn-q in a folder of $fpath
tcsh  pyonednn-q completion tcsh > a file to source
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pyonednn_q.errors import ArgumentError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print the script, and return 0."""
    if find_spec("shtab") is None:
        raise ArgumentError("completion", "no shtab", "shtab: pip install 'shtab>=1.7'")
    import shtab

    from pyonednn_q.commands.cli import parser

    tree = parser()
    for action in _actions(tree):
        if action.type is Path:
            vars(action)["complete"] = shtab.FILE  # which shtab reads
    print(shtab.complete(tree, options.shell))
    return 0


def _actions(tree: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    from pyonednn_q.commands.cli import branches

    yield from tree._actions  # noqa: SLF001 - as shtab itself walks a parser
    for branch in branches(tree).values():
        yield from _actions(branch)
