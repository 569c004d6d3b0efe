"""Streaming measures of an endless stream of decisions, in bounded memory: accuracy, loss, AUC and calibration.

    score = the probability that a pair is similar, or, without one, mu / (mu + d^2), one half at the threshold;
    AUC = P(score of similar > score of different),                         ties counting half;
    calibration error = sum over ten bins |sum of probabilities - number of similar| / count.

Scores are counted in bins of equal width, so that only the order within a bin is unknown: the
AUC is right to within half the share of (similar, different) pairs of comparisons that fall into one bin.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..engine.trace import LEAST, Trace
from ..protocols import Array, Integers

BINS = 4096
RELIABILITY = 10
"""Bins of probabilities whose calibration is looked at."""


class Running:
    """Accuracy, mean loss, area under the ROC curve and, of probabilities, log loss and calibration error of all
    comparisons so far.

    >>> running = Running()
    >>> running.add([0.1, 0.3, 2.0, 0.2], thresholds=[1, 1, 1, 1], losses=[0, 0, 0, 1], y=[1, 1, -1, -1])
    >>> running.accuracy, running.auc, running.auc_error
    (0.75, 0.75, 0.0)
    """

    def __init__(self) -> None:
        self.count, self.right, self.loss, self._log_loss = 0, 0, 0.0, 0.0
        self._bins = np.zeros((2, BINS), dtype=np.int64)  # of the different and of the similar
        self._excess = np.zeros(RELIABILITY)  # of the probabilities over the number of similar

    def add(
        self,
        squares: ArrayLike,
        thresholds: ArrayLike,
        losses: ArrayLike,
        y: ArrayLike,
        probabilities: ArrayLike | None = None,
    ) -> None:
        """Take comparisons: squared distances and thresholds, what they cost, labels and, if they are known, the
        probabilities that they are similar."""
        d2, mu, similar = np.asarray(squares, np.float64), np.asarray(thresholds, np.float64), np.asarray(y) > 0
        p = score(d2, mu) if probabilities is None else np.asarray(probabilities, np.float64)
        np.add.at(self._bins, (similar.astype(np.int64), _bin(p, BINS)), 1)
        if probabilities is None:
            self._log_loss = math.nan
        else:
            np.add.at(self._excess, _bin(p, RELIABILITY), p - similar)
            for own in np.where(similar, p, 1.0 - p).tolist():
                self._log_loss -= math.log(max(own, LEAST))
        self.count += len(d2)
        self.right += int(((d2 <= mu) == similar).sum())
        for loss in np.asarray(losses, np.float64).tolist():  # one by one: the sum must not depend on the batches
            self.loss += loss

    @property
    def accuracy(self) -> float:
        return self.right / self.count if self.count else float("nan")

    @property
    def majority(self) -> float:
        """The accuracy of always saying the more frequent label."""
        return float(self._bins.sum(axis=1).max()) / self.count if self.count else float("nan")

    @property
    def log_loss(self) -> float:
        """The mean of minus the logarithm of the probability that the label had been given; nan without any."""
        return self._log_loss / self.count if self.count else float("nan")

    @property
    def calibration_error(self) -> float:
        """The expected calibration error: how far probabilities are from frequencies, in ten bins."""
        return float(np.abs(self._excess).sum()) / self.count if self.log_loss >= 0.0 else float("nan")

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
        known = None if math.isnan(self._log_loss) else [self._log_loss, *self._excess.tolist()]
        return {"count": self.count, "right": self.right, "loss": self.loss, "bins": bins, "calibration": known}

    def restore(self, state: dict[str, Any]) -> None:
        self.count, self.right, self.loss = state["count"], state["right"], state["loss"]
        used, different, similar = state["bins"]
        self._log_loss, *excess = state["calibration"] or [math.nan, *[0.0] * RELIABILITY]
        self._excess[:] = excess
        self._bins[:] = 0
        self._bins[:, np.array(used, dtype=np.int64)] = [different, similar]


def _bin(p: Array, bins: int) -> Integers:
    return np.minimum((p * bins).astype(np.int64), bins - 1)


def similarity(trace: Trace) -> Array:
    """How similar each comparison of a run was said to be: by the probability or, without one, by the score."""
    p = trace.probability
    return score(trace.squared_distance, trace.threshold) if np.isnan(p).any() else p


def score(squares: Array, thresholds: Array) -> Array:
    """How similar, from 0 to 1, one half at the threshold."""
    return thresholds / (thresholds + squares)
