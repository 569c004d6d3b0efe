"""Asking: what is asked, how often, and that it goes on from a file as if nothing had happened."""

from collections import Counter
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer

import ocelad
from forge import forged, put
from ocelad import FileError, MetricTracker, Queries
from ocelad.active import GroupQuestions, at_random, committee, uncertainty, vote_entropy
from ocelad.closure import Closure
from streams import comparisons
from trackers import either, rice

N = 4
PAIRS, Y = comparisons(seed=0, steps=200, n=N)
POOL = np.random.default_rng(1).normal(size=(40, N))
STRATEGIES = [committee, uncertainty, vote_entropy, at_random]


def learned(new=MetricTracker, **options):
    return new(**options).partial_fit(PAIRS, Y)


@cache
def shared():
    """A tracker that is not taught any more."""
    return learned()


def first(_, pairs):
    """A strategy of one's own: how near the first point is to the origin."""
    return 1.0 / (1.0 + np.abs(np.asarray(pairs)[:, 0, 0]))


# What is asked


def entropy(p):
    return 0.0 if p in (0.0, 1.0) else -p * np.log(p) - (1 - p) * np.log(1 - p)


@either
def test_utilities_to_the_letter(new):
    tracker = learned(new)
    proba = tracker.predict_proba if new is rice else tracker.mixture_proba
    experts = tracker.experts_["weight"]
    for k, pair in enumerate(PAIRS[:20]):
        p = proba(pair[None])[0, 1]
        votes = sum(w for w, odds in zip(experts, tracker.expert_odds(pair[None])[0], strict=True) if odds >= 0)
        of_votes = entropy(min(votes, 1.0))
        assert uncertainty(tracker, PAIRS[:20])[k] == pytest.approx(entropy(p), abs=1e-9)
        assert vote_entropy(tracker, PAIRS[:20])[k] == pytest.approx(of_votes, abs=1e-9)
        assert committee(tracker, PAIRS[:20])[k] == pytest.approx(entropy(p) + of_votes, abs=1e-9)


@either
@pytest.mark.parametrize("strategy", [*STRATEGIES, first])
def test_the_candidate_with_the_largest_utility_is_asked(strategy, new):
    """All pairs are candidates here, so that the answer is known without drawing any."""
    tracker = learned(new)
    queries = Queries(tracker, candidates=len(PAIRS), random_state=0, strategy=strategy)
    utilities = strategy(tracker, PAIRS)
    for _ in range(3):
        assert utilities[queries.query(PAIRS)] == utilities.max()


def test_uncertainty_asks_about_the_pair_nearest_the_threshold():
    tracker = learned(rice)
    k = Queries(tracker, candidates=50, strategy=uncertainty).query(PAIRS[:50])
    gap = np.abs(tracker.pair_distance(PAIRS[:50]) ** 2 - tracker.threshold_**2)
    assert k == gap.argmin()


def test_the_best_of_the_candidates_drawn_is_asked():
    """Candidates are found out by a strategy that keeps them."""
    kept = []

    def keep(tracker, pairs):
        kept.append(np.asarray(pairs))
        return first(tracker, pairs)

    queries = Queries(shared(), candidates=4, random_state=0, strategy=keep)
    for _ in range(20):
        k = queries.query(PAIRS)
        assert kept[-1].shape == (4, 2, N)
        rows = [int((pair == PAIRS).all(axis=(1, 2)).argmax()) for pair in kept[-1]]
        assert len(set(rows)) == 4
        assert k == rows[first(None, kept[-1]).argmax()]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_candidates_are_uniform_and_each_pair_is_reachable(count):
    tracker, draws = MetricTracker(), 400 * count  # which knows nothing: the first candidate is asked
    queries = Queries(tracker, candidates=3, random_state=0)
    found = Counter(queries.query(PAIRS[:count]) for _ in range(draws))
    assert set(found) == set(range(count))
    assert max(abs(n - 400) for n in found.values()) < 4 * np.sqrt(400)


def test_pairs_of_a_pool_are_uniform():
    queries = Queries(MetricTracker(), random_state=1)
    found = Counter(queries.query_pool(POOL[:4]) for _ in range(12 * 400))
    assert set(found) == {(i, j) for i in range(4) for j in range(4) if i != j}
    assert max(abs(n - 400) for n in found.values()) < 4 * np.sqrt(400)


