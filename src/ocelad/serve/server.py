"""A service from its start to its end: a locked folder, items, a port, signals."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from ..files import write_text
from ..folder_lock import LOCK, lock_folder
from . import log, salvage
from .app import application
from .bounded_http import BoundedHttp
from .guard import Keys, allowed_hosts, is_local, read_token
from .items import StoredItems, source_digest
from .service import Service, Settings

SETTINGS = "settings.json"
PORTS = range(8350, 8450)
"""Tried one after the other, if none is given."""

GRACE = 2
"""Seconds in which requests under way may end after SIGTERM."""

PATIENCE = 2.5
"""Seconds after which it is said what takes so long."""


@dataclass(frozen=True)
class Options:
    """What the command was given; None means as last time, or the default."""

    table: str | None = None
    data: str | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    token_file: str | None = None
    allow_host: tuple[str, ...] = ()
    id: str | None = None
    features: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    points: str | None = None
    text: str | None = None
    title: str | None = None
    aim: str | None = None
    repeats: int | None = None
    rate: float = 10_000.0
    open: bool = False
    salvage: bool = False

    @property
    def folder(self) -> Path:
        """Where all is kept."""
        if self.data is not None:
            return Path(self.data)
        source = self.table or self.points
        if source is None:
            raise ValueError("a table of items is needed, or --data with the folder of an earlier service")
        path = Path(source)
        return path.parent / (path.resolve().name.removesuffix(".gz").partition(".")[0] + ".serve")


def serve(options: Options) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    if not is_local(options.host) and options.token_file is None:
        raise ValueError(
            f"--host {options.host} can be reached from other machines: --token-file must name a file with a token"
        )
    for name, given in (
        ("TABLE", options.table),
        ("--points", options.points),
        ("--token-file", options.token_file),
    ):
        if given is not None and not Path(given).exists():
            raise ValueError(f"{name}: there is no {given}")
    keys = Keys(None if options.token_file is None else read_token(Path(options.token_file)))
    folder, new = options.folder, not options.folder.exists()
    if not new and not folder.is_dir():
        raise ValueError(f"--data must be a folder, and {folder} is a file")
    try:
        with lock_folder(folder):
            salvage.finish_salvage(folder)
            if options.salvage:
                count, aside = salvage.salvage(folder)
                print(f"{count} entries are in the new log; the old one is {aside}")
            asyncio.run(_serve(options, keys))
    except PermissionError as error:
        raise ValueError(f"{error.filename}: {error.strerror}: --data names another folder") from None
    finally:
        if new:
            _leave_nothing(folder)


def _leave_nothing(folder: Path) -> None:
    """Remove a folder that was made for a service that could not begin."""
    if {path.name for path in folder.glob("*")} <= {LOCK}:
        with suppress(OSError):
            (folder / LOCK).unlink(missing_ok=True)
            folder.rmdir()


async def _serve(options: Options, keys: Keys) -> None:
    sockets = [_bind(options)]
    new, settings = not log.exists(options.folder), _settings(options)
    service = Service(settings)
    service.launch()
    server: Server | None = None
    try:
        if options.table or options.points:
            await _import_items(options)
        await service.begin()
        write_text(options.folder / SETTINGS, json.dumps(settings.kept(), sort_keys=True) + "\n")
        if new and service.items is None:
            print(f"{options.folder} is new, and has no items: programs can send comparisons.", flush=True)
        hosts = allowed_hosts(options.host, options.allow_host)
        config = uvicorn.Config(
            application(service, keys, hosts, options.rate),
            log_level="warning",
            access_log=False,
            lifespan="off",
            http=BoundedHttp,
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=GRACE,
            timeout_keep_alive=65,
            backlog=1024,
        )
        server = Server(config, service)
        watch = asyncio.create_task(_watch(server, service, options, sockets[0], keys))
        for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn delivers them once more, when it has ended
            signal.signal(number, lambda *_: None)
        await server.serve(sockets=sockets)
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
    finally:
        await service.close()
        for bound in sockets:
            bound.close()
    for child in (service.writer, service.learner):
        if child.failed.done():
            raise ValueError(child.failed.result())


class Server(uvicorn.Server):
    """Lets event streams end at once when a signal comes, so that they do not hold up the others."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.service.closing:
            print("Stopping ...", flush=True)
        self.service.closing = True
        for stream in self.service.streams.values():
            stream.wake()
        super().handle_exit(sig, frame)


