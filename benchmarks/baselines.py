"""The streaming baselines on the synthetic experiment: how their rates were chosen, and how they do.

    python benchmarks/baselines.py tune --trials 2       # on seeds 1000, 1001, ...: the rates in STREAMING
    python benchmarks/baselines.py measure --trials 4    # on seeds 0, 1, ...: docs/baselines.md

Tuning looks at the 5-NN error alone. Times are of learning alone, per trial.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial

from tqdm import tqdm

from ocelad import FixedShare, MetricTracker, VonNeumann
from ocelad.baselines import (
    STREAMING,
    Diffusion,
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
from ocelad.studies import Results, Study, run_trial, summarise
from ocelad.studies.methods import METHODS

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tune", "measure"])
    parser.add_argument("--trials", type=int, default=2, help="how many seeds")
    parser.add_argument("--only", default="", help="only methods whose name contains this")
    options = parser.parse_args()
    first = 1000 if options.what == "tune" else 0
    makers = GRID if options.what == "tune" else {**STREAMING, "oracle": Oracle, "ocelad": MetricTracker}
    METHODS.update(makers)
    study = Study(tuple(name for name in makers if options.only in name))
    trials = tqdm(range(first, first + options.trials))
    results = Results.of(study, [run_trial(study, number) for number in trials])
    seconds = dict(zip(study.methods, results.seconds[:, 2:].mean(axis=0), strict=True))
    print("| method | static | B, moderate | B, fast | B, moderate | A, slow | 5-NN error | P(NMI > 0.8) | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in study.methods:
        *parts, whole = [line for line in summarise(results) if line.method == name]
        errors = " | ".join(f"{part.knn_error:.3f}" for part in parts)
        print(
            f"| {name} | {errors} | {whole.knn_error:.4f} ± {whole.knn_error_se:.4f} | {whole.p_nmi:.2f} "
            f"| {seconds[name]:.1f} |"
        )


if __name__ == "__main__":
    main()
