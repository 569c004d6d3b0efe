"""The oracle of a pool of experts: every formula as it stands in the documentation, slowly, in the open.

Experts that replay windows, the Euclidean distance and RICE's levels speak log odds; Bayes' rule with shares
mixes them; two Platt scalings calibrate the mixture. But for RICE's intervals nothing is shared with anything.
"""

import numpy as np

from literal import Literal

MASK = (1 << 64) - 1


def sigmoid(x):
    return np.exp(-np.logaddexp(0.0, -x))


def draw(t, expert, number, count):
    """A number below ``count`` that looks random: splitmix64's mixer of time, expert and number."""
    x = (t * 0x9E3779B97F4A7C15 + (expert * 4096 + number) * 0xC2B2AE3D27D4EB4F) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    x ^= x >> 31
    return ((x >> 33) * count) >> 31


class Unit:
    """The typical length of differences: the median of the first 16, then the root mean square."""

    def __init__(self):
        self.value, self.norms = 1.0, []

    def __call__(self, *u):
        """Differences in the unit from before, and no longer than ten of them; the unit then moves."""
        norm = np.sqrt(np.mean([v @ v for v in u]))
        before, known = self.value, len(self.norms) > 0
        if norm > 0:
            self.norms.append(norm if len(self.norms) < 16 else min(norm, 10 * before))
            first, later = sorted(self.norms[:16]), np.array(self.norms[16:])
            median = first[len(first) // 2]
            self.value = np.sqrt((16 * median**2 + (later**2).sum()) / len(self.norms)) if len(later) else median
        unit = before if known else self.value
        return [v / max(unit, norm / 10) for v in u]


class Platt:
    """Log odds a m + c of a margin m, learned online."""

    def __init__(self, ridge, least):
        self.ridge, self.least = ridge, least
        self.theta, self.H = np.array([1.0, 0.0]), np.zeros((2, 2))

    def __call__(self, m):
        return self.theta[0] * m + self.theta[1]

    def learn(self, m, y, weight):
        x, s = np.array([m, 1.0]), sigmoid(self(m))
        self.H = (1 - 1 / 500) * self.H + weight * max(s * (1 - s), 1e-4) * np.outer(x, x)
        error = weight * ((y > 0) - s)
        self.theta = self.theta + np.linalg.solve(self.H + self.ridge * np.eye(2), x) * error
        self.theta[0] = max(self.least, self.theta[0])


class Replay:
    """An expert of rank four that replays a window of comparisons."""

    def __init__(self, number, window, anew, L):
        self.number, self.window, self.anew = number, window, anew
        self.short_steps = 2
        self.prior, self.floor = (0.2, 0.05) if anew else (0.1, 0.02)
        self.start = self.zero = 0  # the first comparison to draw from; the last time that nothing was lost
        self.begin(L, 1.0)
        self.restarts = 0

    def begin(self, L, b):
        self.L, self.b = L.copy(), b
        self.average_L, self.average_b = L.copy(), b
        self.moment_L, self.moment_b = np.zeros_like(L), 0.0
        self.square_L = self.square_b = 0.0
        self.steps, self.excess = 0, 0.0

    def odds(self, u):
        return self.average_b - ((self.average_L @ u) ** 2).sum()

    def page(self, t, loss, mixed, heaviest):
        """Begin anew if ten nats have been lost to the mixture."""
        self.excess = max(0.0, self.excess + loss - mixed)
        if self.excess == 0.0:
            self.zero = t
        elif self.excess > 10.0:
            self.start, self.zero = self.zero, t
            self.begin(heaviest.average_L, heaviest.average_b)
            self.restarts += 1

    def minibatch(self, t, length, number):
        back = [0] + [draw(t, self.number, 16 * number + k, length) for k in range(1, 16)]
        return [t - 1 - k for k in back]

    def loss(self, L, b, u, y, weight, length):
        """The objective of a step, on given comparisons."""
        odds = b - ((u @ L.T) ** 2).sum(axis=1)
        p = self.floor + (1 - 2 * self.floor) * sigmoid(y * odds)
        return np.mean(-weight * np.log(p)) + self.prior * (L**2).sum() / length

    def gradient(self, L, b, u, y, weight, length):
        z = u @ L.T
        s = sigmoid(b - (z**2).sum(axis=1))
        p = self.floor + (1 - 2 * self.floor) * np.where(y > 0, s, 1 - s)
        slope = -y * weight * (1 - 2 * self.floor) * s * (1 - s) / p / len(y)
        return -2 * (slope[:, None] * z).T @ u + 2 * self.prior / length * L, slope.sum()

    def learn(self, u, y, weight):
        """The steps after a comparison, the last of these."""
        t = len(y)
        length = min(self.window, t - self.start)
        sparing = max(1, length // 512)
        if t % sparing:
            return
        for number in range(self.short_steps if length <= 128 else 1):
            chosen = self.minibatch(t, length, number)
            G, g = self.gradient(self.L, self.b, u[chosen], y[chosen], weight[chosen], length)
            self.steps += 1
            self.moment_L = 0.9 * self.moment_L + 0.1 * G
            self.moment_b = 0.9 * self.moment_b + 0.1 * g
            self.square_L = 0.99 * self.square_L + 0.01 * (G**2).mean()
            self.square_b = 0.99 * self.square_b + 0.01 * g**2
            rate = 0.1 * (64 / max(length, 32)) ** 0.25 / (1 - 0.9**self.steps)
            root_L, root_b = (np.sqrt(s / (1 - 0.99**self.steps)) for s in (self.square_L, self.square_b))
            self.L = self.L - rate * self.moment_L / (root_L + 1e-8)
            self.b = self.b - rate * self.moment_b / (root_b + 1e-8)
            weigh = 1 / (1 + 0.02 * length / sparing)
            self.average_L = (1 - weigh) * self.average_L + weigh * self.L
            self.average_b = (1 - weigh) * self.average_b + weigh * self.b


class Levels(Literal):
    """RICE's learners; here comparisons weigh, and may be orders. They are combined elsewhere."""

    def learn(self, terms, y, weight):
        """``terms``: the differences with their signs, +1 and for the far one of an order -1."""
        for interval in self.act(self.t):
            M, mu = self.M[interval], self.mu[interval]
            eta = self.step / np.sqrt(interval[1] - interval[0] + 1)
            below = terms[0] @ M @ terms[0]
            above = mu if len(terms) == 1 else terms[1] @ M @ terms[1]
            if 1 - y * (above - below) > 1e-12 * (1 + above + below):
                for sign, u in zip((1, -1), terms, strict=False):
                    M = M - sign * eta * weight * y * np.outer(u, u)
                if len(terms) == 1:
                    mu = mu + self.threshold_step * eta * weight * y
            eigenvalues, V = np.linalg.eigh(M)
            self.M[interval] = V @ np.diag(np.maximum(0, eigenvalues - eta * self.strength)) @ V.T
            self.mu[interval] = max(1.0, mu)


class LiteralPool:
    """The default `MetricTracker`, for up to 2048 features."""

    def __init__(self, n, memory):
        windows = [(max(1, memory // 16), False), (max(1, memory // 4), False), (memory, False)]
        dyadic = [memory]
        while dyadic[-1] // 2 >= 32:
            dyadic.append(dyadic[-1] // 2)
        windows += [(window, True) for window in reversed(dyadic)]
        self.rng = np.random.default_rng(0)
        L = self.rng.normal(scale=0.3 / np.sqrt(n), size=(len(windows), 4, n))
        self.replays = [Replay(number, *window, L[number]) for number, window in enumerate(windows)]
        self.blocks = [(slice(0, n), self.replays)]  # experts, and the features that they are shown
        self.width = n
        self.euclid = Platt(0.5, 0.0)
        self.rice = Levels(n, step=8.0, strength=0.02, base=8, threshold_step=0.1)
        self.scalings = []  # of each level
        self.margin, self.probability = Platt(5.0, 0.05), Platt(5.0, 0.05)
        self.extend(n, memory)
        self.u, self.y, self.weight = np.zeros((0, self.width)), np.zeros(0), np.zeros(0)
        self.unit = Unit()
        self.groups = len(self.blocks) + 2
        self.w = [np.full(len(own), 1 / len(own) / self.groups) for _, own in self.blocks]
        self.w += [np.array([1 / self.groups]), np.zeros(0)]  # those that replay, by block; Euclid; the levels
        self.open()

    def extend(self, n, memory):
        """No experts but those on the given features."""

    def open(self):
        """A level that is new has the mean weight of the others, and they together keep theirs."""
        for _ in range(len(self.scalings), len(self.rice.act(self.rice.t))):
            self.scalings.append(Platt(0.5, 0.0))
            group = self.w[-1]
            total = group.sum() if len(group) else 1 / self.groups
            group = np.append(group, group.mean() if len(group) else 1.0)
            self.w[-1] = group / group.sum() * total

    def experts(self):
        """(M, threshold, floor) of each: the odds of a pair are the threshold minus u'Mu."""
        n, levels = self.rice.n, self.rice.act(self.rice.t)
        told = [
            (self.on(shown, r.average_L.T @ r.average_L), r.average_b, r.floor)
            for shown, own in self.blocks
            for r in own
        ]
        given = slice(0, n)
        told.append((self.on(given, self.euclid.theta[0] * np.eye(n)), self.euclid(1.0), 0.005))
        for platt, interval in zip(self.scalings, levels, strict=True):
            M = self.on(given, platt.theta[0] * self.rice.M[interval])
            told.append((M, platt(self.rice.mu[interval]), 0.005))
        return told

    def on(self, shown, M):
        """A matrix for all features, of one for some."""
        whole = np.zeros((self.width, self.width))
        whole[shown, shown] = M
        return whole

    def mixture(self):
        """The mixed metric, and its threshold."""
        w, experts = np.concatenate(self.w), self.experts()
        return sum(p * M for p, (M, *_) in zip(w, experts, strict=True)), w @ [mu for _, mu, _ in experts]

    def probabilities(self, u):
        """Of "similar", by each expert."""
        return np.array([floor + (1 - 2 * floor) * sigmoid(mu - u @ M @ u) for M, mu, floor in self.experts()])

    def predict(self, u):
        """Of a difference in units of length: the probability by the metric, and by the mixture; calibrated."""
        (M, mu), p = self.mixture(), np.concatenate(self.w) @ self.probabilities(u)
        return sigmoid(self.margin(self.compress(mu - u @ M @ u))), sigmoid(self.probability(np.log(p / (1 - p))))

    @staticmethod
    def compress(m):
        return np.sign(m) * np.log(1 + abs(m))

    def share(self, losses):
        """Bayes' rule; then a share goes to all of a group, and one to all groups."""
        w = np.concatenate(self.w) * np.exp(-losses)
        w /= w.sum()
        sizes = [len(group) for group in self.w]
        groups = np.split(w, np.cumsum(sizes)[:-1])
        for g, group in enumerate(groups):
            W = group.sum()
            self.w[g] = (0.99 * group / W + 0.01 / len(group)) * (0.999 * W + 0.001 / len(groups))

    def pair(self, u, y, weight=1.0, implied=False, mapped=()):
        """``mapped``: what feature maps make of the pair."""
        (u,) = self.unit(u)
        v = np.append(u, mapped)
        p = self.probabilities(v)
        losses = -weight * np.log(np.where(y > 0, p, 1 - p))
        mixed = -np.log(np.concatenate(self.w) @ np.exp(-losses))
        (M, mu), probability = self.mixture(), np.concatenate(self.w) @ p
        self.share(losses)
        self.euclid.learn(1 - u @ u, y, weight)
        for platt, interval in zip(self.scalings, self.rice.act(self.rice.t), strict=True):
            platt.learn(self.rice.mu[interval] - u @ self.rice.M[interval] @ u, y, weight)
        if not implied:
            self.margin.learn(self.compress(mu - v @ M @ v), y, weight)
            self.probability.learn(np.log(probability / (1 - probability)), y, weight)
        self.u, self.y = np.vstack([self.u, v]), np.append(self.y, y)
        self.weight = np.append(self.weight, weight)
        for (shown, own), group in zip(self.blocks, self.w, strict=False):
            heaviest = own[int(np.argmax(group))]
            for replay in own:
                if replay.anew:
                    replay.page(len(self.y), losses[replay.number], mixed, heaviest)
            for replay in own:
                replay.learn(self.u[:, shown], self.y, self.weight)
        self.after([u], y, weight)
        return mixed

    def triplet(self, near, far, mapped=((), ())):
        """RICE's levels learn of an order; everyone is judged by it."""
        near, far = self.unit(near, far)
        v, w = np.append(near, mapped[0]), np.append(far, mapped[1])
        odds = np.array([w @ M @ w - v @ M @ v for M, *_ in self.experts()])
        floors = np.array([floor for *_, floor in self.experts()])
        self.share(-np.log(floors + (1 - 2 * floors) * sigmoid(odds)))
        self.after([near, far], 1, 1.0)

    def after(self, terms, y, weight):
        self.rice.learn(terms, y, weight)
        self.rice.t += 1
        self.rice.open()
        self.open()


class LiteralNonlinear(LiteralPool):
    """A pool with nonlinear=True: experts on Nystroem's features, once there are landmarks."""

    def __init__(self, n, memory):
        self.n, self.memory, self.maps, self.seen, self.observed = n, memory, None, [], []
        super().__init__(n, memory)

    def extend(self, _, memory):
        for _ in range(2):
            windows = [(max(1, memory // part), False) for part in (16, 4, 1)]
            windows += [(max(32, memory // part), True) for part in (32, 8, 1)]
            L = self.rng.normal(scale=0.3 / 10, size=(6, 4, 100))
            first = sum(len(own) for _, own in self.blocks)
            own = [Replay(first + k, *window, L[k]) for k, window in enumerate(windows)]
            for replay in own:
                replay.short_steps = 1
            self.blocks.append((slice(self.width, self.width + 100), own))
            self.width += 100

    def observe(self, X):
        self.observed += list(X)
        self.gather()

    def compare(self, x, z, y, weight=1.0, implied=False):
        self.take(("pair", (x, z), y, weight, implied))

    def order(self, a, b, c):
        self.take(("triplet", (a, b, a, c)))

    def take(self, comparison):
        self.learn_one(comparison)
        if self.maps is None:
            self.seen.append(comparison)
            self.gather()

    def learn_one(self, comparison):
        kind, points, *rest = comparison
        phi = [np.zeros(200) if self.maps is None else self.phi(x) for x in points]
        if kind == "pair":
            self.pair(points[0] - points[1], *rest, phi[0] - phi[1])
        else:
            a, b, c, d = points
            self.triplet(a - b, c - d, (phi[0] - phi[1], phi[2] - phi[3]))

    def gather(self):
        """With two hundred points there are landmarks; then all is learned again."""
        points = [x for _, own, *_ in self.seen for x in own] + self.observed
        if self.maps is None and len(points) >= 200:
            pairs = [own[k : k + 2] for _, own, *_ in self.seen for k in range(0, len(own), 2)]
            self.build(points, pairs or list(zip(self.observed, self.observed[1:], strict=False)))
            super().__init__(self.n, self.memory)
            for comparison in self.seen:
                self.learn_one(comparison)

    def build(self, points, pairs):
        distinct = []
        for x in points:
            if not any((x == other).all() for other in distinct):
                distinct.append(x)
        distances = np.array([np.linalg.norm(x - z) for x in distinct for z in distinct])
        self.median = np.median(distances[distances > 0])
        chosen = np.sort(np.random.default_rng(0).permutation(len(distinct))[:100])
        self.landmarks = np.array([distinct[k] for k in chosen])
        self.maps = []
        for width in (0.5, 1.5):
            K = np.array([self.kernel(x, width) for x in self.landmarks])
            s, V = np.linalg.eigh(K)
            self.maps.append((width, V @ np.diag(1 / np.sqrt(np.maximum(s, 1e-6))) @ V.T))
        u = np.array([self.phi(x) - self.phi(z) for x, z in pairs])
        sizes = [np.sqrt((u[:, :100] ** 2).sum(axis=1).mean()), np.sqrt((u[:, 100:] ** 2).sum(axis=1).mean())]
        self.maps = [(width, root / size) for (width, root), size in zip(self.maps, sizes, strict=True)]

    def kernel(self, x, width):
        squares = ((x - self.landmarks) ** 2).sum(axis=1) / self.median**2
        return np.exp(-squares / (2 * width**2))

    def phi(self, x):
        parts = [root @ self.kernel(x, width) for width, root in self.maps]
        return np.concatenate([np.append(part, np.zeros(100 - len(part))) for part in parts])
