"""Metric learning for clustering (Xing, Ng, Jordan, Russell 2002), solved exactly.

Different pairs far apart on average, similar ones near, by their mean squared distance:

    maximise  mean_D sqrt(u'Mu)    subject to  mean_S u'Mu <= 1,  M >= 0.

Its solution is of very low rank, which suits clusters and not neighbours; a barrier keeps it from that:

    maximise  g(M) = mean_D sqrt(u'Mu) - tr(WM)/2 + barrier/2 log det M,    W = mean_S uu'.

Without barrier this is the problem above, but for the size of M; the larger the barrier, the nearer M to a
multiple of W^-1. In coordinates in which W = I, and with M = L'L, each step maximises a lower bound of g that
touches it (|Lv| >= <Lv, L0v>/|L0v|), in closed form: with H = L0 mean_D(vv'/|L0v|) = U diag(h) V',

    L = U diag(l) V',    l = (h + sqrt(h^2 + 4 barrier)) / 2.

So g never decreases, there is no step size, and nothing to project: where gradient ascent alternates between two
constraints, here one of them is the coordinates and the other is L. sqrt(a) <= a/(2r) + r/2 bounds g from above.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from ... import validation as validate
from ...geometry import Mahalanobis
from ...protocols import Array
from .fitted import FromPairs, Rounds, Solved, unit_of


@dataclass(eq=False, repr=False)
class MMC(Solved, FromPairs):
    """The metric under which different pairs are far apart while similar ones are near.

    Any invertible linear map of the features, not only a change of their units, leaves the distances as they are
    (but with ``diagonal``, where this holds for units).

    Parameters
    ----------
    barrier
        How much M is kept from becoming of low rank: 0 for the problem of the paper, large for the inverse of the
        similar pairs' covariance.
    diagonal
        Whether to learn a weight for each feature and nothing else.
    ridge
        A part of all pairs' covariance that is added to that of the similar pairs, in case that these do not span
        what the others do.
    max_iter
        How many steps at most.
    tol
        When to stop: when the objective is known to be this close to its maximum, as a part of the mean distance.
    n_components
        How many dimensions to keep, the most important; None keeps all.
    preprocessor
        Turns indicators into points: an array whose rows they number, or a function.
    verbose
        Whether to say on stderr, every two seconds, how far it has come.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(200, 2, 3))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)  # only the first feature matters
    >>> mmc = MMC().fit(pairs, y)
    >>> mmc.get_mahalanobis_matrix().diagonal().argmax().item()
    0
    >>> np.linalg.matrix_rank(MMC(barrier=0.0, tol=1e-9).fit(pairs, y).get_mahalanobis_matrix(), tol=1e-3).item()
    1
    """

    _: KW_ONLY
    barrier: float = 1.0
    diagonal: bool = False
    ridge: float = 1e-3
    max_iter: int = 10_000

    def _learn(self, u: Array, y: Array) -> Mahalanobis:
        rounds, barrier = Rounds(self), validate.number(self.barrier, "barrier", positive=False)
        ridge = validate.number(self.ridge, "ridge", positive=False)
        unit = unit_of(u)
        near, far = u[y > 0] / unit, u[(y < 0) & u.any(axis=1)] / unit
        for rows, kind in ((near, "similar pair (+1)"), (far, "different pair (-1) of two different points")):
            if not len(rows):
                raise ValueError(f"y must name at least one {kind}")
        basis = _coordinates(near, np.concatenate([near, far]), ridge, self.diagonal)
        L, self.objective_, self.gap_, self.n_iter_ = _ascend(far @ basis, barrier, self.diagonal, rounds)
        rounds.certify(self.gap_)
        L = L @ basis.T
        return Mahalanobis(L.T @ L, unit, self.n_components)


def _coordinates(near: Array, all_: Array, ridge: float, diagonal: bool) -> Array:
    """B of shape (n, p): the coordinates u'B of all that varies, in which W, with its ridge, is I."""
    total, W = all_.T @ all_ / len(all_), near.T @ near / len(near)
    if diagonal:
        total, W = np.diag(total.diagonal()), np.diag(W.diagonal())
    size = np.sqrt(np.where(total.diagonal() > 0, total.diagonal(), 1.0))
    s, V = np.linalg.eigh(total / size / size[:, None])  # each in its unit: rounding treats all features alike
    kept = s > 1e-12 * s[-1]
    T = (V[:, kept] / np.sqrt(s[kept])) / size[:, None]
    inside = T.T @ W @ T + ridge * np.eye(T.shape[1])
    w, V = np.linalg.eigh((inside + inside.T) / 2)
    if not w[0] > 1e-12 * max(w[-1], 1.0):
        raise ValueError(
            "ridge must be > 0 for these pairs: the similar ones do not span what the different ones do"
        )
    return T @ (V / np.sqrt(w)) if not diagonal else T / np.sqrt(inside.diagonal())


def _ascend(v: Array, barrier: float, diagonal: bool, rounds: Rounds) -> tuple[Array, float, float, int]:
    """L, its objective, how far that may be below the maximum as a part of the mean distance, how many steps."""
    L = np.eye(v.shape[1])
    for step in rounds:
        r = np.maximum(np.linalg.norm(v @ L.T, axis=1), np.finfo(float).tiny)
        C = (v / r[:, None]).T @ v / len(v)
        if diagonal:
            C = np.diag(C.diagonal())
        value, bound = _bracket(L, C, float(r.mean()), barrier)
        gap = (bound - value) / float(r.mean())
        if rounds.reached(gap, f"step {step}, the objective may be {gap:.2g} below its maximum"):
            break
        U, h, V = np.linalg.svd(L @ C)
        L = (U * (h + np.sqrt(h * h + 4.0 * barrier)) / 2.0) @ V
    return L, value, gap, step


def _bracket(L: Array, C: Array, mean: float, barrier: float) -> tuple[float, float]:
    """The objective, and what it cannot exceed."""
    e = np.linalg.eigvalsh(C)
    if barrier == 0.0:  # at the best multiple of L
        return mean**2 / (2.0 * float(np.square(L).sum())), mean * float(e[-1]) / 2.0
    value = mean - float(np.square(L).sum()) / 2.0 + barrier * float(np.linalg.slogdet(L)[1])
    if e[-1] >= 1.0:
        return value, np.inf
    return value, mean / 2.0 - barrier / 2.0 * float((np.log((1.0 - e) / barrier) + 1.0).sum())
