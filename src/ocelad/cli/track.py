"""``ocelad track``: a table of comparisons, or of labelled rows, as a stream to be tracked."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click
from threadpoolctl import threadpool_limits

from .. import Intervals, MetricTracker, Step
from ..data.tables import BadRow, Columns, Form, Labelled, Rows, matching
from ..data.tables.reading import Format
from ..data.tables.rows import listed, no_column
from ..folder_lock import lock_folder
from ..pair_sampling import Strategy
from ..track import Run, Settings
from ..track.run import PREDICTIONS, Stopped
from ..watch.history import in_charge
from .common import FORMAT, ITEMS, form_for, leave_out, open_table
from .failures import writing
from .features_seen import FeaturesSeen, scale_of
from .measures import Measures
from .options import Grouped, count, flag, group, option, resuming, to_folder
from .progress import progress
from .stopping import Stopping


@click.command(cls=Grouped)
@click.argument("table")
@group(
    "Input",
    FORMAT,
    option(
        "features",
        None,
        "Feature columns, such as 'f*', or '!id' for all but id.",
        multiple=True,
        metavar="PATTERN",
    ),
    ITEMS,
    flag("skip-bad", "Write bad rows to rejected.csv, and go on."),
)
@group(
    "Labelled rows",
    option("label", None, "Rows are labelled points: compare each with earlier ones.", metavar="COLUMN"),
    option("within", None, "Compare rows only if these cells are the same.", multiple=True, metavar="COLUMN"),
    option(
        "pairs",
        "balanced",
        "Which earlier rows to take: balanced over labels, random or consecutive.",
        type=click.Choice(get_args(Strategy)),
        metavar="HOW",
    ),
    count("recent", 128, "Take them from the last N rows."),
    count("per-row", 2, "Take N of them for each row."),
    option("seed", 0, "Seed of the random choice.", type=click.IntRange(0, 2**32 - 1)),
)
@group(
    "Output",
    option("out", "track", "Folder for all that is written.", metavar="DIR", callback=to_folder),
    count("every", 100, "Comparisons per time line row."),
    flag("no-predictions", "Do not write predictions.csv."),
    flag("echo", "Print predictions to standard output as they come."),
)
@group(
    "Going on",
    flag("resume", "Go on where the run in --out stopped, or begin one."),
    flag("new-input", "With --resume: the input does not begin again, but goes on."),
    flag("overwrite", "Begin anew even if there is a run in --out."),
    count("checkpoint", 10_000, "Comparisons between checkpoints; there is one a minute, too."),
)
@group(
    "Metric",
    option(
        "standardize/--no-standardize",
        None,
        "Divide each feature by its own size, so that units do not matter. [default: yes, with --paper no]",
    ),
    option(
        "scale",
        None,
        "Divide features by: features (own sizes), auto (one size) or none.",
        type=click.Choice(["features", "auto", "none"]),
        metavar="HOW",
    ),
    flag("nonlinear", "Add experts on feature maps: metrics that bend."),
    option("memory", None, "The longest window that experts replay. [default: 2048]", type=click.IntRange(32)),
)
@group(
    "For researchers",
    flag("paper", "The paper's setting, not the recommended one."),
    flag("rice", "RICE alone instead of a pool of experts."),
    option("step", None, "COMID's step. [default: 8, with --paper 1]", type=click.FloatRange(0, min_open=True)),
    option(
        "strength",
        None,
        "Strength of the regularizer. [default: 0.02, with --paper 0.01]",
        type=click.FloatRange(0),
    ),
    count("base", None, "Its shortest memory. [default: 8, with --paper 1]"),
    option("step-cap/--no-step-cap", None, "Take no step longer than mends the comparison. [default: no]"),
    count("max-rank", None, "Directions that a learner may keep. [default: all]"),
)
def track(
    table: str, out: str, resume: bool, new_input: bool, overwrite: bool, skip_bad: bool,
    label: str | None, within: tuple[str, ...], features: tuple[str, ...], pairs: Strategy, recent: int,
    per_row: int, seed: int, items: str | None, format: Format | None, every: int, checkpoint: int,
    no_predictions: bool, echo: bool, standardize: bool | None, **options: Any,
) -> None:  # fmt: skip
    """Track the metric behind a table, or behind standard input if TABLE is -.

    It is CSV, JSON lines or Parquet, with columns x_*, z_* and y (1 similar, -1 or 0 different); or id_a, id_b and
    y, with --items; or with labelled points, with --label. Each comparison is predicted, and then learned.

    \b
    ocelad track comparisons.csv --out run
    ocelad track readings.csv.gz --label gas --within batch --pairs random
    producer | ocelad track - --format jsonl --echo | consumer
    ocelad track comparisons.csv --out run --resume

    In --out are predictions.csv, timeline.csv and tracker.ocelad, for ocelad embed, score, plot and info.
    Ctrl-C and SIGTERM lose nothing, and --resume goes on bit for bit, also after a crash.
    """
    if new_input and not resume:
        raise click.UsageError("--new-input is for --resume.")
    options["scale"] = scale_of(standardize, options["scale"], options["paper"])
    drawn = {"strategy": pairs, "memory": recent, "count": per_row, "seed": seed}
    with threadpool_limits(1), Stopping() as stop, ExitStack() as stack:
        try:
            with stop.waiting():
                rows = stack.enter_context(closing(open_table("TABLE", table, format)))
                form, columns, how = _form(rows, label, within, features, items, drawn)
                tracker = _tracker(**options)
                seen = FeaturesSeen(form.features, columns, tracker.scale == "features")
                run = Run(
                    rows, form, tracker, Path(out), Settings(options, how, every, not no_predictions),
                    safe=checkpoint, skip_bad=skip_bad, waiting=stop.waiting, look=seen.look,
                )  # fmt: skip
                with writing("--out"):
                    stack.enter_context(lock_folder(Path(out)))
                if resume:
                    click.echo("Looking for where the run stopped ...", err=True)
                if not (resume and run.resume(again=not new_input)):
                    with writing("--out"):
                        run.begin(overwrite)
            seen.begin()
            before = run.points + run.rejected
            _show(run, echo)
            seen.look([], last=True)
        except Stopped:
            click.echo(f"Stopped; this goes on:\n{resuming()}", err=True)
        else:
            click.echo(_summary(run), err=echo)
            if run.points + run.rejected == before:
                found = "no rows that the run has not seen" if before else "no rows after the header"
                click.echo(f"{rows.name}: there are {found}", err=True)
            elif not run.t:
                click.echo(_nothing(run, within), err=True)
            elif label is not None and run.t >= 10 and run.running.majority == 1.0:
                found = "rows that were compared all have one label, or all have different ones"
                click.echo(f"--label {label}: {found}: it must be a column of classes", err=True)
            elif isinstance(form, Labelled) and form.is_sorted():
                advice = "shuffle them, unless that is the order in which they came"
                click.echo(f"warning: rows are sorted by --label {label}: {advice}", err=True)
    if stop.signal:
        sys.exit(128 + stop.signal)
    if run.rejected and not run.points:
        sys.exit(1)


def _nothing(run: Run, within: tuple[str, ...]) -> str:
    """Why rows were read, and nothing was learned."""
    if not run.points:
        return f"all rows are bad: {run.folder / 'rejected.csv'} says why"
    same = f" with the same {', '.join(within)}" if within else ""
    return f"a labelled row is compared with earlier ones{same}, and there are none"


def _form(
    rows: Rows, label: str | None, within: tuple[str, ...], features: tuple[str, ...], items: str | None,
    drawn: dict[str, Any],
) -> tuple[Form, Columns, dict[str, Any]]:  # fmt: skip
    """How rows become comparisons, in which columns the features are, and the same in words."""
    if label is None:
        if within:
            raise click.UsageError("--within is for labelled rows: say --label COLUMN.")
        pairs, digest = form_for(rows, items, features)
        sides = [] if items else [f"{side}{name}" for side in ("x_", "z_") for name in pairs.features]
        return pairs, Columns.of(rows.header, sides), {"features": list(pairs.features), "items": digest}
    if items:
        raise click.UsageError("--items is for comparisons with columns id_a and id_b, not for labelled rows.")
    for name in (label, *within):
        if name not in rows.header:
            raise ValueError(f"{rows.name}: {no_column(name, rows.header)}")
    found = matching(rows.header, features or ["*"])
    names = [name for name in found if name not in (label, *within)]
    if not names:
        raise ValueError(f"{rows.name}: no column is left to be a feature: there are {listed(rows.header)}")
    points, own, same = (Columns.of(rows.header, part) for part in (names, [label], within))
    how = {"features": names, "label": label, "within": list(within), **drawn}
    return Labelled(points, own, same, **drawn), points, how


def _tracker(
    paper: bool,
    rice: bool,
    scale: str | None,
    nonlinear: bool,
    memory: int | None,
    step: float | None,
    strength: float | None,
    base: int | None,
    step_cap: bool | None,
    max_rank: int | None,
) -> MetricTracker:
    if (paper and rice) or ((memory is not None or nonlinear) and (paper or rice)):
        raise click.UsageError("--paper, --rice and one of --memory and --nonlinear exclude one another.")
    tracker = MetricTracker.paper() if paper else MetricTracker.rice() if rice else MetricTracker()
    if memory is not None:
        tracker.set_params(memory=memory)
    tracker.set_params(nonlinear=nonlinear)
    if scale is None and not paper:
        scale = "features"
    if scale is not None:
        tracker.set_params(scale=None if scale == "none" else scale)
    return tracker.set_params(
        step=_but(tracker.step, Step.of, size=step, capped=step_cap, max_rank=max_rank),
        regularizer=_but(tracker.regularizer, lambda part: part, strength=strength),
        base=_but(tracker.base, Intervals.of, base=base),
    )


def _but(part: Any, of: Callable[[Any], Any], **given: Any) -> Any:
    """The same, but for what is given."""
    given = {name: value for name, value in given.items() if value is not None}
    return replace(of(part), **given) if given else part


def _show(run: Run, echo: bool) -> None:
    """Run, and say how it goes."""
    shown = 0.0
    if echo:
        click.echo(PREDICTIONS)
    look: dict[str, Any] = {
        "unit": " comparisons",
        "mininterval": 0.5,
        "bar_format": "{desc}: {n_fmt} in {elapsed}{postfix}",
    }
    with progress(desc=run.rows.name, initial=run.t, **look) as bar:
        for count in _named(run):
            if time.monotonic() - shown > 0.5:  # the AUC is a sum over thousands of bins
                bar.set_postfix_str(_briefly(run), refresh=False)
                shown = time.monotonic()
            bar.update(count)
            if echo:
                click.echo("\n".join(run.echo))
        bar.set_postfix_str(_briefly(run))


def _named(run: Run) -> Iterator[int]:
    """The run; its failures name options."""
    try:
        with writing("--out"):
            yield from run
    except ValueError as error:
        hint = leave_out(error, run.form.features)  # not --skip-bad: as the first row is, all may be
        if run.points and isinstance(error.__cause__, BadRow):  # a run goes on with the columns that it has
            hint = "; --skip-bad --resume sets such rows aside"
        raise ValueError(f"{error}{hint}") from None


def _briefly(run: Run) -> str:
    alarm = f", {run.events[-1].kind} at {run.events[-1].t}" if run.events else ""
    return f"{Measures.of(run.running).briefly()}{alarm}"


def _summary(run: Run) -> str:
    lines = [f"{run.t} comparisons from {run.points} rows, {run.rejected} rejected"]
    if run.t:
        first, *rest = Measures.of(run.running).lines()
        lines += [f"{first}, each before it was learned", *rest]
        if not rest:
            lines.append(f"mean loss {run.running.loss / run.running.count:.4f}")
        lines.append(f"in charge: {in_charge(run.tracker.experts_)}")
    files = [f"{run.folder / name}.csv" for name in ("predictions", "timeline", "rejected")]
    lines += [name for name in (*files, str(run.folder / "tracker.ocelad")) if Path(name).exists()]
    return "\n".join(lines)
