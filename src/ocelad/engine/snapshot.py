"""Snapshots of a stack of learners: a few plain arrays, level by level, without spare capacity; and back.

The eigenpairs of all levels come one after the other or, if there are many features, the dictionaries and the
factors of their columns. What comes back is checked in full.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import platt
from ..protocols import Array, Integers
from . import gathered, pool_snapshot, windows
from .checks import LEVEL, Columns, integer_column, split, take, take_levels
from .kernels import layout, live, scratch
from .landmarks import LANDMARKS, WIDTHS
from .protocol import Arrays

if TYPE_CHECKING:
    from .stack_engine import StackEngine

FACTORED = ("rank", "sigma")
DICTIONARIES = ("debt", "count", "since", "touched")
"""Further columns of ``levels``: always, and where there are dictionaries."""

ORTHONORMAL = 1e-3
"""Tolerance for columns to be orthonormal: rounding of any number of steps is far below, nonsense far above."""

_COEFFICIENT = 1e6  # factors have far smaller entries; with larger ones, orthonormality would be luck


def names(dictionary: bool, pooled: bool, nonlinear: bool) -> tuple[str, ...]:
    """The arrays of a snapshot."""
    pool = (*(pool_snapshot.NAMES if pooled else ()), *(gathered.NAMES if nonlinear else ()))
    if dictionary:
        return "levels", "recent", "recent_features", "features", "dictionary", "factors", "eigenvalues", *pool
    return "levels", "columns", *pool


def arrays(engine: StackEngine) -> Arrays:
    """What has been learned."""
    if not engine.pooled:
        return _levels(engine)
    stack, fixed = engine.stack, engine.fixed
    calibration = stack.calibration[: layout.LEVEL + engine.levels].copy()
    log_weights = stack.combiner[:fixed, layout.LOG_WEIGHT]
    pool = pool_snapshot.arrays(stack, stack.losses[:fixed], log_weights, calibration)
    mapped = gathered.arrays(engine.gathered, engine._maps, engine.recipe.n) if engine.nonlinear else {}
    return _levels(engine) | pool | mapped


def _levels(engine: StackEngine) -> Arrays:
    stack, slots, fixed = engine.stack, engine.stack.order[: engine.levels], engine.fixed
    ranks, state = stack.rank[slots], engine.state[fixed:]
    if not engine.dictionary:
        known = len(LEVEL) + len(FACTORED)
        levels = np.empty((len(ranks), known + state.shape[1]))
        columns = np.empty((int(ranks.sum()), engine.recipe.n + 1))
        live.write_live(*engine.buffers.all, levels, columns)
        levels[:, known:] = state
        return {"levels": levels, "columns": columns}
    losses = stack.losses[fixed : fixed + engine.levels]
    by_level = [losses, stack.mu[slots], stack.discarded[slots], ranks, stack.sigma[slots]]
    recent, seen = stack.header[[layout.RECENT, layout.SEEN]]
    shared = stack.features[-1, layout.LIST, :seen]
    counts, since, touched = stack.own[slots], stack.since[slots], stack.touched[slots]
    sizes = list(zip(slots, ranks, counts, since, touched, strict=True))
    features = [stack.features[slot, layout.LIST, :t] for slot, *_, t in sizes]
    parts = [stack.columns[slot, e, :k].T.reshape(-1) for e, (slot, _, k, *_) in zip(features, sizes, strict=True)]
    factors = [stack.factors[slot, : k + recent - first, :r].reshape(-1) for slot, r, k, first, _ in sizes]
    return {
        "levels": np.column_stack([*by_level, stack.debt[slots], counts, since, touched, state]),
        "recent": stack.recent[shared, :recent].T.copy(),
        "recent_features": shared.copy(),
        "features": np.concatenate(features),
        "dictionary": np.concatenate(parts),
        "factors": np.concatenate(factors),
        "eigenvalues": stack.eigenvalues[slots][np.arange(stack.eigenvalues.shape[1]) < ranks[:, None]],
    }


@lru_cache(maxsize=256)
def footprint(n: int, levels: int, columns: int, matrices: int, memory: int, nonlinear: bool) -> int:
    """An upper bound, in bytes, of what it takes to build and check an engine of this size, with at most
    ``columns`` columns in a level, this number of n x n matrices, and a pool of this memory."""
    slots, capacity = 2 * levels + 10, min(n + 3, 2 * columns + 16)  # those of the new arrays, and of the first
    height = capacity + layout.RECENT_CAPACITY
    memory = memory if n <= windows.WIDE else 0
    maps, mapped = (len(WIDTHS), LANDMARKS) if nonlinear else (0, 0)
    replayed = (3 + memory.bit_length()) * (1 + maps) if memory else 0
    sizes = n, slots, capacity, height, replayed, memory, replayed + 1, maps, mapped, 0
    floats, integers, singles = layout.stack_sizes(*sizes)
    checking = 3 * (n + 4) * height + 4 * height * height
    return 8 * (2 * (floats + integers + singles) + sum(scratch.sizes(*sizes)) + checking + 10 * matrices * n * n)


def restored(engine: StackEngine, t: int, learned: Arrays) -> StackEngine:
    """A stack of these parts, restored to time t, in the memory of this one if it has the capacity."""
    n, dictionary = engine.recipe.n, engine.dictionary
    known = (*LEVEL, *FACTORED, *(DICTIONARIES if dictionary else ()))
    columns, state = take_levels(learned, known, t, engine.recipe.base, engine.weights)
    max_rank = max(engine.max_rank, int(engine.stack.rank[0]))  # one may just have left the origin
    ranks = integer_column(columns, "rank", max_rank)
    levels, most, total = len(ranks), int(ranks.max()), int(ranks.sum())
    if dictionary:
        sizes = _sizes(n, ranks, columns, learned)
        most, eigenvalues = max(most, int(sizes.counts.max())), take(learned, "eigenvalues", (total,))
    else:
        eigenvalues = take(learned, "columns", (total, n + 1))[:, 0]
    if total and not eigenvalues.min() >= 0.0:
        raise ValueError("eigenvalues must be >= 0")
    new = engine.with_capacity(levels, min(n, most + 1))
    stack = new.stack
    stack.header[layout.TIME] = t
    if dictionary:
        _fill_levels(stack, new.fixed, ranks, learned["levels"].T, eigenvalues)
        _fill_dictionaries(stack, slice(1, levels + 1), sizes, columns, learned)
    else:
        arrays = (
            learned["levels"].copy(),
            learned["columns"].copy(),
        )  # else compiled for read-only ones
        if (wrong := live.read_live(*new.buffers.all, *arrays, ORTHONORMAL)) >= 0:
            raise ValueError(f"columns of level {wrong} are not orthonormal")
    if not new.pooled:
        new.state = state
    else:
        stack.combiner[new.fixed : new.fixed + levels, layout.LOG_WEIGHT] = state[:, 0]
        new.buffers, fixed, calibration = pool_snapshot.restore(new.buffers, t, learned, new.fixed, state[:, 0])
        stack = new.stack
        stack.losses[: new.fixed], stack.combiner[: new.fixed, layout.LOG_WEIGHT] = fixed.T
        stack.calibration[: len(calibration)] = calibration
        stack.calibration[len(calibration) :] = platt.unscaled(1)
    if new.nonlinear:
        new.gathered, new._maps = gathered.restored(learned, n, t)
    return new


def _fill_levels(stack: layout.Stack, fixed: int, ranks: Integers, by_level: Array, eigenvalues: Array) -> None:
    """Level j comes to slot j + 1; slot 0 is the origin's."""
    levels, places = len(ranks), slice(1, len(ranks) + 1)
    stack.columns[1:], stack.factors[1:], stack.features[1:] = 0.0, 0.0, 0  # there may have been something else
    stack.order[:-1] = np.arange(1, len(stack.order))
    stack.header[layout.LEVELS] = levels
    stack.losses[fixed : fixed + levels], stack.rank[places] = by_level[0], ranks
    stack.mu[places], stack.discarded[places], stack.sigma[places] = by_level[1], by_level[2], by_level[4]
    used = np.arange(stack.eigenvalues.shape[1]) < ranks[:, None]
    stack.eigenvalues[places][used] = eigenvalues


