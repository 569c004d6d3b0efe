"""Figures for operators, in Prometheus's text format."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .service import Service

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Figures:
    """Requests by operation and status, and how long they took until they were answered."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._count: Counter[str] = Counter()

    @contextmanager
    def timed(self, scope: dict[str, Any]) -> Iterator[Callable[[int], None]]:
        """Gives a function to call with the status."""
        start = time.perf_counter()

        def done(status: int) -> None:
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in ("GET", "POST", "DELETE", "HEAD", "PUT") else "other"
            self._requests[method, route, status] += 1
            seconds, operation = time.perf_counter() - start, f"{method} {route}"
            self._seconds[operation] += seconds  # type: ignore[assignment]
            self._count[operation] += 1
            for bound in BOUNDS:
                if seconds <= bound:
                    self._buckets[operation, bound] += 1

        yield done

    def text(self, of: Service) -> str:
        """All of them, and where the service stands."""
        lines = ["# TYPE ocelad_entries_total counter"]
        lines += [f'ocelad_entries_total{{kind="{kind}"}} {count}' for kind, count in of.counts.items()]
        lines.append("# TYPE ocelad_requests_total counter")
        for (method, route, status), count in sorted(self._requests.items()):
            lines.append(f'ocelad_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}')
        lines.append("# TYPE ocelad_request_seconds histogram")
        for operation in sorted(self._count):
            for bound in BOUNDS:
                count = self._buckets[operation, bound]
                lines.append(f'ocelad_request_seconds_bucket{{operation="{operation}",le="{bound}"}} {count}')
            total = self._count[operation]
            lines.append(f'ocelad_request_seconds_bucket{{operation="{operation}",le="+Inf"}} {total}')
            lines.append(f'ocelad_request_seconds_sum{{operation="{operation}"}} {self._seconds[operation]:.6f}')
            lines.append(f'ocelad_request_seconds_count{{operation="{operation}"}} {total}')
        gauges = {
            "ocelad_ready": int(of.ready),
            "ocelad_streams": len(of.streams),
            "ocelad_last_entry": max((stream.last for stream in of.streams.values()), default=0),
            "ocelad_entries_not_published": sum(len(stream.unlearned) for stream in of.streams.values()),
            "ocelad_answers_waiting_for_disk": of.writer.waiting,
            "ocelad_watchers": sum(len(stream.watchers) for stream in of.streams.values()),
        }
        for name, value in gauges.items():
            lines += [f"# TYPE {name} gauge", f"{name} {value}"]
        return "\n".join(lines) + "\n"
