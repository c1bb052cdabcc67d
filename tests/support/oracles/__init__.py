"""Other runtimes, asked live: models written for one operator, and their answers."""

from __future__ import annotations
