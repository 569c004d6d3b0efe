"""The paper's experiments: each runs and returns a table; none draws."""

from .backends import BACKENDS, run_study
from .claims import Verdict, verdicts
from .store import Store, StoreError
from .synthetic import Study
from .tables import Results, Summary, recovery, summarise, write_summary, write_table
from .text import TextResults, run_text
from .text_options import TextStudy
from .trial import Outcome, Trial, run_trial
from .tuning import TUNINGS, Choice, Tuning, choose, read_rates, with_rates, write_rates

__all__ = [
    "BACKENDS",
    "TUNINGS",
    "Choice",
    "Outcome",
    "Results",
    "Store",
    "StoreError",
    "Study",
    "Summary",
    "TextResults",
    "TextStudy",
    "Trial",
    "Tuning",
    "Verdict",
    "choose",
    "read_rates",
    "recovery",
    "run_study",
    "run_text",
    "run_trial",
    "summarise",
    "verdicts",
    "with_rates",
    "write_rates",
    "write_summary",
    "write_table",
]
