"""Values of a configuration by their path: what they must be, or an error that names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyonednn_q.argument import flag, real, whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize.placement import scoped
from pyonednn_q.shown import shown

__all__ = ["boolean", "check_keys", "count", "mapping", "number", "scope_texts"]

Section = dict[str, Any]


def mapping(at: str, value: object) -> Section:
    """Return a section as a new dictionary."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ArgumentError(at, shown(value), "an object of JSON: a mapping")
    return dict(value)


def check_keys(at: str, section: Section, keys: set[str]) -> None:
    """Refuse keys that a section has not."""
    for key in section:
        if key not in keys:
            argument, wanted = f"{at}.{key[:60]}", f"one of {', '.join(sorted(keys))}"
            raise ArgumentError(argument, "an unknown key", wanted)


def boolean(at: str, section: Section, key: str, *, default: bool) -> bool:
    """Return a flag of a section."""
    value = section.get(key, default)
    flag(f"{at}.{key}", value)
    return bool(value)


def count(at: str, section: Section, key: str, default: int) -> int:
    """Return a whole number of a section, at least 0."""
    value, argument = section.get(key, default), f"{at}.{key}"
    if isinstance(value, bool):
        raise ArgumentError(argument, shown(value), "an integer")
    return whole(argument, value, lo=0)


def number(at: str, section: Section, key: str, default: float) -> float:
    """Return a number of a section, at least 0."""
    value, argument = section.get(key, default), f"{at}.{key}"
    if isinstance(value, bool) or real(argument, value) < 0.0:
        raise ArgumentError(argument, shown(value), "a number of at least 0")
    return float(value)


def scope_texts(at: str, value: object) -> tuple[str, ...]:
    """Return scopes: one, or a list."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise ArgumentError(at, shown(value), "a scope, or a list of scopes")
    try:
        scoped("", texts)
    except ArgumentError as error:
        raise ArgumentError(at, error.got, error.wanted) from None
    return tuple(texts)
