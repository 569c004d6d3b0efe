"""Large-margin nearest neighbours (Weinberger and Saul 2009), solved to a known accuracy.

F of `impostors` is convex in M. It is minimised over L with M = L'L by L-BFGS, in coordinates in which the
targets' scatter is I, for a working set of impostors: all within the margin, and some just outside it. Then all
others are looked at. Where some have come in, so that F has not fallen, the way from the old M to the new is
halved until it has, as it must, F being convex on it; what was in the way joins the working set. With G the
gradient in M,

    F(M) - min F <= <G, M> + max(0, -lambda_min(G)) F(M) / (1 - push),

because in those coordinates (1 - push) tr M <= F(M), at the minimum too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

import numpy as np

from ... import validation as validate
from ...geometry import Mahalanobis
from ...protocols import Array, Integers
from .descent import descend
from .fitted import FromLabels, Rounds, Solved, unit_of
from .impostors import MarginLoss, scatter, targets

SLACK = 0.1
"""How much farther than the margin impostors are taken into the working set."""
RIDGE = 1e-6
"""The trifle: this part of all points' scatter."""


@dataclass(eq=False, repr=False)
class LMNN(Solved, FromLabels):
    """The metric under which each point's nearest of its class are nearer, by a margin, than all of other classes.

    Multiplying all features by one constant leaves the distances as they are. A point of a class with too few
    others has fewer targets.

    Parameters
    ----------
    n_neighbors
        How many targets each point has: its nearest, by the Euclidean distance, of its own class.
    push
        The weight of pushing impostors away, between 0 and 1; that of pulling targets near is what remains.
    rounding
        Over which part of the margin the corner of the hinge is rounded off.
    max_iter
        How many rounds, of 50 steps each, at most.
    tol
        When to stop: when the loss is known to be this close to its minimum, as a part of itself.
    n_components
        How many dimensions to keep, the most important; None keeps all.
    preprocessor
        Turns indicators into points: an array whose rows they number, or a function.
    verbose
        Whether to say on stderr, every two seconds, how far it has come.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_wine(return_X_y=True)
    >>> cross_val_score(KNeighborsClassifier(), X, y).mean().round(2).item()
    0.69
    >>> bool(cross_val_score(make_pipeline(LMNN(), KNeighborsClassifier()), X, y).mean() > 0.95)
    True
    """

    n_neighbors: int = 3
    _: KW_ONLY
    push: float = 0.5
    rounding: float = 0.1
    loss_curve_: Array = field(init=False)

    def _learn(self, X: Array, labels: Integers) -> Mahalanobis:
        k, rounds = validate.integer(self.n_neighbors, "n_neighbors"), Rounds(self)
        rounding = validate.number(self.rounding, "rounding", positive=True)
        push = validate.number(self.push, "push", positive=True)
        if push >= 1.0:
            raise ValueError(f"push must be a number between 0 and 1, got {self.push!r}")
        X = X - X.mean(axis=0)
        unit = unit_of(X)
        X /= unit
        chosen = targets(X, labels, k)
        if (chosen < 0).all():
            raise ValueError("y must hold at least one class of two points")
        basis = _coordinates(X, chosen)
        loss = MarginLoss(X @ basis, labels, chosen, push, rounding)
        L, curve, self.gap_ = _descend(loss, _euclid(basis, int((chosen >= 0).sum())), rounds)
        rounds.certify(self.gap_)
        self.loss_curve_, self.n_iter_ = np.array(curve), len(curve)
        L = L @ basis.T
        return Mahalanobis(L.T @ L, unit, self.n_components)


def _coordinates(X: Array, chosen: Integers) -> Array:
    """B of shape (n, p): the coordinates X B of all that varies, in which the targets' scatter, with a trifle of
    all points' that makes it definite, is I."""
    has = chosen >= 0
    W = scatter(X, np.nonzero(has)[0], chosen[has], np.ones(has.sum()))
    size = np.sqrt(np.square(X).mean(axis=0))
    size[size == 0.0] = 1.0
    _, s, V = np.linalg.svd(X / size, full_matrices=False)  # each in its unit: rounding treats all features alike
    kept = s > 1e-10 * s[0]
    T = (V[kept] / s[kept, None]).T / size[:, None]
    inside = T.T @ W @ T
    w, V = np.linalg.eigh(inside + RIDGE * np.eye(len(inside)))
    return T @ (V / np.sqrt(w))


def _euclid(basis: Array, trace: int) -> Array:
    """The factor of the Euclidean distance in these coordinates, of the size that puts targets at 1 on average."""
    L = np.linalg.inv(np.linalg.qr(basis)[1]).T  # L'L is the inverse of B'B
    return L * np.sqrt(trace) / np.linalg.norm(L)


def _descend(loss: MarginLoss, start: Array, rounds: Rounds) -> tuple[Array, list[float], float]:
    """L, the loss after each round, and how far the last may be from the minimum, as a part of it."""
    L, working = start, loss.impostors(start, SLACK)
    F = loss(L, working)[0]
    curve = []
    for number in rounds:
        inside = partial(loss, impostors=working)
        L, found, after = _fallen(loss, L, descend(inside, _widened(inside, L)), F)
        working = np.union1d(working, found)
        G = loss(L, working)[1]
        gap = (np.vdot(G, L.T @ L) + max(0.0, -np.linalg.eigvalsh(G)[0]) * after / (1.0 - loss.push)) / after
        curve.append(after)
        text = f"round {number}, loss {after:.4g}, at most {gap:.2g} of it above the minimum"
        if rounds.reached(gap, text) or not after < F:
            break
        F = after
    return L, curve, float(gap)


def _widened(loss: Callable[[Array], tuple[float, Array]], L: Array) -> Array:
    """L with what it lacks: a factor that has lost a direction does not find it again by itself, but where G has a
    negative eigenvalue there is something to gain."""
    F, G = loss(L)
    s, V = np.linalg.eigh(G)
    missing = np.maximum(-s, 0.0)
    if not missing.any():
        return L
    M, more = L.T @ L, (V * missing) @ V.T / missing.sum()
    for part in 0.5 ** np.arange(30):
        e, U = np.linalg.eigh(M + part * max(M.trace(), 1.0) * more)
        wider: Array = (U * np.sqrt(np.maximum(e, 0.0))).T
        if loss(wider)[0] < F:
            return wider
    return L


def _fallen(loss: MarginLoss, here: Array, there: Array, F: float) -> tuple[Array, Integers, float]:
    """The metric on the way at which the loss over all impostors has fallen, which of them to look at from now on
    (those there, and those that were in the way a little farther on), and that loss."""
    part, L, beyond = 1.0, there, np.zeros(0, dtype=np.int64)
    while part > 1e-6:
        found = loss.impostors(L, SLACK)
        after = loss(L, found)[0]
        if after < F:
            return L, np.concatenate([found, beyond]), after
        part, beyond = part / 2.0, found
        s, V = np.linalg.eigh((1.0 - part) * here.T @ here + part * there.T @ there)
        L = (V * np.sqrt(np.maximum(s, 0.0))).T
    return here, beyond, F
