"""``ocelad spark-demo``: trackers of many users on Spark, on this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from ..folder_lock import lock_folder
from .options import count, option
from .progress import progress


@click.command("spark-demo")
@click.argument("folder", default="spark-demo", type=click.Path(file_okay=False, path_type=Path))
@count("batches", 20, "End after so many, a file each.")
@option("every", 3.0, "Seconds between files.", type=click.FloatRange(0, 3600))
@count("keys", 1000, "How many users there are.")
def spark_demo(folder: Path, batches: int, every: float, keys: int) -> None:
    """Run a tracker for each of 1,000 users on Spark, on this machine: kill it, start it, nothing is lost.

    It makes files of comparisons by users whose notions of similarity jump, each at other times, learns them as
    they appear, and shows the alarms. In the end, all trackers are compared with those that one process learns.
    Everything is in FOLDER, and the same command goes on from there.

    \b
    ocelad spark-demo
    ocelad spark-demo work --batches 100 --every 1

    It needs pip install "ocelad[cli,spark]", and Java 17 or later.
    """
    if every != every:
        raise click.BadParameter("nan is no number of seconds", param_hint="--every")
    from ..spark import track  # noqa: F401  says what is not installed

    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise click.ClickException("ocelad spark-demo needs Java 17 or later, and there is no java")
    from ..spark.demo import Demo, differing, session

    with lock_folder(folder):
        demo = Demo(folder, keys, click.echo)
        click.echo(
            f"Kill it whenever you like, with Ctrl-C or kill -9 {os.getpid()}, and start it again with the same "
            "command:\nnothing is lost. Spark takes about 10 s to start, and 20 s or more for the first batch.\n"
        )
        if done := demo.learned:
            click.echo(f"Going on with batch {done}, after {demo.comparisons(done):,} comparisons.\n")
        if done >= max(batches, len(demo.files)):
            click.echo(f"All {done} batches have been learned: --batches {done + 20} makes more of them.\n")
        try:
            with session(demo.folder) as spark:
                click.echo("batch  comparisons   wrong  alarms")
                demo.run(spark, batches, every)
                click.echo(f"\n{demo.summary()}.")
                found = demo.trackers()
            differ = differing(found, progress(demo.files, "the same in one process", unit=" files", leave=False))
        except KeyboardInterrupt:
            click.echo("\nStopped: the same command goes on.", err=True)
            raise SystemExit(130) from None
    if differ:
        raise click.ClickException(f"{len(differ)} trackers are not those of one process: {differ[:3]}")
    click.echo(f"{len(found):,} trackers equal those of one process, bit for bit.")
