"""Pages that need no other file: figures and tables as HTML, for wide and narrow screens, light and dark."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from html import escape
from io import BytesIO
from typing import Any

from .style import Figure, pyplot

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --paper: #fff; --soft: #57606a; --line: #d8dee4;
  --shade: #f6f8fa; --yes: #00664a; --no: #a83c00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e6ea; --paper: #15181c; --soft: #9da7b1; --line: #343a42; --shade: #1f242a; --yes: #52cba4;
    --no: #ff9d6b; }
}
body { font: 16px/1.55 system-ui, sans-serif; max-width: 64rem; margin: 0 auto; padding: 1.5rem 1rem 4rem;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.8rem; line-height: 1.2; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 1rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
p, figcaption { max-width: 44rem; overflow-wrap: anywhere; }
figure { margin: 1.5rem 0; }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .4rem; }
.card { background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: .6rem; overflow-x: auto; }
.card img { display: block; max-width: 100%; margin: 0 auto; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .65rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { background: var(--shade); white-space: nowrap; }
td:first-child { white-space: nowrap; }
.number { text-align: right; white-space: nowrap; }
.yes, .no, .open { white-space: nowrap; }
.yes { color: var(--yes); } .no { color: var(--no); } .open { color: var(--soft); }
@media (max-width: 40rem) {
  body { font-size: 15px; }
  .card img { width: 38rem; max-width: none; }
  th, td:first-child { white-space: normal; min-width: 6rem; }
  .told tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line); }
  .told td { display: inline-block; border: 0; padding: 0 .8rem 0 0; }
  .told td:last-child { display: block; }
}
"""


def document(title: str, parts: Iterable[str]) -> str:
    """The whole page; its title is its first heading."""
    name, body = escape(title), "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{name}</h1>\n"
        f"{body}\n</main>\n</body>\n</html>\n"
    )


def image(png: bytes, words: str) -> str:
    """A picture on a light card, and below it what it shows. On a narrow screen it scrolls, to stay legible."""
    data, said = base64.b64encode(png).decode(), escape(words)
    picture = f'<img alt="{said}" src="data:image/png;base64,{data}">'
    return f"<figure>\n{_scrolling('card', said, picture)}\n<figcaption>{said}</figcaption>\n</figure>"


def figure(figure: Figure, words: str) -> str:
    """A figure as a picture; it is closed."""
    file = BytesIO()
    figure.savefig(file, format="png", dpi=120)
    pyplot().close(figure)
    return image(file.getvalue(), words)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table that scrolls where it is too wide; columns of numbers are to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    numbers = [all(map(_is_number, column)) for column in zip(*cells, strict=True)] or [False] * len(header)
    looks = ["number" if number else "" for number in numbers]
    body = "".join(_row("td", row, looks) for row in cells)
    name = escape(", ".join(filter(None, header)))
    return _scrolling("table", name, f"<table>\n{_row('th', header, looks)}{body}</table>")


def told(rows: Iterable[tuple[str, str, str, str]]) -> str:
    """Of each of several its name, a verdict, the class of the verdict, and why; on a narrow screen in two
    lines."""
    body = "".join(_row("td", (name, verdict, why), ("", look, "")) for name, verdict, look, why in rows)
    return f'<table class="told">\n{body}</table>'


def _row(tag: str, cells: Sequence[str], looks: Sequence[str]) -> str:
    """A row; a heading without words is none."""
    parts = []
    for words, look in zip(cells, looks, strict=True):
        kind = tag if words else "td"
        parts.append(f"<{kind}" + (f' class="{look}"' if look else "") + f">{escape(words)}</{kind}>")
    return f"<tr>{''.join(parts)}</tr>\n"


def _is_number(words: str) -> bool:
    """Whether a cell is empty, a number with an error, or a word that stands for one.

    >>> [_is_number(words) for words in ("0.5 ± 0.01", "12.5%", "", "never (50% do)", "0 to 3", "RICE")]
    [True, True, True, True, False, False]
    """
    return not words or bool(re.match(r"[-+]?\d[\d.]*%?( ± [\d.]+)?( \(.*\))?$|never|nan$", words))


def _scrolling(kind: str, name: str, inside: str) -> str:
    """What scrolls must be reached by the keyboard, and have a name."""
    return f'<div class="{kind}" tabindex="0" role="group" aria-label="{name}">{inside}</div>'