def test_draws_are_reproducible():
    def asked(seed):
        queries = Queries(shared(), budget=0.3, random_state=seed)
        return [(queries.query(PAIRS), queries.query_pool(POOL), queries.wants(pair)) for pair in PAIRS[:40]]

    assert asked(3) == asked(3) == asked(np.random.default_rng(3))
    assert asked(3) != asked(4)
    assert Queries(shared()).seed != Queries(shared()).seed


# Forms of input


def test_all_forms_of_pairs_and_points_are_asked_alike():
    tracker = learned()
    sides = [PAIRS[:, 0], PAIRS[:, 1]]
    names = list("abcd")
    forms = [
        PAIRS,
        PAIRS.tolist(),
        list(PAIRS),
        [sparse.csr_array(side) for side in sides],
        tuple(sparse.csc_matrix(side) for side in sides),
        [pd.DataFrame(side, columns=names) for side in sides],
    ]
    asked = [[q.query(form) for q in [Queries(tracker, random_state=5)] for _ in range(10)] for form in forms]
    assert all(each == asked[0] for each in asked)
    pools = [
        POOL,
        POOL.tolist(),
        sparse.csr_array(POOL),
        sparse.csc_array(POOL),
        pd.DataFrame(POOL, columns=names),
    ]
    asked = [[q.query_pool(pool) for q in [Queries(tracker, random_state=5)] for _ in range(10)] for pool in pools]
    assert all(each == asked[0] for each in asked)
    for one in ([sparse.csr_array(side[:1]) for side in sides], PAIRS[0].tolist()):
        a, b = (Queries(tracker, budget=0.5, random_state=0) for _ in range(2))
        assert [a.wants(one) for _ in range(20)] == [b.wants(PAIRS[0]) for _ in range(20)]


def test_indicators_with_a_preprocessor():
    numbers = np.random.default_rng(0).integers(len(POOL), size=(100, 2))
    plain, named = MetricTracker(), MetricTracker(preprocessor=POOL)
    asked = []
    for tracker, pairs, pool in ((plain, POOL[numbers], POOL), (named, numbers, np.arange(len(POOL)))):
        tracker.partial_fit(pairs[:60], Y[:60])
        queries = Queries(tracker, budget=0.5, random_state=0)
        asked.append([(queries.query(pairs), queries.query_pool(pool), queries.wants(pair)) for pair in pairs])
    assert asked[0] == asked[1]


def test_long_lists_are_not_looked_through():
    class Lazy(list):
        """A list that notes what is read."""

        read = 0

        def __getitem__(self, k):
            self.read += 1
            return super().__getitem__(k)

        def __iter__(self):
            raise AssertionError("it must not be gone through")

    pairs = Lazy([PAIRS[0]] * 100_000)
    queries = Queries(learned(), random_state=0)
    queries.query(pairs)
    assert pairs.read == 4
    points = Lazy([POOL[0]] * 100_000)
    queries.query_pool(points)
    assert points.read == 8
    bad = np.full((100_000, 2, N), np.nan)
    bad[:50_000] = 1.0
    assert any(queries.query(bad[:50_004]) < 50_000 for _ in range(3))  # NaN elsewhere is not seen


# Budgets


@either
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("budget", [0.1, 0.25, 0.6, 1.0])
def test_the_budget_is_kept(budget, strategy, new):
    """What is not spent varies by three answers or so: two in a hundred are a law where there are many."""
    pairs, y = comparisons(seed=7, steps=max(3000, int(800 / budget)), n=N)
    tracker = new()
    queries = Queries(tracker, budget=budget, random_state=int(100 * budget), strategy=strategy)
    asked = 0
    for pair, label in zip(pairs, y, strict=True):
        if queries.wants(pair):
            asked += 1
            tracker.partial_fit(pair[None], [label])
    assert asked == queries.asked
    assert queries.seen == len(pairs)
    assert asked == pytest.approx(budget * len(pairs), rel=0.02)


@pytest.mark.parametrize("utility", [0.0, 1e-9, 1e9])
def test_the_budget_is_kept_whatever_the_scale_of_utilities(utility):
    queries = Queries(shared(), budget=0.2, random_state=0, strategy=lambda _, pairs: np.full(len(pairs), utility))
    assert sum(queries.wants(PAIRS[0]) for _ in range(2000)) == pytest.approx(400, rel=0.02)


