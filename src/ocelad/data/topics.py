"""A made-up stream of labelled texts whose topics drift: something to run on where there is no data.

Every label has stories, each with words of its own, that come up, peak and are forgotten; the first two labels
tell the same stories, each in its own tone. On the day of the event all stories end and others begin. The rest of
a text are everyday words, and about a quarter of the texts repeat a recent one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..protocols import Array
from .labelled_texts import LabelledTexts

SYNTHETIC = "synthetic: a made-up stream whose topics drift"
SYLLABLES = [a + b for a in "bdfgklmnprtvz" for b in "aeiou"]
START = np.datetime64("2030-01-01T00:00:00", "s")
RECENT = 200
"""How many texts back a repeated text may be from."""


@dataclass(frozen=True)
class DriftingTopics:
    """How the stream is made.

    Parameters
    ----------
    texts, days
        How many texts, over how many days; there are more and more of them.
    event
        When all stories change, as a share of the days.
    labels
        Of which the first two share their stories.
    stories, story_days
        How many a label has at least at any time, and how long they last.
    everyday
        How many everyday words there are.
    topical
        The share of a text's words that belong to its story, or to the tone of its label.
    repeated
        The share of texts that repeat a recent one.

    Examples
    --------
    >>> stream = DriftingTopics(texts=100).draw(np.random.default_rng(0))
    >>> len(stream), stream.classes
    (100, ('east', 'north', 'south', 'west'))
    """

    texts: int = 6000
    days: int = 60
    event: float = 0.6
    labels: tuple[str, ...] = ("north", "south", "east", "west")
    stories: int = 6
    story_days: float = 15.0
    everyday: int = 150
    topical: float = 0.35
    repeated: float = 0.25

    def draw(self, rng: np.random.Generator) -> LabelledTexts:
        """The stream, in order of time."""
        words = _words(rng)
        everyday = [next(words) for _ in range(self.everyday)]
        often = np.cumsum(1.0 / np.arange(2, self.everyday + 2))
        tones = [[next(words) for _ in range(12)] for _ in self.labels]
        days = np.sort(self.days * rng.beta(1.3, 1.0, size=self.texts))
        told: list[list[tuple[float, list[str]]]] = [[] for _ in self.labels]
        shares, over = np.zeros(len(self.labels)), False
        said: list[str] = []
        labels: list[int] = []
        for day in days:
            shares = 0.999 * shares + 0.04 * rng.normal(size=len(shares))
            label = _draw(np.exp(shares), rng)
            if not over and day >= self.event * self.days:
                over, told = True, [[] for _ in self.labels]
            stories = told[0 if label == 1 else label]
            while len(stories) < self.stories or rng.random() < 1 / 200:
                peak = day + float(rng.uniform(-0.5, 0.5)) * self.story_days
                stories.append((peak, [next(words) for _ in range(8)]))
            recent = [k for k in range(max(0, len(said) - RECENT), len(said)) if labels[k] == label]
            labels.append(label)
            if recent and rng.random() < self.repeated:
                original = said[recent[int(rng.integers(len(recent)))]]
                said.append(original if original.startswith("RT ") else f"RT @someone {original}")
                continue
            nearness = np.array([((day - peak) / self.story_days) ** 2 for peak, _ in stories])
            story = stories[_draw(np.exp(-4 * (nearness - nearness.min())), rng)][1]
            text = []
            for kind in rng.random(6 + int(rng.poisson(6))) / self.topical:
                if kind < 1:
                    source = story if kind < 0.7 else tones[label]
                    text.append(source[int(rng.integers(len(source)))])
                else:
                    text.append(everyday[int(np.searchsorted(often, often[-1] * rng.random()))])
            said.append(f"{' '.join(text)} #{self.labels[label]} https://example.org/{len(said)}")
        times = START + (days * 86400).astype("timedelta64[s]")
        return LabelledTexts.of(times, [self.labels[k] for k in labels], said, SYNTHETIC)

    @property
    def events(self) -> dict[str, np.datetime64]:
        """What happens, and when."""
        return {"all stories change": START + np.timedelta64(int(self.event * self.days * 86400), "s")}


def _words(rng: np.random.Generator) -> Iterator[str]:
    """Words that nobody has heard before, each once."""
    seen: set[str] = set()
    while True:
        syllables = rng.integers(len(SYLLABLES), size=3)
        word = "".join(SYLLABLES[k] for k in syllables) + "kmnr"[int(rng.integers(4))]
        if word not in seen:
            seen.add(word)
            yield word


def _draw(weights: Array, rng: np.random.Generator) -> int:
    return int(np.searchsorted(np.cumsum(weights), weights.sum() * rng.random()))
