"""Read items from what people have: a table, a folder of images, an array of embeddings, texts.

This happens once, when a service first sees its items or their source has changed; `StoredItems` keeps the result.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from ..data.tables import read_rows
from ..label.items import Items, NoNumbers, named_rows, shown_cells
from ..protocols import Array
from .image_folder import IMAGES, find_images
from .items import LARGEST, LONGEST_ID, StoredItems, clean_name, source_digest

ARRAYS = (".npy", ".npz")
SOME = 12
"""How many features are shown of points that have nothing else to show."""


def read_items(
    path: str | None,
    id: str | None = None,
    features: Sequence[str] = (),
    show: Sequence[str] = (),
    points: str | None = None,
    text: str | None = None,
    warnings: list[str] | None = None,
) -> StoredItems:
    """The items of a source.

    Parameters
    ----------
    path
        A table (CSV, JSON lines, Parquet), a folder of images, an array, or None if there are ``points`` alone.
    id, features, show
        Of a table: the column that names items, and patterns of columns to learn from and to show; see
        `ocelad.label.Items`.
    points
        A .npy or .npz file with an array of shape (m, n), a row per item in their order: it has the features.
    text
        The column of a table whose text is shown large; its words are the features (TF-IDF) unless there are
        ``points``.
    warnings
        A list to which is added what was left out, and why.
    """
    digest = source_digest(path, id, features, show, points, text)
    if path is not None and points is None and path.lower().endswith(ARRAYS):
        path, points = None, path
    if features and (points is not None or text is not None):
        raise ValueError(f"--features are columns: they cannot be had with {'--text' if text else '--points'}")
    array = None if points is None else read_array(points)
    if path == "-":
        raise ValueError("items must be a file or a folder, not standard input, to be there at the next start")
    if path is not None and not Path(path).is_dir():
        return _table(path, id, features, show, array, text, digest)
    options = {"--id": id, "--features": features, "--show": show, "--text": text}
    for name, value in options.items():
        if value:
            raise ValueError(f"{name} is for tables, and {path or points} is none")
    if path is not None:
        return _images(path, array, digest, [] if warnings is None else warnings)
    if array is None:
        raise ValueError("items are needed: a table, a folder of images, or --points FILE.npy")
    return _points(points or "", array, digest)


def _table(
    path: str, id: str | None, features: Sequence[str], show: Sequence[str], array: Array | None, text: str | None,
    digest: str,
) -> StoredItems:  # fmt: skip
    with closing(read_rows(path)) as rows:
        if array is None and text is None:
            try:
                items = Items.read(rows, id, features, show)
            except NoNumbers as error:
                others = "--text COLUMN learns from the words of a column, --points FILE.npy from an array"
                raise ValueError(f"{error}; {others}") from None
            names = _unique(items.features, clean_name)
            shown = {"columns": _unique(items.shown, _plain), "cells": items.cells}
            return _stored(path, items.ids, items.points, names, digest, kind="table", scale="features", **shown)
        if text is not None and text not in rows.header:
            raise ValueError(f"{path}: --text: there is no column {text}: there are {', '.join(rows.header)}")
        id, ids, table = named_rows(rows, id)
        look, cells = shown_cells(rows, table, id, show)
        texts = None
        if text is not None:
            place = rows.header.index(text)
            texts = [_lines(row.cells[place]) for row in table]
            kept = [k for k, name in enumerate(look) if name != text]
            look, cells = [look[k] for k in kept], [[row[k] for k in kept] for row in cells]
    if array is not None:
        _check_rows(array, len(ids), path)
        names = _numbered(array)
    else:
        assert texts is not None
        array, names = _words(path, texts)
    shown = {"columns": _unique(look, _plain), "cells": cells}
    kind = "table" if texts is None else "text"
    return _stored(path, ids, array, names, digest, kind=kind, texts=texts, **shown)


def _images(path: str, array: Array | None, digest: str, warnings: list[str]) -> StoredItems:
    images = find_images(path, warnings)
    if len(images) < 2:
        there = f"there {'is one' if images else 'are none'} ({', '.join(IMAGES)})"
        raise ValueError(f"{path}: two or more images are needed, {there}")
    folder = str(Path(path).resolve())
    if array is not None:
        _check_rows(array, len(images), path)
        names = _numbered(array)
    else:
        from .image_features import image_features

        array = image_features(folder, images)
        names = tuple(f"pc {k}" for k in range(1, array.shape[1] + 1))
    above = [name.rpartition("/")[0] for name in images]
    columns = ("folder",) if any(above) else ()
    cells = [[name] if columns else [] for name in above]
    parts = {"columns": columns, "cells": cells, "images": images, "folder": folder}
    return _stored(path, images, array, names, digest, kind="image", **parts)


def _points(path: str, array: Array, digest: str) -> StoredItems:
    names = _numbered(array)
    cells = [[f"{value:.4g}" for value in row] for row in array[:, :SOME].tolist()]
    ids = [str(k) for k in range(len(array))]
    return _stored(path, ids, array, names, digest, kind="points", columns=names[:SOME], cells=cells)


def _stored(
    path: str, ids: list[str], points: Array, features: tuple[str, ...], digest: str, **parts: Any
) -> StoredItems:
    if not np.any(points != points[0]):
        raise ValueError(f"{path}: all items have the same features, of which nothing can be learned")
    rest = {"columns": (), "texts": None, "images": None, "folder": None, "scale": "auto"} | parts
    try:
        return StoredItems(ids=ids, points=points, features=features, digest=digest, **rest)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_array(path: str) -> Array:
    """An array of shape (m, n) of finite numbers, from a .npy file or a .npz file that has no other."""
    try:
        with open(path, "rb") as file:
            if file.read(2) == b"PK":  # a zip file
                file.seek(0)
                several = np.load(file, allow_pickle=False)
                if len(several.files) != 1:
                    raise ValueError(f"it has {len(several.files)} arrays, expected one")
                found = several[several.files[0]]
            else:  # as a map, which cannot claim to be larger than the file
                found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        why = "" if "pickle" in str(error) else f": {error}"  # NumPy would advise to unpickle what is no array
        raise ValueError(f"{path}: it must be a .npy or .npz file with one array of numbers{why}") from None
    if found.ndim != 2 or found.dtype.kind not in "fiu" or not found.size:
        got = f"{found.dtype} of shape {found.shape}"
        raise ValueError(f"{path}: it must have numbers in an array of shape (items, features), got {got}")
    with np.errstate(over="ignore"):  # of longer floats, which then are infinite
        array = np.array(found, dtype=np.float64, order="C")
    if len(bad := np.argwhere(~(np.abs(array) < LARGEST))):
        row, column = bad[0].tolist()
        expected = f"finite numbers of at most {LARGEST:g} in size"
        raise ValueError(
            f"{path}: it must have {expected}, got {array[row, column]} in row {row}, column {column}"
        )
    return array


def _check_rows(array: Array, items: int, path: str) -> None:
    if len(array) != items:
        raise ValueError(f"--points must have a row for each item of {path}, {items}, got {len(array)}")


def _numbered(array: Array) -> tuple[str, ...]:
    return tuple(f"x{k}" for k in range(array.shape[1]))


def _words(path: str, texts: list[str]) -> tuple[Array, tuple[str, ...]]:
    from ..data.tfidf import TextStream

    try:
        stream = TextStream()
    except ImportError as error:
        raise ImportError(f"--text: {error}") from None
    try:
        rows = stream.fit(texts).transform(texts)
    except ValueError as error:
        raise ValueError(f"{path}: --text: {error}") from None
    return np.asarray(rows.toarray(), dtype=np.float64), _unique(stream.names, clean_name)


def _unique(names: Iterable[str], clean: Callable[[str], str]) -> tuple[str, ...]:
    """Names of which two were the same once they were clean get a number."""
    taken: dict[str, None] = {}
    for name in map(clean, names):
        other, k = name, 1
        while other in taken:
            k += 1
            other = f"{name} ({k})"
        taken[other] = None
    return tuple(taken)


def _plain(name: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in name).strip()[:LONGEST_ID] or "unnamed"


def _lines(cell: Any) -> str:
    """A text as it can be shown: with its lines, without other control characters or halves of characters."""
    text = "" if cell is None else str(cell).strip()
    return text if text.isprintable() else "".join(" " if _odd(letter) else letter for letter in text)


def _odd(letter: str) -> bool:
    return letter not in "\n\t" and (letter < " " or "\x7f" <= letter < "\xa0" or "\ud800" <= letter < "\ue000")
