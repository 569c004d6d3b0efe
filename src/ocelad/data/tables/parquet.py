"""Tables in Parquet files. It needs ``pip install "ocelad[tables]"``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .rows import Row, Used, flat, in_order


class ParquetRows:
    """Rows of a Parquet file, batch by batch; a line is a row."""

    decimals = None

    def __init__(self, path: str, batch: int = 1024) -> None:
        try:
            import pyarrow.parquet
        except ImportError as error:
            raise ImportError('Parquet files need pyarrow: pip install "ocelad[tables]"') from error
        self.name, self.used = path, Used()
        try:
            file = pyarrow.parquet.ParquetFile(path)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        self.close = file.close
        self._take = (each.to_pylist() for each in file.iter_batches(batch_size=batch))
        self._waiting: list[dict[str, Any]] = next(self._take, [])
        if not self._waiting and file.schema_arrow.names:
            raise ValueError(f"{path}: it has columns and no rows")
        self.header = list(flat(self._waiting[0])) if self._waiting else []

    def skip(self, lines: int, digest: str) -> None:
        while self.used.lines < lines and self._waiting:
            left = lines - self.used.lines
            for row in map(self._row, range(left), self._waiting):
                self.used.add(row.raw)
            self._waiting = self._waiting[left:] or next(self._take, [])
        self.used.check(self.name, lines, digest)

    def pieces(self) -> Iterator[list[Row]]:
        number = self.used.lines + 1
        while self._waiting:
            rows = list(map(self._row, range(number, number + len(self._waiting)), self._waiting))
            number, self._waiting = number + len(rows), next(self._take, [])
            yield rows

    def _row(self, number: int, record: dict[str, Any]) -> Row:
        raw = repr(record).encode()
        try:
            return Row(number, in_order(record, self.header), raw)
        except ValueError as error:
            return Row(number, [], raw, problem=str(error))
