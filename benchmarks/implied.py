"""What answers imply: learning with and without it, on scenario S and on the parity of digits.

    python benchmarks/implied.py --first 9100 --trials 8 [--slips .05] [--items 300]
    python benchmarks/implied.py --others --first 9100 --trials 8
    python benchmarks/implied.py --parity --first 10 --trials 8

On S, each answer is about two of a few items that recur, while all of them rotate. Printed are the mean 5-NN error
over the stream, in three dimensions and on all 2,000 points; the share of time at which k-means recovers the
clusters; the error of ``predict`` and the log loss of ``mixture_proba`` on fresh pairs of all points; how many
answers after each of the two jumps the closure was reset, at most; and the number of false resets. With standard
errors.

The others are what might be taught instead, without answers, about items that are drawn at random: what the
tracker itself would say of them ("pseudo-labels"), always or if it is nine tenths sure; or that the two nearest
are similar. Or points are whitened.

Of the digits, the AUC of ``mixture_proba`` on pairs of digits that nobody was asked about.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import log_loss, roc_auc_score
from tqdm import tqdm

from ocelad import Closure, MetricTracker
from ocelad.active import Queries, uncertainty
from ocelad.data import blocks
from ocelad.evaluate import cluster_nmi, knn_error
from ocelad.protocols import Array, Integers
from ocelad.studies.synthetic import Study

LATEST = 300  # a reset this long after a jump is no longer due to it
LEARNERS: dict[str, dict[str, Any]] = {
    "random": {"derived": 0},
    "random, closure": {},
    "nearest of 4": {"derived": 0, "candidates": 4},
    "nearest of 4, closure": {"candidates": 4},
}
OTHERS: dict[str, dict[str, Any]] = {
    "pseudo-labels": {"teach": "pseudo-labels", "weight": 1.0},
    "pseudo-labels, if sure": {"teach": "sure"},
    "Euclidean neighbours": {"teach": "neighbours"},
    "whitened by C^-1/4": {"derived": 0, "power": -0.25},
    "whitened by C^-1/2": {"derived": 0, "power": -0.5},
}
PARITY: dict[str, dict[str, Any]] = {
    "random": {"derived": 0},
    "random, closure": {"derived": 12},
    "nearest of 64": {"derived": 0, "candidates": 64},
    "nearest of 64, closure": {"derived": 12, "candidates": 64},
}


@dataclass
class Learner:
    """A tracker that asks about items, and learns what answers imply."""

    seed: int
    derived: int = 4
    weight: float = 0.5
    candidates: int = 1
    window: int | None = 500
    teach: str = "closure"
    power: float = 0.0
    resets: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tracker = MetricTracker()
        self.closure = Closure(self.window, random_state=self.seed)
        self.queries = Queries(self.tracker, self.candidates, random_state=self.seed, strategy=uncertainty)
        self.rng = np.random.default_rng([12, self.seed])
        self.whitener: Array | None = None

    def ask(self, X: Array, kind: Integers, slips: float = 0.0) -> None:
        """One question about points as they are now, and what it teaches."""
        if self.power:
            s, V = np.linalg.eigh(np.cov(X.T))
            self.whitener = (V * s**self.power) @ V.T
            X = X @ self.whitener
        i, j = self.queries.query_pool(X)
        y = 1 if (kind[i] == kind[j]) != (self.rng.random() < slips) else -1
        self.tracker.partial_fit(X[[[i, j]]], [y])
        if self.derived:
            pairs, labels = self.derive(X, i, j, y)
            if len(labels):
                self.tracker.partial_fit_implied(X[pairs], labels, [self.weight] * len(labels))

    def derive(self, X: Array, i: int, j: int, y: int) -> tuple[Any, Any]:
        """Pairs of items that nobody was asked about, and what is taught of them."""
        if self.teach == "closure":
            if self.closure.answer(i, j, y) is not None:
                self.resets.append(self.closure.t)
            implied: list[Any] = self.closure.derived(self.derived)
            return [[a, b] for a, b, _ in implied], [label for *_, label in implied]
        pairs = np.array([self.rng.choice(len(X), size=2, replace=False) for _ in range(self.derived)])
        if self.teach == "neighbours":
            square = ((X[pairs[:, :1]] - X) ** 2).sum(axis=2)
            pairs[:, 1] = square.argsort(axis=1)[:, 1]
            return pairs, np.ones(len(pairs))
        similar = self.tracker.mixture_proba(X[pairs])[:, 1]
        sure = np.abs(similar - 0.5) > (0.4 if self.teach == "sure" else 0.0)
        return pairs[sure], np.where(similar[sure] > 0.5, 1, -1)


def scenario(trial: int, items: int, slips: float, drift: float, options: dict[str, Any]) -> list[float]:
    """Error, P, error of predict, log loss; delays of resets, nan for none; false resets."""
    study = Study(methods=("ocelad",))
    study = replace(study, segments=tuple(replace(s, drift=drift * s.drift) for s in study.segments))
    data, sample, rng = study.world(trial)
    own, fresh = np.random.default_rng([11, trial]), np.random.default_rng([13, trial])
    pool = own.choice(len(data.points), size=items, replace=False)
    learner, measured, t = Learner(trial, **options), [], 0
    ends = np.cumsum([segment.steps for segment in study.segments])
    for block in blocks(data, rng, study.every, study.segments):
        for rotation in block.rotations:
            segment = study.segments[int(np.searchsorted(ends, t, side="right"))]
            learner.ask(data.points[pool] @ rotation.T, data.labels(segment.clustering)[pool], slips)
            t += 1
        now, labels = data.points @ block.rotation.T, data.labels(block.clustering)
        now = now if learner.whitener is None else now @ learner.whitener
        Z = learner.tracker.transform(now)[:, : len(study.shares)]
        i, j = fresh.integers(len(now), size=(2, 200))
        i, j = i[i != j], j[i != j]
        pairs, similar = np.stack([now[i], now[j]], axis=1), labels[i] == labels[j]
        cost = log_loss(similar, learner.tracker.mixture_proba(pairs)[:, 1], labels=[False, True])
        wrong = np.mean((learner.tracker.predict(pairs) > 0) != similar)
        measured.append((knn_error(Z[sample], labels[sample]), cluster_nmi(Z, labels) > 0.8, wrong, cost))
    named = [segment.clustering for segment in study.segments]
    jumps = [ends[k - 1] for k in range(1, len(named)) if named[k] != named[k - 1]]
    delays = [min((r - jump for r in learner.resets if 0 < r - jump <= LATEST), default=np.nan) for jump in jumps]
    true = np.isfinite(delays).sum()
    return [*np.mean(measured, axis=0), *delays, len(learner.resets) - true]


def parity(trial: int, options: dict[str, Any]) -> list[float]:
    """AUC of held-out pairs after 100 and after 500 answers: are two digits both even, or both odd?"""
    X, digit = load_digits(return_X_y=True)
    rng, kind = np.random.default_rng([14, trial]), digit % 2
    order = rng.permutation(len(X))
    X, kind = X[order] / 16, kind[order]
    pool, others = X[:300], np.arange(300, len(X))
    width = 0.5 * np.median([np.linalg.norm(a - b) for a, b in pairwise(pool)])
    Z = Nystroem(gamma=1 / (2 * width**2), n_components=100, random_state=trial).fit(pool).transform(X)
    i, j = rng.choice(others, size=(2, 4000))
    learner, found = Learner(trial, **options), []
    for t in range(1, 501):
        learner.ask(Z[:300], kind[:300])
        if t in (100, 500):
            similar = learner.tracker.mixture_proba(np.stack([Z[i], Z[j]], axis=1))[:, 1]
            found.append(float(roc_auc_score(kind[i] == kind[j], similar)))
    return found


def summary(name: str, values: list[float]) -> str:
    """Mean and standard error; of delays also the longest, and how often there was none."""
    found = np.array(values)
    found = found[np.isfinite(found)]
    if not len(found):
        return "-"
    text = f"{found.mean():.4f} +- {found.std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan:.4f}"
    return f"{text}, <= {found.max():.0f}, missed {len(values) - len(found)}" if "jump" in name else text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--first", type=int, default=9100, help="the number of the first trial")
    parser.add_argument("--items", type=int, default=300, help="how many items recur")
    parser.add_argument("--slips", type=float, default=0.0, help="the share of wrong answers")
    parser.add_argument("--drift", type=float, default=1.0, help="a factor of all drifts")
    parser.add_argument("--parity", action="store_true", help="digits in place of scenario S")
    parser.add_argument("--others", action="store_true", help="what might be taught instead")
    parser.add_argument("--only", help="learners whose names contain this")
    parser.add_argument(
        "--options", default="", help="other options of learners with closure, say derived=8,weight=1"
    )
    given = parser.parse_args()
    learners = PARITY if given.parity else OTHERS if given.others else LEARNERS
    names = ["AUC at 100", "at 500"] if given.parity else []
    names = names or ["error", "P", "predict", "log loss", "reset after jump 1", "jump 2", "false resets"]
    more = {name: float(value) for name, value in (part.split("=") for part in given.options.split(",") if part)}
    whole = {name: int(value) if value == int(value) else value for name, value in more.items()}
    print(" | ".join(["", *names]))
    for name, options in learners.items():
        if given.only and given.only not in name:
            continue
        chosen = options if options.get("derived") == 0 else options | whole
        rows = []
        for trial in tqdm(range(given.first, given.first + given.trials), desc=name, leave=False):
            how = given.items, given.slips, given.drift
            rows.append(parity(trial, chosen) if given.parity else scenario(trial, *how, chosen))
        print(" | ".join([name, *map(summary, names, map(list, zip(*rows, strict=True)))]), flush=True)


if __name__ == "__main__":
    main()
