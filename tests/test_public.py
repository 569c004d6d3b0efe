"""What is exported exists, is documented, and nothing else is promised."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

import ocelad
import ocelad.active
import ocelad.baselines
import ocelad.data
import ocelad.data.tables
import ocelad.evaluate
import ocelad.geometry
import ocelad.label
import ocelad.neighbors
import ocelad.serve
import ocelad.state
import ocelad.studies
import ocelad.track

ROOT = Path(__file__).parent.parent
PACKAGES = [
    ocelad,
    ocelad.active,
    ocelad.geometry,
    ocelad.data,
    ocelad.data.tables,
    ocelad.evaluate,
    ocelad.baselines,
    ocelad.neighbors,
    ocelad.state,
    ocelad.studies,
    ocelad.track,
    ocelad.label,
    ocelad.serve,
]

# The names that the documentation promises. A name is added here on purpose, or not at all.
NAMES = {
    "AdaGrad",
    "AdaNormalHedge",
    "ChangeAlarm",
    "Closure",
    "CoinBetting",
    "Comid",
    "Descent",
    "Event",
    "FileError",
    "FixedShare",
    "FollowTheRegularizedLeader",
    "Frobenius",
    "GradientDescent",
    "GroupQuestions",
    "GroupedShare",
    "Hinge",
    "History",
    "Intervals",
    "L1",
    "KeyedTrackers",
    "LogDet",
    "Logistic",
    "Mahalanobis",
    "Metric",
    "MetricTracker",
    "NuclearNorm",
    "Ocelad",
    "OceladWeights",
    "OrderLoss",
    "PairLoss",
    "Pool",
    "Queries",
    "Restarted",
    "Rice",
    "RiverAlarm",
    "SaolWeights",
    "SquaredFrobenius",
    "SquaredHinge",
    "Step",
    "SupervisedMetricTracker",
    "Union",
    "Unregularized",
    "VonNeumann",
    "dumps",
    "load",
    "loads",
    "on_intervals",
    "save",
    "time_scale",
}


def test_exported_names():
    assert set(ocelad.__all__) == NAMES
    assert set(dir(ocelad)) >= NAMES
    for name in NAMES:  # each is what its own room has by that name
        assert getattr(ocelad, name).__module__.startswith("ocelad."), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ocelad.nothing  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_exports_exist_and_are_documented(package):
    for name in package.__all__:
        thing = getattr(package, name)
        if callable(thing):
            assert thing.__doc__, name


def test_one_version():
    assert ocelad.__version__ == version("ocelad")
    assert f"## {ocelad.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {ocelad.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_notes_on_the_paper_point_to_tests_that_exist():
    notes = (ROOT / "docs" / "notes-on-the-paper.md").read_text()
    pointers = re.findall(r"`(test_\w+)\.py::(test_\w+)`", notes)
    assert len(pointers) > 15
    for file, test in pointers:
        assert f"def {test}(" in (ROOT / "tests" / f"{file}.py").read_text(), (file, test)


def test_readme_is_short_and_names_the_two_commands():
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= 125
    assert "make demo" in readme
    assert "make test" in readme
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", readme):
        assert (ROOT / picture).exists()
