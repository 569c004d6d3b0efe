"""``ocelad serve``: a page on which people compare items, and an HTTP API."""

from __future__ import annotations

import os
from typing import Any

import click

from .options import FEATURES, Grouped, count, flag, group, option


@click.command(cls=Grouped)
@click.argument("table", required=False)
@group(
    "Items",
    option("id", None, "The column that names items. [default: id, or else the line's number]", metavar="COLUMN"),
    option("features", None, FEATURES, multiple=True, metavar="PATTERN"),
    option("show", None, "Columns to show. [default: all]", multiple=True, metavar="PATTERN"),
    option("points", None, "Take features from this array, a row per item, instead.", metavar="FILE.npy"),
    option("text", None, "Take features from the words of this column (TF-IDF).", metavar="COLUMN"),
)
@group(
    "Questions",
    option("title", None, "What the page is called. [default: the name of the table]"),
    option(
        "aim",
        None,
        "Ask for what is similar in general, or for the groups of these items. [default: metric]",
        type=click.Choice(["metric", "groups"]),
    ),
    count("repeats", None, "Ask each pair of so many people. [default: 1]"),
)
@group(
    "Service",
    option("data", None, "Folder for all that is kept. [default: items.serve of items.csv]", metavar="DIR"),
    option("host", "127.0.0.1", "The address to listen on; another than this machine's own needs --token-file."),
    option("port", None, "[default: 8350, or the next that is free]", type=click.IntRange(0, 65535)),
    option("token-file", None, "A file with a token, without which nobody is let in.", metavar="FILE"),
    option("allow-host", None, "A name by which the service may be called.", multiple=True, metavar="NAME"),
    option("rate", 10_000.0, "Requests a second that one client may send.", type=click.FloatRange(1)),
    click.option("--open/--no-open", default=True, help="Open the page in a browser.", show_default=True),
    flag("salvage", "Keep what is whole of a log that is damaged."),
)  # fmt: skip
def serve(**options: Any) -> None:
    """Serve a page on which people compare the items of TABLE, and an HTTP API for programs.

    TABLE is CSV, JSON lines or Parquet, or a folder of images. Two items are shown; S says that they are similar,
    D that they are different. The metric is learned meanwhile, and shown. Programs send comparisons of items or of
    features to /v1/streams/NAME/comparisons; /openapi.json describes it all.

    \b
    ocelad serve items.csv
    ocelad serve texts.jsonl --text body
    ocelad serve photos/ --points embeddings.npy
    ocelad serve --data items.serve
    ocelad serve items.csv --host 0.0.0.0 --token-file token.txt

    An answer is on the disk before it is acknowledged: kill -9 loses nothing, and the same command goes on. Ctrl-C
    and SIGTERM end the service within five seconds.
    """
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise click.ClickException('ocelad serve needs a few packages: pip install "ocelad[cli,serve]"') from None
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # before NumPy: the processors are needed for other processes
    from ..serve import server

    server.serve(server.Options(**options))
