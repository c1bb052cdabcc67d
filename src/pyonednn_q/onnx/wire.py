"""Fields of a serialized model, counted in one pass before anything is made of them.

A message of two bytes becomes an object of a hundred: what a parser allocates follows from the
number of fields, not from the size of a file. Packed numbers and raw data are one field each.
"""

from __future__ import annotations

from typing import Any

from pyonednn_q.errors import ArgumentError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types of protobuf
_LONGEST_VARINT = 10

Known = dict[int, Any]  # number of a field: the fields of its message


def fields_of(descriptor: Any) -> Known:  # noqa: ANN401 - protobuf's
    """Return the fields of a message type that hold messages, each with its own fields.

    Parameters
    ----------
    descriptor : google.protobuf.descriptor.Descriptor
        Descriptor of the message type. Types that hold themselves become dicts that hold
        themselves.
    """
    tables: dict[str, Known] = {descriptor.full_name: {}}
    todo = [descriptor]
    while todo:
        message = todo.pop()
        for number, each in message.fields_by_number.items():
            inner = each.message_type
            if inner is None:
                continue
            if inner.full_name not in tables:
                tables[inner.full_name] = {}
                todo.append(inner)
            tables[message.full_name][number] = tables[inner.full_name]
    return tables[descriptor.full_name]


def count_fields(data: bytes, known: Known, most: int) -> int:
    """Return the number of fields of a serialized message, with those of messages within it.

    Parameters
    ----------
    data : bytes
        The message.
    known : dict
        Result of `fields_of`.
    most : int
        Largest number allowed; counting stops there.

    Raises
    ------
    ArgumentError
        Bytes that are no message, or more fields.

    Examples
    --------
    >>> count_fields(bytes([8, 7, 18, 2, 8, 1]), {2: {}}, 10)  # {1: 7, 2: {1: 1}}
    3
    """
    count = 0
    todo = [(0, len(data), known)]
    while todo:
        at, end, messages = todo.pop()
        if count > most:
            break
        while at < end and count <= most:
            count += 1
            key = data[at]  # most keys and lengths have one byte: no call for them
            key, at = (key, at + 1) if key < 128 else _varint(data, at, end)
            wire = key & 7
            if wire == _BYTES:
                length = data[at] if at < end else 128
                length, at = (length, at + 1) if length < 128 else _varint(data, at, end)
                inner = messages.get(key >> 3)
                if length and inner is not None and at + length <= end:
                    todo.append((at, at + length, inner))
                at += length
            elif wire == _VARINT:
                _, at = _varint(data, at, end)
            elif wire in {_FIXED64, _FIXED32}:
                at += 8 if wire == _FIXED64 else 4
            else:
                raise _broken(at)
            if at > end:
                raise _broken(at)
    if count > most:
        wanted = f"at most {most} fields: max_nodes says how many nodes"
        raise ArgumentError("model", "more", wanted)
    return count


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = 0
    for index in range(min(_LONGEST_VARINT, end - at)):
        byte = data[at + index]
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value, at + index + 1
    raise _broken(at)


def _broken(at: int) -> ArgumentError:
    return ArgumentError("model", f"bytes that are no message, at {at}", "an ONNX model")
