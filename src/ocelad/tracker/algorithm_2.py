"""Algorithm 2, RICE-OCELAD for metrics: nothing but a choice of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import validation as validate
from ..engine import Engine, box_engine, rice_engine
from ..engine.build import has_kernels
from ..geometry.comid import Descent, Recipe
from ..geometry.divergences import Divergence
from ..geometry.losses import MarginLoss
from ..geometry.metric import Metric
from ..geometry.quadratic import SQUARE
from ..geometry.regularizers import Regularizer
from ..geometry.steps import Step
from ..grouped_share import GroupedShare
from ..intervals import Intervals
from ..protocols import Weights, check_part
from .units import FeatureScale, FixedScale, RunningScale, Scale

if TYPE_CHECKING:
    from .metric_tracker import MetricTracker


def algorithm_2(options: MetricTracker, n: int, given: Metric | None = None, boxes: bool = False) -> Engine:
    """RICE of COMID learners on (M, mu) inside Algorithm 1, from ``origin`` or from a given metric; as black boxes
    even where there are kernels, if asked for."""
    o = options
    recipe = recipe_of(o, n, given)  # line 5
    memory = None if o.memory is None else validate.integer(o.memory, "memory", least=32)
    if (o.ensemble is None and not boxes) or o.nonlinear:
        return rice_engine(recipe, o.loss, o.weights, memory, _nonlinear(o, recipe))  # lines 4, 6-8
    ensemble = recipe.black_boxes() if o.ensemble is None else o.ensemble(recipe.spawn())
    return box_engine(ensemble, o.loss, o.weights, recipe, memory)


def _nonlinear(options: MetricTracker, recipe: Recipe) -> str | None:
    """Whether there are to be experts on feature maps, and then, whether features have a unit each."""
    o = options
    if type(o.nonlinear) is not bool:
        raise ValueError(f"nonlinear must be True or False, got {o.nonlinear!r}")
    if not o.nonlinear:
        return None
    needed = {
        f"weights must be GroupedShare(), got {o.weights!r}": type(o.weights) is GroupedShare,
        "memory must be a number, got None": o.memory is not None,
        f"ensemble must be None, got {o.ensemble!r}": o.ensemble is None,
        f"pairs must have at most {SQUARE} features, got {recipe.n}": recipe.n <= SQUARE,
    }
    for problem, there in needed.items():
        if not there:
            raise ValueError(f"nonlinear=True adds experts to a pool that replays comparisons: {problem}")
    if not has_kernels(recipe, o.loss, o.weights):
        raise ValueError(
            f"nonlinear=True exists only compiled, and not with loss={o.loss!r}, regularizer={o.regularizer!r}, "
            f"divergence={o.divergence!r}"
        )
    return "features" if isinstance(o.scale, str) and o.scale == "features" else "common"


def recipe_of(options: MetricTracker, n: int, given: Metric | None = None) -> Recipe:
    """What the learners are made of; all the options that an engine needs are checked here."""
    o = options
    check_part(o.weights, Weights, "weights", "a combiner such as FixedShare()")
    if not (o.ensemble is None or callable(o.ensemble)):
        raise ValueError(f"ensemble must be a function from spawn(length, start), got {o.ensemble!r}")
    check_part(o.loss, MarginLoss, "loss", "a margin loss such as Hinge(), with value(m) and slope(m)")
    check_part(o.regularizer, Regularizer, "regularizer", "a regularizer such as NuclearNorm(0.02)")
    check_part(o.divergence, Divergence, "divergence", "a divergence such as Frobenius()")
    step, intervals = Step.of(o.step), Intervals.of(o.base)
    descent = Descent(o.regularizer, o.divergence, step.threshold, step.capped)
    name, M, mu = ("origin", o.origin, 1.0) if given is None else ("components_", given.M, given.mu)
    origin = validate.start(M, n, o.divergence.definite, name)
    max_rank = validate.max_rank(step.max_rank, origin)
    return Recipe(n, origin, mu, step.size, descent, intervals.base, intervals.start, max_rank)


def first_scale(options: MetricTracker, n: int) -> Scale:
    """The unit of length before the first comparison."""
    scale = options.scale
    if isinstance(scale, str) and scale == "auto":
        return RunningScale()
    if isinstance(scale, str) and scale == "features":
        return FeatureScale.new(n)
    if scale is None:
        return FixedScale(1.0)
    try:
        return FixedScale(validate.number(scale, "scale", positive=True))
    except ValueError:
        raise ValueError(f"scale must be 'auto', 'features', None or a finite number > 0, got {scale!r}") from None
