"""RICE of COMID learners as one stack of arrays: the same four verbs as a list of black boxes, compiled.

Each learner is kept by its eigenpairs (`kernels.factored`). A block of comparisons runs in a single call when the
combiner has a compiled form; otherwise Algorithm 1 drives the verbs.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..ensemble import Rice, check_start
from ..intervals import length, opening
from ..learner import Array, Ensemble, Integers, Opening
from ..ocelad import Ocelad
from ..weights import FixedShare, OceladWeights
from .comid import ComidOnIntervals
from .divergences import Frobenius
from .estimate import Metric
from .kernels import codes
from .losses import Hinge, Logistic, MarginLoss, PairLoss, SquaredHinge
from .regularizers import NuclearNorm, Unregularized

_LOSSES: dict[type, int] = {Hinge: codes.HINGE, SquaredHinge: codes.SQUARED_HINGE, Logistic: codes.LOGISTIC}
_BLOCK = 4096  # comparisons per compiled call: Ctrl-C is heard in between


def rice(
    spawn: ComidOnIntervals, base: int, start: Literal["fresh", "continue"], loss: MarginLoss
) -> Ensemble[Metric]:
    """RICE of COMID learners: a stack where there are kernels for these parts, a list of black boxes elsewhere."""
    descent = spawn.descent
    if (
        type(loss) in _LOSSES
        and type(descent.regularizer) in (NuclearNorm, Unregularized)
        and type(descent.divergence) is Frobenius
    ):
        return StackedRice(spawn, base, check_start(start), loss)
    return Rice(spawn, base, start)


class StackedRice:
    """The retro-initialised ensemble of COMID learners on (M, mu), as a stack of arrays.

    It opens its levels and moves its learners as ``Rice`` over ``Comid`` does. A slot is a learner's place in the
    arrays; see `kernels.block` for how levels and slots are kept apart.
    """

    def __init__(self, spawn: ComidOnIntervals, base: int, start: str, loss: MarginLoss) -> None:
        origin, descent = spawn.origin, spawn.descent
        self.n, self.base = len(origin.M), base
        self.options = np.zeros(11)
        self.options[codes.STEP], self.options[codes.BASE] = spawn.step, base
        self.options[codes.STRENGTH] = descent.regularizer.strength
        self.options[codes.THRESHOLD_STEP], self.options[codes.CAPPED] = descent.threshold_step, descent.step_cap
        self.options[codes.GOES_ON], self.options[codes.LOSS] = start == "continue", _LOSSES[type(loss)]
        s, V = np.linalg.eigh(origin.M)
        multiple = s[-1] - s[0] <= 1e-14 * s[-1]  # of the identity: needs no rows
        rows: Integers = np.zeros(0, dtype=np.int64) if multiple else np.flatnonzero(s > 0)
        self.Q, self.S = np.zeros((1, 0, self.n)), np.zeros((1, 2))
        self.meta, self.losses_now = np.zeros((3, 1), dtype=np.int64), np.zeros(0)
        self._reserve(levels=1, rows=len(rows))
        self.Q[0, : len(rows)], self.S[0, : len(rows)] = V.T[rows], s[rows]
        self.S[0, -2:] = s[0] if multiple else 0.0, origin.mu
        self.meta[codes.RANK, 0] = len(rows)
        self.judged: PairLoss | None = None  # the loss whose projections are in Z

    @property
    def levels(self) -> int:
        return int(self.meta[codes.CLOCK, 1])

    def _reserve(self, levels: int, rows: int) -> None:
        """Room for so many levels, and one more row than so many in each, keeping what there is."""
        slots, room = self.Q.shape[:2]
        more_slots = levels + 4 if levels + 2 > slots else slots
        more_room = min(self.n, max(8, 2 * room, rows + 1)) if min(rows + 1, self.n) > room else room
        Q, S = np.zeros((more_slots, more_room, self.n)), np.zeros((more_slots, more_room + 2))
        Q[:slots, :room], S[:slots, :room], S[:slots, -2:] = self.Q, self.S[:, :-2], self.S[:, -2:]
        meta = np.zeros((3, more_slots), dtype=np.int64)
        meta[:, :slots] = self.meta
        # slot 0 is the origin's; slots not in use yet follow the spare one
        meta[codes.ORDER, slots - 1 : more_slots - 1] = np.arange(slots, more_slots)
        losses = np.full(more_slots, np.nan)
        losses[: len(self.losses_now)] = self.losses_now
        self.Q, self.S, self.meta, self.losses_now = Q, S, meta, losses
        self.Z = np.zeros((more_slots, more_room + 2))
        self.work = np.zeros((4 + 2 * more_room, max(more_room, more_slots)))
        self.index = np.zeros(more_room, dtype=np.int64)

    def _make_room(self, t: int) -> None:
        """So that the step after which the levels of time t open fits into the arrays."""
        rows = max((int(self.meta[codes.RANK, slot]) for slot in self.meta[codes.ORDER, : self.levels]), default=0)
        self._reserve(max(self.levels, opening(self.base + t, self.base)), rows)

    # The four verbs

    def open(self, t: int) -> Opening:
        from .kernels import block

        count = opening(self.base + t, self.base)
        if not block.room_for(count, self.Q, self.meta):
            self._make_room(t)
        block.shift(self.Q, self.S, self.meta, count, self.options[codes.GOES_ON] > 0)
        self.meta[codes.CLOCK, 0] = t
        return Opening(t, tuple(range(count)), tuple(float(length(level, self.base)) for level in range(count)))

    def losses(self, loss: PairLoss) -> Array:
        from .kernels import block

        block.judge(loss.u, float(loss.y), self.Q, self.S, self.meta, self.losses_now, self.Z, self.options)
        self.judged = loss
        return self.losses_now[: self.levels].copy()

    def update(self, loss: PairLoss) -> None:
        from .kernels import block

        if self.judged is not loss:
            self.losses(loss)
        self.judged = None
        block.learn(
            loss.u,
            float(loss.y),
            self.Q,
            self.S,
            self.meta,
            self.losses_now,
            self.Z,
            self.work,
            self.index,
            self.options,
        )

    def mix(self, p: Array) -> Metric:
        slots = self.meta[codes.ORDER, : self.levels]
        ranks, sigma = self.meta[codes.RANK, slots], self.S[slots, -2]
        rows = np.concatenate([self.Q[slot, :rank] for slot, rank in zip(slots, ranks, strict=True)])
        extra = np.concatenate(
            [w * (self.S[slot, :rank] - rest) for w, slot, rank, rest in zip(p, slots, ranks, sigma, strict=True)]
        )
        M = (rows.T * extra) @ rows + float(p @ sigma) * np.eye(self.n)
        return Metric((M + M.T) / 2, float(p @ self.S[slots, -1]))

    # All of Algorithm 1 in one call

    def compiles(self, ocelad: Ocelad[Metric]) -> bool:
        """Whether the whole loop of this tracker has a compiled form; if so, it is set up for it."""
        rule = ocelad.weights
        if ocelad.order != "before":
            return False
        if type(rule) is FixedShare:
            self.options[codes.RULE] = codes.FIXED_SHARE
            self.options[codes.RATE], self.options[codes.SHARE] = rule.rate, rule.share
        elif type(rule) is OceladWeights:
            self.options[codes.RULE] = codes.OCELAD_MEAN if rule.regret == "mean" else codes.OCELAD_MIXTURE
            self.options[codes.RESET] = rule.reset
        else:
            return False
        return True

    def run(self, ocelad: Ocelad[Metric], u: Array, y: Array) -> None:
        """Learn a block of comparisons, as ``ocelad.update`` would one by one."""
        from .kernels import block

        done = 0
        while done < len(u):
            fields = ocelad.state.shape[1]
            state = np.zeros((len(self.losses_now), fields))
            state[: len(ocelad.state)] = ocelad.state
            done += block.run(
                u[done : done + _BLOCK],
                y[done : done + _BLOCK],
                self.Q,
                self.S,
                self.meta,
                state,
                self.losses_now,
                self.Z,
                self.work,
                self.index,
                self.options,
            )
            levels, ocelad.t = self.levels, int(self.meta[codes.CLOCK, 0])
            ocelad.state, ocelad.losses = state[:levels], self.losses_now[:levels].copy()
            if levels != len(ocelad.lengths):
                ocelad.lengths = np.array([float(length(level, self.base)) for level in range(levels)])
            if done < len(u) and not block.room_for(
                opening(self.base + ocelad.t + 1, self.base), self.Q, self.meta
            ):
                self._make_room(ocelad.t + 1)