def test_more_is_asked_where_more_is_uncertain():
    tracker = learned()
    utilities = committee(tracker, PAIRS)
    sure, unsure = PAIRS[utilities.argmin()], PAIRS[utilities.argmax()]
    queries = Queries(tracker, budget=0.3, random_state=0)
    asked = np.array([(queries.wants(sure), queries.wants(unsure)) for _ in range(400)]).sum(axis=0)
    assert 0 < asked[0] < asked[1] / 3  # but not never


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tracker": 3}, "tracker must be a MetricTracker, got int"),
        ({"candidates": 0}, "candidates must be an integer >= 1"),
        ({"candidates": 2.0}, "candidates must be an integer >= 1"),
        ({"candidates": 10**6}, "candidates must be at most 10000"),
        ({"budget": 0}, r"budget must be None or a share in \(0, 1\]"),
        ({"budget": 1.5}, "budget must be None or a share"),
        ({"budget": "all"}, "budget must be None or a share"),
        ({"strategy": "committee"}, "strategy must be a function"),
        ({"random_state": "x"}, "random_state must be None, a seed"),
        ({"random_state": -1}, "random_state must be None, a seed"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        Queries(**{"tracker": MetricTracker(), **options})


def test_trackers_of_labelled_points_have_one_behind():
    front = ocelad.SupervisedMetricTracker(random_state=0).partial_fit(PAIRS[:, 0], Y)
    with pytest.raises(ValueError, match="got SupervisedMetricTracker; give its tracker_"):
        Queries(front)
    assert Queries(front.tracker_, random_state=0).query(PAIRS) < len(PAIRS)


NAN = np.full((6, 2, N), np.nan)
BAD = {
    "nan": (lambda q: q.query(NAN), "pairs must be .* found NaN .*candidates are pairs"),
    "none": (lambda q: q.query(PAIRS[:0]), "pairs must be one or more"),
    "one-dimension": (lambda q: q.query(PAIRS[:, 0, 0]), "expected by MetricTracker"),
    "number": (lambda q: q.query(3), "pairs must be an array or a list, got 3"),
    "sides": (lambda q: q.query([sparse.csr_array((3, N)), sparse.csr_array((2, N))]), "matrices of one shape"),
    "pool-nan": (lambda q: q.query_pool(NAN[:, 0]), "found NaN .*X has the points"),
    "pool-one": (lambda q: q.query_pool(POOL[:1]), "X must be two or more points"),
    "pool-3d": (lambda q: q.query_pool(PAIRS), "X must be two or more points"),
    "pool-none": (lambda q: q.query_pool(None), "X must be an array or a list"),
    "pair-nan": (lambda q: q.wants(NAN[0]), "found NaN .*of one pair"),
    "pair-three": (lambda q: q.wants(PAIRS[:3, 0]), "pair must be two points"),
    "pair-ragged": (lambda q: q.wants([[1.0], [1.0, 2.0]]), "pairs must be an array of finite numbers"),
    "pair-many": (lambda q: q.wants([sparse.csr_array(PAIRS[:, s]) for s in (0, 1)]), "pair must be two points"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("known", [True, False], ids=["learned", "new"])
def test_what_is_refused_leaves_no_trace(name, known):
    ask, message = BAD[name]
    queries = Queries(learned() if known else MetricTracker(), budget=0.5, random_state=0)
    queries.wants(PAIRS[0])
    before = dict(vars(queries))
    with pytest.raises(ValueError, match=f"(?s){message}"):
        ask(queries)
    assert vars(queries) == before


def test_points_of_other_features_are_refused():
    queries = Queries(shared(), budget=0.5, random_state=0)
    for ask in (lambda: queries.query(PAIRS[:, :, :2]), lambda: queries.query_pool(POOL[:, :2])):
        with pytest.raises(ValueError, match="pairs must have 4 features, as before, got 2"):
            ask()
    assert queries.drawn == 0


@pytest.mark.parametrize("returned", [[-1.0] * 4, [np.nan] * 4, [1.0], "abcd", 3.0])
def test_strategies_that_return_no_utilities(returned):
    queries = Queries(shared(), random_state=0, strategy=lambda *_: returned)
    with pytest.raises(ValueError, match="what strategy returns must be 4 numbers >= 0"):
        queries.query(PAIRS)
    assert queries.drawn == 0


def test_wants_needs_a_budget():
    with pytest.raises(ValueError, match=r"wants\(\) needs a budget"):
        Queries(shared()).wants(PAIRS[0])


# Files


def ask_and_learn(queries, start, stop):
    found = []
    for pair, y in zip(PAIRS[start:stop], Y[start:stop], strict=True):
        found.append((queries.query(PAIRS), queries.query_pool(POOL)))
        if queries.wants(pair):
            found.append(pair.tolist())
            queries.tracker.partial_fit(pair[None], [y])
    return found


@either
@pytest.mark.parametrize("cut", [0, 1, 30])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_queries_go_on_bit_for_bit(strategy, cut, new):
    queries = Queries(new(), candidates=3, budget=0.4, random_state=1, strategy=strategy)
    ask_and_learn(queries, 0, cut)
    data = ocelad.dumps(queries)
    again = ocelad.loads(data)
    assert ocelad.dumps(again) == data
    assert ask_and_learn(again, cut, 60) == ask_and_learn(queries, cut, 60)
    assert ocelad.dumps(again) == ocelad.dumps(queries)


def test_files_of_queries(tmp_path):
    queries = Queries(learned(), random_state=2)
    ocelad.save(queries, tmp_path / "queries")
    again = ocelad.load(tmp_path / "queries")
    assert again.budget is None
    assert [again.query(PAIRS) for _ in range(9)] == [queries.query(PAIRS) for _ in range(9)]
    with pytest.raises(ValueError, match="cannot be saved: a file holds one of committee"):
        ocelad.dumps(Queries(shared(), strategy=first))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("os.system", "strategy"), "strategy must be one of committee"),
        (put(3, "strategy"), "strategy must be one of committee"),
        (put(2.0, "budget"), r"budget must be None or a share"),
        (put("1", "budget"), "budget must be null or a number"),
        (put(1, "budget"), "budget must be null or a number"),
        (put(0, "candidates"), "candidates must be an integer >= 1"),
        (put(2**40, "candidates"), "candidates must be at most 10000"),
        (put(True, "candidates"), "candidates must be an integer >= "),
        (put(-1, "seed"), "seed must be an integer >= 0"),
        (put(2**62, "drawn"), "drawn must be an integer >= 0"),
        (put(1.0, "seen"), "seen must be an integer >= 0"),
        (put(10**6, "asked"), "asked and judged must not be more than seen"),
        (put(10**6, "judged"), "asked and judged must not be more than seen"),
        (put(10**6, "seen"), "nor seen more than drawn"),
        (put(-1.0, "usual"), "usual must be a finite number >= 0"),
        (put(0, "usual"), "usual must be a finite number >= 0"),
        (put("inf", "owed"), "owed must be a finite number"),
        (put(None, "tracker"), "tracker must have the entries of a MetricTracker"),
        (put(1, "x"), "does not have the entries of this version"),
        (put(np.zeros(1), "x"), "arrays"),
    ],
)
def test_files_out_of_order_are_refused(tmp_path, change, message):
    path = tmp_path / "queries"
    queries = Queries(learned(), budget=0.4, random_state=1)
    ask_and_learn(queries, 0, 10)
    ocelad.save(queries, path)
    path.write_bytes(forged(path.read_bytes(), change))
    with pytest.raises(FileError, match=message):
        ocelad.load(path)


