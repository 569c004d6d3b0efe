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


Found = Iterator[tuple[str, int, bool | None, str]]
"""A claim, the number of a method, whether it holds for that one, and the figures."""


def verdicts(results: Results) -> list[Verdict]:
    """All claims on methods that took part."""
    names, claims = results.study.methods, (_adapts, _is_best, _recovers_faster, _fails, _drops)
    found = (each for claim in claims for each in claim(results))
    return [Verdict(claim, names[k], holds, evidence) for claim, k, holds, evidence in found]


def _named(results: Results, word: str) -> list[int]:
    return [k for k, name in enumerate(results.study.methods) if word.lower() in plain(name).lower()]


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


def _adapts(results: Results) -> Found:
    late = [_in(results, s, late=True) for s in range(len(results.study.segments))]
    for k in (*_readings(results), *_others(results)):
        chances = [results.good[:, k, where].mean(axis=1) for where in late if where]
        found = [_above(chance, ADAPTED) for chance in chances]
        adapted = False if False in found else None if None in found else True
        words = ", ".join(spelled(*mean(chance), ".2f") for chance in chances)
        words = f"P(NMI > 0.8) in the second half of each segment: {words}; adapted means {ADAPTED} or more in all"
        if k in _others(results):
            yield "Others do not adapt to every kind of change", k, _not(adapted), words
        else:
            yield "RICE-OCELAD adapts to every kind of change", k, adapted, words


def _is_best(results: Results) -> Found:
    total, claim = results.error.mean(axis=2), "RICE-OCELAD has a lower error than every other method"
    for k in _readings(results) if _others(results) else ():
        rival = min(_others(results), key=lambda other: total[:, other].mean())
        holds, side, size = _lead(total[:, rival] - total[:, k], "lower", "higher", ".4f")
        than = f"than that of {results.study.methods[rival]} over the whole stream"
        yield claim, k, holds, f"its mean error is {side} by {size} {than}"


def _recovers_faster(results: Results) -> Found:
    longest = float(results.study.times[-1])
    for rival in _named(results, "COMID, high"):
        for jump in _judged_jumps(results):
            number = results.study.jumps.index(jump)
            claim = f"High-rate COMID recovers more slowly from the change before segment {jump}"
            # who never recovers has taken longer than anyone can
            steps = {k: np.minimum(recovery(results, k, number), longest) for k in (rival, *_readings(results))}
            for k in _readings(results):
                holds, side, size = _lead(steps[rival] - steps[k], "fewer", "more", ".0f")
                yield claim, k, holds, f"it takes {size} steps {side} than {results.study.methods[rival]}"


def _lead(lead: Array, ahead: str, behind: str, form: str) -> tuple[bool | None, str, str]:
    """Whether there is one, on which side, and how large it is."""
    by, error = mean(lead)
    return _above(lead), ahead if by >= 0 else behind, spelled(abs(by), error, form)


def _fails(results: Results) -> Found:
    always = list(range(len(results.study.times))), ZERO, "over the whole stream"
    changed = [k for jump in results.study.jumps for k in _in(results, jump)]
    after = changed, FAILED, f"in segments after a change; failing is at most {FAILED}"
    for name, claim, (where, most, place) in (
        ("SAOL", "SAOL fails completely: P(NMI > 0.8) is zero throughout", always),
        ("online ITML", "Online ITML fails, being biased against low rank", after),
        ("COMID, low", "Low-rate COMID cannot adapt to a change", after),
        ("LMNN", "The batch method cannot adapt to a change", after),  # one that is refitted is none any more
    ):
        for k in _named(results, name) if where else ():
            if "refitted" not in results.study.methods[k]:
                chance = results.good[:, k, where].mean(axis=1)
                words = f"P(NMI > 0.8) = {spelled(*mean(chance), '.3f')} {place}"
                yield claim, k, _not(_above(chance, most)), words


def _drops(results: Results) -> Found:
    for jump in _judged_jumps(results):
        claim = f"A change causes a sudden loss of performance, before segment {jump}"
        before, after = _in(results, jump - 1)[-2:], _in(results, jump)[:2]
        loss = results.error[:, :, after].mean(axis=2) - results.error[:, :, before].mean(axis=2)
        learning = set(_others(results)) - set(_named(results, "Euclid"))
        for k in (*_readings(results), *sorted(learning)):
            by = spelled(*mean(loss[:, k]), "+.3f")
            words = f"the error changes by {by} from the two evaluations before to the two after"
            yield claim, k, _above(loss[:, k]), words
