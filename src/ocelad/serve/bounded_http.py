"""HTTP in bounded time and space: headers without an end would fill the memory, slow bodies all connections."""

from __future__ import annotations

import asyncio
import json

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST = 1 << 16
"""Bytes of a request before its body."""

PATIENCE = 20.0
"""Seconds in which they must have come, and then the body."""

CONNECTIONS = 900
"""At a time; many systems allow a process 1024 files."""

_FULL = json.dumps(
    {"type": "about:blank", "title": "Service Unavailable", "status": 503, "detail": "too many connections"}
)
FULL = (
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\n"
    f"Content-Length: {len(_FULL)}\r\nConnection: close\r\n\r\n{_FULL}"
).encode()


class BoundedHttp(HttpToolsProtocol):
    """A connection, which is closed when the head of a request is too large, or a request comes too slowly."""

    _size: int | None = 0  # of the head so far; None while a body is received
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > CONNECTIONS:
            transport.write(FULL)
            transport.close()

    def _wait(self) -> None:
        self._stop_waiting()
        self._late = asyncio.get_running_loop().call_later(PATIENCE, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._size is not None:
            self._size += len(data)
        super().data_received(data)
        if self._size is not None and self._size > LARGEST:
            self.transport.abort()

    def on_message_begin(self) -> None:
        self._wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._size = None
        self._wait()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._size = 0
        self._stop_waiting()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)
