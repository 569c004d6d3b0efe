"""Bodies as JSON that can mean one thing alone: UTF-8, no name twice in an object, numbers of a sane length.

What is wrong with a body is told in one way: 422, and where. Python would take the last of two equal names, and
any of several encodings; whoever looks at the same body on its way here may not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

NAMES = 32
"""Names in an object, of which all that are known have fewer."""


class StrictRoute(APIRoute):
    """An address whose bodies are read so."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return strict


class _StrictRequest(Request):
    async def json(self) -> Any:
        return parsed(await self.body())


def parsed(body: bytes) -> Any:
    """What a body says.

    >>> parsed(b'{"y": 1, "y": -1}')
    Traceback (most recent call last):
    ...
    json.decoder.JSONDecodeError: 'y' is there twice: line 1 column 1 (char 0)
    """
    try:
        return json.loads(body.decode(), object_pairs_hook=_object)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise json.JSONDecodeError("it is nested too deeply", "", 0) from None
    except UnicodeDecodeError as error:
        raise json.JSONDecodeError("it is not UTF-8", "", error.start) from None
    except ValueError as error:  # a name twice, or an integer of thousands of digits
        raise json.JSONDecodeError(str(error), "", 0) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > NAMES:
        raise ValueError(f"an object has {len(pairs)} names, more than {NAMES}")
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"{twice[:80]!r} is there twice")
    return found
