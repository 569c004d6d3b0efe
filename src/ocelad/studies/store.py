"""The finished trials of a study, in a file that survives Ctrl-C, ``kill -9`` and power cuts.

A trial is stored in one transaction: it is there as a whole or not at all. The file says what study it is of.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from .synthetic import Study, made_with
from .trial import Outcome

_TABLES = (
    "create table if not exists study (key text primary key, value text not null) without rowid",
    "create table if not exists trials (trial integer primary key, measures blob not null, seconds blob not null)",
)
_NUMBER = np.dtype("<f8")  # the same on every machine


class StoreError(OSError):
    """A file that is of another study, or of none, or damaged."""


class Store:
    """The trials of one study in one SQLite file, made with its folder if need be. Use it as a context.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "trials.sqlite", Study()) as store:
    ...     store.add(Outcome(7, np.zeros((7, 112, 2)), np.zeros(9)))
    ...     sorted(store.finished())
    [7]
    """

    def __init__(self, path: Path, study: Study | None = None) -> None:
        if study is None and not path.exists():
            raise StoreError(f"there is no study at {path}")
        self.path = path
        if study is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._in_words():
            self._connection = sqlite3.connect(path, timeout=60.0, isolation_level=None)
            try:
                if study is not None:
                    self._make(study)
                self.study = self._same(study)
            except BaseException:
                self._connection.close()
                raise

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Whatever a damaged file leads to is said with its name."""
        try:
            yield
        except (sqlite3.Error, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            problem = f"there is no {error}" if isinstance(error, KeyError) else str(error)
            raise StoreError(f"{self.path} cannot be used as the file of a study: {problem}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _make(self, study: Study) -> None:
        """Tables that say what study they are of, at once; those of another stay as they are."""
        own = {"options": study.to_json(), "made with": made_with()}
        rows = [(key, json.dumps(value, sort_keys=True)) for key, value in own.items()]
        self._connection.execute("begin immediate")
        for table in _TABLES:
            self._connection.execute(table)
        self._connection.executemany("insert or ignore into study values (?, ?)", rows)
        self._connection.execute("commit")

    def _same(self, study: Study | None) -> Study:
        """The study that the file is of, which must be this one."""
        found = dict(self._connection.execute("select key, value from study").fetchall())
        there = Study.from_json(json.loads(found["options"]))
        self.made_with: dict[str, str] = dict(json.loads(found["made with"]))
        if study is not None:
            self._compare("options", json.loads(found["options"]), study.to_json())
            self._compare("versions", self.made_with, made_with())
        return there

    def _compare(self, what: str, there: dict[str, Any], here: dict[str, Any]) -> None:
        differ = [
            f"{key} {there.get(key)!r}, not {value!r}" for key, value in here.items() if there.get(key) != value
        ]
        if differ:
            raise StoreError(
                f"{self.path.parent} holds a study with other {what}: {'; '.join(differ)}. "
                "Use the same, or another folder"
            )

    def finished(self) -> set[int]:
        """The numbers of the trials that are stored."""
        with self._in_words():
            return {trial for (trial,) in self._connection.execute("select trial from trials")}

    def add(self, outcome: Outcome) -> None:
        """Store a trial for good, unless it is there already."""
        row = outcome.trial, _bytes(outcome.measures), _bytes(outcome.seconds)
        with self._in_words():
            self._connection.execute("insert or ignore into trials values (?, ?, ?)", row)

    def outcomes(self, first: int = 0, last: int | None = None) -> Iterator[Outcome]:
        """The trials from first to last, in order."""
        shape = len(self.study.methods), len(self.study.times), 2
        wanted = first, 2**62 if last is None else last
        question = "select trial, measures, seconds from trials where trial >= ? and trial <= ? order by trial"
        with self._in_words(), closing(self._connection.execute(question, wanted)) as rows:
            for trial, measures, seconds in rows:
                if len(measures) != 8 * int(np.prod(shape)) or len(seconds) != 8 * (2 + shape[0]):
                    raise StoreError(f"trial {trial} in {self.path} is not of this study")
                yield Outcome(
                    trial, np.frombuffer(measures, _NUMBER).reshape(shape), np.frombuffer(seconds, _NUMBER)
                )


def _bytes(values: np.ndarray[Any, Any]) -> bytes:
    return values.astype(_NUMBER).tobytes()
