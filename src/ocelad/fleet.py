"""Many trackers at once: one per key, or one per trial, over threads, each exactly as if it were alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from . import validation as validate
from .protocols import Array, Integers
from .tracker import MetricTracker, inputs


def learn(streams: Iterable[tuple[MetricTracker, Any, Any]], threads: int | None = None) -> None:
    """``tracker.partial_fit(pairs, y)`` for each (tracker, pairs, y), over threads.

    The kernels work without the interpreter's lock, and what a tracker learns does not depend on the threads. If
    one of them fails, those not begun yet are left alone, and the error is raised; so on Ctrl-C.

    Parameters
    ----------
    streams
        Trackers, no two of them the same, and what each is to learn.
    threads
        How many at a time; by default as many as there are processors for this process.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> trials = [(MetricTracker(), rng.normal(size=(50, 2, 3)), rng.choice([-1, 1], size=50)) for _ in range(4)]
    >>> learn(trials)
    >>> [len(tracker.levels_) for tracker, _, _ in trials]
    [3, 3, 3, 3]
    """
    work = list(streams)
    if len({id(tracker) for tracker, _, _ in work}) < len(work):
        raise ValueError("streams must have a tracker of its own for each stream, got one twice")
    _over_threads([partial(tracker.partial_fit, pairs, y) for tracker, pairs, y in work], threads)


def _over_threads(tasks: Sequence[Callable[[], object]], threads: int | None) -> None:
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise ValueError(f"threads must be None or a whole number >= 1, got {threads!r}")
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(len(tasks), threads or processors)
    if count <= 1:
        for task in tasks:
            task()
        return
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            for future in futures:
                future.cancel()
    for future in futures:
        if not future.cancelled():
            future.result()


class KeyedTrackers:
    """A tracker for every key, made when the key is first seen: one per user, per device, per topic.

    Parameters
    ----------
    tracker
        What each of them is like; by default ``MetricTracker()``.
    threads
        How many learn at a time.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> keys, pairs = rng.choice(["ann", "bob"], size=600), rng.normal(size=(600, 2, 3))
    >>> u = np.abs(pairs[:, 0] - pairs[:, 1])
    >>> y = np.where(np.where(keys == "ann", u[:, 0], u[:, 2]) < 1, 1, -1)  # each looks at another feature
    >>> trackers = KeyedTrackers().partial_fit(keys, pairs, y)
    >>> {key: int(trackers[key].get_mahalanobis_matrix().diagonal().argmax()) for key in sorted(trackers)}
    {'ann': 0, 'bob': 2}
    """

    def __init__(self, tracker: MetricTracker | None = None, threads: int | None = None) -> None:
        if not (tracker is None or isinstance(tracker, MetricTracker)):
            raise ValueError(f"tracker must be a MetricTracker, got {tracker!r}")
        self.tracker, self.threads = MetricTracker() if tracker is None else tracker, threads
        self._trackers: dict[Hashable, MetricTracker] = {}

    def partial_fit(self, keys: Sequence[Hashable] | NDArray[Any], pairs: Any, y: ArrayLike) -> KeyedTrackers:
        """Learn comparisons, each by the tracker of its key, in order.

        Parameters
        ----------
        keys
            Of length m: anything that can be a key of a dictionary.
        pairs, y
            m pairs and their labels, as for `MetricTracker.partial_fit`.
        """
        u = inputs.differences(pairs, "KeyedTrackers", inputs.preprocessor(self.tracker.preprocessor))
        labels, where = validate.labels(y, u.shape[0]), _places(keys, u.shape[0])
        named = self._named(pairs, u)
        trackers = {key: self._trackers.get(key) or clone(self.tracker) for key in where}
        if hasattr(named, "feature_names_in_"):
            for tracker in trackers.values():
                tracker.feature_names_in_ = named.feature_names_in_
        try:
            _over_threads(
                [partial(trackers[key].partial_fit, _part(u, at), labels[at]) for key, at in where.items()],
                self.threads,
            )
        finally:  # whoever has learned something stays
            self._trackers.update({key: t for key, t in trackers.items() if hasattr(t, "n_features_in_")})
        return self

    def pair_distance(self, keys: Sequence[Hashable] | NDArray[Any], pairs: Any) -> Array:
        """The distance of each pair under the metric of its key."""
        return self._asked(keys, pairs, lambda tracker, part: tracker.pair_distance(part), np.float64)

    def predict(self, keys: Sequence[Hashable] | NDArray[Any], pairs: Any) -> NDArray[np.int64]:
        """+1 for pairs that are similar now to their key, -1 for the others."""
        return self._asked(keys, pairs, lambda tracker, part: tracker.predict(part), np.int64)

    def _asked(self, keys: Any, pairs: Any, ask: Callable[[MetricTracker, Any], Any], dtype: Any) -> Any:
        u = inputs.differences(pairs, "KeyedTrackers", inputs.preprocessor(self.tracker.preprocessor))
        self._named(pairs, u)
        answers = np.zeros(u.shape[0], dtype=dtype)
        for key, at in _places(keys, u.shape[0]).items():
            answers[at] = ask(self[key], _part(u, at))
        return answers

    def _named(self, pairs: Any, u: Any) -> MetricTracker:
        """One that knows the names of the features, if these pairs have the same."""
        known = next(iter(self._trackers.values()), None)
        if known is not None:
            validate.same_width(u, known.n_features_in_, "pairs")
        one = clone(self.tracker) if known is None else known
        inputs.check_names(one, pairs, known is not None)
        return one

    def __getitem__(self, key: Hashable) -> MetricTracker:
        try:
            return self._trackers[key]
        except KeyError:
            raise KeyError(f"no comparison has had the key {key!r} yet") from None

    def __contains__(self, key: Hashable) -> bool:
        return key in self._trackers

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._trackers)

    def __len__(self) -> int:
        return len(self._trackers)


def _places(keys: Any, m: int) -> dict[Hashable, Integers]:
    """Where each key is, in order."""
    # Python's own keys, but for dates, which would become whole numbers of some unit
    keys = keys.tolist() if isinstance(keys, np.ndarray) and keys.dtype.kind not in "mM" else list(keys)
    if len(keys) != m:
        raise ValueError(f"keys must have one key for each of {m} pairs, got {len(keys)}")
    places: dict[Hashable, list[int]] = {}
    for number, key in enumerate(keys):
        try:
            if key != key:  # NaN: nobody would find it again
                raise TypeError
            places.setdefault(key, []).append(number)
        except TypeError:
            raise ValueError(f"keys must be hashable and equal to themselves, got {key!r}") from None
    return {key: np.array(at, dtype=np.int64) for key, at in places.items()}


def _part(u: Any, at: Integers) -> Any:
    """Differences as pairs with a point at the origin."""
    rows = u[at]
    return np.stack([rows, np.zeros_like(rows)], axis=1) if isinstance(rows, np.ndarray) else (rows, 0 * rows)
