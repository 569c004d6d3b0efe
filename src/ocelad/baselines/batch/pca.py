"""Principal component analysis (Pearson 1901), by scikit-learn: what can be had without labels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.decomposition import PCA as PrincipalComponents
from sklearn.utils.validation import validate_data

from ... import validation as validate
from ...geometry import Mahalanobis
from ...protocols import Array, Integers
from .fitted import FromLabels


@dataclass(eq=False, repr=False)
class PCA(FromLabels):
    """The directions in which points vary most.

    Parameters
    ----------
    n_components
        How many dimensions to keep, the most important; None keeps all.
    whiten
        Whether each of them is measured in units of its own spread, as Mahalanobis (1936) does.
    preprocessor
        Turns indicators into points: an array whose rows they number, or a function.

    Examples
    --------
    >>> X = [[0.0, 0.0], [3.0, 1.0], [6.0, 0.0], [9.0, 1.0]]
    >>> PCA(n_components=1).fit(X).components_.round(2)
    array([[1.  , 0.07]])
    """

    n_components: int | None = None
    _: KW_ONLY
    whiten: bool = False
    preprocessor: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn from points of shape (m, n); classes, if given, are not looked at."""
        new = self._copy()
        X = validate_data(new, new._formed(X), dtype=np.float64, ensure_min_samples=2)
        validate.n_components(self.n_components, X.shape[1])
        return self._become(new, new._learn(X))

    def _learn(self, X: Array, labels: Integers | None = None) -> Mahalanobis:  # noqa: ARG002
        k = self.n_components
        if k is not None and k > len(X):
            raise ValueError(f"n_components must be at most the number of points, {len(X)}, got {k}")
        fitted = PrincipalComponents(n_components=k, svd_solver="full").fit(X)
        L = fitted.components_
        if self.whiten:
            varies = fitted.explained_variance_ > 1e-15 * fitted.explained_variance_[0]
            L = L[varies] / np.sqrt(fitted.explained_variance_[varies, None])
        return Mahalanobis.embedding(L)
