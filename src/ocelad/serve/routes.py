"""The addresses of a stream: comparisons, questions, scores, pictures and events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Body, Path, Query, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ..protocols import Array
from . import exports, log, models
from .log import Entry, Refusal
from .problems import documented
from .service import WATCHERS, Service, points_of
from .strict_json import StrictRoute

BEAT = 15.0
"""Seconds after which an event stream shows that it is alive."""

PAUSE = 0.25
"""Seconds between two events at least."""

Name = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples=["default"], description="The name of the stream."
    ),
]
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
Added = models.Added | list[models.Added]

router = APIRouter(prefix="/v1/streams/{name}", responses=documented(409), route_class=StrictRoute)


def service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


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
    response_model=models.Added,
    responses={200: {"model": models.Added, "description": KNOWN}},
)
async def add_skip(name: Name, body: models.Skip, request: Request) -> Response:
    """Say that someone is unsure about two items: not learned, and asked about again later."""
    _check_items(service(request), body)
    entry = Entry(0, "", body.request_id, "skip", body.a, body.b, by=body.by or None)
    return await _add(service(request), name, [entry], False)


@router.post(
    "/changes",
    status_code=201,
    response_model=models.Added,
    responses={200: {"model": models.Added, "description": KNOWN}},
)
async def add_change(name: Name, body: models.Change, request: Request) -> Response:
    """Say that someone judges differently from now on: earlier answers imply nothing any more."""
    return await _add(service(request), name, [Entry(0, "", body.request_id, "change", by=body.by or None)], False)


@router.delete("/comparisons/{id}", response_model=models.Undone)
async def undo(name: Name, id: Number, request: Request, by: By = None) -> Any:
    """Take an entry back: all is then as if it had never been. The log keeps both it and this."""
    number, known = await service(request).undo(name, id, by or None)
    return {"id": number, "undoes": id, "known": known}


@router.get("/comparisons", response_model=models.LogPage)
async def get_log(
    name: Name,
    request: Request,
    after: Annotated[int, Query(ge=0, le=2**53, description="Entries after this number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> Response:
    """The log of a stream, in order."""
    of = service(request)
    of.stream(name)
    entries = await of.reading(log.read, name, after, limit)
    gone = await of.reading(log.undone, name, after)
    found = [_shown(entry, entry.id in gone) for entry in entries]
    return JSONResponse({"comparisons": found, "next": entries[-1].id if len(entries) == limit else None})


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


@router.get("/next", response_model=models.Questions)
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


# The metric


@router.post("/score", response_model=models.OneScore | models.Scores)
async def score(name: Name, body: Annotated[models.Pairs, Body()], request: Request) -> Response:
    """How far apart two items or points are, and how likely it is that they are similar; one pair, or a list."""
    of = service(request)
    estimate = await of.estimate(name)
    pairs = body if isinstance(body, list) else [body]
    where = [f"{k}." if isinstance(body, list) else "" for k in range(len(pairs))]
    u = np.array([_difference(of, pair, estimate.n, at) for pair, at in zip(pairs, where, strict=True)])
    of.counts["scores"] += len(pairs)
    d, p, similar = (_finite(column).tolist() for column in estimate.scores(u))
    scores = [{"distance": d[k], "probability": p[k], "similar": similar[k]} for k in range(len(pairs))]
    about = {"t": estimate.t, "version": estimate.version, "threshold": estimate.threshold}
    return JSONResponse({**about, "scores": scores} if isinstance(body, list) else {**about, **scores[0]})


def _difference(of: Service, pair: models.ByIds | models.ByFeatures, n: int, where: str) -> Array:
    if isinstance(pair, models.ByIds):
        return of.point(pair.a, f"{where}a") - of.point(pair.b, f"{where}b")
    return _wide(pair.x, n, f"{where}x") - _wide(pair.z, n, f"{where}z")


def _wide(point: list[float], n: int, field: str) -> Array:
    if len(point) != n:
        raise Refusal(422, f"{field}: it must have {n} features, got {len(point)}", field)
    return np.array(point)


def _finite(found: Array) -> Array:
    """What was computed, if JSON can say it: a metric learned of tiny numbers can make large ones overflow."""
    if not np.isfinite(found).all():
        raise Refusal(422, "these points are too far apart in the metric of this stream to be computed with")
    return found


@router.post("/embed", response_model=models.Coordinates)
async def embed(name: Name, body: models.Embedding, request: Request) -> Response:
    """Coordinates in which the learned distance is Euclidean, the most important first."""
    of = service(request)
    if (body.items is None) == (body.points is None):
        raise Refusal(422, "items: either items or points must be given", "items")
    estimate = await of.estimate(name)
    if body.items is not None:
        rows = [of.point(id, f"items.{k}") for k, id in enumerate(body.items)]
    else:
        rows = [_wide(point, estimate.n, f"points.{k}") for k, point in enumerate(body.points or [])]
    X = np.array(rows).reshape(len(rows), estimate.n)
    found = _finite(await asyncio.to_thread(estimate.transform, X, body.dimensions)).tolist()
    return JSONResponse({"t": estimate.t, "version": estimate.version, "coordinates": found})


@router.post("/neighbors", response_model=models.Neighbors)
async def neighbors(name: Name, body: models.Neighborhood, request: Request) -> Response:
    """The nearest items of an item (without itself), or of a point."""
    of = service(request)
    if (body.item is None) == (body.point is None):
        raise Refusal(422, "item: either an item or a point must be given", "item")
    estimate = await of.estimate(name)
    if of.items is None:
        raise Refusal(409, "this service has no items")
    items = of.items
    own = None if body.item is None else of.number(body.item, "item")
    point = _wide(body.point, estimate.n, "point") if body.point is not None else of.point(body.item or "", "item")
    nearest, far = await asyncio.to_thread(estimate.neighbors, items.points, point, body.k + (own is not None))
    both = zip(nearest, _finite(far).tolist(), strict=True)
    found = [{"id": items.ids[i], "distance": d} for i, d in both if i != own]
    return JSONResponse({"t": estimate.t, "version": estimate.version, "neighbors": found[: body.k]})


@router.get("/metric", response_model=models.MetricOut)
async def metric(name: Name, request: Request) -> Response:
    """The metric as it is now: the linear map of its embedding, and what distances mean."""
    estimate = await service(request).estimate(name)
    said = {
        "t": estimate.t,
        "version": estimate.version,
        "features": estimate.features,
        "components": estimate.L.tolist(),
        "threshold": estimate.threshold,
        "decision": estimate.decision._asdict(),
    }
    return JSONResponse(said)


@router.get("/map", response_model=models.Map)
async def get_map(
    name: Name,
    request: Request,
    limit: Annotated[int, Query(ge=1, le=5000)] = 2000,
    color: Annotated[str | None, Query(max_length=200, description="A column of the items.")] = None,
) -> Response:
    """All items in two dimensions, turned so that the picture does not flip from one to the next."""
    of = service(request)
    stream = of.open(name)
    if of.items is None:
        raise Refusal(409, "this service has no items")
    items = of.items
    if color is not None and color not in items.columns:
        raise Refusal(422, f"color: there is no column {color[:80]!r}", "color")
    try:
        estimate, plane = await of.plane(name)
    except np.linalg.LinAlgError:
        raise Refusal(409, "the items are too far apart in the metric of this stream to be drawn") from None
    count = min(limit, len(plane))
    groups = (await of.ask(stream, "groups")).message["groups"] if stream.last else []
    number = {item: k for k, group in enumerate(groups) for item in group if len(group) > 1}
    said = {
        "t": estimate.t if estimate else 0,
        "version": estimate.version if estimate else 0,
        "ids": items.ids[:count],
        "x": _finite(plane[:count, 0]).round(4).tolist(),
        "y": _finite(plane[:count, 1]).round(4).tolist(),
        "labels": [items.label(k) for k in range(count)],
        "group": [number.get(k, -1) for k in range(count)],
        "values": None if color is None else items.column(color)[:count],
    }
    return JSONResponse(said)


# Where it stands


@router.get("/state", response_model=models.State)
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
