"""Neighbourhood components analysis (Goldberger, Roweis, Hinton, Salakhutdinov 2004), by scikit-learn."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from ... import validation as validate
from ...geometry import Mahalanobis
from .fitted import FromLabels, whole


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

    n_iter_: int

    def __init__(
        self,
        n_components: int | None = None,
        *,
        init: Any = "auto",
        max_iter: int = 50,
        tol: float = 1e-5,
        preprocessor: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.preprocessor = preprocessor
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from points of shape (m, n) and their classes."""
        new, X, labels = self._opened(X, y)
        fitted = NeighborhoodComponentsAnalysis(
            n_components=self.n_components,
            init=self.init,
            max_iter=whole(self.max_iter, "max_iter"),
            tol=validate.number(self.tol, "tol", positive=True),
            random_state=self.random_state,
            verbose=int(self.verbose),
        ).fit(X, labels)
        new.n_iter_ = fitted.n_iter_
        return self._become(new, Mahalanobis.embedding(fitted.components_))
