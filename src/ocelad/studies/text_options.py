"""How the study of a stream of texts is done, and the trackers that take part in it.

Texts are sparse: of n stems a comparison touches a dozen. What suits dense points of 25 dimensions is therefore
taken here to this kind of data, each for a reason:

- strength .2 / n: differences have mean square 1, spread over n stems, so that a gradient has eigenvalues of the
  order of 1 / n, and a penalty on the trace must be smaller than these;
- base 1024: a shorter memory has seen most stems hardly ever;
- start "continue", and step 64: a level keeps what the one before it has learned, at rates from 2 down to .2;
- origin 1: before it has learned anything a tracker measures as TF-IDF itself does;
- capped steps: no step longer than it takes to mend the comparison at hand, because texts differ much in how much
  they have in common;
- the threshold stands still: the scale of M says the same as the threshold, and one of them is enough;
- shares of .2 within the groups of a pool's experts and between them: a text is compared when it is new, and then
  again when it has just been learned. RICE is best at the former, experts that replay at the latter, so that the
  best one changes several times a text, and success at known texts must not silence those who know new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import validation as validate
from ..geometry import NuclearNorm, Step
from ..grouped_share import GroupedShare
from ..intervals import Intervals
from ..tracker import MetricTracker

RATES = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Of COMID at a fixed rate. With capped steps nothing changes beyond."""

SHARE = 0.2  # of their weight that a pool's experts, and its groups, give back at each comparison

NEVER = 2**40  # the length of an interval that does not end, with an exact root


@dataclass(frozen=True)
class TextStudy:
    """The options of a study of texts.

    Parameters
    ----------
    features
        How many stems to keep, the most frequent.
    first
        How many texts, the first ones, vocabulary and frequencies are learned from. None for all, as in the paper:
        no label enters, but which words will be frequent is known from the beginning.
    back
        With which of the latest texts of its own label, and of other ones, each text is compared, see
        `ocelad.data.adjacent`. The paper's tracker is given adjacent texts alone.
    window
        The share of the stream, at its end, that is embedded.
    strength
        Of the nuclear norm, times the number of features.
    rates
        Fixed rates to compare with.
    dimensions, k
        Of the embedding in which texts are classified, and how many neighbours vote.
    looks
        How often to look at the metric as it is tracked.
    """

    features: int = 194
    first: int | None = None
    back: tuple[int, ...] = (1, 8)
    window: float = 0.25
    strength: float = 0.2
    rates: tuple[float, ...] = RATES
    dimensions: int = 3
    k: int = 5
    looks: int = 200

    def __post_init__(self) -> None:
        for name, least in (("features", 3), ("dimensions", 2), ("k", 1), ("looks", 10)):
            validate.integer(getattr(self, name), name, least)
        if not 0 < self.window < 1:
            raise ValueError(f"window must lie between 0 and 1, got {self.window!r}")
        if self.first is not None and not self.first >= 1:
            raise ValueError(f"first must be None or an integer >= 1, got {self.first!r}")

    def trackers(self, n: int) -> dict[str, Callable[[], MetricTracker]]:
        """Who takes part, for n features: a pool, its RICE alone, the paper's, and COMID at each rate, all else as
        in RICE."""

        def set_up(tracker: MetricTracker, base: int = 1024, step: float = 64.0) -> MetricTracker:
            return tracker.set_params(
                regularizer=NuclearNorm(self.strength / n),
                base=Intervals(base, "continue"),
                step=Step(step, threshold=0.0, capped=True),
                origin=1.0,
            )

        def fixed(rate: float) -> Callable[[], MetricTracker]:
            return lambda: set_up(MetricTracker.rice(), NEVER, rate * NEVER**0.5)

        return {
            "learned": lambda: set_up(MetricTracker(weights=GroupedShare(SHARE, SHARE))),
            "learned_rice": lambda: set_up(MetricTracker.rice()),
            "learned_paper": MetricTracker.paper,
            **{f"comid_{rate:g}": fixed(rate) for rate in self.rates},
        }
