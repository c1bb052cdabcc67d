"""ops: the calls a user makes, on what the rooms below prepare."""

from __future__ import annotations
