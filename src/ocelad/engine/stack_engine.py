"""Algorithm 1 over RICE of COMID learners, compiled: a stack of learners in two flat buffers, which own all there
is.

A learner is kept by its eigenpairs, for many features by a dictionary (`kernels.dictionary`). Where the combiner
has no compiled form, its weights are updated in Python, a comparison at a time, and all else is the same.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np

from ..compiled import announce, uncollected
from ..ensemble import dyadic_opening
from ..geometry.comid import Recipe
from ..geometry.losses import Hinge, Logistic, MarginLoss, SquaredHinge
from ..geometry.metric import Metric
from ..geometry.quadratic import Dense, Parts, principal
from ..interrupt import hold_interrupts
from ..intervals import active, length
from ..protocols import Array, Integers, Weights
from ..weights import FixedShare, OceladWeights
from . import snapshot
from .kernels import layout, run, scratch
from .protocol import Arrays, Judgement
from .trace import EXPERT, Trace

BLOCK = 4096  # comparisons per compiled call: Ctrl-C is heard in between
DICTIONARY = 100  # from this many features on, turning the columns themselves costs more than a dictionary;
DICTIONARY_FULL = 400  # and from this many on where nothing keeps the rank down
SLOTS, ROOM = 3, 4  # slots and columns to begin with
MANY = 1 << 22  # entries of columns that are put side by side; more are added up one learner at a time
LOOSE = 1e-14  # columns farther than this from orthonormal are mended
LOSSES: dict[type, int] = {Hinge: layout.HINGE, SquaredHinge: layout.SQUARED_HINGE, Logistic: layout.LOGISTIC}

_BY_SLOT = ("sigma", "mu", "discarded", "debt", "losses", "combiner", "rank", "own", "since", "touched")
_EMPTY: Array = np.zeros(0)
_DENSE: Integers = np.zeros(0, dtype=np.int64)
_NO_TABLE: Array = np.zeros((0, 0))


class StackEngine:
    """The retro-initialised ensemble of COMID learners on (M, mu), under any combiner."""

    floats: Array
    integers: Integers
    _stack: layout.Stack | None

    def __init__(self, recipe: Recipe, loss: MarginLoss, weights: Weights) -> None:
        self.recipe, self.loss, self.weights = recipe, loss, weights
        strength = recipe.descent.regularizer.strength
        self.dictionary = recipe.n >= (DICTIONARY if strength > 0.0 else DICTIONARY_FULL)
        self.most = recipe.n if recipe.max_rank is None else min(recipe.max_rank, recipe.n)
        s, V, sigma = np.zeros(0), np.zeros((recipe.n, 0)), recipe.origin
        if not isinstance(sigma, float):
            s, V = np.linalg.eigh(sigma)
            sigma, s, V = 0.0, s[s > 0], V[:, s > 0]
        self._allocate(SLOTS, max(ROOM, _fours(min(recipe.n, len(s) + 1))))
        self._write_options()
        self._write_origin(sigma, s, V)
        self._python_state: Array | None = None
        if not isinstance(weights, (FixedShare, OceladWeights)):
            self._python_state = np.zeros((0, len(weights.fields)))
        self.state = weights.open(np.zeros((0, len(weights.fields))), dyadic_opening(0, recipe.base))

    def __copy__(self) -> StackEngine:
        other = object.__new__(StackEngine)
        other.__dict__.update(self.__dict__, _stack=None)
        if self.dictionary:
            other._allocate(*self.integers[[layout.SLOTS, layout.ROOM]].tolist())
            other._take_over(self.stack)
        else:
            other.floats, other.integers = self.floats.copy(), self.integers.copy()
        return other

    __deepcopy__ = lambda self, memo: self.__copy__()  # noqa: E731, ARG005

    def __reduce__(self) -> Any:
        """A pickle has what a file has, and is checked like one."""
        return _unpickled, (self.recipe, self.loss, self.weights, self.t, self.snapshot())

    # The buffers

    @property
    def stack(self) -> layout.Stack:
        """What is in the buffers, as arrays."""
        if self._stack is None:
            self._stack = layout.lay_out(self.floats, self.integers)
        return self._stack

    @property
    def t(self) -> int:
        return int(self.integers[layout.TIME])

    @property
    def levels(self) -> int:
        return int(self.integers[layout.LEVELS])

    def _allocate(self, slots: int, room: int) -> None:
        height = room + layout.RING if self.dictionary else 0
        floats, integers = layout.stack_sizes(self.recipe.n, slots, room, height)
        self.floats, self.integers, self._stack = np.zeros(floats), np.zeros(integers, dtype=np.int64), None
        self.integers[: layout.TIME] = self.recipe.n, slots, room, height
        stack = self.stack
        stack.order[: slots - 1] = np.arange(1, slots)  # slot 0 is the origin's, the others wait to be taken
        stack.lengths[:] = self.recipe.base * np.exp2(np.arange(slots))
        stack.losses[:] = np.nan

    def _write_options(self) -> None:
        recipe, descent, options = self.recipe, self.recipe.descent, self.stack.options
        options[layout.STEP], options[layout.STRENGTH] = recipe.step, descent.regularizer.strength
        options[layout.THRESHOLD_STEP], options[layout.CAPPED] = descent.threshold_step, descent.step_cap
        options[layout.BASE], options[layout.CONTINUES] = recipe.base, recipe.start == "continue"
        options[layout.LOSS], options[layout.MAX_RANK] = LOSSES[type(self.loss)], self.most
        rule, options[layout.RULE] = self.weights, layout.NO_RULE
        if isinstance(rule, FixedShare):
            options[layout.RULE : layout.SHARE + 1] = layout.FIXED_SHARE, rule.rate, rule.share
        elif isinstance(rule, OceladWeights):
            mean = rule.regret == "mean"
            options[layout.RULE] = layout.OCELAD_MEAN if mean else layout.OCELAD_MIXTURE
            options[layout.RESET] = rule.reset

    def _write_origin(self, sigma: float, s: Array, V: Array) -> None:
        """Slot 0, and level 0, which starts from it."""
        stack, rank, n = self.stack, len(s), self.recipe.n
        stack.columns[:2, :, :rank], stack.eigenvalues[:2, :rank] = V, s
        stack.sigma[:2], stack.mu[:2], stack.rank[:2] = sigma, self.recipe.mu, rank
        if self.dictionary and rank:
            stack.factors[:2, :rank, :rank] = np.eye(rank)
            stack.features[:2, layout.LIST], stack.features[:2, layout.MARK] = np.arange(n), 1
            stack.touched[:2], stack.own[:2] = n, rank
        self.integers[layout.LEVELS] = 1

    def reserve(self, levels: int, columns: int) -> None:
        """Room for so many levels, and so many columns in each."""
        slots, room = self.integers[[layout.SLOTS, layout.ROOM]].tolist()
        more_slots, more_room = slots, room
        if levels + 1 > slots:  # slots that nothing is in cost nothing, moving columns of many features does
            more_slots = max(levels + 1, 2 * slots) if self.dictionary else levels + 1
        if columns > room:  # columns that are read in full had better lie close together; others move seldom
            in_full = not self.dictionary or self.stack.touched.max() == self.recipe.n
            more_room = _fours(
                min(self.recipe.n, columns if in_full else max(columns, min(2 * room, self.most + 1)))
            )
        if (more_slots, more_room) != (slots, room):
            self.__dict__ = self._roomier(more_slots, more_room).__dict__  # all at once: Ctrl-C may come any time

    def sized(self, levels: int, columns: int) -> StackEngine:
        """This one, if it has room for so many levels and columns, else another like it that has."""
        slots, room = self.stack.eigenvalues.shape
        larger = max(slots, levels + 1), max(room, _fours(columns))
        return self if larger == (slots, room) else self._roomier(*larger)

    def _roomier(self, slots: int, room: int) -> StackEngine:
        """The same in larger buffers."""
        other = object.__new__(StackEngine)
        other.__dict__.update(self.__dict__)
        other._allocate(slots, room)
        other._take_over(self.stack)
        return other

    def _take_over(self, old: layout.Stack) -> None:
        """What is in smaller arrays."""
        stack, (slots, room), tall = self.stack, old.eigenvalues.shape, old.factors.shape[1]
        for slot in range(slots if self.dictionary else 0):  # sparse comparisons leave most of a dictionary empty
            own = old.features[slot, layout.LIST, : old.touched[slot]]
            stack.columns[slot, own, :room] = old.columns[slot, own]
            stack.features[slot, layout.LIST, : len(own)], stack.features[slot, layout.MARK, own] = own, 1
        if self.dictionary:
            seen = old.features[-1, layout.LIST, : old.header[layout.SEEN]]
            stack.recent[seen] = old.recent[seen]
            stack.features[-1, layout.LIST, : len(seen)], stack.features[-1, layout.MARK, seen] = seen, 1
            stack.factors[:slots, :tall, :room] = old.factors
        else:
            stack.columns[:slots, :, :room] = old.columns
        stack.eigenvalues[:slots, :room] = old.eigenvalues
        for name in _BY_SLOT:
            getattr(stack, name)[:slots] = getattr(old, name)
        stack.order[: slots - 1] = old.order[:-1]
        stack.options[:] = old.options
        self.integers[layout.TIME : layout.HEADER] = old.header[layout.TIME :]

    @property
    def state(self) -> Array:
        """That of the combiner."""
        if self._python_state is not None:
            return self._python_state
        return self.stack.combiner[: self.levels, : len(self.weights.fields)]

    @state.setter
    def state(self, state: Array) -> None:
        if self._python_state is not None:
            self._python_state = state
        else:
            self.stack.combiner[: len(state), : state.shape[1]] = state

    # The verbs

    def run(self, u: Any, y: Array | None, weight: Array | None = None, trace: Trace | None = None) -> None:
        count, done = u.shape[0], 0
        if trace is not None:
            trace.reserve(active(self.recipe.base + self.t + count, self.recipe.base))
            trace.lengths = _lengths(trace.experts, self.recipe.base)
        if self._python_state is not None:
            with hold_interrupts() as pause:
                for k in range(count):
                    self._step(u[k : k + 1], _one(y, k), _one(weight, k), Trace(1) if trace is None else trace[k])
                    pause()
            return
        while done < count:
            part = slice(done, min(count, done + BLOCK))
            rows = u if part == slice(0, count) else u[part]  # a slice of sparse rows takes its time
            table = _NO_TABLE if trace is None else trace.table[part]
            done += self._learn(
                rows, None if y is None else y[part], None if weight is None else weight[part], table
            )

    def _learn(self, u: Any, y: Array | None, weight: Array | None, table: Array) -> int:
        """A block of comparisons, up to where the arrays become too small: then they grow."""
        given = [_EMPTY if array is None else _plain(array) for array in (y, weight)]
        done = self._call(*_entries(u), *given, table, _NO_TABLE)
        if self.t % run.MEND == 0:
            self._mend()
        elif done < u.shape[0]:
            rank, base = int(self.stack.rank[self.stack.order[: self.levels]].max()), self.recipe.base
            columns = min(rank + (2 if y is None else 1), self.recipe.n)
            self.reserve(active(base + self.t + 1, base), columns)
        return done

    def _step(self, u: Any, y: Array | None, weight: Array | None, trace: Trace) -> None:
        """One comparison under a combiner that has no compiled form."""
        p, levels, base = self.weights.mixture(self.state), self.levels, self.recipe.base
        trace.reserve(active(base + self.t + 1, base))  # no more: a row of a table is to stay one
        while True:
            with np.errstate(divide="ignore"):
                self.stack.combiner[:levels, layout.LOG_WEIGHT] = np.log(p)
            if self._learn(u, y, weight, trace.table):
                break
        mixed = float(trace.loss[0])
        state = self.weights.update(self.state, self.stack.losses[:levels].copy(), lambda: mixed)
        self.state = self.weights.open(state, dyadic_opening(self.t, self.recipe.base))
        trace.weights[0, : self.levels] = self.weights.probabilities(self.state)

    def _call(self, *given: Any) -> Any:
        """Compiled code, with the buffers and this thread's scratch."""
        entry: Any = run.run
        given = (*given, self.floats, self.integers, *_scratch(self.integers), self.dictionary or None)
        if self.dictionary in _READY:
            return entry(*given)
        ready = announce(Path(layout.__file__).parent, "dictionary" if self.dictionary else "columns")
        with uncollected():
            done = entry(*given)
        ready()
        _READY.add(self.dictionary)
        return done

    def _mend(self) -> None:
        """If rounding has made columns less than orthonormal, Q <- Q (3 I - Q'Q) / 2 mends it."""
        for slot in self.stack.order[: self.levels].tolist():
            Q, rank = self.columns(slot), self.stack.rank[slot]
            gram = Q.T @ Q
            if np.abs(gram - np.eye(rank)).max(initial=0.0) > LOOSE:
                own = self.stack.factors[slot] if self.dictionary else self.stack.columns[slot]
                own[:, :rank] = own[:, :rank] @ (1.5 * np.eye(rank) - 0.5 * gram)

    def judge(self, u: Any) -> Judgement:
        levels = self.levels
        table = np.empty((u.shape[0] + 2, levels + 1))
        self._call(*_entries(u), _EMPTY, _EMPTY, _NO_TABLE, table)
        squares, threshold, p = table[:-2, :levels], table[-2, :levels], table[-1, :levels]
        if self._python_state is not None:
            p = self.weights.mixture(self.state)
            return Judgement(squares, threshold, p, (squares @ p, float(threshold @ p)))
        return Judgement(squares, threshold, p, (table[:-2, levels], float(table[-2, levels])))

    def mixture(self) -> tuple[Dense | Parts, float]:
        p, stack = self.weights.mixture(self.state), self.stack
        slots = stack.order[: self.levels]
        return self._combined(slots, p), float(p @ stack.mu[slots])

    def threshold(self) -> float:
        p = self.weights.mixture(self.state)
        return max(1.0, float(p @ self.stack.mu[self.stack.order[: self.levels]]))

    def _combined(self, slots: Integers, p: Array) -> Dense | Parts:
        """The sum of matrices, as they are or, where that is smaller, as weighted columns."""
        stack, n, total = self.stack, self.recipe.n, int(self.stack.rank[slots].sum())
        sigma = float(p @ stack.sigma[slots])
        if total >= n:
            M = sigma * np.eye(n)
            for slot, weight in zip(slots.tolist(), p.tolist(), strict=True):
                Q, beyond = self._terms(slot, weight)
                M += (Q * beyond) @ Q.T
            return Dense((M + M.T) / 2)
        if sigma == 0.0 and n * total > MANY:  # one learner after the other, on the features that there are
            features = self._features(slots)
            rows = np.zeros((0, len(features)))
            for slot, weight in zip(slots.tolist(), p.tolist(), strict=True):
                Q, beyond = self._terms(slot, weight, features)
                rows = principal(np.vstack([rows, (Q * np.sqrt(beyond)).T]))
            columns = np.zeros((n, len(rows)))
            columns[features] = rows.T
            return Parts(columns, np.ones(len(rows)), 0.0)
        terms = [self._terms(slot, weight) for slot, weight in zip(slots.tolist(), p.tolist(), strict=True)]
        return Parts(np.hstack([Q for Q, _ in terms]), np.concatenate([beyond for _, beyond in terms]), sigma)

    def _terms(self, slot: int, weight: float, features: Any = slice(None)) -> tuple[Array, Array]:
        """Columns of a learner, and by how much each of them counts beyond sigma."""
        beyond = self.stack.eigenvalues[slot, : self.stack.rank[slot]] - self.stack.sigma[slot]
        return self.columns(slot, features), weight * beyond

    def _features(self, slots: Integers) -> Integers:
        """Those that any of these learners has met."""
        stack = self.stack
        if not self.dictionary:
            return np.arange(self.recipe.n)
        lists = [stack.features[slot, layout.LIST, : stack.touched[slot]] for slot in slots]
        return np.unique(np.concatenate([*lists, stack.features[-1, layout.LIST, : stack.header[layout.SEEN]]]))

    def columns(self, slot: int, features: Any = slice(None)) -> Array:
        """The directions that a learner has touched, orthonormal; or what they have of some features."""
        stack, rank, own = self.stack, self.stack.rank[slot], self.stack.columns[slot]
        if not self.dictionary:
            return own[features, :rank]
        count, recent = stack.own[slot], slice(stack.since[slot], stack.header[layout.RECENT])
        F = stack.factors[slot, : count + recent.stop - recent.start, :rank]
        return own[features, :count] @ F[:count] + stack.recent[features, recent] @ F[count:]

    def experts(self) -> np.ndarray[Any, np.dtype[np.void]]:
        table = np.zeros(self.levels, dtype=EXPERT)
        table["length"], table["loss"] = _lengths(self.levels, self.recipe.base), self.stack.losses[: self.levels]
        if self._python_state is None:
            table["weight"] = self.judge(np.zeros((0, self.recipe.n))).weight  # to the bit those of a trace
        else:
            table["weight"] = self.weights.probabilities(self.state)
        return table

    def metrics(self) -> list[Metric]:
        slots, one = self.stack.order[: self.levels], np.ones(1)
        return [Metric(self._combined(slots[[j]], one).M, self.stack.mu[slot]) for j, slot in enumerate(slots)]

    @property
    def discarded(self) -> Array:
        return self.stack.discarded[self.stack.order[: self.levels]]

    @property
    def learned(self) -> tuple[str, ...]:
        return snapshot.names(self.dictionary)

    def snapshot(self) -> Arrays:
        return snapshot.arrays(self)

    def restored(self, t: int, learned: Arrays) -> StackEngine:
        return snapshot.restored(self, t, learned)


