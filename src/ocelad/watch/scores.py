"""Streaming measures: accuracy, loss and AUC of an endless stream of decisions, in bounded memory.

    score = mu / (mu + d^2),   one half at the threshold;    AUC = P(score of similar > score of different),

ties counting half. Scores are counted in bins of equal width, so that only the order within a bin is unknown: the
AUC is right to within half the share of (similar, different) pairs of comparisons that fall into one bin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..protocols import Array

BINS = 4096


class Running:
    """Accuracy, mean loss and area under the ROC curve of all comparisons so far.

    >>> running = Running()
    >>> running.add([0.1, 0.3, 2.0, 0.2], thresholds=[1, 1, 1, 1], losses=[0, 0, 0, 1], y=[1, 1, -1, -1])
    >>> running.accuracy, running.auc, running.auc_error
    (0.75, 0.75, 0.0)
    """

    def __init__(self) -> None:
        self.count, self.right, self.loss = 0, 0, 0.0
        self._bins = np.zeros((2, BINS), dtype=np.int64)  # of the different and of the similar

    def add(self, squares: ArrayLike, thresholds: ArrayLike, losses: ArrayLike, y: ArrayLike) -> None:
        d2, mu, similar = np.asarray(squares, np.float64), np.asarray(thresholds, np.float64), np.asarray(y) > 0
        places = np.minimum((score(d2, mu) * BINS).astype(np.int64), BINS - 1)
        np.add.at(self._bins, (similar.astype(np.int64), places), 1)
        self.count += len(d2)
        self.right += int(((d2 <= mu) == similar).sum())
        for loss in np.asarray(losses, np.float64).tolist():  # one by one: the sum must not depend on the batches
            self.loss += loss

    @property
    def accuracy(self) -> float:
        return self.right / self.count if self.count else float("nan")

    @property
    def auc(self) -> float:
        """Nan until there are similar and different comparisons."""
        different, similar = self._bins
        total = float(different.sum()) * float(similar.sum())
        below = np.cumsum(different) - different
        return float(similar @ (below + different / 2.0)) / total if total else float("nan")

    @property
    def auc_error(self) -> float:
        """How far the AUC may be from that of the scores as they are."""
        different, similar = (side.astype(np.float64) for side in self._bins)
        total = different.sum() * similar.sum()
        return float(different @ similar / 2.0 / total) if total else float("nan")

    def state(self) -> dict[str, Any]:
        """Its state as JSON values, for another one to ``restore``."""
        used = np.flatnonzero(self._bins.any(axis=0))
        bins = [used.tolist(), *self._bins[:, used].tolist()]
        return {"count": self.count, "right": self.right, "loss": self.loss, "bins": bins}

    def restore(self, state: dict[str, Any]) -> None:
        self.count, self.right, self.loss = state["count"], state["right"], state["loss"]
        used, different, similar = state["bins"]
        self._bins[:] = 0
        self._bins[:, np.array(used, dtype=np.int64)] = [different, similar]


def score(squares: Array, thresholds: Array) -> Array:
    """How similar, from 0 to 1, one half at the threshold."""
    return thresholds / (thresholds + squares)
