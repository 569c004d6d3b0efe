"""Thread safety: a lock per estimator, which is neither copied nor pickled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Locked:
    """Gives an estimator a lock of its own, created lazily: scikit-learn wants nothing but parameters in a new
    estimator."""

    @property
    def _lock(self) -> Any:
        try:
            return self.__dict__["_own_lock"]
        except KeyError:
            return self.__dict__.setdefault("_own_lock", threading.RLock())  # the first one stays

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            parents: Any = super()
            return {name: value for name, value in parents.__getstate__().items() if name not in _NOT_PICKLED}


_NOT_PICKLED = ("_own_lock", "_metric")


def locked(method: F) -> F:
    """A method that holds the estimator's lock."""

    @wraps(method)
    def with_lock(self: Any, *given: Any, **named: Any) -> Any:
        with self.__dict__.get("_own_lock") or self._lock:
            return method(self, *given, **named)

    return with_lock  # type: ignore[return-value]
