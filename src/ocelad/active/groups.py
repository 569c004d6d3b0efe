"""Ask for the partition of a set of points rather than for the metric: an item against its nearest group."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import validation as validate
from ..closure import Closure
from ..protocols import Array
from ..tracker import MetricTracker
from ..tracker.inputs import is_frame
from ..tracker.inputs import points as points_of

CLOSEST = 3
"""Members of a group, the closest ones, whose mean distance is that of the group."""


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

    def query(self) -> tuple[int, int] | None:
        """The numbers of two points to ask about; None if all groups are known."""
        groups = sorted(self._groups(), key=len, reverse=True)
        placed = {item for group in groups for item in group}
        new = [i for i in range(len(self._points)) if i not in placed]
        if not groups:
            groups, new = [new[:1]], new[1:]
        core: list[list[int]] = []
        others: list[list[int]] = []
        for group in groups:
            apart = all(self.closure.implied(group[0], other[0]) < 0 for other in core)
            (core if apart else others).append(group)
        if not others and not new:
            return None
        items = [group[0] for group in others]
        known = np.array([[self.closure.implied(i, group[0]) != 0 for group in core] for i in items], dtype=bool)
        known = known.reshape(len(items), len(core))
        begun = np.flatnonzero(known.any(axis=1))
        if len(begun):  # finish those first: that founds new groups
            items, known = [items[k] for k in begun], known[begun]
        else:
            items, known = items + new, np.vstack([known, np.zeros((len(new), len(core)), dtype=bool)])
        Z = self._points if "_engine" not in vars(self.tracker) else self.tracker.transform(self.X)
        far = np.column_stack([_distance(Z, items, group) for group in core])
        far[known] = np.inf
        nearest = int(far.argmin())
        i, members = items[nearest // len(core)], core[nearest % len(core)]
        return i, members[int(_squared(Z, [i], members).argmin())]

    def _groups(self) -> list[list[int]]:
        groups: Any = self.closure.groups()
        numbers = range(len(self._points))
        for item in (item for group in groups for item in group):
            if not isinstance(item, (int, np.integer)) or item not in numbers:
                raise ValueError(f"closure must have numbers of points, 0 to {len(numbers) - 1}, got {item!r}")
        return groups


def _squared(Z: Array, items: list[int], members: list[int]) -> Array:
    """Squared distances of all items from all members."""
    a, b = Z[items], Z[members]
    square = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2.0 * (a @ b.T)
    return np.maximum(square, 0.0)


def _distance(Z: Array, items: list[int], members: list[int]) -> Array:
    """Of each item from a group: the mean distance from its closest members."""
    square, k = _squared(Z, items, members), min(CLOSEST, len(members))
    return np.sqrt(np.partition(square, k - 1, axis=1)[:, :k]).mean(axis=1)
