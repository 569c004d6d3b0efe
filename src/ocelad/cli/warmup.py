"""``ocelad warmup``: compile the kernels ahead of time."""

from __future__ import annotations

import time

import click
import numpy as np

from .. import MetricTracker
from ..engine.landmarks import POINTS
from ..engine.stack_engine import DICTIONARY


@click.command()
def warmup() -> None:
    """Compile the kernels ahead of time.

    They are compiled on first use and kept on disk; this does it now, say while an image is built.
    """
    start = time.perf_counter()
    for n in (
        2,
        DICTIONARY,
    ):  # few features and many: the same code takes dense and sparse ones, to learn or judge
        pairs = np.ones((1, 2, n))
        pairs[:, 0] = 2.0
        MetricTracker(scale="features").partial_fit(pairs, [1]).predict(pairs)
    points = np.eye(POINTS)[:, :2]
    MetricTracker(nonlinear=True).observe(points).partial_fit([points[:2]], [1])
    click.echo(f"The kernels are ready ({time.perf_counter() - start:.1f} s).")
