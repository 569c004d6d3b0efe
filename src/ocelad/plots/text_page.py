"""The study of texts as one HTML page that needs no other file."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from ..data.topics import SYNTHETIC
from ..studies import TextResults
from . import html
from .text import NAMES

CAPTIONS = {
    "texts-per-day": "Texts per day by label.",
    "embedding": "The window's texts in the metric learned up to its midpoint, and in PCA of the window itself.",
    "errors": "Left, how often the nearest neighbours of a text have another label; right, how well comparisons "
    "were foretold before they were learned.",
    "words": "The words that count most in the metric, where a text of that word alone would lie; those that "
    "would hide one another are moved apart. Colours tell in the texts of which label a word has weighed most of "
    "late; what was not used is grey. Consecutive pictures are aligned.",
    "relevance": "The share of single words in the metric over time: the median of the latest looks at it.",
}

HEADINGS = {
    "texts-per-day": "The stream",
    "embedding": "The texts, as the metric sees them",
    "errors": "How well it does",
    "words": "Which words count",
    "relevance": "How that changes",
}


def text_page(results: TextResults, pictures: Mapping[str, bytes]) -> str:
    """The page; ``pictures`` are PNG files, by their names in `CAPTIONS`."""
    texts, study, made_up = results.texts, results.study, results.texts.source == SYNTHETIC
    first, last = (np.datetime_as_string(texts.times[k], unit="D") for k in (0, -1))
    parts = [
        '<p class="no"><strong>Synthetic:</strong> these texts are made up, by a generator of drifting topics.</p>'
        if made_up
        else f"<p>From {escape(texts.source)}.</p>",
        f"<p>{len(texts):,} texts from {first} to {last}, {len(results.stems)} stems. The window is the last "
        f"{study.window:.0%} of them; {results.window.stop - results.window.start - len(results.unique)} of its "
        f"{results.window.stop - results.window.start} texts repeat another of it. {_vocabulary(results)}</p>",
    ]
    for name, png in pictures.items():
        parts += [f"<h2>{HEADINGS[name]}</h2>", html.image(png, CAPTIONS[name])]
        if name == "errors":
            parts += [_errors(results), _aucs(results)]
    parts.append(f"<p>It took {results.seconds:.0f} seconds.</p>")
    return html.document("A metric on texts, tracked" + (" (synthetic)" if made_up else ""), parts)


def _vocabulary(results: TextResults) -> str:
    if results.study.first is None:
        return "The stems are the most frequent ones of the whole stream; no label enters there."
    return f"The stems are the most frequent ones of the first {results.study.first} texts."


def _errors(results: TextResults) -> str:
    rows = [
        (NAMES[name], f"{errors['all']:.4f}", f"{errors['unique']:.4f}")
        for name, errors in results.loo_knn_error.items()
    ]
    return html.table((f"{results.study.k}-NN error", "all texts", "no repetitions"), rows)


def _aucs(results: TextResults) -> str:
    rows = [
        (NAMES.get(name, name.replace("comid_", "COMID at rate ")), f"{auc:.4f}")
        for name, auc in results.auc.items()
    ]
    return html.table(("AUC of adjacent texts, before they are learned", ""), rows)
