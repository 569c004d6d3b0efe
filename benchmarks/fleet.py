"""A tracker for each of many keys: memory and time of a key's first comparison, and speed of one more for each.

    python benchmarks/fleet.py [--keys 10000] [--features 25]

Memory is what the process has grown by; times are of the processor, in one thread. Then the file of them all, and
the same with most trackers put away as bytes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time

import numpy as np

from ocelad import KeyedTrackers


def resident() -> float:
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * float(os.sysconf("SC_PAGE_SIZE"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=25)
    given = parser.parse_args()
    m, rng = given.keys, np.random.default_rng(0)
    pairs, y = rng.normal(size=(m, 2, given.features)), rng.choice([-1, 1], size=m)
    keys = [f"user {number}" for number in range(m)]
    KeyedTrackers(threads=1).partial_fit(keys[:100], pairs[:100], y[:100])  # compiles

    fleet, before, start = KeyedTrackers(threads=1), resident(), time.process_time()
    fleet.partial_fit(keys, pairs, y)
    elapsed = time.process_time() - start
    print(f"{m} keys, n = {given.features}")
    grown = (resident() - before) / 1e3
    print(f"first comparison      {1e6 * elapsed / m:8.1f} us a key   {grown / m:8.2f} kB a key")
    start = time.process_time()
    fleet.partial_fit(keys, pairs, y)
    elapsed = time.process_time() - start
    print(f"one more              {1e6 * elapsed / m:8.1f} us a key   {m / elapsed:8.0f} a second")
    start = time.process_time()
    fleet.predict(keys, pairs)
    elapsed = time.process_time() - start
    print(f"predict               {1e6 * elapsed / m:8.1f} us a key   {m / elapsed:8.0f} a second")

    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        fleet.save(f"{folder}/fleet")
        saved = time.process_time() - start
        size = os.path.getsize(f"{folder}/fleet")
        print(f"save                  {1e6 * saved / m:8.1f} us a key   {size / m / 1e3:8.2f} kB a key")
        before, start = resident(), time.process_time()
        again = KeyedTrackers.load(f"{folder}/fleet", threads=1, max_in_memory=max(1, m // 100))
        loaded = time.process_time() - start
    print(
        f"load, 1 % in memory   {1e6 * loaded / m:8.1f} us a key   {(resident() - before) / m / 1e3:8.2f} kB a key"
    )
    start = time.process_time()
    again.partial_fit(keys, pairs, y)
    elapsed = time.process_time() - start
    print(f"bring back, learn, put away {1e6 * elapsed / m:.1f} us a key")


if __name__ == "__main__":
    main()
