"""A made-up stream of labelled texts whose topics drift: something to run on where there is no data.

Every label has stories, each with words of its own, that come up, peak and are forgotten; two labels tell the same
stories, in their own tones. On the day of the event all stories end and others begin. The rest of a text are everyday
words, and about a quarter of the texts repeat a recent one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..learner import Array
from .labelled_texts import LabelledTexts

SYLLABLES = [a + b for a in "bdfgklmnprtvz" for b in "aeiou"]
SYNTHETIC = "synthetic: a made-up stream whose topics drift"
START = np.datetime64("2030-01-01T00:00:00", "s")


@dataclass(frozen=True)
class DriftingTopics:
    """How the stream is made.

    >>> stream = DriftingTopics(texts=100).draw(np.random.default_rng(0))
    >>> len(stream), stream.classes
    (100, ('east', 'north', 'south', 'west'))
    """

    texts: int = 6000
    days: int = 60
    event: float = 0.6  # when, as a share of all days
    labels: tuple[str, ...] = ("north", "south", "east", "west")
    stories: int = 6  # per label, at any time
    story_days: float = 15.0
    everyday: int = 150
    topical: float = 0.35  # share of a text's words that belong to its story, or to its label's tone
    repeated: float = 0.25

    def draw(self, rng: np.random.Generator) -> LabelledTexts:
        """The stream, in order of time."""
        words = _words(rng)
        everyday, common = [next(words) for _ in range(self.everyday)], 1.0 / np.arange(2, self.everyday + 2)
        common /= common.sum()
        tones = {label: [next(words) for _ in range(12)] for label in self.labels}
        tellers = {label: self.labels[0] if label == self.labels[1] else label for label in self.labels}
        stories: dict[str, list[tuple[float, list[str]]]] = {label: [] for label in self.labels}
        days = np.sort(self.days * rng.beta(1.3, 1.0, size=self.texts))  # there is more and more talk
        shares, said, over = np.zeros(len(self.labels)), [], False
        labels: list[str] = []
        for day in days:
            shares = 0.999 * shares + 0.04 * rng.normal(size=len(shares))
            label = str(rng.choice(self.labels, p=_softmax(shares)))
            if not over and day >= self.event * self.days:
                over, stories = True, {name: [] for name in self.labels}
            told = stories[tellers[label]]
            while len(told) < self.stories or rng.random() < 1 / 200:
                told.append((day + float(rng.uniform(-0.5, 0.5)) * self.story_days, [next(words) for _ in range(8)]))
            recent = [k for k in range(max(0, len(said) - 200), len(said)) if labels[k] == label]
            labels.append(label)
            if recent and rng.random() < self.repeated:
                original = said[int(rng.choice(recent))]
                said.append(original if original.startswith("RT ") else f"RT @someone {original}")
                continue
            nearness = np.array([-(((day - peak) / self.story_days) ** 2) for peak, _ in told])
            story = told[int(rng.choice(len(told), p=_softmax(4 * nearness)))][1]
            count, text = 6 + int(rng.poisson(6)), []
            for kind in rng.choice(3, size=count, p=[1 - self.topical, 0.7 * self.topical, 0.3 * self.topical]):
                text.append(str(rng.choice((everyday, story, tones[label])[kind], p=common if kind == 0 else None)))
            said.append(f"{' '.join(text)} #{label} https://example.org/{len(said)}")
        times = START + (days * 86400).astype("timedelta64[s]")
        return LabelledTexts.of(times, labels, said, SYNTHETIC)

    @property
    def events(self) -> dict[str, np.datetime64]:
        """What happens, and when."""
        return {"all stories change": START + np.timedelta64(int(self.event * self.days * 86400), "s")}


def _words(rng: np.random.Generator) -> Any:
    """Words that nobody has heard before, each once."""
    seen: set[str] = set()
    while True:
        word = "".join(rng.choice(SYLLABLES, size=3)) + str(rng.choice(list("kmnr")))
        if word not in seen:
            seen.add(word)
            yield word


def _softmax(logits: Array) -> Array:
    p = np.exp(logits - logits.max())
    return p / p.sum()
