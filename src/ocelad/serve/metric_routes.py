"""The addresses of a stream at which its metric is used: scores, coordinates, neighbours and the picture."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import numpy as np
from fastapi import Body, Query, Request
from numpy.typing import NDArray
from starlette.responses import JSONResponse, Response

from ..protocols import Array
from . import answer_models, models
from .log import Refusal
from .service import Service
from .streams import Name, service, stream_router

router = stream_router()


@router.post("/score", response_model=answer_models.OneScore | answer_models.Scores)
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


def _finite(found: NDArray[Any]) -> NDArray[Any]:
    """What was computed, if JSON can say it: a metric learned of tiny numbers can make large ones overflow."""
    if not np.isfinite(found).all():
        raise Refusal(422, "these points are too far apart in the metric of this stream to be computed with")
    return found


@router.post("/embed", response_model=answer_models.Coordinates)
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


@router.post("/neighbors", response_model=answer_models.Neighbors)
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


@router.get("/metric", response_model=answer_models.MetricOut)
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


@router.get("/map", response_model=answer_models.Map)
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
