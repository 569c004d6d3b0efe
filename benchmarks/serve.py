"""``ocelad serve`` under load, on this machine: how long an answer takes, and what scoring costs those who write.

python benchmarks/serve.py                 times of answers, ratios, start, replay, memory
python benchmarks/serve.py --seconds 20    each load for longer
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sys
import tempfile
import threading
import time
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from ocelad import MetricTracker
from ocelad.serve import log
from ocelad.serve.fold import Fold
from ocelad.serve.items import StoredItems
from ocelad.watch.prequential import progressive
from running import Running


def load(service: Any, writers: int, scorers: int, seconds: float, n: int, stream: str) -> dict[str, list[float]]:
    """Clients that send one request after the other; the times of their answers, in milliseconds."""
    end = time.monotonic() + seconds
    times: dict[str, list[float]] = {"comparisons": [], "score": []}

    def client(path: str) -> None:
        points = [json.dumps([random.gauss(0, 1) for _ in range(n)]) for _ in range(30)]
        own = []
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while time.monotonic() < end:
                pair = f'"x": {random.choice(points)}, "z": {random.choice(points)}'
                label = f', "request_id": "{uuid.uuid4().hex}", "y": {random.choice((1, -1))}'
                request = post(f"/v1/streams/{stream}/{path}", pair + (label if path == "comparisons" else ""))
                start = time.perf_counter()
                connection.sendall(request)
                answer = received(connection)
                own.append(1e3 * (time.perf_counter() - start))
                assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")), answer
        times[path] += own

    kinds = ["comparisons"] * writers + ["score"] * scorers
    threads = [threading.Thread(target=client, args=(kind,)) for kind in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def post(path: str, fields: str) -> bytes:
    """A request, as bytes: a client that does more would take the processor from the service on this machine."""
    body = "{" + fields + "}"
    headers = f"Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"POST {path} HTTP/1.1\r\n{headers}\r\n\r\n{body}".encode()


def received(connection: socket.socket) -> bytes:
    """An answer, whole."""
    data = b""
    while True:
        data += connection.recv(1 << 16)
        head, found, body = data.partition(b"\r\n\r\n")
        if found and len(body) == int(head.lower().partition(b"content-length:")[2].split()[0]):
            return data


def words(times: list[float], seconds: float) -> str:
    median, most = np.percentile(times, [50, 99])
    return f"{len(times) / seconds:6.0f} a second, median {median:5.1f} ms, p99 {most:5.1f} ms"


def memory(service: Any) -> dict[str, float]:
    """Megabytes that each process has for itself, or shares in equal parts."""
    found = {}
    for pid in [service.process.pid, *service.children()]:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        name = next((part for part in ("log_writer", "learner") if part.encode() in command), "front")
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        found[name] = sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1e3
    return found


def kernels() -> float:
    """Megabytes of a process that has learned one comparison, and does nothing else."""
    import subprocess

    code = (
        "import numpy as np, ocelad; ocelad.MetricTracker().partial_fit(np.ones((1, 2, 25)), [1]);"
        "print(sum(int(l.split()[1]) for l in open('/proc/self/smaps_rollup') if l.startswith('Pss:')) / 1e3)"
    )
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def under_load(folder: Path, seconds: float) -> None:
    with Running(data=folder / "load") as service:
        load(service, 4, 0, 1.0, 25, "s")
        print(f"one person          {words(load(service, 1, 0, seconds, 25, 's')['comparisons'], seconds)}")
        print(f"32 clients          {words(load(service, 32, 0, seconds, 25, 's')['comparisons'], seconds)}")
        alone = load(service, 8, 0, seconds, 25, "s")["comparisons"]
        print(f"8 writers           {words(alone, seconds)}")
        both = load(service, 8, 4, seconds, 25, "s")
        print(f"8 and 4 scorers     {words(both['comparisons'], seconds)}")
        print(f"  scores            {words(both['score'], seconds)}")
        print(f"  writers keep      {len(both['comparisons']) / len(alone):.2f} of their rate")
        load(service, 2, 0, 1.0, 384, "wide")
        times = load(service, 1, 1, seconds, 384, "wide")["score"]
        print(f"score, n = 384      {words(times, seconds)} while another client writes")


def start(folder: Path) -> None:
    """Ready with 10,000 items and a log of 10,000; memory."""
    rng = np.random.default_rng(0)
    points, ids = rng.normal(size=(10_000, 25)), [f"item {k}" for k in range(10_000)]
    table = folder / "items.csv"
    rows = [",".join([name, *map(repr, row)]) for name, row in zip(ids, points.tolist(), strict=True)]
    table.write_text("\n".join([",".join(["id", *(f"f{k}" for k in range(25))]), *rows]) + "\n")
    with Running(table, data=folder / "start", wait=False) as service:
        print(f"first start         page {service.wait('/healthz'):.2f} s, with reading 10,000 items")
        service.wait()
        service.stop()
    with closing(log.Log(folder / "start")) as writer:
        for k, (i, j) in enumerate(rng.integers(10_000, size=(10_000, 2)).tolist()):
            y = 1 if abs(points[i, 0] - points[j, 0]) < 1 else -1
            writer.add("default", log.Entry(0, "default", f"r{k}", "comparison", ids[i], ids[j - (i == j)], y=y))
        writer.commit()
    items = StoredItems.read(folder / "start")
    assert len(items.ids) == 10_000
    for what in ("without a snapshot", "with a snapshot", "with a snapshot"):
        with Running(table, data=folder / "start", wait=False) as service:
            begin = time.monotonic()
            page, _ = service.wait("/healthz"), service.wait()
            print(
                f"ready               {time.monotonic() - begin:.2f} s (page {page:.2f} s), log of 10,000, {what}"
            )
            service.get("next?by=a")
            found = memory(service)
            service.stop()
    total, bare = sum(found.values()), kernels()
    shares = ", ".join(f"{name} {size:.0f}" for name, size in found.items())
    print(f"memory              {total:.0f} MB ({shares}); {total - bare:.0f} above the kernels' {bare:.0f}")


def replay(folder: Path, count: int = 20_000) -> None:
    """The fold of a log, and the tracker alone on the same comparisons, in blocks."""
    for n in (25, 384):
        rng, m = np.random.default_rng(0), count if n == 25 else count // 5
        pairs = rng.normal(size=(m, 2, n))
        y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
        with closing(log.Log(folder / f"replay{n}")) as writer:
            for k in range(m):
                x, z = (point.tobytes() for point in pairs[k])
                writer.add("s", log.Entry(0, "s", str(k), "comparison", x=x, z=z, y=int(y[k])))
            writer.commit()
        with closing(log.connect(folder / f"replay{n}")) as db:
            MetricTracker().partial_fit(pairs[:2], y[:2])
            for turn in range(3):
                begin = time.perf_counter()
                Fold("s", db, folder / f"snapshots{n}-{turn}", None).catch_up()
                middle = time.perf_counter()
                tracker = MetricTracker(scale="features")
                for k in range(0, m, 512):
                    progressive(tracker, pairs[k : k + 512], y[k : k + 512])
                end = time.perf_counter()
                own, bare = m / (middle - begin), m / (end - middle)
                print(f"replay, n = {n:3d}     {own:.0f} a second, {own / bare:.2f} of the tracker alone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--only", choices=["load", "start", "replay"])
    given = parser.parse_args()
    parts = {"load": lambda f: under_load(f, given.seconds), "start": start, "replay": replay}
    for name, part in parts.items():
        if given.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                part(Path(folder))


if __name__ == "__main__":
    main()
