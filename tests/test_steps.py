"""One learner's step, compiled: the secular equation at its worst, learners kept by columns or a dictionary."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from called import called
from ocelad import FixedShare, Hinge
from ocelad.engine import stack_engine
from ocelad.engine.kernels import dictionary, factored, layout, scratch, secular
from ocelad.engine.mixture import columns
from ocelad.geometry.comid import Descent, Recipe

roots, vectors = called(secular.roots), called(secular.vectors)
project, distance, extend = called(factored.project), called(factored.distance), called(factored.extend)
rank_one, shrink, truncate = called(factored.rank_one), called(factored.shrink), called(factored.truncate)
rotate = called(factored.rotate)
remember, widen = called(dictionary.remember), called(dictionary.widen)
height, compress = called(dictionary.height), called(dictionary.compress)


def scratch_for(n, room=None, height=0):
    """Scratch for learners of n features, full of what must not matter."""
    room = n if room is None else room
    header = [n, 2, room, height, 0, 0, 0, 0, 0, 0]
    work, index, every, single = scratch.sizes(*header)
    buffers = np.full(work, 7.0), np.zeros(index, dtype=np.int64), np.arange(every), np.zeros(single, np.float32)
    return scratch.lay_out(*buffers, header)


# The secular equation


def poles(rng, kind, k):
    if kind == "spread":
        return np.sort(rng.normal(size=k))
    if kind == "crowded":  # half of them within a millionth of each other
        return np.sort(np.concatenate([1 + 1e-6 * rng.random(k // 2), rng.random(k - k // 2)]))
    return np.cumsum(10.0 ** rng.uniform(-11, 0, size=k))  # gaps over eleven orders of magnitude


def solved(d, z, a, down=False):
    k, own = len(d), scratch_for(len(d))
    own.vectors[scratch.POLE, :k], own.vectors[scratch.WEIGHT, :k] = d, np.sqrt(a) * z
    roots(own.vectors, k, down, own.lane, own.indices[scratch.ROOT])
    vectors(own.vectors, k, down, own.arange, own.V)
    return own.vectors[[scratch.NEAREST, scratch.OFFSET], :k].sum(axis=0), own.V[:k, :k]


@settings(deadline=None, max_examples=300)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 100),
    kind=st.sampled_from(["spread", "crowded", "uneven"]),
    spread=st.sampled_from([0, 6]),
    size=st.floats(-3, 3),
)
def test_diagonal_plus_rank_one(seed, k, kind, spread, size):
    rng = np.random.default_rng(seed)
    d = poles(rng, kind, k)
    z = rng.normal(size=k) * 10.0 ** rng.uniform(-spread, 0, size=k)
    a = 10.0**size
    assume((np.diff(d) > 1e-12 * np.abs(d).max()).all())  # else it is deflation's business, as in `rank_one`:
    length = np.linalg.norm(z)
    assume((a * np.abs(z) * length > 8 * np.finfo(float).eps * max(np.abs(d).max(), a * length**2)).all())
    w, V = solved(d, z, a)
    A = np.diag(d) + a * np.outer(z, z)
    np.testing.assert_allclose((V * w) @ V.T, A, atol=2e-14 * np.abs(A).max())
    np.testing.assert_allclose(V.T @ V, np.eye(k), atol=2e-14)
    assert (np.diff(w) >= 0).all()  # they interlace with the poles
    assert (w >= d).all()
    assert (w[:-1] <= d[1:]).all()


@pytest.mark.parametrize("down", [False, True])
def test_weights_of_many_close_poles_are_recomputed_in_range(down):
    """Half of the poles are as good as one: in the wrong order, products of gaps are 1e-384 or as large."""
    rng = np.random.default_rng(0)
    d = np.concatenate([np.linspace(0.0, 0.5, 32), 1.0 + 1e-12 * np.arange(1, 33)])
    z = 1e-2 * rng.normal(size=64)
    w, V = solved(d, z, 1.0, down)
    np.testing.assert_allclose((V * w) @ V.T, np.diag(d) + np.outer(z, z), atol=2e-14)
    np.testing.assert_allclose(V.T @ V, np.eye(64), atol=2e-14)


# One factored learner


def dense(Q, s, r, sigma):
    return sigma * (np.eye(len(Q)) - Q[:, :r] @ Q[:, :r].T) + (Q[:, :r] * s[:r]) @ Q[:, :r].T


def kept_by_dictionary(Q, r, rng):
    """An engine whose first learner has columns Q, combinations of its own and of comparisons."""
    n = len(Q)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stack_engine, "DICTIONARY", 1)
        own = stack_engine.StackEngine(Recipe(n, 0.0, 1.0, 1.0, Descent(), 8, "fresh"), Hinge(), FixedShare())
    own.reserve(1, n)
    recent, stack = r - min(r, 3), own.stack  # orthonormal they are here, but need not be
    F = np.linalg.qr(rng.normal(size=(r, r)))[0]
    D = Q[:, :r] @ F.T
    stack.columns[1, :, : r - recent] = D[:, recent:]
    stack.recent[:, :recent], stack.recent[:, recent] = D[:, :recent], np.eye(n)[0]
    stack.factors[1, :r, :r] = np.roll(F, -recent, axis=0)
    stack.rank[1], stack.own[1], stack.since[1], stack.touched[1] = r, r - recent, 0, n
    stack.header[[layout.RECENT, layout.SEEN]] = recent + 1, n
    stack.features[[1, -1], layout.LIST], stack.features[[1, -1], layout.MARK] = np.arange(n), 1
    return own


CASES = ["general", "repeated", "inside", "along", "empty", "full", "ties", "tiny"]


@pytest.mark.parametrize("a", [0.7, -0.7, 1e-9, -1e9])
@pytest.mark.parametrize("tau", [0.0, 0.05])
@pytest.mark.parametrize("sigma", [0.0, 0.5])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kept_by", ["columns", "dictionary"])
def test_rank_one_step_of_a_factored_learner(kept_by, case, sigma, tau, a):
    n, rng = 10, np.random.default_rng(0)
    r = {"empty": 0, "full": n}.get(case, 5)
    Q, s = np.zeros((n, 12)), np.zeros(12)  # rows in fives, columns in fours
    Q[:, :n] = np.linalg.qr(rng.normal(size=(n, n)))[0]
    s[:r] = 1.0 if case == "ties" else rng.random(r) + 0.1
    if case == "repeated":
        s[1:3] = s[0]
    u = rng.normal(size=n)
    if case == "inside":
        u = Q[:, :r] @ rng.normal(size=r)  # no new direction
    if case == "along":
        u = 2.0 * Q[:, 1]  # an eigenvector: nothing mixes
    if case == "tiny":
        u = Q[:, 0] + 1e-13 * rng.normal(size=n)
    M = dense(Q, s, r, sigma)
    w, V = np.linalg.eigh(M + a * np.outer(u, u))
    expected = (V * np.maximum(w - tau, 0)) @ V.T
    z, square, before = np.zeros(20), float(u @ u), r
    if kept_by == "columns":
        work = scratch_for(n, 12)
        project(Q, r, u, work.arange, n, z)
        assert distance(s, r, sigma, z, square) == pytest.approx(u @ M @ u)
        if r < n:
            residual, second = work.vectors[[scratch.RESIDUAL, scratch.SECOND]]
            r = extend(Q, work.arange, n, r, u, square, z, residual, second)
        turned, tall = Q, n
    else:
        own = kept_by_dictionary(Q, r, rng)
        stack, work = (
            own.stack,
            scratch_for(*own.stack.header[[layout.N, layout.CAPACITY, layout.HEIGHT]].tolist()),
        )
        z[:r], work.differences[0, :n], work.lengths[0] = columns(stack, 1).T @ u, u, square
        work.counts[0], work.slopes[0] = n, 0.0
        remember(0, work.arange, stack, work)
        if r < n:
            r = widen(1, 0, z, stack, work)
        turned, tall = stack.factors[1], height(1, stack)
    if r > before:
        s[before] = sigma
    rank_one(turned, tall, s, r, z, a, work)
    r, rest = shrink(turned, tall, s, r, sigma, tau)
    if kept_by == "dictionary":
        stack.rank[1] = r
        product = columns(stack, 1)
        compress(1, stack, work)
        np.testing.assert_allclose(stack.columns[1, :, :r], product, atol=1e-15 * n)
        assert (stack.factors[1, :r, :r] == np.eye(r)).all()
        np.testing.assert_array_equal(columns(stack, 1), stack.columns[1, :, :r])
        Q = stack.columns[1]
    np.testing.assert_allclose(dense(Q, s, r, rest), expected, atol=1e-13 * max(1.0, np.abs(w).max()))
    np.testing.assert_allclose(Q[:, :r].T @ Q[:, :r], np.eye(r), atol=1e-13)


@pytest.mark.parametrize(("scale", "length"), [(1e-300, 1.0), (1e-231, 1e-48), (1.0, 1.0), (1e295, 1e28)])
@pytest.mark.parametrize("a", [0.7, -0.7])
def test_matrices_of_any_size(scale, length, a):
    rng, n = np.random.default_rng(1), 12
    Q, s, z = np.eye(n), scale * rng.random(n), rng.normal(size=n)
    w, V = np.linalg.eigh(np.diag(s / scale) + a * np.outer(z, z))
    padded = [np.concatenate([x, np.zeros(8)]) for x in (s, length * z)]
    rank_one(Q, n, padded[0], n, padded[1], a * scale / length**2, scratch_for(n))
    np.testing.assert_allclose((Q * (padded[0][:n] / scale)) @ Q.T, (V * w) @ V.T, atol=1e-13)
    np.testing.assert_allclose(Q.T @ Q, np.eye(n), atol=1e-13)


SPECTRA = {
    "spread": lambda rng, r: rng.random(r),
    "graded": lambda rng, r: 10.0 ** rng.uniform(-30, 0, r),
    "equal but for rounding": lambda rng, r: 1.0 + 1e-15 * rng.integers(0, 5, r),
    "repeated": lambda rng, r: rng.random(3)[rng.integers(3, size=r)],
    "half zero": lambda rng, r: rng.random(r) * (rng.random(r) < 0.5),
    "crowded": lambda rng, r: 1.0 + 10.0 ** rng.uniform(-16, -1, r),
}
DIRECTIONS = {
    "any": lambda rng, r: rng.normal(size=r),
    "graded": lambda rng, r: rng.normal(size=r) * 10.0 ** rng.uniform(-16, 0, r),
    "nearly an eigenvector": lambda rng, r: np.eye(r)[rng.integers(r)] + 1e-15 * rng.normal(size=r),
    "of one length": lambda rng, r: rng.choice([-1.0, 1.0], size=r),
}


@settings(deadline=None, max_examples=300)
@example(seed=44004, r=36, spectrum="graded", direction="any", size=-6, sign=1, scale=1e100)
@example(seed=924638, r=40, spectrum="graded", direction="graded", size=-4, sign=1, scale=1.0)
@given(
    seed=st.integers(0, 10**6), r=st.integers(1, 40), spectrum=st.sampled_from(sorted(SPECTRA)),
    direction=st.sampled_from(sorted(DIRECTIONS)), size=st.integers(-14, 3), sign=st.sampled_from([-1, 1]),
    scale=st.sampled_from([1e-290, 1e-100, 1.0, 1e100, 1e290]),
)  # fmt: skip
def test_rank_one_to_the_last_digits(seed, r, spectrum, direction, size, sign, scale):
    """Backward stable whatever the poles, and columns stay as orthonormal as they were; in extended precision."""
    rng = np.random.default_rng(seed)
    s, z, n = SPECTRA[spectrum](rng, r) * scale, DIRECTIONS[direction](rng, r), r + 2
    z /= np.linalg.norm(z)
    a = sign * 10.0**size * scale
    Q, padded = np.zeros((n, 48)), np.zeros((2, 56))
    Q[:, :r], padded[0, :r], padded[1, :r] = np.linalg.qr(rng.normal(size=(n, r)))[0], s, z

    def gram_and_matrix(s):
        columns = Q[:, :r].astype(np.longdouble)
        return columns.T @ columns - np.eye(r), (columns * s.astype(np.longdouble)) @ columns.T

    u = Q[:, :r].astype(np.longdouble) @ z.astype(np.longdouble)
    gram, M = gram_and_matrix(s)
    rank_one(Q, n, padded[0], r, padded[1], a, scratch_for(n, 48))
    turned, got = gram_and_matrix(padded[0, :r])
    assert np.abs(got - (M + a * np.outer(u, u))).max() <= 1e-14 * max(s.max(), abs(a))
    assert np.abs(turned).max() <= np.abs(gram).max() + 6e-15


def test_truncation_cuts_off_the_least_and_says_how_much():
    Q, s = np.eye(4), np.array([3.0, 0.5, 2.0, 1.0])
    r, discarded = truncate(Q, 4, s, 4, 0.0, 2)
    assert (r, discarded) == (2, 1.5)
    np.testing.assert_array_equal(dense(Q, s, r, 0.0), np.diag([3.0, 0, 2.0, 0]))


@pytest.mark.parametrize("count", [1, 4, 5, 6, 11])
@pytest.mark.parametrize(
    ("k", "more"), [(1, 0), (3, 0), (8, 2), (9, 0), (6, 5), (0, 3), (17, 0), (24, 2), (26, 0), (41, 3), (80, 3)]
)
def test_columns_are_turned_and_nothing_else(count, k, more):
    rng = np.random.default_rng([count, k, more])
    kept, since = max(k, 1), 2
    Q, U = rng.normal(size=(14, 88)), rng.normal(size=(14, 8))
    U[rng.random(U.shape) < 0.6] = 0.0
    V = rng.normal(size=(88, -(-kept // 8) * 8))
    rows, wanted = rng.permutation(14).astype(np.int64), Q.copy()
    taken = np.hstack([Q[:, :k], U[:, since : since + more]])[rows[:count]]
    wanted[rows[:count], :kept] = taken @ V[: k + more, :kept]
    work = scratch_for(14, 88)
    rotate(Q, rows, count, k, U, since, since + more, V, kept, work)
    np.testing.assert_allclose(Q, wanted, rtol=0, atol=1e-13)
