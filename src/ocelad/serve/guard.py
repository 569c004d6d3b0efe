"""Who and what is let in: hosts, origins, tokens, kinds and sizes of bodies, and how many requests a second.

A page elsewhere can send requests to this machine from the reader's browser. It cannot choose their Origin and
Host, nor make them JSON without asking first: those are looked at before anything else.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fastapi import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .problems import problem

COOKIE = "ocelad"
DAYS = 30
LARGEST = 8 << 20
"""Bytes of a body."""

TOO_LARGE = f"the body must have at most {LARGEST} bytes"

CODES = 1000
"""One-time links that can be open at a time."""

OPEN = ("/healthz", "/readyz", "/login", "/page/favicon.svg", "/page/style.css")
"""What needs no token."""

ONCE = (b"host", b"origin", b"authorization", b"content-type", b"content-length", b"content-encoding")
"""Headers of which two would let one be checked and the other be used."""

_HEAD = (
    '<!doctype html><html lang="en"><title>ocelad</title><meta name="viewport" content="width=device-width">'
    '<link rel="icon" href="/page/favicon.svg"><link rel="stylesheet" href="/page/style.css">'
    '<header class="top"><h1><span class="mark">ocelad</span></h1></header>'
)
WELCOME = _HEAD + '<meta http-equiv="refresh" content="0; url=/"><p class="waiting"><a href="/">Go on</a></p>'
"""What a one-time link shows: after a redirect from another site, a browser would not send the cookie."""

SORRY = _HEAD + '<p class="waiting">You need a link to come in, which works once. Ask for one: {}.</p>'
"""What a person is shown who is not let in."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


class Keys:
    """The token of the service, the cookies that follow from it, and one-time links."""

    def __init__(self, token: str | None) -> None:
        self.token = token
        self.cookie = COOKIE if token is None else f"{COOKIE}-{self._digest('name')[:8]}"
        """Its name: services on other ports of the same host have the same cookies."""
        self._codes: dict[str, None] = {}

    def new_code(self) -> str:
        """A code that lets one person in, once."""
        code = secrets.token_urlsafe(24)
        self._codes[code] = None
        while len(self._codes) > CODES:
            del self._codes[next(iter(self._codes))]
        return code

    def redeem(self, code: str) -> str | None:
        """The cookie for a code, which is used up."""
        if self._codes.pop(code, False) is False:
            return None
        return self._sign(f"{secrets.token_hex(8)}.{int(time.time()) + DAYS * 86400}")

    def _sign(self, words: str) -> str:
        return f"{words}.{self._digest(words)}"

    def _digest(self, words: str) -> str:
        assert self.token is not None
        return hmac.new(self.token.encode(), words.encode(), hashlib.sha256).hexdigest()

    def let_in(self, headers: dict[bytes, bytes]) -> bool:
        """Whether a request has the token, or a cookie that follows from it."""
        if self.token is None:
            return True
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and hmac.compare_digest(given.strip(), self.token.encode()):
            return True
        cookie = cookie_parser(headers.get(b"cookie", b"").decode("latin-1")).get(self.cookie, "")
        words = cookie.rpartition(".")[0]
        if not hmac.compare_digest(self._sign(words).encode(), cookie.encode()):
            return False
        until = words.rpartition(".")[2]
        return until.isdecimal() and int(until) > time.time()


@dataclass
class Rates:
    """A token bucket per client: this many requests a second, and as many at once."""

    rate: float
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)

    def take(self, client: str) -> bool:
        """Whether one more is allowed."""
        now = time.monotonic()
        left, then = self._buckets.get(client, (self.rate, now))
        left = min(self.rate, left + (now - then) * self.rate)
        self._buckets[client] = (max(0.0, left - 1.0), now)
        if len(self._buckets) > 10_000:
            self._buckets.clear()
        return left >= 1.0


