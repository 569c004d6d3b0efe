"""The loop of ``ocelad track``: read, predict, score, learn, write, and now and then make all of it safe."""

from __future__ import annotations

import csv
import io
import json
import time
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np

from ..data.tables import BadRow, Form, Row, Rows
from ..data.tables.rows import listed
from ..engine import Trace
from ..tracker import MetricTracker
from ..watch.alarms import Event
from ..watch.prequential import progressive
from ..watch.scores import Running
from . import timeline
from .commit import NEXT, PROGRESS, TRACKER, commit, read_progress, recover
from .outputs import Output

PATIENCE = 60.0
"""The longest time between two checkpoints, in seconds, even if few comparisons have come."""

PREDICTIONS = "t,line,partner,y,distance,threshold,predicted,probability"
OUTPUTS = {
    "predictions": PREDICTIONS,
    "timeline": ",".join(timeline.COLUMNS),
    "rejected": "line,column,problem,row",
}
"""What is written, each to a file of its name, and the headers."""


class Stopped(Exception):
    """Someone wants the run to stop; nothing is lost."""


@dataclass(frozen=True)
class Settings:
    """What decides the results of a run, and must be the same when it goes on: options of the tracker, how rows
    become comparisons, and what is written."""

    tracker: dict[str, Any] = field(default_factory=dict)
    form: dict[str, Any] = field(default_factory=dict)
    every: int = 100
    predictions: bool = True


