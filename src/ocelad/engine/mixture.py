"""The matrix of a mixture of compiled learners: sum_j p_j M_j, dense or, where that is smaller, as few columns.

M_j = sigma_j I + Q_j diag(eigenvalues_j - sigma_j) Q_j',      Q_j orthonormal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..geometry.quadratic import Dense, Parts, principal
from ..protocols import Array, Integers
from .kernels import layout

MAX_ENTRIES = 1 << 22  # of columns that are concatenated; more are added up one learner at a time


def weighted_sum(stack: layout.Stack, slots: Integers, p: Array) -> Dense | Parts:
    """The sum of the matrices of these learners, each times its weight."""
    n, total = stack.columns.shape[1], int(stack.rank[slots].sum())
    sigma, learners = float(p @ stack.sigma[slots]), list(zip(slots.tolist(), p.tolist(), strict=True))
    if total >= n:
        M = sigma * np.eye(n)
        for slot, weight in learners:
            Q, extra = _terms(stack, slot, weight)
            M += (Q * extra) @ Q.T
        return Dense((M + M.T) / 2)
    if sigma == 0.0 and n * total > MAX_ENTRIES:  # one learner after the other, on the features that there are
        features = _features(stack, slots)
        rows = np.zeros((0, len(features)))
        for slot, weight in learners:
            Q, extra = _terms(stack, slot, weight, features)
            rows = principal(np.vstack([rows, (Q * np.sqrt(extra)).T]))
        together = np.zeros((n, len(rows)))
        together[features] = rows.T
        return Parts(together, np.ones(len(rows)), 0.0)
    terms = [_terms(stack, slot, weight) for slot, weight in learners]
    return Parts(np.hstack([Q for Q, _ in terms]), np.concatenate([extra for _, extra in terms]), sigma)


def columns(stack: layout.Stack, slot: int, features: Any = slice(None)) -> Array:
    """Q, or its rows of some features."""
    rank, own = stack.rank[slot], stack.columns[slot]
    if not _dictionaries(stack):
        return own[features, :rank]
    count, recent = stack.own[slot], slice(stack.since[slot], stack.header[layout.RECENT])
    F = stack.factors[slot, : count + recent.stop - recent.start, :rank]
    return own[features, :count] @ F[:count] + stack.recent[features, recent] @ F[count:]


def _terms(stack: layout.Stack, slot: int, weight: float, features: Any = slice(None)) -> tuple[Array, Array]:
    """Q, and by how much each of its columns counts beyond sigma."""
    extra = stack.eigenvalues[slot, : stack.rank[slot]] - stack.sigma[slot]
    return columns(stack, slot, features), weight * extra


def _features(stack: layout.Stack, slots: Integers) -> Integers:
    """The features that any of these learners has met."""
    if not _dictionaries(stack):
        return np.arange(stack.columns.shape[1])
    lists = [stack.features[slot, layout.LIST, : stack.touched[slot]] for slot in slots]
    return np.unique(np.concatenate([*lists, stack.features[-1, layout.LIST, : stack.header[layout.SEEN]]]))


def _dictionaries(stack: layout.Stack) -> bool:
    return bool(stack.header[layout.HEIGHT] > 0)