# Groups


def partition(questions, closure, kinds, tracker=None):
    answers = 0
    while (asked := questions.query()) is not None:
        i, j = asked
        assert closure.implied(i, j) == 0  # nothing is asked that is known
        y = 1 if kinds[i] == kinds[j] else -1
        closure.answer(i, j, y)
        if tracker is not None:
            tracker.partial_fit([questions.X[[i, j]]], [y])
        answers += 1
    return answers


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=25), st.integers(0, 2**31), st.booleans())
def test_group_questions_end_with_the_true_partition_whatever_the_tracker_says(kinds, seed, taught):
    X = np.random.default_rng(seed).normal(size=(len(kinds), N))
    tracker, closure = (learned() if taught else MetricTracker()), Closure(window=None)
    answers = partition(GroupQuestions(tracker, closure, X), closure, kinds)
    found = {frozenset(group) for group in closure.groups()} or {frozenset([0])}
    assert found == {frozenset(k for k, kind in enumerate(kinds) if kind == one) for one in set(kinds)}
    assert answers <= len(kinds) * len(set(kinds))


def test_group_questions_learn_where_to_look():
    rng = np.random.default_rng(0)
    kinds = rng.integers(4, size=120)
    X = np.hstack([3 * np.eye(4)[kinds] + 0.5 * rng.normal(size=(120, 4)), 3 * rng.normal(size=(120, 12))])
    counts = []
    for tracker in (MetricTracker(), None):
        closure = Closure(window=None)
        questions = GroupQuestions(tracker or MetricTracker(), closure, X)
        counts.append(partition(questions, closure, kinds, tracker))
    assert counts[0] < 0.75 * counts[1]


