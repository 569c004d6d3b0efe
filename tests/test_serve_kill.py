"""kill -9 at random moments under load: nothing that was acknowledged is lost, and nothing is used twice."""

import http.client
import json
import os
import random
import signal
import threading
import time
from contextlib import closing, suppress

import pytest

pytest.importorskip("fastapi", reason="the service needs the extra serve")

import numpy as np

from ocelad import MetricTracker, dumps
from ocelad.serve import log, salvage
from ocelad.serve.fold import Fold
from running import Running, free_port

CLIENTS = 32
N = 4


class Load:
    """Clients that send comparisons as fast as they are taken, and remember what was acknowledged.

    A comparison that was not acknowledged is sent again, with the same request_id.
    """

    def __init__(self, port: int) -> None:
        self.port, self.acknowledged = port, {}
        self.sent = [0] * CLIENTS
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(k,), daemon=True) for k in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _send(self, client: int) -> None:
        rng, connection = random.Random(client), None
        while not self._stop.is_set():
            self.sent[client] += 1
            request = f"{client}-{self.sent[client]}"
            x, z = ([rng.gauss(0, 1) for _ in range(N)] for _ in "xz")
            body = json.dumps({"request_id": request, "x": x, "z": z, "y": 1 if abs(x[0] - z[0]) < 1 else -1})
            while not self._stop.is_set():
                try:
                    connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                    connection.request(
                        "POST", "/v1/streams/default/comparisons", body, {"Content-Type": "application/json"}
                    )
                    answer = connection.getresponse()
                    said = json.loads(answer.read())
                    if answer.status in (200, 201):
                        self.acknowledged[request] = said["id"]
                        break
                    assert answer.status == 503, said
                    time.sleep(0.02)
                except (OSError, http.client.HTTPException):
                    if connection is not None:
                        connection.close()
                    connection = None
                    time.sleep(0.02)
        if connection is not None:
            connection.close()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def _survives(kills, tmp_path):
    rng, port, data = random.Random(kills), free_port(), tmp_path / "data"
    load = Load(port)
    for number in range(kills):
        running = Running(data=data, port=port, wait=False)
        # at any moment: while it starts, as it begins to take comparisons, under full load, as it learns
        if rng.random() < 0.8:
            running.wait("/healthz")
        time.sleep(rng.random() * 0.8)
        whom = number % 4
        children = running.children()
        if whom and len(children) >= whom - 1:  # one process alone: the others must cope, or go
            with suppress(ProcessLookupError):
                os.kill([running.process.pid, *children][whom - 1], signal.SIGKILL)
            time.sleep(rng.random() * 0.3)
        running.kill()
        _gone(children)
    with Running(data=data, port=port) as running:
        time.sleep(0.3)
        load.stop()
        state = running.learned()
        exported = running.get("export/tracker.ocelad")
        running.stop()
    # Each once, under the number that was acknowledged; what was not acknowledged may be there, once
    entries = log.read(data, "default")
    numbers = {entry.request: entry.id for entry in entries}
    assert len(numbers) == len(entries)
    assert {request: numbers.get(request) for request in load.acknowledged} == load.acknowledged
    assert len(entries) <= sum(load.sent)
    assert salvage.check(data) == len(entries)
    # Bit for bit what learning the log from its beginning gives: through the fold, and plainly
    with closing(log.connect(data)) as db:
        again = Fold("default", db, tmp_path / "nowhere", None)
        again.catch_up()
    pairs = np.array([[np.frombuffer(entry.x), np.frombuffer(entry.z)] for entry in entries])
    plain = MetricTracker(scale="features").partial_fit(pairs, [entry.y for entry in entries])
    plain.feature_names_in_ = np.array([str(k) for k in range(N)], dtype=object)
    assert state["t"] == len(entries) == again.t
    assert exported == again.exported() == dumps(plain)
    return len(entries), len(load.acknowledged)


def _gone(children):
    """Children end by themselves when the front is killed: the next service must not meet them."""
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_nothing_is_lost_and_nothing_used_twice(tmp_path):
    _, acknowledged = _survives(12, tmp_path)
    assert acknowledged > 100


@pytest.mark.slow
def test_nothing_is_lost_in_a_thousand(tmp_path):
    print(_survives(int(os.environ.get("OCELAD_KILLS", "1000")), tmp_path))
