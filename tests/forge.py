"""Files for tests: honest ones, and ones with the checksum mended as a careful forger would."""

import io
import json
import tracemalloc
import zipfile

import numpy as np

import ocelad
from ocelad.state import container


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


def sealed(members):
    """An archive of these members, as a careful forger would write it."""
    views = {name: [memoryview(data)] for name, data in members.items()}
    pieces = [bytes(piece) for piece in container.body(views)]
    return b"".join(pieces) + container.seal(pieces)


def resealed(data):
    return data[: -container.SEAL] + container.seal([data[: -container.SEAL]])


def members_of(path):
    return {name: bytes(view) for name, view in container.unpack(memoryview(path.read_bytes())).items()}


def with_header(path, **changes):
    members = members_of(path)
    header = json.loads(members["header.json"])
    for name, value in changes.items():
        (header["options"] if name in header["options"] and name != "scale" else header)[name] = value
    return sealed(members | {"header.json": json.dumps(header, sort_keys=True).encode()})


def with_array(path, name, array):
    pieces = container.from_array(np.asarray(array))
    return sealed(members_of(path) | {f"{name}.npy": b"".join(map(bytes, pieces))})


def npy(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


def zipped(path, compression=zipfile.ZIP_STORED, extra=()):
    """The same members from another writer, and a seal."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in [*members_of(path).items(), *extra]:
            archive.writestr(name, data)
        archive.comment = b"0" * 64
    return resealed(file.getvalue())
