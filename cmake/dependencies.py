"""What a wheel depends on: without a oneDNN inside it needs the one on the index.

A metadata provider of scikit-build-core. The lists are in pyproject.toml, under
``tool.scikit-build.metadata.dependencies``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def dynamic_metadata(
    field: str, settings: Mapping[str, list[str]], _project: Mapping[str, object] | None = None
) -> list[str]:
    """Return the requirements of the wheel that is being built."""
    if field != "dependencies":
        message = f"this is the provider of dependencies, not of {field}"
        raise ValueError(message)
    # The same variable makes cmake/OneDNN.cmake put the library in.
    bundled = bool(os.environ.get("PYONEDNN_Q_BUNDLE"))
    return [*settings["always"], *([] if bundled else settings["without_bundle"])]
