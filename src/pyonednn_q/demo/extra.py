"""The optional extra: scikit-learn, imported by name and only when the demo runs."""

from __future__ import annotations

import importlib
from types import ModuleType

from pyonednn_q.errors import Error


class MissingExtraError(Error, ImportError):
    """A package of the extra `demo` is not installed."""


def load(module: str) -> ModuleType:
    """Import a module of the extra.

    Parameters
    ----------
    module : str
        Dotted name, such as `sklearn.datasets`.

    Returns
    -------
    ModuleType
        Untyped: scikit-learn has no type stubs.

    Raises
    ------
    MissingExtraError
        With the line that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as cause:
        wanted = "the demo needs scikit-learn: pip install 'pyonednn_q[demo]'"
        message = f"{wanted} ({module} cannot be imported: {cause})"
        raise MissingExtraError(message) from cause
