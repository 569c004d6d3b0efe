"""A notion of similarity for each user, for anyone whose feedback says which user gave it.

    python examples/users.py [--comparisons 1000] [--users 12]

Users compare scikit-learn's wines. Each of them (simulated) looks at three of the 13 measurements, each at
others. Every third of them changes his mind half way. `KeyedTrackers` keeps a tracker per user, and says whose
notion has changed.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from ocelad import ChangeAlarm, KeyedTrackers, MetricTracker


def answers(difference: Any, looks_at: Any) -> Any:
    """Similar if the measurements that a user looks at differ by less than they do in half of all pairs."""
    distance = np.linalg.norm(difference[:, looks_at], axis=1)
    return np.where(distance < np.median(distance), 1, -1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--comparisons", type=int, default=1000, help="of each user")
    parser.add_argument("--users", type=int, default=12)
    given = parser.parse_args()
    rng, n = np.random.default_rng(0), given.comparisons
    X = StandardScaler().fit_transform(load_wine().data)

    users = [f"user {k}" for k in range(given.users)]
    pairs, y = {}, {}
    changed = users[::3]
    for user in users:
        wines = X[rng.integers(len(X), size=(n, 2))]
        difference = wines[:, 0] - wines[:, 1]
        notion = rng.choice(X.shape[1], size=3, replace=False)
        pairs[user], y[user] = wines, answers(difference, notion)
        if user in changed:
            other = rng.choice(X.shape[1], size=3, replace=False)
            y[user][n // 2 :] = answers(difference, other)[n // 2 :]

    everybody = MetricTracker()
    own = KeyedTrackers(MetricTracker(memory=256), history={"every": 10, "alarm": ChangeAlarm()})
    right: dict[str, list[Any]] = {"one tracker for all": [], "one tracker each": []}
    for t in range(n):  # a mixed stream: every user compares two wines, and then again
        now = np.stack([pairs[user][t] for user in users])
        truth = np.array([y[user][t] for user in users])
        if t > 0:
            right["one tracker for all"].append(everybody.predict(now) == truth)  # predict, score ...
            right["one tracker each"].append(own.predict(users, now) == truth)
        everybody.partial_fit(now, truth)  # ... learn
        own.partial_fit(users, now, truth)

    parts = {"first fifth": slice(0, n // 5), "last fifth": slice(-(n // 5), None)}
    print(f"share of right predictions: mean over {given.users} users, and its standard error")
    print(f"{'':20}", *(f"{part:>16}" for part in parts))
    for name, hits in right.items():
        each = [np.mean(hits[part], axis=0) for part in parts.values()]  # for every user
        print(f"{name:20}", *(f"{e.mean():8.3f} ± {e.std(ddof=1) / np.sqrt(len(e)):.3f}" for e in each))
    alarms = [(user, event.t - n // 2) for user, event in own.events()]
    delays = [delay for user, delay in alarms if user in changed and delay > 0]
    print(f"{len(changed)} users changed their minds, {len(delays)} alarms of theirs, after {delays} comparisons")
    print(f"false alarms: {len(alarms) - len(delays)}")


if __name__ == "__main__":
    main()