class _Sizes(NamedTuple):
    """Of the dictionary of each level."""

    ranks: Integers
    counts: Integers  # rows of its own
    since: Integers  # the first recent comparison that it has too
    touched: Integers  # features

    def heights(self, recent: int) -> Integers:
        return self.counts + recent - self.since


def _sizes(n: int, ranks: Integers, columns: Columns, learned: Arrays) -> _Sizes:
    """Those of the dictionaries, if all that is about them fits together."""
    recent = len(learned["recent"]) if learned["recent"].ndim else 0
    limits = (("count", n), ("since", recent), ("touched", n))
    counts, since, touched = (integer_column(columns, name, most) for name, most in limits)
    sizes = _Sizes(ranks, counts, since, touched)
    if not (sizes.heights(recent) >= ranks).all():
        raise ValueError("count has entries too small for those of rank")
    if recent > layout.RECENT_CAPACITY:
        raise ValueError(f"recent has more than {layout.RECENT_CAPACITY} rows")
    features = take(learned, "features", (int(touched.sum()),), np.int64)
    shared = take(learned, "recent_features", (learned["recent_features"].size,), np.int64)
    for part in (shared, *split(features, touched)):
        if not ((part >= 0) & (part < n)).all() or len(np.unique(part)) < len(part):
            raise ValueError(f"features of a level must be different ones of 0, ..., {n - 1}")
    take(learned, "recent", (recent, len(shared)))
    take(learned, "dictionary", (int((counts * touched).sum()),))
    take(learned, "factors", (int((sizes.heights(recent) * ranks).sum()),))
    for level, (features, E, F) in enumerate(_factors(sizes, learned)):
        rows = np.zeros((len(F), n))  # those that the factor combines
        rows[: len(E), features], rows[len(E) :, shared] = E, learned["recent"][since[level] :]
        if not _orthonormal(rows, F):
            raise ValueError(f"columns of level {level} are not orthonormal")
    return sizes


