"""HTTP whose requests begin in bounded time and space: a line and headers without an end would fill the memory."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST = 1 << 16
"""Bytes of a request before its body."""

PATIENCE = 20.0
"""Seconds in which they must have come."""


class BoundedHttp(HttpToolsProtocol):
    """A connection, which is closed when the head of a request is too large, or too late."""

    _size: int | None = 0  # of the head so far; None while a body is received
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def _wait(self) -> None:
        self._stop_waiting()
        self._late = asyncio.get_running_loop().call_later(PATIENCE, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def data_received(self, data: bytes) -> None:
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
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._size = 0
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)
