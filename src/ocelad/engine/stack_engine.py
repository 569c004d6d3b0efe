"""Algorithm 1 over RICE of COMID learners, compiled: a stack of learners in flat buffers (`engine.buffers`).

A learner is kept by its eigenpairs, for many features by a dictionary (`kernels.dictionary`). Under `GroupedShare`
the levels are calibrated, and have others beside them: experts that replay windows of comparisons, and the
Euclidean distance (`kernels.pool`). Where the combiner has no compiled form, its weights are updated in Python, a
comparison at a time, and all else is the same.
"""

from __future__ import annotations

import copy
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit

from .. import platt
from ..checked_parts import combiner
from ..compiled import announce, without_garbage_collection
from ..ensemble import dyadic_opening
from ..geometry.comid import Recipe
from ..geometry.losses import Hinge, Logistic, MarginLoss, SquaredHinge
from ..geometry.metric import Metric
from ..geometry.quadratic import Dense, Parts
from ..grouped_share import GroupedShare
from ..interrupt import hold_interrupts
from ..intervals import active, length
from ..platt import Decision
from ..protocols import Array, Integers, Opening, Weights
from ..weights import FixedShare, OceladWeights
from . import snapshot, windows
from .buffers import COLUMNS, SLOTS, Buffers
from .gathered import Gathered
from .kernels import layout, run
from .landmarks import LANDMARKS, WIDTHS, FeatureMaps, joined
from .mixture import columns, weighted_sum
from .protocol import Arrays, Judgement
from .rows import select
from .trace import EXPERT, Trace

BLOCK = 4096  # comparisons per compiled call: Ctrl-C is handled in between
DICTIONARY = 100  # from this many features on, rotating the columns themselves costs more than a dictionary;
DICTIONARY_FULL = 400  # and from this many on where nothing keeps the rank down
ORTHONORMAL = 1e-14  # columns farther than this from orthonormal are made orthonormal again
LOSSES: dict[type, int] = {Hinge: layout.HINGE, SquaredHinge: layout.SQUARED_HINGE, Logistic: layout.LOGISTIC}

Nonlinear = Literal["common", "features"]
"""Whether features of points have a common unit of length, or one each, when they are mapped."""

_EMPTY: Array = np.zeros(0)
_DENSE: Integers = np.zeros(0, dtype=np.int64)
_NO_TABLE: Array = np.zeros((0, 0))


COMPILED_RULES = (FixedShare, OceladWeights, GroupedShare)
"""Combiners that kernels know; a class derived from one may do otherwise, and runs as it is written."""


