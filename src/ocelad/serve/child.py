"""A child process as the front sees it: ask it something, and wait for its answer; started again if it dies."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from .frames import Frame, Frames, packed
from .log import Refusal

AT_ONCE = 1 << 18
GRACE = 1.5
"""Seconds in which it may write a snapshot at the end."""

TRIES, WITHIN = 5, 60.0
"""A child that dies so often, within so many seconds, is given up."""


class Child:
    """A process ``python -m module arguments``.

    ``on_message`` is told what it says without being asked, and ``on_start`` is called each time it is ready.
    """

    def __init__(
        self,
        module: str,
        arguments: list[str],
        on_message: Callable[[Frame], None] | None = None,
        on_start: Callable[[], None] | None = None,
    ) -> None:
        self.module, self.arguments = module, arguments
        self._on_message, self._on_start = on_message, on_start
        self._waiting: dict[int, asyncio.Future[Frame]] = {}
        self._numbers = count(1)
        self._process: asyncio.subprocess.Process | None = None
        self._started: list[float] = []
        self._closing = self._begun = False
        self.ready = asyncio.Event()
        self.failed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """What was wrong, once it has been given up."""
        self._task = asyncio.create_task(self._supervise())

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def waiting(self) -> int:
        """Requests that have not been answered yet."""
        return len(self._waiting)

    def begin(self) -> None:
        """Let it begin with its work; until then it only imports what it needs."""
        self._begun = True
        self._write(packed({"begin": True}))

    async def ask(self, message: dict[str, Any], blobs: list[bytes] | None = None) -> Frame:
        """Its answer. Raises `Refusal`."""
        if not self.ready.is_set():
            raise Refusal(503, "the service is not ready yet: try again in a moment")
        number = next(self._numbers)
        self._waiting[number] = answer = asyncio.get_running_loop().create_future()
        self._write(packed({**message, "n": number}, blobs))
        try:
            frame = await answer
        finally:
            self._waiting.pop(number, None)
        if "refused" in frame.message:
            raise Refusal(*frame.message["refused"])
        return frame

    def tell(self, message: dict[str, Any]) -> None:
        """Say something that needs no answer; whoever is not there yet will see it in the log."""
        if self.ready.is_set():
            self._write(packed(message))

    def _write(self, data: bytes) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(data)

    async def close(self) -> None:
        """Let it end, or end it: all that counts is in the log."""
        self._closing = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(asyncio.shield(self._task), GRACE)
        except TimeoutError:
            if self._process is not None:
                self._process.kill()
            await self._task

    async def _supervise(self) -> None:
        while not self._closing:
            self._started = [t for t in self._started if time.monotonic() - t < WITHIN] + [time.monotonic()]
            if len(self._started) > TRIES:
                self._give_up(f"the process of {self.module} died {TRIES} times within {WITHIN:.0f} seconds")
                return
            try:
                said = await self._run()
            except Exception as error:  # it could not be started, or what it said could not be taken
                print(f"{self.module}: {error!r}", file=sys.stderr, flush=True)
                said = ""
                await self._end()
            self.ready.clear()
            for answer in list(self._waiting.values()):
                if not answer.done():
                    answer.set_exception(Refusal(503, "a process of the service has died: send the request again"))
            if said:
                self._give_up(said)
                return

    async def _end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        await asyncio.sleep(0.5)

    def _give_up(self, why: str) -> None:
        if not self.failed.done():
            self.failed.set_result(why)

    async def _run(self) -> str:
        """Until it ends; why it could not begin, if it says so."""
        command = [sys.executable, "-m", self.module, *self.arguments]
        pipe = asyncio.subprocess.PIPE
        options: dict[str, Any] = {"env": {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}}
        self._process = process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, **options
        )
        assert process.stdout is not None
        frames, said = Frames(), ""
        if self._closing and process.stdin is not None:
            process.stdin.close()
        elif self._begun:
            self.begin()
        while data := await process.stdout.read(AT_ONCE):
            for frame in frames.feed(data):
                said = said or frame.message.get("failed", "")
                self._take(frame)
        await process.wait()
        return said

    def _take(self, frame: Frame) -> None:
        number = frame.message.get("n")
        if number is not None:
            answer = self._waiting.get(number)
            if answer is not None and not answer.done():
                answer.set_result(frame)
        elif "ready" in frame.message:
            self.ready.set()
            if self._on_start is not None:
                self._on_start()
            if self._on_message is not None:
                self._on_message(frame)
        elif self._on_message is not None:
            self._on_message(frame)
