"""What a history costs: processor time per comparison of a batch, without one and looking every so often.

python benchmarks/history.py
"""

from __future__ import annotations

import time

import numpy as np

from ocelad import ChangeAlarm, History, MetricTracker

if __name__ == "__main__":
    for n, m in ((25, 4000), (200, 1000), (384, 400)):
        pairs = np.random.default_rng(0).normal(size=(m, 2, n))
        matter = ((pairs[:, 0] - pairs[:, 1])[:, :3] ** 2).sum(axis=1)
        y = np.where(matter < np.median(matter), 1, -1)
        MetricTracker().partial_fit(pairs[:50], y[:50])  # compile
        plain = np.inf
        for every in (None, 64, 16, 4, 1):
            best = np.inf
            for _ in range(3):
                tracker = MetricTracker()
                if every is not None:
                    History(tracker, every=every, alarm=ChangeAlarm())
                start = time.process_time()
                tracker.partial_fit(pairs, y)
                best = min(best, time.process_time() - start)
            plain = best if every is None else plain
            print(
                f"{n:4d} features, every {every!s:>4}: {1e6 * best / m:7.0f} us, x {best / plain:.1f}", flush=True
            )
