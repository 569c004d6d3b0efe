"""Messages between the processes of the service: JSON, and arrays as they are in memory.

    frame = length of the JSON (4 bytes) | length of the blobs (4 bytes) | JSON | blobs,

the JSON being [message, [length of each blob]]. Nothing that is read can be executed.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

_HEAD = struct.Struct(">II")


class Frame(NamedTuple):
    """A message, and the bytes that go with it."""

    message: dict[str, Any]
    blobs: list[bytes]


def packed(message: dict[str, Any], blobs: list[bytes] | None = None) -> bytes:
    """A message as bytes.

    >>> Frames().feed(packed({"t": 3}, [b"abc", b"d"]))
    [Frame(message={'t': 3}, blobs=[b'abc', b'd'])]
    """
    blobs = blobs or []
    text = json.dumps([message, [len(blob) for blob in blobs]], separators=(",", ":")).encode()
    return b"".join([_HEAD.pack(len(text), sum(map(len, blobs))), text, *blobs])


class Frames:
    """Puts messages together again, however the bytes come."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The messages that are complete with these bytes."""
        self._bytes += data
        found, start = [], 0
        while len(self._bytes) - start >= _HEAD.size:
            text, rest = _HEAD.unpack_from(self._bytes, start)
            begin = start + _HEAD.size
            if len(self._bytes) < begin + text + rest:
                break
            message, lengths = json.loads(self._bytes[begin : begin + text])
            blobs, at = [], begin + text
            for length in lengths:
                blobs.append(bytes(self._bytes[at : at + length]))
                at += length
            start = begin + text + rest
            found.append(Frame(message, blobs))
        del self._bytes[:start]
        return found
