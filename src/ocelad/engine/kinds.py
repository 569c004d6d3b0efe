"""What can be stacked: for which losses, regularizers, geometries and ensembles there are kernels."""

from __future__ import annotations

from dataclasses import dataclass

from ..geometry.comid import Recipe
from ..geometry.divergences import Divergence, Frobenius, LogDet, VonNeumann
from ..geometry.losses import Hinge, Logistic, MarginLoss, SquaredHinge
from ..geometry.regularizers import NuclearNorm, Regularizer, Unregularized
from .kernels import codes

LOSSES: dict[type, int] = {Hinge: codes.HINGE, SquaredHinge: codes.SQUARED_HINGE, Logistic: codes.LOGISTIC}
GEOMETRIES: dict[type, int] = {
    Frobenius: codes.FROBENIUS,
    VonNeumann: codes.VON_NEUMANN,
    LogDet: codes.LOG_DET,
}


def has_kernels(loss: MarginLoss, regularizer: Regularizer, divergence: Divergence) -> bool:
    """Whether learners of these parts can be stacked."""
    spectral = type(regularizer) in (NuclearNorm, Unregularized)
    return type(loss) in LOSSES and spectral and type(divergence) is Frobenius


@dataclass(frozen=True)
class Kind:
    """How a stack departs from RICE of COMID learners.

    ``start`` says from where levels open (`kernels.codes`). Of learners that never restart, ``spans`` has for each
    what its step is divided by the root of, and ``diffusion`` how much it diffuses. If it ``adapts``, steps are
    divided by the root of the sum of squared gradients; if it ``leads``, learners follow the regularised leader.
    """

    start: int = codes.FRESH
    spans: tuple[float, ...] = ()
    diffusion: tuple[float, ...] = ()
    adapts: bool = False
    leads: bool = False


RICE = Kind()


def can_stack(kind: Kind, recipe: Recipe, loss: MarginLoss) -> bool:
    """Whether there are kernels for this."""
    descent, moved = recipe.descent, type(recipe.descent.divergence)
    if moved is Frobenius and not kind.leads:
        return has_kernels(loss, descent.regularizer, descent.divergence)
    at_zero = isinstance(recipe.origin, float) and recipe.origin == 0.0
    return (
        moved in GEOMETRIES
        and has_kernels(loss, descent.regularizer, Frobenius())
        and recipe.max_rank is None
        and at_zero == kind.leads
    )
