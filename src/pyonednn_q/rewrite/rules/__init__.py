"""One family of rules per file; `catalogue` puts them in order."""

from __future__ import annotations
