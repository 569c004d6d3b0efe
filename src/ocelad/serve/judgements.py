"""Who said what about which items, and what to ask whom next: a fold over the entries that were not undone.

Agreement between people is counted over pairs of items that two or more of them have judged, k of m similar:

    share = sum [C(k, 2) + C(m - k, 2)] / sum C(m, 2),
    alpha = 1 - (N - 1) sum [k (m - k) / (m - 1)] / (n_similar n_different),   N = n_similar + n_different = sum m,

alpha being Krippendorff's: 1 for full agreement, 0 for what chance would give, for any number of people.
"""

from __future__ import annotations

import json
from math import comb
from typing import Any

from .. import dumps, loads
from ..closure import Closure
from ..closure.grouping import groups_apart, implied_pairs
from ..label.questions import LATER, Aim, Pair, Questions, either
from ..protocols import Array
from ..tracker import MetricTracker

RESERVED = 600.0
"""Seconds for which a question is kept for the person who was asked."""

LATEST = 5
"""Contradictions that are remembered."""

NOBODY = ""
"""Who answered, if that is not known."""


class Judgements:
    """What people have said about pairs of items, which are numbers here.

    Parameters
    ----------
    repeats
        Of how many people each pair is to be asked.
    seed
        Of the questions.
    """

    def __init__(self, repeats: int = 1, seed: int = 0) -> None:
        self.repeats, self.seed = repeats, seed
        # Groups rest on all answers; those from before a change of mind are forgotten then.
        self.closure = Closure(window=None, random_state=seed)
        self.events = self.similar = self.different = 0
        self.people: dict[str, int] = {}
        """Who has answered, and how often."""
        self.said: dict[Pair, dict[str, tuple[int, int]]] = {}
        """Of each pair, by whom: the number of the latest entry, and its label; since the last change."""
        self.unsure: dict[Pair, int] = {}
        """Pairs that someone was unsure of, and the number of the event, the oldest first."""
        self.contradictions: list[dict[str, Any]] = []
        # for whom, until when, and with which aim: not part of the fold
        self._reserved: dict[Pair, tuple[str, float, Aim]] = {}
        self._drawn = 0

    # The fold

    def answer(self, id: int, i: int, j: int, y: int, by: str | None) -> None:
        """Take an answer, entry ``id`` of the log: +1 similar, -1 different."""
        pair, who = either(i, j), by or NOBODY
        self._heard(pair)
        self.similar, self.different = self.similar + (y > 0), self.different + (y < 0)
        self.people[who] = self.people.get(who, 0) + 1
        others = [(number, name, said) for name, (number, said) in self.said.get(pair, {}).items() if said != y]
        if others or self.closure.implied(i, j) == -y:
            number, name, said = max(others) if others else (None, NOBODY, -y)
            before = {"id": number, "by": name or None, "y": said}
            new = {"id": id, "a": i, "b": j, "y": y, "by": by, "before": before}
            self.contradictions = [*self.contradictions, new][-LATEST:]
        self.closure.answer(i, j, y)
        self.said.setdefault(pair, {})[who] = (id, y)

    def skip(self, i: int, j: int) -> None:
        """Someone is unsure about two items."""
        self._heard(either(i, j))
        self.unsure[either(i, j)] = self.events

    def change(self) -> None:
        """Someone judges differently from here on: what was said implies nothing, and may be asked again."""
        self.events += 1
        self.closure.reset(keep=0)
        self.said.clear()

    def _heard(self, pair: Pair) -> None:
        self.events += 1
        self._reserved.pop(pair, None)
        self.unsure.pop(pair, None)

    # Questions

    def questions(
        self, tracker: MetricTracker, X: Array, by: str, aim: Aim, now: float, count: int = 1
    ) -> list[Pair]:
        """Pairs to ask a person about, different ones: first those that are kept for this person already.

        They are kept from now on, so that nobody else is asked meanwhile. None are left when all is known.
        """
        self._reserved = {pair: kept for pair, kept in self._reserved.items() if kept[1] > now}
        self._reserved = {pair: kept for pair, kept in self._reserved.items() if kept[0] != by or kept[2] == aim}
        found = [pair for pair, (who, *_) in self._reserved.items() if who == by][:count]
        if self.repeats > 1:
            again = (pair for pair, said in self.said.items() if by not in said and len(said) < self.repeats)
            late = {pair for pair, when in self.unsure.items() if self.events - when <= LATER}
            free = (pair for pair in again if pair not in self._reserved and pair not in late)
            found += [pair for pair, _ in zip(free, range(count - len(found)), strict=False)]
        asking = Questions(tracker, self.closure, X, aim)
        while len(found) < count:
            self._drawn += 1
            avoid = {*self._reserved, *found}
            pair = asking.ask([self.seed, self._drawn], self.events, self.said, self.unsure, avoid)
            if pair is None or either(*pair) in avoid:
                break
            found.append(either(*pair))
        self._reserved |= dict.fromkeys(found, (by, now + RESERVED, aim))
        return found

    def keep_reservations(self, other: Judgements) -> None:
        """Those of another fold of the same stream: people are still looking at their questions."""
        self._reserved, self._drawn = other._reserved, other._drawn

    # What is known

    def groups(self) -> list[list[int]]:
        """Groups that are known apart from one another, the largest first; items in none have yet to be placed."""
        return groups_apart(self.closure)

    def summary(self, items: int) -> dict[str, Any]:
        """The parts of a state that are about people and items, of which there are so many."""
        groups = self.groups()
        counts = {"similar": self.similar, "different": self.different}
        return {
            "counts": {**counts, "unsure": len(self.unsure), "implied": implied_pairs(self.closure, self.said)},
            "contradictions": [{**each, "before": {**each["before"]}} for each in self.contradictions],
            "agreement": self.agreement(),
            "groups": {
                "groups": len(groups),
                "placed": sum(map(len, groups)),
                "items": items,
                "sizes": [len(group) for group in groups[:20]],
            },
        }

    def agreement(self) -> dict[str, Any]:
        """How far people agree on the pairs that several of them have judged."""
        shared = [[y for _, y in said.values()] for said in self.said.values() if len(said) > 1]
        ratings = [(len(labels), sum(y > 0 for y in labels)) for labels in shared]
        alike = sum(comb(k, 2) + comb(m - k, 2) for m, k in ratings)
        similar, total = sum(k for _, k in ratings), sum(m for m, _ in ratings)
        chance = similar * (total - similar)
        unlike = sum(k * (m - k) / (m - 1) for m, k in ratings)
        return {
            "pairs": len(shared),
            "share": alike / sum(comb(m, 2) for m, _ in ratings) if shared else None,
            "alpha": 1.0 - (total - 1) * unlike / chance if chance else None,
            "people": [{"by": name or None, "answers": count} for name, count in self.people.items()],
        }

    # Saving

    def dumps(self) -> bytes:
        """As bytes: JSON, after its length, and what `ocelad.dumps` gives of the closure."""
        words = {
            "counts": [self.events, self.similar, self.different],
            "people": self.people,
            "said": [[i, j, said] for (i, j), said in self.said.items()],
            "unsure": [[i, j, when] for (i, j), when in self.unsure.items()],
            "contradictions": self.contradictions,
        }
        text = json.dumps(words).encode()
        return len(text).to_bytes(8, "big") + text + dumps(self.closure)

    @classmethod
    def loads(cls, data: bytes, repeats: int = 1, seed: int = 0) -> Judgements:
        """What `dumps` made bytes of. Raises ValueError if they are damaged."""
        size = int.from_bytes(data[:8], "big")
        new, text = cls(repeats, seed), data[8 : 8 + size]
        try:
            words = json.loads(text)
            new.events, new.similar, new.different = words["counts"]
            new.people, new.contradictions = words["people"], words["contradictions"]
            new.said = {
                (i, j): {name: (number, y) for name, (number, y) in said.items()} for i, j, said in words["said"]
            }
            new.unsure = {(i, j): when for i, j, when in words["unsure"]}
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"judgements are damaged: {error!r}") from None
        new.closure = loads(data[8 + size :])
        return new
