"""The streaming baselines on the synthetic experiment: how their rates were chosen, and how they do.

    python benchmarks/baselines.py tune --trials 2       # on seeds 1000, 1001, ...: the rates in STREAMING
    python benchmarks/baselines.py measure --trials 4    # on seeds 0, 1, ...: docs/baselines.md

Tuning looks at the 5-NN error alone. Times are of this process alone, per trial, without the evaluation.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from ocelad import FixedShare, MetricTracker, VonNeumann
from ocelad.baselines import (
    STREAMING,
    Diffusion,
    Euclid,
    Oracle,
    adagrad,
    comid,
    dynamic_mirror_descent,
    fixed_share,
    ftrl,
    leading_history,
    mdml,
    online_itml,
    restarted,
    saol,
)
from ocelad.baselines.streaming import Tracker
from ocelad.data import SCENARIO, DriftingClusters, Step
from ocelad.evaluate import cluster_nmi, knn_error
from ocelad.studies import EVERY, Record, summary

Makers = Mapping[str, Callable[[], Tracker]]
GRID: Makers = {
    **{f"COMID {s:g}": partial(comid, s) for s in (0.25, 0.5, 1.0, 2.0, 4.0)},
    **{f"MDML, von Neumann {s:g}": partial(mdml, s, VonNeumann()) for s in (0.25, 0.5, 1.0, 2.0)},
    **{f"MDML, LogDet {s:g}": partial(mdml, s) for s in (0.5, 1.0, 2.0, 4.0, 8.0)},
    **{f"SAOL {s:g}": partial(saol, s) for s in (2.0, 8.0, 32.0, 128.0)},
    **{f"SAOL, unclipped {s:g}": partial(saol, s, clipped=False) for s in (2.0, 8.0, 32.0, 128.0)},
    **{f"online ITML {r:g}": partial(online_itml, r) for r in (0.1, 0.3, 1.0, 3.0, 10.0)},
    **{f"restarted {s:g}": partial(restarted, s) for s in (2.0, 8.0, 32.0)},
    **{
        f"restarted, fixed share {s:g}": partial(restarted, s, base=8, weights=FixedShare())
        for s in (2.0, 8.0, 32.0)
    },
    **{f"AdaGrad {s:g}": partial(adagrad, s) for s in (16.0, 64.0, 256.0, 1024.0)},
    **{f"FTRL {s:g}": partial(ftrl, s) for s in (1.0, 4.0, 16.0, 64.0)},
    **{f"dynamic mirror descent {s:g}": partial(dynamic_mirror_descent, s) for s in (0.5, 1.0, 2.0)},
    **{
        f"drift {d:g} alone": partial(dynamic_mirror_descent, 1.0, (Diffusion(d),))
        for d in (0.03, 0.1, 0.2, 0.3, 1.0)
    },
    **{
        f"follow the leading history {s:g}, {r:g}": partial(leading_history, s, base=8, rate=r)
        for s, r in ((8.0, 0.1), (8.0, 0.3), (8.0, 1.0), (2.0, 0.3), (32.0, 0.3))
    },
    "fixed share": partial(fixed_share, (0.25, 0.5, 1.0, 2.0, 4.0)),
}


def run(seed: int, makers: Makers, nmi: bool) -> tuple[list[Record], dict[str, float]]:
    """One trial: what was found, and the seconds of each method."""
    rng = np.random.default_rng([2016, seed])
    data = DriftingClusters.draw(rng)
    sample = rng.choice(len(data.points), size=300, replace=False)
    trackers = {name: make() for name, make in makers.items()}
    seconds = dict.fromkeys(trackers, 0.0)
    records: list[Record] = []

    def evaluate(name: str, tracker: Tracker, step: Step) -> Record:
        points = data.points @ step.rotation.T
        Z = tracker.transform(points if nmi else points[sample])[:, : None if isinstance(tracker, Euclid) else 3]
        error = knn_error(Z[sample] if nmi else Z, step.labels[sample])
        return Record(seed, name, step.t, step.segment, error, cluster_nmi(Z, step.labels) if nmi else np.nan)

    steps = sum(segment.steps for segment in SCENARIO)
    for step in tqdm(data.stream(rng, SCENARIO), total=steps, desc=f"seed {seed}"):
        for name, tracker in trackers.items():
            before = time.process_time()
            if isinstance(tracker, Oracle):
                tracker.tell(step.rotation, SCENARIO[step.segment].clustering)
            tracker.partial_fit(step.pair[None], [step.y])
            seconds[name] += time.process_time() - before
        if (step.t + 1) % EVERY == 0:
            records += [evaluate(name, tracker, step) for name, tracker in trackers.items()]
    return records, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tune", "measure"])
    parser.add_argument("--trials", type=int, default=2, help="how many seeds")
    parser.add_argument("--only", default="", help="only methods whose name contains this")
    options = parser.parse_args()
    tune = options.what == "tune"
    makers = GRID if tune else {**STREAMING, "oracle": Oracle, "ocelad": MetricTracker}
    makers = {name: make for name, make in makers.items() if options.only in name}
    records: list[Record] = []
    total = dict.fromkeys(makers, 0.0)
    with threadpool_limits(1):
        for number in range(options.trials):
            found, seconds = run(number + (1000 if tune else 0), makers, nmi=not tune)
            records += found
            total = {name: total[name] + seconds[name] for name in makers}
    print("| method | static | B, moderate | B, fast | B, moderate | A, slow | 5-NN error | P(NMI > 0.8) | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for line in summary(records):
        parts = " | ".join(f"{error:.3f}" for error in line.segments)
        p = "-" if tune else f"{line.p_nmi:.2f}"
        print(
            f"| {line.method} | {parts} | {line.error:.4f} ± {line.standard_error:.4f} | {p} "
            f"| {total[line.method] / options.trials:.1f} |"
        )


if __name__ == "__main__":
    main()
