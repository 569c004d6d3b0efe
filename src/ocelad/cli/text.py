"""``ocelad study text``: which words make texts alike, and how that changes."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from shutil import rmtree
from typing import Any

import click
import numpy as np
from threadpoolctl import threadpool_limits

from .. import plots
from ..data import DriftingTopics, LabelledTexts, TextStream
from ..files import write_text
from ..plots.text import NAMES
from ..studies import TextResults, TextStudy, run_text
from . import study_common as o
from .common import FORMAT
from .failures import reading, save_figure, writing
from .options import count, option
from .progress import progress


def _events(_context: Any, _option: Any, given: tuple[str, ...]) -> dict[str, np.datetime64]:
    """DATE=NAME as names and dates."""
    events: dict[str, Any] = {}
    for words in given:
        date, equals, name = words.partition("=")
        try:
            if not (equals and name):
                raise ValueError
            events[name] = np.datetime64(date, "s")
        except ValueError:
            raise click.BadParameter(f"expected DATE=NAME such as 2017-12-14=vote, got {words!r}") from None
    return events


def _option(name: str, words: str, **more: Any) -> Any:
    """An option of the study, with its default."""
    return option(name, getattr(TextStudy, name), words, **more)


@click.command()
@click.argument("table", required=False, metavar="[FILE]")
@o.with_options(
    o.folder("Folder for all that is found.", required=True),
    option("time", None, "Column of times.  [default: t, time, timestamp, date or created_at]"),
    option("label", "label", "Column of labels."),
    option("text", "text", "Column of texts."),
    FORMAT,
    _option("features", "How many stems to keep."),
    count("first", None, "Learn them from the first texts, this many.  [default: from all]"),
    _option(
        "back",
        "Which of the latest texts of its own label, and of others, to compare a text with.",
        callback=o.listed(int, "whole numbers separated by commas"),
    ),
    _option("window", "Share of the stream, at its end, to embed."),
    _option("strength", "Strength of the regularizer, times the number of stems."),
    option(
        "event",
        None,
        "Mark a date; words are shown before and after the first one. May be repeated.  "
        "[default: when the metric changes most]",
        also=("events",),
        multiple=True,
        callback=_events,
        metavar="DATE=NAME",
    ),
    option(
        "stem",
        None,
        "Show its relevance over time. May be repeated.  [default: those that matter and change]",
        also=("stems",),
        multiple=True,
        metavar="WORD",
    ),
    option("seed", 0, "Seed of the made-up stream.", type=click.IntRange(min=0)),
    o.one_per_core("threads", "Trackers that learn at a time."),
)
def text(
    table: str | None, out: Path, events: dict[str, np.datetime64], stems: tuple[str, ...], **options: Any
) -> None:
    """Track which words make texts of FILE alike, and leave figures and a report in a folder.

    FILE is a table of texts with a time and a label each: CSV, JSON lines or Parquet, - for standard input.
    Without it, a made-up stream of drifting topics is taken. Hashtags, links and handles are removed, and words
    are stemmed. summary.json has the figures, report.html everything. After Ctrl-C the same command goes on with
    those trackers that had not finished.
    """
    plots.pyplot()  # what would fail at the end had better fail at once
    columns = {name: options.pop(name) for name in ("time", "label", "text", "format")}
    seed, threads = options.pop("seed"), options.pop("threads")
    study = TextStudy(**options)
    if table is None:
        made_up = DriftingTopics()
        texts, events = made_up.draw(np.random.default_rng(seed)), events or made_up.events
        click.echo("No FILE: this is a made-up stream.", err=True)
    else:
        with reading("FILE"):
            texts = LabelledTexts.read(table, **columns)
    _check(events, texts)
    with writing("--out"):
        out.mkdir(parents=True, exist_ok=True)
    kept = out / "finished"
    with threadpool_limits(1), progress(total=1, unit=" comparisons", desc="stemming", unit_scale=True) as bar:

        def learned(done: int, total: int) -> None:
            bar.total = total
            bar.set_description("learning", refresh=False)
            bar.update(done - bar.n)

        try:
            results = run_text(texts, study, learned, threads, kept)
        except KeyboardInterrupt:
            bar.close()
            click.echo("\nStopped: trackers that have finished are kept; the same command goes on.", err=True)
            raise SystemExit(130) from None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a letter that the font lacks becomes a box
        _write(results, events, tuple(_stem(results, word) for word in stems), out)
    rmtree(kept, ignore_errors=True)


def _check(events: dict[str, np.datetime64], texts: LabelledTexts) -> None:
    """Each date must be one of the texts."""
    first, last = texts.times[[0, -1]].astype("datetime64[D]")
    for name, when in events.items():
        day = when.astype("datetime64[D]")
        if not first <= day <= last:
            raise ValueError(f"--event {day}={name}: it must lie between {first} and {last}, as the texts do")


def _stem(results: TextResults, word: str) -> str:
    """A stem that is kept, given as it is or as a word."""
    for stem in (word, *TextStream(stop_words=()).stems(word)):
        if stem in results.stems:
            return stem
    raise ValueError(f"--stem {word}: it is not among the {len(results.stems)} stems that are kept")


def _write(results: TextResults, events: dict[str, np.datetime64], stems: tuple[str, ...], out: Path) -> None:
    write_text(out / "summary.json", json.dumps(results.summary(), indent=1) + "\n")
    name = min(events, key=lambda name: events[name], default="the greatest change")
    figures = {
        "texts-per-day": plots.texts_per_day(results, events),
        "embedding": plots.text_embeddings(results),
        "errors": plots.text_errors(results),
        "words": plots.words(results, results.moments(events.get(name), name)),
        "relevance": plots.stem_relevance(results, stems, events),
    }
    for name, figure in figures.items():
        save_figure(figure, out / f"{name}.png", 120)
        plots.pyplot().close(figure)
    pictures = {name: (out / f"{name}.png").read_bytes() for name in figures}
    write_text(out / "report.html", plots.text_page(results, pictures))
    click.echo(_lines(results))
    click.echo(f"in {out}: report.html, summary.json, {', '.join(f'{name}.png' for name in figures)}")


def _lines(results: TextResults) -> str:
    names = {name: NAMES[name] for name in results.loo_knn_error}
    width = max(map(len, names.values()))
    rows = [f"{results.study.k}-NN error".ljust(width) + "    all  unique"]
    rows += [
        f"{names[name]:{width}}  {e['all']:.3f}  {e['unique']:.3f}" for name, e in results.loo_knn_error.items()
    ]
    best = max(
        (name for name in results.auc if name.startswith("comid")), key=results.auc.__getitem__, default=None
    )
    shown = {name: names[name] for name in ("learned", "learned_paper")}
    if best:
        shown[best] = best.replace("comid_", "COMID at rate ")
    return "\n".join(
        [*rows, "AUC: " + ", ".join(f"{words} {results.auc[name]:.4f}" for name, words in shown.items())]
    )
