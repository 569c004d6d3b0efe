"""What the paper says of its experiment, held against a study: each claim, under each reading of the algorithm.

Differences are taken within trials, which all methods share. What 95 % confidence intervals over the trials leave
open is left open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..protocols import Array
from .methods import READINGS, plain
from .tables import Results, mean, recovery, spelled

ADAPTED, FAILED, ZERO = 0.9, 0.2, 0.01  # P(NMI > 0.8) from which on, and up to which, one may speak of it


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds for a method, with the figures; None if the trials do not tell."""

    claim: str
    method: str
    holds: bool | None
    evidence: str


def verdicts(results: Results) -> list[Verdict]:
    """All claims on methods that took part."""
    return [
        verdict for claim in (_adapts, _is_best, _recovers_faster, _fails, _drops) for verdict in claim(results)
    ]


def _named(results: Results, *words: str) -> list[int]:
    names = [plain(name).lower() for name in results.study.methods]
    return [k for k, name in enumerate(names) if any(word.lower() in name for word in words)]


def _readings(results: Results) -> list[int]:
    return [k for k, name in enumerate(results.study.methods) if plain(name) in READINGS]


def _others(results: Results) -> list[int]:
    apart = {*_readings(results), *_named(results, "oracle")}
    return [k for k in range(len(results.study.methods)) if k not in apart]


def _in(results: Results, segment: int, late: bool = False) -> list[int]:
    """The evaluations of a segment, or of its second half."""
    where = [k for k, s in enumerate(results.study.evaluated_segments) if s == segment]
    return where[len(where) // 2 :] if late else where


def _judged_jumps(results: Results) -> list[int]:
    """Changes with evaluations in the segments before and after."""
    return [jump for jump in results.study.jumps if _in(results, jump - 1) and _in(results, jump)]


def _above(values: Array, threshold: float = 0.0) -> bool | None:
    """Whether the mean over trials is above the threshold; None if they do not tell."""
    if len(values) < 2:
        return None
    centre, error = mean(values)
    margin = stats.t.ppf(0.975, len(values) - 1) * error
    return None if abs(centre - threshold) <= margin else bool(centre > threshold)


def _not(holds: bool | None) -> bool | None:
    return None if holds is None else not holds


def _adapts(results: Results) -> Iterator[Verdict]:
    late = [_in(results, s, late=True) for s in range(len(results.study.segments))]
    for k in (*_readings(results), *_others(results)):
        chances = [results.good[:, k, where].mean(axis=1) for where in late if where]
        found = [_above(chance, ADAPTED) for chance in chances]
        adapted = False if False in found else None if None in found else True
        words = ", ".join(spelled(*mean(chance), ".2f") for chance in chances)
        yield Verdict(
            "Others do not adapt to every kind of change"
            if k in _others(results)
            else "RICE-OCELAD adapts to every kind of change",
            results.study.methods[k],
            _not(adapted) if k in _others(results) else adapted,
            f"P(NMI > 0.8) in the second half of each segment: {words}; adapted means {ADAPTED} or more in all",
        )


def _is_best(results: Results) -> Iterator[Verdict]:
    total = results.error.mean(axis=2)
    for k in _readings(results) if _others(results) else ():
        rival = min(_others(results), key=lambda other: total[:, other].mean())
        lead = total[:, rival] - total[:, k]
        by, error = mean(lead)
        side, names = "lower" if by >= 0 else "higher", results.study.methods
        yield Verdict(
            "RICE-OCELAD has a lower error than every other method",
            names[k],
            _above(lead),
            f"its mean error is {side} by {spelled(abs(by), error, '.4f')} than that of {names[rival]} "
            "over the whole stream",
        )


def _recovers_faster(results: Results) -> Iterator[Verdict]:
    names, longest = results.study.methods, float(results.study.times[-1])
    for rival in _named(results, "COMID, high"):
        for jump in _judged_jumps(results):
            number = results.study.jumps.index(jump)
            # who never recovers has taken longer than anyone can
            steps = {k: np.minimum(recovery(results, k, number), longest) for k in (rival, *_readings(results))}
            for k in _readings(results):
                lead = steps[rival] - steps[k]
                by, error = mean(lead)
                side = "fewer" if by >= 0 else "more"
                yield Verdict(
                    f"High-rate COMID recovers more slowly from the change before segment {jump}",
                    names[k],
                    _above(lead),
                    f"it takes {spelled(abs(by), error, '.0f')} steps {side} than {names[rival]}",
                )


def _fails(results: Results) -> Iterator[Verdict]:
    jumps = [k for jump in results.study.jumps for k in _in(results, jump)]
    for k in _named(results, "SAOL"):
        chance = results.good[:, k].mean(axis=1)
        p, error = mean(chance)
        yield Verdict(
            "SAOL fails completely: P(NMI > 0.8) is zero throughout",
            results.study.methods[k],
            _not(_above(chance, ZERO)),
            f"P(NMI > 0.8) = {spelled(p, error, '.3f')} over the whole stream",
        )
    for words, claim in (
        (("online ITML",), "Online ITML fails, being biased against low rank"),
        (("COMID, low",), "Low-rate COMID cannot adapt to a change"),
        (("LMNN",), "The batch method cannot adapt to a change"),
    ):
        for k in _named(results, *words) if jumps else ():
            if "refitted" in results.study.methods[k]:
                continue  # which is no batch method any more
            chance = results.good[:, k][:, jumps].mean(axis=1)
            p, error = mean(chance)
            yield Verdict(
                claim,
                results.study.methods[k],
                _not(_above(chance, FAILED)),
                f"P(NMI > 0.8) = {spelled(p, error, '.3f')} in segments after a change; "
                f"failing is at most {FAILED}",
            )


def _drops(results: Results) -> Iterator[Verdict]:
    for jump in _judged_jumps(results):
        before, after = _in(results, jump - 1)[-2:], _in(results, jump)[:2]
        loss = results.error[:, :, after].mean(axis=2) - results.error[:, :, before].mean(axis=2)
        learning = set(_others(results)) - set(_named(results, "Euclid"))
        for k in (*_readings(results), *sorted(learning)):
            by, error = mean(loss[:, k])
            yield Verdict(
                f"A change causes a sudden loss of performance, before segment {jump}",
                results.study.methods[k],
                _above(loss[:, k]),
                f"the error changes by {spelled(by, error, '+.3f')} "
                "from the two evaluations before to the two after",
            )
