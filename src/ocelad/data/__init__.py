"""Streams to track: drifting clusters, random rotations, texts."""

from .adjacent import adjacent
from .blocks import Block, blocks
from .clusters import SCENARIO, DriftingClusters, Segment, Step
from .labelled_texts import LabelledTexts
from .rotation import cayley, haar, random_skew, rotation_walk
from .tfidf import TextStream
from .topics import DriftingTopics

__all__ = [
    "SCENARIO",
    "Block",
    "DriftingClusters",
    "DriftingTopics",
    "LabelledTexts",
    "Segment",
    "Step",
    "TextStream",
    "adjacent",
    "blocks",
    "cayley",
    "haar",
    "random_skew",
    "rotation_walk",
]
