"""Experts that replay a window of recent comparisons: each a metric of low rank, fitted by minibatch steps.

    odds(u) = b - |L u|^2,      p = floor + (1 - 2 floor) sigmoid(odds)  that u is that of a similar pair,

and after each comparison a step of Adam on the mean of -log p(y) over BATCH comparisons of the window, the newest
and others drawn at random, plus prior |L|^2 / length. An expert speaks by an average of its L and b.

Some windows slide. Others begin anew where their expert started to lose to the mixture, by Page's test on the
difference of their losses: the expert goes on from the heaviest one, and draws from what came since then.
"""

from __future__ import annotations

import math

import numpy as np

from ...compiled import inlined, kernel, sums
from ...platt import HEAVIEST
from ...protocols import Array, Integers
from .layout import (
    ANEW,
    AVERAGE_B,
    EXCESS,
    FLOOR,
    MAPPED,
    MAPS,
    MEMORY,
    MOMENT_B,
    NUMBERS,
    PER_MAP,
    PRIOR,
    RANK,
    REPLAYED,
    SQUARE_B,
    SQUARE_L,
    START,
    STEPS,
    STORED,
    WINDOW,
    ZERO,
    B,
    N,
    Stack,
)

BATCH = 16
SHORT, SHORT_STEPS = 128, 2  # steps per comparison on windows of given features up to this length
SPARING = 512  # on longer windows there is a step every (length // 512)-th comparison
RATE, DECAY, SQUARE_DECAY = 0.1, 0.9, 0.99
LIGHTEST = 1e-30  # weights that are less count as this, or in single precision they would be none
LIMIT = 10.0  # nats that an expert may lose to the mixture before it begins anew


@kernel
def draw(t: int, expert: int, number: int, count: int) -> int:
    """One of 0, ..., count - 1 at random: a function of time, expert and number (splitmix64's mixer)."""
    x = np.uint64(t) * np.uint64(0x9E3779B97F4A7C15) + np.uint64((expert << 12) + number) * np.uint64(
        0xC2B2AE3D27D4EB4F
    )
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int((np.int64((x ^ (x >> np.uint64(31))) >> np.uint64(33)) * count) >> 31)


@kernel
def first_of(block: int, header: Integers) -> int:
    """The first expert of those that are shown the given features, block 0, or those of a map."""
    return header[REPLAYED] - (1 + header[MAPS] - block) * header[PER_MAP] if block > 0 else 0


@kernel
def block_of(j: int, header: Integers) -> int:
    block = 0
    while block < header[MAPS] and j >= first_of(block + 1, header):
        block += 1
    return block


@kernel
def shown(j: int, header: Integers) -> tuple[int, int]:
    """The features that expert j is shown, the given ones or those of a map: the first, and their number."""
    block = block_of(j, header)
    if block == 0:
        return 0, header[N]
    return header[N] + (block - 1) * header[MAPPED], header[MAPPED]


@sums
def project(L: Array, u: Array, at: int, n: int, z: Array) -> float:
    """z <- L u, of the n features from ``at`` on; returns |z|^2."""
    z[0] = 0.0
    zero = square = z[0]  # in the precision of z
    for a in range(RANK):
        s = zero
        for e in range(n):
            s += L[a, e] * u[at + e]
        z[a] = s
        square += s * s
    return square


@sums
def add_outer(G: Array, scale: float, z: Array, u: Array, at: int, n: int) -> None:
    """G <- G + scale z u', of the n features from ``at`` on."""
    for a in range(RANK):
        z[a] *= scale
        factor = z[a]
        for e in range(n):
            G[a, e] += factor * u[at + e]


@sums
def add_prior(G: Array, scale: float, L: Array, n: int) -> float:
    """G <- G + scale L; returns |G|^2."""
    square = 0.0
    for a in range(RANK):
        for e in range(n):
            G[a, e] += scale * L[a, e]
            square += G[a, e] * G[a, e]
    return square


@sums
def descend(L: Array, moment: Array, average: Array, G: Array, rate: float, weight: float, n: int) -> None:
    """A step along the mean gradient, and the average of L after it."""
    for a in range(RANK):
        for e in range(n):
            moment[a, e] += (1.0 - DECAY) * (G[a, e] - moment[a, e])
            L[a, e] -= rate * moment[a, e]
            average[a, e] += weight * (L[a, e] - average[a, e])


