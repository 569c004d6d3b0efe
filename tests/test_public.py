"""What is exported exists, is documented, and nothing else is promised."""

import re
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import ocelad
import ocelad.active
import ocelad.baselines
import ocelad.closure
import ocelad.data
import ocelad.data.tables
import ocelad.evaluate
import ocelad.fleet
import ocelad.geometry
import ocelad.label
import ocelad.neighbors
import ocelad.serve
import ocelad.spark
import ocelad.state
import ocelad.studies
import ocelad.track

ROOT = Path(__file__).parent.parent
PACKAGES = [
    ocelad,
    ocelad.active,
    ocelad.closure,
    ocelad.fleet,
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
    "FeatureScaleWarning",
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


# Where what the reference describes is not exported by a package: what the other pages of the documentation use.
MODULES = {
    "ocelad.compat.river": {"MetricKNNClassifier", "MetricTransformer", "PairClassifier", "PairSampler", "pair"},
    "ocelad.engine.trace": {"Trace"},
    "ocelad.intervals": {"active", "length", "opened", "opening", "partition"},
    "ocelad.platt": {"Decision", "compress", "recalibrate", "sigmoid", "unscaled"},
    "ocelad.protocols": {"DifferentiableLoss", "Ensemble", "Learner", "Loss", "Opening", "Weights"},
    "ocelad.studies.methods": {"METHODS"},
    "ocelad.studies.regret": {"Exponent", "WorstInterval", "exponents", "run"},
    "ocelad.watch.prequential": {"progressive"},
    "ocelad.watch.scores": {"Running"},
}


def exported():
    """Public names by their path; what two packages export has the shorter one."""
    found = {}
    for package in (*PACKAGES, plots(), ocelad.spark):
        for name in package.__all__:
            path = f"{package.__name__}.{name}"
            # plain data is known by its path, and so is what needs an extra
            thing = path if package is ocelad.spark else getattr(package, name)
            found.setdefault(id(thing) if callable(thing) else path, path)
    return set(found.values())


def plots():
    return pytest.importorskip("ocelad.plots")


def test_the_reference_has_every_public_name_once_and_no_other():
    pages = [page.read_text() for page in (ROOT / "docs" / "api").glob("*.md")]
    directive = re.compile(r"^\.\. (?:auto(?:class|function|exception)|py:data):: ([\w.]+)", re.MULTILINE)
    described = [path for page in pages for path in directive.findall(page)]
    assert sorted(described) == sorted(set(described)), "a name is described twice"
    besides = {f"{module}.{name}" for module, names in MODULES.items() for name in names}
    assert set(described) == exported() | besides
    for module, names in MODULES.items():
        if module != "ocelad.compat.river":  # which needs an extra
            assert all(hasattr(import_module(module), name) for name in names), module


def test_the_reference_is_complete():
    contents = (ROOT / "docs" / "api" / "index.md").read_text().splitlines()
    pages = {page.stem for page in (ROOT / "docs" / "api").glob("*.md")} - {"index"}
    assert pages <= set(contents)


@pytest.mark.parametrize("page", ["notes-on-the-paper", "guarantees"])
def test_pages_point_to_tests_that_exist(page):
    pointers = re.findall(r"`(test_\w+)\.py::(test_\w+)`", (ROOT / "docs" / f"{page}.md").read_text())
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
