"""Examples that need an extra are left out where it is not installed, Ctrl-C is heard wherever tests are run, and
kernels are compiled once, however many workers run them."""

import signal
from importlib.util import find_spec

import pytest

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background, and so would be by children

NEED = {
    "river": [
        "src/ocelad/compat/river.py",
        "src/ocelad/compat/river_pairs.py",
        "docs/river.md",
        "docs/start-river.md",
    ],
    "fastapi": ["src/ocelad/serve", "docs/serve.md"],
    "pyspark": ["tests/spark_job.py"]
    + [f"src/ocelad/spark/{name}.py" for name in ("demo", "exchange", "items", "processors", "stored", "stream")],
}
MISSING = {package: files for package, files in NEED.items() if not find_spec(package)}
collect_ignore = [file for files in MISSING.values() for file in files]


def pytest_report_header() -> list[str]:
    return [f"{name} is not installed: no examples from {', '.join(files)}" for name, files in MISSING.items()]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile before workers start, which then find all on disk; each of them would take as long."""
    if not hasattr(session.config, "workerinput") and not session.config.option.collectonly:
        import numpy as np

        import ocelad

        for n in (2, 100):  # columns, and dictionaries
            ocelad.MetricTracker().partial_fit(np.ones((1, 2, n)), [1])
