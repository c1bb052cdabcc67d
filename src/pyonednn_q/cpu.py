"""The processor, by the name that people know it by; asked for without anything else at hand."""

from __future__ import annotations

import functools
import platform
from pathlib import Path


@functools.cache
def cpu_name() -> str:
    """Return the model of the CPU, as the kernel tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
