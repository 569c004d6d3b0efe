"""Streams to track: drifting clusters, random rotations, texts."""

from .adjacent import adjacent
from .clusters import SCENARIO, Block, DriftingClusters, Segment, Step, blocks
from .labelled_texts import LabelledTexts
from .rotation import cayley, haar, skew
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
    "skew",
]