def test_group_questions_of_a_table_with_names():
    X = pd.DataFrame(POOL, columns=list("abcd"))
    tracker = MetricTracker().partial_fit((X[:20], X[20:]), np.tile([1, -1], 10))
    i, j = GroupQuestions(tracker, Closure(window=None), X).query()
    assert i != j


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tracker": None}, "tracker must be a MetricTracker"),
        ({"closure": Closure()}, r"closure must be a Closure\(window=None\)"),
        ({"closure": None}, "closure must be a Closure"),
        ({"X": POOL[0]}, r"X must be points, of shape \(m, n\)"),
        ({"X": NAN[:, 0]}, "X must be .* found NaN"),
        ({"X": np.zeros((0, 3))}, "X must be points"),
    ],
)
def test_group_questions_about_nothing(options, message):
    with pytest.raises(ValueError, match=message):
        GroupQuestions(**{"tracker": MetricTracker(), "closure": Closure(window=None), "X": POOL, **options})


def test_group_questions_need_numbers_of_points():
    closure = Closure(window=None)
    questions = GroupQuestions(MetricTracker(), closure, POOL)
    closure.answer(0, 99, 1)
    with pytest.raises(ValueError, match="closure must have numbers of points, 0 to 39, got 99"):
        questions.query()


def test_texts_and_other_points_that_features_are_made_of():
    words = np.array(
        [f"{colour} {animal}" for colour in ("red", "blue", "green") for animal in ("cat", "dog", "owl")]
    )
    encoder = TfidfVectorizer().fit(words)
    alike = [word.split()[1] for word in words]
    for tracker in (
        MetricTracker(features=lambda texts: encoder.transform(texts).toarray()),
        MetricTracker(features=lambda texts: encoder.transform(texts).toarray(), nonlinear=True),
    ):
        queries, closure = Queries(tracker, budget=0.5, random_state=0), Closure(window=None)
        for _ in range(20):
            i, j = queries.query_pool(words)
            assert queries.query(words[[[0, 1], [i, j]]]) in (0, 1)
            assert queries.wants(words[[i, j]]) in (True, False)
            tracker.partial_fit(words[[[i, j]]], [1 if alike[i] == alike[j] else -1])
        questions = GroupQuestions(tracker, closure, words)
        while (asked := questions.query()) is not None:
            i, j = asked
            closure.answer(i, j, 1 if alike[i] == alike[j] else -1)
        assert sorted(map(len, closure.groups())) == [3, 3, 3]
    scaled = MetricTracker(features=PCA(2).fit(np.random.default_rng(0).normal(size=(50, 5))))
    pairs = np.random.default_rng(1).normal(size=(30, 2, 5))
    scaled.partial_fit(pairs, np.where(pairs[:, 0, 0] > 0, 1, -1))
    assert 0 <= Queries(scaled, random_state=0).query(pairs) < 30


def test_tables_of_any_kind():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.where(np.abs(X[:20, 0] - X[20:, 0]) < 1, 1, -1)
    asked = []
    for table in (
        lambda A: pd.DataFrame(A, columns=list("abc"), index=range(100, 100 + len(A))),
        lambda A: pl.DataFrame(A, schema=list("abc")),
        lambda A: pa.table(dict(zip("abc", A.T, strict=True))),
    ):
        sides = table(X[:20]), table(X[20:])
        queries = Queries(MetricTracker().partial_fit(sides, y), random_state=0)
        asked.append([queries.query_pool(table(X)), queries.query_pool(table(X)), queries.query(sides)])
    assert asked[0] == asked[1] == asked[2]
