"""A random walk on rotations, which moves a subspace by small steps that add up.

D_{t+1} = Cayley(S_t) D_t,     Cayley(S) = (I - S/2)^-1 (I + S/2),     S_t Gaussian, skew, of given norm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..protocols import Array


def haar(n: int, rng: np.random.Generator) -> Array:
    """A uniformly random orthogonal matrix."""
    Q, R = np.linalg.qr(rng.normal(size=(n, n)))
    return Q * np.sign(np.diag(R))


def skew(G: Array, norms: Sequence[float]) -> Array:
    """The skew part of each of a stack of matrices, in the size of given Frobenius norms."""
    S = G - G.swapaxes(1, 2)
    sizes = [math.sqrt(each @ each) for each in S.reshape(len(S), -1)]
    S *= (np.array(norms) / sizes)[:, None, None]
    return S


def cayley(S: Array) -> Array:
    """The rotation of a skew matrix, or of each of a stack of them."""
    identity, half = np.eye(S.shape[-1]), S / 2
    return np.asarray(np.linalg.solve(identity - half, identity + half), dtype=np.float64)