class StackEngine:
    """The retro-initialised ensemble of COMID learners on (M, mu), under any combiner; or a pool with it."""

    def __init__(
        self,
        recipe: Recipe,
        loss: MarginLoss,
        weights: Weights,
        memory: int | None = None,
        nonlinear: Nonlinear | None = None,
    ) -> None:
        self.recipe, self.loss, self.weights = recipe, loss, weights
        self.memory, self.nonlinear = memory, nonlinear
        self.gathered = Gathered() if nonlinear else None
        self._maps: Array = _EMPTY
        self._known: dict[int, tuple[list[str], Array]] = {}  # by the number of levels: copies share it
        self.pooled = isinstance(weights, GroupedShare)
        self.has_fixed = self.pooled and recipe.n <= windows.WIDE
        table = windows.settings(memory if self.has_fixed else None)
        maps = (0, 0, 0)
        if nonlinear and memory is not None:
            more = windows.map_settings(memory)
            maps = len(WIDTHS), LANDMARKS, len(more)
            table = np.concatenate([table, *[more] * len(WIDTHS)])
        strength = recipe.descent.regularizer.strength
        self.dictionary = recipe.n >= (DICTIONARY if strength > 0.0 else DICTIONARY_FULL)
        self.max_rank = recipe.n if recipe.max_rank is None else min(recipe.max_rank, recipe.n)
        s, V, sigma = np.zeros(0), np.zeros((recipe.n, 0)), recipe.origin
        if not isinstance(sigma, float):
            s, V = np.linalg.eigh(sigma)
            sigma, s, V = 0.0, s[s > 0], V[:, s > 0]
        columns = max(COLUMNS, min(recipe.n, len(s) + 1))
        pool = len(table), memory or 0 if len(table) else 0, len(table) + self.has_fixed, *maps
        self.buffers = Buffers(recipe.n, recipe.base, SLOTS, columns, self.dictionary, pool).with_experts(table)
        self._write_options()
        self._write_origin(sigma, s, V)
        self._python_state: Array | None = None
        if type(weights) not in COMPILED_RULES:
            self._python_state = np.zeros((0, len(weights.fields)))
        self.rule = combiner(weights)
        self.state = self.rule.open(np.zeros((0, len(weights.fields))), self._first_opening())

    def _first_opening(self) -> Opening:
        _, lengths = self._kinds_and_lengths(1)
        return Opening(0, tuple(range(len(lengths))), tuple(lengths.tolist()), tuple(self._groups(1)))

    @property
    def fixed(self) -> int:
        """The number of experts that are not levels."""
        return int(self.buffers.integers[layout.FIXED])

    def _groups(self, levels: int) -> list[int]:
        """The group of each expert: those that replay, the Euclidean distance, the levels, those of each map."""
        groups = [0, *range(3, 3 + len(self._blocks) - 1)]
        replayed = [group for group, own in zip(groups, self._blocks, strict=True) for _ in range(*own)]
        return [*replayed, *[1] * (self.fixed - len(replayed)), *[2] * levels]

    @property
    def _blocks(self) -> list[tuple[int, int]]:
        """The first expert and the end of those that replay the given features, and of those of each map."""
        *_, maps, _, per_map = self.buffers.pool
        starts = [len(self.stack.settings) - k * per_map for k in range(maps, -1, -1)]
        return list(pairwise([0, *starts]))

    def _kinds_and_lengths(self, levels: int) -> tuple[list[str], Array]:
        """What each expert is, and its time-scale."""
        if levels not in self._known:
            kinds = [("replay", "euclid", "rice", "kernel")[min(group, 3)] for group in self._groups(levels)]
            fixed = [*self.stack.settings[:, layout.WINDOW], *[np.inf] * self.has_fixed]
            lengths = np.array(fixed + [float(length(level, self.recipe.base)) for level in range(levels)])
            lengths.setflags(write=False)
            self._known[levels] = kinds, lengths
        return self._known[levels]

    def __copy__(self) -> StackEngine:
        return self._with(copy.copy(self.buffers))

    def __deepcopy__(self, _: Any) -> StackEngine:
        return self.__copy__()

    def __reduce__(self) -> Any:
        """A pickle has what a file has, and is checked like one."""
        parts = self.recipe, self.loss, self.weights, self.memory, self.nonlinear
        return _unpickled, (parts, self.t, self.snapshot())

    def _with(self, buffers: Buffers) -> StackEngine:
        other = object.__new__(StackEngine)
        other.__dict__.update(self.__dict__, buffers=buffers)
        return other

    # State

    @property
    def stack(self) -> layout.Stack:
        """The arrays within the buffers."""
        return self.buffers.stack

    @property
    def t(self) -> int:
        return int(self.buffers.integers[layout.TIME])

    @property
    def levels(self) -> int:
        return int(self.buffers.integers[layout.LEVELS])

    def _write_options(self) -> None:
        recipe, descent, options = self.recipe, self.recipe.descent, self.stack.options
        options[layout.STEP], options[layout.STRENGTH] = recipe.step, descent.regularizer.strength
        options[layout.THRESHOLD_STEP], options[layout.CAPPED] = descent.threshold_step, descent.step_cap
        options[layout.BASE], options[layout.CONTINUES] = recipe.base, recipe.start == "continue"
        options[layout.LOSS], options[layout.MAX_RANK] = LOSSES[type(self.loss)], self.max_rank
        rule, options[layout.RULE] = self.weights, layout.NO_RULE
        if type(rule) is FixedShare:
            options[layout.RULE : layout.SHARE + 1] = layout.FIXED_SHARE, rule.rate, rule.share
        elif type(rule) is OceladWeights:
            mean = rule.regret == "mean"
            options[layout.RULE] = layout.OCELAD_MEAN if mean else layout.OCELAD_MIXTURE
            options[layout.RESET] = rule.reset
        elif type(rule) is GroupedShare:
            options[layout.RULE], options[layout.SHARE] = layout.GROUPED_SHARE, rule.share
            options[layout.BETWEEN] = rule.between

    def _write_origin(self, sigma: float, s: Array, V: Array) -> None:
        """Slot 0, and level 0, which starts from it."""
        stack, rank, n = self.stack, len(s), self.recipe.n
        stack.columns[:2, :, :rank], stack.eigenvalues[:2, :rank] = V, s
        stack.sigma[:2], stack.mu[:2], stack.rank[:2] = sigma, self.recipe.mu, rank
        if self.dictionary and rank:
            stack.factors[:2, :rank, :rank] = np.eye(rank)
            stack.features[:2, layout.LIST], stack.features[:2, layout.MARK] = np.arange(n), 1
            stack.touched[:2], stack.own[:2] = n, rank
        stack.header[layout.LEVELS] = 1

    def reserve(self, levels: int, columns: int) -> None:
        """Capacity for this number of levels, and of columns in each."""
        self.buffers = self.buffers.grown(levels, columns, self.max_rank)  # at once: Ctrl-C may come any time

    def with_capacity(self, levels: int, columns: int) -> StackEngine:
        """This engine, if it has the capacity for that many levels and columns, else a larger copy."""
        buffers = self.buffers.with_capacity(levels, columns)
        return self if buffers is self.buffers else self._with(buffers)

    @property
    def state(self) -> Array:
        """That of the combiner."""
        if self._python_state is not None:
            return self._python_state
        state = self.stack.combiner[: self.fixed + self.levels, : len(self.weights.fields)]
        return np.column_stack([state[:, 0], self._groups(self.levels)]) if self.pooled else state

    @state.setter
    def state(self, state: Array) -> None:
        if self._python_state is not None:
            self._python_state = state
        elif self.pooled:
            self.stack.combiner[: len(state), layout.LOG_WEIGHT] = state[:, 0]
        else:
            self.stack.combiner[: len(state), : state.shape[1]] = state

    # The methods of `Engine`

    def run(
        self,
        u: Any,
        y: Array | None,
        weight: Array | None = None,
        trace: Trace | None = None,
        implied: bool = False,
    ) -> None:
        count, base, done = u.shape[0], self.recipe.base, 0
        if trace is not None:
            levels = active(base + self.t + count, base)
            trace.reserve(self.fixed + levels)
            trace.kinds, trace.lengths = self._kinds_and_lengths(trace.experts - self.fixed)
        if self._python_state is not None:
            with hold_interrupts() as pause:
                for k in range(count):
                    row = Trace(1) if trace is None else trace[k]
                    self._step(*select(slice(k, k + 1), u, y, weight), row)
                    pause()
            return
        with hold_interrupts() if self.gathered is not None else nullcontext(_nothing) as pause:
            while done < count:
                part = slice(done, min(count, done + BLOCK))
                if self.gathered is not None:  # one by one, up to where there are maps
                    part = slice(done, done + 1)
                table = _NO_TABLE if trace is None else trace.table[part]
                some = select(part, u, y, weight)
                learned = self._learn(*some, table, implied)
                if self.gathered is not None and learned:
                    self._gather(self.gathered.with_comparison(*some, implied))
                done += learned
                pause()

    def observe(self, points: Array, refresh: bool = False) -> None:
        with hold_interrupts():
            if self.gathered is not None:
                self._gather(self.gathered.with_points(points))
            elif self.nonlinear and refresh:
                maps = Gathered().with_points(points).maps(self.nonlinear == "features")
                self.buffers, self._maps = self.buffers.with_new_maps(), maps

    def _gather(self, gathered: Gathered) -> None:
        """Take feature maps from what has been gathered, if that is enough, and learn it again with them."""
        if not gathered.enough:
            self.gathered = gathered
            return
        again = StackEngine(self.recipe, self.loss, self.weights, self.memory, self.nonlinear)
        again.gathered, again._maps = None, gathered.maps(self.nonlinear == "features")
        for u, y, weight, implied in gathered.comparisons:
            again.run(u, y, weight, None, implied)
        self.buffers, self._maps, self.gathered = again.buffers, again._maps, None

    def _learn(self, u: Any, y: Array | None, weight: Array | None, table: Array, implied: bool = False) -> int:
        """A block of comparisons, up to where the buffers become too small: then they grow."""
        if y is not None:
            stored = int(self.buffers.integers[layout.STORED])
            self.buffers = self.buffers.with_rows(stored + len(y))
        vectors = [_EMPTY if array is None else _contiguous(array) for array in (y, weight)]
        done = self._call(*self._entries(u), *vectors, implied, table, _NO_TABLE)
        if done and self.t % run.CHECK_EVERY == 0:
            self._reorthonormalize()
        elif done < u.shape[0]:
            rank, base = int(self.stack.rank[self.stack.order[: self.levels]].max()), self.recipe.base
            columns = min(rank + (2 if y is None else 1), self.recipe.n)
            self.reserve(active(base + self.t + 1, base), columns)
        return done

    def _step(self, u: Any, y: Array | None, weight: Array | None, trace: Trace) -> None:
        """One comparison under a combiner that has no compiled form."""
        p, levels, base = self.rule.mixture(self.state), self.levels, self.recipe.base
        trace.reserve(active(base + self.t + 1, base))  # no more: a row of a table is to stay one
        while True:
            with np.errstate(divide="ignore"):
                self.stack.combiner[:levels, layout.LOG_WEIGHT] = np.log(p)
            if self._learn(u, y, weight, trace.table):
                break
        mixed = float(trace.loss[0])
        state = self.rule.update(self.state, self.stack.losses[:levels].copy(), lambda: mixed)
        self.state = self.rule.open(state, dyadic_opening(self.t, self.recipe.base))
        trace.weights[0, : self.levels] = self.rule.probabilities(self.state)

    def _call(self, *arguments: Any) -> Any:
        """Compiled code, with the buffers and this thread's scratch."""
        entry: Any = run.run
        buffers = self.buffers
        given = (*arguments, *buffers.all, *buffers.scratch(), self.dictionary or None)
        if self.dictionary in _READY:
            return entry(*given)
        ready = announce(Path(layout.__file__).parent, "dictionary" if self.dictionary else "columns")
        with without_garbage_collection():
            done = entry(*given)
        ready()
        _READY.add(self.dictionary)
        return done

    def _entries(self, u: Any) -> tuple[Array, Integers, Integers]:
        """As the kernels take them: values, and for sparse ones, where rows start and of which features."""
        if self.nonlinear:
            return joined(u, self._maps, self.recipe.n).reshape(-1), _DENSE, _DENSE
        if isinstance(u, np.ndarray):
            return u.reshape(-1), _DENSE, _DENSE
        return u.data, u.indptr.astype(np.int64, copy=False), u.indices.astype(np.int64, copy=False)

    def _reorthonormalize(self) -> None:
        """Q <- Q (3 I - Q'Q) / 2, where rounding has made columns less than orthonormal."""
        for slot in self.stack.order[: self.levels].tolist():
            Q, rank = columns(self.stack, slot), self.stack.rank[slot]
            gram = Q.T @ Q
            if np.abs(gram - np.eye(rank)).max(initial=0.0) > ORTHONORMAL:
                own = self.stack.factors[slot] if self.dictionary else self.stack.columns[slot]
                own[:, :rank] = own[:, :rank] @ (1.5 * np.eye(rank) - 0.5 * gram)

    def judge(self, u: Any) -> Judgement:
        if not u.shape[0]:  # thresholds are computed along with a row
            one = self.judge(np.zeros((1, self.width)))
            return Judgement(
                one.squared_distance[:0], one.threshold, one.weight, (one.mixture[0][:0], one.mixture[1])
            )
        experts = self.fixed + self.levels
        table = np.empty((u.shape[0] + 2, experts + 1))
        self._call(*self._entries(u), _EMPTY, _EMPTY, False, _NO_TABLE, table)
        squares, threshold, p = table[:-2, :experts], table[-2, :experts], table[-1, :experts]
        if self._python_state is not None:
            p = self.rule.mixture(self.state)
            return Judgement(squares, threshold, p, (squares @ p, float(threshold @ p)))
        return Judgement(squares, threshold, p, (table[:-2, experts], float(table[-2, experts])))

    def mixture_odds(self, u: Any) -> Array:
        """Log odds that pairs are similar, by the mixture of the experts' probabilities, calibrated."""
        if not self.pooled:
            raise AttributeError("mixture_proba is of a pool: weights must be GroupedShare()")
        judged, replayed = self.judge(u), len(self.stack.settings)
        floors = np.full(len(judged.weight), platt.CALIBRATED_FLOOR)
        floors[:replayed] = self.stack.settings[:, layout.FLOOR]
        p = floors + (1.0 - 2.0 * floors) * expit(judged.threshold - judged.squared_distance)
        slope, shift = self.stack.calibration[layout.PROBABILITY, : platt.SHIFT + 1]
        return slope * logit(p @ judged.weight) + shift

    def mixture(self) -> tuple[Dense | Parts, float]:
        judged = self.judge(np.zeros((0, self.width)))
        return self._weighted_sum(judged.weight), judged.mixture[1]

    def _weighted_sum(self, p: Array) -> Dense | Parts:
        """sum_j p_j M_j over all experts."""
        stack, slots = self.stack, self.stack.order[: self.levels]
        if not self.pooled:
            return weighted_sum(stack, slots, p)
        slopes, euclid = stack.calibration[:, platt.SLOPE], self.fixed - 1
        form = weighted_sum(stack, slots, p[self.fixed :] * slopes[layout.LEVEL : layout.LEVEL + self.levels])
        return form.plus(
            self._rows(0, p).astype(np.float64),
            float(p[euclid] * slopes[layout.EUCLID]) if self.has_fixed else 0.0,
        )

    def _rows(self, block: int, p: Array) -> Array:
        """Rows R with R'R = sum_j p_j L_j'L_j over experts that replay given features, or those of a map."""
        own, width = slice(*self._blocks[block]), LANDMARKS if block else self.recipe.n
        return (self.stack.average[own, :, :width] * np.sqrt(p[own])[:, None, None]).reshape(-1, width)

    def mixture_of_maps(self) -> tuple[FeatureMaps | None, list[Array]]:
        """The feature maps, if there are any yet, and of each the matrix that is in charge now."""
        p = self.judge(np.zeros((0, self.width))).weight
        rows = [self._rows(block, p).astype(np.float64) for block in range(1, 1 + len(WIDTHS))]
        maps = FeatureMaps.of(self._maps, self.recipe.n) if len(self._maps) else None
        return maps, [R.T @ R for R in rows]

    @property
    def width(self) -> int:
        """The length of a row of `run` and `judge`: a difference and, where there are maps, its two points."""
        return 3 * self.recipe.n if self.nonlinear else self.recipe.n

    def decision(self, judged: Judgement | None = None) -> Decision:
        threshold = (judged or self.judge(np.zeros((0, self.width)))).mixture[1]
        if not self.pooled:
            return Decision(max(1.0, threshold))
        slope, shift = self.stack.calibration[layout.MARGIN, : platt.SHIFT + 1].tolist()
        return Decision(threshold, slope, shift, compressed=True)

    def experts(self) -> np.ndarray[Any, np.dtype[np.void]]:
        experts = self.fixed + self.levels
        table = np.zeros(experts, dtype=EXPERT)
        table["kind"], table["length"] = self._kinds_and_lengths(self.levels)
        table["loss"] = self.stack.losses[:experts]
        if self._python_state is None:
            table["weight"] = self.judge(np.zeros((0, self.width))).weight  # to the bit those of a trace
        else:
            table["weight"] = self.rule.probabilities(self.state)
        return table

    def metrics(self) -> list[Metric]:
        thresholds, blocks = self.judge(np.zeros((0, self.width))).threshold, self._groups(self.levels)
        found = []
        for p, mu, group in zip(np.eye(len(thresholds)), thresholds, blocks, strict=True):
            R = self._rows(max(0, group - 2), p)
            found.append(Metric(R.T @ R if group > 2 else self._weighted_sum(p).M, mu))
        return found

    @property
    def discarded(self) -> Array:
        return self.stack.discarded[self.stack.order[: self.levels]]

    @property
    def learned(self) -> tuple[str, ...]:
        return snapshot.names(self.dictionary, self.pooled, self.nonlinear is not None)

    def snapshot(self) -> Arrays:
        return snapshot.arrays(self)

    def restored(self, t: int, learned: Arrays) -> StackEngine:
        return snapshot.restored(self, t, learned)


def _unpickled(parts: tuple[Any, ...], t: int, learned: Arrays) -> StackEngine:
    return StackEngine(*parts).restored(t, learned)


_READY: set[bool] = set()  # which of the two forms this process has used already


def _contiguous(array: Array) -> Array:
    """A copy if it is strided or read-only: for other types of arrays all would be compiled again."""
    return array if array.flags.carray else array.copy()


def _nothing() -> None:
    pass
