"""Many trackers over threads, each exactly as if it were alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from ..tracker import MetricTracker

T = TypeVar("T")


def learn(streams: Iterable[tuple[MetricTracker, Any, Any]], threads: int | None = None) -> None:
    """``tracker.partial_fit(pairs, y)`` for each (tracker, pairs, y), over threads.

    The kernels work without the interpreter's lock, and what a tracker learns does not depend on the threads. If
    one of them fails, those not begun yet are left alone, and the error is raised; so on Ctrl-C.

    Parameters
    ----------
    streams
        Trackers, no two of them the same, and what each is to learn.
    threads
        How many at a time; by default as many as there are processors for this process.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> trials = [(MetricTracker(), rng.normal(size=(50, 2, 3)), rng.choice([-1, 1], size=50)) for _ in range(4)]
    >>> learn(trials)
    >>> [tracker.mu_ == MetricTracker().partial_fit(pairs, y).mu_ for tracker, pairs, y in trials]  # as if alone
    [True, True, True, True]
    """
    work = list(streams)
    if len({id(tracker) for tracker, _, _ in work}) < len(work):
        raise ValueError("streams must have a tracker of its own for each stream, got one twice")
    over_threads(lambda stream: stream[0].partial_fit(*stream[1:]), work, threads)


def check_threads(threads: int | None) -> None:
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise ValueError(f"threads must be None or a whole number >= 1, got {threads!r}")


def over_threads(task: Callable[[T], object], given: Sequence[T], threads: int | None) -> None:
    """The task with each of what is given, over this number of threads."""
    check_threads(threads)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(len(given), threads or processors)
    if count <= 1:
        for each in given:
            task(each)
        return
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(task, each) for each in given]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            for future in futures:
                future.cancel()
    for future in futures:
        if not future.cancelled():
            future.result()
