"""Algorithm 2, RICE-OCELAD for metrics: nothing but a choice of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import validation as validate
from ..engine.learning import Learners
from ..engine.stack import rice
from ..ensemble import check_base, check_start
from ..geometry.comid import Descent, Recipe
from ..geometry.divergences import Divergence
from ..geometry.losses import MarginLoss
from ..geometry.metric import Metric
from ..geometry.regularizers import Regularizer
from ..ocelad import Ocelad
from ..protocols import check_part
from .units import FixedScale, RunningScale, Scale

if TYPE_CHECKING:
    from .metric_tracker import MetricTracker


def algorithm_2(options: MetricTracker, n: int, given: Metric | None) -> Learners:
    """RICE of COMID learners on (M, mu) inside Algorithm 1, from ``origin`` or from a given metric."""
    o = options
    check_part(o.loss, MarginLoss, "loss", "a margin loss such as Hinge(), with value(m) and slope(m)")
    check_part(o.regularizer, Regularizer, "regularizer", "a regularizer such as NuclearNorm(0.02)")
    check_part(o.divergence, Divergence, "divergence", "a divergence such as Frobenius()")
    if not (o.ensemble is None or callable(o.ensemble)):
        raise ValueError(f"ensemble must be a function from spawn(length, start), got {o.ensemble!r}")
    if not isinstance(o.step_cap, bool):
        raise ValueError(f"step_cap must be True or False, got {o.step_cap!r}")
    step = validate.step(o.step)
    threshold_step = validate.number(o.threshold_step, "threshold_step", positive=False)
    descent = Descent(o.regularizer, o.divergence, threshold_step, o.step_cap)
    name, M, mu = ("origin", o.origin, 1.0) if given is None else ("components_", given.M, given.mu)
    origin = validate.start(M, n, o.divergence.definite, name)
    max_rank = validate.max_rank(o.max_rank, origin)
    base, start = check_base(o.base), check_start(o.start)
    recipe = Recipe(n, origin, mu, step, descent, base, start, max_rank)  # line 5
    ensemble = rice(recipe, o.loss) if o.ensemble is None else o.ensemble(recipe.spawn())  # line 4
    return Learners(Ocelad(ensemble, o.weights, o.order), o.loss, recipe)  # lines 6-8


def first_scale(options: MetricTracker) -> Scale:
    """The unit of length before the first comparison."""
    scale = options.scale
    if isinstance(scale, str) and scale == "auto":
        return RunningScale()
    if scale is None:
        return FixedScale(1.0)
    try:
        return FixedScale(validate.number(scale, "scale", positive=True))
    except ValueError:
        raise ValueError(f"scale must be 'auto', None or a finite number > 0, got {scale!r}") from None
