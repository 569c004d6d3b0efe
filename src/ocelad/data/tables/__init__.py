"""Tables, row by row, as streams of comparisons: CSV, JSON lines and Parquet, from files and from a pipe."""

from .cells import Columns, matching
from .forms import Block, ByItems, Form, Labelled, Pairs, form_of, items
from .reading import Format, read_rows
from .rows import BadRow, Row, Rows

__all__ = [
    "BadRow",
    "Block",
    "ByItems",
    "Columns",
    "Form",
    "Format",
    "Labelled",
    "Pairs",
    "Row",
    "Rows",
    "form_of",
    "items",
    "matching",
    "read_rows",
]
