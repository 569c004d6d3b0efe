"""Where trials run: in processes of this machine, or on a Dask cluster. Results come back as they are finished."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from functools import cache
from threading import Thread
from time import sleep
from typing import Any, TypeVar

from joblib import Parallel, delayed, parallel_config

from .store import Store
from .synthetic import Study
from .trial import Outcome, run_trial

T = TypeVar("T")
Backend = Callable[[Callable[..., T], Iterable[tuple[Any, ...]]], Iterator[T]]


def loky(jobs: int) -> Backend[Any]:
    """A pool of ``jobs`` processes, one BLAS thread each; with one job, this process."""

    def run(function: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
            yield from Parallel(return_as="generator_unordered", batch_size=1)(
                delayed(_with_parent)(os.getpid(), function, call) for call in calls
            )

    return run


def _with_parent(parent: int, function: Callable[..., T], call: tuple[Any, ...]) -> T:
    if os.getpid() != parent:
        _end_with(parent)
    return function(*call)


@cache
def _end_with(parent: int) -> None:
    """End this process when its parent is gone, which tells nobody if killed; work is waited for for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            sleep(1.0)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def dask(jobs: int, address: str | None = None) -> Backend[Any]:
    """The Dask cluster whose scheduler is at an address, or one of ``jobs`` processes on this machine."""
    try:
        from distributed import Client, KilledWorker, as_completed
    except ImportError as error:
        raise ImportError('the dask backend needs distributed: pip install "ocelad[dask]"') from error

    def run(function: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        here = {"n_workers": jobs, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with Client(address) if address is not None else Client(**here) as client:
            futures = [client.submit(function, *call, pure=False) for call in calls]
            try:
                for future in as_completed(futures):
                    try:
                        outcome = future.result()
                    except KilledWorker as error:
                        raise BrokenExecutor(str(error)) from error
                    future.release()
                    yield outcome
            finally:
                client.cancel(futures)

    return run


BACKENDS: Mapping[str, Callable[..., Backend[Any]]] = {"loky": loky, "dask": dask}


def run_study(study: Study, trials: Iterable[int], store: Store, backend: Backend[Outcome]) -> Iterator[Outcome]:
    """Run those trials that are not stored yet; each is stored before it is handed out, in whatever order."""
    done = store.finished()
    for outcome in backend(run_trial, [(study, trial) for trial in trials if trial not in done]):
        store.add(outcome)
        yield outcome
