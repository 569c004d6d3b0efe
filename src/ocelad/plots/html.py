"""Pages that need no other file: figures and tables as HTML."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from io import BytesIO
from typing import Any

from .style import Figure, pyplot

_STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; color: #222; }
img { max-width: 100%; } table { border-collapse: collapse; margin: 1em 0; }
th, td { padding: .2em .7em; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }
.yes { color: #00664a; } .no { color: #a83c00; } .open { color: #666; }
"""


def document(title: str, parts: Iterable[str]) -> str:
    """The whole page; its title is its first heading."""
    name, body = escape(title), "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{name}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{name}</h1>\n"
        f"{body}\n</body>\n</html>\n"
    )


def image(png: bytes, words: str) -> str:
    """A picture, and what it shows."""
    data = base64.b64encode(png).decode()
    return f'<p><img alt="{escape(words)}" src="data:image/png;base64,{data}"></p>'


def figure(figure: Figure, words: str) -> str:
    """A figure as a picture; it is closed."""
    file = BytesIO()
    figure.savefig(file, format="png", dpi=120)
    pyplot().close(figure)
    return image(file.getvalue(), words)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(c))}</td>" for c in row) + "</tr>\n" for row in rows)
    return f"<table>\n<tr>{head}</tr>\n{body}</table>"
