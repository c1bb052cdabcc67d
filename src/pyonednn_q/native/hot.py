"""HotCallable: what is called often, and skips Python where arrays fit.

A call ``x(*inputs, residual=None, out=None)`` is ``x._hot(*inputs, residual, out)``, without a
frame of Python. If there is no ``_hot``, or it returns NotImplemented, or the call names anything
else, it is the ``__call__`` of the class, which must mean the same for all arrays and says
``hot=True`` in its class statement. A ``__call__`` that overrides it is always called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyonednn_q.errors import LibraryError
from pyonednn_q.native import runtime

__all__ = ["HotCallable"]

if TYPE_CHECKING:
    from pyonednn_q._core import HotCallable
else:
    try:
        HotCallable = runtime.extension().HotCallable
    except LibraryError:  # said again, and in full, when something is to run

        class HotCallable:
            """Without the extension nothing runs, and nothing has a hot way."""

            _hot = None

            def __init_subclass__(cls, *, hot: bool = False) -> None:
                """Take what the extension takes."""
