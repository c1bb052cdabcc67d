"""inspection: what ran for a call, at which cost, and why nothing better did."""

from __future__ import annotations
