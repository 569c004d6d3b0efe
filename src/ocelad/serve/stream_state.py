"""What is shown of a stream: how far it is, how right it was, which experts and features count now."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..watch.history import expert_name
from .fold import Fold

PATIENCE = 0.5
"""Seconds for who said what of items; of a long log the rest is known a moment later."""

TOP = 12
"""Features that are named, those that matter most."""


def state(fold: Fold) -> dict[str, Any]:
    """All that is shown of a stream."""
    known: dict[str, Any] = {"stream": fold.stream, "t": fold.t, "version": fold.position}
    known |= fold.said(PATIENCE).summary(fold.items) | fold.course.summary()
    similar, different = fold.course.labels
    known["counts"] |= {"similar": similar, "different": different, "undone": fold.undone()}
    known["by_points"] = fold.by_points
    for said in known["contradictions"]:
        said |= {side: fold.name(said[side]) for side in ("a", "b")}
    return known | {"experts": _experts(fold), "features": _relevance(fold)}


def _experts(fold: Fold) -> list[dict[str, Any]]:
    if not fold.t:
        return []
    together: dict[str, dict[str, Any]] = {}
    for kind, length, weight, _ in fold.tracker.experts_.tolist():
        name = expert_name(kind, length)
        own = together.setdefault(name, {"name": name, "kind": kind, "length": None, "weight": 0.0})
        own["length"] = length if np.isfinite(length) else None
        own["weight"] += weight
    return list(together.values())


def _relevance(fold: Fold) -> list[dict[str, Any]]:
    if not fold.t:
        return []
    diagonal = fold.tracker.get_metric().M.diagonal()
    share = diagonal / (diagonal.sum() or 1.0)
    names = fold.features(len(share))
    most = [k for k in np.argsort(-share, kind="stable")[:TOP].tolist() if share[k] > 0.0]
    return [{"name": names[k], "share": float(share[k])} for k in most]
