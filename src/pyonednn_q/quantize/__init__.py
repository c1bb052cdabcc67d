"""quantize: from ranges to scales, zero points and integer weights."""

from __future__ import annotations
