"""Files of version 1, which ocelad 0.1.0 wrote: a zip archive of a JSON header and .npy arrays, stored as they
are, whose comment is the SHA-256 of all before it. They are read, not written."""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from typing import Any

import numpy as np

from ..engine.checks import LEVEL, split, take
from ..protocols import Array
from . import contents, header
from .container import DTYPES, Arrays
from .contents import prefixed, split_off

_RECORD = struct.Struct("<4sHHHHHLLLHH")
_SEAL = 64  # length of the checksum, in hexadecimal digits
_MOST = 24  # members, each with a name of at most 32 letters
_encode = json.JSONEncoder(sort_keys=True, allow_nan=False).encode  # with spaces after commas and colons
_NPY = re.compile(r"\{'descr': '<(f8|i8)', 'fortran_order': False, 'shape': \(([0-9, ]{0,60})\), \} *\n")


def read(data: memoryview, limit: int) -> tuple[str, dict[str, Any], Arrays]:
    """The estimator's name, and entries and arrays under today's names."""
    if hashlib.sha256(data[:-_SEAL]).hexdigest().encode("ascii") != data[-_SEAL:]:
        raise ValueError("its checksum does not match: a byte has changed, or the file was cut short")
    members = _members(data)
    text = members.pop("header.json", None)
    if text is None:
        raise ValueError("it has no header.json")
    header.check_length(len(text), limit)
    entries = header.from_json(bytes(text), _encode)
    if entries.pop("format", None) != "ocelad" or entries.pop("version", None) != 1:
        raise ValueError("its header does not say that it is a file of ocelad, version 1")
    arrays = {name.removesuffix(".npy"): _array(name, view) for name, view in members.items()}
    estimator, entries = header.estimator(entries), _upgraded_entries(entries)
    learned, others = split_off("learned.", arrays)
    if learned:
        learned = _upgraded_arrays(entries.get("learned"), learned, limit)
        return estimator, entries, others | prefixed("learned.", learned)
    return estimator, entries, _upgraded_arrays(entries, arrays, limit)


def _members(data: memoryview) -> dict[str, memoryview]:
    """Views of the archive: nothing is allocated by what it claims."""
    members: dict[str, memoryview] = {}
    at = 0
    while data[at : at + 4].tobytes() == b"PK\3\4" and at + _RECORD.size <= len(data):
        fields = _RECORD.unpack_from(data, at)
        flags, method, stored, size, letters, extra = fields[2], fields[3], *fields[7:]
        start = at + _RECORD.size + letters
        if letters > 32 or len(members) == _MOST:
            raise ValueError(f"it has a member with a name of {letters} letters, or more than {_MOST} members")
        name = bytes(data[at + _RECORD.size : start]).decode("ascii", "backslashreplace")
        if method or flags or extra or stored != size:
            raise ValueError(f"member {name} is compressed or encrypted: members must be stored as they are")
        if start + size > len(data):
            raise ValueError(f"member {name} claims {size} bytes, more than there are")
        if name in members:
            raise ValueError(f"member {name} is there twice")
        members[name] = data[start : start + size]
        at = start + size
    return members


def _array(name: str, data: memoryview) -> np.ndarray[Any, Any]:
    """The array of an .npy file, version 1.0, as a read-only view of it."""
    start = 10 + (struct.unpack_from("<H", data, 8)[0] if len(data) >= 10 else 0)
    match = _NPY.fullmatch(bytes(data[10:start]).decode("ascii", "replace"))
    if match is None or bytes(data[:8]) != b"\x93NUMPY\1\0":
        raise ValueError(f"member {name} is not an .npy array, version 1.0, of <f8 or <i8 in C order")
    shape = tuple(map(int, re.findall(r"\d+", match[2])))
    if 8 * math.prod(shape) != len(data) - start or len(shape) > 3 or max(shape, default=0) >= 2**31:
        raise ValueError(f"member {name} claims shape {shape}, but has {len(data) - start} bytes of data")
    return np.ndarray(shape, DTYPES[match[1]], buffer=data, offset=start)


def _upgraded_entries(entries: Any) -> Any:
    """Entries under today's names: options that belong to a step, or to intervals, had names of their own, and no
    tracker had a history."""
    if not isinstance(entries, dict):
        return entries
    entries = {name: _upgraded_entries(value) for name, value in entries.items()}
    if "given" in entries:
        entries["history"] = None
    if not {"weights", "step", "base"} <= entries.keys():
        return entries
    if not {"threshold_step", "step_cap", "start", "order"} <= entries.keys():
        raise ValueError("its options are not those of version 1")
    entries["memory"] = None  # there were no pools
    order, weights = entries.pop("order"), entries["weights"]
    if isinstance(weights, dict) and weights.get("part") == "OceladWeights":
        weights["order"] = order
    elif order != "before":
        raise ValueError("it has order='after', which only OceladWeights has now")
    step, threshold, capped = entries["step"], entries.pop("threshold_step"), entries.pop("step_cap")
    if (threshold, capped) != (0.1, False):
        entries["step"] = {"part": "Step", "size": step, "threshold": threshold, "capped": capped}
    start = entries.pop("start")
    if start != "fresh":
        entries["base"] = {"part": "Intervals", "base": entries["base"], "start": start}
    return entries


