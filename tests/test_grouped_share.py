"""`GroupedShare`: Bayes' rule for a best expert that changes now and then, within its group or to another one."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ocelad import GroupedShare, Ocelad
from ocelad.ensemble import Pool, Union
from ocelad.protocols import Opening

SIZES = (3, 1, 4)


def begun(rule, sizes=SIZES):
    groups = tuple(g for g, size in enumerate(sizes) for _ in range(size))
    slots = tuple(range(len(groups)))
    return rule.open(np.zeros((0, 2)), Opening(0, slots, (1.0,) * len(slots), groups))


def mix_loss(p, losses):
    p, losses = p[p > 0], losses[p > 0]
    return float(losses.min() - np.log(p @ np.exp(losses.min() - losses)))


def run(rule, losses, sizes=SIZES):
    """The weights before every step, and what the mixture has lost in each."""
    state, weights, mixed = begun(rule, sizes), [], []
    for row in losses:
        weights.append(rule.probabilities(state))
        mixed.append(mix_loss(weights[-1], row))
        state = rule.update(state, row, lambda: 0.0)
    return np.array(weights), np.array(mixed)


def random_losses(seed, steps=60, size=8, scale=2.0):
    return np.random.default_rng(seed).gamma(0.5, scale, size=(steps, size))


# Laws


@given(st.integers(0, 10**6), st.sampled_from([0.01, 1.0, 100.0, 1e4]), st.sampled_from([0.0, 0.01, 0.9]))
@example(410, 1e4, 0.01)  # a group of denormal weight
@settings(max_examples=60, deadline=None)
def test_weights_sum_to_one_and_keep_their_share(seed, scale, share):
    rule = GroupedShare(share, 0.1 * share)
    weights, _ = run(rule, random_losses(seed, 30, scale=scale))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    least = np.concatenate([np.full(size, share / size * 0.1 * share / len(SIZES)) for size in SIZES])
    assert (weights >= least * (1 - 1e-9)).all()


@given(st.integers(0, 10**6), st.floats(-50, 50))
@settings(max_examples=30, deadline=None)
def test_a_constant_added_to_all_losses_changes_nothing(seed, constant):
    losses = random_losses(seed)
    np.testing.assert_allclose(
        run(GroupedShare(), losses)[0], run(GroupedShare(), losses + constant)[0], rtol=1e-9
    )


def test_without_shares_it_is_bayes_rule():
    losses = random_losses(0)
    prior = np.repeat(1 / 3 / np.array(SIZES), SIZES)
    posterior = prior * np.exp(-np.cumsum(losses, axis=0)[:-1])
    weights, _ = run(GroupedShare(0.0, 0.0), losses)
    np.testing.assert_allclose(weights[1:], posterior / posterior.sum(axis=1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize(("share", "between"), [(0.01, 0.001), (0.3, 0.1), (0.0, 0.2), (0.2, 0.0)])
def test_two_levels_of_fixed_share_give_the_same_weights(share, between):
    """Each group a mixture of its own by fixed share, whose mix loss is what the mixture of the groups sees."""
    losses = random_losses(1)
    ends = np.cumsum(SIZES)
    within, groups = [np.full(size, 1 / size) for size in SIZES], np.full(3, 1 / 3)
    weights, _ = run(GroupedShare(share, between), losses)
    for row, got in zip(losses, weights, strict=True):
        np.testing.assert_allclose(
            got, np.concatenate([g * w for g, w in zip(groups, within, strict=True)]), rtol=1e-9
        )
        parts = np.split(row, ends[:-1])
        seen = np.array([mix_loss(w, part) for w, part in zip(within, parts, strict=True)])
        groups = groups * np.exp(-seen) / (groups @ np.exp(-seen))
        groups = (1 - between) * groups + between / 3
        for g, part in enumerate(parts):
            w = within[g] * np.exp(-part)
            within[g] = (1 - share) * w / w.sum() + share / len(w)


@pytest.mark.parametrize("between", [0.0, 0.001])
def test_a_slot_that_enters_leaves_its_group_the_weight_that_it_had(between):
    rule = GroupedShare(between=between)
    state = rule.update(begun(rule), random_losses(2)[0], lambda: 0.0)
    before = rule.probabilities(state)
    after = rule.probabilities(rule.open(state, Opening(1, (8, 9), (1.0, 1.0), (0, 2))))
    own = np.append(np.repeat([0, 1, 2], SIZES), [0, 2])
    for g in range(3):
        assert after[own == g].sum() == pytest.approx(before[own[:8] == g].sum(), rel=1e-12)
    assert after[8] == pytest.approx(after[:3].mean(), rel=1e-12)
    assert after[9] == pytest.approx(after[4:8].mean(), rel=1e-12)
    np.testing.assert_allclose(after[:3] / after[0], before[:3] / before[0], rtol=1e-12)


def test_a_group_that_enters_has_the_mean_weight_of_the_others():
    rule = GroupedShare()
    state = rule.open(begun(rule, (2, 1)), Opening(1, (3, 4), (1.0, 1.0), (7, 7)))
    np.testing.assert_allclose(rule.probabilities(state), [1 / 6, 1 / 6, 1 / 3, 1 / 6, 1 / 6], rtol=1e-12)


def test_slots_that_open_again_keep_their_weight():
    rule = GroupedShare()
    state = rule.update(begun(rule), random_losses(3)[0], lambda: 0.0)
    np.testing.assert_array_equal(rule.open(state, Opening(1, (4, 5), (1.0, 1.0), (2, 2))), state)


@pytest.mark.parametrize("between", [0.0, 0.001])
def test_a_group_that_has_lost_everything(between):
    """Losses of thousands of nats, from comparisons that weigh much: no warning, and no weight but its share."""
    rule = GroupedShare(between=between)
    state = rule.update(begun(rule), np.repeat([0.0, 5000.0, 5000.0], SIZES), lambda: 0.0)
    p = rule.probabilities(state)
    np.testing.assert_allclose(p[3:], np.repeat([between / 3, between / 3 / 4], SIZES[1:]), rtol=1e-9)
    state = rule.open(state, Opening(1, (8,), (1.0,), (2,)))
    assert rule.probabilities(state)[4:].sum() == pytest.approx(between / 3, rel=1e-9)
    assert np.isfinite(rule.probabilities(rule.update(state, np.ones(9), lambda: 0.0))).all()


@pytest.mark.parametrize("name", ["share", "between"])
@pytest.mark.parametrize("bad", [-0.1, 1.0, np.nan, "much", None])
def test_options_that_are_none(name, bad):
    with pytest.raises(ValueError, match=f"{name} must lie in"):
        GroupedShare(**{name: bad})


class Constant:
    """A learner that always says the same."""

    def __init__(self, estimate):
        self.estimate = estimate

    def update(self, loss):
        pass


def test_the_parts_of_a_union_are_the_groups():
    union = Union(Pool([Constant(0.0), Constant(1.0)]), Pool([Constant(5.0)]))
    ocelad = Ocelad(union, GroupedShare())
    np.testing.assert_allclose(ocelad.probabilities, [0.25, 0.25, 0.5])
    for _ in range(20):
        ocelad.update(lambda x: abs(x - 4.0))
    assert ocelad.probabilities.argmax() == 2
    assert ocelad.estimate == pytest.approx(ocelad.probabilities @ [0.0, 1.0, 5.0])


# The mixture is behind any sequence of experts by no more than it takes to describe the sequence


def least_description(rule, losses, sizes, entrance):
    """min over all sequences of experts of what they lose plus the nats that describe them (Viterbi).

    It takes log(groups k_g) to name the first. From then on: -log of the chance to stay in a group times the
    chance to stay, or to change, within it; or to change to another, times what is left there for whoever it is,
    ``entrance`` of its k_g.
    """
    k, groups = np.repeat(sizes, sizes), np.repeat(np.arange(len(sizes)), sizes)
    same = groups[:, None] == groups
    inside = (1 - rule.share) * np.eye(len(k)) + rule.share / k
    stay, change = 1 - rule.between + rule.between / len(sizes), rule.between / len(sizes)
    cost = -np.log(np.where(same, stay * inside, change * np.where(k == 1, 1.0, entrance / k)))
    best = np.log(len(sizes) * k) + losses[0]
    for row in losses[1:]:
        best = (best[:, None] + cost).min(axis=0) + row
    return best.min()


def jumping_losses(seed, steps, sizes, every):
    """One expert is right for a while, then another one."""
    rng = np.random.default_rng(seed)
    best = np.repeat(rng.integers(sum(sizes), size=steps // every + 1), every)[:steps]
    return np.where(np.arange(sum(sizes)) == best[:, None], 0.1, 3.0) * rng.uniform(0.5, 1.5, (steps, sum(sizes)))


def adversarial_losses(rule, steps, sizes, size):
    """Whoever is believed most is wrong."""
    state, losses = begun(rule, sizes), np.zeros((steps, sum(sizes)))
    for row in losses:
        row[rule.probabilities(state).argmax()] = size
        state = rule.update(state, row, lambda: 0.0)
    return losses


@pytest.mark.parametrize("sizes", [(8,), (3, 1, 4), (10, 1, 9)])
@pytest.mark.parametrize("rule", [GroupedShare(), GroupedShare(0.1, 0.05)])
def test_tracking_bound(rule, sizes):
    steps = 300
    streams = [random_losses(seed, steps, sum(sizes)) for seed in range(3)]
    streams += [jumping_losses(seed, steps, sizes, every) for seed in range(3) for every in (10, 50, 150)]
    streams += [adversarial_losses(rule, steps, sizes, size) for size in (0.1, 2.0, 30.0)]
    for losses in streams:
        _, mixed = run(rule, losses, sizes)
        assert mixed.sum() <= least_description(rule, losses, sizes, rule.share) + 1e-8


def test_tracking_bound_is_close_to_what_is_lost():
    """On jumps it is not far off: else it would say nothing."""
    losses = jumping_losses(0, 600, SIZES, 200)
    total, bound = run(GroupedShare(), losses)[1].sum(), least_description(GroupedShare(), losses, SIZES, 0.01)
    assert bound - 15.0 < total <= bound


def test_a_group_is_entered_by_whoever_is_believed_in_it():
    """Another of the group is one change more: what describes it is between/G share/k, not between/G/k."""
    rule, sizes = GroupedShare(), (2, 2)
    losses = np.zeros((200, 4))
    losses[:100, 1:] = [5.0, 3.0, 5.0]  # the first is right, and in the other group the third is the better one;
    losses[100:, :3] = 5.0  # then the fourth is right
    total = run(rule, losses, sizes)[1].sum()
    assert least_description(rule, losses, sizes, 1.0) + 2.0 < total
    assert total <= least_description(rule, losses, sizes, rule.share)
