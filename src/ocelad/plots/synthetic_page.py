"""A study as one HTML page that needs no other file: figures, tables, and which of the paper's claims hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from ..studies import Results, Summary, Verdict, summarise, verdicts
from ..studies.tables import GOOD, RECOVERED, spelled
from . import html
from .synthetic import SHARED, clusterings, experiment

_WORDS = {True: ("holds", "yes"), False: ("does not hold", "no"), None: ("the trials do not tell", "open")}


def synthetic_page(
    results: Results, made_with: Mapping[str, str], rates: Mapping[str, float] | None = None
) -> str:
    """The page of a study; ``rates`` are those that cross-validation chose, if it did."""
    study, trials = results.study, results.trials
    options = {key: _plain(value) for key, value in study.to_json().items() if key != "segments"}
    options["segments"] = ", ".join(f"{s.steps} of {s.clustering} at drift {s.drift:g}" for s in study.segments)
    options["trials"] = f"{len(trials)}, numbers {trials[0]} to {trials[-1]}"
    options["made with"] = ", ".join(f"{name} {version}" for name, version in made_with.items())
    if rates:
        options["rates by cross-validation"] = ", ".join(f"{name}: {step:g}" for name, step in rates.items())
    parts = [
        f"<p>{len(trials)} trials; means over trials with their standard errors.</p>"
        if len(trials) > 1
        else "<p>One trial, which says nothing about others.</p>",
        html.figure(experiment(results), "Rate of change, 5-NN error and P(NMI > 0.8) over time for every method"),
        "<h2>Which claims of the paper hold</h2>",
        "<p>Each claim is judged for each reading of the algorithm that took part: <em>paper's setting</em> is "
        "RICE with the paper's weights and base interval, <em>RICE</em> with the recommended ones, and "
        "<em>ocelad</em> has further experts, which are not in the paper. What 95 % confidence "
        "intervals over the trials leave open is left open; thresholds are named with the figures.</p>",
        _claims(verdicts(results)),
        "<h2>By method and segment</h2>",
        _summary(results),
        "<h2>The data</h2>",
        html.figure(
            clusterings(study.world(trials[0])[0], len(study.shares)),
            "The points in three subspaces, coloured by A and by B",
        ),
        "<h2>What it took</h2>",
        _cost(results),
        "<h2>Options</h2>",
        html.table(("option", "value"), [(key.replace("_", " "), value) for key, value in options.items()]),
    ]
    return html.document("Tracking of a changing metric", parts)


def _plain(value: Any) -> str:
    """An option as a person would write it."""
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _claims(found: list[Verdict]) -> str:
    """A heading per claim, a row per method."""
    parts = []
    for claim in dict.fromkeys(verdict.claim for verdict in found):
        own = [verdict for verdict in found if verdict.claim == claim]
        rows = [(v.method, *_WORDS[v.holds], v.evidence) for v in own]
        parts += [f"<h3>{escape(claim)}</h3>", html.told(rows)]
    return "\n".join(parts)


def _summary(results: Results) -> str:
    """A table per measure: a row per method, a column per segment."""
    lines, study = summarise(results), results.study
    names = {str(k): f"{k}: {s.clustering}, drift {s.drift:g}" for k, s in enumerate(study.segments)}
    header = ("", *(names.get(line.segment, line.segment) for line in lines if line.method == study.methods[0]))
    jumped = [k for k, name in enumerate(header) if name in {names[str(jump)] for jump in study.jumps}]

    def table(cell: Callable[[Summary], str], columns: Sequence[int] | None = None) -> str:
        rows = [[method, *(cell(line) for line in lines if line.method == method)] for method in study.methods]
        shown = range(len(header)) if columns is None else [0, *columns]
        return html.table([header[k] for k in shown], [[row[k] for k in shown] for row in rows])

    def share(line: Summary) -> str:
        many = line.trials >= SHARED
        return spelled(line.p_nmi, line.p_nmi_se, ".3f") if many else f"{line.p_nmi:.3f}"

    parts = [
        "<h3>5-NN error</h3>",
        table(lambda line: spelled(line.knn_error, line.knn_error_se, ".4f")),
        f"<h3>P, the probability that NMI &gt; {GOOD}</h3>",
        table(share),
    ]
    if jumped:
        parts += [
            "<h3>Recovery</h3>",
            "<p>The median number of steps after a change of clustering until the error is at most "
            f"{RECOVERED} for two evaluations in a row.</p>",
            table(_recovery, jumped),
        ]
    return "\n".join(parts)


def _recovery(line: Summary) -> str:
    if np.isnan(line.recovery):
        return ""
    steps = "never" if np.isinf(line.recovery) else f"{line.recovery:.0f}"
    return f"{steps} ({line.recovered:.0%} do)"


def _cost(results: Results) -> str:
    names = ("drawing the stream", "evaluating all methods", *(f"learning: {m}" for m in results.study.methods))
    each = results.seconds.mean(axis=0)
    rows = [(name, f"{s:.3f}", f"{s / each.sum():.1%}") for name, s in zip(names, each, strict=True)]
    rows.append(("all", f"{each.sum():.3f}", "100.0%"))
    return html.table(("", "CPU seconds per trial", "share"), rows)
