"""What all addresses of a stream have in common: its name in the path, and how bodies and errors are treated."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request

from .problems import documented
from .service import Service
from .strict_json import StrictRoute

Name = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples=["default"], description="The name of the stream."
    ),
]


def stream_router() -> APIRouter:
    """For addresses below /v1/streams/{name}."""
    return APIRouter(prefix="/v1/streams/{name}", responses=documented(409), route_class=StrictRoute)


def service(request: Request) -> Service:
    """The service that a request is for."""
    found: Service = request.app.state.service
    return found
