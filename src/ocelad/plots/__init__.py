"""Figures. ``pip install "ocelad[plots]"``.

Each function draws into the axes it is given, or into a new figure, and returns the axes.
"""

from .regret import regret_by_length
from .style import COLOURS, MARKERS, pyplot
from .synthetic import clusterings, experiment, tracking
from .synthetic_page import synthetic_page
from .text import stem_relevance, text_embeddings, text_errors, texts_per_day, words
from .text_page import text_page
from .timeline import timeline
from .tracker import embedding, heat_map, relevance, time_scales

__all__ = [
    "COLOURS",
    "MARKERS",
    "clusterings",
    "embedding",
    "experiment",
    "heat_map",
    "pyplot",
    "regret_by_length",
    "relevance",
    "stem_relevance",
    "synthetic_page",
    "text_embeddings",
    "text_errors",
    "text_page",
    "texts_per_day",
    "time_scales",
    "timeline",
    "tracking",
    "words",
]
