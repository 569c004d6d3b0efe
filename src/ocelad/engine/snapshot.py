"""What a stack of learners has learned, as a few plain arrays, level by level, nothing spare; and back.

The eigenpairs of all levels come one after the other or, if there are many features, the dictionaries and the
factors of their columns. What comes back is checked in full, for compiled kernels do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..protocols import Array
from .checks import split, take
from .kernels import layout, scratch
from .protocol import Arrays

if TYPE_CHECKING:
    from .stack_engine import StackEngine

COLUMNS = ("ranks", "rows", "eigenvalues", "sigma", "mu", "discarded")
DICTIONARIES = (
    *("ranks", "recent", "recent_features", "counts", "since", "touched", "features", "dictionary", "factors"),
    *("eigenvalues", "sigma", "mu", "discarded", "debt"),
)

ORTHONORMAL = 1e-3
"""How far from orthonormal rows may be: rounding of any number of steps is far below, nonsense far above."""

_COEFFICIENT = 1e6  # factors have far smaller entries; with larger ones, orthonormality would be luck


def arrays(own: StackEngine) -> Arrays:
    """What has been learned."""
    stack, slots = own.stack, own.stack.order[: own.levels]
    ranks = stack.rank[slots]
    learned: Arrays = {"ranks": ranks}
    if own.dictionary:
        recent, seen = stack.header[[layout.RECENT, layout.SEEN]]
        shared = stack.features[-1, layout.LIST, :seen]
        learned |= {"recent": stack.recent[shared, :recent].T.copy(), "recent_features": shared.copy()}
        counts, since, touched = stack.own[slots], stack.since[slots], stack.touched[slots]
        used = list(zip(slots, ranks, counts, since, touched, strict=True))
        features = [stack.features[slot, layout.LIST, :t] for slot, *_, t in used]
        parts = [
            stack.columns[slot, e, :k].T.reshape(-1) for e, (slot, _, k, *_) in zip(features, used, strict=True)
        ]
        factors = [stack.factors[slot, : k + recent - first, :r].reshape(-1) for slot, r, k, first, _ in used]
        learned |= {"counts": counts, "since": since, "touched": touched, "features": np.concatenate(features)}
        learned |= {"dictionary": np.concatenate(parts), "factors": np.concatenate(factors)}
    else:
        learned["rows"] = np.concatenate(
            [stack.columns[slot, :, :r].T for slot, r in zip(slots, ranks, strict=True)]
        )
    learned["eigenvalues"] = np.concatenate(
        [stack.eigenvalues[slot, :r] for slot, r in zip(slots, ranks, strict=True)]
    )
    names = DICTIONARIES if own.dictionary else COLUMNS
    return learned | {name: getattr(stack, name)[slots] for name in names[names.index("sigma") :]}


def footprint(n: int, levels: int, columns: int, matrices: int) -> int:
    """An upper bound, in bytes, of what it takes to build and check an engine of this size: so many columns in a
    level at most, and so many matrices of n x n."""
    slots, room = 2 * levels + 10, min(n + 3, 2 * columns + 16)  # those of the new arrays, and of the first
    height = room + layout.RING
    floats, integers = layout.stack_sizes(n, slots, room, height)
    work, index, every = scratch.sizes(n, slots, room, height)
    checking = 3 * (n + 4) * height + 4 * height * height
    return 8 * (2 * (floats + integers) + work + index + every + checking + 10 * matrices * n * n)


def check(own: StackEngine, levels: int, learned: Arrays) -> None:
    """Whether arrays with the right names can be what so many levels have learned."""
    n, most = own.recipe.n, max(own.most, int(own.stack.rank[0]))  # a level may just have left the origin
    if not (take(learned, "mu", (levels,)) >= 1.0).all():
        raise ValueError("mu has entries below 1")
    ranks = take(learned, "ranks", (levels,), np.int64)
    if not ((ranks >= 0) & (ranks <= most)).all():
        raise ValueError(f"ranks has entries outside 0, ..., {most}")
    if own.dictionary:
        _check_dictionary(n, levels, learned)
    else:
        take(learned, "rows", (int(ranks.sum()), n))
    for name in ("sigma", "discarded", "debt") if own.dictionary else ("sigma", "discarded"):
        if not (take(learned, name, (levels,)) >= 0.0).all():
            raise ValueError(f"{name} has entries below 0")
    if not (take(learned, "eigenvalues", (int(ranks.sum()),)) >= 0.0).all():
        raise ValueError("eigenvalues has entries below 0")
    for number, (E, F) in enumerate(_columns(n, learned)):
        if not _orthonormal(E, F):
            raise ValueError(f"columns of level {number} are not orthonormal")


def _check_dictionary(n: int, levels: int, learned: Arrays) -> None:
    ranks, recent = learned["ranks"], len(learned["recent"]) if learned["recent"].ndim else 0
    counts, since, touched = (take(learned, name, (levels,), np.int64) for name in ("counts", "since", "touched"))
    for name, entries, most in (("counts", counts, n), ("since", since, recent), ("touched", touched, n)):
        if not ((entries >= 0) & (entries <= most)).all():
            raise ValueError(f"{name} has entries outside 0, ..., {most}")
    if not (counts + recent - since >= ranks).all():
        raise ValueError("counts has entries too small for those of ranks")
    if recent > layout.RING:
        raise ValueError(f"recent has more than {layout.RING} rows")
    features = take(learned, "features", (int(touched.sum()),), np.int64)
    shared = take(learned, "recent_features", (learned["recent_features"].size,), np.int64)
    for part in (shared, *split(features, touched)):
        if not ((part >= 0) & (part < n)).all() or len(np.unique(part)) < len(part):
            raise ValueError(f"features of a level must be different ones of 0, ..., {n - 1}")
    take(learned, "recent", (recent, len(shared)))
    take(learned, "dictionary", (int((counts * touched).sum()),))
    take(learned, "factors", (int(((counts + recent - since) * ranks).sum()),))


def _factors(learned: Arrays) -> list[tuple[Array, Array, Array]]:
    """Of each level the features, the rows of its own, and the factor."""
    ranks, counts, touched = learned["ranks"], learned["counts"], learned["touched"]
    heights = counts + len(learned["recent"]) - learned["since"]
    E, F = split(learned["dictionary"], counts * touched), split(learned["factors"], heights * ranks)
    sizes = zip(counts, touched, heights, ranks, strict=True)
    shaped = [(e.reshape(k, t), f.reshape(m, r)) for e, f, (k, t, m, r) in zip(E, F, sizes, strict=True)]
    return [(own, e, f) for own, (e, f) in zip(split(learned["features"], touched), shaped, strict=True)]


def _columns(n: int, learned: Arrays) -> Iterator[tuple[Array, Array | None]]:
    """Of each level the rows that it combines, and the factor, if there is any."""
    if "rows" in learned:
        yield from ((part, None) for part in split(learned["rows"], learned["ranks"]))
        return
    for since, (features, E, F) in zip(learned["since"], _factors(learned), strict=True):
        rows = np.zeros((len(F), n))
        rows[: len(E), features] = E
        rows[len(E) :, learned["recent_features"]] = learned["recent"][since:]
        yield rows, F


def _orthonormal(E: Array, F: Array | None) -> bool:
    """Whether the combinations F of the rows of E are, and those rows have length 1."""
    if np.abs(E).max(initial=0.0) > 2.0:
        return False
    gram = E @ E.T
    if F is not None:
        if np.abs(F).max(initial=0.0) > _COEFFICIENT or np.abs(np.diag(gram) - 1.0).max(initial=0.0) > ORTHONORMAL:
            return False
        gram = F.T @ gram @ F
    return bool(np.abs(gram - np.eye(len(gram))).max(initial=0.0) <= ORTHONORMAL)


def restore(own: StackEngine, t: int, learned: Arrays) -> None:
    """Put arrays that have been checked into a new stack, as they were at time t."""
    ranks, counts = learned["ranks"], learned.get("counts", 0 * learned["ranks"])
    levels = len(ranks)
    own.reserve(levels, min(own.recipe.n, max(int(ranks.max()) + 1, int(counts.max()))))
    stack, places = own.stack, slice(1, levels + 1)  # level j goes to slot j + 1; slot 0 is the origin's
    stack.columns[1:], stack.factors[1:], stack.features[1:] = 0.0, 0.0, 0
    stack.header[[layout.TIME, layout.LEVELS]] = t, levels
    for name, entries in (("rank", ranks), ("own", counts)):
        getattr(stack, name)[places] = entries
    for name in ("since", "touched", "sigma", "mu", "discarded", "debt"):
        getattr(stack, name)[places] = learned.get(name, 0)
    for slot, s in enumerate(split(learned["eigenvalues"], ranks), start=1):
        stack.eigenvalues[slot, : len(s)] = s
    if not own.dictionary:
        for slot, (E, _) in enumerate(_columns(own.recipe.n, learned), start=1):
            stack.columns[slot, :, : len(E)] = E.T
        return
    for slot, (features, E, F) in enumerate(_factors(learned), start=1):
        stack.features[slot, layout.LIST, : len(features)], stack.features[slot, layout.MARK, features] = (
            features,
            1,
        )
        stack.columns[slot, features, : len(E)], stack.factors[slot, : len(F), : F.shape[1]] = E.T, F
    recent, shared = learned["recent"], learned["recent_features"]
    stack.header[[layout.RECENT, layout.SEEN]] = len(recent), len(shared)
    stack.features[-1, layout.LIST, : len(shared)], stack.features[-1, layout.MARK, shared] = shared, 1
    stack.recent[shared, : len(recent)] = recent.T
