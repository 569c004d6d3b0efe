"""Files for tests: honest ones, and ones with the checksum mended as a careful forger would."""

import hashlib
import io
import json
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np

import ocelad
from ocelad.engine import stack_engine
from ocelad.state import container, contents

LEVELS = ["loss", "mu", "discarded", "rank", "sigma", "debt", "count", "since", "touched"]
"""The columns of ``levels``: three for black boxes, two more for stacks, four more with dictionaries."""


def file_of(tracker, path):
    ocelad.save(tracker, path)
    return path.read_bytes()


def through_file(tracker, path):
    written = file_of(tracker, path)
    again = ocelad.load(path)
    assert file_of(again, path) == written
    return again


def assert_memory_within_the_limit(path):
    """The smallest limit under which a file is read is more than what reading it takes."""
    low, high = 0, 2**32
    while high - low > 1:
        middle = (low + high) // 2
        try:
            ocelad.load(path, limit=middle)
            high = middle
        except ocelad.FileError:
            low = middle
    tracemalloc.start()
    ocelad.load(path, limit=high)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= high + 2**18
    assert high < 60 * max(peak, 2**18)  # the bound is not idle


def dictionaries_from(monkeypatch, n):
    """From n features on there are dictionaries; engines that other tests have made are not used."""
    monkeypatch.setattr(stack_engine, "DICTIONARY", n)
    monkeypatch.setattr(stack_engine, "DICTIONARY_FULL", n)
    monkeypatch.setattr(contents, "_NEW", {})


# Files of today's format


def resealed(data):
    """With the checksum that it should have."""
    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4]))


def parts(data):
    """Options, entries and arrays."""
    text, entries, arrays = container.read_file(memoryview(data), 2**30)
    return json.loads(text), entries, {name: np.array(array) for name, array in arrays.items()}


def joined(options, entries, arrays):
    return b"".join(container.write_file(compact(options), entries, arrays))


def compact(entries):
    return json.dumps(entries, sort_keys=True, separators=(",", ":")).encode()


def forged(data, change):
    """With other options, entries or arrays."""
    found = parts(data)
    change(*found)
    return joined(*found)


def put(value, *path):
    """A change: a value for an entry, or for an array, which a function may make of the array there was."""

    def change(options, entries, arrays):  # noqa: ARG001
        place = arrays if isinstance(value, np.ndarray) or callable(value) else entries
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value(place[path[-1]]) if callable(value) else value

    return change


def option(name, value):
    return lambda options, entries, arrays: options.update({name: value})  # noqa: ARG005


def column(name, forge):
    """A change of a column of ``levels``; a number is that of the weights' state."""

    def change(options, entries, arrays):  # noqa: ARG001
        levels = arrays["levels"]
        if isinstance(name, int):
            first = 3 if "matrices" in arrays else 9 if "dictionary" in arrays else 5
            levels[:, first + name] = forge(levels[:, first + name])
        else:
            levels[:, LEVELS.index(name)] = forge(levels[:, LEVELS.index(name)])

    return change


def last(value):
    """Another last number."""
    return lambda a: np.append(a[:-1], value)


def sections(data):
    """The text of the options, that of the entries, and all bytes from there to the checksum."""
    texts, rest = [], data[8:-4]
    for _ in range(2):
        (size,) = struct.unpack_from("<I", rest)
        texts.append(rest[4 : 4 + size])
        rest = rest[4 + size + -(4 + size) % 8 :]
    return *texts, rest


def of_sections(options, entries, rest):
    """The file of these texts and bytes, whatever they are."""
    start = container.MAGIC + bytes([container.VERSION])
    texts = [struct.pack("<I", len(text)) + text + b" " * (-(4 + len(text)) % 8) for text in (options, entries)]
    return resealed(start + b"".join(texts) + rest + bytes(4))


def rewritten(data, change):
    """With other bytes in place of the text of its entries."""
    options, entries, rest = sections(data)
    return of_sections(options, change(entries), rest)


def with_entries(path, **changes):
    """With other options, where there are some of that name, or entries."""
    options, entries, arrays = parts(path.read_bytes())
    for name, value in changes.items():
        (options if name in options and name != "scale" else entries)[name] = value
    return joined(options, entries, arrays)


# Files of 0.1.0


def zip_members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zip_resealed(data):
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


def zip_of(members, compression=zipfile.ZIP_STORED):
    """An archive of these members, as a careful forger would write it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, compression)
        archive.comment = b"0" * 64
    return zip_resealed(file.getvalue())


def zip_with_entries(members, **changes):
    header = json.loads(members["header.json"])
    for name, value in changes.items():
        (header["options"] if name in header["options"] and name != "scale" else header)[name] = value
    return zip_of(members | {"header.json": json.dumps(header, sort_keys=True).encode()})


def npy(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), **options)
    return file.getvalue()
