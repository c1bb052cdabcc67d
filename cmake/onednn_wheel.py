"""Print the include directory of the installed onednn-devel wheel, or nothing.

The wheel has no CMake package, but pip keeps a record of its files. Run by cmake/OneDNN.cmake with
the Python that the extension is built for.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path


def include_directory() -> Path | None:
    """Directory that holds ``oneapi/dnnl/dnnl.h``."""
    try:
        recorded = files("onednn-devel") or []
    except PackageNotFoundError:
        return None
    for file in recorded:
        if file.parts[-3:] == ("oneapi", "dnnl", "dnnl.h"):
            header = Path(str(file.locate())).resolve()
            return header.parents[2] if header.exists() else None
    return None


print(include_directory() or "")
