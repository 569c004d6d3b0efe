"""Ask for the partition of a set of points rather than for the metric: an item against its nearest group."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from .. import validation as validate
from ..closure import Closure
from ..dataframes import is_frame
from ..protocols import Array
from ..tracker import MetricTracker
from ..tracker.inputs import points as points_of
from .nearest import FIRST, MANY, Bounds, distances, squared


class GroupQuestions:
    """Ask for the partition of a set of points rather than for the metric: an item against its nearest group.

    Groups that are known apart from one another are the core. Of all other items the one nearest to a group of the
    core is asked about, and if it belongs there, one answer has placed it.

    Parameters
    ----------
    tracker
        The `MetricTracker` that learns the answers, and says what is near.
    closure
        The `Closure` that is told the answers; its window must hold them all (``Closure(window=None)``). Items are
        the numbers of the points.
    X
        The points, of shape (m, n).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(3, size=60)
    >>> X = np.eye(3)[kind] * 4 + rng.normal(size=(60, 3))
    >>> tracker, closure = MetricTracker(), Closure(window=None)
    >>> questions, answers = GroupQuestions(tracker, closure, X), 0
    >>> while (asked := questions.query()) is not None:
    ...     i, j = asked
    ...     y = 1 if kind[i] == kind[j] else -1
    ...     tracker, answers = tracker.partial_fit([X[[i, j]]], [y]), answers + 1
    ...     _ = closure.answer(i, j, y)
    >>> sorted(len(group) for group in closure.groups()) == sorted(np.bincount(kind).tolist())
    True
    >>> answers < 90
    True
    """

    def __init__(self, tracker: MetricTracker, closure: Closure, X: Any) -> None:
        if not isinstance(tracker, MetricTracker):
            raise ValueError(f"tracker must be a MetricTracker, got {type(tracker).__name__}")
        if not isinstance(closure, Closure) or closure.window is not None:
            raise ValueError(f"closure must be a Closure(window=None), which forgets nothing, got {closure!r}")
        features = tracker._features()
        given = X if features is None else points_of(X, type(tracker).__name__, None, features)
        points = validate.real(given, "X", "an array of finite numbers of shape (m, n)")
        if points.ndim != 2 or not points.size:
            raise ValueError(f"X must be points, of shape (m, n), got shape {points.shape}")
        self.tracker, self.closure, self._points = tracker, closure, points
        # as they were given, if its columns have names or features are yet to be made of them
        self.X = X if is_frame(X) or features is not None else points
        self._bounds: Bounds | None = None

    def query(self, avoid: Iterable[tuple[int, int]] = ()) -> tuple[int, int] | None:
        """The numbers of two points to ask about; None if all groups are known.

        Pairs to avoid, for now, are taken to be different, so that others are asked about.
        """
        groups = self._groups()
        number = {item: k for k, group in enumerate(groups) for item in group}
        apart: set[tuple[int, int]] = set()  # groups that only pairs to avoid keep apart
        for i, j in avoid:
            if not self.closure.implied(i, j):
                for item in (i, j):
                    if item not in number:
                        number[item] = len(groups)
                        groups.append([item])
                apart |= {(number[i], number[j]), (number[j], number[i])}

        def implied(group: list[int], other: list[int]) -> int:
            known = self.closure.implied(group[0], other[0])
            return known or -((number[group[0]], number[other[0]]) in apart)

        groups.sort(key=len, reverse=True)
        new = [i for i in range(len(self._points)) if i not in number]
        if not groups:
            groups, new = [new[:1]], new[1:]
        core: list[list[int]] = []
        others: list[list[int]] = []
        for group in groups:
            (core if all(implied(group, other) < 0 for other in core) else others).append(group)
        if not others and not new:
            return None
        items = [group[0] for group in others]
        known = np.array([[implied(group, other) != 0 for other in core] for group in others], dtype=bool)
        known = known.reshape(len(items), len(core))
        begun = np.flatnonzero(known.any(axis=1))
        if len(begun):  # finish those first: that founds new groups
            items, known = [items[k] for k in begun], known[begun]
        else:
            items, known = items + new, np.vstack([known, np.zeros((len(new), len(core)), dtype=bool)])
        return self._nearest(items, core, known)

    def _nearest(self, items: list[int], core: list[list[int]], known: Array) -> tuple[int, int]:
        """The item nearest to a group of which it is not known whether it is in it; and the nearest member."""
        some, size = np.arange(len(items)), sum(map(len, core))
        if len(items) * size >= MANY and self._is_plain():
            bounds = self._lower_bounds(items, core)
            bounds[known] = np.inf
            least = bounds.min(axis=1)
            first = np.sort(np.argpartition(least, FIRST)[:FIRST]) if len(items) > FIRST else some
            far, _, _ = self._distances(items, core, known, first)
            some = np.flatnonzero(least <= far.min())
        far, Z, groups = self._distances(items, core, known, some)
        nearest, group = divmod(int(far.argmin()), len(core))
        closest = int(squared(Z[nearest : nearest + 1], groups[group]).argmin())
        return items[some[nearest]], core[group][closest]

    def _distances(
        self, items: list[int], core: list[list[int]], known: Array, some: Any
    ) -> tuple[Array, Array, list[Array]]:
        """Of some items from the core, infinite where it is known; and the coordinates of both."""
        rows = [items[k] for k in some]
        Z = self._transformed(rows + list(chain.from_iterable(core)))
        groups = np.split(Z[len(rows) :], np.cumsum([len(group) for group in core])[:-1])
        far = distances(Z[: len(rows)], groups)
        far[known[some]] = np.inf
        return far, Z, groups

    def _transformed(self, rows: list[int]) -> Array:
        if "_engine" not in vars(self.tracker):
            return self._points[rows]
        return self.tracker.transform(self.X[rows]) if self._is_plain() else self.tracker.transform(self.X)[rows]

    def _is_plain(self) -> bool:
        """Whether distances are those of a matrix, between points as they were given."""
        return self.X is self._points and not self.tracker.nonlinear

    def _lower_bounds(self, items: list[int], core: list[list[int]]) -> Array:
        if self._bounds is None:
            self._bounds = Bounds(self._points)
        learned = "_engine" in vars(self.tracker)
        return self._bounds.below(self.tracker.get_metric().components if learned else None, items, core)

    def _groups(self) -> list[list[int]]:
        groups: Any = self.closure.groups()
        numbers = range(len(self._points))
        for item in (item for group in groups for item in group):
            if not isinstance(item, (int, np.integer)) or item not in numbers:
                raise ValueError(f"closure must have numbers of points, 0 to {len(numbers) - 1}, got {item!r}")
        return groups
