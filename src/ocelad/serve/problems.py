"""Errors as problem+json (RFC 9457), which name the field that they are about."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from .answer_models import Problem
from .log import Refusal
from .models import FORMS

TYPE = "application/problem+json"
RETRY = (429, 503)
LONGEST = 200
"""Characters of the name of a field, which may be of the client's invention."""


def problem(status: int, detail: str, field: str = "", errors: list[dict[str, str]] | None = None) -> Response:
    """An answer that says what is wrong."""
    said: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    said["detail"] = detail
    if field:
        said["field"] = field
    if errors:
        said["errors"] = errors
    headers = {"Retry-After": "1"} if status in RETRY else {}
    return Response(json.dumps(said), status, headers, TYPE)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What an operation may answer besides what it is for, for the OpenAPI document."""
    common = {400, 401, 403, 404, 405, 413, 415, 422, 429, 500, 503}
    content = {TYPE: {"schema": Problem.model_json_schema()}}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": content}
        for status in sorted(common | {*statuses})
    }


def install(app: FastAPI) -> None:
    """Let all errors of an application be answered so."""

    @app.exception_handler(Refusal)
    async def refused(_: Request, error: Refusal) -> Response:
        return problem(error.status, error.detail, error.field)

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Response:
        answer = problem(error.status_code, str(error.detail))
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        if (wrong := error.errors())[:1] and wrong[0]["type"] == "json_invalid":
            at, why = wrong[0]["loc"][-1], wrong[0]["ctx"]["error"]
            return problem(422, f"the body must be JSON: {why} (at character {at})")
        errors = [{"field": _field(each["loc"]), "detail": each["msg"]} for each in wrong[:20]]
        first = errors[0] if errors else {"field": "", "detail": "the request is not what was expected"}
        detail = f"{first['field']}: {first['detail']}" if first["field"] else first["detail"]
        return problem(422, detail, first["field"], errors)

    @app.exception_handler(Exception)
    async def unexpected(_: Request, error: Exception) -> Response:
        return problem(500, f"something went wrong in the service: {type(error).__name__}")


_PLACES = ("body", "query", "path", "header")


def _field(place: tuple[Any, ...]) -> str:
    """Where in the request, as a client would write it: ``0.y`` is y of the first of a list."""
    parts = [str(part) for k, part in enumerate(place) if part not in FORMS and (k or part not in _PLACES)]
    return ".".join(parts)[:LONGEST]
