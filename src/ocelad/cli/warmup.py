"""``ocelad warmup``: compile the kernels ahead of time."""

from __future__ import annotations

import time

import click
import numpy as np

from .. import CoinBetting, FixedShare, MetricTracker, NuclearNorm, Unregularized


@click.command()
def warmup() -> None:
    """Compile the kernels ahead of time.

    They are compiled on first use and kept on disk; this does it now, say while an image is built.
    """
    start = time.perf_counter()
    for weights in (FixedShare(), CoinBetting()):  # all in one call, and step by step
        for n, regularizer in ((2, NuclearNorm()), (100, NuclearNorm()), (64, Unregularized())):
            pairs = np.zeros((2, 2, n))
            pairs[:, 0, :2] = 1.0, 2.0
            MetricTracker(weights=weights, regularizer=regularizer).partial_fit(pairs, [1, -1])
    click.echo(f"The kernels are ready ({time.perf_counter() - start:.1f} s).")
