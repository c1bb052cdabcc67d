"""Models of these tests run both ways."""

from __future__ import annotations

from support.both_ways import both_ways

__all__ = ["both_ways"]