@dataclass
class Run:
    """A run under way: iterate over it to run it, a few comparisons at a time; where it stands is always there.

    Parameters
    ----------
    rows, form
        The table, and how its rows become comparisons.
    tracker
        Learns them, unless the run goes on from a file.
    folder
        For ``predictions.csv``, ``timeline.csv``, ``rejected.csv``, ``tracker.ocelad`` and ``progress.json``.
    settings
        What must not change when the run goes on.
    safe
        After how many comparisons all is made safe.
    skip_bad
        Write bad rows to ``rejected.csv``; otherwise the first one is an error.
    waiting
        Entered while the input may have to be waited for, and only then.
    look
        Called with rows as they are read.
    """

    rows: Rows
    form: Form
    tracker: MetricTracker
    folder: Path
    settings: Settings = Settings()
    safe: int = 10_000
    skip_bad: bool = False
    waiting: Callable[[], AbstractContextManager[Any]] = nullcontext
    look: Callable[[list[Row]], object] = list

    def __post_init__(self) -> None:
        # nothing to learn, but options that cannot be used are an error, before there is a folder
        self.tracker.partial_fit(np.empty((0, 2, len(self.form.features))), np.empty(0))
        self.tracker._names = list(self.form.features)
        self.running, self.row = Running(), timeline.Row()
        self.t = self.rejected = self.points = 0
        self.events: list[Event] = []  # the latest
        self.echo: list[str] = []  # the latest predictions
        self._sizes = dict.fromkeys(OUTPUTS, 0)
        self._learned = False
        self._outputs: dict[str, Output] = {}

    def resume(self, again: bool = True) -> bool:
        """Go on where the run in the folder stopped, if there is one. ``again``: its input begins again."""
        found = recover(self.folder)
        if found is None:
            return False
        tracker, progress = found
        if not _has_begun(self.folder):  # options may still change
            return False
        then, now = progress["settings"], json.loads(json.dumps(asdict(self.settings)))
        changes = [_changed(name, old, new) for name, old, new in _changes(then, now)]
        if changes:
            raise ValueError(f"{self.folder}: a run goes on only as it began: {', '.join(changes)}")
        if again:
            self.rows.skip(*progress["input"])
        if self.rows.decimals is not None:
            self.rows.decimals.mark = progress.get("decimals", "")
        if tracker is not None:
            self.tracker, self._learned = tracker, True
        self.t, self.rejected, self.points = progress["counts"]
        self._sizes = progress["sizes"]
        try:
            self.running.restore(progress["running"])
            self.row.restore(progress["row"])
            self.form.restore(progress["form"])
        except (AssertionError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{self.folder / PROGRESS}: it is damaged: {error!r}") from None
        return True

    def begin(self, overwrite: bool = False) -> None:
        """Make the folder ready for a new run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not overwrite and _has_begun(self.folder):
            raise ValueError(f"there is a run in {self.folder}: --resume goes on with it, --overwrite begins anew")
        for path in (self.folder / name for name in (TRACKER, *(f"{name}.csv" for name in self._sizes))):
            if path.exists() and Path(self.rows.name).exists() and path.samefile(self.rows.name):
                raise ValueError(f"{path}: the run would write there what it reads: choose another folder")
            if path.exists() and not overwrite:
                raise ValueError(f"there is {path}, of no run that could go on: --overwrite begins anew")
        for name in (PROGRESS, NEXT, TRACKER):  # in this order: what is left must not look like a run
            (self.folder / name).unlink(missing_ok=True)

    def __iter__(self) -> Iterator[int]:
        try:
            for name, header in OUTPUTS.items():  # cut back to where they were safe
                self._outputs[name] = Output(self.folder / f"{name}.csv", header, self._sizes[name])
            self.commit()
            pieces = self.rows.pieces()
            failure: Exception | None = None
            while failure is None:
                try:
                    with self.waiting():
                        rows = next(pieces, None)
                except Stopped as stopped:
                    failure = stopped
                    break
                except (OSError, EOFError, ValueError, zlib.error) as error:
                    name = "" if str(error).startswith(self.rows.name) else f"{self.rows.name}: "
                    failure = ValueError(f"{name}{error}")
                    break
                if rows is None:
                    break
                failure = yield from self._take(rows)
                if self.t >= self._due or time.monotonic() - self._last > PATIENCE:
                    self.commit()
            self.commit()
            if failure is not None:
                raise failure
        finally:
            for output in self._outputs.values():
                output.close()

    def commit(self) -> None:
        """Make all of it safe."""
        used = self.rows.used
        progress = {
            "settings": asdict(self.settings),
            "input": [used.lines, used.digest],
            "decimals": "" if self.rows.decimals is None else self.rows.decimals.mark,
            "counts": [self.t, self.rejected, self.points],
            "sizes": {name: output.sync() for name, output in self._outputs.items()},
            "running": self.running.state(),
            "row": self.row.state(),
            "form": self.form.state(),
        }
        commit(self.folder, self.tracker if self._learned else None, progress)
        self._due, self._last = self.t + self.safe, time.monotonic()

    def _take(self, rows: list[Row]) -> Generator[int, None, Exception | None]:
        """Learn what rows say. Returns the bad row that must be the last, if there is one."""
        self.look(rows)
        parsed, bad = [], []
        failure = None
        for number, row in enumerate(rows):
            try:
                parsed.append(self.form.parse(row.checked()))
            except BadRow as error:
                if not self.skip_bad:
                    rows, failure = rows[:number], ValueError(f"{self.rows.name}: {error}")
                    failure.__cause__ = error
                    break
                bad.append(error)
        self.points += len(parsed)
        yield from self._learn(parsed)
        self._outputs["rejected"].write(map(_rejected, bad))
        self.rejected += len(bad)
        for row in rows:
            self.rows.used.add(row.raw, row.lines)
        return failure

    def _learn(self, parsed: list[Any]) -> Iterator[int]:
        if not parsed:
            return
        block, done = self.form.block(parsed), 0
        while done < len(block.y):
            piece = slice(done, min(len(block.y), done + self.settings.every - self.t % self.settings.every))
            pairs, y = block.pairs[piece], block.y[piece]
            seen = progressive(self.tracker, pairs, y)
            if not self._learned:
                self.tracker.feature_names_in_ = np.array(self.form.features, dtype=object)
                self._learned = True
            known = None if np.isnan(seen.probability).any() else seen.probability
            self.running.add(seen.squared_distance, seen.threshold, seen.loss, y, known)
            self.events = [*self.events, *self.row.add(seen, y.tolist())][-8:]
            self.echo = _predictions(self.t, seen, y.tolist(), block.lines[piece], block.others[piece])
            if self.settings.predictions:
                self._outputs["predictions"].write(self.echo)
            self.t, done = self.t + len(y), piece.stop
            if self.t % self.settings.every == 0:
                row = self.row.finish(self.t, self.tracker, self.running)
                self._outputs["timeline"].write([row])
            yield len(y)


def _predictions(t: int, seen: Trace, y: list[int], lines: list[int], others: list[int]) -> list[str]:
    thresholds = np.copysign(np.sqrt(np.abs(seen.threshold)), seen.threshold)  # below 0 nothing is similar
    columns = [np.sqrt(seen.squared_distance), thresholds, seen.similar]
    known = ["" if p != p else repr(p) for p in seen.probability.tolist()]
    return [
        f"{number},{line},{other or ''},{label},{d!r},{threshold!r},{1 if similar else -1},{p}"
        for number, (line, other, label, d, threshold, similar, p) in enumerate(
            zip(lines, others, y, *(column.tolist() for column in columns), known, strict=True), t + 1
        )
    ]


def _has_begun(folder: Path) -> bool:
    """Whether there is a run that has used a row; one that stopped at its first is not worth keeping."""
    if not (folder / PROGRESS).exists():
        return False
    try:
        counts = read_progress(folder / PROGRESS)["counts"]
    except ValueError:  # damaged: there was one
        return True
    return any(counts) or any((folder / f"{name}.csv").exists() for name in OUTPUTS)


def _rejected(bad: BadRow) -> str:
    text = io.StringIO()
    raw = bad.row.raw.decode("utf-8", "backslashreplace").strip()
    csv.writer(text, lineterminator="").writerow([bad.row.line, bad.column, bad.problem, raw])
    return text.getvalue()


def _changes(then: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What is not as it was, by name."""
    for name in sorted(then.keys() | now.keys()):
        old, new = then.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from ((f"{name} {part}", was, now_is) for part, was, now_is in _changes(old, new))
        elif old != new and (name in then or new):  # an option that is newer than the run stays as it was
            yield name, old, new


def _changed(name: str, old: Any, new: Any) -> str:
    """What has become of an option; of long lists only what differs."""
    if not (isinstance(old, list) and isinstance(new, list)):
        return f"{name} was {short(old)} and is {short(new)}"
    parts = {
        "new": [each for each in new if each not in old],
        "missing": [each for each in old if each not in new],
    }
    said = [f"{listed(part)} {'are' if len(part) > 1 else 'is'} {word}" for word, part in parts.items() if part]
    return f"{name}: {', '.join(said) or 'they are in another order'}"
