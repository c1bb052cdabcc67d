"""Where the faults of the guard table end: for each condition what matches, and what does not."""

from __future__ import annotations