def _factors(sizes: _Sizes, learned: Arrays) -> list[tuple[Array, Array, Array]]:
    """Of each level the features, the rows of its own, and the factor."""
    heights = sizes.heights(len(learned["recent"]))
    E = split(learned["dictionary"], sizes.counts * sizes.touched)
    F = split(learned["factors"], heights * sizes.ranks)
    parts = zip(split(learned["features"], sizes.touched), E, F, sizes.counts, heights, sizes.ranks, strict=True)
    return [(own, e.reshape(k, len(own)), f.reshape(m, r)) for own, e, f, k, m, r in parts]


def _orthonormal(E: Array, F: Array) -> bool:
    """Whether the combinations F of the rows of E are, and those rows have length 1."""
    if np.abs(E).max(initial=0.0) > 2.0 or np.abs(F).max(initial=0.0) > _COEFFICIENT:
        return False
    gram = E @ E.T
    if np.abs(np.diag(gram) - 1.0).max(initial=0.0) > ORTHONORMAL:
        return False
    return bool(np.abs(F.T @ gram @ F - np.eye(F.shape[1])).max(initial=0.0) <= ORTHONORMAL)


def _fill_dictionaries(
    stack: layout.Stack, places: slice, sizes: _Sizes, columns: Columns, learned: Arrays
) -> None:
    stack.debt[places], stack.own[places] = columns["debt"], sizes.counts
    stack.since[places], stack.touched[places] = sizes.since, sizes.touched
    for slot, (features, E, F) in enumerate(_factors(sizes, learned), start=1):
        stack.features[slot, layout.LIST, : len(features)] = features
        stack.features[slot, layout.MARK, features] = 1
        stack.columns[slot, features, : len(E)], stack.factors[slot, : len(F), : F.shape[1]] = E.T, F
    recent, shared = learned["recent"], learned["recent_features"]
    stack.header[layout.RECENT], stack.header[layout.SEEN] = len(recent), len(shared)
    stack.features[-1, layout.LIST, : len(shared)], stack.features[-1, layout.MARK, shared] = shared, 1
    stack.recent[shared, : len(recent)] = recent.T
