"""``ocelad spark-size``: what a fleet on Spark needs."""

from __future__ import annotations

import math

import click

from ..spark.sizing import size


@click.command("spark-size")
@click.option("--keys", type=click.FloatRange(1, 1e12), required=True, help="How many keys, say 1e6.")
@click.option(
    "--per-day", type=click.FloatRange(1, 1e15), required=True, help="How many comparisons a day, of all keys."
)
@click.option("--n", type=click.IntRange(min=1), required=True, help="The number of features.")
@click.option(
    "--memory", type=click.IntRange(min=32), help="Comparisons that a tracker replays; without, RICE alone."
)
@click.option("--trigger", type=float, default=3600.0, show_default=True, help="Seconds between batches.")
@click.option(
    "--t", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Comparisons of a key so far."
)
def spark_size(keys: float, per_day: float, n: int, memory: int | None, trigger: float, t: int) -> None:
    """Say how many cores, how much state and how many buckets a fleet on Spark needs."""
    found = size(keys, per_day, n, memory=memory, trigger=trigger, t=t)
    cores = math.ceil(2.0 * found.cores)
    lines = {
        "batches": f"one every {trigger:g} s (--trigger)",
        "cores busy": f"{found.cores:.2g} on average; have {cores}",
        "memory": f"{_bytes(found.memory)} on {cores} core{'s' * (cores > 1)}",
        "state of a key": _bytes(found.key),
        "state of all": _bytes(found.state),
        "checkpoints a day": _bytes(found.checkpoint),
        "buckets": f"{found.buckets}, of {_bytes(found.state / found.buckets)} each (1 to 10 MB are good)",
    }
    for name, value in lines.items():
        click.echo(f"{name:18} {value}")


def _bytes(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 1000.0 or unit == "TB":
            break
        number /= 1000.0
    return f"{number:.3g} {unit}"
