"""The bytes of a file: a zip archive of a JSON header and plain arrays, and a checksum of all of it at the end.

    file = a record and the bytes of every member, a directory, an end record, SHA-256 of all that in hex.

To a zip reader the checksum is the archive's comment. There is one way to write given contents: nothing is
compressed, dates are fixed, no field is left to chance. What is not written that way is not read.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

Members = dict[str, list[memoryview]]
"""Each member's bytes, in pieces, so that arrays are not copied."""

SEAL = 64
"""Length of the checksum."""

MOST = 24
"""So many members a file has at most, each with a name of at most 32 letters."""

_RECORD = struct.Struct("<4sHHHHHLLLHH")
_FIRST_OF_1980 = 0x21  # the earliest date that a zip archive knows
_NPY = re.compile(r"\{'descr': '([^']*)', 'fortran_order': (True|False), 'shape': \(([0-9, ]{0,60})\), \} *\n")
_DTYPES = {"<f8": np.dtype("<f8"), "<i8": np.dtype("<i8")}


def body(members: Members) -> Iterator[bytes | memoryview]:
    """The archive piece by piece, up to its checksum."""
    directory, at = b"", 0
    for name, pieces in members.items():
        size, crc = sum(map(len, pieces)), 0
        for piece in pieces:
            crc = zlib.crc32(piece, crc)
        if at + size > 0xF0000000:
            raise ValueError("the state is too large for a file, more than 3.75 GiB")
        record = _RECORD.pack(b"PK\3\4", 20, 0, 0, 0, _FIRST_OF_1980, crc, size, size, len(name), 0)
        yield record + name.encode("ascii")
        yield from pieces
        directory += b"PK\1\2" + struct.pack("<H", 20) + record[4:] + struct.pack("<HHHLL", 0, 0, 0, 0, at)
        directory += name.encode("ascii")
        at += len(record) + len(name) + size
    count = len(members)
    yield directory + struct.pack("<4sHHHHLLH", b"PK\5\6", 0, 0, count, count, len(directory), at, SEAL)


def seal(pieces: Iterable[bytes | memoryview]) -> bytes:
    """The checksum of an archive's body."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest().encode("ascii")


def unpack(data: memoryview) -> dict[str, memoryview]:
    """The members of an archive, as views of it: nothing is allocated by what the archive claims."""
    if data[:4].tobytes() != b"PK\3\4":
        raise ValueError("it is not a file that ocelad.save wrote, or its beginning is damaged")
    if seal([data[:-SEAL]]) != data[-SEAL:]:
        raise ValueError("its checksum does not match: a byte has changed, or the file was cut short")
    members: dict[str, memoryview] = {}
    at = 0
    while data[at : at + 4].tobytes() == b"PK\3\4" and at + _RECORD.size <= len(data):
        fields = _RECORD.unpack_from(data, at)
        flags, method, stored, size, letters, extra = fields[2], fields[3], *fields[7:]
        start = at + _RECORD.size + letters
        if letters > 32 or len(members) == MOST:
            raise ValueError(f"it has a member with a name of {letters} letters, or more than {MOST} members")
        name = bytes(data[at + _RECORD.size : start]).decode("ascii", "backslashreplace")
        if method or flags or extra or stored != size:
            raise ValueError(f"member {name} is compressed or encrypted: members must be stored as they are")
        if start + size > len(data):
            raise ValueError(f"member {name} claims {size} bytes, more than there are")
        if name in members:
            raise ValueError(f"member {name} is there twice")
        members[name] = data[start : start + size]
        at = start + size
    if not all(name.isascii() for name in members) or seal(body(_whole(members))) != data[-SEAL:]:
        raise ValueError("its archive records are not as ocelad.save writes them")
    return members


def _whole(members: Mapping[str, memoryview]) -> Members:
    return {name: [view] for name, view in members.items()}


def _npy_start(code: str, shape: tuple[int, ...]) -> bytes:
    """What an .npy file, version 1.0, says before its data."""
    text = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(11 + len(text)) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode("ascii")


def from_array(array: np.ndarray[Any, Any]) -> list[memoryview]:
    """An array of floats or integers as an .npy file."""
    code = {"f": "<f8", "i": "<i8"}[array.dtype.kind]
    plain = np.ascontiguousarray(array, dtype=code)
    return [memoryview(_npy_start(code, array.shape)), plain.reshape(-1).view(np.uint8).data]


def to_array(name: str, data: memoryview) -> np.ndarray[Any, Any]:
    """The array of an .npy file, as a read-only view of it."""
    start = 10 + (struct.unpack_from("<H", data, 8)[0] if len(data) >= 10 else 0)
    match = _NPY.fullmatch(bytes(data[10:start]).decode("ascii", "replace"))
    if match is None:
        raise ValueError(f"member {name} is not an array in the .npy format, version 1.0")
    code, columns_first, sizes = match.groups()
    if code not in _DTYPES:
        raise ValueError(f"member {name} has dtype {code}, expected one of {', '.join(_DTYPES)}")
    if columns_first == "True":
        raise ValueError(f"member {name} is in Fortran order, expected C order")
    shape = tuple(map(int, re.findall(r"\d+", sizes)))
    if 8 * math.prod(shape) != len(data) - start or len(shape) > 3 or max(shape, default=0) >= 2**31:
        raise ValueError(f"member {name} claims shape {shape}, but has {len(data) - start} bytes of data")
    if data[:start] != _npy_start(code, shape):
        raise ValueError(f"member {name} has an .npy header that is not as ocelad.save writes it")
    return np.ndarray(shape, _DTYPES[code], buffer=data, offset=start)
