"""Every streaming system that the paper names, by name, ready to run, its rates chosen (see docs/baselines.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from numpy.typing import ArrayLike

from ..geometry import VonNeumann
from ..protocols import Array
from ..weights import FixedShare
from .adaptive_steps import adagrad
from .dynamics import dynamic_mirror_descent
from .euclid import Euclid
from .fixed_rate import comid, fixed_share, mdml
from .leader import ftrl
from .leading_history import leading_history
from .online_itml import online_itml
from .restarted import restarted, saol


class Tracker(Protocol):
    """What they all have in common."""

    def partial_fit(self, pairs: ArrayLike, y: ArrayLike, /) -> Any: ...

    def transform(self, X: ArrayLike, /) -> Array: ...


STREAMING: Mapping[str, Callable[..., Tracker]] = {
    "COMID, high rate": lambda step=1.0: comid(step),
    "COMID, low rate": lambda step=0.25: comid(step),
    "MDML, von Neumann": lambda: mdml(step=0.5, divergence=VonNeumann()),
    "MDML, LogDet": lambda: mdml(step=2.0),
    "SAOL": lambda step=8.0: saol(step),  # the step of the paper's setting
    "SAOL, best rate": lambda: saol(step=128.0),
    "SAOL, unclipped": lambda: saol(step=32.0, clipped=False),
    "online ITML": lambda step=1.0: online_itml(step),
    "restarted": lambda: restarted(step=32.0),
    "restarted, fixed share": lambda: restarted(step=32.0, base=8, weights=FixedShare()),
    "AdaGrad": lambda: adagrad(step=256.0),
    "FTRL": lambda: ftrl(step=16.0),
    "dynamic mirror descent": lambda: dynamic_mirror_descent(step=1.0),
    "follow the leading history": lambda: leading_history(step=32.0, base=8),
    "fixed share": lambda: fixed_share((0.25, 0.5, 1.0, 2.0, 4.0)),
    "Euclid": Euclid,
}
"""Makers of fresh trackers; those that take ``step`` can be had at another rate."""
