"""Streams to track: drifting clusters, random rotations."""

from .blocks import Block, blocks
from .clusters import SCENARIO, DriftingClusters, Segment, Step
from .rotation import cayley, haar, random_skew, rotation_walk

__all__ = [
    "SCENARIO",
    "Block",
    "DriftingClusters",
    "Segment",
    "Step",
    "blocks",
    "cayley",
    "haar",
    "random_skew",
    "rotation_walk",
]
