"""Streams of the real world, where they are at hand: as good as the best fixed rate, chosen afterwards."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from ocelad import MetricTracker
from ocelad.data.tables import Columns, Labelled, parsed, read_rows
from ocelad.evaluate import progressive

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
NEVER = 2**40  # the length of an interval that does not end


def blocks(path, group, seeds):
    """Each row with one of its group among the 128 before it."""
    with closing(read_rows(str(path))) as rows:
        names = [name for name in rows.header if name not in (group, "y")]
        columns = [Columns.of(rows.header, part) for part in (names, ["y"], [group])]
        form = Labelled(*columns)
        said = [each for piece in parsed(rows, form.parse) for each in piece]
    X = np.array([numbers for _, numbers, _, _ in said])
    X = (X - X[:200].mean(axis=0)) / X[:200].std(axis=0)
    said = [(line, x, label, within) for (line, _, label, within), x in zip(said, X.tolist(), strict=True)]
    return [Labelled(*columns, strategy="random", count=1, seed=seed).block(said) for seed in seeds]


def auc(tracker, block):
    seen = progressive(tracker, block.pairs, block.y)
    return roc_auc_score(block.y, -np.array(seen.squares) / np.array(seen.thresholds))


def test_typing_rhythm_is_tracked_as_well_as_by_the_best_fixed_rate_whose_steps_are_not_capped():
    path = DATA / "keystroke.csv.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not in ../shared/data")
    streams = blocks(path, "session", range(3))
    rates = [2.0**-k for k in range(-1, 6)]
    fixed = [np.mean([auc(MetricTracker(base=NEVER, step=r * 2**20), b) for b in streams]) for r in rates]
    ours = np.mean([auc(MetricTracker(step_cap=True), b) for b in streams])
    assert ours > max(fixed) - 0.005
    assert fixed.index(max(fixed)) not in (0, 6)  # the grid is wide enough
