"""Calibration: which threshold on distances is best for labelled pairs.

A pair is called similar iff its distance is at most the threshold. Thresholds that differ on these pairs are the
distances themselves, and one below them all, which rejects everything. A rate of nothing, 0/0, is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ..protocols import Array

Strategy = Literal["accuracy", "f_beta", "max_tpr", "max_tnr"]


def check(strategy: Any = "accuracy", min_rate: Any = None, beta: Any = 1.0) -> None:
    """Raise if these are not options of `best_threshold`."""
    if strategy not in ("accuracy", "f_beta", "max_tpr", "max_tnr"):
        raise ValueError(
            f'Strategy can either be "accuracy", "f_beta" or "max_tpr" or "max_tnr". Got "{strategy}" instead.'
        )
    if strategy in ("max_tpr", "max_tnr") and not (isinstance(min_rate, (int, float)) and 0 <= min_rate <= 1):
        raise ValueError(f"Parameter min_rate must be a number in[0, 1]. Got {min_rate} instead.")
    if strategy == "f_beta" and not isinstance(beta, (int, float)):
        raise ValueError(f"Parameter beta must be a real number. Got {type(beta)} instead.")


def checked_params(given: Any) -> dict[str, Any]:
    """``calibration_params`` as options of `best_threshold`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"calibration_params must be None or a dictionary, got {given!r}")
    known = ("strategy", "min_rate", "beta")
    for name in given:
        if name not in known:
            raise ValueError(f"calibration_params must have keys {', '.join(map(repr, known))}, got {name!r}")
    check(**given)
    return dict(given)


def best_threshold(
    distances: Array, y: Array, strategy: Strategy = "accuracy", min_rate: float | None = None, beta: float = 1.0
) -> float:
    """The threshold that maximises the accuracy, the F-score, or one of the two rates while the other is at least
    ``min_rate``; the strictest of equally good ones, but for the F-score, where it is the most generous.

    >>> best_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 1, -1, 1]))
    2.0
    >>> best_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 1, -1, 1]), "max_tpr", min_rate=0.0)
    4.0
    """
    thresholds, place = np.unique(distances, return_inverse=True)
    thresholds = np.append(thresholds[0] - 1.0, thresholds)
    positives, negatives = (np.bincount(place[y == sign] + 1, minlength=len(thresholds)) for sign in (1, -1))
    tp, fp = np.cumsum(positives), np.cumsum(negatives)
    tn = fp[-1] - fp
    if strategy == "accuracy":
        best = int(np.argmax(tp + tn))
    elif strategy == "f_beta":
        precision, recall = _rate(tp, tp + fp), _rate(tp, tp[-1])
        score = _rate((1 + beta**2) * precision * recall, beta**2 * precision + recall)
        best = len(score) - 1 - int(np.argmax(score[::-1]))
    else:
        tpr, tnr = _rate(tp, tp[-1]), _rate(tn, tn[0])
        wanted, held = (tpr, tnr) if strategy == "max_tpr" else (tnr, tpr)
        best = int(np.argmax(np.where(held >= (min_rate or 0.0), wanted, -1.0)))
    return float(thresholds[best])


def _rate(part: Any, whole: Any) -> Array:
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1), 0.0)
