"""Tables, row by row, as streams of comparisons: CSV, JSON lines and Parquet, from files and from a pipe."""

from .cells import Columns, matching
from .forms import Batch, Comparisons, Form, comparisons, parsed, read_items
from .labelled import Labelled
from .reading import read_rows
from .rows import BadRow, Row, Rows

__all__ = [
    "BadRow",
    "Batch",
    "Columns",
    "Comparisons",
    "Form",
    "Labelled",
    "Row",
    "Rows",
    "comparisons",
    "matching",
    "parsed",
    "read_items",
    "read_rows",
]
