"""``ocelad warmup``: compile the kernels ahead of time."""

from __future__ import annotations

import time

import click

from .. import CoinBetting, FixedShare, MetricTracker


@click.command()
def warmup() -> None:
    """Compile the kernels ahead of time.

    They are compiled on first use and kept on disk; this does it now, say while an image is built.
    """
    start = time.perf_counter()
    pairs, y = [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]]], [1, -1]
    for weights in (FixedShare(), CoinBetting()):  # all in one call, and step by step
        MetricTracker(weights=weights).partial_fit(pairs, y)
    click.echo(f"The kernels are ready ({time.perf_counter() - start:.1f} s).")
