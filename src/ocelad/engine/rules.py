"""Which combiners have a compiled form (`kernels.combine`), and what the kernels must know of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..protocols import Weights
from ..weights import FixedShare, OceladWeights, SaolWeights, seed_word
from .kernels import codes


@dataclass(frozen=True)
class Rule:
    """Entries of a stack's options, and what the draws depend on, if there are any."""

    options: dict[int, float]
    seed: int = 0


def saol(seed: int, bound: float) -> Rule:
    """SAOL's weights; an infinite bound is none."""
    word = seed_word(seed)
    signed = word - (1 << 64) if word >> 63 else word  # the same bits
    return Rule({codes.RULE: codes.SAOL, codes.BOUND: bound}, signed)


def _ocelad(rule: OceladWeights) -> Rule:
    code = codes.OCELAD_MEAN if rule.regret == "mean" else codes.OCELAD_MIXTURE
    return Rule({codes.RULE: code, codes.RESET: rule.reset})


RULES: dict[type, Callable[[Any], Rule]] = {
    FixedShare: lambda rule: Rule({codes.RULE: codes.FIXED_SHARE, codes.RATE: rule.rate, codes.SHARE: rule.share}),
    OceladWeights: _ocelad,
    SaolWeights: lambda rule: saol(rule.seed, rule.bound),
}
"""By type; rooms above add their own."""


def compiled_rule(weights: Weights) -> Rule | None:
    """The compiled form of a combiner, if it has one."""
    make = RULES.get(type(weights))
    return None if make is None else make(weights)
