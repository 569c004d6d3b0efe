"""Laws of regret: every interval, the dyadic ones among them, the worst of each length, and how it grows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ocelad import Metric
from ocelad.evaluate import Regret, dyadic_intervals, geometric_lengths, growth_exponent, interval_sums, variation
from ocelad.intervals import active

LOSS = st.floats(-10, 10)
RUNS = st.integers(1, 40).flatmap(
    lambda T: st.tuples(arrays(float, T, elements=LOSS), arrays(float, (3, T), elements=LOSS))
)


def test_interval_sums_by_brute_force():
    values = np.random.default_rng(0).normal(size=12)
    sums = interval_sums(values)
    for q in range(12):
        for s in range(12):
            if s < q:
                assert np.isnan(sums[q, s])
            else:
                assert sums[q, s] == pytest.approx(values[q : s + 1].sum())


@given(RUNS)
def test_regret_is_ours_minus_the_best_of_theirs_on_every_interval(run):
    ours, theirs = run
    every = Regret.static(ours, theirs).every()
    for q in range(len(ours)):
        for s in range(q, len(ours)):
            best = min(row[q : s + 1].sum() for row in theirs)
            assert every[q, s] == pytest.approx(ours[q : s + 1].sum() - best, abs=1e-9)


@given(RUNS)
def test_static_regret_against_one_constant_is_dynamic_regret_with_a_constant_comparator(run):
    ours, theirs = run
    static, dynamic = Regret.static(ours, theirs[:1]), Regret.dynamic(ours, theirs[0])
    np.testing.assert_array_equal(static.every(), dynamic.every())
    # and against several it is the largest of them
    each = [Regret.dynamic(ours, row).every() for row in theirs]
    np.testing.assert_array_equal(Regret.static(ours, theirs).every(), np.max(each, axis=0))


@given(RUNS, st.sampled_from([1, 2, 3, 8]))
def test_dyadic_intervals_are_a_selection_of_all(run, base):
    regret = Regret.static(*run)
    every = regret.every()
    for size, first, values in regret.dyadic(base):
        np.testing.assert_array_equal(values, every[first, first + size - 1])


@pytest.mark.parametrize("base", [1, 2, 8])
@pytest.mark.parametrize("T", [1, 7, 8, 100])
def test_dyadic_intervals_are_those_of_the_ensemble(T, base):
    listed = {(q, q + size - 1) for size, first in dyadic_intervals(T, base) for q in first.tolist()}
    wanted = set()
    for t in range(base, base + T):  # the paper's clock
        for size in (base << level for level in range(active(t, base))):
            q = t // size * size
            if q + size <= base + T:
                wanted.add((q - base, q - base + size - 1))
    assert listed == wanted


@given(RUNS)
def test_strongly_adaptive_regret_is_the_largest_of_each_length(run):
    regret = Regret.static(*run)
    every = regret.every()
    worst = regret.strongly_adaptive()
    assert len(worst) == len(regret)
    for length, value in enumerate(worst, 1):
        assert value == np.diagonal(every, length - 1).max()
    np.testing.assert_array_equal(regret.strongly_adaptive([len(regret)]), worst[-1:])


def test_long_runs_take_little_memory():
    T = 2**20
    regret = Regret.dynamic(np.ones(T), np.zeros(T))
    assert sum(len(first) for _, first, _ in regret.dyadic()) == 2 * T - T.bit_length()
    assert all((values == size).all() for size, _, values in regret.dyadic())


def test_bad_runs_are_refused():
    with pytest.raises(ValueError, match="ours and theirs must hold a loss for each"):
        Regret.dynamic([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="ours and theirs must be finite"):
        Regret.dynamic([math.nan], [1.0])
    with pytest.raises(ValueError, match="length must be from 1 to 2"):
        Regret.dynamic([1.0, 2.0], [1.0, 1.0]).of_length(3)
    for first, last in ((-1, 1), (1, 0), (0, 2)):
        with pytest.raises(ValueError, match="intervals must have 0 <= first <= last < 2"):
            Regret.dynamic([1.0, 2.0], [1.0, 1.0]).on(first, last)
    with pytest.raises(ValueError, match="comparator must be a sequence"):
        variation([])


def test_variation_by_hand():
    assert variation([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]]).tolist() == [5.0, 0.0, 0.0]
    assert variation(np.array([1.0, 4.0])).tolist() == [3.0, 0.0]
    metrics = [Metric(np.zeros((2, 2)), 1.0), Metric([[1.0, 1.0], [1.0, 1.0]], 1.0), Metric(np.zeros((2, 2)), 4.0)]
    assert variation(metrics).tolist() == pytest.approx([2.0, math.sqrt(13), 0.0])
    assert variation(metrics, threshold_step=0.25)[1] == pytest.approx(math.sqrt(40))


@pytest.mark.parametrize("power", [0.25, 0.5, 0.75, 1.0])
def test_the_exponent_of_a_power_is_the_power(power):
    """Regret t^power - (t - 1)^power per step falls, so the worst interval of each length is the first."""
    t = np.arange(2001.0)
    regret = Regret.dynamic(3 * np.diff(t**power), np.zeros(2000))
    lengths = geometric_lengths(4, 2000)
    growth = growth_exponent(lengths, regret.strongly_adaptive(lengths))
    assert growth.exponent == pytest.approx(power, abs=1e-9)
    assert growth.factor == pytest.approx(3.0, rel=1e-9)
    assert growth.error < 1e-9
    assert (growth.lengths, growth.omitted) == (len(lengths), 0)


def test_bursts_that_come_back_do_not_grow_with_the_square_root():
    """Ten lost at every 100th step: constant up to 100, linear beyond."""
    regret = Regret.dynamic(np.where(np.arange(10_000) % 100 == 0, 10.0, 0.0), np.zeros(10_000))
    short, long = geometric_lengths(4, 100), 100 * 2 ** np.arange(6)
    assert growth_exponent(short, regret.strongly_adaptive(short)).exponent == pytest.approx(0.0, abs=1e-12)
    assert growth_exponent(long, regret.strongly_adaptive(long)).exponent == pytest.approx(1.0, abs=1e-9)


def test_lengths_without_positive_regret_are_left_out_and_counted():
    growth = growth_exponent([1, 2, 4, 8, 16], [2.0, 4.0, 8.0, 0.0, -5.0])
    assert growth.exponent == pytest.approx(1.0)
    assert (growth.lengths, growth.omitted) == (3, 2)
    assert math.isnan(growth_exponent([1, 2, 4], [1.0, -1.0, 1.0]).exponent)
    with pytest.raises(ValueError, match="lengths and regrets must be of one shape"):
        growth_exponent([1, 1, 2], [1.0, 1.0, 1.0])


def test_geometric_lengths():
    lengths = geometric_lengths(16, 1024)
    assert lengths[0] == 16
    assert lengths[-1] == 1024
    assert len(lengths) == 4 * 6 + 1
    assert geometric_lengths(1, 5).tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="expected 1 <= shortest <= longest"):
        geometric_lengths(8, 4)
