"""Which engine there is for given parts. The compiler is imported only for those that have kernels."""

from __future__ import annotations

from typing import Any

from ..geometry.comid import Recipe
from ..geometry.divergences import Frobenius
from ..geometry.losses import Hinge, Logistic, MarginLoss, SquaredHinge
from ..geometry.metric import Metric
from ..geometry.regularizers import NuclearNorm, Unregularized
from ..grouped_share import GroupedShare
from ..ocelad import Ocelad
from ..protocols import Ensemble, Weights, check_part
from .box_engine import BoxEngine
from .protocol import Engine


def has_kernels(recipe: Recipe, loss: MarginLoss, weights: Weights) -> bool:
    """Whether there is compiled code for these parts."""
    regularizer, divergence = recipe.descent.regularizer, recipe.descent.divergence
    return (
        type(loss) in (Hinge, SquaredHinge, Logistic)
        and type(regularizer) in (NuclearNorm, Unregularized)
        and type(divergence) is Frobenius
        and getattr(weights, "order", "before") == "before"
        and (type(weights) is GroupedShare or not isinstance(weights, GroupedShare))  # one of one's own may differ
    )


def rice_engine(
    recipe: Recipe, loss: MarginLoss, weights: Weights, memory: int | None = None, nonlinear: Any = None
) -> Engine:
    """RICE of COMID learners under a combiner, or a pool with it: compiled where there are kernels."""
    if not has_kernels(recipe, loss, weights) and nonlinear is None:
        return box_engine(recipe.black_boxes(), loss, weights, recipe, memory)
    from .stack_engine import StackEngine

    return StackEngine(recipe, loss, weights, memory, nonlinear)


def box_engine(
    ensemble: Ensemble[Metric], loss: MarginLoss, weights: Weights, recipe: Recipe, memory: int | None = None
) -> BoxEngine:
    """Any ensemble of metric learners, as Algorithm 1 has it, or a pool with it."""
    if isinstance(weights, GroupedShare):
        check_part(ensemble, Ensemble, "ensemble", "an ensemble such as Rice(spawn)")
        from .experts import Experts

        ensemble = Experts(ensemble, recipe.n, memory)
    return BoxEngine(Ocelad(ensemble, weights), loss, recipe, memory)
