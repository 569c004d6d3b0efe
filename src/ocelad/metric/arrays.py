"""What an ensemble of COMID learners has learned, as a few plain arrays, and back: level by level, nothing spare.

A stack gives the eigenpairs of all levels one after the other, or, if it has many features, the dictionaries and
the factors of their columns; a list of black boxes gives ``matrices``. What comes back is checked in full, for
compiled kernels do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from ..ensemble import Rice
from ..intervals import length
from ..learner import Array
from . import stack
from .comid import Comid, ComidOnIntervals, Recipe
from .estimate import Metric
from .kernels import codes
from .stack import StackedRice

if TYPE_CHECKING:
    pass

Arrays = dict[str, np.ndarray[Any, Any]]

_SCALARS = ("sigma", "mu", "discarded", "debt")  # in the order of their codes
FACTORED = ("ranks", "rows", "eigenvalues", "sigma", "mu", "discarded")
DEFERRED = ("ranks", "counts", "touched", "features", "dictionary", "factors", "eigenvalues", *_SCALARS)
DENSE = ("matrices", "mu", "discarded")

ORTHONORMAL = 1e-3
"""How far from orthonormal rows may be: rounding of any number of steps is far below, nonsense far above."""

_COEFFICIENT = 1e6  # factors have far smaller entries; with larger ones, orthonormality would be luck


def _listed(ensemble: object) -> TypeGuard[Rice[Metric]]:
    return type(ensemble) is Rice and type(ensemble.spawn) is ComidOnIntervals


def names(ensemble: object) -> tuple[str, ...]:
    """The arrays that hold this ensemble; none, if arrays cannot hold it."""
    if type(ensemble) is StackedRice:
        return DEFERRED if ensemble.deferred else FACTORED
    return DENSE if _listed(ensemble) else ()


def footprint(n: int, levels: int, columns: int, matrices: int) -> int:
    """An upper bound, in bytes, of what it takes to build and check an ensemble of this size: so many columns in
    a level at most, and so many matrices of n x n."""
    deferred = n >= stack._DEFERRED
    slots, room = levels + 10, min(n + 3, 2 * columns + 16)  # those of the new arrays, and of the first
    tall = 2 * room + codes.SPARE + 4 if deferred else room
    scratch = (room + codes.WIDTH) * (tall + 9) + 4 * tall * tall + 32 * (n + tall + slots + codes.WIDTH + 8)
    factors = slots * (room * tall + 2 * (n + 4) if deferred else 0) + 2 * slots * (room + 16) + 2 * codes.LANES
    return 8 * (slots * (n + 4) * tall + factors + scratch + 10 * matrices * n * n)


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
    ranks, counts, touched = (own.meta[code, slots] for code in (codes.RANK, codes.COUNT, codes.TOUCHED))
    learned = {"ranks": ranks}
    if own.deferred:
        used = list(zip(slots, ranks, counts, touched, strict=True))
        features = [own.features[slot, codes.LIST, :t] for slot, _, _, t in used]
        parts = [own.E[slot, e, :m].T.reshape(-1) for e, (slot, _, m, _) in zip(features, used, strict=True)]
        learned |= {"counts": counts, "touched": touched, "features": np.concatenate(features)}
        learned["dictionary"] = np.concatenate(parts)
        learned["factors"] = np.concatenate([own.F[slot, :m, :r].reshape(-1) for slot, r, m, _ in used])
    else:
        columns = [own.E[slot, : own.n, :r].T for slot, r in zip(slots, ranks, strict=True)]
        learned["rows"] = np.concatenate(columns)
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
    for number, (E, F) in enumerate(_columns(learned)):
        if not _orthonormal(E, F):
            raise ValueError(f"columns of level {number} are not orthonormal")


def _check_dictionary(n: int, levels: int, learned: Arrays) -> None:
    ranks = learned["ranks"]
    counts, touched = (_take(learned, name, (levels,), np.int64) for name in ("counts", "touched"))
    if not ((counts >= ranks) & (counts <= n)).all():
        raise ValueError(f"counts has entries below those of ranks or above {n}")
    if not ((touched >= 0) & (touched <= n)).all():
        raise ValueError(f"touched has entries outside 0, ..., {n}")
    features = _take(learned, "features", (int(touched.sum()),), np.int64)
    each = _split(features, touched)
    if not ((features >= 0) & (features < n)).all() or any(len(np.unique(part)) < len(part) for part in each):
        raise ValueError(f"features of a level must be different ones of 0, ..., {n - 1}")
    _take(learned, "dictionary", (int((counts * touched).sum()),))
    _take(learned, "factors", (int((counts * ranks).sum()),))


def _split(array: Array, sizes: Array) -> list[Array]:
    return np.split(array, np.cumsum(sizes)[:-1])


def _columns(learned: Arrays) -> list[tuple[Array, Array | None]]:
    """Of each level the rows, and the factor, if there are any."""
    ranks = learned["ranks"]
    if "rows" in learned:
        return [(part, None) for part in _split(learned["rows"], ranks)]
    counts, touched = learned["counts"], learned["touched"]
    E, F = _split(learned["dictionary"], counts * touched), _split(learned["factors"], counts * ranks)
    sizes = zip(counts, touched, ranks, strict=True)
    return [(e.reshape(m, t), f.reshape(m, r)) for e, f, (m, t, r) in zip(E, F, sizes, strict=True)]


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
    ranks, counts = learned["ranks"], learned.get("counts", learned["ranks"])
    levels = len(ranks)
    # a learner that has shrunk may have more columns than its rank and the surplus
    own._reserve(levels, max(int(ranks.max()), (int(counts.max()) - codes.SPARE + 1) // 2))
    own.E[1:], own.F[1:], own.features[1:] = 0.0, 0.0, 0  # level j goes to slot j + 1; slot 0 is the origin's
    places = slice(1, levels + 1)
    own.meta[codes.CLOCK, :2] = t, levels
    own.meta[codes.RANK, places], own.meta[codes.COUNT, places] = ranks, counts
    own.meta[codes.TOUCHED, places] = learned.get("touched", 0)
    for code, name in enumerate(_SCALARS):
        own.scalars[places, code] = learned.get(name, 0.0)
    own.losses_now[:levels] = learned["losses"]
    eigenvalues = _split(learned["eigenvalues"], ranks)
    for slot, (s, (E, F)) in enumerate(zip(eigenvalues, _columns(learned), strict=True), start=1):
        own.S[slot, : len(s)] = s
        if F is None:
            own.E[slot, : own.n, : len(E)] = E.T
        else:
            own.F[slot, : len(E), : len(s)] = F
    if own.deferred:
        each = zip(_split(learned["features"], learned["touched"]), _columns(learned), strict=True)
        for slot, (features, (E, _)) in enumerate(each, start=1):
            own.features[slot, codes.LIST, : len(features)], own.features[slot, codes.MARK, features] = features, 1
            own.E[slot, features, : len(E)] = E.T


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
