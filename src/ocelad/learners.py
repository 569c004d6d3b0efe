"""Base learners for vectors: gradient descent, AdaGrad, follow the regularised leader; and how to put one on every
dyadic interval.

    gradient descent    theta <- P(theta - step * g)
    AdaGrad             theta_i <- P(theta_i - step * g_i / sqrt(sum g_i^2))
    FTRL                theta = P(start - step * sum g / sqrt(sum |g|^2))

P projects onto the ball of the given radius around 0 (none by default). The last two adapt to the gradients they
see, so that their steps fall as 1/sqrt(t) by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .protocols import Array, DifferentiableLoss, Learner, is_number, snapshot


def _check(step: float, radius: float) -> None:
    if not (is_number(step) and step > 0 and math.isfinite(step)):
        raise ValueError(f"step must be positive and finite, got {step!r}")
    if not (is_number(radius) and radius > 0):
        raise ValueError(f"radius must be positive, got {radius!r}")


def _project(theta: Array, radius: float) -> Array:
    """P(theta), read-only; ``theta`` itself if it is inside, which the caller must own."""
    theta = np.asarray(theta, dtype=np.float64)
    if radius < math.inf:
        norm = math.sqrt(np.vdot(theta, theta))
        if norm > radius * (1 + 1e-14):  # what has been projected once stays as it is
            theta = np.asarray(theta * (radius / norm))
    theta.setflags(write=False)
    return theta


class GradientDescent:
    """Online gradient descent with a constant step.

    >>> class Square:
    ...     def gradient(self, theta): return 2 * theta
    >>> learner = GradientDescent(start=[1.0], step=0.25)
    >>> learner.update(Square())
    >>> learner.estimate
    array([0.5])
    """

    def __init__(self, start: ArrayLike, step: float, radius: float = math.inf) -> None:
        _check(step, radius)
        self.estimate = _project(np.array(start), radius)
        self.step, self.radius = step, radius

    def update(self, loss: DifferentiableLoss[Array]) -> None:
        self.estimate = _project(self.estimate - self.step * loss.gradient(self.estimate), self.radius)


class AdaGrad:
    """Gradient descent whose step shrinks, coordinate by coordinate, with the gradients seen."""

    def __init__(self, start: ArrayLike, step: float, radius: float = math.inf) -> None:
        _check(step, radius)
        self.estimate = _project(np.array(start), radius)
        self.step, self.radius = step, radius
        self.squares = np.zeros_like(self.estimate)

    def update(self, loss: DifferentiableLoss[Array]) -> None:
        g = loss.gradient(self.estimate)
        self.squares = self.squares + g * g
        move = np.divide(g, np.sqrt(self.squares), out=np.zeros_like(self.squares), where=self.squares > 0)
        self.estimate = _project(self.estimate - self.step * move, self.radius)


class FollowTheRegularizedLeader:
    """The minimiser of all linearised losses plus sqrt(sum |g|^2) |theta - start|^2 / (2 step).

    Lazy, where descent is greedy: every gradient counts alike, and the regularisation adapts to them.
    """

    def __init__(self, start: ArrayLike, step: float, radius: float = math.inf) -> None:
        _check(step, radius)
        self.start = snapshot(start)
        self.estimate = _project(self.start.copy(), radius)
        self.step, self.radius = step, radius
        self.total, self.squares = np.zeros_like(self.start), 0.0

    def update(self, loss: DifferentiableLoss[Array]) -> None:
        g = loss.gradient(self.estimate)
        self.total, self.squares = self.total + g, self.squares + float((g * g).sum())
        pull = self.step / math.sqrt(self.squares) if self.squares > 0 else 0.0
        self.estimate = _project(self.start - pull * self.total, self.radius)


@dataclass(frozen=True)
class on_intervals:
    """One learner per interval, its step ``step / sqrt(length)``: what `Rice` and `Restarted` ask for.

    Parameters
    ----------
    learner
        A class, or a function, that takes ``(start, step)``, and ``radius`` as a keyword if one is given.
    origin
        Where a learner starts that has no predecessor.
    step
        The step on an interval of length 1.
    radius
        Of the ball around 0 that estimates are projected to.
    divide
        Whether to divide by sqrt(length). A learner that adapts its steps by itself (`AdaGrad`,
        `FollowTheRegularizedLeader`) has its guarantee without; with it, its first step does not throw a good
        start away, but on a long interval it cannot go far.

    Examples
    --------
    >>> spawn = on_intervals(GradientDescent, origin=[0.0, 0.0], step=2.0)
    >>> spawn(16, None).step
    0.5
    """

    learner: Callable[..., Learner[Array]]
    origin: ArrayLike
    step: float
    radius: float = math.inf
    divide: bool = True

    def __post_init__(self) -> None:
        if not callable(self.learner):
            raise ValueError(f"learner must be a class, or a function of (start, step), got {self.learner!r}")
        object.__setattr__(self, "origin", snapshot(self.origin))

    def __call__(self, length: float, start: Array | None) -> Learner[Array]:
        limits = {} if self.radius == math.inf else {"radius": self.radius}
        step = self.step / math.sqrt(length) if self.divide else self.step
        return self.learner(self.origin if start is None else start, step, **limits)
