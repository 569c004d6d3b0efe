"""Experts that replay windows: which comparisons they draw, and the step that they take on them."""

import copy

import numpy as np
import pytest
from scipy import stats

import literal_pool
from ocelad.engine import buffers, windows
from ocelad.engine.experts import Replayed
from ocelad.engine.kernels import layout, replay
from ocelad.geometry import Hinge, PairLoss


@pytest.fixture(name="double")
def fixture_double(monkeypatch):
    monkeypatch.setattr(buffers, "SINGLE", np.float64)
    monkeypatch.setattr(buffers, "_SCRATCH", buffers._Scratch())


def draw(t, expert, number, count):
    with np.errstate(over="ignore"):  # modulo 2^64
        return replay.draw.py_func(t, expert, number, count)


def feed(experts, u, y, excess=0.0, p=None):
    """A comparison, on which each expert loses so much more than the mixture."""
    k = len(experts.floors)
    experts.told_mixture(1.0, 1.0 + np.broadcast_to(excess, k), np.full(k, 1.0 / k) if p is None else p)
    experts.update(PairLoss(u, int(y), Hinge()))


# Draws


def test_draws_are_a_function_of_time_expert_and_number():
    for t, expert, number, count in [(1, 0, 0, 1), (7, 3, 31, 32), (123_456, 9, 15, 2048), (10**12, 2, 17, 100)]:
        assert draw(t, expert, number, count) == literal_pool.draw(t, expert, number, count)


@pytest.mark.parametrize("count", [1, 2, 31, 512])
def test_draws_are_uniform(count):
    counted = np.zeros(count)
    for t in range(1, 201):
        for expert in range(3):
            for number in range(1, 32):
                counted[literal_pool.draw(t, expert, number, count)] += 1
    assert counted.sum() == 18_600
    if count > 1:
        assert stats.chisquare(counted).pvalue > 1e-3


@pytest.mark.parametrize("other", ["time", "expert", "number"])
def test_draws_of_neighbours_are_independent(other):
    step = {"time": (1, 0, 0), "expert": (0, 1, 0), "number": (0, 0, 1)}[other]
    table = np.zeros((8, 8))
    for t in range(1, 41):
        for expert in range(5):
            for number in range(1, 31):
                first = literal_pool.draw(t, expert, number, 8)
                table[first, literal_pool.draw(t + step[0], expert + step[1], number + step[2], 8)] += 1
    assert stats.chi2_contingency(table).pvalue > 1e-3


# What is kept


@pytest.mark.parametrize("memory", [32, 37])
def test_the_ring_has_the_latest_comparisons(memory):
    rng = np.random.default_rng(0)
    experts, u, y = Replayed(3, memory), rng.normal(size=(100, 3)), rng.choice([-1, 1], size=100)
    for t in range(100):
        feed(experts, u[t], y[t])
        stack, kept = experts.buffers.stack, min(t + 1, memory)
        places = [k % memory for k in range(t + 1 - kept, t + 1)]
        np.testing.assert_array_equal(stack.ring[places], u[t + 1 - kept : t + 1].astype(np.float32))
        np.testing.assert_array_equal(stack.labels[places], y[t + 1 - kept : t + 1])


@pytest.mark.parametrize("memory", [32, 37, 64, 2048])
def test_windows(memory):
    table = windows.settings(memory)
    assert table[:, layout.WINDOW].max() == memory
    assert (table[:, layout.WINDOW] >= 1).all()
    anew = table[table[:, layout.ANEW] > 0, layout.WINDOW]
    assert anew.min() >= 32
    assert (np.diff(anew) > 0).all()


def poisoned(experts, places):
    """A copy that has something else in these places."""
    other = copy.copy(experts)
    other.buffers.stack.ring[places] = 10.0
    return other


def alike(one, other):
    """Which experts have learned the same."""
    return (one.buffers.stack.average == other.buffers.stack.average).all(axis=(1, 2))


def test_nothing_older_than_the_window_is_replayed():
    rng = np.random.default_rng(1)
    experts = Replayed(3, 64)  # windows of 4, 16, 64, 32, 64
    for _ in range(64):
        feed(experts, rng.normal(size=3), rng.choice([-1, 1]))
    other = poisoned(experts, range(64 - 31))  # all but the last 31, and then come others
    for _ in range(11):
        u, y = rng.normal(size=3), rng.choice([-1, 1])
        feed(experts, u, y)
        feed(other, u, y)
        assert alike(experts, other)[[0, 1, 3]].all()
    assert not alike(experts, other)[[2, 4]].any()  # the others have met it


def test_an_expert_that_begins_anew_draws_from_after_the_change_only():
    rng = np.random.default_rng(2)
    experts, p = Replayed(3, 64), np.array([0.6, 0.1, 0.1, 0.1, 0.1])
    for _ in range(40):
        feed(experts, rng.normal(size=3), rng.choice([-1, 1]))
    for _ in range(3):  # it loses 9 nats, which may happen
        feed(experts, rng.normal(size=3), 1, [0.0, 0.0, 0.0, 3.0, 0.0], p)
    before = experts.buffers.stack.numbers[3].copy()
    assert before[[layout.START, layout.ZERO, layout.EXCESS]].tolist() == [0.0, 40.0, 9.0]
    other, u = poisoned(experts, range(40)), rng.normal(size=3)
    for each in (experts, other):
        feed(each, u, 1, [0.0, 0.0, 0.0, 3.0, 0.0], p)  # and that is too much
    after = experts.buffers.stack.numbers[3]
    assert after[[layout.START, layout.ZERO, layout.EXCESS, layout.STEPS]].tolist() == [40.0, 44.0, 0.0, 2.0]
    for _ in range(19):
        u, y = rng.normal(size=3), rng.choice([-1, 1])
        feed(experts, u, y)
        feed(other, u, y)
    assert alike(experts, other).tolist() == [True, False, False, True, False]


