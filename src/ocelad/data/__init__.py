"""Streams to track: drifting clusters, random rotations."""

from .clusters import SCENARIO, DriftingClusters, Segment, Step
from .rotation import cayley, haar, rotation_walk

__all__ = ["SCENARIO", "DriftingClusters", "Segment", "Step", "cayley", "haar", "rotation_walk"]
