"""How soon changes are reported, and how often one is reported that did not happen.

    python benchmarks/alarms.py --seeds 1000 1040            # scenario S: jumps at comparisons 1300 and 4300
    python benchmarks/alarms.py --static --seeds 1000 1004   # nothing changes, over 20,000 comparisons
    python benchmarks/alarms.py --drift --seeds 1000 1008    # steady rotation, over 5,000 comparisons
    python benchmarks/alarms.py --small --seeds 1000 1010    # one direction matters: it stays, jumps or turns
    python benchmarks/alarms.py --noise --seeds 1000 1010    # one direction matters, and jumps; labels are flipped
    python benchmarks/alarms.py --looks --seeds 1000 1020    # scenario S, by a history that looks every so often
    python benchmarks/alarms.py --csv points.csv --seeds 0 4 # your labelled points: columns group, features, label

A jump is reported if there is an event of that kind within 100 comparisons; every other such event is false.
About a second a trial of scenario S.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ocelad import History, MetricTracker
from ocelad.data import SCENARIO, DriftingClusters, Segment
from ocelad.watch.alarms import Alarm, ChangeAlarm, Event, RiverAlarm
from ocelad.watch.history import time_scale
from ocelad.watch.prequential import progressive

JUMPS = (1300, 4300)
WITHIN = 100


class Collapse:
    """For comparison: an event when the effective time-scale falls to a fraction of its maximum."""

    def __init__(self, fraction: float) -> None:
        self.fraction, self.t, self.highest = fraction, 0, 0.0

    def update(self, wrong: bool, levels: Any = None) -> Event | None:  # noqa: ARG002
        self.t += 1
        now = time_scale(levels, self.t)
        self.highest = max(self.highest, now)
        if self.t < 50 or now > self.fraction * self.highest:
            return None
        strength, self.highest = self.highest / now, now
        return Event(self.t, "jump", self.t, strength)


Course = list[tuple[bool, Any, float]]


def course(seed: int, segments: tuple[Segment, ...], dimension: int = 25, noise: float = 0.0) -> Course:
    """A tracker's errors, experts and log losses on clusters; a share ``noise`` of the labels is flipped."""
    rng = np.random.default_rng([2016, seed])
    data = DriftingClusters.draw(rng, dimension=dimension)
    steps = list(data.stream(rng, segments))
    flip = np.random.default_rng([2017, seed]).random(len(steps)) < noise
    y = np.where(flip, -1, 1) * np.array([step.y for step in steps])
    return watched(np.array([step.pair for step in steps]), y)


def direction(
    seed: int, steps: int, n: int, noise: float = 0.0, similar: float = 0.5, turn: float = 0.0, jump: int = 0
) -> Course:
    """Points are similar that are close in one direction, which turns by so many radians a comparison, and after
    ``jump`` comparisons, if any, by a right angle at once."""
    rng = np.random.default_rng([2018, seed, n])
    pairs, basis = rng.normal(size=(steps, 2, n)), np.linalg.qr(rng.normal(size=(n, n)))[0]
    angle = turn * np.arange(steps) + (np.pi / 2) * ((jump > 0) & (np.arange(steps) >= jump))
    relevant = np.cos(angle)[:, None] * basis[0] + np.sin(angle)[:, None] * basis[1]
    gap = np.abs(np.sum((pairs[:, 0] - pairs[:, 1]) * relevant, axis=1))
    y = np.where((gap < np.quantile(gap, similar)) ^ (rng.random(steps) < noise), 1, -1)
    return watched(pairs, y)


def watched(pairs: Any, y: Any) -> Course:
    trace = progressive(MetricTracker(), pairs, y)
    wrong, costs = (trace.similar != (y > 0)).tolist(), trace.log_loss(y).tolist()
    return [(wrong[k], trace.after(k), costs[k]) for k in range(len(y))]


def events(make: Callable[[], Alarm], seen: Course) -> list[Event]:
    alarm, found = make(), []
    for wrong, experts, cost in seen:
        heard = isinstance(alarm, ChangeAlarm)
        event = alarm.update(wrong, experts, cost) if heard else alarm.update(wrong, experts)  # type: ignore[call-arg]
        if event is not None:
            found.append(event)
    return found


def mean(values: Sequence[float]) -> str:
    spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.3f} ± {spread:.3f}"


