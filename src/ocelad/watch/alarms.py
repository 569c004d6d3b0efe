"""Change alarms: has the notion of similarity jumped, or does it drift faster than a long memory can bear?

Both are Page's CUSUM test: a sum of log-likelihood ratios that never falls below zero,

    S <- max(0, S + log f_1(x) / f_0(x)),        alarm when S > log(steps).

jump     x is the log loss of a comparison, before it was learned, in standard deviations from its recent mean;
         f_0 is N(0, 1), and f_1 is N(0.5, 1). Where no losses are given, x is whether it was judged wrongly; f_0
         is the recent error rate, and f_1 an error rate with twice its odds.
drift    x is how much more the longest memory lost than shorter ones, in units of its root mean square, cut off at
         3; f_0 is N(0, 1), and f_1 is N(0.2, 1). Where nothing drifts, longer is better: x < 0 in the mean.
         Of a pool, the windows that slide are compared, the longest with the shortest: nothing but their length
         tells them apart. Of RICE alone, the longest level with the shorter ones, mixed by their weights.

If f_0 were known and true, false alarms would be at least ``steps`` comparisons apart in the mean (Lorden 1971):
for that it is enough that the ratio is 1 in the mean, or less, whatever came before. Of drifts that holds for x of
any distribution with mean square 1 and a mean of -0.023 or less: exp(y) <= 1 + y + 0.62 y^2 for y = 0.2 x <= 0.6.
Only ratios enter, so nothing depends on the scale of features or losses, and memory is bounded.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from .. import validation as validate
from ..engine.windows import PARTS
from ..protocols import is_number

SHIFT = 0.2
"""The drift that f_1 speaks of: less than that hardly costs anything."""

RISE = 0.5
"""The rise of the log loss that f_1 speaks of, in standard deviations."""

FARTHEST = 3.0
"""How many standard deviations one comparison may count: losses have long tails, and one is no evidence."""

EARLY = 32
"""It takes this many values to know a spread."""

NEEDED = {"kind", "length", "weight", "loss"}

REACH = 2
"""How many of its lengths a memory may reach back: a level is initialised by others, a window unlearns slowly."""


@dataclass(frozen=True)
class Event:
    """What has happened, when it was noticed and when it seems to have begun, in comparisons seen.

    ``strength`` is, for a jump, how much the error rate has risen, and for a drift, by how many root mean squares
    the longest memory loses to shorter ones, both since ``onset``.
    """

    t: int
    kind: Literal["jump", "drift"]
    onset: int
    strength: float


class Alarm(Protocol):
    """Takes one comparison at a time: whether it was judged wrongly, and the tracker's ``experts_`` after it."""

    def update(self, wrong: bool, experts: Any = None, /) -> Event | None: ...


@dataclass
class _ForgettingMean:
    """A mean that forgets: of everything at first, later of about the last ``memory`` values."""

    memory: int
    total: float = 0.0
    count: float = 0.0

    @property
    def mean(self) -> float:
        return self.total / self.count

    def add(self, x: float) -> None:
        keep = 1.0 - 1.0 / self.memory if self.count >= self.memory else 1.0
        self.total, self.count = keep * self.total + x, keep * self.count + 1.0


@dataclass
class _Cusum:
    """Page's sum, and what it has summed since it last was zero (the latest of it, if that was long ago)."""

    limit: float
    memory: int

    def __post_init__(self) -> None:
        self.sum = 0.0
        self.values: deque[tuple[int, float]] = deque(maxlen=self.memory)

    def add(self, t: int, x: float, ratio: float) -> bool:
        if self.sum == 0.0:
            self.values.clear()
        self.sum = max(0.0, self.sum + ratio)
        self.values.append((t, x))
        return self.sum > self.limit

    def rise(self, usual: float) -> tuple[int, float]:
        """Since when values have most likely been higher than usual, and by how much."""
        times, values = zip(*reversed(self.values), strict=True)
        excess, count = np.cumsum(np.array(values) - usual), np.arange(1, len(values) + 1)
        best = int(np.argmax(excess / np.sqrt(count)))
        return times[best], float(excess[best] / count[best])


