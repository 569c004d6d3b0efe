"""Regret on the synthetic stream: how it grows with the length of the interval, and how far it is from the bounds.

Three readings of regret, of each the worst interval of every length:

    truth, l           all intervals, against the true metric, in the loss l_t
    truth, f           the same in the objective f_t = l_t + lambda trace M, as the paper defines it
    best constant, f   dyadic intervals, each against the best constant metric of that very interval, in f_t
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..baselines import comid
from ..data import SCENARIO, Segment
from ..evaluate import Metrics, Regret, corollary_1, geometric_lengths, growth_exponent, theorem_2
from ..evaluate.regret import totals
from ..geometry import Frobenius, Hinge, NuclearNorm, Step
from ..intervals import Intervals
from ..protocols import Array, Integers
from ..tracker import MetricTracker
from ..weights import OceladWeights
from .hindsight import Comparator, Constants, Progress, Truths, World, best_constants
from .tables import mean

METHODS: Mapping[str, Callable[[], MetricTracker]] = {
    "ocelad": lambda: MetricTracker.rice().set_params(scale=None),  # the stream comes in its unit of length
    "paper's setting": lambda: MetricTracker.paper(step=8.0, strength=0.01),
    "COMID, high rate": lambda: comid(step=1.0),
    "COMID, low rate": lambda: comid(step=0.25),
}

SHORTEST = 32
"""Shorter intervals say more about single comparisons than about tracking."""


@dataclass(frozen=True)
class WorstInterval:
    """The worst of the intervals of one length: its regret, and the least of their bounds (nan: no theorem)."""

    trial: int
    method: str
    comparator: str
    length: int
    intervals: int
    regret: float
    paper: float
    corrected: float


@dataclass(frozen=True, eq=False)
class Run:
    """What a tracker suffered, how large its learners got, and how far apart their losses were."""

    tracker: MetricTracker
    losses: Array
    penalties: Array
    largest: float
    threshold: float
    spread: float


def run(trials: int = 1, seed: int = 0, **options: Any) -> list[WorstInterval]:
    """The table, trial after trial; options as for `trial`."""
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials!r}")
    return [line for k in range(trials) for line in trial(seed + k, **options)]


def trial(
    seed: int,
    methods: Mapping[str, Callable[[], MetricTracker]] | None = None,
    segments: tuple[Segment, ...] = SCENARIO,
    shortest: int = SHORTEST,
    progress: Progress = lambda items, _: items,
) -> list[WorstInterval]:
    """The lines of one trial, whose stream is that of the synthetic study with the same seed.

    ``progress(items, name)`` may show how far the work on some items is.
    """
    world = World.draw(seed, segments)
    if not 1 <= shortest <= len(world):
        raise ValueError(f"shortest must be from 1 to {len(world)}, the length of the stream, got {shortest!r}")
    truths = Truths(world, seed)
    constants: dict[float, list[Constants]] = {}
    lines: list[WorstInterval] = []
    for name, make in (METHODS if methods is None else methods).items():
        ours = play(make(), world, progress(range(len(world)), name))
        strength = ours.tracker.regularizer.strength
        if strength not in constants:
            constants[strength] = list(best_constants(world, strength, shortest, progress))
        readings = {
            "truth, l": _against_truth(world, ours, truths(strength, False), shortest, False),
            "truth, f": _against_truth(world, ours, truths(strength, True), shortest, True),
            "best constant, f": _against_constants(world, ours, constants[strength]),
        }
        lines += (WorstInterval(seed, name, label, *rest) for label, part in readings.items() for rest in part)
    return lines


def play(tracker: MetricTracker, world: World, steps: Iterable[int]) -> Run:
    """Judge each comparison by the estimate before it, then learn it."""
    T, n = world.u.shape
    losses, penalties = np.zeros(T), np.zeros(T)
    largest, threshold, spread, watched = 0.0, 1.0, 0.0, covered(tracker)
    M, mu = np.zeros((n, n)), 1.0
    for t in steps:
        u, y = world.u[t], world.y[t]
        losses[t] = max(0.0, 1.0 - y * (mu - u @ M @ u))
        penalties[t] = tracker.regularizer.strength * np.trace(M)
        tracker.partial_fit(np.stack([u, 0 * u])[None], [y])
        M, mu = tracker.get_metric().matrix, tracker.mu_
        for learner in tracker.expert_metrics_ if watched else ():
            if np.linalg.norm(learner.M) > largest:  # it is never less than the largest eigenvalue
                largest = max(largest, float(np.linalg.eigvalsh(learner.M)[-1]))
            threshold = max(threshold, learner.mu)
        spread = max(spread, float(np.ptp(tracker.experts_["loss"])) if watched else 0.0)
    return Run(tracker, losses, penalties, largest, threshold, spread)


def covered(tracker: MetricTracker) -> bool:
    """Whether Theorem 2 speaks of such a tracker."""
    o = tracker
    algorithm = o.weights == OceladWeights() and Intervals.of(o.base).base == 1 and o.ensemble is None
    parts = ((o.loss, Hinge), (o.regularizer, NuclearNorm), (o.divergence, Frobenius))
    step = Step.of(o.step)
    plain = o.scale is None and not step.capped and step.max_rank is None
    return algorithm and plain and all(isinstance(part, kind) for part, kind in parts)


Worst = Iterator[tuple[int, int, float, float, float]]


def _against_truth(world: World, ours: Run, truth: Comparator, shortest: int, regularized: bool) -> Worst:
    T = len(world)
    excess = ours.losses - truth.losses
    if regularized:
        excess = excess + ours.penalties - truth.penalties
    regret, moved = Regret.dynamic(excess, np.zeros(T)), totals(truth.moves)
    penalty = totals(ours.penalties if regularized else truth.penalties)
    for size in geometric_lengths(shortest, T).tolist():
        first = np.arange(T - size + 1)
        gamma = moved[first + size - 1] - moved[first]
        bounds = _bounds(world, ours, truth, gamma, size, first, penalty)
        yield size, len(first), float(regret.of_length(size).max()), *bounds


def _against_constants(world: World, ours: Run, constants: list[Constants]) -> Worst:
    total, penalty = totals(ours.losses + ours.penalties), totals(ours.penalties)
    for best in constants:
        size, first = best.length, best.first
        regret = total[first + size] - total[first] - best.values
        bounds = _bounds(world, ours, best, np.zeros(len(first)), size, first, penalty)
        yield size, len(first), float(regret.max()), *bounds


def _bounds(
    world: World,
    ours: Run,
    theirs: Comparator | Constants,
    gamma: Array,
    size: int,
    first: Integers,
    penalties: Array,
) -> tuple[float, float]:
    """The least bound of these intervals, as the paper has it and corrected, on a set that holds all estimates."""
    o = ours.tracker
    if not covered(o):
        return float("nan"), float("nan")
    largest, threshold = max(ours.largest, theirs.largest), max(ours.threshold, theirs.threshold)
    domain = Metrics(world.u.shape[1], largest, threshold, o.regularizer.strength)
    step = Step.of(o.step)
    longest = float(np.linalg.norm(world.u, axis=1).max())
    paper, own = (
        corollary_1(domain, longest, step.size, step.threshold, reading) for reading in ("paper", "corrected")
    )
    last = first + size  # times are counted from 1
    penalty = penalties[last] - penalties[first]
    return (
        float(theorem_2(paper, gamma, size, last, reading="paper").min()),
        float(theorem_2(own, gamma, size, last, ours.spread, penalty).min()),
    )


@dataclass(frozen=True)
class Exponent:
    """The growth exponent of a method against a comparator: mean over trials, its standard error, the lengths it
    was fitted over. ``omitted`` counts the lengths, over all trials, at which no interval had positive regret."""

    method: str
    comparator: str
    trials: int
    exponent: float
    standard_error: float
    shortest: int
    longest: int
    omitted: int


def exponents(lines: Iterable[WorstInterval]) -> list[Exponent]:
    """One per method and comparator, of lengths up to a quarter of the longest, of which a stream has several.

    >>> lines = [WorstInterval(0, "ocelad", "truth, l", 4**k, 1, 3.0 * 2**k, 0.0, 0.0) for k in range(5)]
    >>> exponents(lines)[0].exponent
    0.5
    """
    lines, table = list(lines), []
    longest = max((line.length for line in lines), default=0) / 4
    for method, comparator in dict.fromkeys((line.method, line.comparator) for line in lines):
        own = [x for x in lines if (x.method, x.comparator) == (method, comparator) and x.length <= longest]
        fits = [
            growth_exponent([x.length for x in own if x.trial == k], [x.regret for x in own if x.trial == k])
            for k in dict.fromkeys(x.trial for x in own)
        ]
        found = mean(np.array([fit.exponent for fit in fits] or [np.nan]))
        sizes = [x.length for x in own] or [0]
        omitted = sum(fit.omitted for fit in fits)
        table.append(Exponent(method, comparator, len(fits), *found, min(sizes), max(sizes), omitted))
    return table
