"""Algorithm 1, OCELAD: a convex combination of black-box online learners, for any convex loss.

    theta_t = sum_I p_t(I) theta_t(I),        p_t(I) = w_t(I) / sum_I w_t(I).

It knows nothing of metrics, of dyadic intervals or of how the weights come about: the ensemble has four verbs,
and the rule for the weights sees only a vector of losses. It is a learner itself, so it nests.
"""

from __future__ import annotations

import copy
from typing import Any, Generic

import numpy as np

from .checked_parts import combiner
from .interrupt import hold_interrupts
from .protocols import Array, E, Ensemble, Order, Weights, check_order, check_part


class Ocelad(Generic[E]):
    """Strongly adaptive tracking with an ensemble of online learners.

    Parameters
    ----------
    ensemble
        What to combine, e.g. ``Rice(spawn)``, ``Pool(learners)``, ``Union(...)``.
    weights
        How to combine it, e.g. ``OceladWeights()`` (the paper's), ``FixedShare()``.
    order
        When the loss that the weights see is taken: ``"before"`` the learners see it, as the analysis assumes, or
        ``"after"``, as the paper's listing says. None leaves that to the weights, which mostly want it before.

    Examples
    --------
    >>> from ocelad import FixedShare, GradientDescent, Rice, on_intervals
    >>> class Distance:  # |estimate - target|, a convex loss with its subgradient
    ...     def __init__(self, target): self.target = target
    ...     def __call__(self, estimate): return abs(float(estimate[0]) - self.target)
    ...     def gradient(self, estimate): return np.sign(estimate - self.target)
    >>> tracker = Ocelad(Rice(on_intervals(GradientDescent, np.zeros(1), step=1.0)), FixedShare())
    >>> for target in [0.0] * 300 + [5.0] * 300:
    ...     tracker.update(Distance(target))
    >>> abs(float(tracker.estimate[0]) - 5.0) < 0.5
    True
    """

    def __init__(self, ensemble: Ensemble[E], weights: Weights, order: Order | None = None) -> None:
        check_part(
            ensemble, Ensemble, "ensemble", "an ensemble such as Pool(learners), with open, losses, update, mix"
        )
        check_part(weights, Weights, "weights", "a combiner such as FixedShare()")
        chosen: Order = getattr(weights, "order", "before") if order is None else order
        check_order(chosen)
        self.ensemble = ensemble  # line 1
        self.weights = weights
        self.rule = combiner(weights)  # the same, but of others' making: then it is checked
        self.order = chosen
        self.t = 0  # number of losses seen
        self.state: Array = np.zeros((0, len(weights.fields)))
        self.lengths: Array = np.zeros(0)
        self.losses: Array = np.zeros(0)  # each slot's latest loss; nan before its first
        self._open()  # line 2

    def __copy__(self) -> Ocelad[E]:
        """An independent copy."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, ensemble=copy.copy(self.ensemble), lengths=self.lengths.copy())
        return other

    @property
    def estimate(self) -> E:
        """The estimate that will be judged by the next loss."""
        return self.ensemble.mix(self.rule.mixture(self.state))  # line 6, eq. (Select)

    @property
    def probabilities(self) -> Array:
        """The normalised weight of every slot."""
        return self.rule.probabilities(self.state)

    @hold_interrupts()
    def update(self, loss: Any) -> None:
        """Take the next loss."""
        self.take(loss)

    def take(self, loss: Any) -> None:
        """``update``, where Ctrl-C is deferred already."""
        if not callable(loss):
            raise ValueError(f"loss must be a function of the estimate, got {loss!r}, which cannot be called")
        losses = self.ensemble.losses(loss)  # line 5
        if not np.isfinite(losses).all():
            raise ValueError(f"loss must be finite at every learner's estimate, got {losses}")
        if self.order == "after":
            self.ensemble.update(loss)  # line 4
            losses = self.ensemble.losses(loss)
        state = self.rule.update(self.state, losses, lambda: loss(self.estimate))  # line 7
        if hasattr(self.ensemble, "told"):  # there may be learners that begin anew where they lose to the mixture
            self.ensemble.told(losses, self.probabilities, self.rule.probabilities(state))
        if self.order == "before":
            self.ensemble.update(loss)  # line 4, once the losses are known
        self.state, self.losses = state, losses
        self.t += 1
        self._open()

    def _open(self) -> None:
        opening = self.ensemble.open(self.t)
        for slot, length in zip(opening.slots, opening.lengths, strict=True):
            if slot == len(self.lengths):
                self.lengths = np.append(self.lengths, length)
                self.losses = np.append(self.losses, np.nan)
            self.lengths[slot] = length
        self.state = self.rule.open(self.state, opening)