def scenario(seeds: range) -> None:
    alarms: dict[str, Callable[[], Alarm]] = {
        f"ChangeAlarm(steps={steps:g})": lambda steps=steps: ChangeAlarm(steps=steps)  # type: ignore[misc]
        for steps in (30, 100, 300, 1000, 3000, 10_000, 100_000)
    }
    alarms |= {
        f"time-scale falls to {fraction:g}": lambda fraction=fraction: Collapse(fraction)  # type: ignore[misc]
        for fraction in (0.6, 0.5, 0.4, 0.3, 0.2, 0.15)
    }
    try:
        alarms["river's ADWIN"] = RiverAlarm
        RiverAlarm()
    except ImportError:
        del alarms["river's ADWIN"]
    courses = [course(seed, SCENARIO) for seed in seeds]
    print(f"{'':28s}{'reported':>16s}{'false a trial':>16s}{'delay':>7s}{'onset off by':>14s}{'drifts':>8s}")
    for name, make in alarms.items():
        reported: list[float] = []
        false, delay, off, drifts = [], [], [], []
        for seen in courses:
            found = events(make, seen)
            jumps = [event for event in found if event.kind == "jump"]
            first = [next((e for e in jumps if 0 < e.t - jump <= WITHIN), None) for jump in JUMPS]
            hits = [(event, jump) for event, jump in zip(first, JUMPS, strict=True) if event is not None]
            reported.append(len(hits) / len(JUMPS))
            false.append(len(jumps) - len(hits))
            delay += [event.t - jump for event, jump in hits]
            off += [abs(event.onset - jump - 1) for event, jump in hits]
            drifts.append(len(found) - len(jumps))
        print(
            f"{name:28s}{mean(reported):>16s}{mean(false):>16s}{np.median(delay) if delay else np.nan:7.0f}"
            f"{np.median(off) if off else np.nan:14.0f}{np.mean(drifts):8.2f}"
        )


def looks(seeds: range) -> None:
    """The default alarm, fed by a history."""
    for every in (1, 4, 16, 64):
        reported, false = [], []
        for seed in seeds:
            rng = np.random.default_rng([2016, seed])
            steps = list(DriftingClusters.draw(rng).stream(rng, SCENARIO))
            tracker = MetricTracker()
            history = History(tracker, every=every, alarm=ChangeAlarm())
            tracker.partial_fit(np.array([step.pair for step in steps]), [step.y for step in steps])
            times = [event.t for event in history.events if event.kind == "jump"]
            hits = sum(any(0 < t - jump <= WITHIN for t in times) for jump in JUMPS)
            reported.append(hits / len(JUMPS))
            false.append(len(times) - hits)
        print(f"every {every:3d}: reported {mean(reported)}, false a trial {mean(false)}", flush=True)


def rate(found: list[list[Event]], kind: str) -> str:
    return mean([sum(event.kind == kind for event in events) for events in found])


def static(seeds: range) -> None:
    print(f"{'features':>9s}{'flipped':>9s}{'errors':>8s}{'jumps in 20,000':>18s}{'drifts in 20,000':>18s}")
    for dimension in (6, 25, 60):
        for noise in (0.0, 0.1, 0.3):
            courses = [course(seed, (Segment(20_000, "A", 0.0),), dimension, noise) for seed in seeds]
            found = [events(ChangeAlarm, seen) for seen in courses]
            errors = np.mean([wrong for seen in courses for wrong, _, _ in seen[5000:]])
            print(
                f"{dimension:9d}{noise:9g}{errors:8.2f}{rate(found, 'jump'):>18s}{rate(found, 'drift'):>18s}",
                flush=True,
            )


def small(seeds: range) -> None:
    kinds: list[tuple[str, int, dict[str, Any]]] = []
    for n in (2, 3, 5, 25, 60):
        kinds += [
            (f"{n} features, {noise:g} flipped", 3000, {"n": n, "noise": noise}) for noise in (0.0, 0.1, 0.3)
        ]
        kinds += [(f"{n} features, .06 similar", 3000, {"n": n, "similar": 0.06})]
    kinds += [(f"{n} features, jump at 1000", 9000, {"n": n, "jump": 1000}) for n in (2, 3, 25)]
    for n, noise in ((3, 0.0), (5, 0.1)):
        for turn in (0.0003, 0.001, 0.003):
            name = f"{n} features, {noise:g} flipped, turn {turn:g}"
            kinds.append((name, 5000, {"n": n, "noise": noise, "turn": turn}))
    print(f"{'':36s}{'jumps':>7s}{'drifts':>8s}{'streams with a drift':>22s}{'first':>7s}")
    for name, steps, options in kinds:
        found = [events(ChangeAlarm, direction(seed, steps, **options)) for seed in seeds]
        jumps = sum(event.kind == "jump" for each in found for event in each)
        drifts = [[event.t for event in each if event.kind == "drift"] for each in found]
        first = np.median([each[0] if each else np.inf for each in drifts])
        print(
            f"{name:36s}{jumps:7d}{sum(map(len, drifts)):8d}{sum(map(bool, drifts)):22d}{first:7.0f}", flush=True
        )


