"""``ocelad info``: what is in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import KeyedTrackers, MetricTracker, SupervisedMetricTracker, load
from ..fleet.saved import n_features
from ..neighbors import MovingIndex
from ..state.features import as_saved
from ..track import TimeLine, read_timeline
from ..track.commit import read_progress
from ..watch.history import time_scale, weights_by_name
from .failures import reading
from .measures import Measures

SHOWN = 5
"""How many experts are shown, those of most weight."""


@click.command()
@click.argument("path", type=click.Path(exists=True))
def info(path: str) -> None:
    """Say what is in PATH: a file of ocelad.save, or the folder of a run of ocelad track, or a file in it.

    Of predictions.csv, measures are exact, over all comparisons.

    \b
    ocelad info run
    ocelad info run/predictions.csv
    """
    where = Path(path)
    if where.is_dir():
        names = ("progress.json", "tracker.ocelad", "timeline.csv", "predictions.csv")
        inside = [where / name for name in names if (where / name).exists()]
        if not inside:
            raise ValueError(f"{where}: there is no run in this folder")
    else:
        inside = [where]
    for file in inside:
        with reading("PATH"):
            lines = _lines(file)
        click.echo(f"{file}\n" + "\n".join(f"  {line}" for line in lines))


def _lines(path: Path) -> list[str]:
    if path.name == "progress.json":
        return _progress(path)
    if path.suffix != ".csv":
        return _saved(path)
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline()
    return _predictions(path) if first.startswith("t,line,partner,y,") else _timeline(path)


def _progress(path: Path) -> list[str]:
    words = read_progress(path)
    t, rejected, points = words["counts"]
    lines = [f"{t} comparisons from {points} rows, {rejected} rejected; {words['input'][0]} lines of input used"]
    for part in ("tracker", "form"):
        said = words["settings"][part].items()
        given = [pair for pair in said if pair[1] is not None and pair[1] is not False and pair[1] not in ([], "")]
        lines.append(
            f"{part}: " + (", ".join(f"{name} {_short(name, value)}" for name, value in given) or "default")
        )
    return lines


def _short(name: str, value: object) -> str:
    if name == "items":
        return f"of a table (sha256 {str(value)[:8]}...)"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _saved(path: Path) -> list[str]:
    found = load(path, features=as_saved)
    if isinstance(found, KeyedTrackers):
        known = f" of {n} features" if (n := n_features(found)) else ""
        prior = "" if found.prior is None else ", and a prior"
        return [f"KeyedTrackers{known}: {len(found)} keys{prior}", _options(found.tracker)]
    if isinstance(found, MovingIndex):
        return [f"MovingIndex of {len(found)} points", *_metric(found.metric)]
    return _metric(found)


def _options(tracker: MetricTracker) -> str:
    usual = MetricTracker().get_params(deep=False)
    changed = {k: v for k, v in tracker.get_params(deep=False).items() if repr(v) != repr(usual[k])}
    return "options: " + (", ".join(f"{name}={value!r}" for name, value in changed.items()) or "default")


def _metric(found: Any) -> list[str]:
    tracker = found.tracker_ if isinstance(found, SupervisedMetricTracker) else found
    metric, experts = tracker.get_metric(), tracker.experts_
    named = weights_by_name(experts["kind"].tolist(), experts["length"], experts["weight"][None])
    weights = sorted(((name, float(weight[0])) for name, weight in named.items()), key=lambda pair: -pair[1])
    diagonal = metric.M.diagonal()
    names = getattr(tracker, "feature_names_in_", [f"feature {k}" for k in range(metric.n)])
    top = [f"{names[k]} {diagonal[k] / (diagonal.sum() or 1):.3f}" for k in np.argsort(-diagonal)[:5]]
    t = tracker._fitted().t
    return [
        f"{type(found).__name__} of {metric.n} features after {t} comparisons",
        _options(tracker),
        f"threshold {tracker.threshold_:.6g} on distances, {_unit(tracker.scale_)}",
        f"effective memory {time_scale(experts, t):.0f} comparisons; weights "
        + ", ".join(f"{name} {weight:.3f}" for name, weight in weights[:SHOWN])
        + (f", others {sum(weight for _, weight in weights[SHOWN:]):.3f}" if len(weights) > SHOWN else ""),
        f"features that count most{' in the linear part' if tracker.nonlinear else ''}: {', '.join(top)}",
    ]


def _unit(scale: Any) -> str:
    if np.ndim(scale) == 0:
        return f"unit of length {scale:.6g}"
    known = scale[np.isfinite(scale)]
    return (
        f"units of length of the features {known.min():.6g} to {known.max():.6g}" if len(known) else "no units yet"
    )


def _timeline(path: Path) -> list[str]:
    line = read_timeline(path)
    alarms = [f"{event.kind} noticed at {event.t}, begun about {event.onset}" for event in line.events]
    return [
        f"time line of {len(line.t)} rows up to comparison {line.t[-1]:.0f}",
        f"error {line.error[0]:.3f} in the first row, {line.error[-1]:.3f} in the last",
        *_so_far(line).lines(" so far"),
        f"in charge: {line.in_charge[-1]}",
        *(alarms[-10:] or ["no alarms"]),
    ]


def _so_far(line: TimeLine) -> Measures:
    return Measures(
        line.accuracy[-1], line.majority[-1], line.auc[-1], line.log_loss[-1], line.calibration_error[-1]
    )  # fmt: skip


def _predictions(path: Path) -> list[str]:
    converted = np.genfromtxt(path, delimiter=",", skip_header=1, usecols=(3, 4, 5, 6, 7), ndmin=2)
    y, d, threshold, predicted, p = converted.T
    unknown = np.isnan(p).any()
    scores, known = (-d / threshold, None) if unknown else (p, p)
    first, *rest = Measures.exactly(y, scores, predicted, known).lines(digits=6)
    return [f"{len(y)} predictions: {first}", *rest]
