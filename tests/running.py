"""A service in processes of its own, started and stopped as a person would, and plain requests to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 120.0
"""Seconds after which a service that is not ready is broken; compiling takes half a minute on a busy machine."""


posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no signals, process groups or named pipes")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Running:
    """``ocelad serve``, until it is stopped."""

    def __init__(self, *arguments: Any, data: Path, port: int | None = None, wait: bool = True) -> None:
        if os.name == "nt":
            pytest.skip("Windows has neither SIGTERM, by which a service is stopped here, nor ps")
        self.data, self.port = data, port or free_port()
        command = [sys.executable, "-m", "ocelad.cli", "serve", *map(str, arguments)]
        command += ["--data", str(data), "--port", str(self.port), "--no-open"]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.output = data.with_suffix(".out")
        with open(self.output, "ab") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=output, start_new_session=True, env=environment
            )
        if wait:
            self.wait()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def wait(self, path: str = "/readyz") -> float:
        """Until it is ready; how long that took, in seconds."""
        start = time.monotonic()
        while time.monotonic() - start < PATIENCE:
            if self.process.poll() is not None:
                raise AssertionError(f"the service has ended: {self.words()}")
            try:
                if self.request("GET", path)[0] == 200:
                    return time.monotonic() - start
            except OSError:
                pass
            time.sleep(0.02)
        raise AssertionError(f"the service is not ready: {self.words()}")

    def words(self) -> str:
        return self.output.read_text(errors="replace")

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """The status, and what was answered: JSON, or bytes."""
        status, data, kind = self.raw(method, path, body, headers)
        return status, json.loads(data) if "json" in kind else data

    def raw(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            given = {"Content-Type": "application/json"} if body is not None else {}
            text = body if isinstance(body, (bytes, str)) or body is None else json.dumps(body)
            connection.request(method, path, text, {**given, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers.get("Content-Type", "")
        finally:
            connection.close()

    def post(self, path: str, body: Any) -> Any:
        status, said = self.request("POST", f"/v1/streams/default/{path}", body)
        assert status in (200, 201), said
        return said

    def get(self, path: str) -> Any:
        status, said = self.request("GET", f"/v1/streams/default/{path}")
        assert status == 200, said
        return said

    def learned(self, stream: str = "default") -> Any:
        """The state, once all that was said is learned."""
        for _ in range(1000):
            state = self.request("GET", f"/v1/streams/{stream}/state")[1]
            if state["version"] == state["last"]:
                return state
            time.sleep(0.02)
        raise AssertionError(f"it does not catch up: {state}")

    def children(self) -> list[int]:
        """The numbers of the processes that it has started."""
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True
        )
        return [int(word) for word in found.stdout.split()]

    def kill(self) -> None:
        """kill -9 of all its processes."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> float:
        """SIGTERM; how long it took to end, in seconds."""
        start = time.monotonic()
        self.process.terminate()
        self.process.wait(30)
        return time.monotonic() - start
