"""Streams of the real world, where they are at hand: as good as the best fixed rate, chosen afterwards."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from ocelad import MetricTracker, Step
from ocelad.data.tables import Columns, Labelled, parsed, read_rows
from ocelad.watch.prequential import progressive
from ocelad.watch.scores import similarity

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
NEVER = 2**40  # the length of an interval that does not end


def blocks(path, group, seeds):
    """Rows shuffled within their groups, and each with one of its group among the 128 before it."""
    with closing(read_rows(str(path))) as rows:
        names = [name for name in rows.header if name not in (group, "y")]
        columns = [Columns.of(rows.header, part) for part in (names, ["y"], [group])]
        said = [each for piece in parsed(rows, Labelled(*columns).parse) for each in piece]
    X = np.array([numbers for _, numbers, _, _ in said])
    X = np.sign(X) * np.log1p(np.abs(X))
    X = (X - X[:200].mean(axis=0)) / X[:200].std(axis=0)
    said = [(line, x, label, within) for (line, _, label, within), x in zip(said, X.tolist(), strict=True)]
    found = []
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(said))
        order = order[np.argsort([int(*said[k][3]) for k in order], kind="stable")]
        form = Labelled(*columns, strategy="random", count=1, seed=seed)
        found.append(form.block([said[k] for k in order]))
    return found


def fixed_rate(rate, capped):
    return MetricTracker.rice().set_params(base=NEVER, step=Step(rate * 2**20, capped=capped))


def auc(tracker, block):
    seen = progressive(tracker, block.pairs, block.y)
    return roc_auc_score(block.y, similarity(seen))


@pytest.mark.parametrize(
    ("name", "group", "seeds"), [("keystroke", "session", 3), ("gas_drift_8of10", "batch", 1)]
)
@pytest.mark.parametrize("capped", [True, False])
def test_as_good_as_the_best_fixed_rate_with_steps_capped_or_not(name, group, seeds, capped):
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not in ../shared/data")
    streams = blocks(path, group, range(seeds))
    rates = [2.0**-k for k in range(-3, 4)]
    fixed = [np.mean([auc(fixed_rate(rate, capped), b) for b in streams]) for rate in rates]
    ours = np.mean([auc(MetricTracker(), b) for b in streams])
    assert ours > max(fixed) - 0.005
    assert fixed.index(max(fixed)) not in (0, 6)  # the grid is wide enough
