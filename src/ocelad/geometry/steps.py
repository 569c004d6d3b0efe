"""How long a COMID learner's steps are, and what it keeps after them."""

from __future__ import annotations

from dataclasses import dataclass

from .. import validation as validate


@dataclass(frozen=True)
class Step:
    """The step on an interval of length 1, and how the paper's rule is read.

    Parameters
    ----------
    size
        COMID's step on an interval is ``size / sqrt(length)``.
    threshold
        The threshold's step, as a factor of M's. The paper has 1.
    capped
        No step longer than the one that would bring the comparison's linearised loss to zero.
    max_rank
        How many directions a learner keeps after a step, the most important, where more would cost too much: the
        time of a step grows with the rank. ``discarded_`` says what is lost. None keeps all.

    Examples
    --------
    >>> Step(8.0).threshold
    0.1
    """

    size: float = 8.0
    threshold: float = 0.1
    capped: bool = False
    max_rank: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", validate.step(self.size))
        object.__setattr__(self, "threshold", validate.number(self.threshold, "threshold", positive=False))
        if not isinstance(self.capped, bool):
            raise ValueError(f"capped must be True or False, got {self.capped!r}")
        if self.max_rank is not None:
            object.__setattr__(self, "max_rank", validate.integer(self.max_rank, "max_rank"))

    @classmethod
    def of(cls, given: float | Step) -> Step:
        """A step that may have been given by its size alone."""
        return given if isinstance(given, Step) else cls(given)
