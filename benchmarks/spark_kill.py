"""kill -9 of the driver, of Java or of a worker of a job on Spark, at random moments; then it is started again.

    python benchmarks/spark_kill.py [--kills 10]

After each kill the job goes on from its checkpoint. When all files have been learned, trackers and outcomes must
be those of one process, bit for bit (tests/spark_job.py). Half a minute a kill. Needs Java.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

TESTS = Path(__file__).parent.parent / "tests"
sys.path.insert(0, str(TESTS))


def children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text(encoding="utf-8").rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


def wait(job: subprocess.Popen[bytes], seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        job.wait(seconds)


def kill(folder: str, rng: random.Random) -> str:
    """Start the job, and kill a part of it some time after its first batch of this start has begun."""
    offsets = Path(folder) / "out-checkpoint" / "offsets"
    before, start = len(list(offsets.glob("[0-9]*"))), time.monotonic()
    command = [sys.executable, str(TESTS / "spark_job.py"), folder, "stream"]
    job = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while job.poll() is None and len(list(offsets.glob("[0-9]*"))) <= before and time.monotonic() - start < 60:
        time.sleep(0.05)
    wait(job, rng.random() * 6)
    java = [pid for child in children(job.pid) for pid in [child, *children(child)]]
    workers = [worker for pid in java for daemon in children(pid) for worker in children(daemon)]
    one = rng.sample(workers, min(1, len(workers)))
    whom, pid = rng.choice([("driver", [job.pid]), ("Java", java[:1]), ("worker", one)])
    for each in pid:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    if whom == "worker":
        wait(job, 10)  # Spark notices by itself
    with suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    for each in [*java, *workers]:  # those that have not ended with it yet must not write any more
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    return f"{whom}{'' if pid else ' (none there)'} after {len(list(offsets.glob('[0-9]*')))} batches"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    from spark_job import write_files

    rng, killed = random.Random(given.seed), 0
    while killed < given.kills:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            write_files(f"{folder}/in")
            for _ in range(min(rng.choice([1, 2, 3]), given.kills - killed)):
                killed += 1
                print(f"{killed}: {kill(folder, rng)}", flush=True)
            done = subprocess.run(
                [sys.executable, str(TESTS / "spark_job.py"), folder, "check"], capture_output=True, text=True
            )
            print("  equal, bit for bit" if done.returncode == 0 else done.stdout + done.stderr, flush=True)
            if done.returncode:
                sys.exit(1)


if __name__ == "__main__":
    main()
