"""Neighbourhood components analysis (Goldberger, Roweis, Hinton, Salakhutdinov 2004), by scikit-learn."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.neighbors import NeighborhoodComponentsAnalysis

from ... import validation as validate
from ...geometry import Mahalanobis
from ...protocols import Array, Integers
from .fitted import FromLabels


@dataclass(eq=False, repr=False)
class NCA(FromLabels):
    """The linear map under which a point that picks a neighbour at random, near ones rather, picks its own class.

    Parameters
    ----------
    n_components
        How many dimensions to map to; None for as many as there are features.
    init
        Where to begin, as scikit-learn's ``NeighborhoodComponentsAnalysis`` has it.
    max_iter, tol
        When to stop.
    preprocessor
        Turns indicators into points: an array whose rows they number, or a function.
    random_state
        For ``init="random"`` and ``"pca"``.
    verbose
        Whether scikit-learn is to say how far it has come.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> NCA(n_components=2).fit(X, y).transform(X).shape
    (150, 2)
    """

    n_components: int | None = None
    _: KW_ONLY
    init: Any = "auto"
    max_iter: int = 50
    tol: float = 1e-5
    preprocessor: Any = None
    random_state: Any = None
    verbose: bool = False

    def _learn(self, X: Array, labels: Integers) -> Mahalanobis:
        fitted = NeighborhoodComponentsAnalysis(
            n_components=self.n_components,
            init=self.init,
            max_iter=validate.integer(self.max_iter, "max_iter"),
            tol=validate.number(self.tol, "tol", positive=True),
            random_state=self.random_state,
            verbose=int(self.verbose),
        ).fit(X, labels)
        self.n_iter_ = fitted.n_iter_
        return Mahalanobis.embedding(fitted.components_)