class ChangeAlarm:
    """Tells jumps and drifts of the similarity function, one comparison at a time.

    Parameters
    ----------
    steps
        How rare false alarms are to be: at least this number of comparisons apart on average, if f_0 were known.
        Learned on the way, they are rarer still (docs/alarms.md has figures).
    odds
        The growth of the odds of an error that a jump is tested for, where no losses are given.
    memory
        The number of comparisons over which the usual error rate and loss are estimated.

    Examples
    --------
    >>> alarm, rng = ChangeAlarm(), np.random.default_rng(0)
    >>> wrong = rng.random(2000) < np.where(np.arange(2000) < 1500, 0.1, 0.4)
    >>> events = [event for event in map(alarm.update, wrong) if event]
    >>> [(event.t, event.kind, event.onset, round(event.strength, 2)) for event in events]
    [(1542, 'jump', 1523, 0.51)]
    """

    def __init__(self, *, steps: float = 10_000.0, odds: float = 2.0, memory: int = 512) -> None:
        for name, value in (("steps", steps), ("odds", odds)):
            if not (is_number(value) and 1 < value < math.inf):
                raise ValueError(f"{name} must be a finite number > 1, got {value!r}")
        self.steps, self.odds, self.memory = float(steps), float(odds), validate.integer(memory, "memory", least=2)
        self.t = 0  # comparisons seen
        self._begin(0)

    def _begin(self, since: int) -> None:
        """A new regime: what was usual before is no measure of it."""
        self._since = since
        self._errors = _ForgettingMean(self.memory, 1.0, 2.0)  # nothing is known yet: one half
        self._losses, self._loss_square = _ForgettingMean(self.memory), _ForgettingMean(self.memory)
        self._jump = _Cusum(math.log(self.steps), self.memory)
        self._weights: list[float] = []  # those that judge the next comparison
        self._begin_drift()

    def _begin_drift(self) -> None:
        self._square, self._drift = _ForgettingMean(self.memory), _Cusum(math.log(self.steps), self.memory)

    def state(self) -> dict[str, Any]:
        """Its state as JSON values, for another alarm with the same parameters to ``restore``."""
        means = {name: [mean.total, mean.count] for name, mean in self._means().items()}
        sums = {name: [c.sum, list(c.values)] for name, c in (("jump", self._jump), ("drift", self._drift))}
        return {"t": self.t, "since": self._since, "weights": self._weights, **means, **sums}

    def _means(self) -> dict[str, _ForgettingMean]:
        losses = {"losses": self._losses, "loss_square": self._loss_square}
        return {"errors": self._errors, **losses, "square": self._square}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on as the alarm whose ``state`` this is."""
        self._begin(state["since"])
        self.t, self._weights = state["t"], list(state["weights"])
        for name, mean in self._means().items():
            mean.total, mean.count = state[name]
        for cusum, (total, values) in ((self._jump, state["jump"]), (self._drift, state["drift"])):
            cusum.sum = total
            cusum.values.extend((t, x) for t, x in values)

    def update(self, wrong: bool, experts: Any = None, loss: float | None = None) -> Event | None:
        """Take one comparison: whether it was judged wrongly, ``tracker.experts_`` after it was learned, and what
        it cost, the log loss of ``tracker.mixture_proba`` before.

        Without ``experts`` there are alarms for jumps only; without ``loss`` they are for jumps of the error rate.
        """
        if not isinstance(wrong, (bool, int, np.bool_, np.integer)) or wrong not in (0, 1):
            raise ValueError(f"wrong must be True or False, got {wrong!r}")
        if experts is not None and not set(np.asarray(experts).dtype.names or ()) >= NEEDED:
            raise ValueError(f"experts must be a tracker's experts_, got {experts!r}")
        if loss is not None and not (is_number(loss) and math.isfinite(loss)):
            raise ValueError(f"loss must be None or a finite number, got {loss!r}")
        self.t += 1
        usual, x = self._errors.mean, float(wrong)
        ratio = self._error_ratio(x, usual) if loss is None else self._loss_ratio(float(loss))
        if self._jump.add(self.t, x, ratio):
            event = Event(self.t, "jump", *self._jump.rise(usual))
            self._begin(self.t)
            return event
        self._errors.add(x)
        if loss is not None:
            self._losses.add(float(loss))
            self._loss_square.add(float(loss) ** 2)
        return None if experts is None else self._judge_memories(experts)

    def _error_ratio(self, wrong: float, usual: float) -> float:
        higher = self.odds * usual / (1.0 - usual + self.odds * usual)
        return math.log(higher / usual) if wrong else math.log((1.0 - higher) / (1.0 - usual))

    def _loss_ratio(self, loss: float) -> float:
        if self._losses.count < EARLY:
            return 0.0
        mean = self._losses.mean
        variance = self._loss_square.mean - mean * mean
        if not variance > 0.0:
            return 0.0
        z = min((loss - mean) / math.sqrt(variance), FARTHEST)
        return RISE * (z - RISE / 2)

    def _judge_memories(self, experts: Any) -> Event | None:
        weights, self._weights = self._weights, experts["weight"].tolist()
        x = self._excess(experts, weights)
        if x is None:
            return None
        self._square.add(x * x)
        if self._square.count < EARLY or x == 0.0:  # too early to tell what is much
            return None
        z = min(max(x / math.sqrt(self._square.mean), -FARTHEST), FARTHEST)
        if not self._drift.add(self.t, z, SHIFT * (z - SHIFT / 2)):
            return None
        event = Event(self.t, "drift", *self._drift.rise(0.0))
        self._since = self.t
        self._begin_drift()
        return event

    def _excess(self, experts: Any, weights: list[float]) -> float | None:
        """How much more the longest memory that knows nothing of an earlier regime loses than shorter ones."""
        length, loss, kind = (experts[name].tolist() for name in ("length", "loss", "kind"))
        judged = [j for j in range(len(weights)) if math.isfinite(loss[j])]  # in plain Python: there are few
        windows = [j for j in judged if kind[j] == "replay"][: len(PARTS)]  # those that slide come first
        judged = windows or [j for j in judged if kind[j] == "rice"] or judged
        reach = 1 if windows and self._since == 0 else REACH  # at first there is nothing to unlearn
        longest = max((length[j] for j in judged if reach * length[j] <= self.t - self._since), default=0.0)
        shorter = [j for j in windows[:1] or judged if length[j] < longest]
        mass = sum(weights[j] for j in shorter)
        if not mass > 0:
            return None
        at_length = [loss[j] for j in judged if length[j] == longest]
        return sum(at_length) / len(at_length) - sum(weights[j] * loss[j] for j in shorter) / mass


@dataclass
class RiverAlarm:
    """A drift detector of river, ADWIN unless another is given, on the errors. ``pip install "ocelad[river]"``.

    ADWIN also notices when errors become rarer, as they do while a tracker learns; only rises are events.
    """

    detector: Any = None
    t: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.detector is None:
            try:
                from river import drift
            except ImportError as error:
                raise ImportError('this alarm needs river: pip install "ocelad[river]"') from error
            self.detector = drift.ADWIN()  # type: ignore[no-untyped-call,unused-ignore]

    def update(self, wrong: bool, experts: Any = None) -> Event | None:  # noqa: ARG002
        """Take one comparison: whether it was judged wrongly."""
        self.t += 1
        before = float(getattr(self.detector, "estimation", 0.0))
        self.detector.update(int(wrong))
        if not self.detector.drift_detected:
            return None
        rise = float(getattr(self.detector, "estimation", 1.0)) - before
        onset = self.t - int(getattr(self.detector, "width", 0))
        return Event(self.t, "jump", onset, rise) if rise > 0 else None
