"""Examples that need river are left out where it is not installed, and Ctrl-C is heard wherever tests are run."""

import signal
from importlib.util import find_spec

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background, and so would be by children

NEED_RIVER = ["src/ocelad/compat/river.py", "docs/river.md"]
collect_ignore = [] if find_spec("river") else NEED_RIVER


def pytest_report_header() -> str | None:
    return f"river is not installed: no examples from {', '.join(NEED_RIVER)}" if collect_ignore else None
