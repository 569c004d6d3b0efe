"""A client of the service: `Client` sends comparisons that are taken once, however often they have to be sent."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Self

try:
    import httpx
except ImportError as error:
    raise ImportError('ocelad.serve.Client needs httpx: pip install "ocelad[serve]"') from error

AGAIN = (429, 503)
"""Answers after which it is worth trying again."""

Pair = tuple[str, str] | tuple[Sequence[float], Sequence[float]]


class ServiceError(Exception):
    """What the service said was wrong: its status, and the field that it is about."""

    def __init__(self, status: int, detail: str, field: str | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field = status, detail, field


class Client:
    """Talks to ``ocelad serve``.

    Parameters
    ----------
    url
        Where the service is.
    stream
        The name of the stream.
    token
        If the service needs one.
    by
        Who answers.
    timeout
        Seconds to wait for an answer.
    patience
        Seconds for which what fails, or is refused for now, is sent again.

    Examples
    --------
    With a service at its address, ``client.compare("owl 7", "cat 2", -1)`` says that two items are different.
    Here nobody listens:

    >>> with Client("http://127.0.0.1:9", patience=0) as client:  # doctest: +ELLIPSIS
    ...     client.compare("owl 7", "cat 2", -1)
    Traceback (most recent call last):
    ...
    httpx.ConnectError: ...
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8350",
        stream: str = "default",
        *,
        token: str | None = None,
        by: str | None = None,
        timeout: float = 10.0,
        patience: float = 10.0,
    ) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.by, self.patience = by, patience
        self._http = httpx.Client(
            base_url=f"{url.rstrip('/')}/v1/streams/{stream}/", headers=headers, timeout=timeout
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # Saying

    def compare(self, a: Any, b: Any, y: int, request_id: str | None = None) -> int:
        """Two items, by their ids, or two points are similar (1) or different (-1). Returns the entry's number.

        It is on the disk of the service when this returns.
        """
        return int(self._send("POST", "comparisons", self._comparison(a, b, y, request_id))["id"])

    def compare_many(self, comparisons: Sequence[tuple[Any, Any, int]]) -> list[int]:
        """Several comparisons (a, b, y), all of them or none."""
        body = [self._comparison(a, b, y, None) for a, b, y in comparisons]
        return [int(added["id"]) for added in self._send("POST", "comparisons", body)]

    def skip(self, a: str, b: str) -> int:
        """Unsure about two items: they are asked about again later."""
        return int(self._send("POST", "skips", self._said({"a": a, "b": b}))["id"])

    def judge_differently(self) -> int:
        """From here on, someone judges differently."""
        return int(self._send("POST", "changes", self._said({}))["id"])

    def undo(self, id: int) -> int:
        """Take an entry back."""
        who = {} if self.by is None else {"by": self.by}
        return int(self._send("DELETE", f"comparisons/{int(id)}", params=who)["id"])

    def _comparison(self, a: Any, b: Any, y: int, request_id: str | None) -> dict[str, Any]:
        return self._said({**_pair(a, b), "y": int(y)}, request_id)

    def _said(self, body: dict[str, Any], request_id: str | None = None) -> dict[str, Any]:
        who = {} if self.by is None else {"by": self.by}
        return {"request_id": request_id or uuid.uuid4().hex, **body, **who}

    # Asking

    def next(self, count: int = 1, aim: str | None = None) -> list[tuple[str, str]]:
        """Ids of the next pairs to ask about; none if all is known."""
        asked = {"count": count, "by": self.by, "aim": aim}
        found = self._send(
            "GET", "next", params={name: value for name, value in asked.items() if value is not None}
        )
        return [(question["a"]["id"], question["b"]["id"]) for question in found["questions"]]

    def score(self, a: Any, b: Any) -> dict[str, Any]:
        """Distance, probability that the two are similar, and whether they are."""
        return self._send("POST", "score", _pair(a, b))

    def score_many(self, pairs: Sequence[Pair]) -> dict[str, Any]:
        """Of several pairs: ``scores``, and the metric's t and threshold."""
        return self._send("POST", "score", [_pair(a, b) for a, b in pairs])

    def embed(self, items: Any = None, *, points: Any = None, dimensions: int | None = None) -> list[list[float]]:
        """Coordinates in which the learned distance is Euclidean, of items by their ids, or of points."""
        body = {"items": _list(items), "points": _list(points), "dimensions": dimensions}
        found = self._send("POST", "embed", {name: value for name, value in body.items() if value is not None})
        return found["coordinates"]

    def neighbors(self, item: str | None = None, *, point: Any = None, k: int = 5) -> list[tuple[str, float]]:
        """The nearest items, and how far they are."""
        body = {"item": item} if point is None else {"point": _list(point)}
        found = self._send("POST", "neighbors", {**body, "k": k})
        return [(neighbor["id"], neighbor["distance"]) for neighbor in found["neighbors"]]

    def metric(self) -> dict[str, Any]:
        """Components, threshold and version of the metric."""
        return self._send("GET", "metric")

    def state(self) -> dict[str, Any]:
        """All that the page shows."""
        return self._send("GET", "state")

    def log(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """The entries of the log after a number, in order."""
        start: int | None = after
        while start is not None:
            page = self._send("GET", "comparisons", params={"after": start, "limit": 1000})
            yield from page["comparisons"]
            start = page["next"]

    def export(self, file: str) -> bytes:
        """``answers.csv``, ``items.csv``, ``groups.csv`` or ``tracker.ocelad`` (for `ocelad.loads`)."""
        return self._try("GET", f"export/{file}").content

    # HTTP

    def _send(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        return self._try(method, path, body, **more).json()

    def _try(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """Send a request until it is answered: with the same request_id, so that it is taken once."""
        end, wait = time.monotonic() + self.patience, 0.05
        while True:
            last = time.monotonic() >= end
            try:
                answer = self._http.request(method, path, json=body, **more)
            except httpx.TransportError:
                if last:
                    raise
            else:
                if answer.status_code not in AGAIN or last:
                    return _checked(answer)
            time.sleep(wait)
            wait = min(2.0 * wait, 1.0)


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.is_success:
        return answer
    try:
        said = answer.json()
    except ValueError:
        said = {"detail": answer.text[:200]}
    raise ServiceError(answer.status_code, said.get("detail", ""), said.get("field"))


def _pair(a: Any, b: Any) -> dict[str, Any]:
    if isinstance(a, str) and isinstance(b, str):
        return {"a": a, "b": b}
    return {"x": _list(a), "z": _list(b)}


def _list(values: Any) -> Any:
    return values.tolist() if hasattr(values, "tolist") else None if values is None else list(values)
