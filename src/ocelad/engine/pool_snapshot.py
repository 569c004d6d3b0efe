"""Snapshots of what a pool has besides the levels of RICE: fixed experts, calibrations, and replayed comparisons.

The latter are kept in single precision. What comes back is checked in full.
"""

from __future__ import annotations

import numpy as np

from .. import platt
from ..protocols import Array
from . import buffers
from .checks import take
from .kernels import layout
from .kernels.replay import LIGHTEST, LIMIT, SHORT_STEPS
from .protocol import Arrays

NAMES = ("fixed", "calibration", "replayed", "stored", "metrics", "ring")
"""Loss and log weight of fixed experts; scalings; numbers of replayed experts, and of comparisons that they have
been given; L, average and moment of each; those comparisons, with their labels in the last column."""

_INTEGERS = (layout.STEPS, layout.START, layout.ZERO)
_ROUNDING = 1e-6
_LARGEST = 1e15  # of a number that steps of bounded size lead to


def arrays(stack: layout.Stack, losses: Array, log_weights: Array, calibration: Array) -> Arrays:
    """What has been learned: by the replayed experts of a stack, and of all fixed ones the losses and weights."""
    rows = min(int(stack.header[layout.STORED]), len(stack.ring))
    return {
        "fixed": np.column_stack([losses, log_weights]),
        "calibration": calibration,
        "replayed": stack.numbers.copy(),
        "stored": stack.header[[layout.STORED]],
        "metrics": np.stack([stack.L, stack.average, stack.moment]).reshape(-1, stack.L.shape[2]),
        "ring": np.column_stack([stack.ring[:rows], stack.labels[:rows]]),
    }


def restore(
    memory: buffers.Buffers, t: int, learned: Arrays, fixed: int, of_levels: Array
) -> tuple[buffers.Buffers, Array, Array]:
    """Check the arrays of a snapshot, given the number of fixed experts and the logarithms of the levels' weights.

    Returned are buffers that have taken over what replayed experts have learned, ``fixed`` and ``calibration``.
    """
    stack, single = memory.stack, buffers.SINGLE
    long, width = stack.L.shape[2], stack.ring.shape[1]
    replayed = len(stack.settings)
    stored = int(take(learned, "stored", (1,), np.int64)[0])
    most = t if replayed else 0
    if not 0 <= stored <= most:
        raise ValueError(f"stored must be from 0 to {most}, got {stored}")
    rows = min(stored, memory.pool[1])
    table = take(learned, "fixed", (fixed, 2), finite=False)
    known = np.isfinite(table[:, 0]) & (table[:, 0] >= 0.0) if t > 0 else np.isnan(table[:, 0])
    if not (known.all() and (table[:, 1] <= 1.0).all()):
        raise ValueError("fixed must have losses >= 0 and logarithms of weights")
    if not abs(np.exp(np.append(table[:, 1], of_levels)).sum() - 1.0) <= _ROUNDING:
        raise ValueError("the weights are not those to which GroupedShare can come")
    calibration = take(learned, "calibration", (layout.LEVEL + len(of_levels), platt.PARAMETERS))
    if not fixed and (calibration[layout.EUCLID] != platt.unscaled(1)).any():
        raise ValueError("calibration is that of a Euclidean distance, which is not there")
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
    metrics = take(learned, "metrics", (3 * replayed * layout.RANK, long), single)
    _check_size("metrics", metrics)
    ring = take(learned, "ring", (rows, width + 1), single)
    weights = np.abs(ring[:, width])
    if not ((weights >= single(LIGHTEST)) & (weights <= single(platt.HEAVIEST))).all():
        raise ValueError(f"ring must have labels of weights from {LIGHTEST:g} to {platt.HEAVIEST:g}")
    memory = memory.with_rows(stored)
    stack = memory.stack
    stack.header[layout.STORED], stack.numbers[:] = stored, numbers
    stack.L[:], stack.average[:], stack.moment[:] = metrics.reshape(3, replayed, layout.RANK, long)
    stack.ring[:rows], stack.labels[:rows] = ring[:, :width], ring[:, width]
    stack.ring[rows:], stack.labels[rows:] = 0.0, 0.0
    return memory, table, calibration


def _check_size(name: str, array: Array) -> None:
    if np.abs(array).max(initial=0.0) > _LARGEST:
        raise ValueError(f"{name} has numbers larger than {_LARGEST:g}")
