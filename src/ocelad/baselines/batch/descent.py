"""Minimising a convex function of M over its factor: M = L'L, by L-BFGS.

From a square L of full rank nothing but the global minimum attracts it; that it has been reached is certified by
each method's own bound.
"""

from __future__ import annotations

from collections.abc import Callable

from scipy.optimize import minimize

from ...protocols import Array

STEPS = 50
"""How many steps a round has."""


def descend(loss: Callable[[Array], tuple[float, Array]], L: Array) -> Array:
    """L after a round; ``loss`` gives its value at L and the gradient with respect to M, a symmetric matrix."""

    def of_factor(flat: Array) -> tuple[float, Array]:
        factor = flat.reshape(L.shape)
        value, G = loss(factor)
        return value, 2.0 * (factor @ G).ravel()

    options = {"maxiter": STEPS, "maxfun": 10 * STEPS, "maxcor": 20, "maxls": 60, "ftol": 0.0, "gtol": 0.0}
    found = minimize(of_factor, L.ravel(), jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(L.shape)
