"""What is called often, and skips Python where arrays fit: HotCallable, and hot functions."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from pyonednn_q.errors import LibraryError
from pyonednn_q.native import runtime

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["HotCallable", "hot_function", "known_calls"]

if TYPE_CHECKING:

    class HotCallable:
        """A call ``x(*inputs, residual=None, out=None)`` is ``x._hot(*inputs, residual, out)``.

        That is without a frame of Python. If there is no ``_hot``, or it returns NotImplemented, or
        the call names anything else, it is the ``__call__`` of the class, which must mean the same
        for all arrays and says ``hot=True`` in its class statement. A ``__call__`` that overrides
        it is always called.
        """

        _hot: Callable[..., Any] | None

        def __init_subclass__(cls, *, hot: bool = False) -> None: ...

else:
    try:
        HotCallable = runtime.extension().HotCallable
    except LibraryError:  # said again, and in full, when something is to run

        class HotCallable:
            """Without the extension nothing runs, and nothing has a hot way."""

            _hot = None

            def __init_subclass__(cls, *, hot: bool = False) -> None:
                """Take what the extension takes."""


def known_calls() -> Any:  # noqa: ANN401
    """Return a new table of the extension: operators by the calls they were made for, or None.

    None without the extension: nothing runs then, and nothing is known.
    """
    try:
        return runtime.extension().KnownCalls()
    except LibraryError:
        return None


def hot_function(function: Callable[..., Any], kind: object, calls: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Return a function that runs the calls in a table without a frame of Python.

    Parameters
    ----------
    function : callable
        f(src, wei, bias=None, *, out=None, residual=None, operands=None, **options): answers calls
        that the table does not know, and those with operands.
    kind : object
        What the table has such calls under.
    calls : object
        The table, of `known_calls`.

    Returns
    -------
    callable
        It has the function's name, docstring and signature.
    """
    made = runtime.extension().hot_function(function, kind, calls)
    return functools.update_wrapper(made, function)
