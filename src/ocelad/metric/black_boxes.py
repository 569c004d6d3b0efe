"""A stack of learners taken apart into black boxes, which can be asked about any loss."""

from __future__ import annotations

import numpy as np

from ..ensemble import Rice
from ..ocelad import Ocelad
from .estimate import Metric
from .stack import StackedRice


def take_apart(ocelad: Ocelad[Metric], unopened: Rice[Metric]) -> None:
    """Put `Rice` in the place of its compiled form: the same learners, free to take triplets and weighted pairs."""
    if not isinstance(ocelad.ensemble, StackedRice):
        return
    now = [ocelad.ensemble.mix(p) for p in np.eye(len(ocelad.lengths))]
    ensemble = Rice(unopened.spawn, unopened.base, unopened.start)
    ensemble.learners = [ensemble.spawn(length, metric) for length, metric in zip(ocelad.lengths, now, strict=True)]
    ocelad.ensemble = ensemble
