"""Fixed share on losses as they are, within the parts of an ensemble and between them: the combiner of a pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .protocols import Array, Opening, is_number
from .weights import softmax


@dataclass(frozen=True)
class GroupedShare:
    """Exponential weights at rate 1 with a share given back, to all of a group and to all groups.

        w <- w exp(-loss) / sum,
        W_g = sum of the weights in group g, of k_g slots,
        w <- ((1 - share) w / W_g + share / k_g) ((1 - between) W_g + between / groups).

    Groups are the parts of a `Union`. With the log loss it is Bayes' rule, twice: within each group, for a best
    expert that changes with probability ``share`` a step, and between groups, for a best group that changes with
    probability ``between``. So the mixture sum_j w_j p_j is behind any sequence of experts by what it takes to
    describe its changes (Herbster and Warmuth 1998): log(k_g / share) for another expert, and for another group
    log(groups / between) besides. A slot that is new enters with the mean weight of its group.

    Examples
    --------
    >>> rule = GroupedShare()
    >>> state = rule.open(np.zeros((0, 2)), Opening(0, (0, 1, 2), (8.0, 16.0, np.inf), groups=(0, 0, 1)))
    >>> rule.probabilities(state)
    array([0.25, 0.25, 0.5 ])
    >>> rule.probabilities(rule.update(state, np.array([0.0, 3.0, 3.0]), lambda: 0.0)).round(3)
    array([0.866, 0.047, 0.087])
    """

    share: float = 0.01
    between: float = 0.001
    fields: ClassVar[tuple[str, ...]] = ("log_weight", "group")

    def __post_init__(self) -> None:
        for name in ("share", "between"):
            if not (is_number(getattr(self, name)) and 0 <= getattr(self, name) < 1):
                raise ValueError(f"{name} must lie in [0, 1), got {getattr(self, name)!r}")

    def open(self, state: Array, opening: Opening) -> Array:
        groups = opening.groups or (0,) * len(opening.slots)
        new = [group for slot, group in zip(opening.slots, groups, strict=True) if slot >= len(state)]
        if not new:
            return state
        old, group = len(state), np.append(state[:, 1], new)
        w = np.append(np.exp(state[:, 0]), np.ones(len(new)))
        for g in np.unique(group):
            mine, total = group == g, 1.0 / max(1, len(np.unique(state[:, 1])))
            if mine[:old].any():
                total = w[:old][mine[:old]].sum()
                w[old:][mine[old:]] = total / mine[:old].sum()
            if total > 0.0:
                w[mine] *= total / w[mine].sum()
        with np.errstate(divide="ignore"):
            return np.column_stack([np.log(w / w.sum()), group])

    def update(self, state: Array, losses: Array, mixed: Callable[[], float]) -> Array:  # noqa: ARG002
        w, group = softmax(state[:, 0] - losses), state[:, 1]
        groups, number, sizes = np.unique(group, return_inverse=True, return_counts=True)
        W, size = np.bincount(number, weights=w)[number], sizes[number]
        with np.errstate(divide="ignore", invalid="ignore"):  # a group may have lost all of its weight
            within = np.where(W > 0.0, (1.0 - self.share) * (w / W) + self.share / size, 1.0 / size)
            v = np.log(within * ((1.0 - self.between) * W + self.between / len(groups)))
        return np.column_stack([v, group])

    def probabilities(self, state: Array) -> Array:
        return softmax(state[:, 0])

    def mixture(self, state: Array) -> Array:
        return self.probabilities(state)
