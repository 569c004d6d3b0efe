"""Vectors of eight numbers do what NumPy does, entry by entry and to the last bit."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from called import called
from ocelad.engine.kernels import codes, product
from ocelad.engine.kernels.eight import (
    absolute,
    any_less,
    eight,
    fetch,
    load,
    nonzero,
    numbered,
    plus,
    root,
    spread,
    store,
    store_some,
)

rotate = called(product.rotate)


@numba.njit(error_model="numpy")
def all_of_it(x, y, out):
    a, b = load(x, 0), load(y, 0)
    store(out, (0, 0), a + b)
    store(out, (1, 0), a - b)
    store(out, (2, 0), a * b)
    store(out, (3, 0), a / b)
    store(out, (4, 0), min(a, b))
    store(out, (5, 0), max(a, b))
    store(out, (6, 0), absolute(a))
    store(out, (7, 0), eight(x[3]))
    store(out, (8, 0), root(absolute(a)))
    store(out, (9, 0), nonzero(a - b))
    store(out, (10, 0), plus(a, b, b))
    store(out, (11, 0), spread(x, 4))
    store(out, (12, 0), spread(out, (0, 6)))
    return any_less(a, b), any_less(b, b)


def test_arithmetic():
    rng = np.random.default_rng(0)
    for scale in (1e-300, 1e-5, 1.0, 1e5, 1e300):
        x, y, out = rng.normal(size=8) * scale, rng.normal(size=8), np.full((13, 8), np.nan)
        x[5] = y[5]
        less = all_of_it(x, y, out)
        wanted = [x + y, x - y, x * y, x / y, np.minimum(x, y), np.maximum(x, y), np.abs(x), np.full(8, x[3])]
        wanted += [np.sqrt(np.abs(x)), np.where(x == y, 1.0, x - y)]
        np.testing.assert_array_equal(out[:10], wanted)
        np.testing.assert_allclose(out[10], x + y * y, rtol=1e-15, atol=1e-15)
        np.testing.assert_array_equal(out[11:], [np.full(8, x[4]), np.full(8, x[6] + y[6])])
        assert less == ((x < y).any(), False)


def test_not_a_number_is_not_less():
    x, y = np.full(8, np.nan), np.full(8, 1.0)
    assert all_of_it(x, y, np.zeros((13, 8))) == (False, False)
    assert all_of_it(y, x, np.zeros((13, 8))) == (False, False)


@numba.njit
def with_numbers(x, mask, first, out):
    store(out, 0, numbered(load(x, 0), mask, first))


@pytest.mark.parametrize("first", [0, 5, 56, -3])
def test_numbers_take_the_place_of_the_last_bits(first):
    x, out = np.random.default_rng(1).random(8), np.empty(8)
    with_numbers(x, 63, first, out)
    np.testing.assert_array_equal(out.view(np.int64) & 63, (first + np.arange(8)) & 63)
    np.testing.assert_array_equal(out.view(np.int64) & ~63, x.view(np.int64) & ~63)


@numba.njit
def from_three_axes(x, i, j, k, out):
    fetch(x, (i, j, k))
    store(out, (i, k), load(x, (i, j, k)))


def test_places():
    x, out = np.random.default_rng(2).random((2, 3, 17)), np.zeros((2, 17))
    from_three_axes(x, 1, 2, 9, out)
    np.testing.assert_array_equal(out[1, 9:], x[1, 2, 9:])
    assert not out[0].any()
    assert not out[1, :9].any()


@numba.njit
def only_some(x, count, out):
    store_some(out, 1, load(x, 0), count)


@pytest.mark.parametrize("count", [-2, 0, 1, 7, 8, 30])
def test_some_are_stored(count):
    x, out = np.random.default_rng(3).random(8), np.zeros(9)
    only_some(x, count, out)
    stored = min(max(count, 0), 8)
    np.testing.assert_array_equal(out, np.concatenate([[0.0], x[:stored], np.zeros(8 - stored)]))


@pytest.mark.parametrize("count", [1, 4, 5, 6, 11])
@pytest.mark.parametrize(
    ("k", "more"), [(1, 0), (3, 0), (8, 2), (9, 0), (6, 5), (0, 3), (17, 0), (24, 2), (26, 0), (41, 3)]
)
@pytest.mark.parametrize("ordered", [True, False])
def test_columns_are_turned_and_nothing_else(count, k, more, ordered):
    rng = np.random.default_rng([count, k, more])
    kept = max(k, 1)
    Q, U, wide = rng.normal(size=(14, 44)), rng.normal(size=(14, 8)), -(-kept // 8) * 8
    U[rng.random(U.shape) < 0.6] = 0.0
    V = rng.normal(size=(1, 48, wide))
    rows = rng.permutation(14).astype(np.int64)
    own = rng.permutation(k if ordered else 44)[:k]
    source = np.concatenate([own, rng.permutation(8)[:more], np.zeros(8)]).astype(np.int64)
    target = np.arange(min(wide, 44)) if ordered else rng.permutation(44)[:kept]
    wanted = Q.copy()
    taken = np.hstack([Q[:, source[:k]], U[:, source[k : k + more]]])[rows[:count]]
    wanted[np.ix_(rows[:count], target)] = taken @ V[0, : k + more, : len(target)]
    copies, some = np.full((codes.COPIES, 48), np.nan), np.zeros(48, dtype=np.int64)
    rotate(Q, U, rows, count, kept if ordered else 44, source, k, more, V, target, kept, copies, some)
    np.testing.assert_allclose(Q, wanted, rtol=0, atol=1e-13)


def test_the_other_kind_of_processor(tmp_path):
    """Whether registers have room for many vectors decides what is done at once: both must be right."""
    code = (
        "import ocelad.engine.kernels.eight as eight; eight.ROOMY = not eight.ROOMY\n"
        "import numpy as np; from test_steps import solved; import test_eight\n"
        "rng = np.random.default_rng(0); d, z = np.sort(rng.random(37)), rng.normal(size=37)\n"
        "w, V = solved(d, z, 0.3)\n"
        "np.testing.assert_allclose((V * w) @ V.T, np.diag(d) + 0.3 * np.outer(z, z), atol=1e-13)\n"
        "np.testing.assert_allclose(V.T @ V, np.eye(37), atol=2e-14)\n"
        "for ordered in (True, False):\n"
        "    for k, more in ((17, 0), (24, 2), (41, 3)):\n"
        "        test_eight.test_columns_are_turned_and_nothing_else(11, k, more, ordered)\n"
        "print('right')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parent,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},  # what is kept is of this kind
    )  # fmt: skip
    assert done.stdout == "right\n", done.stderr
