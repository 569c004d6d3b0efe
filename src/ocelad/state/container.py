"""The bytes of a file, and of a record.

    file   = magic and version, options, record;
    record = entries, arrays one after the other, CRC-32 of all before it.

Options and entries are sections: a length, a JSON object in one way of writing it, and spaces up to a multiple of
eight bytes. Among the entries is a table of the arrays, which are little-endian and not compressed. So there is
one way to write given contents, and nothing can inflate.
"""

from __future__ import annotations

import math
import struct
import zlib
from functools import lru_cache
from typing import Any

import numpy as np

from . import header

Arrays = dict[str, np.ndarray[Any, Any]]
Pieces = list[bytes | memoryview]
"""Bytes in pieces, so that arrays are not copied."""

SHORT = 1024
"""Entries whose text is not longer are kept once they are read: those of a fleet are much alike."""

VERSION = 2
MAGIC = b"\x93OCELAD"
DTYPES = {code: np.dtype("<" + code) for code in ("f8", "f4", "i8", "u1")}

_WORD = struct.Struct("<I")


def write_file(options: bytes, entries: dict[str, Any], arrays: Arrays) -> Pieces:
    return write_record(entries, arrays, MAGIC + bytes([VERSION]) + _section(options))


def write_record(entries: dict[str, Any], arrays: Arrays, before: bytes = b"") -> Pieces:
    """Entries and arrays, after what comes before them."""
    plain = {name: np.ascontiguousarray(array, DTYPES[_code(array)]) for name, array in arrays.items()}
    table = [[name, _code(array), list(array.shape)] for name, array in plain.items()]
    pieces: Pieces = [before + _section(header.to_json({**entries, "arrays": table}))]
    for array in plain.values():
        pieces += [array.reshape(-1).view(np.uint8).data, b"\0" * (-array.nbytes % 8)]
    crc = 0
    for piece in pieces:
        crc = zlib.crc32(piece, crc)
    return [*pieces, _WORD.pack(crc)]


def _code(array: np.ndarray[Any, Any]) -> str:
    return f"{array.dtype.kind}{array.dtype.itemsize}"


def _section(text: bytes) -> bytes:
    return _WORD.pack(len(text)) + text + b" " * (-(len(text) + 4) % 8)


def read_file(data: memoryview, limit: int) -> tuple[bytes, dict[str, Any], Arrays]:
    """The text of the options, and the record's entries and arrays."""
    start = len(MAGIC) + 1
    if bytes(data[: start - 1]) != MAGIC or len(data) < start + 8:
        raise ValueError("it is not a file that ocelad.save wrote, or its beginning is damaged")
    check_sum(data)
    if (version := data[start - 1]) != VERSION:
        raise ValueError(f"it has format version {version}; this ocelad reads versions 1 and {VERSION}")
    text, record = _read_section(data[start:-4], limit)
    return text, *_read_record(record, limit)


def read_record(data: memoryview, limit: int) -> tuple[dict[str, Any], Arrays]:
    """Entries and arrays."""
    check_sum(data)
    return _read_record(data[:-4], limit)


def check_sum(data: memoryview) -> None:
    """Whether a file or a record is as it was written."""
    if _WORD.pack(zlib.crc32(data[:-4])) != data[-4:]:
        raise ValueError("its checksum does not match: a byte has changed, or the file was cut short")


def _read_record(data: memoryview, limit: int) -> tuple[dict[str, Any], Arrays]:
    """Arrays are views: nothing is allocated by what the table claims."""
    text, data = _read_section(data, limit)
    entries, table, flat = _contents(text) if len(text) <= SHORT else _parsed(text)
    if not flat:
        entries, table, _ = _parsed(text)  # what is nested may be changed
    arrays, at = Arrays(), 0
    for name, dtype, shape, nbytes in table:
        end = at + nbytes
        if end > len(data):
            raise ValueError(f"array {name} claims shape {shape}, more than there are bytes")
        arrays[name] = np.ndarray(shape, dtype, data, at)
        at = end + -end % 8
        if at > end and data[end:at].tobytes().strip(b"\0"):
            raise ValueError(f"array {name} is not followed by zeros")
    if at != len(data):
        raise ValueError(f"it has {len(data) - at} bytes besides its arrays")
    return dict(entries), arrays


def _parsed(text: bytes) -> tuple[dict[str, Any], list[tuple[str, Any, tuple[int, ...], int]], bool]:
    """The entries; of each array the name, the dtype, the shape and the number of bytes; and whether the entries
    have nothing within them."""
    entries = header.from_json(text)
    table = entries.pop("arrays", None)
    lines = isinstance(table, list) and all(map(_is_line, table))
    if not lines or len({name for name, _, _ in table}) < len(table):
        raise ValueError("its table of arrays must have a name, a dtype and a shape for each")
    sizes = [DTYPES[code].itemsize * math.prod(shape) for _, code, shape in table]
    plain = [(name, DTYPES[code], tuple(shape)) for name, code, shape in table]
    flat = not any(isinstance(value, (dict, list)) for value in entries.values())
    return entries, [(*line, size) for line, size in zip(plain, sizes, strict=True)], flat


_contents = lru_cache(maxsize=256)(_parsed)


def _is_line(line: Any) -> bool:
    """Whether this is [name, dtype, shape]."""
    kinds = [type(entry) for entry in line] if type(line) is list else []
    if kinds != [str, str, list] or line[1] not in DTYPES or len(line[2]) > 3:
        return False
    return all(type(size) is int and 0 <= size < 2**40 for size in line[2])


def _read_section(data: memoryview, limit: int) -> tuple[bytes, memoryview]:
    """The text of a section, and what comes after it."""
    size = _WORD.unpack_from(data)[0] if len(data) >= 4 else len(data)
    end = 4 + size + -(4 + size) % 8
    if end > len(data) or data[4 + size : end].tobytes().strip(b" "):
        raise ValueError("its sections are not as ocelad.save writes them")
    header.check_length(size, limit)
    return bytes(data[4 : 4 + size]), data[end:]
