"""The paper's experiments: each runs and returns a table; none draws."""

from .claims import Verdict, verdicts
from .engines import ENGINES, run_study
from .options import Study
from .outcome import Outcome, run_trial
from .store import Store, StoreError
from .synthetic import EVERY, METHODS, Record, Summary, Trial, summary
from .tables import Line, Results, recovery, summarise, write_summary, write_table
from .text import TextResults, run_text
from .text_options import TextStudy
from .tuning import TUNINGS, Choice, Tuning, choose, read_rates, with_rates, write_rates

__all__ = [
    "ENGINES",
    "EVERY",
    "METHODS",
    "TUNINGS",
    "Choice",
    "Line",
    "Outcome",
    "Record",
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
    "summary",
    "verdicts",
    "with_rates",
    "write_rates",
    "write_summary",
    "write_table",
]
