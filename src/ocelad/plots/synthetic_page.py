"""A study as one HTML page that needs no other file: figures, tables, and which of the paper's claims hold."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from ..studies import Results, Summary, Verdict, summarise, verdicts
from ..studies.tables import GOOD, RECOVERED, spelled
from . import html
from .synthetic import clusterings, experiment

_WORDS = {True: ("yes", "holds"), False: ("no", "does not hold"), None: ("open", "the trials do not tell")}


def synthetic_page(
    results: Results, made_with: Mapping[str, str], rates: Mapping[str, float] | None = None
) -> str:
    """The page of a study; ``rates`` are those that cross-validation chose, if it did."""
    study, trials = results.study, results.trials
    options = {key: value for key, value in study.to_json().items() if key != "segments"}
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
        "<p>Each claim is judged for each reading of the algorithm that took part: <em>paper's setting</em> has "
        "the paper's weights and base interval, <em>ocelad</em> the recommended ones. What 95 % confidence "
        "intervals over the trials leave open is left open; thresholds are named with the figures.</p>",
        _claims(verdicts(results)),
        "<h2>By method and segment</h2>",
        f"<p>Recovery is the median number of steps after a change of clustering until the error is at most "
        f"{RECOVERED} for two evaluations in a row. P is the probability that NMI &gt; {GOOD}.</p>",
        _summary(summarise(results)),
        "<h2>The data</h2>",
        html.figure(
            clusterings(study.world(trials[0])[0], len(study.shares)),
            "The points in three subspaces, coloured by A and by B",
        ),
        "<h2>What it took</h2>",
        _cost(results),
        "<h2>Options</h2>",
        html.table(("option", "value"), [(key, str(value)) for key, value in options.items()]),
    ]
    return html.document("Tracking of a changing metric", parts)


def _claims(found: list[Verdict]) -> str:
    """A heading per claim, a row per method."""
    parts = []
    for claim in dict.fromkeys(verdict.claim for verdict in found):
        rows = "".join(
            f'<tr><td>{escape(v.method)}</td><td class="{_WORDS[v.holds][0]}">{_WORDS[v.holds][1]}</td>'
            f"<td>{escape(v.evidence)}</td></tr>\n"
            for v in found
            if v.claim == claim
        )
        parts.append(f"<h3>{escape(claim)}</h3>\n<table>\n{rows}</table>")
    return "\n".join(parts)


def _summary(lines: list[Summary]) -> str:
    def recovery(line: Summary) -> str:
        if np.isnan(line.recovery):
            return ""
        steps = "never" if np.isinf(line.recovery) else f"{line.recovery:.0f}"
        return f"{steps} ({line.recovered:.0%} do)"

    rows = [
        (
            line.method,
            line.segment,
            spelled(line.knn_error, line.knn_error_se, ".4f"),
            spelled(line.p_nmi, line.p_nmi_se, ".3f"),
            recovery(line),
        )
        for line in lines
    ]
    return html.table(("method", "segment", "5-NN error", "P", "recovery"), rows)


def _cost(results: Results) -> str:
    names = ("drawing the stream", "evaluating all methods", *(f"learning: {m}" for m in results.study.methods))
    each = results.seconds.mean(axis=0)
    rows = [(name, f"{s:.3f}", f"{s / each.sum():.1%}") for name, s in zip(names, each, strict=True)]
    rows.append(("all", f"{each.sum():.3f}", "100.0%"))
    return html.table(("", "CPU seconds per trial", "share"), rows)
