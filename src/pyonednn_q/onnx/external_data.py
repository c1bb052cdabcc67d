"""Tensors whose bytes are in files beside the model, never outside of its directory."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from pyonednn_q.errors import ArgumentError
from pyonednn_q.shown import shown

_WANTED = "a file within the model's own directory"


class ExternalData:
    """Files of one model's directory, and how much may still be read of them.

    Parameters
    ----------
    directory : Path or None
        The model's; None where the model came as bytes.
    budget : int
        Bytes, over all tensors: many of them may name the same bytes of one file.
    """

    def __init__(self, directory: Path | None, budget: int) -> None:
        self._directory = None if directory is None else directory.resolve()
        self._left = budget

    def read(self, name: str, entries: Any, nbytes: int) -> bytes:  # noqa: ANN401 - a repeated field
        """Return the bytes of a tensor.

        Parameters
        ----------
        name : str
            The tensor's.
        entries : repeated StringStringEntryProto
            `location`, and `offset` and `length` in bytes if they are said.
        nbytes : int
            Size by dims and type; `length` must be equal.

        Raises
        ------
        ArgumentError
            Another place or length, a file that is not there, or more than may be read.
        """
        said = {each.key: each.value for each in entries}
        argument = f"external data of {shown(name)}"
        if self._directory is None:
            raise ArgumentError(argument, "a model of bytes", "the path of the model")
        offset = _number(argument, said.get("offset", "0"))
        length = _number(argument, said.get("length", str(nbytes)))
        if length != nbytes:
            raise ArgumentError(argument, f"length {length}", f"{nbytes}, as dims and type say")
        if nbytes > self._left:
            raise ArgumentError(argument, f"{nbytes} bytes more", "no more than max_bytes in all")
        path = self._inside(argument, said.get("location", ""))
        try:
            # The last name of a resolved path is no link, and a pipe must not block.
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(handle, "rb") as file:  # noqa: PTH123 - of a handle
                status = os.fstat(handle)
                if not stat.S_ISREG(status.st_mode):
                    raise ArgumentError(argument, shown(path.name), "an ordinary file")
                if offset + length > status.st_size:
                    got = f"{offset} + {length} bytes of {status.st_size}"
                    raise ArgumentError(argument, got, "a range within the file")
                file.seek(offset)
                data = file.read(length)
        except OSError as error:
            raise ArgumentError(argument, f"{path.name}: {error}", _WANTED) from None
        if len(data) != length:
            raise ArgumentError(argument, f"{len(data)} bytes", f"{length}")
        self._left -= length
        return data

    def _inside(self, argument: str, location: str) -> Path:
        assert self._directory is not None
        posix, windows = PurePosixPath(location), PureWindowsPath(location)
        parts = {*posix.parts, *windows.parts}
        is_plain = location and "\0" not in location and ".." not in parts
        if not is_plain or posix.is_absolute() or windows.drive or windows.root:
            raise ArgumentError(argument, shown(location), _WANTED)
        try:
            path = (self._directory / location).resolve(strict=True)
        except (OSError, ValueError, RuntimeError) as error:
            raise ArgumentError(argument, f"{location}: {error}", _WANTED) from None
        if not path.is_relative_to(self._directory):
            raise ArgumentError(argument, f"{location}, a link to elsewhere", _WANTED)
        return path


def _number(argument: str, text: str) -> int:
    # int() of many digits takes quadratic time; no file has 10^18 bytes.
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ArgumentError(argument, shown(text), "offset and length in bytes")
    return int(text)