def _unpickled(recipe: Recipe, loss: MarginLoss, weights: Weights, t: int, learned: Arrays) -> StackEngine:
    return StackEngine(recipe, loss, weights).restored(t, learned)


_READY: set[bool] = set()  # which of the two forms this process has used already


class _Buffers(threading.local):
    """Scratch of each thread, for whichever stack it works on."""

    work: Array = _EMPTY
    index: Integers = _DENSE
    every: Integers = _DENSE
    size: tuple[int, ...] = ()  # of the last stack, for which they are large enough


_BUFFERS = _Buffers()


def _scratch(integers: Integers) -> tuple[Array, Integers, Integers]:
    own, size = _BUFFERS, tuple(integers[: layout.TIME].tolist())
    if size == own.size:  # as mostly
        return own.work, own.index, own.every
    own.size = ()
    work, index, every = scratch.sizes(*size)
    if len(own.work) < work:
        own.work = np.zeros(work)
    if len(own.index) < index:
        own.index = np.zeros(index, dtype=np.int64)
    if len(own.every) < every:
        own.every = np.arange(every)
    own.size = size
    return own.work, own.index, own.every


def _entries(u: Any) -> tuple[Array, Integers, Integers]:
    """As the kernels take them: values, and for sparse ones, where rows start and of which features."""
    if isinstance(u, np.ndarray):
        return u.reshape(-1), _DENSE, _DENSE
    return u.data, u.indptr.astype(np.int64, copy=False), u.indices.astype(np.int64, copy=False)


def _plain(array: Array) -> Array:
    """For anything else, strided or read-only, all would be compiled anew."""
    return array if array.flags.carray else array.copy()


def _one(array: Array | None, k: int) -> Array | None:
    return None if array is None else array[k : k + 1]


def _lengths(levels: int, base: int) -> Array:
    return np.array([float(length(level, base)) for level in range(levels)])


def _fours(count: int) -> int:
    return -(-count // 4) * 4
