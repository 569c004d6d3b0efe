"""The stream of ``ocelad spark-demo``, on this machine; ``examples/spark/users_job.py`` is one for a cluster.

All is in one folder: ``in``, the files of comparisons, ``out``, what was right and what was alarmed, a file for
each batch, and the ``checkpoint``. A batch takes one file: their numbers are the same.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ..files import atomic_write, remove_unfinished
from ..fleet import KeyedTrackers
from ..protocols import Integers
from ..state import dumps
from ..tracker import MetricTracker
from ..watch.alarms import ChangeAlarm
from .demo_data import ROWS, N, latest_jump, write_file
from .settings import SETTINGS
from .stored import states
from .stream import track

OPTIONS: dict[str, Any] = dict(tracker=MetricTracker(memory=256), alarm=ChangeAlarm(), buckets=16)

HERE = {
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "localhost",  # whatever the network calls a laptop
    "spark.driver.bindAddress": "127.0.0.1",
}

SETTLED = 100
"""Comparisons after which a jump that has not been noticed counts as missed."""


@contextmanager
def session(folder: Path) -> Iterator[SparkSession]:
    """Spark on this machine; what Java and the workers have to say goes to a file."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    builder = SparkSession.builder.master("local[*,4]").appName("ocelad spark-demo")
    for name, value in {**SETTINGS, **HERE, "spark.local.dir": str(folder / "local")}.items():
        builder = builder.config(name, value)
    usual = os.dup(2)
    try:
        with open(folder / "spark.log", "ab") as log:
            os.dup2(log.fileno(), 2)  # Java inherits it
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark
        finally:
            with suppress(*_FAILURES):
                spark.stop()
    except _FAILURES as error:
        where = folder / "spark.log"
        words = f"Spark, which needs Java 17 or later, has failed, see {where}:\n{error}"
        if isinstance(error, ConnectionError | Py4JError):
            words = f"Java, in which Spark runs, has gone, see {where}."
        raise OSError(f"{words}\nThe same command goes on.") from None
    finally:
        os.dup2(usual, 2)
        os.close(usual)


_FAILURES = (PySparkException, Py4JError, ConnectionError)  # the last two when Java is gone


class Demo:
    """A folder that grows, and a stream that learns from it.

    Parameters
    ----------
    folder
        Where everything is.
    users
        How many there are in files yet to be made.
    say
        Takes a line for each batch.
    """

    def __init__(self, folder: Path, users: int, say: Callable[[str], None] = print) -> None:
        self.folder, self.users, self.say = folder.absolute(), users, say
        self._check()
        for name in ("in", "out"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
            remove_unfinished(self.folder / name)

    def _check(self) -> None:
        """Whether the folder is of such a demonstration, or empty."""
        if not (self.folder / "in").is_dir() and [path for path in self.folder.glob("*") if path.name[0] != "."]:
            raise ValueError(f"FOLDER must be new or of this demonstration: {self.folder} has other files")
        if self.files and (found := pq.read_metadata(self.files[0]).num_rows // ROWS) != self.users:
            raise ValueError(f"--keys must be {found}, as the run in {self.folder} began, got {self.users}")

    @property
    def files(self) -> list[Path]:
        return sorted((self.folder / "in").glob("*.parquet"))

    @property
    def learned(self) -> int:
        """How many batches have been learned, for good."""
        commits = (self.folder / "checkpoint" / "commits").glob("[0-9]*")
        return max((int(path.name) + 1 for path in commits), default=0)

    def comparisons(self, batches: int) -> int:
        """How many comparisons there were in the first batches."""
        return sum(pq.read_metadata(self._out(number)).num_rows for number in range(batches))

    def _out(self, number: int) -> Path:
        return self.folder / "out" / f"{number:06}.parquet"

    def run(self, spark: SparkSession, batches: int, every: float) -> None:
        """Make files until there are so many, one every so many seconds, and learn all of them."""
        columns = "key STRING, seq BIGINT, x ARRAY<DOUBLE>, z ARRAY<DOUBLE>, y BIGINT"
        files = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
        outcome = track(files.parquet(str(self.folder / "in")), n_features=N, **OPTIONS)
        stream = outcome.writeStream.foreachBatch(self._keep)
        query = stream.option("checkpointLocation", str(self.folder / "checkpoint")).start()
        due = time.monotonic()
        try:
            while query.isActive and self.learned < max(batches, len(self.files)):
                if len(self.files) < batches and time.monotonic() >= due:
                    write_file(self.folder / "in", len(self.files), self.users)
                    due = time.monotonic() + every
                time.sleep(0.1)
            if (error := query.exception()) is not None:
                raise error
        finally:
            query.stop()

    def _keep(self, outcome: DataFrame, number: int) -> None:
        """Write a batch where it belongs: done again after a crash, it takes its own place."""
        table = outcome.select("key", "seq", "right", "alarm").toArrow()
        with atomic_write(self._out(number)) as file:
            pq.write_table(table, file)
        wrong = 1 - np.mean(table["right"].to_numpy())
        found = table.filter(table["alarm"].is_valid())
        self.say(f"{number:5} {self.comparisons(number + 1):12,} {wrong:7.1%} {len(found):7,}{_few(found)}")

    def summary(self) -> str:
        """How many of the jumps were noticed, how soon, and what was alarmed besides."""
        table = pa.concat_tables(pq.read_table(self._out(number)) for number in range(self.learned))
        user, seq, alarmed = _users(table), table["seq"].to_numpy(), table["alarm"].is_valid().to_numpy()
        since = latest_jump(user, seq)
        jumped = (since == seq) & (seq < seq.max() - SETTLED)
        due = set(zip(user[jumped].tolist(), seq[jumped].tolist(), strict=True))
        found: dict[tuple[int, int], int] = {}
        false = 0
        for who, jump, when in sorted(np.stack([user, since, seq], axis=1)[alarmed].tolist()):
            false += jump < 0 or (who, jump) in found
            found.setdefault((who, jump), when - jump)
        delays = [delay for event, delay in found.items() if event in due]
        later = f", {np.median(delays):.0f} comparisons later in the median" if delays else ""
        return f"{len(delays):,} of {len(due):,} jumps were noticed{later}; {false:,} false alarms"

    def trackers(self) -> KeyedTrackers:
        """Those in the checkpoint, while there is a session."""
        return states(self.folder / "checkpoint")


def differing(found: KeyedTrackers, files: Iterable[Path]) -> list[Hashable]:
    """Learn files in this process: the keys whose trackers are not found to be the same, bit for bit."""
    alone = KeyedTrackers(OPTIONS["tracker"])
    for file in files:
        table = pq.read_table(file)
        pairs = np.stack([np.stack(table[name].to_numpy()) for name in ("x", "z")], axis=1)
        alone.partial_fit(table["key"].to_pylist(), pairs, table["y"].to_numpy())
    return [key for key in alone if key not in found or dumps(found[key]) != dumps(alone[key])]


def _users(table: pa.Table) -> Integers:
    return np.array([int(key.removeprefix("user ")) for key in table["key"].to_pylist()], dtype=np.int64)


def _few(found: pa.Table, most: int = 3) -> str:
    """Some of the alarms, a line each, and what was true."""
    few, lines = found.slice(0, most), []
    for row, since in zip(few.to_pylist(), latest_jump(_users(few), few["seq"].to_numpy()), strict=True):
        truth = "nothing has changed" if since < 0 else f"changed at {since}"
        lines.append(f"  {row['key']}: {row['alarm']} at its comparison {row['seq']} ({truth})")
    return ("\n" + " " * 34).join(lines)