@inlined
def step(j: int, length: int, number: int, stack: Stack, G: Array, z: Array) -> None:
    """The number-th step of expert j after a comparison, on a minibatch of the last ``length``."""
    L, numbers, t = stack.L[j], stack.numbers[j], stack.header[STORED]
    at, n = shown(j, stack.header)
    floor, slope_b = stack.settings[j, FLOOR], 0.0
    for a in range(RANK):
        for e in range(n):
            G[a, e] = 0.0
    for k in range(BATCH):
        back = draw(t, j, number * BATCH + k, length) if k > 0 else 0
        i = (t - 1 - back) % stack.header[MEMORY]
        y = stack.labels[i]
        s = 1.0 / (1.0 + math.exp(project(L, stack.ring[i], at, n, z) - numbers[B]))
        p = floor + (1.0 - 2.0 * floor) * (s if y > 0.0 else 1.0 - s)
        slope = -y * (1.0 - 2.0 * floor) * s * (1.0 - s) / (p * BATCH)
        slope_b += slope
        add_outer(G, -2.0 * slope, z, stack.ring[i], at, n)
    square = add_prior(G, 2.0 * stack.settings[j, PRIOR] / length, L, n) / (RANK * n)
    if not square < math.inf:  # differences too long for single precision
        return
    numbers[STEPS] += 1.0
    numbers[SQUARE_L] += (1.0 - SQUARE_DECAY) * (square - numbers[SQUARE_L])
    numbers[SQUARE_B] += (1.0 - SQUARE_DECAY) * (slope_b * slope_b - numbers[SQUARE_B])
    numbers[MOMENT_B] += (1.0 - DECAY) * (slope_b - numbers[MOMENT_B])
    rate = RATE * (64.0 / max(length, 32)) ** 0.25 / (1.0 - DECAY ** numbers[STEPS])
    unbiased = 1.0 - SQUARE_DECAY ** numbers[STEPS]
    weight = 1.0 / (1.0 + 0.02 * length / max(1, length // SPARING))
    descend(
        L, stack.moment[j], stack.average[j], G, rate / (math.sqrt(numbers[SQUARE_L] / unbiased) + 1e-8), weight, n
    )
    numbers[B] -= rate * numbers[MOMENT_B] / (math.sqrt(numbers[SQUARE_B] / unbiased) + 1e-8)
    numbers[AVERAGE_B] += weight * (numbers[B] - numbers[AVERAGE_B])


@inlined
def begin_anew(j: int, heaviest: int, stack: Stack) -> None:
    """Draw from what came since expert j started to lose, and go on from the heaviest expert."""
    numbers, start, b = stack.numbers, stack.numbers[j, ZERO], stack.numbers[heaviest, AVERAGE_B]
    for k in range(NUMBERS):
        numbers[j, k] = 0.0
    numbers[j, B], numbers[j, AVERAGE_B] = b, b
    numbers[j, START], numbers[j, ZERO] = start, stack.header[STORED]
    for a in range(RANK):
        for e in range(shown(j, stack.header)[1]):
            stack.L[j, a, e] = stack.average[heaviest, a, e]
            stack.average[j, a, e] = stack.average[heaviest, a, e]
            stack.moment[j, a, e] = 0.0


@inlined
def replay(u: Array, y: float, mixed: float, p: Array, stack: Stack, G: Array, z: Array) -> None:
    """Store a comparison, u and y times its weight; then every expert takes its steps.

    ``mixed`` is what the mixture lost, and p are the weights after that.
    """
    header, numbers, losses, experts = stack.header, stack.numbers, stack.losses, stack.header[REPLAYED]
    place = header[STORED] % header[MEMORY]
    for e in range(header[N] + header[MAPS] * header[MAPPED]):
        stack.ring[place, e] = u[e]
    stack.labels[place] = math.copysign(min(max(abs(y), LIGHTEST), HEAVIEST), y)
    header[STORED] += 1
    t = header[STORED]
    for block in range(1 + header[MAPS]):  # those that are shown the same features
        heaviest, end = first_of(block, header), first_of(block + 1, header)
        for j in range(heaviest, end):
            if p[j] > p[heaviest]:
                heaviest = j
        for j in range(first_of(block, header), end):
            if stack.settings[j, ANEW] > 0.0:
                numbers[j, EXCESS] = max(0.0, numbers[j, EXCESS] + losses[j] - mixed)
                if numbers[j, EXCESS] == 0.0:
                    numbers[j, ZERO] = t
                elif numbers[j, EXCESS] > LIMIT:
                    begin_anew(j, heaviest, stack)
    for j in range(experts):
        length = int(min(stack.settings[j, WINDOW], t - numbers[j, START]))
        if t % max(1, length // SPARING) == 0:
            for number in range(SHORT_STEPS if length <= SHORT and j < first_of(1, header) else 1):
                step(j, length, number, stack, G, z)
