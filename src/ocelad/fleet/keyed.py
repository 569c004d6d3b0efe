"""A tracker for every key, of which not all need be in memory."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Hashable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from .. import state
from .. import validation as validate
from ..files import atomic_write
from ..protocols import Array
from ..state import container
from ..state.options import Options
from ..tracker import MetricTracker, inputs
from ..tracker.first_differences import FirstDifferences
from ..tracker.lock import Locked, locked
from ..tracker.preprocessor import read_preprocessor
from ..tracker.vocabulary import probabilities
from ..watch.alarms import Event
from ..watch.history import History
from .groups import Groups, Keys
from .saved import history_entry, n_features, options_of, same_options
from .threads import check_threads, over_threads

_HISTORY = ("every", "capacity", "alarm")


class KeyedTrackers(Locked):
    """A tracker for every key, made when the key is first seen: one per user, per device, per topic.

    Parameters
    ----------
    tracker
        What each of them is like; by default ``MetricTracker.rice()``, for there may be many: at 25 features it
        takes 5 kB a key, a pool that replays 256 comparisons, ``MetricTracker(memory=256)``, ten times as much. It
        is looked at once. It may have ``features``, which all keys share, but not ``nonlinear=True``.
    threads
        How many learn at a time.
    prior
        A `MetricTracker` that has learned, of which a copy is made: it answers for keys that have not been seen,
        and new keys go on from it. Without one, distances and probabilities of such keys are nan, predictions 0.
    max_in_memory
        How many trackers to keep as such. The least recently used are put away as bytes, a fraction of the size,
        and brought back when their key is seen again, bit for bit. None keeps all.
    folder
        Where to put them, a file each, instead. Each fleet makes a folder of its own in it, which is of no use to
        any other and may be deleted once its program has ended.
    history
        Options of a `History` for each tracker, say ``{"every": 10, "alarm": ChangeAlarm()}``; `events` has what
        all alarms have reported.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> keys, pairs = rng.choice(["ann", "bob"], size=600), rng.normal(size=(600, 2, 3))
    >>> u = np.abs(pairs[:, 0] - pairs[:, 1])
    >>> y = np.where(np.where(keys == "ann", u[:, 0], u[:, 2]) < 1, 1, -1)  # each looks at another feature
    >>> trackers = KeyedTrackers(max_in_memory=1).partial_fit(keys, pairs, y)
    >>> {key: int(trackers[key].get_mahalanobis_matrix().diagonal().argmax()) for key in sorted(trackers)}
    {'ann': 0, 'bob': 2}
    >>> trackers.predict(["ann", "eve"], np.zeros((2, 2, 3)))
    array([1, 0])
    """

    def __init__(
        self,
        tracker: MetricTracker | None = None,
        threads: int | None = None,
        *,
        prior: MetricTracker | None = None,
        max_in_memory: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        history: Mapping[str, Any] | None = None,
    ) -> None:
        if not (tracker is None or isinstance(tracker, MetricTracker)):
            raise ValueError(f"tracker must be a MetricTracker, got {tracker!r}")
        if not (prior is None or (isinstance(prior, MetricTracker) and "_engine" in vars(prior))):
            raise ValueError(f"prior must be a MetricTracker that has seen a comparison, got {prior!r}")
        if not (prior is None or tracker is None):
            raise ValueError("tracker must be None where there is a prior, whose options are taken")
        if not (history is None or (isinstance(history, Mapping) and set(history) <= set(_HISTORY))):
            raise ValueError(f"history must be None or have options {', '.join(_HISTORY)}, got {history!r}")
        check_threads(threads)
        for name, given in (("tracker", tracker), ("prior", prior)):
            if given is not None and given._wide:
                raise ValueError(f"{name} must not have nonlinear=True: trackers of keys are linear")
        self.tracker, self.threads = clone(prior or tracker or MetricTracker.rice()), threads
        self.prior, self.history = copy.copy(prior), None if history is None else dict(history)
        if self.history is not None:
            History(MetricTracker(), **self.history)  # refuses what it would refuse later
        self._first: FirstDifferences | None = None  # of all keys, as long as they are too few
        self._new = self.prior  # what trackers of new keys are copies of, once the features are known
        self._kept: dict[Hashable, MetricTracker | bytes | Path] = {}  # or put away, as bytes or in a file
        self._used: dict[Hashable, None] = {}  # those not put away, the least recently used first
        self._unchecked: set[Hashable] = set()  # those put away as they were in a file
        self._limit = state.LIMIT  # for these
        self._files = 0  # written so far
        self._keep_within(max_in_memory, folder)

    def _keep_within(self, max_in_memory: int | None, folder: str | os.PathLike[str] | None) -> None:
        if max_in_memory is None and folder is not None:
            raise ValueError("folder must be None without max_in_memory: nothing is put away then")
        if max_in_memory is not None:
            whole = isinstance(max_in_memory, (int, np.integer)) and not isinstance(max_in_memory, bool)
            if not whole or max_in_memory < 1:
                raise ValueError(f"max_in_memory must be None or a whole number >= 1, got {max_in_memory!r}")
            self._saved_options()  # refuses what could not be put away
        if not (folder is None or isinstance(folder, (str, os.PathLike))):
            raise ValueError(f"folder must be None or a path, got {folder!r}")
        self.max_in_memory, self.folder = max_in_memory, None if folder is None else Path(folder)
        self._records: Path | None = None  # where in the folder this fleet's own files are
        if self.folder is not None:
            if self.folder.exists() and not self.folder.is_dir():
                raise ValueError(f"folder must be a folder, and {self.folder} is a file")
            self.folder.mkdir(parents=True, exist_ok=True)
            self._records = Path(tempfile.mkdtemp(prefix="fleet-", dir=self.folder))

    def _saved_options(self) -> tuple[Options, dict[str, Any] | None]:
        """The options of trackers and histories, as they are saved."""
        return options_of(self.tracker), history_entry(self.history)

    # Learning and asking

    @locked
    def partial_fit(self, keys: Keys, pairs: Any, y: ArrayLike) -> KeyedTrackers:
        """Learn comparisons, each by the tracker of its key, in order.

        Parameters
        ----------
        keys
            Of length m: anything that can be a key of a dictionary.
        pairs, y
            m pairs and their labels, as for `MetricTracker.partial_fit`.
        """
        return self._fit_pairs(keys, pairs, y)

    @locked
    def partial_fit_implied(self, keys: Keys, pairs: Any, y: ArrayLike) -> KeyedTrackers:
        """The same for pairs that nobody was asked about (`MetricTracker.partial_fit_implied`)."""
        return self._fit_pairs(keys, pairs, y, implied=True)

    def _fit_pairs(self, keys: Keys, pairs: Any, y: ArrayLike, implied: bool = False) -> KeyedTrackers:
        u = self._differences(keys, pairs)
        labels, groups = validate.labels(y, u.shape[0]), Groups(keys, u.shape[0])
        new = self._suited(pairs, u)
        new._scale.check(u)
        first = FirstDifferences.of(new._scale, u) if self._new is None else self._first
        if first is not None:
            first = first.after(u, getattr(new, "feature_names_in_", None))
        rows, labels = u[groups.order], labels[groups.order]
        one_by_one = u.shape[0] < 16 * len(groups.at)  # threads would wait for each other more than work
        for batch in groups.batches(self.max_in_memory):
            held = self._held(batch)
            trackers = {key: self._begun(new) if found is None else found for key, found in held.items()}

            def learn(key: Hashable, trackers: dict[Hashable, MetricTracker] = trackers) -> None:
                at = groups.at[key]
                trackers[key]._learn(rows[at], labels[at], named=rows, implied=implied)

            try:
                over_threads(learn, batch, 1 if one_by_one else self.threads)
            finally:  # whoever has learned something stays
                for key, tracker in trackers.items():
                    if held[key] is None and tracker._fitted().t > new._engine.t:
                        self._kept[key], self._used[key], self._new = tracker, None, new
        self._first = first
        return self

    def _differences(self, keys: Keys, pairs: Any) -> Any:
        form, features = read_preprocessor(self.tracker.preprocessor), inputs.features(self.tracker.features)
        try:
            return inputs.differences(pairs, type(self).__name__, form, features)
        except ValueError as error:
            if getattr(keys, "ndim", 1) > 1:
                error.add_note("Keys come first: partial_fit(keys, pairs, y), predict(keys, pairs).")
            raise

    def _suited(self, pairs: Any, u: Any) -> MetricTracker:
        """What trackers of new keys are to be copies of, if these pairs suit it."""
        if self._new is None:
            new = copy.copy(self.tracker)._begin(u.shape[1])
            inputs.check_names(new, pairs, known=False)
            return new
        validate.same_width(u, self._new.n_features_in_, "pairs")
        inputs.check_names(self._new, pairs, known=True)
        if "_engine" not in vars(self._new):  # it comes from a file
            self._new._begin(u.shape[1])
        return self._new

    def _begun(self, new: MetricTracker) -> MetricTracker:
        tracker = copy.copy(new)
        if tracker.ensemble is not None and self.prior is None:  # copies of others' ensembles may share learners
            tracker._begin(new.n_features_in_)
        if self.history is not None:
            History(tracker, **self.history)
        return tracker

    def pair_distance(self, keys: Keys, pairs: Any) -> Array:
        """The distance of each pair under the metric of its key; of an unknown key the prior's, or nan."""
        return self._judged(keys, pairs)[0]

    def predict(self, keys: Keys, pairs: Any) -> NDArray[np.int64]:
        """+1 for pairs that are similar now to their key, -1 for the others; of an unknown key what the prior
        says, or 0."""
        d, limits, _ = self._judged(keys, pairs)
        return np.where(np.isnan(d), 0, np.where(d <= limits, 1, -1))

    def predict_proba(self, keys: Keys, pairs: Any) -> Array:
        """The probabilities of "different" and "similar", of shape (m, 2), as `MetricTracker.predict_proba` has
        them; of an unknown key the prior's, or nan."""
        return probabilities(self._judged(keys, pairs)[2])

    @locked
    def _judged(self, keys: Keys, pairs: Any) -> Array:
        """Distances, thresholds on them, and log odds, in rows."""
        u = self._differences(keys, pairs)
        groups, judged = Groups(keys, u.shape[0]), np.full((3, u.shape[0]), np.nan)
        self._suited(pairs, u)
        rows = u[groups.order]
        for batch in groups.batches(self.max_in_memory):
            held = self._held([key for key in batch if key in self._kept])
            for key in batch:
                tracker, at = held.get(key) or self.prior, groups.at[key]
                if tracker is not None:
                    for row, of_key in zip(judged, tracker._judge(rows[at]), strict=True):
                        row[groups.order[at]] = of_key
        return judged

    @locked
    def events(self) -> Iterator[tuple[Hashable, Event]]:
        """What the alarms have reported so far, key by key, each with its key."""
        found = []
        for key, kept in self._kept.items():
            tracker = kept if isinstance(kept, MetricTracker) else self._unpacked(key)
            if tracker._history is not None:
                found += [(key, event) for event in tracker._history.events]
        return iter(found)

    # As a collection

    @locked
    def __getitem__(self, key: Hashable) -> MetricTracker:
        if key not in self._kept:
            raise KeyError(f"no comparison has had the key {key!r} yet")
        tracker = self._held([key])[key]
        assert tracker is not None
        return tracker

    @locked
    def __delitem__(self, key: Hashable) -> None:
        """Forget a key and all that its tracker has learned, also where its file is missing or damaged."""
        if key not in self._kept:
            raise KeyError(f"no comparison has had the key {key!r} yet")
        kept = self._kept.pop(key)
        self._used.pop(key, None)
        self._unchecked.discard(key)
        if isinstance(kept, Path):
            kept.unlink(missing_ok=True)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def __iter__(self) -> Iterator[Hashable]:
        return iter(list(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    def keys(self) -> list[Hashable]:
        """The keys seen so far, in the order in which they came."""
        return list(self._kept)

    def __repr__(self) -> str:
        count, features = len(self), n_features(self)
        return f"{type(self).__name__} of {count} key{'s'[: count != 1]}" + f", {features} features" * bool(
            features
        )

    # Copies, and pickles, have records of their own

    def __copy__(self) -> KeyedTrackers:
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            kept = {k: self._packed(k) if isinstance(v, Path) else v for k, v in self._kept.items()}
            return {**super().__getstate__(), "_kept": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._keep_within(self.max_in_memory, self.folder)
        self._store_all()

    # What is in memory

    def _held(self, keys: list[Hashable]) -> dict[Hashable, MetricTracker | None]:
        """The trackers of these keys, no more of them than may be in memory; None for keys that are new."""
        for key in keys:
            if key in self._used:
                self._used[key] = self._used.pop(key)  # now the last
        self._make_room(sum(key not in self._used for key in keys))
        return {key: self._brought_back(key) if key in self._kept else None for key in keys}

    def _make_room(self, count: int) -> None:
        """Put away the least recently used, so that this many can come; what cannot be put away stays."""
        if self.max_in_memory is None:
            return
        excess = len(self._used) + count - self.max_in_memory
        for oldest in list(islice(self._used, max(0, excess))):
            try:
                record = self._packed(oldest)
            except ValueError:  # its options have been changed, say: save will refuse it by name
                continue
            self._kept[oldest] = self._stored(record)
            del self._used[oldest]

    def _brought_back(self, key: Hashable) -> MetricTracker:
        kept = self._kept[key]
        if isinstance(kept, MetricTracker):
            return kept
        self._kept[key] = tracker = self._unpacked(key)
        self._used[key] = None
        self._unchecked.discard(key)
        if isinstance(kept, Path):
            kept.unlink(missing_ok=True)
        return tracker

    def _stored(self, record: bytes) -> bytes | Path:
        if self._records is None:
            return record
        self._files += 1
        path = self._records / f"{self._files}.record"
        with atomic_write(path) as file:
            file.write(record)
        return path

    def _store_all(self) -> None:
        """Move records from memory to files, if that is where they are to be."""
        for key, kept in self._kept.items():
            if isinstance(kept, bytes):
                self._kept[key] = self._stored(kept)

    def _packed(self, key: Hashable) -> bytes:
        """A tracker as bytes, without the options, which are those of all."""
        kept = self._kept[key]
        if isinstance(kept, bytes):
            return kept
        try:
            if isinstance(kept, Path):
                record = kept.read_bytes()
                container.check_sum(memoryview(record))
                return record
            if not same_options(kept, self.tracker):
                raise ValueError("it has other options than the others")
            return state.pack(kept)
        except (OSError, ValueError) as error:
            kind = ValueError if isinstance(kept, MetricTracker) else state.FileError
            raise kind(f"the tracker of key {key!r}: {error}") from None

    def _unpacked(self, key: Hashable) -> MetricTracker:
        record, own = self._packed(key), key not in self._unchecked
        try:
            tracker = state.unpack(record, self.tracker, limit=state.LIMIT if own else self._limit)
        except state.FileError as error:
            raise state.FileError(f"the tracker of key {key!r}: {error}") from None
        n, expected = tracker.n_features_in_, n_features(self)
        if n != expected and not own:
            raise state.FileError(f"the tracker of key {key!r}: it has {n} features, and the fleet {expected}")
        return tracker

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all trackers to a file, as `ocelad.save` does; keys must be strings, numbers, or tuples of them.

        >>> import tempfile
        >>> trackers = KeyedTrackers().partial_fit(["ann"], [[[0.0, 1.0], [1.0, 1.0]]], [-1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trackers.save(f"{folder}/trackers.ocelad")
        ...     again = KeyedTrackers.load(f"{folder}/trackers.ocelad", max_in_memory=1000)
        >>> list(again), state.dumps(again["ann"]) == state.dumps(trackers["ann"])
        (['ann'], True)
        """
        state.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        threads: int | None = None,
        *,
        max_in_memory: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        limit: int = state.LIMIT,
        features: Any = None,
    ) -> KeyedTrackers:
        """The trackers of a file. Each is checked and made when its key is seen: until then, it is bytes.

        Parameters
        ----------
        path
            A file written by `save`.
        threads, max_in_memory, folder
            As for a new one.
        limit, features
            As for `ocelad.load`.
        """
        fleet = state.load(path, limit=limit, features=features)
        if not isinstance(fleet, KeyedTrackers):
            raise state.FileError(f"{os.fspath(path)}: it holds a {type(fleet).__name__}, not a KeyedTrackers")
        check_threads(threads)
        fleet.threads = threads
        fleet._keep_within(max_in_memory, folder)
        fleet._store_all()
        return fleet
