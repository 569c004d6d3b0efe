"""What an ensemble of COMID learners has learned, as a few plain arrays, and back: level by level, nothing spare.

A stack gives the eigenpairs of all levels one after the other, or, if it has many features, the dictionaries and
the factors of their columns; a list of black boxes gives ``matrices``. What comes back is checked in full, for
compiled kernels do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

import numpy as np

from ..ensemble import Rice
from ..geometry.comid import Comid, ComidOnIntervals, Recipe
from ..geometry.metric import Metric
from ..intervals import length
from ..protocols import Array
from . import stack
from .kernels import codes
from .stack import StackedRice

Arrays = dict[str, np.ndarray[Any, Any]]

_SCALARS = ("sigma", "mu", "discarded", "debt")  # in the order of their codes
FACTORED = ("ranks", "rows", "eigenvalues", "sigma", "mu", "discarded")
WAITING = ("ranks", "rows", "counts", "terms", "term_weights", *FACTORED[2:])
_SHARED = ("recent", "recent_features")
_DICTIONARY = ("counts", "since", "touched", "features", "dictionary", "factors")
DEFERRED = ("ranks", *_SHARED, *_DICTIONARY, "eigenvalues", *_SCALARS)
DENSE = ("matrices", "mu", "discarded")

ORTHONORMAL = 1e-3
"""How far from orthonormal rows may be: rounding of any number of steps is far below, nonsense far above."""

_COEFFICIENT = 1e6  # factors have far smaller entries; with larger ones, orthonormality would be luck


def _listed(ensemble: object) -> TypeGuard[Rice[Metric]]:
    return type(ensemble) is Rice and type(ensemble.spawn) is ComidOnIntervals


def names(ensemble: object) -> tuple[str, ...]:
    """The arrays that hold this ensemble; none, if arrays cannot hold it."""
    if type(ensemble) is StackedRice:
        return DEFERRED if ensemble.deferred else WAITING if ensemble.late else FACTORED
    return DENSE if _listed(ensemble) else ()


def footprint(n: int, levels: int, columns: int, matrices: int) -> int:
    """An upper bound, in bytes, of what it takes to build and check an ensemble of this size: so many columns in
    a level at most, and so many matrices of n x n."""
    deferred = n >= stack._DEFERRED
    slots, room = 2 * levels + 10, min(n + 3, 2 * columns + 16)  # those of the new arrays, and of the first
    tall = room + codes.RING + 8 if deferred else room
    scratch = (room + codes.WIDTH) * (tall + 9) + 4 * tall * tall + 32 * (n + tall + slots + codes.WIDTH + 8)
    factors = slots * (room * tall + 2 * (n + 4) if deferred else 0) + 2 * slots * (room + 16) + 2 * codes.LANES
    shared = (n + 4) * (3 * codes.RING + 2 * tall) if deferred else 0
    return 8 * (slots * (n + 4) * room + shared + factors + scratch + 10 * matrices * n * n)


def arrays(ensemble: object) -> Arrays:
    """What has been learned."""
    if type(ensemble) is StackedRice:
        return _stacked(ensemble)
    assert _listed(ensemble)
    estimates = [learner.estimate for learner in ensemble.learners]
    return {
        "matrices": np.array([e.M for e in estimates]),
        "mu": np.array([e.mu for e in estimates]),
        "discarded": np.array([_comid(learner).discarded for learner in ensemble.learners]),
    }


def _comid(learner: Any) -> Comid:
    assert isinstance(learner, Comid)
    return learner


def _stacked(own: StackedRice) -> Arrays:
    slots = own.meta[codes.ORDER, : own.levels]
    ranks, counts, since, touched = own.meta[[codes.RANK, codes.COUNT, codes.SINCE, codes.TOUCHED]][:, slots]
    learned = {"ranks": ranks}
    if own.deferred:
        recent, seen = own.meta[codes.CLOCK, [codes.RECENT, codes.SEEN]]
        shared = own.features[-1, codes.LIST, :seen]
        learned |= {"recent": own.U[shared, :recent].T.copy(), "recent_features": shared}
        used = list(zip(slots, ranks, counts, since, touched, strict=True))
        features = [own.features[slot, codes.LIST, :t] for slot, *_, t in used]
        parts = [own.E[slot, e, :k].T.reshape(-1) for e, (slot, _, k, *_) in zip(features, used, strict=True)]
        factors = [own.F[slot, : k + recent - first, :r].reshape(-1) for slot, r, k, first, _ in used]
        learned |= {"counts": counts, "since": since, "touched": touched, "features": np.concatenate(features)}
        learned |= {"dictionary": np.concatenate(parts), "factors": np.concatenate(factors)}
    else:
        columns = [own.E[slot, : own.n, :r].T for slot, r in zip(slots, ranks, strict=True)]
        learned["rows"] = np.concatenate(columns)
    if own.late:
        terms = [own.L[slot, :m, :r].reshape(-1) for slot, m, r in zip(slots, counts, ranks, strict=True)]
        weights = [own.A[slot, :m] for slot, m in zip(slots, counts, strict=True)]
        learned |= {"counts": counts, "terms": np.concatenate(terms), "term_weights": np.concatenate(weights)}
    learned["eigenvalues"] = np.concatenate([own.S[slot, :r] for slot, r in zip(slots, ranks, strict=True)])
    scalars = dict(zip(_SCALARS, own.scalars[slots].T, strict=True))
    return learned | {name: scalars[name] for name in _SCALARS if name in names(own)}


def check(ensemble: object, levels: int, learned: Arrays) -> None:
    """Whether arrays with the right names can be what so many levels of this ensemble have learned."""
    if not (_take(learned, "mu", (levels,)) >= 1.0).all():
        raise ValueError("mu has entries below 1")
    discarded = _take(learned, "discarded", (levels,))
    if type(ensemble) is StackedRice:
        if not (discarded >= 0.0).all():
            raise ValueError("discarded has entries below 0")
        _check_stack(ensemble, levels, learned)
        return
    assert _listed(ensemble)
    n = len(_origin(ensemble))
    for M in _take(learned, "matrices", (levels, n, n)):
        size = float(np.abs(M).max()) or 1.0
        if not _close(M / size, M.T / size) or np.linalg.eigvalsh(M / size)[0] < -1e-8 * n:
            raise ValueError("matrices holds one that is not symmetric and positive semi-definite")


def _check_stack(own: StackedRice, levels: int, learned: Arrays) -> None:
    n, most = own.n, max(own.most, int(own.meta[codes.RANK, 0]))  # a level may just have left the origin
    ranks = _take(learned, "ranks", (levels,), np.int64)
    if not ((ranks >= 0) & (ranks <= most)).all():
        raise ValueError(f"ranks has entries outside 0, ..., {most}")
    if own.deferred:
        _check_dictionary(n, levels, learned)
    else:
        _take(learned, "rows", (int(ranks.sum()), n))
    nonnegative = ("sigma", "debt") if own.deferred else ("sigma",)
    numbers = [_take(learned, "eigenvalues", (int(ranks.sum()),))]
    numbers += [_take(learned, name, (levels,)) for name in nonnegative]
    if not all((array >= 0.0).all() for array in numbers):
        raise ValueError(f"eigenvalues or {' or '.join(nonnegative)} has entries below 0")
    if own.late:
        _check_terms(levels, learned)
    for number, (E, F) in enumerate(_columns(n, learned)):
        if not _orthonormal(E, F):
            raise ValueError(f"columns of level {number} are not orthonormal")


def _check_dictionary(n: int, levels: int, learned: Arrays) -> None:
    ranks, recent = learned["ranks"], len(learned["recent"]) if learned["recent"].ndim else 0
    counts, since, touched = (_take(learned, name, (levels,), np.int64) for name in ("counts", "since", "touched"))
    for name, entries, most in (("counts", counts, n), ("since", since, recent), ("touched", touched, n)):
        if not ((entries >= 0) & (entries <= most)).all():
            raise ValueError(f"{name} has entries outside 0, ..., {most}")
    if not (counts + recent - since >= ranks).all():
        raise ValueError("counts has entries too small for those of ranks")
    if recent > codes.RING:
        raise ValueError(f"recent has more than {codes.RING} rows")
    features = _take(learned, "features", (int(touched.sum()),), np.int64)
    shared = _take(learned, "recent_features", (learned["recent_features"].size,), np.int64)
    for part in (shared, *_split(features, touched)):
        if not ((part >= 0) & (part < n)).all() or len(np.unique(part)) < len(part):
            raise ValueError(f"features of a level must be different ones of 0, ..., {n - 1}")
    _take(learned, "recent", (recent, len(shared)))
    _take(learned, "dictionary", (int((counts * touched).sum()),))
    _take(learned, "factors", (int(((counts + recent - since) * ranks).sum()),))


def _check_terms(levels: int, learned: Arrays) -> None:
    ranks, counts = learned["ranks"], _take(learned, "counts", (levels,), np.int64)
    if not ((counts >= 0) & (counts <= codes.LATE)).all():
        raise ValueError(f"counts has entries outside 0, ..., {codes.LATE}")
    _take(learned, "terms", (int((counts * ranks).sum()),))
    _take(learned, "term_weights", (int(counts.sum()),))
    for s, L, a in zip(_split(learned["eigenvalues"], ranks), *_terms(learned), strict=True):
        size = max(float(s.max(initial=0.0)), float((np.abs(a) * (L * L).sum(axis=1)).max(initial=0.0))) or 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            X = np.diag(s / size) + (L.T * (a / size)) @ L
        if not np.isfinite(X).all() or (len(X) and np.linalg.eigvalsh(X)[0] < -1e-8):
            raise ValueError("terms leave a matrix that is not positive semi-definite")


def _terms(learned: Arrays) -> tuple[list[Array], list[Array]]:
    """Of each level the terms that have not been diagonalised, and their weights."""
    ranks, counts = learned["ranks"], learned["counts"]
    terms = zip(_split(learned["terms"], counts * ranks), counts, ranks, strict=True)
    return [part.reshape(m, r) for part, m, r in terms], _split(learned["term_weights"], counts)


def _split(array: Array, sizes: Array) -> list[Array]:
    return np.split(array, np.cumsum(sizes)[:-1])


def _factors(learned: Arrays) -> list[tuple[Array, Array, Array]]:
    """Of each level the features, the rows of its own, and the factor."""
    ranks, counts, touched = learned["ranks"], learned["counts"], learned["touched"]
    heights = counts + len(learned["recent"]) - learned["since"]
    E, F = _split(learned["dictionary"], counts * touched), _split(learned["factors"], heights * ranks)
    sizes = zip(counts, touched, heights, ranks, strict=True)
    shaped = [(e.reshape(k, t), f.reshape(m, r)) for e, f, (k, t, m, r) in zip(E, F, sizes, strict=True)]
    return [(own, e, f) for own, (e, f) in zip(_split(learned["features"], touched), shaped, strict=True)]


def _columns(n: int, learned: Arrays) -> Iterator[tuple[Array, Array | None]]:
    """Of each level the rows that it combines, and the factor, if there is any."""
    if "rows" in learned:
        yield from ((part, None) for part in _split(learned["rows"], learned["ranks"]))
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
    if type(ensemble) is StackedRice:
        _refill(ensemble, t, learned)
        return
    assert _listed(ensemble)
    ensemble.learners = []
    for level, (M, mu) in enumerate(zip(learned["matrices"], learned["mu"], strict=True)):
        learner = _comid(ensemble.spawn(float(length(level, ensemble.base)), Metric(M, mu)))
        learner.discarded = float(learned["discarded"][level])
        ensemble.learners.append(learner)


def _refill(own: StackedRice, t: int, learned: Arrays) -> None:
    ranks, counts = learned["ranks"], learned.get("counts", 0 * learned["ranks"])
    levels = len(ranks)
    columns = counts if own.deferred else ranks
    own._reserve(levels, max(int(ranks.max()), int(columns.max()) - 1))  # a learner may have shrunk since
    own.E[1:], own.F[1:], own.features[1:] = 0.0, 0.0, 0  # level j goes to slot j + 1; slot 0 is the origin's
    places = slice(1, levels + 1)
    own.meta[codes.CLOCK, [codes.TIME, codes.LEVELS]] = t, levels
    own.meta[codes.RANK, places], own.meta[codes.COUNT, places] = ranks, counts
    own.meta[codes.SINCE, places], own.meta[codes.TOUCHED, places] = (
        learned.get("since", 0),
        learned.get("touched", 0),
    )
    for code, name in enumerate(_SCALARS):
        own.scalars[places, code] = learned.get(name, 0.0)
    own.losses_now[:levels] = learned["losses"]
    eigenvalues = _split(learned["eigenvalues"], ranks)
    for slot, s in enumerate(eigenvalues, start=1):
        own.S[slot, : len(s)] = s
    for slot, (L, a) in enumerate(zip(*_terms(learned), strict=True) if own.late else (), start=1):
        own.L[slot, : len(L), : L.shape[1]], own.A[slot, : len(a)] = L, a
    if not own.deferred:
        for slot, (E, _) in enumerate(_columns(own.n, learned), start=1):
            own.E[slot, : own.n, : len(E)] = E.T
        return
    for slot, (features, E, F) in enumerate(_factors(learned), start=1):
        own.features[slot, codes.LIST, : len(features)], own.features[slot, codes.MARK, features] = features, 1
        own.E[slot, features, : len(E)], own.F[slot, : len(F), : F.shape[1]] = E.T, F
    recent, shared = learned["recent"], learned["recent_features"]
    own.meta[codes.CLOCK, [codes.RECENT, codes.SEEN]] = len(recent), len(shared)
    own.features[-1, codes.LIST, : len(shared)], own.features[-1, codes.MARK, shared] = shared, 1
    own.U[shared, : len(recent)] = recent.T


def same_recipe(one: Recipe, other: Recipe) -> bool:
    """Whether two ensembles have been built with the same options."""
    plain = ("n", "mu", "step", "descent", "base", "start", "max_rank")
    return all(getattr(one, name) == getattr(other, name) for name in plain) and same_origin(one, other)


def same_origin(one: Recipe, other: Recipe) -> bool:
    """To the bit: a number is not the same as a matrix."""
    return type(one.origin) is type(other.origin) and np.array_equal(one.origin, other.origin)


def made_from(ensemble: object, recipe: Recipe) -> bool:
    """Whether an ensemble is what the recipe says, as a stack or taken apart."""
    if type(ensemble) is StackedRice:
        return (ensemble.n, ensemble.base) == (recipe.n, recipe.base)
    if not _listed(ensemble):
        return False
    own, said = ensemble.spawn, recipe.spawn()
    assert isinstance(own, ComidOnIntervals)
    return (
        (ensemble.base, ensemble.start) == (recipe.base, recipe.start)
        and (own.step, own.descent, own.max_rank) == (said.step, said.descent, said.max_rank)
        and (own.origin.mu == said.origin.mu and np.array_equal(own.origin.M, said.origin.M))
    )


def _origin(ensemble: Rice[Metric]) -> Array:
    assert isinstance(ensemble.spawn, ComidOnIntervals)
    return ensemble.spawn.origin.M


def _close(M: Array, N: Array) -> bool:
    return bool(np.abs(M - N).max() <= 1e-9)
