"""The oracle: Algorithm 2 as the paper writes it, slowly, in the open.

A dictionary holds one entry per interval [q, s] ever opened. Weights are plain numbers, every learner is a
matrix that is diagonalised afresh in every step, and nothing is shared with the package.
"""

import numpy as np


class Literal:
    """RICE-OCELAD with hinge loss, nuclear norm and Frobenius divergence."""

    def __init__(
        self,
        n,
        step,
        strength,
        base=1,
        start="fresh",
        threshold_step=1.0,
        origin=0.0,
        combiner="ocelad",
        regret="mean",
        order="before",
        scale=None,
        rate=0.3,
        share=0.01,
        max_rank=None,
    ):
        self.n, self.step, self.strength, self.base, self.start = n, step, strength, base, start
        self.threshold_step, self.origin, self.combiner, self.regret = threshold_step, origin, combiner, regret
        self.order, self.scale, self.rate, self.share = order, scale, rate, share
        self.max_rank = max_rank
        self.t = base
        self.M, self.mu, self.w = {}, {}, {}  # keyed by interval
        self.p = {}  # fixed share: keyed by length
        self.norms = []  # of the differences seen, for the automatic scale
        self.unit = 1.0
        self.open()

    def act(self, t):
        """ACT(t), shortest first."""
        intervals, length = [], self.base
        while length <= t:
            q = t // length * length
            intervals.append((q, q + length - 1))
            length *= 2
        return intervals

    def open(self):
        for q, s in self.act(self.t):
            if q != self.t:
                continue
            length = s - q + 1
            shorter = (q - length // 2, q - 1)  # the interval of half the length that has just ended
            if length > self.base:
                self.M[q, s], self.mu[q, s] = self.M[shorter], self.mu[shorter]
            elif self.start == "continue" and (q - length, q - 1) in self.M:
                self.M[q, s], self.mu[q, s] = self.M[q - length, q - 1], self.mu[q - length, q - 1]
            else:
                self.M[q, s], self.mu[q, s] = self.origin * np.eye(self.n), 1.0
            self.w[q, s] = min(0.5, 1 / np.sqrt(length))
            if length not in self.p:
                self.p[length] = np.mean(list(self.p.values())) if self.p else 1.0
                total = sum(self.p.values())
                self.p = {key: value / total for key, value in self.p.items()}

    def probabilities(self):
        active = self.act(self.t)
        if self.combiner == "ocelad":
            total = sum(self.w[interval] for interval in active)
            return {interval: self.w[interval] / total for interval in active}
        return {(q, s): self.p[s - q + 1] for q, s in active}

    def hinge(self, M, mu, u, y):
        d2 = u @ M @ u
        shortfall = 1 - y * (mu - d2)
        return shortfall if shortfall > 1e-12 * (1 + mu + d2) else 0.0

    def comid(self, interval, u, y):
        M, mu = self.M[interval], self.mu[interval]
        eta = self.step / np.sqrt(interval[1] - interval[0] + 1)
        if self.hinge(M, mu, u, y) > 0:
            M = M - eta * y * np.outer(u, u)
            mu = mu + self.threshold_step * eta * y
        eigenvalues, V = np.linalg.eigh(M)
        eigenvalues = np.maximum(0, eigenvalues - eta * self.strength)
        if self.max_rank is not None:
            eigenvalues[: -self.max_rank] = 0
        self.M[interval] = V @ np.diag(eigenvalues) @ V.T
        self.mu[interval] = max(1.0, mu)

    def average(self, p):
        M = sum(p[interval] * self.M[interval] for interval in p)
        return M, sum(p[interval] * self.mu[interval] for interval in p)

    def update(self, u, y):
        if self.scale == "auto":
            norm = np.linalg.norm(u)
            if norm > 0:
                self.norms.append(norm if len(self.norms) < 16 else min(norm, 10 * self.unit))
                first, later = self.norms[:16], self.norms[16:]
                self.unit = sorted(first)[len(first) // 2]
                if later:
                    self.unit = np.sqrt((16 * self.unit**2 + np.sum(np.square(later))) / len(self.norms))
            u = u / max(self.unit, norm / 10)
        active, p = self.act(self.t), self.probabilities()
        if self.order == "after":
            for interval in active:
                self.comid(interval, u, y)
        losses = {interval: self.hinge(self.M[interval], self.mu[interval], u, y) for interval in active}
        if self.combiner == "ocelad":
            mean = sum(p[interval] * losses[interval] for interval in active)
            reference = mean if self.regret == "mean" else self.hinge(*self.average(p), u, y)
            r = {interval: reference - losses[interval] for interval in active}
            largest = max(abs(value) for value in r.values())
            for q, s in active:
                eta = min(0.5, 1 / np.sqrt(s - q + 1))
                if largest > 1e-12 * max(abs(reference), *losses.values()):
                    self.w[q, s] *= 1 + eta * r[q, s] / largest
        else:
            low, high = min(losses.values()), max(losses.values())
            for q, s in active:
                x = (losses[q, s] - low) / (high - low) if high - low > 1e-12 * high else 0.0
                self.p[s - q + 1] *= np.exp(-self.rate * x)
            total = sum(self.p.values())
            self.p = {
                length: (1 - self.share) * value / total + self.share / len(self.p)
                for length, value in self.p.items()
            }
        if self.order == "before":
            for interval in active:
                self.comid(interval, u, y)
        self.t += 1
        self.open()