async def _watch(server: Server, service: Service, options: Options, bound: socket.socket, keys: Keys) -> None:
    """Say where it is, and what takes long; end with a process that cannot go on."""
    while not server.started:
        await asyncio.sleep(0.01)
    host, port = bound.getsockname()[:2]
    shown = "127.0.0.1" if host == "0.0.0.0" else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/"
    if keys.token is not None:
        address += f"login?code={keys.new_code()}"
    what = "comparisons" if service.items is None else f"{len(service.items.ids)} items"
    print(f"{service.settings.title}: {what} at {address}", flush=True)
    print(f"Everything is kept in {service.settings.data}. Ctrl-C stops; nothing is lost.", flush=True)
    if options.open and sys.stdout.isatty():
        asyncio.get_running_loop().run_in_executor(None, webbrowser.open, address)
    gone = asyncio.wait([service.writer.failed, service.learner.failed], return_when=asyncio.FIRST_COMPLETED)
    failed = asyncio.ensure_future(gone)
    try:
        ready = asyncio.ensure_future(service.learner.ready.wait())
        await asyncio.wait([ready, failed], timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done() and not failed.done():
            print("Compiling, or learning the log: questions come in a moment ...", flush=True)
            await asyncio.wait([ready, failed], return_when=asyncio.FIRST_COMPLETED)
            if not failed.done():
                print("Ready.", flush=True)
        await failed
        server.should_exit = True
    finally:
        ready.cancel()
        failed.cancel()


def _bind(options: Options) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    failure: OSError | None = None
    for port in PORTS if options.port is None else [options.port]:
        # by its protocol asyncio knows that it must not wait to fill packets, which would take 40 ms
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if sys.platform != "win32":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((options.host, port))
        except OSError as error:
            bound.close()
            failure = error
            continue
        bound.set_inheritable(False)
        return bound
    hint = "" if options.port is None else "; without --port, one that is free is found"
    raise OSError(f"--host {options.host}, --port {options.port or PORTS[-1]}: {failure}{hint}")


def _settings(options: Options) -> Settings:
    """As given, as last time, or the defaults."""
    path = options.folder / SETTINGS
    known: dict[str, Any] = {}
    if path.exists():
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            Settings(options.folder, **known)
        except (ValueError, TypeError):
            raise ValueError(f"{path}: it is damaged: remove it, and give the options again") from None
    name = options.table or options.points
    given = {"title": options.title, "aim": options.aim, "repeats": options.repeats}
    known |= {name: value for name, value in given.items() if value is not None}
    known.setdefault("title", Path(name).name if name else "ocelad")
    return Settings(options.folder, **known)


async def _import_items(options: Options) -> None:
    """Read the items in a process of their own, unless they are those of last time: that takes large libraries."""
    given: dict[str, Any] = {
        "path": options.table,
        "id": options.id,
        "features": list(options.features),
        "show": list(options.show),
    }
    given |= {"points": options.points, "text": options.text}
    digest = source_digest(**given)
    if StoredItems.exists(options.folder) and StoredItems.read(options.folder).digest == digest:
        return
    command = [sys.executable, "-m", "ocelad.serve.import_items", str(options.folder), json.dumps(given)]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, words = await process.communicate()
    if process.returncode:
        said = words.decode(errors="replace").strip().rpartition("\n")[2]
        raise ValueError(said or f"the items could not be read (the process ended with {process.returncode})")
    sys.stderr.write(words.decode())
