"""Which expert of the pool does what: scenario S and its variants with parts of the pool left out.

    python benchmarks/experts.py --trials 8 [--first 3000]

Mean 5-NN error over the whole stream, and in brackets the share of time at which k-means recovers the clusters,
with standard errors of the error. "turned" is the share of labels that are turned.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from tqdm import tqdm

from ocelad import GroupedShare, MetricTracker
from ocelad.data import Segment
from ocelad.engine import windows
from ocelad.protocols import Array
from ocelad.studies import methods
from ocelad.studies.synthetic import Study
from ocelad.studies.trial import run_trial

BASE = Study(methods=("ocelad",))
VARIANTS: dict[str, dict[str, Any]] = {
    "S": {},
    "10 % turned": {"label_noise": 0.1},
    "20 % turned": {"label_noise": 0.2},
    "drift x 2": {"segments": tuple(Segment(s.steps, s.clustering, 2 * s.drift) for s in BASE.segments)},
    "noise sd 3": {"noise": 3.0},
    "n = 50": {"dimension": 50},
    "easy (sd 1)": {"noise": 1.0},
}


@contextmanager
def settings(change: Callable[[Array], Array]) -> Iterator[None]:
    """Other windows for all trackers."""
    before = windows.settings
    windows.settings = lambda memory: change(before(memory))
    try:
        yield
    finally:
        windows.settings = before


def same(table: Array) -> Array:
    return table


def with_columns(table: Array, **columns: float) -> Array:
    table = table.copy()
    for name, value in columns.items():
        table[:, ("window", "anew", "prior", "floor").index(name)] = value
    return table


POOLS: dict[str, tuple[Callable[[], MetricTracker], Callable[[Array], Array]]] = {
    "the pool": (MetricTracker, same),
    "RICE alone": (MetricTracker.rice, same),
    "no replay (RICE and Euclid, calibrated)": (lambda: MetricTracker(memory=None), same),
    "no change between groups": (lambda: MetricTracker(weights=GroupedShare(between=0.0)), same),
    "no change of expert": (lambda: MetricTracker(weights=GroupedShare(share=0.0, between=0.0)), same),
    "memory 256": (lambda: MetricTracker(memory=256), same),
    "sliding windows alone": (MetricTracker, lambda table: table[table[:, 1] == 0]),
    "windows that begin anew alone": (MetricTracker, lambda table: table[table[:, 1] == 1]),
    "one window (256)": (MetricTracker, lambda table: with_columns(table[:1], window=256.0)),
    "floor .02 for all": (MetricTracker, lambda table: with_columns(table, prior=0.1, floor=0.02)),
    "floor .05 for all": (MetricTracker, lambda table: with_columns(table, prior=0.2, floor=0.05)),
    "no prior": (MetricTracker, lambda table: with_columns(table, prior=0.0)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", default=8, type=int, help="Number of trials of each variant.")
    parser.add_argument("--first", default=3000, type=int, help="Number of the first trial.")
    parser.add_argument("--variants", default=",".join(VARIANTS), help="Which variants, by name.")
    given = parser.parse_args()
    chosen = [name.strip() for name in given.variants.split(",")]
    trials = range(given.first, given.first + given.trials)
    print("| | " + " | ".join(chosen) + " |\n|---" * 1 + "|---" * len(chosen) + "|")
    for name, (make, change) in POOLS.items():
        methods.METHODS["ocelad"] = make
        cells = []
        with settings(change):
            for variant in tqdm(chosen, desc=name, leave=False):
                study = Study(methods=("ocelad",), **VARIANTS[variant])
                found = np.array([run_trial(study, trial).measures[0] for trial in trials])
                errors, recovered = found[:, :, 0].mean(axis=1), (found[:, :, 1] > 0.8).mean()
                error = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.nan
                cells.append(f"{errors.mean():.4f} ± {error:.4f} ({recovered:.3f})")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
