"""Calibration against brute force: every threshold is tried."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocelad.tracker.calibration import best_threshold

STRATEGIES = [
    ("accuracy", {}),
    *[("f_beta", {"beta": beta}) for beta in (0.0, 0.3, 1.0, 5.0)],
    *[(name, {"min_rate": rate}) for name in ("max_tpr", "max_tnr") for rate in (0.0, 0.3, 1.0)],
]


def value(distances, y, threshold, strategy, beta=1.0, min_rate=0.0):
    """What the strategy maximises, from the four counts."""
    similar = distances <= threshold
    tp, fp = np.sum(similar & (y == 1)), np.sum(similar & (y == -1))
    tn, fn = np.sum(~similar & (y == -1)), np.sum(~similar & (y == 1))
    tpr, tnr = tp / max(tp + fn, 1), tn / max(tn + fp, 1)
    if strategy == "accuracy":
        return (tp + tn) / len(y)
    if strategy == "f_beta":
        precision = tp / max(tp + fp, 1)
        below = beta**2 * precision + tpr
        return (1 + beta**2) * precision * tpr / below if below else 0.0
    wanted, held = (tpr, tnr) if strategy == "max_tpr" else (tnr, tpr)
    return wanted if held >= min_rate else -1.0


@pytest.mark.parametrize(("strategy", "options"), STRATEGIES)
@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([-1, 1])), min_size=1, max_size=12))
def test_no_threshold_is_better(strategy, options, pairs):
    distances, y = (np.array(column) for column in zip(*pairs, strict=True))
    distances = distances / 2  # with many ties
    found = best_threshold(distances, y, strategy, **options)
    best = max(value(distances, y, threshold, strategy, **options) for threshold in np.arange(-1.0, 4.0, 0.25))
    assert value(distances, y, found, strategy, **options) == pytest.approx(best, abs=1e-12)
    assert np.isfinite(found)
