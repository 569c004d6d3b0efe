"""Texts as rows of numbers, as they come: cleaned, stemmed, and weighed by how rare each stem is.

row_s = count of s in the text * idf_s, of length one,      idf_s = 1 + log((1 + texts) / (1 + texts with s)).
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np
from scipy import sparse

from ..protocols import Array
from .mojibake import repair

CACHED = 1 << 16
"""The size of the cache of stems; an endless stream has no end of words."""

_LINKS = re.compile(
    r"\b[a-z][a-z0-9+.-]*://\S*|\bwww\.\S+|\bhtt[a-z:/]*\.\.\.|\bhttps?\b\S*"  # also cut off in the middle
    r"|\b(?:[\w-]+\.)+[a-z]{2,}/\S*|\S+@\S+\.\w+",  # and without a scheme, and addresses
    re.IGNORECASE,
)
_LINKED = re.compile(r"/|\S@|www\.|htt", re.IGNORECASE)  # every link has one of these, and most texts have none
_TAGS = re.compile(r"[#@][\w\u0300-\u036f]+|\b(?:URL|RT|QT)\b")  # and the marks of scrubbed ones
_UNSEEN = re.compile(r"[\u00ad\u200b-\u200f\u2060\ufeff]")  # characters without width, which part a hashtag
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")


def clean(text: str) -> str:
    """The text, repaired, without hashtags, links and handles, nor the marks that stand for them.

    >>> clean("RT @someone: lower #taxes &amp; more jobs https://example.org/x URL").split()
    [':', 'lower', '&', 'more', 'jobs']
    """
    text = repair(text)
    if not text.isascii():
        text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text))  # one way to write an accent, a # or an @
    if _LINKED.search(text):
        text = _LINKS.sub(" ", text)
    return _TAGS.sub(" ", text)


class TextStream:
    """Turn texts into sparse TF-IDF rows, one after the other.

    Parameters
    ----------
    vocabulary
        How many stems to keep: the most frequent ones of the first texts that ``partial_fit`` is given. Or the
        stems themselves. Or, with ``hashed``, how many columns to spread all stems over.
    hashed
        Any stem has a column, which it may have to share: for endless streams, whose words cannot be known.
    language
        Of the stemmer, one of snowballstemmer's; it needs ``pip install "ocelad[text]"``.
    stop_words
        Words to leave out. By default scikit-learn's English ones for English, none for other languages.

    Examples
    --------
    >>> texts = ["Cutting #taxes helps families", "Families need tax cuts", "An open internet @fcc https://x.y"]
    >>> stream = TextStream(3).fit(texts)
    >>> stream.names
    ['cut', 'famili', 'help']
    >>> stream.transform(texts).toarray().round(2)
    array([[0.52, 0.52, 0.68],
           [0.71, 0.71, 0.  ],
           [0.  , 0.  , 0.  ]])
    """

    def __init__(
        self,
        vocabulary: int | Sequence[str] = 194,
        *,
        hashed: bool = False,
        language: str = "english",
        stop_words: Collection[str] | None = None,
    ) -> None:
        if isinstance(vocabulary, (int, np.integer)) and not isinstance(vocabulary, bool):
            if vocabulary < 1:
                raise ValueError(f"vocabulary must be a number of stems >= 1 or the stems, got {vocabulary}")
            self.width, self.names = int(vocabulary), [f"#{k}" for k in range(vocabulary)] if hashed else []
        else:
            if isinstance(vocabulary, (str, bool)) or not all(isinstance(stem, str) for stem in vocabulary):
                raise ValueError(f"vocabulary must be a number of stems >= 1 or the stems, got {vocabulary!r}")
            if hashed or not len(vocabulary) or len(set(vocabulary)) < len(vocabulary):
                problem = "a number, with hashed=True" if hashed else "different stems, at least one"
                raise ValueError(f"vocabulary must be {problem}, got {vocabulary!r}")
            self.width, self.names = len(vocabulary), list(vocabulary)
        if stop_words is None:
            stop_words = _english() if language == "english" else ()
        self.hashed, self.language, self.stop_words = hashed, language, frozenset(stop_words)
        self._stem = lru_cache(CACHED)(_stemmer(language).stemWord)
        self._column = {} if hashed else {stem: column for column, stem in enumerate(self.names)}
        self.texts = 0
        """How many texts have been counted."""
        self.frequencies = np.zeros(self.width)
        """In how many of them each stem occurs."""

    def stems(self, text: str) -> list[str]:
        """The stems of a text, in order.

        >>> TextStream().stems("We don't need the #taxes that they've been raising on families!")
        ['need', 'rais', 'famili']
        """
        return [self._stem(word) for word in self._words(text)]

    def _words(self, text: str) -> list[str]:
        if not isinstance(text, str):
            raise ValueError(f"texts must be strings, got {text!r}")
        words = (word.replace("\u2019", "'") for word in _WORD.findall(clean(text).lower()))
        return [word for word in words if len(word) > 1 and not self._empty(word)]

    def spelled(self, texts: Iterable[str]) -> list[str]:
        """For each of ``names`` the most frequent word of that stem in these texts, for people to read.

        >>> texts = ["Cuts to taxes help families", "Families need tax cuts", "a tax on a family"]
        >>> stream = TextStream(3).fit(texts)
        >>> stream.names, stream.spelled(texts)
        (['famili', 'tax', 'cut'], ['families', 'tax', 'cuts'])
        """
        counts = Counter(word for text in _several(texts) for word in self._words(text))
        found: dict[str, str] = {}
        for word in sorted(counts, key=lambda word: (-counts[word], word)):
            found.setdefault(self._stem(word), word)
        return [found.get(name, name) for name in self.names]

    def _empty(self, word: str) -> bool:
        """Whether a word says nothing: don't and they've as little as do and they."""
        first, _, rest = word.partition("'")
        return word in self.stop_words or bool(
            rest and self.stop_words and (rest == "t" or first in self.stop_words)
        )

    def fit(self, texts: Iterable[str]) -> Self:
        """Forget all counts, and ``partial_fit`` these texts; a vocabulary that was learned is kept."""
        self.texts, self.frequencies = 0, np.zeros(self.width)
        return self.partial_fit(texts)

    def partial_fit(self, texts: Iterable[str]) -> Self:
        """Count in how many texts each stem occurs; the first time, learn the vocabulary if it is not given."""
        found = [set(self.stems(text)) for text in _several(texts)]
        if not self.hashed and not self.names:
            counts = Counter(stem for each in found for stem in each)
            most = sorted(counts, key=lambda stem: (-counts[stem], stem))[: self.width]
            if not most:
                raise ValueError("texts must have words in them to learn a vocabulary from, got none")
            self.names, self.width, self.frequencies = most, len(most), np.zeros(len(most))
            self._column = {stem: column for column, stem in enumerate(most)}
        for each in found:
            columns = {self._place(stem) for stem in each} - {None}
            self.frequencies[list(columns)] += 1  # type: ignore[index]
        self.texts += len(found)
        return self

    def transform(self, texts: Iterable[str]) -> Any:
        """One row for each text, a CSR array: of length one, or zero if the text has none of the stems."""
        if not self.names:
            raise ValueError("the vocabulary has not been learned yet: call partial_fit with the first texts")
        idf, starts, columns, values = self.idf, [0], [], []
        for text in _several(texts):
            places = Counter(place for stem in self.stems(text) if (place := self._place(stem)) is not None)
            at = np.array(sorted(places), dtype=np.int64)
            row = np.array([places[place] for place in at.tolist()], dtype=np.float64) * idf[at]
            columns.append(at)
            values.append(row / (np.linalg.norm(row) or 1.0))
            starts.append(starts[-1] + len(at))
        data = np.concatenate(values) if values else np.zeros(0)
        where = np.concatenate(columns) if columns else np.zeros(0, dtype=np.int64)
        return sparse.csr_array((data, where, starts), shape=(len(starts) - 1, self.width))

    @property
    def idf(self) -> Array:
        """How much each stem counts: the rarer, the more."""
        return 1.0 + np.log((1.0 + self.texts) / (1.0 + self.frequencies))

    def _place(self, stem: str) -> int | None:
        if self.hashed:  # not hash(), which differs from one process to the next
            return zlib.crc32(stem.encode()) % self.width
        return self._column.get(stem)


def _english() -> Collection[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # not worth everyone's waiting for it

    return ENGLISH_STOP_WORDS


def _several(texts: Iterable[str]) -> Iterable[str]:
    if isinstance(texts, str):
        raise ValueError(f"texts must be several strings, got one: {texts[:40]!r}")
    return texts


def _stemmer(language: str) -> Any:
    try:
        import snowballstemmer
    except ImportError as error:
        raise ImportError('stemming needs snowballstemmer: pip install "ocelad[text]"') from error
    if language not in snowballstemmer.algorithms():
        known = ", ".join(sorted(snowballstemmer.algorithms()))
        raise ValueError(f"language must be one of {known}; got {language!r}")
    return snowballstemmer.stemmer(language)
