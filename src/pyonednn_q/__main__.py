"""``python -m pyonednn_q``: the same as the command ``pyonednn-q``."""

from __future__ import annotations

from pyonednn_q.commands.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