def is_local(host: str) -> bool:
    """Whether a host is this machine, and cannot be reached from others."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """Stands before the application."""

    def __init__(self, app: ASGIApp, keys: Keys, hosts: set[str] | None, rate: float) -> None:
        self.app, self.keys, self.hosts, self.rates = app, keys, hosts, Rates(rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        answer = self._check(scope, headers)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_HEADERS]}
            await send(message)

        if answer is not None:
            await answer(scope, receive, send_with_headers)
            return
        await self.app(scope, _Bounded(receive, scope), send_with_headers)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> Response | None:
        client = (scope.get("client") or ("",))[0]
        if not self.rates.take(client):
            return problem(429, "too many requests: slow down")
        given = [name for name, _ in scope["headers"] if name in ONCE]
        if len(given) > len(set(given)):
            return problem(400, f"{', '.join(sorted({*map(bytes.decode, given)}))}: each must be there once")
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self.hosts is not None and _name(host) not in self.hosts:
            return problem(403, f"Host {host[:100]!r} is not what this service is called", "Host")
        if not _same_origin(headers, host):
            return problem(403, "requests from pages of other sites are refused", "Origin")
        path = scope["path"]
        if path == "/login":
            return self._login(scope, headers)
        if path not in OPEN and not self.keys.let_in(headers):
            detail = "a token is needed: Authorization: Bearer ..., or the one-time link"
            answer = _sorry(scope, headers, 401, detail, "Authorization", "whoever runs this service can make it")
            answer.headers["WWW-Authenticate"] = "Bearer"
            return answer
        return _check_body(headers, scope["method"])

    def _login(self, scope: Scope, headers: dict[bytes, bytes]) -> Response:
        code = parse_qs(scope["query_string"].decode("latin-1")).get("code", [""])[0]
        opened = scope["method"] == "GET"
        cookie = self.keys.redeem(code) if opened and self.keys.token is not None else None
        welcome = HTMLResponse(WELCOME, headers={"Cache-Control": "no-store"})
        if cookie is None and opened and self.keys.let_in(headers):
            return welcome
        if cookie is None:
            detail = "this link has been used, or is none of this service: ask for a new one"
            return _sorry(scope, headers, 403, detail, "code", "this one has been used, or is of another service")
        secure = scope.get("scheme") == "https"
        welcome.set_cookie(self.keys.cookie, cookie, DAYS * 86400, httponly=True, samesite="strict", secure=secure)
        return welcome


def _sorry(
    scope: Scope, headers: dict[bytes, bytes], status: int, detail: str, field: str, words: str
) -> Response:
    """In words if a person has opened a link, as a problem otherwise."""
    if scope["path"] in ("/", "/login") and b"text/html" in headers.get(b"accept", b""):
        return HTMLResponse(SORRY.format(words), status, {"Cache-Control": "no-store"})
    return problem(status, detail, field)


def _same_origin(headers: dict[bytes, bytes], host: str) -> bool:
    """Whether a request is of no page, or of a page of this service.

    A page elsewhere can also have the browser ask for an image, say, which then names no origin, but says that the
    request is for another site. Only links to this service may be followed.
    """
    origin = headers.get(b"origin")
    if origin is None:
        site, shown_as = (headers.get(b"sec-fetch-" + name, b"") for name in (b"site", b"dest"))
        return site not in (b"cross-site", b"same-site") or shown_as == b"document"
    try:
        return bool(host) and urlsplit(origin.decode("latin-1")).netloc.lower() == host
    except ValueError:
        return False


def _check_body(headers: dict[bytes, bytes], method: str) -> Response | None:
    kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    length = headers.get(b"content-length", b"0")
    if method in ("GET", "HEAD", "DELETE") and (length != b"0" or b"transfer-encoding" in headers):
        return problem(400, f"{method} has no body", "Content-Length")
    if method != "POST":  # which the application refuses, if it is none of the others
        return None
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        return problem(415, "the body must not be compressed", "Content-Encoding")
    if kind != b"application/json" and (kind or length != b"0" or b"transfer-encoding" in headers):
        return problem(415, "the body must be application/json", "Content-Type")
    if not length.isdigit() or len(length) > 20 or int(length) > LARGEST:
        return problem(413, TOO_LARGE, "Content-Length")
    return None


def _name(host: str) -> str:
    """A host without its port."""
    return host.rpartition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


class _Bounded:
    """Receives a body, of which the length need not be known ahead, up to the largest size."""

    def __init__(self, receive: Receive, scope: Scope) -> None:
        self.receive, self.scope, self.size = receive, scope, 0

    async def __call__(self) -> Message:
        message = await self.receive()
        self.size += len(message.get("body", b""))
        if self.size > LARGEST:
            raise HTTPException(413, TOO_LARGE)  # which FastAPI lets through, unlike other errors
        return message


def allowed_hosts(host: str, more: tuple[str, ...]) -> set[str] | None:
    """The names that a service may be called by; None if it listens on all addresses, which have any name."""
    local = {"127.0.0.1", "localhost", "[::1]"}
    if is_local(host):
        return local | {*more} | {f"[{host}]" if ":" in host else host}
    if more:
        return local | {*more} | {host}
    return None if host in ("0.0.0.0", "::") else {host, *local}


def read_token(path: Any) -> str:
    """The token in a file: one line of at least 16 characters."""
    words = path.read_text(encoding="utf-8").strip()
    if len(words) < 16 or not words.isascii() or not words.isprintable() or " " in words:
        raise ValueError(f"{path}: --token-file must have a token of 16 or more ASCII characters in one line")
    return words
