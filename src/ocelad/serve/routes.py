"""The addresses of a stream at which something is said, asked, watched or exported; its metric has its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Body, Path, Query, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from . import answer_models, exports, log, models
from .log import Entry, Refusal
from .service import WATCHERS, Service, points_of
from .streams import Name, service, stream_router

BEAT = 15.0
"""Seconds after which an event stream shows that it is alive."""

PAGE = 1 << 19
"""Bytes of points in a page of the log: all else would wait while more of them are written as text."""

PAUSE = 0.25
"""Seconds between two events at least."""

Number = Annotated[int, Path(ge=1, le=2**53, description="The number of an entry.")]
By = Annotated[
    str | None, Query(max_length=64, pattern=r"^[^\x00-\x1f\x7f]*$", description="Who asks, or answers.")
]

KNOWN = "It was known already."
EVENTS = {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Server-sent events."}
BYTES = {"type": "string", "format": "binary"}
FILE = {
    "content": {"text/csv": {"schema": {"type": "string"}}, "application/octet-stream": {"schema": BYTES}},
    "description": "The file.",
}
Added = answer_models.Added | list[answer_models.Added]

router = stream_router()


# What is said


@router.post(
    "/comparisons", status_code=201, response_model=Added, responses={200: {"model": Added, "description": KNOWN}}
)
async def add_comparisons(name: Name, body: Annotated[models.Comparisons, Body()], request: Request) -> Response:
    """Say that two items, or two points, are similar or different: one comparison, or a list of up to 1000.

    It is answered when all of it is on the disk. A request_id that was used before is not taken a second time.
    """
    said = body if isinstance(body, list) else [body]
    entries = [
        _comparison(service(request), each, f"{k}." if isinstance(body, list) else "")
        for k, each in enumerate(said)
    ]
    return await _add(service(request), name, entries, isinstance(body, list))


def _comparison(of: Service, said: models.ComparisonOfItems | models.ComparisonOfPoints, where: str) -> Entry:
    if isinstance(said, models.ComparisonOfPoints):
        x, z = points_of(said.x), points_of(said.z)
        return Entry(0, "", said.request_id, "comparison", x=x, z=z, y=said.y, by=said.by or None)
    _check_items(of, said, where)
    return Entry(0, "", said.request_id, "comparison", said.a, said.b, y=said.y, by=said.by or None)


def _check_items(of: Service, said: models.ByIds, where: str = "") -> None:
    of.number(said.a, f"{where}a")
    of.number(said.b, f"{where}b")
    if said.a == said.b:
        raise Refusal(422, f"{where}b: it must be another item than a", f"{where}b")


async def _add(of: Service, name: str, entries: list[Entry], several: bool) -> Response:
    added = await of.add(name, [entry._replace(stream=name) for entry in entries])
    answers = [
        {"id": number, "request_id": entry.request, "known": known}
        for entry, (number, known) in zip(entries, added, strict=True)
    ]
    new = not all(known for _, known in added)
    return JSONResponse(answers if several else answers[0], 201 if new else 200)


@router.post(
    "/skips",
    status_code=201,
    response_model=answer_models.Added,
    responses={200: {"model": answer_models.Added, "description": KNOWN}},
)
async def add_skip(name: Name, body: models.Skip, request: Request) -> Response:
    """Say that someone is unsure about two items: not learned, and asked about again later."""
    _check_items(service(request), body)
    entry = Entry(0, "", body.request_id, "skip", body.a, body.b, by=body.by or None)
    return await _add(service(request), name, [entry], False)


@router.post(
    "/changes",
    status_code=201,
    response_model=answer_models.Added,
    responses={200: {"model": answer_models.Added, "description": KNOWN}},
)
async def add_change(name: Name, body: models.Change, request: Request) -> Response:
    """Say that someone judges differently from now on: earlier answers imply nothing any more."""
    return await _add(service(request), name, [Entry(0, "", body.request_id, "change", by=body.by or None)], False)


@router.delete("/comparisons/{id}", response_model=answer_models.Undone)
async def undo(name: Name, id: Number, request: Request, by: By = None) -> Any:
    """Take an entry back: all is then as if it had never been. The log keeps both it and this."""
    number, known = await service(request).undo(name, id, by or None)
    return {"id": number, "undoes": id, "known": known}


@router.get("/comparisons", response_model=answer_models.LogPage)
async def get_log(
    name: Name,
    request: Request,
    after: Annotated[int, Query(ge=0, le=2**53, description="Entries after this number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> Response:
    """The log of a stream, in order; a page may have fewer entries than the limit if they have many features."""
    of = service(request)
    of.stream(name)
    entries = await of.reading(log.read, name, after, limit)
    sizes = np.cumsum([len(entry.x or b"") + len(entry.z or b"") for entry in entries])
    page = entries[: max(1, int(np.searchsorted(sizes, PAGE)))]
    more = len(page) < len(entries) or len(entries) == limit
    gone = await of.reading(log.undone, name, after)
    found = [_shown(entry, entry.id in gone) for entry in page]
    return JSONResponse({"comparisons": found, "next": page[-1].id if more else None})


def _shown(entry: Entry, undone: bool) -> dict[str, Any]:
    points = {
        name: None if blob is None else np.frombuffer(blob).tolist()
        for name, blob in (("x", entry.x), ("z", entry.z))
    }
    return {
        "id": entry.id,
        "kind": entry.kind,
        "request_id": entry.request,
        "a": entry.a,
        "b": entry.b,
        **points,
        "y": entry.y,
        "by": entry.by,
        "at": datetime.fromtimestamp(entry.at, UTC).isoformat(),
        "undone": undone,
        "undoes": entry.undoes,
    }


# Questions


@router.get("/next", response_model=answer_models.Questions)
async def get_next(
    name: Name,
    request: Request,
    by: By = None,
    aim: Annotated[
        Literal["metric", "groups"] | None, Query(description="Learn the metric, or find the groups.")
    ] = None,
    count: Annotated[int, Query(ge=1, le=4, description="How many questions.")] = 1,
) -> Any:
    """What to ask next: pairs whose answers teach most. They are kept for this person for ten minutes."""
    of = service(request)
    stream = of.open(name)
    frame = await of.ask(stream, "next", by=by or "", aim=aim or of.settings.aim, count=count)
    assert of.items is not None
    pairs = frame.message["pairs"]
    questions = [{"a": of.items.item(i), "b": of.items.item(j)} for i, j in pairs]
    return JSONResponse({"questions": questions, "done": not pairs})


# Where it stands


@router.get("/state", response_model=answer_models.State)
async def get_state(name: Name, request: Request) -> Response:
    """How far a stream is, how right it was, which experts and features count, and who said what."""
    return JSONResponse(await service(request).state(name))


@router.get("/events", response_class=Response, responses={200: EVENTS})
async def events(name: Name, request: Request) -> Response:
    """The state of a stream, whenever it has changed (server-sent events)."""
    of = service(request)
    if sum(len(stream.watchers) for stream in of.streams.values()) >= WATCHERS:
        raise Refusal(503, f"{WATCHERS} are watching already")
    of.open(name)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(of, name), media_type="text/event-stream", headers=headers)


async def _events(of: Service, name: str) -> AsyncIterator[str]:
    stream, changed = of.open(name), asyncio.Event()
    stream.watchers.add(changed)
    seen: tuple[int, int] | None = None
    try:
        changed.set()
        while not of.closing:
            try:
                await asyncio.wait_for(changed.wait(), BEAT)
            except TimeoutError:
                yield ": alive\n\n"
                continue
            changed.clear()
            try:
                state = await of.state(name)
            except Refusal:  # it is not ready yet, or has died: a moment later, then
                await asyncio.sleep(1.0)
                changed.set()
                continue
            if (state["version"], state["last"]) != seen:
                seen = state["version"], state["last"]
                yield f"event: state\nid: {state['version']}\ndata: {json.dumps(state)}\n\n"
            await asyncio.sleep(PAUSE)
    finally:
        stream.watchers.discard(changed)


# Export


@router.get("/export/{file}", response_class=Response, responses={200: FILE})
async def export(
    name: Name,
    file: Literal["answers.csv", "items.csv", "groups.csv", "tracker.ocelad"],
    request: Request,
) -> Response:
    """The answers (which `ocelad track` takes), the items, the groups, or the tracker (for `ocelad.load`)."""
    of = service(request)
    stream = of.stream(name)
    if file == "tracker.ocelad":
        content = (await of.ask(stream, "tracker")).blobs[0]
    elif file == "answers.csv":
        content = await of.reading(exports.answers, name, of.items)
    elif of.items is None:
        raise Refusal(409, "this service has no items")
    elif file == "items.csv":
        content = await asyncio.to_thread(exports.items, of.items)
    else:
        content = exports.groups(of.items, (await of.ask(stream, "groups")).message["groups"])
    kind = "application/octet-stream" if file == "tracker.ocelad" else "text/csv; charset=utf-8"
    headers = {"Content-Disposition": f'attachment; filename="{file}"', "Cache-Control": "no-store"}
    return Response(content, headers=headers, media_type=kind)
