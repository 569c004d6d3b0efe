"""Linear discriminant analysis (Fisher 1936), by scikit-learn."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from ...geometry import Mahalanobis
from ...protocols import Array, Integers
from .fitted import FromLabels


@dataclass(eq=False, repr=False)
class LDA(FromLabels):
    """The directions in which classes differ most, in units of the spread within them.

    Parameters
    ----------
    n_components
        How many dimensions to keep, the most important: at most one less than there are classes. None keeps all.
    shrinkage
        How much the covariance within classes is drawn to a multiple of the identity, as scikit-learn's
        ``LinearDiscriminantAnalysis`` has it: None, ``"auto"`` or a number from 0 to 1.
    preprocessor
        Turns indicators into points: an array whose rows they number, or a function.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> LDA().fit(X, y).components_.shape
    (2, 4)
    """

    n_components: int | None = None
    _: KW_ONLY
    shrinkage: Any = None
    preprocessor: Any = None

    def _learn(self, X: Array, labels: Integers) -> Mahalanobis:
        most = min(X.shape[1], int(labels.max()))
        if self.n_components is not None and self.n_components > most:
            raise ValueError(f"n_components must be at most {most} for these classes, got {self.n_components}")
        if len(X) <= labels.max() + 1:
            raise ValueError(f"y must name more points than classes, got {len(X)} of {labels.max() + 1} classes")
        solver = "svd" if self.shrinkage is None else "eigen"
        fitted = LinearDiscriminantAnalysis(solver=solver, shrinkage=self.shrinkage).fit(X, labels)
        return Mahalanobis.embedding(fitted.scalings_[:, : self.n_components or most].T)
