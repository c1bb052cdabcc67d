"""Any value as a short text, for messages: short and cheap, whatever the value.

A message is about what a caller passed, which may be a million numbers, a text without end, or an
object whose own ``__repr__`` raises.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

__all__ = ["LONGEST", "install", "meant", "package_version", "shortened", "shown"]

LONGEST = 500  # characters of a message

_CUT = " ... "
_ITEMS = 6  # of a container that is shown
_LETTERS = 60  # of a text that is shown
_BITS = 128  # of an integer that is shown
_PLAIN: set[Any] = {bool, float, complex, type(None), type(...)}
_TEXTS: set[Any] = {str, bytes, bytearray}
_BRACKETS: dict[Any, str] = {list: "[]", tuple: "()", dict: "{}", set: "{}", frozenset: "{}"}


def shown(value: object, depth: int = 2) -> str:
    """Return a value as a short text.

    Only what Python and NumPy define is asked for its text, and of that only the beginning.

    Parameters
    ----------
    value : object
        Anything at all.
    depth : int
        Number of nested containers to look into.

    Examples
    --------
    >>> shown([1, 2.5, None]), shown(range), shown(object()), shown(10**1000)
    ('[1, 2.5, None]', 'the class range', 'an object', 'an integer of 3322 bits')
    >>> shown(list(range(1000))), shown({"a": [[[]]]}), shown("x" * 1000)[-8:]
    ('[0, 1, 2, 3, 4, 5, ... 1000 items]', "{'a': [[...]]}", "xxxx...'")
    """
    # By what a value is, never by what it says that it is.
    thing: Any = value
    kind: Any
    for kind in type(thing).__mro__:
        if kind in _PLAIN:
            return str(kind.__repr__(thing))
        if kind is int:
            bits = int.bit_length(thing)
            return int.__repr__(thing) if bits <= _BITS else f"an integer of {bits} bits"
        if kind in _TEXTS:
            text = repr(kind.__getitem__(thing, slice(_LETTERS)))
            return text if kind.__len__(thing) <= _LETTERS else f"{text[:-1]}...{text[-1]}"
        if kind in _BRACKETS:
            return _items(thing, kind, depth)
        if kind is type:
            return f"the class {shortened(type.__getattribute__(thing, '__name__'), _LETTERS)}"
        if kind.__module__ == "numpy" and kind.__name__ in {"ndarray", "generic", "dtype"}:
            return _of_numpy(thing, kind)
    return _one(type(thing).__name__)


def shortened(text: object, length: int) -> str:
    """Return a text of at most that many characters: what is too long loses its middle.

    Examples
    --------
    >>> shortened("one, two, three, four, five", 20)
    'one, two,  ...  five'
    """
    whole = str(text) if type(text) is str else shown(text)
    if len(whole) <= length:
        return whole
    tail = length // 4
    return whole[: length - tail - len(_CUT)] + _CUT + whole[len(whole) - tail :]


def printable(text: str) -> str:
    r"""Return a text on one line, whose other unprintable characters are written as escapes.

    Names in files are anybody's: a terminal does what such characters say.

    Examples
    --------
    >>> print(printable("conv\x1b[31m 1\n2"))
    conv\x1b[31m 1 2
    """
    if text.isprintable():
        return text
    line = " ".join(text.split())
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in line
    )


def meant(word: str, names: Iterable[str]) -> str:
    """Return the name that a word was probably meant to be, as a question; else nothing.

    Examples
    --------
    >>> meant("resnet51", ["resnet50", "bert_base"]), meant("x", ["resnet50"])
    (' (did you mean resnet50?)', '')
    >>> meant("gelu", ["elu", "gelu_erf", "gelu_tanh"])
    ' (did you mean gelu_erf or gelu_tanh?)'
    """
    import difflib

    words = word[:_LETTERS]
    begun = [name for name in names if words and name.startswith(f"{words}_")]
    near = begun[:3] or difflib.get_close_matches(words, list(names), 1)
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _one(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {shortened(name, _LETTERS)}"


def _items(value: Any, kind: Any, depth: int) -> str:  # noqa: ANN401
    left, right = tuple(_BRACKETS[kind])
    count = kind.__len__(value)
    if count and not depth:
        return f"{left}...{right}"
    items = islice(kind.__iter__(value), _ITEMS)
    texts = [shown(item, depth - 1) for item in items]
    if kind is dict:
        values = islice(dict.values(value), _ITEMS)
        pairs = zip(texts, values, strict=True)
        texts = [f"{key}: {shown(item, depth - 1)}" for key, item in pairs]
    if count > _ITEMS:
        texts.append(f"... {count} items")
    return left + ", ".join(texts) + ("," if kind is tuple and count == 1 else "") + right


def _of_numpy(value: Any, kind: Any) -> str:  # noqa: ANN401
    """Name an array by shape and type, unless it is small; a scalar or a type by its text."""
    if kind.__name__ != "ndarray":
        is_short = kind.__name__ == "dtype" or value.dtype.kind in "biufcmM"
        return shortened(repr(value), _LETTERS) if is_short else _one(type(value).__name__)
    shape, dtype = kind.shape.__get__(value), kind.dtype.__get__(value)
    is_small = kind.size.__get__(value) <= _ITEMS and len(shape) <= 2 and dtype.kind in "biufc"
    if is_small and type(value) is kind:
        return " ".join(repr(value).split())
    name = "an array" if type(value) is kind else _one(type(value).__name__)
    return f"{name} {shortened(str(shape), _LETTERS)} of {shortened(str(dtype), _LETTERS)}"


def install(extra: str) -> str:
    """Return the command that installs what an extra needs, for a message.

    It names the packages, not the extra: that works wherever this package came from, be it a
    checkout, a file or an index. Sources that were never installed are named by their place.

    Examples
    --------
    >>> install("demo").startswith("pip install ")
    True
    """
    import re
    from importlib.metadata import PackageNotFoundError, requires
    from pathlib import Path

    try:
        lines = [line.partition(";") for line in requires("pyonednn_q") or ()]
    except PackageNotFoundError:
        lines = []
    wanted = re.compile(rf"""\bextra *== *["']{extra}["']""")
    names = [name.strip() for name, _, marker in lines if wanted.search(marker)]
    if not names:
        return f"pip install '{Path(__file__).parents[2]}[{extra}]'"
    return f"pip install {' '.join(name if name.isidentifier() else repr(name) for name in names)}"


def package_version() -> str:
    """Return the version of this package, as it was installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pyonednn_q")
    except PackageNotFoundError:  # run from the sources, never installed
        return "0+uninstalled"