def noise(seeds: range) -> None:
    """Jumps that are missed, or noticed late, where labels are often wrong."""
    jump, steps = 1500, 3000
    print(f"{'features':>9s}{'flipped':>9s}{'within 100':>12s}{'ever':>6s}{'delay':>7s}{'before':>8s}")
    for n in (4, 8, 16):
        for flipped in (0.0, 0.1, 0.2, 0.3):
            found = [events(ChangeAlarm, direction(seed, steps, n, flipped, jump=jump)) for seed in seeds]
            first = np.array([next((e.t - jump for e in each if e.t > jump), np.inf) for each in found])
            before = sum(event.t <= jump for each in found for event in each)
            print(
                f"{n:9d}{flipped:9g}{np.sum(first <= WITHIN):12d}{np.sum(np.isfinite(first)):6d}"
                f"{np.median(first):7.0f}{before:8d}",
                flush=True,
            )


def drift(seeds: range) -> None:
    print(f"{'drift':>12s}{'errors':>8s}{'time-scale':>12s}{'jumps':>16s}{'drifts':>16s}{'first':>7s}")
    twice = tuple(Segment(part.steps, part.clustering, 2 * part.drift) for part in SCENARIO)
    steady = {f"{speed:g}": (Segment(5000, "A", speed),) for speed in (0.0, 0.02, 0.05, 0.15, 0.4)}
    for name, segments in {**steady, "S": SCENARIO, "S, twice": twice}.items():
        courses = [course(seed, segments) for seed in seeds]
        found = [events(ChangeAlarm, seen) for seen in courses]
        errors = np.mean([wrong for seen in courses for wrong, _, _ in seen[2500:]])
        scale = np.exp(
            np.mean([np.log(time_scale(seen[t][1], t)) for seen in courses for t in range(2500, 5000, 10)])
        )
        first = [next((e.t for e in each if e.kind == "drift"), np.inf) for each in found]
        print(
            f"{name:>12s}{errors:8.2f}{scale:12.0f}{rate(found, 'jump'):>16s}{rate(found, 'drift'):>16s}"
            f"{np.median(first):7.0f}",
            flush=True,
        )


def table(path: str, seeds: range) -> None:
    """Points in the order of their groups, shuffled within, each compared with one of the 50 before it."""
    rows = np.genfromtxt(path, delimiter=",", skip_header=1)
    group, X, label = rows[:, 0], rows[:, 1:-1], rows[:, -1]
    X = np.sign(X) * np.log1p(np.abs(X))
    X = (X - X[:200].mean(axis=0)) / (X[:200].std(axis=0) + 1e-12)
    starts = np.flatnonzero(np.diff(group)) + 1
    print("groups begin at", *starts)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        order = np.concatenate([rng.permutation(part) for part in np.split(np.arange(len(X)), starts)])
        past = order[[t - int(rng.integers(1, min(50, t) + 1)) for t in range(1, len(X))]]
        tracker = MetricTracker()
        history = History(tracker, capacity=len(X), alarm=ChangeAlarm())
        tracker.partial_fit(
            np.stack([X[order[1:]], X[past]], axis=1), np.where(label[order[1:]] == label[past], 1, -1)
        )
        errors = [part.mean() for part in np.split(history.records["error"], starts - 1)]
        print(f"seed {seed}: errors by group", *(f"{error:.2f}" for error in errors))
        print("  ", *(f"{event.kind} {event.t} (since {event.onset})" for event in history.events))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs=2, type=int, default=(1000, 1040), metavar=("FIRST", "END"))
    parser.add_argument("--static", action="store_true")
    parser.add_argument("--drift", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--noise", action="store_true")
    parser.add_argument("--looks", action="store_true")
    parser.add_argument("--csv", metavar="PATH")
    chosen = parser.parse_args()
    if chosen.csv:
        table(chosen.csv, range(*chosen.seeds))
        parser.exit()
    modes = {"static": static, "drift": drift, "small": small, "noise": noise, "looks": looks}
    named = [mode for name, mode in modes.items() if getattr(chosen, name)]
    (named or [scenario])[0](range(*chosen.seeds))
