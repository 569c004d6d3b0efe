"""The paper's experiments: each runs and returns a table; none draws."""

from .synthetic import EVERY, METHODS, Record, Summary, Trial, summary

__all__ = ["EVERY", "METHODS", "Record", "Summary", "Trial", "summary"]