def test_losses_that_come_and_go_are_no_change():
    """Page's test: what was gained in between counts, up to the present."""
    rng = np.random.default_rng(3)
    experts = Replayed(3, 64)
    for t in range(200):
        feed(experts, rng.normal(size=3), 1, 4.0 if t % 2 else -4.0)
    assert (experts.buffers.stack.numbers[:, layout.START] == 0).all()


def test_windows_that_slide_never_begin_anew():
    rng = np.random.default_rng(4)
    experts = Replayed(3, 64)
    for _ in range(50):
        feed(experts, rng.normal(size=3), 1, 4.0)
    started = experts.buffers.stack.numbers[:, layout.START]
    assert (started[:3] == 0).all()
    assert (started[3:] > 0).all()


def test_it_goes_on_from_the_heaviest():
    rng = np.random.default_rng(5)
    experts, heavy = Replayed(3, 64), np.array([0.1, 0.6, 0.1, 0.1, 0.1])
    for _ in range(30):
        feed(experts, rng.normal(size=3), rng.choice([-1, 1]))
    start, other = experts.buffers.stack.average[[1, 3]].copy()
    b = experts.mix(np.eye(len(experts.floors))[1]).mu
    feed(experts, np.zeros(3), 1, [0.0, 0.0, 0.0, 11.0, 0.0], heavy)
    moved = experts.buffers.stack.numbers[3]
    assert moved[layout.START] == 30
    L, longest = experts.buffers.stack.L[3], 2 * 0.1 * 2**0.25  # two first steps, on a window of 1
    assert np.sqrt(np.mean((L - start) ** 2)) < longest < np.sqrt(np.mean((L - other) ** 2))
    assert abs(moved[layout.B] - b) < longest


def test_what_is_left_in_the_scratch_of_a_thread_does_not_matter():
    """One tracker that overflows must not spoil all others."""
    rng = np.random.default_rng(8)
    clean, other = Replayed(3, 32), Replayed(3, 32)
    for _ in range(3):
        u = rng.normal(size=3)
        feed(clean, u, 1)
        for scratch in other.buffers.scratch()[-1:]:
            scratch[:] = np.nan
        feed(other, u, 1)
    np.testing.assert_array_equal(clean.buffers.singles, other.buffers.singles)


# The step


@pytest.mark.usefixtures("double")
def test_a_step_goes_along_the_gradient_of_its_objective():
    """Against differences of the objective, after a single step of every expert on a full window of 512."""
    rng, n, window = np.random.default_rng(6), 4, 512
    experts = Replayed(n, window)
    experts.buffers = experts.buffers.with_rows(window)
    stack = experts.buffers.stack
    stack.settings[:, layout.WINDOW] = window
    u, y = rng.normal(size=(window, n)), rng.choice([-1.0, 1.0], size=window)
    weight = rng.uniform(0.5, 2.0, size=window)
    stack.ring[:-1], stack.labels[:-1] = u[:-1], (y * weight)[:-1]
    stack.header[layout.STORED] = window - 1
    stack.L[:] *= 4.0
    before = stack.L.copy()
    weight[-1] = 1.0
    feed(experts, u[-1], y[-1])
    for j, L in enumerate(before):
        literal = literal_pool.Replay(j, window, stack.settings[j, layout.ANEW] > 0, L)
        chosen = literal.minibatch(window, window, 0)
        assert chosen[0] == window - 1
        data = u[chosen], y[chosen], weight[chosen], window
        gradient = np.zeros_like(L)
        for at in np.ndindex(L.shape):
            change = np.zeros_like(L)
            change[at] = 1e-6
            gradient[at] = (literal.loss(L + change, 1.0, *data) - literal.loss(L - change, 1.0, *data)) / 2e-6
        slope = (literal.loss(L, 1.0 + 1e-6, *data) - literal.loss(L, 1.0 - 1e-6, *data)) / 2e-6
        np.testing.assert_allclose(stack.moment[j] / 0.1, gradient, rtol=0, atol=1e-8)
        assert stack.numbers[j, layout.MOMENT_B] / 0.1 == pytest.approx(slope, abs=1e-8)
        rate = 0.1 * (64 / window) ** 0.25  # of a first step, in which Adam divides the gradient by its size
        root = np.sqrt((gradient**2).mean())
        np.testing.assert_allclose(stack.L[j], L - rate * gradient / root, rtol=0, atol=1e-5)


def test_replaying_fits_the_window():
    """On a window that stays as it is, an expert comes to believe what is in it."""
    rng = np.random.default_rng(7)
    u = rng.normal(size=(600, 3))
    y = np.where(np.abs(u[:, 0]) < 0.7, 1, -1)
    experts = Replayed(3, 64)
    for row, label in zip(u, y, strict=True):
        feed(experts, row, label)
    for j in (2, 4):
        metric = experts.mix(np.eye(len(experts.floors))[j])
        right = np.mean((np.array([metric.squared_distance(row) for row in u]) < metric.mu) == (y > 0))
        assert right > 0.9
        assert metric.M[0, 0] > 5 * max(metric.M[1, 1], metric.M[2, 2])
