"""The compiled path: the secular equation at its worst, the stack against the list of black boxes."""

import io
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from ocelad import (
    AdaNormalHedge,
    CoinBetting,
    FixedShare,
    Logistic,
    MetricTracker,
    NuclearNorm,
    OceladWeights,
    Rice,
    SaolWeights,
    SquaredHinge,
    Unregularized,
)
from ocelad.metric.kernels.factored import project, rank_one
from ocelad.metric.kernels.secular import roots, vectors
from ocelad.metric.notice import Announced
from ocelad.metric.stack import StackedRice
from streams import comparisons

# The secular equation


def poles(rng, kind, k):
    if kind == "spread":
        return np.sort(rng.normal(size=k))
    if kind == "crowded":  # half of them within a millionth of each other
        return np.sort(np.concatenate([1 + 1e-6 * rng.random(k // 2), rng.random(k - k // 2)]))
    return np.cumsum(10.0 ** rng.uniform(-11, 0, size=k))  # gaps over eleven orders of magnitude


@settings(deadline=None, max_examples=300)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 40),
    kind=st.sampled_from(["spread", "crowded", "uneven"]),
    spread=st.sampled_from([0, 6]),
    size=st.floats(-3, 3),
)
def test_diagonal_plus_rank_one(seed, k, kind, spread, size):
    rng = np.random.default_rng(seed)
    d = poles(rng, kind, k)
    z = rng.normal(size=k) * 10.0 ** rng.uniform(-spread, 0, size=k)
    a = 10.0**size
    assume((np.diff(d) > 1e-12 * np.abs(d).max()).all() and (z != 0).all())  # else it is deflation's business
    gap, w, zhat, V = np.zeros((k, k)), np.zeros(k), np.zeros(k), np.zeros((k, k))
    roots(d, z, a, k, gap, w)
    vectors(d, z, k, gap, zhat, V)
    A = np.diag(d) + a * np.outer(z, z)
    np.testing.assert_allclose((V.T * w) @ V, A, atol=1e-12 * np.abs(A).max())
    np.testing.assert_allclose(V @ V.T, np.eye(k), atol=1e-13)
    assert (np.diff(w) >= 0).all()  # they interlace with the poles
    assert (w >= d).all()
    assert (w[:-1] <= d[1:]).all()


# One factored learner


def dense(Q, s, r, sigma, n):
    return sigma * (np.eye(n) - Q[:r].T @ Q[:r]) + (Q[:r].T * s[:r]) @ Q[:r]


@pytest.mark.parametrize("a", [0.7, -0.7, 1e-9, -1e9])
@pytest.mark.parametrize("tau", [0.0, 0.05])
@pytest.mark.parametrize("sigma", [0.0, 0.5])
@pytest.mark.parametrize("case", ["general", "repeated", "inside", "along", "empty", "full", "ties", "tiny"])
def test_rank_one_step_of_a_factored_learner(case, sigma, tau, a):
    n, rng = 8, np.random.default_rng(0)
    r = {"empty": 0, "full": n}.get(case, 5)
    Q, s = np.zeros((n, n)), np.zeros(n + 2)
    Q[:] = np.linalg.qr(rng.normal(size=(n, n)))[0]
    s[:r] = 1.0 if case == "ties" else rng.random(r) + 0.1
    if case == "repeated":
        s[1:3] = s[0]
    u = rng.normal(size=n)
    if case == "inside":
        u = Q[:r].T @ rng.normal(size=r)  # no new direction
    if case == "along":
        u = 2.0 * Q[1]  # an eigenvector: nothing mixes
    if case == "tiny":
        u = Q[0] + 1e-13 * rng.normal(size=n)
    M = dense(Q, s, r, sigma, n)
    w, V = np.linalg.eigh(M + a * np.outer(u, u))
    expected = (V * np.maximum(w - tau, 0)) @ V.T
    z, Q2, s2 = np.zeros(n + 2), np.zeros((n, n)), np.zeros(n + 2)
    work, index = np.zeros((4 + 2 * n, n)), np.zeros(n, dtype=np.int64)
    square = float(u @ u)
    d2 = project(Q, s, r, sigma, u, square, z)
    assert d2 == pytest.approx(u @ M @ u)
    r, rest = rank_one(Q, s, r, sigma, u, square, z, a, tau, Q2, s2, work, index)
    np.testing.assert_allclose(dense(Q2, s2, r, rest, n), expected, atol=1e-13 * max(1.0, np.abs(w).max()))
    np.testing.assert_allclose(Q2[:r] @ Q2[:r].T, np.eye(r), atol=1e-13)


# The stack


def listed(tracker):
    """The same tracker as a list of black boxes."""
    base, start = tracker.base, tracker.start
    return clone(tracker).set_params(ensemble=lambda spawn: Rice(spawn, base, start))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"base": 1, "weights": OceladWeights()},
        {"base": 3, "weights": OceladWeights("mixture", reset=False), "start": "continue"},
        {"weights": FixedShare(0.5, 0.0), "start": "continue"},
        {"weights": CoinBetting(), "loss": Logistic()},
        {"weights": AdaNormalHedge(), "regularizer": Unregularized(), "order": "after"},
        {"weights": SaolWeights(seed=3), "threshold_step": 1.0},
        {"loss": SquaredHinge(), "step": 2.0},
        {"loss": Logistic(), "regularizer": NuclearNorm(0.1)},
        {"step_cap": True, "step": 64.0},
        {"origin": 1.0, "regularizer": NuclearNorm(0.05)},
        {"origin": 0.3, "regularizer": Unregularized(), "start": "continue"},
        {"origin": np.diag([2.0, 1.0, 0.5, 0.0, 0.0, 1.0, 1.0])},
        {"scale": None, "order": "after", "base": 2},
    ],
    ids=repr,
)
def test_the_stack_is_the_list(options):
    pairs, y = comparisons(seed=4, steps=260, n=7)
    pairs[50, 1] = pairs[50, 0]  # a zero difference
    pairs[60] = pairs[59]
    stack = MetricTracker(**options)
    boxes = listed(stack)
    for part in np.array_split(np.arange(260), [1, 2, 9, 100]):
        stack.partial_fit(pairs[part], y[part])
        boxes.partial_fit(pairs[part], y[part])
        assert stack.levels_["length"].tolist() == boxes.levels_["length"].tolist()
        np.testing.assert_allclose(stack.levels_["weight"], boxes.levels_["weight"], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(stack.levels_["loss"], boxes.levels_["loss"], rtol=1e-9, atol=1e-9)
        for one, other in zip(stack.level_metrics_, boxes.level_metrics_, strict=True):
            np.testing.assert_allclose(one.M, other.M, atol=1e-10 * max(1e-3, np.abs(other.M).max()))
            assert one.mu == pytest.approx(other.mu, rel=1e-10)
    assert isinstance(stack._ocelad.ensemble, StackedRice)
    assert not isinstance(boxes._ocelad.ensemble, StackedRice)


def test_rows_stay_orthonormal_and_room_grows_as_needed():
    pairs, y = comparisons(seed=5, steps=20_000, n=12)
    tracker = MetricTracker(regularizer=NuclearNorm(0.01))
    tracker.partial_fit(pairs[:3], y[:3])
    stack = tracker._ocelad.ensemble
    small = stack.Q.nbytes
    tracker.partial_fit(pairs[3:], y[3:])
    levels = len(tracker.levels_)
    assert small < stack.Q.nbytes <= (levels + 5) * 12 * 12 * 8
    for slot, rank in zip(stack.meta[1, :levels], stack.meta[2, stack.meta[1, :levels]], strict=True):
        Q = stack.Q[slot, :rank]
        np.testing.assert_allclose(Q @ Q.T, np.eye(rank), atol=1e-12)
        assert (stack.S[slot, :rank] > 0).all()


def test_low_levels_are_low_rank():
    """A learner that has seen few comparisons keeps few rows, and costs as little."""
    pairs, y = comparisons(seed=6, steps=300, n=60)
    stack = MetricTracker(base=1).partial_fit(pairs, y)._ocelad.ensemble
    ranks = stack.meta[2, stack.meta[1, : stack.levels]]
    assert all(rank <= 2 ** (level + 1) for level, rank in enumerate(ranks))


def test_a_long_first_use_is_announced_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for patient, expected in ((False, ""), (True, "compiling")):
        screen = Terminal()
        monkeypatch.setattr("sys.stderr", screen)
        monkeypatch.setattr(Announced, "first", True)
        with Announced():
            time.sleep(1.3 if patient else 0.0)
        assert expected in screen.getvalue()
        assert bool(expected) == bool(screen.getvalue())
    with Announced():  # only once
        assert not Announced.first


def test_works_where_nothing_can_be_kept_on_disk(tmp_path):
    """As in a read-only container: compiled anew, and just as right."""
    code = (
        "import numba, numpy as np; real = numba.njit\n"
        "def refuse(*args, cache=False, **options):\n"
        "    if cache: raise RuntimeError('cannot cache function: no locator available')\n"
        "    return real(*args, **options)\n"
        "numba.njit = refuse\n"
        "from ocelad.metric.kernels.secular import roots\n"
        "w = np.zeros(1); roots(np.ones(1), np.ones(1), 2.0, 1, np.zeros((1, 1)), w); print(w[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert float(done.stdout) == pytest.approx(3.0)