_TERMS = 48  # that a level had at most
_WAITING = {"ranks", "rows", "counts", "term_weights", "eigenvalues", "sigma"}
_BY_LEVEL = ("losses", "mu", "discarded", "ranks", "sigma", "debt", "counts", "since", "touched")


def _upgraded_arrays(entries: Any, arrays: Arrays, limit: int) -> Arrays:
    """The arrays of a tracker under today's names: what there is for each level was in arrays of its own."""
    if "mu" not in arrays or "state" not in arrays:
        return arrays
    arrays, state = _diagonalised(arrays), arrays["state"]
    table = [arrays[name] for name in _BY_LEVEL if name in arrays] + list(state.T if state.ndim == 2 else [state])
    if state.ndim != 2 or table[0].ndim != 1 or len({column.shape for column in table}) != 1:
        raise ValueError(f"{', '.join(_BY_LEVEL)} and state must have as many rows as there are levels")
    fresh = {"levels": np.column_stack(table)}
    if "rows" in arrays:
        rows, s = arrays["rows"], arrays.get("eigenvalues")
        if s is None or rows.ndim != 2 or s.shape != rows.shape[:1]:
            raise ValueError("rows must have one row for each of eigenvalues")
        fresh["columns"] = np.column_stack([s, rows])
    gone = {*_BY_LEVEL, "state", *(("rows", "eigenvalues") if "rows" in arrays else ())}
    first = {name: arrays[name] for name in ("origin", "preprocessor", "given") if name in arrays}
    arrays = first | fresh | {name: array for name, array in arrays.items() if name not in gone}
    return arrays if "matrices" in arrays else _as_boxes(entries, arrays, len(first), limit)


def _as_boxes(entries: Any, arrays: Arrays, first: int, limit: int) -> Arrays:
    """There were kernels for order='after', too: what they have learned, as it is for black boxes."""
    options = entries.get("options") if isinstance(entries, dict) else None
    if not isinstance(options, dict) or not isinstance(weights := options.get("weights"), dict):
        return arrays
    if weights.get("order") != "after":
        return arrays
    before = header.to_json({**options, "weights": {**weights, "order": "before"}})
    learned = {name: entries[name] for name in entries if name != "options"}
    engine = contents.rebuild(before, learned, arrays, limit)._fitted()
    table, fields, n = engine.snapshot()["levels"], len(engine.weights.fields), engine.recipe.n
    if 80 * len(table) * n * n > limit:
        raise ValueError(f"a tracker of {n} features with {len(table)} levels may take more than {limit} bytes")
    levels = np.hstack([table[:, : len(LEVEL)], table[:, -fields:]])
    matrices = np.array([metric.M for metric in engine.metrics()])
    return {name: arrays[name] for name in list(arrays)[:first]} | {"levels": levels, "matrices": matrices}


def _diagonalised(learned: Arrays) -> Arrays:
    """Without ``terms``, which wide unregularised trackers had not added to their eigenpairs yet."""
    if "terms" not in learned:
        return learned
    if not learned.keys() >= _WAITING or (learned["rows"].ndim, learned["ranks"].ndim) != (2, 1):
        raise ValueError(f"its arrays are {', '.join(learned)}, expected {', '.join(sorted(_WAITING))} with terms")
    n = learned["rows"].shape[1]
    ranks = take(learned, "ranks", learned["ranks"].shape, np.int64)
    counts = take(learned, "counts", ranks.shape, np.int64)
    if not ((ranks >= 0) & (ranks <= n) & (counts >= 0) & (counts <= _TERMS)).all():
        raise ValueError("ranks or counts has entries that cannot be")
    total, sizes = int(ranks.sum()), counts * ranks
    parts = zip(
        split(take(learned, "rows", (total, n)), ranks),
        split(take(learned, "eigenvalues", (total,)), ranks),
        split(take(learned, "terms", (int(sizes.sum()),)), sizes),
        split(take(learned, "term_weights", (int(counts.sum()),)), counts),
        take(learned, "sigma", ranks.shape),
        strict=True,
    )
    done = [_diagonal(Q, s, L.reshape(len(a), len(s)), a, sigma) for Q, s, L, a, sigma in parts]
    fresh = {
        "ranks": np.array([len(s) for s, _ in done]),
        "rows": np.concatenate([Q for _, Q in done]),
        "eigenvalues": np.concatenate([s for s, _ in done]),
    }
    return {k: fresh.get(k, v) for k, v in learned.items() if k not in ("counts", "terms", "term_weights")}


def _diagonal(Q: Array, s: Array, L: Array, a: Array, sigma: float) -> tuple[Array, Array]:
    """The eigenpairs of Q' (diag(s) + L' diag(a) L) Q, without those that are as the rest if that is 0."""
    with np.errstate(all="ignore"):
        M = np.diag(s) + (L.T * a) @ L
    if not np.isfinite(M).all():
        raise ValueError("terms must be finite, and so must be their products")
    values, V = np.linalg.eigh(M)
    kept = (values > 1e-14 * len(s) * max(float(values.max(initial=0.0)), 0.0)) | (sigma > 0.0)
    return np.maximum(values[kept], 0.0), V[:, kept].T @ Q
