"""A study as one HTML page that needs no other file: figures, tables, and which of the paper's claims hold."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from ..studies import Line, Results, Verdict, summarise, verdicts
from ..studies.tables import GOOD, RECOVERED
from .experiment import clusterings, experiment
from .style import pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; color: #222; }
img { max-width: 100%; } table { border-collapse: collapse; margin: 1em 0; }
th, td { padding: .2em .7em; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }
.yes { color: #00664a; } .no { color: #a83c00; } .open { color: #666; }
"""
_WORDS = {True: ("yes", "holds"), False: ("no", "does not hold"), None: ("open", "the trials do not tell")}


def page(results: Results, made_with: Mapping[str, str], rates: Mapping[str, float] | None = None) -> str:
    """The page of a study; ``rates`` are those that cross-validation chose, if it did."""
    study, trials = results.study, results.trials
    options = {key: value for key, value in study.to_json().items() if key != "segments"}
    options["segments"] = ", ".join(f"{s.steps} of {s.clustering} at drift {s.drift:g}" for s in study.segments)
    options["trials"] = f"{len(trials)}, numbers {trials[0]} to {trials[-1]}"
    options["made with"] = ", ".join(f"{name} {version}" for name, version in made_with.items())
    if rates:
        options["rates by cross-validation"] = ", ".join(f"{name}: {step:g}" for name, step in rates.items())
    parts = [
        "<h1>Tracking of a changing metric</h1>",
        f"<p>{len(trials)} trials; means over trials with their standard errors.</p>",
        _figure(experiment(results), "Rate of change, 5-NN error and P(NMI > 0.8) over time for every method"),
        "<h2>Which claims of the paper hold</h2>",
        "<p>Each claim is judged for each reading of the algorithm that took part: <em>paper's setting</em> has "
        "the paper's weights and base interval, <em>ocelad</em> the recommended ones. Differences count from two "
        "standard errors on; thresholds are named with the figures.</p>",
        _claims(verdicts(results)),
        "<h2>By method and segment</h2>",
        f"<p>Recovery is the median number of steps after a change of clustering until the error is at most "
        f"{RECOVERED} for two evaluations in a row. P is the probability that NMI &gt; {GOOD}.</p>",
        _summary(summarise(results)),
        "<h2>The data</h2>",
        _figure(
            clusterings(study.world(trials[0])[0], len(study.shares)),
            "The points in three subspaces, coloured by A and by B",
        ),
        "<h2>What it took</h2>",
        _cost(results),
        "<h2>Options</h2>",
        _table(("option", "value"), [(key, str(value)) for key, value in options.items()]),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>Tracking of a changing metric</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _figure(figure: Figure, words: str) -> str:
    file = BytesIO()
    figure.savefig(file, format="png", dpi=120)
    pyplot().close(figure)
    image = base64.b64encode(file.getvalue()).decode()
    return f'<p><img alt="{escape(words)}" src="data:image/png;base64,{image}"></p>'


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(c))}</td>" for c in row) + "</tr>\n" for row in rows)
    return f"<table>\n<tr>{head}</tr>\n{body}</table>"


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


def _summary(lines: list[Line]) -> str:
    def recovery(line: Line) -> str:
        if np.isnan(line.recovery):
            return ""
        steps = "never" if np.isinf(line.recovery) else f"{line.recovery:.0f}"
        return f"{steps} ({line.recovered:.0%} do)"

    rows = [
        (
            line.method,
            line.segment,
            f"{line.knn_error:.4f} ± {line.knn_error_se:.4f}",
            f"{line.p_nmi:.3f} ± {line.p_nmi_se:.3f}",
            recovery(line),
        )
        for line in lines
    ]
    return _table(("method", "segment", "5-NN error", "P", "recovery"), rows)


def _cost(results: Results) -> str:
    names = ("drawing the stream", "evaluating all methods", *(f"learning: {m}" for m in results.study.methods))
    each = results.seconds.mean(axis=0)
    rows = [(name, f"{s:.3f}", f"{s / each.sum():.1%}") for name, s in zip(names, each, strict=True)]
    rows.append(("all", f"{each.sum():.3f}", "100.0%"))
    return _table(("", "CPU seconds per trial", "share"), rows)
