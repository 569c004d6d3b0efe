"""A random walk on rotations, which moves a subspace by small steps that add up.

D_{t+1} = Cayley(S_t) D_t,     Cayley(S) = (I - S/2)^-1 (I + S/2),     S_t Gaussian, skew, of given norm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..learner import Array


def haar(n: int, rng: np.random.Generator) -> Array:
    """A uniformly random orthogonal matrix."""
    Q, R = np.linalg.qr(rng.normal(size=(n, n)))
    return Q * np.sign(np.diag(R))


def random_skew(n: int, norm: float, rng: np.random.Generator) -> Array:
    """A Gaussian skew matrix of given Frobenius norm."""
    G = rng.normal(size=(n, n))
    S = G - G.T
    return np.asarray(S * (norm / np.linalg.norm(S)), dtype=np.float64)


def cayley(S: Array) -> Array:
    """The rotation of a skew matrix, or of each of a stack of them."""
    identity = np.eye(S.shape[-1])
    return np.asarray(np.linalg.solve(identity - S / 2, identity + S / 2), dtype=np.float64)


def rotation_walk(rates: Iterable[float], D: Array, rng: np.random.Generator) -> Iterator[Array]:
    """D_0, D_1, ...: before each rate in turn, the rotation in force; then a step of that Frobenius norm."""
    for rate in rates:
        yield D
        if rate > 0:
            D = cayley(random_skew(len(D), rate, rng)) @ D
