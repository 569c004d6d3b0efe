"""kill -9 of the driver, of Java or of a worker of a job on Spark, at random moments; then it is started again.

    python benchmarks/spark_kill.py [--kills 10] [--seed 0]

A third of the kills is for each of the three. After a kill nothing else is touched: the others must end by
themselves, or finish the job without the worker, which Spark replaces if it may try a task again (local[2,4]).
After one to three kills trackers and outcomes must be those of one process, bit for bit (tests/spark_job.py).
Needs Java, and Linux for /proc. Half a minute a kill on two idle cores.
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

JOB = Path(__file__).parent.parent / "tests" / "spark_job.py"
sys.path.insert(0, str(JOB.parent))

KINDS = ("driver", "Java", "worker")
PATIENCE = 300.0
"""Seconds until what should have happened by itself is called a hang."""


def children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text(encoding="utf-8").rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


def processes(driver: int) -> dict[str, list[int]]:
    """The living processes of a job."""
    java = [pid for pid in children(driver) if name(pid) == "java"]
    daemons = [daemon for pid in java for daemon in children(pid)]
    workers = [worker for daemon in daemons for worker in children(daemon)]
    return {"driver": [driver], "Java": java, "daemon": daemons, "worker": workers}


def name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    return ""


def living(found: dict[str, list[int]]) -> list[int]:
    """Those that have not ended; a zombie has."""
    alive = []
    for pid in (pid for pids in found.values() for pid in pids):
        with suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            alive += [pid] if state != "Z" else []
    return alive


def batches(folder: str) -> int:
    return len(list((Path(folder) / "out-checkpoint" / "commits").glob("[0-9]*")))


def kill(folder: str, kind: str, rng: random.Random) -> str | None:
    """Start the job, and kill a part of it in its first to fourth batch; None if it was too late."""
    master = rng.choice(["local[2]", "local[2,4]"])
    with open(f"{folder}/log", "w", encoding="utf-8") as log:
        command = [sys.executable, str(JOB), folder, "stream", master]
        job = subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)
    after = batches(folder) + rng.randrange(4)
    while job.poll() is None and (batches(folder) < after or not processes(job.pid)["worker"]):
        time.sleep(0.05)
    with suppress(subprocess.TimeoutExpired):
        job.wait(rng.uniform(0, 3))
    found, done, start = processes(job.pid), batches(folder), time.monotonic()
    try:
        os.kill(rng.choice(found[kind] if job.poll() is None else []), signal.SIGKILL)
    except (IndexError, ProcessLookupError):  # there is none now
        job.wait(PATIENCE)
        return None
    while (alive := living(found)) and time.monotonic() - start < PATIENCE:
        time.sleep(0.1)
        if job.poll() is None and kind == "worker":  # Spark may have replaced it
            found = processes(job.pid)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    what = f"{kind} of {master} after {done} batches, others ended after {time.monotonic() - start:.1f} s"
    if alive:
        sys.exit(f"{what}: {len(alive)} of them did not\n{Path(f'{folder}/log').read_text(encoding='utf-8')}")
    return f"{what}, the job {'was finished' if job.wait() == 0 else 'stopped'} after {batches(folder)}"


def compare(folder: str) -> None:
    """Let the job finish, and compare what it has learned and said with one process."""
    command = [sys.executable, str(JOB), folder, "compare"]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    print(f"   equal, bit for bit; {time.monotonic() - start:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    from spark_job import write_files

    rng = random.Random(given.seed)
    kinds = [KINDS[i % 3] for i in range(given.kills)]
    rng.shuffle(kinds)
    while kinds:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            write_files(f"{folder}/in")
            for _ in range(rng.choice([1, 2, 3])):
                start = time.monotonic()
                if not kinds or (what := kill(folder, kinds[-1], rng)) is None:
                    break  # it was too late, and there is nothing left to kill here
                kinds.pop()
                print(f"{given.kills - len(kinds)}: {what}; {time.monotonic() - start:.0f} s in all", flush=True)
            compare(folder)


if __name__ == "__main__":
    main()
