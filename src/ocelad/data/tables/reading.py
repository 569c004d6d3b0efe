"""Open a table, whatever it is in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal, get_args

from .lines import Csv, JsonLines, Lines, TextRows
from .parquet import ParquetRows
from .rows import Rows, listed

Format = Literal["csv", "jsonl", "parquet"]
_ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}


def read_rows(path: str, format: Format | None = None) -> Rows:
    """The rows of a file, or of standard input if the path is ``-``. The format is told by the name, or given.

    CSV has a header and a row per line, JSON lines an object per line; both may be gzipped. Close it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "table.csv").write_text("x_a,z_a,y\\n0.5,1,-1\\n")
    ...     rows = read_rows(f"{folder}/table.csv")
    ...     rows.header, [[row.cells for row in piece] for piece in rows.pieces()]
    ...     rows.close()
    (['x_a', 'z_a', 'y'], [[['0.5', '1', '-1']]])
    """
    zipped = path.lower().endswith(".gz")
    if format is None:
        format = "csv" if path == "-" else _ENDINGS.get(Path(path[:-3] if zipped else path).suffix.lower())
    if format not in get_args(Format):
        raise ValueError(f"{path}: its format is not told by its name, which must end in {', '.join(_ENDINGS)}")
    if format == "parquet":
        if path == "-" or zipped:
            raise ValueError(f"{path}: Parquet must be a file, and not gzipped")
        return _sensible(ParquetRows(path))
    file = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115
    lines = Lines("standard input" if path == "-" else path, file, closes=path != "-")
    try:
        return _sensible(TextRows(lines, Csv(lines) if format == "csv" else JsonLines(lines)))
    except BaseException:
        lines.close()
        raise


def _sensible(rows: Rows) -> Rows:
    if not any(rows.header):
        raise ValueError(f"{rows.name}: it is empty: a header and rows are needed")
    twice = [name for name in rows.header if rows.header.count(name) > 1]
    if twice:
        raise ValueError(f"{rows.name}: line 1: there are two columns {twice[0]!r}: {listed(rows.header)}")
    return rows
