"""What each reading of the paper, and each choice of ours, changes on the synthetic experiment.

    python benchmarks/readings.py --trials 8 --jobs 2

prints, for every variation, the mean 5-NN error over the stream with its standard error over trials, and
P(NMI > 0.8). About a third of a minute a trial.
"""

from __future__ import annotations

import argparse
from functools import partial

from joblib import Parallel, delayed
from sklearn.base import clone

from ocelad import (
    AdaNormalHedge,
    CoinBetting,
    FixedShare,
    Intervals,
    Logistic,
    MetricTracker,
    NuclearNorm,
    OceladWeights,
    Restarted,
    SaolWeights,
    SquaredHinge,
    Step,
)
from ocelad.baselines import FixedRate
from ocelad.studies import Outcome, Results, Study, run_trial, summarise
from ocelad.studies.methods import METHODS

PAPER = MetricTracker.paper(step=8.0, strength=0.01)
OURS = MetricTracker.rice()

READINGS: dict[str, MetricTracker] = {
    "pool of experts (the default)": MetricTracker(),
    "pool of experts, scale=features": MetricTracker(scale="features"),
    "paper (step 8, strength .01)": PAPER,
    "  losses after the update": clone(PAPER).set_params(weights=OceladWeights(order="after")),
    "  regret against the mixture": clone(PAPER).set_params(weights=OceladWeights("mixture")),
    "  level 0 continues": clone(PAPER).set_params(base=Intervals(1, "continue")),
    "  weights kept on re-opening": clone(PAPER).set_params(weights=OceladWeights(reset=False)),
    "  base 8": clone(PAPER).set_params(base=8),
    "  fixed share": clone(PAPER).set_params(weights=FixedShare()),
    "  coin betting": clone(PAPER).set_params(weights=CoinBetting()),
    "  AdaNormalHedge": clone(PAPER).set_params(weights=AdaNormalHedge()),
    "  SAOL (restarted, drawn)": clone(PAPER).set_params(weights=SaolWeights(), ensemble=Restarted),
    "RICE, as recommended": OURS,
    "  base 1": clone(OURS).set_params(base=1),
    "  threshold step = step": clone(OURS).set_params(step=Step(8.0, threshold=1.0)),
    "  scale=None": clone(OURS).set_params(scale=None),
    "  step cap": clone(OURS).set_params(step=Step(8.0, capped=True)),
    "  step 2": clone(OURS).set_params(step=2.0),
    "  step 32": clone(OURS).set_params(step=32.0),
    "  strength .005": clone(OURS).set_params(regularizer=NuclearNorm(0.005)),
    "  strength .05": clone(OURS).set_params(regularizer=NuclearNorm(0.05)),
    "  logistic loss": clone(OURS).set_params(loss=Logistic()),
    "  squared hinge": clone(OURS).set_params(loss=SquaredHinge()),
    **{
        f"  one rate, step {step:g}": clone(OURS).set_params(ensemble=FixedRate(), step=step)
        for step in (0.25, 0.5, 1.0, 2.0, 4.0)
    },
}


def run(seed: int, study: Study) -> Outcome:
    METHODS.update({name: partial(clone, tracker) for name, tracker in READINGS.items()})
    return run_trial(study, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first trial")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="run only readings whose name contains this")
    options = parser.parse_args()
    METHODS.update(dict.fromkeys(READINGS, MetricTracker))
    study = Study(tuple(name for name in READINGS if options.only in name))
    outcomes = Parallel(n_jobs=options.jobs, verbose=10)(
        delayed(run)(seed, study) for seed in range(options.first, options.first + options.trials)
    )
    print(f"{'':<32}{'5-NN error':>12}{'+-':>8}{'P(NMI>.8)':>11}")
    for line in summarise(Results.of(study, outcomes)):
        if line.segment == "all":
            print(f"{line.method:<32}{line.knn_error:>12.4f}{line.knn_error_se:>8.4f}{line.p_nmi:>11.2f}")


if __name__ == "__main__":
    main()
