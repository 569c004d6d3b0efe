"""Snapshots of what a pool has besides the levels of RICE: fixed experts, calibrations, and replayed comparisons.

The latter are kept in single precision. What comes back is checked in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import platt
from ..protocols import Array
from . import buffers
from .checks import take
from .kernels import layout
from .kernels.replay import LIGHTEST, LIMIT, SHORT_STEPS
from .protocol import Arrays

if TYPE_CHECKING:
    from .stack_engine import StackEngine

NAMES = ("fixed", "calibration", "replayed", "stored", "metrics", "ring")
"""Loss and log weight of fixed experts; scalings; numbers of replayed experts, and of comparisons that they have
been given; L, average and moment of each; those comparisons, with their labels in the last column."""

_INTEGERS = (layout.STEPS, layout.START, layout.ZERO)
_ROUNDING = 1e-6
_LARGEST = 1e15  # of a number that steps of bounded size lead to


def arrays(engine: StackEngine) -> Arrays:
    """What has been learned."""
    stack, fixed, rows = engine.stack, engine.fixed, _rows(engine, int(engine.stack.header[layout.STORED]))
    metrics = np.stack([stack.L, stack.average, stack.moment]).reshape(-1, engine.recipe.n)
    return {
        "fixed": np.column_stack([stack.losses[:fixed], stack.combiner[:fixed, layout.LOG_WEIGHT]]),
        "calibration": stack.calibration[: layout.LEVEL + engine.levels].copy(),
        "replayed": stack.numbers.copy(),
        "stored": stack.header[[layout.STORED]],
        "metrics": metrics,
        "ring": np.column_stack([stack.ring[:rows], stack.labels[:rows]]),
    }


def _rows(engine: StackEngine, stored: int) -> int:
    return min(stored, engine.buffers.pool[1])


def restore(engine: StackEngine, t: int, learned: Arrays) -> None:
    """Check the arrays of a snapshot, and take them over; levels and their weights have been."""
    stack, fixed, levels, n = engine.stack, engine.fixed, engine.levels, engine.recipe.n
    single, replayed = buffers.SINGLE, len(stack.settings)
    stored = int(take(learned, "stored", (1,), np.int64)[0])
    if not 0 <= stored <= t:
        raise ValueError(f"stored must be from 0 to {t}, got {stored}")
    rows = _rows(engine, stored)
    table = learned["fixed"]
    if t > 0 or table.shape != (fixed, 2):
        take(learned, "fixed", (fixed, 2))
    if fixed and t > 0 and not (table[:, 0].min() >= 0.0 and table[:, 1].max() <= 1.0):
        raise ValueError("fixed must have losses >= 0 and logarithms of weights")
    total = np.exp(np.append(table[:, 1], engine.state[fixed:, 0])).sum()
    if not abs(total - 1.0) <= _ROUNDING:
        raise ValueError("the weights are not those to which GroupedShare can come")
    calibration = take(learned, "calibration", (layout.LEVEL + levels, platt.PARAMETERS))
    mm, m, one = calibration[:, platt.CURVATURE_MM :].T
    least = [platt.LEAST_SLOPE] * layout.EUCLID + [0.0] * (len(calibration) - layout.EUCLID)
    with np.errstate(over="ignore"):
        definite = (mm >= 0.0) & (one >= 0.0) & (m * m <= mm * one * (1.0 + _ROUNDING) + _ROUNDING)
    if not (definite.all() and (calibration[:, platt.SLOPE] >= least).all()):
        raise ValueError("calibration must have slopes >= 0 and curvatures that are positive semi-definite")
    _check_size("calibration", calibration[:, : platt.SHIFT + 1])
    numbers = take(learned, "replayed", (replayed, layout.NUMBERS))
    integers = numbers[:, _INTEGERS]
    possible = (integers == np.floor(integers)).all() and (integers >= 0.0).all()
    if not (
        possible
        and (integers <= [SHORT_STEPS * stored, stored, stored]).all()
        and (numbers[:, layout.SQUARE_B : layout.STEPS] >= 0.0).all()
    ):
        raise ValueError(f"replayed must have times from 0 to {stored}, and squares >= 0")
    if not ((numbers[:, layout.EXCESS] >= 0.0) & (numbers[:, layout.EXCESS] <= LIMIT)).all():
        raise ValueError(f"replayed must have excess losses from 0 to {LIMIT:g}")
    _check_size("replayed", numbers[:, : layout.SQUARE_B])
    metrics = take(learned, "metrics", (3 * replayed * layout.RANK, n), single)
    _check_size("metrics", metrics)
    ring = take(learned, "ring", (rows, n + 1), single)
    weights = np.abs(ring[:, n])
    if not ((weights >= single(LIGHTEST)) & (weights <= single(platt.HEAVIEST))).all():
        raise ValueError(f"ring must have labels of weights from {LIGHTEST:g} to {platt.HEAVIEST:g}")
    engine.buffers = engine.buffers.with_rows(stored)
    stack = engine.stack
    stack.header[layout.STORED] = stored
    stack.losses[:fixed], stack.combiner[:fixed, layout.LOG_WEIGHT] = table.T
    stack.calibration[: len(calibration)], stack.numbers[:] = calibration, numbers
    stack.L[:], stack.average[:], stack.moment[:] = metrics.reshape(3, replayed, layout.RANK, n)
    stack.ring[:rows], stack.labels[:rows] = ring[:, :n], ring[:, n]
    stack.ring[rows:], stack.labels[rows:] = 0.0, 0.0


def _check_size(name: str, array: Array) -> None:
    if np.abs(array).max(initial=0.0) > _LARGEST:
        raise ValueError(f"{name} has numbers larger than {_LARGEST:g}")
