"""The application: the addresses of streams, the page and its files, health and figures for operators."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from .. import __version__
from . import answer_models, metric_routes, problems, routes
from .guard import Guard, Keys
from .image_folder import IMAGES
from .log import Refusal
from .problems import documented
from .prometheus import Figures
from .service import Service
from .streams import service

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    "": "text/plain; charset=utf-8",
}

router = APIRouter(responses=documented())


@router.get("/v1/streams", response_model=answer_models.Streams)
async def get_streams(request: Request) -> Any:
    """All streams."""
    streams = [stream for stream in service(request).streams.values() if stream.last or stream.name == "default"]
    return {"streams": [{"name": stream.name, "last": stream.last} for stream in streams]}


@router.get("/v1/info", response_model=answer_models.Info)
async def get_info(request: Request) -> Any:
    """What this service is about."""
    of, keys = service(request), request.app.state.keys
    items, settings = of.items, of.settings
    return {
        "version": __version__,
        "title": settings.title,
        "items": 0 if items is None else len(items.ids),
        "columns": [] if items is None else list(items.columns),
        "features": [] if items is None else list(items.features),
        "kind": "none" if items is None else items.kind,
        "aim": settings.aim,
        "repeats": settings.repeats,
        "auth": keys.token is not None,
    }


@router.post("/v1/links", response_model=answer_models.Link, responses=documented(409))
async def add_link(request: Request) -> Any:
    """A link that lets one more person in, once."""
    keys: Keys = request.app.state.keys
    if keys.token is None:
        raise Refusal(409, "this service needs no link: it has no token")
    return {"link": f"{request.base_url}login?code={keys.new_code()}"}


@router.get("/healthz", response_model=answer_models.Health)
async def health() -> Any:
    """The service is running."""
    return {"status": "ok"}


@router.get("/readyz", response_model=answer_models.Health)
async def readiness(request: Request) -> Any:
    """The service takes comparisons, and learns them."""
    if not service(request).ready:
        raise Refusal(503, "the service is not ready yet")
    return {"status": "ready"}


@router.get("/metrics", response_class=PlainTextResponse)
async def figures(request: Request) -> Any:
    """Figures for Prometheus."""
    return PlainTextResponse(
        request.app.state.figures.text(service(request)), media_type="text/plain; version=0.0.4"
    )


@router.get("/", include_in_schema=False)
async def page() -> Response:
    return await page_file("index.html")


@router.get("/page/{path:path}", include_in_schema=False)
async def page_file(path: str) -> Response:
    """A file of the page: only those that are there, by their names."""
    if path not in _page_files():
        raise Refusal(404, "there is no such file")
    kind = TYPES["." + path.rpartition(".")[2] if "." in path else ""]
    return Response(_page_files()[path], media_type=kind, headers={"Cache-Control": "no-cache"})


_files: dict[str, bytes] = {}


def _page_files() -> dict[str, bytes]:
    if not _files:
        folder = files(__package__) / "page"
        for found in folder.iterdir():
            for file in [found] if found.is_file() else found.iterdir():
                name = file.name if found.is_file() else f"{found.name}/{file.name}"
                if file.name.endswith((".html", ".js", ".css", ".svg")) or "." not in file.name:
                    _files[name] = file.read_bytes()
    return _files


@router.get("/images/{number}", include_in_schema=False)
async def image(number: Annotated[int, Path(ge=0, le=2**31)], request: Request) -> Response:
    """The image of an item, by its number."""
    items = service(request).items
    if items is None or items.images is None or number >= len(items.images):
        raise Refusal(404, "there is no such image")
    try:
        path = items.image_path(number)
    except (ValueError, OSError):
        raise Refusal(404, "there is no such image") from None
    kind = IMAGES.get(path.suffix.lower())
    if kind is None:
        raise Refusal(404, "there is no such image")
    return FileResponse(path, media_type=kind, headers={"Cache-Control": "private, max-age=3600"})


def application(of: Service, keys: Keys, hosts: set[str] | None = None, rate: float = 10_000.0) -> Any:
    """The application of a service, guarded."""
    app = FastAPI(
        title="ocelad",
        version=__version__,
        description="Comparisons in, a metric that follows them out.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service, app.state.keys, app.state.figures = of, keys, Figures()
    problems.install(app)
    app.include_router(routes.router)
    app.include_router(metric_routes.router)
    app.include_router(router)
    app.add_middleware(Counted, figures=app.state.figures)
    return Guard(app, keys, hosts, rate)


class Counted:
    """Counts requests and their times, by operation and status."""

    def __init__(self, app: Any, figures: Figures) -> None:
        self.app, self.figures = app, figures

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        with self.figures.timed(scope) as timed:

            async def watch(message: Any) -> None:
                if message["type"] == "http.response.start":
                    timed(message["status"])
                await send(message)

            await self.app(scope, receive, watch)
