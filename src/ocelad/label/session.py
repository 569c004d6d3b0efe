"""A person, a set of items, and one question after the other: the next pair is a function of the answers so far.

    log = (event_1, ..., event_k)  ->  tracker, closure  ->  question(seed, k, tracker, closure).

Nothing else is remembered. So who stops and goes on later is asked what they would have been asked, and to undo is
to go through a shorter log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import validation as validate
from ..closure import Closure, Reset
from ..closure.grouping import groups_apart, implied_pairs
from ..protocols import Array
from ..tracker import MetricTracker
from ..watch.scores import Running
from .questions import LATER, Aim, Pair, Questions, either

__all__ = ["LATER", "Aim", "Answer", "Changed", "Event", "Pair", "Progress", "Session"]

LATEST = 20
"""Answers of which it is counted how many were foreseen."""

DERIVED = 4
"""Implied pairs that are taught after each answer."""


@dataclass(frozen=True)
class Answer:
    """Items number i and j are similar (y = 1), different (-1), or the person is unsure (0)."""

    i: int
    j: int
    y: int


@dataclass(frozen=True)
class Changed:
    """The person judges differently from here on."""


Event = Answer | Changed


@dataclass(frozen=True)
class Progress:
    """Where a session stands.

    Pairs answered similar and different, pairs whose last answer was unsure, further pairs that answers imply; how
    many of the latest answers were foreseen right, and of how many, and how many it would have been by always
    giving the more frequent of them; groups known apart, and the items in them.
    """

    similar: int
    different: int
    unsure: int
    implied: int
    right: int
    foreseen: int
    frequent: int
    groups: int
    placed: int


class Session:
    """Questions about pairs of points, and what the answers teach.

    Parameters
    ----------
    X
        The points, of shape (m, n).
    aim
        ``"metric"`` asks what teaches the tracker most: of a few random pairs the one it is least sure of.
        ``"groups"`` asks for the partition: an item against its nearest group, until all groups are known.
    candidates
        For ``"metric"``: of how many pairs.
    implied
        Whether similar is transitive for the person, and different inherited: then implied answers are taught,
        too, and seldom asked. The aim ``"groups"`` rests on it.
    seed
        Of all draws.

    Examples
    --------
    Only the sign of the first of three features matters to this person:

    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> session = Session(X)
    >>> for _ in range(30):
    ...     i, j = session.question()
    ...     session.take(Answer(i, j, 1 if X[i, 0] * X[j, 0] > 0 else -1))
    >>> session.relevance().argmax().item()
    0
    >>> asked = session.question()
    >>> session.take(Answer(*asked, 0))  # unsure: asked again later
    >>> session.question() == asked
    False
    >>> session.undo() == Answer(*asked, 0)
    True
    >>> session.question() == asked
    True
    """

    def __init__(
        self,
        X: Any,
        aim: Aim = "metric",
        candidates: int = 4,
        implied: bool = True,
        seed: int = 0,
    ) -> None:
        self.X = np.array(X, dtype=np.float64)
        if self.X.ndim != 2 or len(self.X) < 2:
            raise ValueError(f"X must be two or more points, of shape (m, n), got shape {self.X.shape}")
        validate.points(self.X, self.X.shape[1])
        if aim == "groups" and not implied:
            raise ValueError('aim "groups" needs implied=True: groups are what answers imply')
        self.aim, self.implied = aim, implied
        self.candidates = validate.integer(candidates, "candidates")
        self.seed = validate.integer(seed, "seed", 0)
        self.replay([])

    def replay(self, log: Iterable[Event]) -> None:
        """Begin anew, and go through these events."""
        # Answers of long ago should not be taught for ever: people change. A partition needs them all.
        self.closure = Closure(window=500 if self.aim == "metric" else None, random_state=self.seed)
        self.tracker = MetricTracker(scale="features")
        self._questions = Questions(self.tracker, self.closure, self.X, self.aim, self.candidates)
        self.log: list[Event] = []
        self._asked: set[Pair] = set()  # since the person last judged differently
        self._unsure: dict[Pair, int] = {}  # and the number of the event, the oldest first
        self._foreseen: deque[tuple[bool, int]] = deque(maxlen=LATEST)  # whether it was right, and the answer
        self.running = Running()  # of all answers, each before it was learned
        for event in log:
            self.take(event)

    # Events

    def take(self, event: Event) -> Reset | None:
        """Learn what a person said. Returns a `Reset` if answers contradict earlier ones so often that the person
        must have changed their mind."""
        if not isinstance(event, (Answer, Changed)):
            raise ValueError(f"event must be an Answer or Changed(), got {event!r}")
        reset = None
        if isinstance(event, Answer):
            reset = self._learn(event)
        else:
            self.closure.reset(keep=0)  # what was said before is about another notion
        if reset or isinstance(event, Changed):
            self._asked.clear()
        self.log.append(event)
        return reset

    def undo(self) -> Event | None:
        """All is as if the last event, which is returned, had never been; None if there is none."""
        if not self.log:
            return None
        *before, last = self.log
        self.replay(before)
        return last

    def _learn(self, answer: Answer) -> Reset | None:
        i, j, y = answer.i, answer.j, answer.y
        if not (0 <= i < len(self.X) and 0 <= j < len(self.X)) or i == j or y not in (1, 0, -1):
            raise ValueError(f"an answer is about two of {len(self.X)} items, with y 1, -1 or 0, got {answer}")
        self._unsure.pop(either(i, j), None)
        if y == 0:
            self._unsure[either(i, j)] = len(self.log)
            return None
        if self.tracker.__sklearn_is_fitted__():
            p = float(self.tracker.mixture_proba(self.X[[[i, j]]])[0, 1])
            self._foreseen.append(((p >= 0.5) == (y > 0), y))
            self.running.add([0.0 if p >= 0.5 else 2.0], [1.0], [0.0], [y], [p])  # as if the threshold were 1
        self._teach(self.tracker.partial_fit, [(i, j, y)])
        self._asked.add(either(i, j))
        if not self.implied:
            return None
        reset = self.closure.answer(i, j, y)
        self._teach(self._imply, self.closure.derived(DERIVED))
        return reset

    def _imply(self, pairs: Array, y: list[int]) -> None:
        """At half the weight of an answer: implied pairs say less."""
        self.tracker.partial_fit_implied(pairs, y, np.full(len(y), 0.5))

    def _teach(self, learn: Callable[[Array, list[int]], Any], answers: list[Any]) -> None:
        if answers:
            learn(self.X[[[i, j] for i, j, _ in answers]], [y for _, _, y in answers])

    # Questions

    def question(self) -> Pair | None:
        """The numbers of two items to ask about; None if all pairs are answered."""
        return self._questions.ask(self.seed, len(self.log), self._asked, self._unsure)

    # What has been learned

    def progress(self) -> Progress:
        """Where the session stands."""
        answers = [event for event in self.log if isinstance(event, Answer)]
        groups, said = self.groups(), [y for _, y in self._foreseen]
        return Progress(
            similar=sum(answer.y > 0 for answer in answers),
            different=sum(answer.y < 0 for answer in answers),
            unsure=len(self._unsure),
            implied=implied_pairs(self.closure, ((answer.i, answer.j) for answer in answers if answer.y)),
            right=sum(right for right, _ in self._foreseen),
            foreseen=len(self._foreseen),
            frequent=max(said.count(1), said.count(-1)),
            groups=len(groups),
            placed=sum(map(len, groups)),
        )

    def groups(self) -> list[list[int]]:
        """Groups that are known apart from one another, the largest first; items in none have yet to be placed."""
        return groups_apart(self.closure)

    def relevance(self) -> Array:
        """Each feature's share of the diagonal of the metric, in units of the features' own sizes."""
        if not self.tracker.__sklearn_is_fitted__():
            return np.zeros(self.X.shape[1])
        diagonal = self.tracker.get_metric().M.diagonal()
        return diagonal / (diagonal.sum() or 1.0)
