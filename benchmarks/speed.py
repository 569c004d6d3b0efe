"""What a comparison costs: ratios to the literal reference and to the list of black boxes, measured in one run.

Every figure is the least CPU time of several runs, with one BLAS thread. The literal reference diagonalises a
matrix per level and step, whatever the data, so a few steps say what it costs; it starts from the tracker's own
state, which also shows how well both agree.

    python benchmarks/speed.py [clusters] [text] [embeddings] [growth] [first] [sparse] [fleet]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import copy
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from drifting import clusters, embeddings, text
from scipy.sparse import csr_array

from ocelad import FixedShare, Intervals, MetricTracker, NuclearNorm, Rice, Step
from ocelad import fleet as many
from ocelad.data import SCENARIO, DriftingClusters, Segment, blocks

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from literal import Literal

RESULTS: dict[str, float] = {}


def seconds(
    work: Callable[[], object],
    runs: int = 3,
    clock: Callable[[], float] = time.process_time,
    least: float = 1.0,
) -> float:
    """The least time of several runs, which take a second at least."""
    times: list[float] = []
    while len(times) < runs or (sum(times) < least and len(times) < 20):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def keep(name: str, figure: float) -> float:
    RESULTS[name] = figure
    return figure


def literal_like(tracker: MetricTracker, strength: float) -> Literal:
    """The literal reference, in the state of a tracker."""
    literal = Literal(
        tracker.n_features_in_,
        step=Step.of(tracker.step).size,
        strength=strength,
        base=Intervals.of(tracker.base).base,
        threshold_step=Step.of(tracker.step).threshold,
        combiner="share",
        max_rank=Step.of(tracker.step).max_rank,
    )
    literal.t = Intervals.of(tracker.base).base + tracker._engine.t
    intervals, levels = literal.act(literal.t), tracker.experts_
    literal.M = {key: metric.M for key, metric in zip(intervals, tracker.expert_metrics_, strict=True)}
    literal.mu = {key: metric.mu for key, metric in zip(intervals, tracker.expert_metrics_, strict=True)}
    literal.p = dict(zip(levels["length"].astype(int).tolist(), levels["weight"].tolist(), strict=True))
    return literal


def compare(name: str, stream: Any, strength: float, few: int, **options: Any) -> None:
    """Learn a stream but for its last few comparisons, and those also literally."""
    pairs, y, given = stream
    most, first = len(y) - few, slice(len(y) - few)
    options = {
        "regularizer": NuclearNorm(strength),
        "scale": None,
        "weights": FixedShare(),
        "memory": None,
        **options,
    }
    tracker = MetricTracker(**options).partial_fit(given(first), y[first])
    fast = seconds(lambda: MetricTracker(**options).partial_fit(given(first), y[first])) / most
    literal = literal_like(tracker, strength)

    def learn_literally() -> int:
        nonlocal literal
        literal, steps = literal_like(tracker, strength), 0
        for (x, z), label in zip(pairs[most:], y[most:], strict=True):
            steps += len(literal.act(literal.t))
            literal.update(x - z, label)
        return steps

    level_steps = learn_literally()
    slow = seconds(learn_literally, runs=1) / level_steps
    tracker.partial_fit(given(slice(most, len(y))), y[most:])
    off = max(
        float(np.abs(metric.M - literal.M[key]).max() / max(1e-3, np.abs(literal.M[key]).max()))
        for metric, key in zip(tracker.expert_metrics_, literal.act(literal.t), strict=True)
    )
    base = Intervals.of(tracker.base).base
    levels = float(np.mean(np.floor(np.log2((base + np.arange(most)) / base)) + 1))
    label = f"{name} strength={strength:g} base={base}"
    ratio = keep(f"{label}: literal / tracker", slow * levels / fast)
    keep(f"{label}: deviation", off)
    some = slice(min(200, most) if tracker.n_features_in_ < 300 else 4)
    boxes = seconds(
        lambda: MetricTracker(**options, ensemble=lambda spawn: Rice(spawn, base)).partial_fit(
            pairs[some], y[some]
        ),
        runs=1,
    )
    stack = seconds(lambda: MetricTracker(**options).partial_fit(given(some), y[some]))
    lists = keep(f"{label}: list / tracker", boxes / stack)
    discarded = f", cut off {tracker.discarded_.max():.1g}" if Step.of(tracker.step).max_rank else ""
    print(
        f"  {label:<38} {fast * 1e6:8.1f} us  literal / tracker {ratio:8.1f}  list / tracker, first steps "
        f"{lists:7.1f}  off by {off:.0e}{discarded}",
        flush=True,
    )


def growth_with_dimension() -> None:
    print("growth with dimension, embeddings, strength .02, 1000 comparisons: cost relative to half of it")
    costs = {}
    for n in (48, 96, 192, 384, 768, 1536):
        pairs, y, _ = embeddings(1000, n)
        costs[n] = seconds(lambda pairs=pairs, y=y: MetricTracker(step=Step(max_rank=64)).partial_fit(pairs, y))  # type: ignore[misc]
        if n > 48:
            print(f"  n = {n:<5} {keep(f'n={n} / n={n // 2}', costs[n] / costs[n // 2]):5.2f}", flush=True)


def growth_with_time() -> None:
    print("growth with time, n = 25: cost of a comparison relative to one at t = 2^10, 1024 of them taken")
    end = 2**17 + 1024
    for name, course in (
        ("a stream that does not change", (Segment(end, "A", 0.0),)),
        ("a stream that drifts", (Segment(end, "A", 0.05),)),
        ("a stream that drifts fast", (Segment(end, "A", 0.15),)),
        ("scenario S over and over", 25 * SCENARIO),
    ):
        rng, tracker, met = np.random.default_rng(0), MetricTracker.rice(), {}
        for k, part in enumerate(blocks(DriftingClusters.draw(rng), rng, 1024, course)):
            if k in (1, 4, 16, 64, 128):
                met[k] = copy.deepcopy(tracker), part.pairs, part.y
            if k == 128:
                break
            tracker.partial_fit(part.pairs, part.y)
        print(f"  {name}")
        least = {
            k: {"levels": float(len(then.experts_)), "that err": erring(copy.deepcopy(then), pairs, y)}
            for k, (then, pairs, y) in met.items()
        }
        for _ in range(15):  # in turns: what slows the machine for a while slows all of them
            for k, (then, pairs, y) in met.items():
                for way, learn in WAYS.items():
                    cost = seconds(learn(copy.deepcopy(then), pairs, y), runs=1, least=0.0)
                    least[k][way] = min(cost, least[k].get(way, cost))
        for k, now in least.items():
            shares = {way: keep(f"{name}: {way}, t={1024 * k}", now[way] / least[1][way]) for way in now}
            print(
                f"    t = {1024 * k:<7}", *(f"  {way} {share:4.2f}" for way, share in shares.items()), flush=True
            )


def erring(tracker: MetricTracker, pairs: Any, y: Any) -> float:
    """How many levels have a step to take at one of these comparisons, on average."""
    total = 0
    for i in range(len(y)):
        tracker.partial_fit(pairs[i : i + 1], y[i : i + 1])
        total += int((tracker.experts_["loss"] > 0.0).sum())
    return total / len(y)


def in_one_call(tracker: MetricTracker, pairs: Any, y: Any) -> Callable[[], object]:
    return lambda: tracker.partial_fit(pairs, y)


def one_by_one(tracker: MetricTracker, pairs: Any, y: Any) -> Callable[[], object]:
    """Without the checks that users need."""
    rows = [(pairs[i : i + 1, 0] - pairs[i : i + 1, 1], y[i : i + 1].astype(float)) for i in range(len(y))]

    def run() -> None:
        for u, label in rows:
            tracker._engine.run(u, label)

    return run


def by_partial_fit(tracker: MetricTracker, pairs: Any, y: Any) -> Callable[[], object]:
    singly = [(pairs[i : i + 1], y[i : i + 1]) for i in range(len(y))]
    return lambda: [tracker.partial_fit(pair, label) for pair, label in singly]


WAYS = {"in one call": in_one_call, "one by one": one_by_one, "by partial_fit": by_partial_fit}


FIRST = """
import time
import numpy as np
from ocelad import MetricTracker
pair = np.random.default_rng(0).normal(size=(1, 2, 25))
start = time.process_time()
MetricTracker().partial_fit(pair, [1])
print(time.process_time() - start)
"""


def first() -> None:
    print("first call on a machine, and in a process after it")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("cold", "cached"):
            done = subprocess.run(
                [sys.executable, "-c", FIRST],
                env={**os.environ, "NUMBA_CACHE_DIR": folder},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            print(f"  {name:<8} {keep(f'first call, {name}', float(done.stdout)):6.2f} s", flush=True)


def sparse() -> None:
    print("pairs of 10,000 features with 20 nonzeros, as sparse rows and as an array, comparisons 301 to 600")
    rng, n, many = np.random.default_rng(0), 10_000, 600
    points = np.zeros((many, 2, n))
    for pair in points:
        for point in pair:
            point[rng.choice(n, size=10, replace=False)] = rng.normal(size=10)
    y, rows = rng.choice([-1, 1], size=many), [csr_array(points[:, side]) for side in (0, 1)]

    def cost(part: Callable[[slice], Any]) -> float:
        first, last = slice(0, many // 2), slice(many // 2, many)
        trackers = [MetricTracker().partial_fit(part(first), y[first]) for _ in range(8)]
        return seconds(lambda: trackers.pop().partial_fit(part(last), y[last]), runs=8, least=0.0)

    ratio = cost(lambda part: points[part]) / cost(lambda part: tuple(side[part] for side in rows))
    print(f"  array / sparse  {keep('array / sparse', ratio):5.2f}", flush=True)


def fleet() -> None:
    print("eight trackers of n = 25 over threads, wall-clock time")
    pairs, y, _ = clusters(4000)

    def learn(threads: int) -> list[MetricTracker]:
        trackers = [MetricTracker() for _ in range(8)]
        many.learn([(tracker, pairs, y) for tracker in trackers], threads)
        return trackers

    alone, together = learn(1), learn(2)
    same = all(
        np.array_equal(a.get_mahalanobis_matrix(), b.get_mahalanobis_matrix())
        for a, b in zip(alone, together, strict=True)
    )
    wall = {threads: seconds(lambda k=threads: learn(k), 5, time.perf_counter) for threads in (1, 2)}  # type: ignore[misc]
    print(f"  one / two threads {keep('one / two threads', wall[1] / wall[2]):5.2f}, equal to the bit: {same}")


def main() -> None:
    chosen = sys.argv[1:] or ["clusters", "text", "embeddings", "growth", "first", "sparse", "fleet"]
    if "clusters" in chosen:
        stream = clusters(4000)
        for base in (8, 1):
            for strength in (0.01, 0.1):
                compare("clusters n=25", stream, strength, 300, base=base)
    if "text" in chosen:
        stream = text(13600)
        for strength in (0.0, 0.01, 0.1):
            compare("text n=194", stream, strength, 10)
    if "embeddings" in chosen:
        for n in (768, 1536):
            stream = embeddings(4000, n)
            for strength in (0.01, 0.1):
                compare(f"embeddings n={n}", stream, strength, 2, step=Step(max_rank=64))
    for name, work in (
        ("growth", growth_with_dimension),
        ("growth", growth_with_time),
        ("first", first),
        ("sparse", sparse),
        ("fleet", fleet),
    ):
        if name in chosen:
            work()
    out = Path(__file__).with_suffix(".json")
    out.write_text(json.dumps(RESULTS, indent=1))
    print(f"written to {out}")


if __name__ == "__main__":
    main()
