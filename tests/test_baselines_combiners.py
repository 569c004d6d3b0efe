"""Combiners of the baselines: weights by hand, and which learners they keep."""

import numpy as np
import pytest

from ocelad import OceladWeights, SaolWeights
from ocelad.baselines import LeadingHistory, UnclippedSaol, comid, fixed_share, restarted
from ocelad.baselines.leading_history import birth
from ocelad.protocols import Opening
from streams import comparisons

N = 4


def matrix(tracker):
    return tracker.get_mahalanobis_matrix()


def test_fixed_share_runs_every_rate():
    pairs, y = comparisons(seed=6, steps=60, n=N)
    steps = (0.25, 1.0, 4.0)
    mixed = fixed_share(steps, strength=0.05).partial_fit(pairs, y)
    alone = [matrix(comid(step, 0.05).partial_fit(pairs, y)) for step in steps]
    for level, M in zip(mixed.expert_metrics_, alone, strict=True):
        np.testing.assert_allclose(level.M, M, atol=1e-10)
    np.testing.assert_allclose(matrix(mixed), np.tensordot(mixed.experts_["weight"], alone, 1), atol=1e-10)


def test_leading_history_keeps_someone_for_every_past():
    """For all s <= t one of the learners alive at t was born in [s, (s + t)/2], and there are few of them."""
    alive = {}
    for t in range(1, 700):
        slot, life = birth(t)
        if slot in alive:  # who had the slot dies at this very time
            assert sum(alive[slot]) == t
        else:
            assert slot == len(alive)
        alive[slot] = (t, life)
        assert all(born + span > t for born, span in alive.values())
        assert len(alive) <= 2 * np.log2(t) + 2
        births = np.array(sorted(born for born, _ in alive.values()))
        starts = np.arange(1, t + 1)
        first = births[np.searchsorted(births, starts)]  # the first birth from s on
        assert (first <= (starts + t) / 2).all()


def test_leading_history_weights_by_hand():
    rule, rng, p = LeadingHistory(rate=0.7), np.random.default_rng(0), {}
    state = np.zeros((0, 1))
    for t in range(40):
        slot, _ = birth(t + 1)
        p.pop(slot, None)  # who dies
        total = sum(p.values())
        p = {key: value / total * (1 - 1 / (t + 1)) for key, value in p.items()}
        p[slot] = 1 / (t + 1)
        state = rule.open(state, Opening(t, (slot,), (1.0,)))
        np.testing.assert_allclose(rule.probabilities(state), [p[key] for key in range(len(p))], rtol=1e-12)
        losses = rng.random(len(p))
        state = rule.update(state, losses, lambda: 0.0)
        x = (losses - losses.min()) / (losses.max() - losses.min()) if len(p) > 1 else 0 * losses
        p = {key: value * np.exp(-0.7 * x[key]) for key, value in p.items()}
        total = sum(p.values())
        p = {key: value / total for key, value in p.items()}


def test_leading_history_serves_other_ensembles_too():
    pairs, y = comparisons(seed=7, steps=60, n=N)
    tracker = restarted(2.0, base=4, weights=LeadingHistory()).partial_fit(pairs, y)
    assert tracker.experts_["weight"].sum() == pytest.approx(1)
    assert np.isfinite(matrix(tracker)).all()


@pytest.mark.parametrize("size", [1.0, 20.0])
def test_unclipped_saol_rescales_only_where_it_must(size):
    rng, rule, clipped = np.random.default_rng(0), UnclippedSaol(seed=3), SaolWeights(seed=3)
    state = rule.open(np.zeros((0, 4)), Opening(0, (0, 1, 2), (1.0, 16.0, 64.0)))
    for t in range(1, 50):
        losses = size * rng.random(3)
        r = state[:, 3] @ losses - losses
        rate = np.minimum(0.5, state[:, 1] ** -0.5)
        expected = state[:, 0] + np.log(1 + rate * r / max(1.0, np.abs(r).max()))
        new = rule.update(state, losses, lambda: 0.0)
        np.testing.assert_allclose(new[:, 0], expected, rtol=1e-12)
        same = np.allclose(new, clipped.update(state, losses, lambda: 0.0))
        assert same == (size == 1.0 or not r.any())
        state = rule.open(new, Opening(t, (), ()))


def test_restarted_learners_forget():
    """At t = 2^j all but nothing is left of what was learned before; retro-initialised ones remember."""
    pairs, y = comparisons(seed=8, steps=63, n=N)
    fresh = restarted(2.0).partial_fit(pairs, y)
    assert not matrix(fresh).any()
    assert matrix(fresh.set_params(ensemble=None).fit(pairs, y)).any()
    assert isinstance(fresh.weights, OceladWeights)


def test_weights_that_have_all_but_vanished_are_shared_out_as_any():
    state = np.array([[0.0], [-900.0], [-901.0]])  # of these, exp is 0
    p = np.exp(LeadingHistory(rate=1000.0).open(state, Opening(3, (0,), (1.0,)))[:, 0])
    np.testing.assert_allclose(p, [0.25, 0.75 / (1 + np.exp(-1.0)), 0.75 / (1 + np.e)])
