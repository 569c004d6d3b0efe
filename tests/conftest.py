"""Where tests of files put them."""

import pytest

import ocelad
from streams import comparisons
from trackers import rice


@pytest.fixture(name="path")
def fixture_path(tmp_path):
    return tmp_path / "tracker.ocelad"


@pytest.fixture(name="terminal")
def fixture_terminal(monkeypatch):
    """Progress is shown as on a terminal."""
    monkeypatch.setattr("ocelad.cli.progress.on_terminal", lambda: True)


@pytest.fixture(name="saved")
def fixture_saved(path):
    pairs, y = comparisons(seed=0, steps=72, n=4)
    ocelad.save(rice(base=4).partial_fit(pairs[:40], y[:40]), path)
    return path
