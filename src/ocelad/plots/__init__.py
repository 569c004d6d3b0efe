"""Figures. ``pip install "ocelad[plots]"``.

Each function draws into the axes it is given, or into a new figure, and returns the axes.
"""

from .experiment import clusterings, experiment
from .page import page
from .regret import regret_by_length
from .study import tracking
from .style import COLOURS, MARKERS, pyplot
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
    "page",
    "pyplot",
    "regret_by_length",
    "relevance",
    "stem_relevance",
    "text_embeddings",
    "text_errors",
    "text_page",
    "texts_per_day",
    "time_scales",
    "timeline",
    "tracking",
    "words",
]
