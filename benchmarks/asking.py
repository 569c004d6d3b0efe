"""What it gains to choose the pairs that are asked about.

    python benchmarks/asking.py --first 9300 --trials 16            # scenario S, one answer a step, of 4 pairs
    python benchmarks/asking.py --stream --first 9300 --trials 8    # 4 pairs a step, of which one in four is asked
    python benchmarks/asking.py --half --first 9300 --trials 8      # an answer every other step
    python benchmarks/asking.py --groups --first 9300 --trials 8    # all of 500 digits put into groups

error and P are those of the study of scenario S; predict is the error of ``predict`` on fresh random pairs, and
mixture that of ``mixture_proba`` >= 1/2. A jump is missed if no alarm comes within 300 steps; all other alarms are
false. Means with standard errors, and as ratios to random questions of the same trials. A second or two a trial.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from ocelad import ChangeAlarm, MetricTracker
from ocelad.active import GroupQuestions, Queries, Strategy, at_random, committee, uncertainty, vote_entropy
from ocelad.closure import Closure
from ocelad.data import Block, blocks
from ocelad.protocols import Array
from ocelad.studies import Study
from ocelad.studies.trial import _Entrant

JUMPS = (1300, 4300)
WITHIN = 300
PAIRS = 4  # a step
MEASURES = ("error", "P", "predict", "mixture")

Ask = Callable[[Queries, Any, int], Iterator[int]]


@dataclass
class Course:
    """What a trial has found."""

    measures: list[tuple[float, float, float, float]] = field(default_factory=list)
    alarms: list[int] = field(default_factory=list)
    asked: int = 0
    seen: int = 0

    def delays(self) -> list[int | None]:
        return [next((t - jump for t in self.alarms if 0 <= t - jump <= WITHIN), None) for jump in JUMPS]

    def false(self) -> int:
        return sum(not any(0 <= t - jump <= WITHIN for jump in JUMPS) for t in self.alarms)

    def means(self) -> Array:
        table = np.array(self.measures)
        table[:, 1] = table[:, 1] > 0.8
        return np.asarray(table.mean(axis=0))


def one(queries: Queries, pairs: Any, step: int) -> Iterator[int]:  # noqa: ARG001
    """One answer a step."""
    yield queries.query(pairs)


def every_other(queries: Queries, pairs: Any, step: int) -> Iterator[int]:
    """One answer every other step."""
    if step % 2:
        yield queries.query(pairs)


def wanted(queries: Queries, pairs: Any, step: int) -> Iterator[int]:  # noqa: ARG001
    """As many as there are, as the budget allows."""
    for k, pair in enumerate(pairs):
        if queries.wants(pair):
            yield k


def course(trial: int, ask: Ask, strategy: Strategy, candidates: int = 4, new: Any = MetricTracker) -> Course:
    """Go through scenario S, asking."""
    study, tracker, alarm, found = Study(), new(), ChangeAlarm(), Course()
    queries = Queries(tracker, candidates, budget=0.25, random_state=trial, strategy=strategy)
    data, sample, rng = study.world(trial)
    entrant, fresh = _Entrant(tracker, 3), np.random.default_rng([2019, trial])
    points, step = np.asfortranarray(data.points), 0
    for block in blocks(data, rng, study.every, study.segments, PAIRS):
        pairs, y = block.pairs.reshape(study.every, PAIRS, 2, -1), block.y.reshape(study.every, PAIRS)
        for some, answers in zip(pairs, y, strict=True):
            step += 1
            found.seen += PAIRS
            for k in ask(queries, some, step):
                found.asked += 1
                wrong, cost = learn(tracker, some[k], answers[k])
                if alarm.update(wrong, loss=cost) is not None:
                    found.alarms.append(step)
        labels = data.labels(block.clustering)
        placed = entrant.place(points, block.rotation, block.clustering)
        error, nmi = entrant.evaluate(placed, block.clustering, labels, sample)
        found.measures.append((error, nmi, *judged(tracker, data.points, labels, block, fresh)))
    return found


def learn(tracker: MetricTracker, pair: Any, y: int) -> tuple[bool, float | None]:
    """Teach an answer; whether it was foreseen wrongly, and at which log loss."""
    wrong, cost = False, None
    if tracker.__sklearn_is_fitted__():
        wrong = bool(tracker.predict(pair[None])[0] != y)
        cost = -float(np.log(tracker.mixture_proba(pair[None])[0, int(y > 0)]))
    tracker.partial_fit(pair[None], [y])
    return wrong, cost


def judged(
    tracker: MetricTracker, points: Array, labels: Any, block: Block, rng: np.random.Generator
) -> tuple[float, float]:
    """Errors of both predictions on fresh pairs."""
    i, j = rng.integers(len(points), size=(2, 200))
    pairs = np.stack([points[i], points[j]], axis=1) @ block.rotation.T
    similar = labels[i] == labels[j]
    by_mixture = tracker.mixture_proba(pairs)[:, 1] >= 0.5
    return float(np.mean((tracker.predict(pairs) > 0) != similar)), float(np.mean(by_mixture != similar))


def report(name: str, courses: list[Course], base: list[Course]) -> None:
    table, usual = np.array([c.means() for c in courses]), np.array([c.means() for c in base])
    spread = table.std(axis=0, ddof=1) / np.sqrt(len(table))
    delays = [delay for c in courses for delay in c.delays()]
    heard = [delay for delay in delays if delay is not None]
    numbers = "  ".join(
        f"{name} {mean:.4f} ± {error:.4f} (x {mean / before:.3f})"
        for name, mean, error, before in zip(MEASURES, table.mean(axis=0), spread, usual.mean(axis=0), strict=True)
    )
    asked = [c.asked / c.seen for c in courses]
    delay = np.mean(heard) if heard else np.nan
    alarms = f"delay {delay:.1f}, missed {len(delays) - len(heard)} of {len(delays)}"
    false = np.mean([c.false() for c in courses])
    print(f"{name:14s} {numbers}  {alarms}, false {false:.2f}  asked {min(asked):.4f} to {max(asked):.4f}")


def ratio_error(courses: list[Course], base: list[Course]) -> Array:
    """The standard error of the ratios, the trials being the same."""
    table, usual = np.array([c.means() for c in courses]), np.array([c.means() for c in base])
    ratio = table.mean(axis=0) / usual.mean(axis=0)
    rest = (table - ratio * usual) / usual.mean(axis=0)
    return np.asarray(rest.std(axis=0, ddof=1) / np.sqrt(len(table)))


def compare(trials: range, ask: Ask, base: Ask, names: Mapping[str, tuple[Strategy, int]]) -> None:
    usual = [course(trial, base, at_random) for trial in trials]
    report("random", usual, usual)
    for name, (strategy, candidates) in names.items():
        courses = [course(trial, ask, strategy, candidates) for trial in trials]
        report(name, courses, usual)
        print(f"{'':14s} standard errors of the ratios", ratio_error(courses, usual).round(3), flush=True)


def groups(seeds: range) -> None:
    """How many answers it takes to know the partition of 500 digits."""
    counts = []
    for seed in seeds:
        X, y = load_digits(return_X_y=True)
        chosen = np.random.default_rng(seed).permutation(len(X))[:500]
        X, y = X[chosen] / 16, y[chosen]
        tracker, closure, answers = MetricTracker(), Closure(window=None), 0
        questions = GroupQuestions(tracker, closure, X)
        while (asked := questions.query()) is not None:
            i, j = asked
            answer = 1 if y[i] == y[j] else -1
            tracker.partial_fit(X[None, [i, j]], [answer])
            closure.answer(i, j, answer)
            answers += 1
        assert len(closure.groups()) == len(np.unique(y))
        counts.append(answers)
    print(f"answers {np.mean(counts):.0f} ± {np.std(counts, ddof=1) / np.sqrt(len(counts)):.0f}", counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=9300)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--groups", action="store_true")
    parser.add_argument("--candidates", type=int, nargs="*", default=[4])
    options = parser.parse_args()
    trials = range(options.first, options.first + options.trials)
    strategies: tuple[Any, ...] = (committee, uncertainty, vote_entropy)
    if options.groups:
        groups(trials)
    elif options.stream:
        compare(trials, wanted, wanted, {strategy.__name__: (strategy, 4) for strategy in strategies})
    elif options.half:
        compare(trials, every_other, one, {"committee": (committee, 4)})
    else:
        named = {f"{s.__name__} of {k}": (s, k) for k in options.candidates for s in strategies}
        compare(trials, one, one, named)


if __name__ == "__main__":
    main()
