"""What an ensemble of COMID learners has learned, as a few plain arrays, and back: level by level, nothing spare.

A stack gives ``ranks``, ``rows`` and ``eigenvalues`` of all levels one after the other, ``sigma`` and ``mu``; a
list of black boxes gives ``matrices`` and ``mu``. What comes back is checked in full: compiled kernels do not.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from ..ensemble import Rice
from ..intervals import length
from ..learner import Array
from .comid import ComidOnIntervals
from .estimate import Metric
from .kernels import codes
from .stack import StackedRice

Arrays = dict[str, np.ndarray[Any, Any]]

FACTORED = ("ranks", "rows", "eigenvalues", "sigma", "mu")
DENSE = ("matrices", "mu")

ORTHONORMAL = 1e-3
"""How far from orthonormal rows may be: rounding of any number of steps is far below, nonsense far above."""


def _listed(ensemble: object) -> TypeGuard[Rice[Metric]]:
    return type(ensemble) is Rice and type(ensemble.spawn) is ComidOnIntervals


def names(ensemble: object) -> tuple[str, ...]:
    """The arrays that hold this ensemble; none, if arrays cannot hold it."""
    return FACTORED if type(ensemble) is StackedRice else DENSE if _listed(ensemble) else ()


def footprint(n: int, levels: int, rank: int) -> int:
    """An upper bound, in bytes, of what it takes to build an ensemble of this size."""
    slots, room = levels + 6, min(n, 2 * rank + 18)
    return 8 * (10 * n * n + 3 * slots * room * n + 4 * (room + slots) * (room + 8) + 64 * levels)


def arrays(ensemble: object) -> Arrays:
    """What has been learned."""
    if type(ensemble) is StackedRice:
        slots = ensemble.meta[codes.ORDER, : ensemble.levels]
        ranks = ensemble.meta[codes.RANK, slots]
        used = list(zip(slots, ranks, strict=True))
        return {
            "ranks": ranks,
            "rows": np.concatenate([ensemble.Q[slot, :rank] for slot, rank in used]),
            "eigenvalues": np.concatenate([ensemble.S[slot, :rank] for slot, rank in used]),
            "sigma": ensemble.S[slots, -2],
            "mu": ensemble.S[slots, -1],
        }
    assert _listed(ensemble)
    estimates = [learner.estimate for learner in ensemble.learners]
    return {"matrices": np.array([e.M for e in estimates]), "mu": np.array([e.mu for e in estimates])}


def check(n: int, levels: int, learned: Arrays) -> None:
    """Whether arrays with these names can be what so many levels have learned about n features."""
    mu = _take(learned, "mu", (levels,))
    if not (mu >= 1.0).all():
        raise ValueError("mu has entries below 1")
    if "matrices" in learned:
        for M in _take(learned, "matrices", (levels, n, n)):
            size = float(np.abs(M).max())
            if not np.array_equal(M, M.T) or np.linalg.eigvalsh(M / (size or 1.0))[0] < -1e-8 * n:
                raise ValueError("matrices holds one that is not symmetric and positive semi-definite")
        return
    ranks = _take(learned, "ranks", (levels,), np.int64)
    if not ((ranks >= 0) & (ranks <= n)).all():
        raise ValueError(f"ranks has entries outside 0, ..., {n}")
    total = int(ranks.sum())
    rows, s = _take(learned, "rows", (total, n)), _take(learned, "eigenvalues", (total,))
    if not (s >= 0.0).all() or not (_take(learned, "sigma", (levels,)) >= 0.0).all():
        raise ValueError("eigenvalues or sigma has entries below 0")
    for Q in np.split(rows, np.cumsum(ranks)[:-1]):
        if np.abs(Q).max(initial=0.0) > 2.0 or np.abs(Q @ Q.T - np.eye(len(Q))).max(initial=0.0) > ORTHONORMAL:
            raise ValueError("rows of a level are not orthonormal")


def _take(learned: Arrays, name: str, shape: tuple[int, ...], dtype: type = np.float64) -> np.ndarray[Any, Any]:
    """A finite array of this kind."""
    array = learned[name]
    if array.dtype.kind != np.dtype(dtype).kind or array.shape != shape:
        raise ValueError(f"{name} must be {dtype.__name__} of shape {shape}, got {array.dtype} of {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array.astype(dtype, copy=False)


def restore(ensemble: object, t: int, learned: Arrays) -> None:
    """Put arrays that have been checked into a new ensemble, as they were at time t."""
    mu: Array = learned["mu"]
    if type(ensemble) is StackedRice:
        _refill(ensemble, t, learned)
    else:
        assert _listed(ensemble)
        lengths = [float(length(level, ensemble.base)) for level in range(len(mu))]
        ensemble.learners = [
            ensemble.spawn(size, Metric(M, m)) for size, M, m in zip(lengths, learned["matrices"], mu, strict=True)
        ]


def _refill(stack: StackedRice, t: int, learned: Arrays) -> None:
    ranks = learned["ranks"]
    levels = len(ranks)
    stack._reserve(levels, int(ranks.max()))
    slots = len(stack.Q)
    stack.meta[codes.ORDER, : slots - 1] = np.arange(1, slots)  # level j in slot j + 1; slot 0 is the origin's
    stack.meta[codes.CLOCK, :2] = t, levels
    ends = np.cumsum(ranks)
    for level, (end, rank) in enumerate(zip(ends, ranks, strict=True)):
        stack.Q[level + 1, :rank] = learned["rows"][end - rank : end]
        stack.S[level + 1, :rank] = learned["eigenvalues"][end - rank : end]
        stack.S[level + 1, -2:] = learned["sigma"][level], learned["mu"][level]
        stack.meta[codes.RANK, level + 1] = rank


def same_parts(one: object, other: object) -> bool:
    """Whether two ensembles have been built with the same options."""
    if type(one) is StackedRice and type(other) is StackedRice:
        known = slice(codes.RULE)  # the combiner is entered later
        return np.array_equal(one.options[known], other.options[known]) and _close(_origin(one), _origin(other))
    if not (_listed(one) and _listed(other)):
        return False
    a, b = one.spawn, other.spawn
    assert isinstance(a, ComidOnIntervals)
    assert isinstance(b, ComidOnIntervals)
    options = (one.base, one.start, a.step, a.descent) == (other.base, other.start, b.step, b.descent)
    return options and _close(a.origin.M, b.origin.M)


def _origin(stack: StackedRice) -> Array:
    rank, sigma = stack.meta[codes.RANK, 0], stack.S[0, -2]
    rows = stack.Q[0, :rank]
    return (rows.T * (stack.S[0, :rank] - sigma)) @ rows + sigma * np.eye(stack.n)


def _close(M: Array, N: Array) -> bool:
    """Equal but for rounding: eigenvectors may be computed differently with another number of threads."""
    return M.shape == N.shape and np.allclose(M, N, rtol=0.0, atol=1e-9 * float(np.abs(M).max()))
