"""What pyproject.toml promises, CI tries; and CI calls nothing but what a person can call."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
OF_DEVELOPERS = {"docs", "test", "browser", "check", "dist"}


@pytest.fixture(name="workflow")
def fixture_workflow():
    yaml = pytest.importorskip("yaml")
    path = ROOT / ".github" / "workflows" / "tests.yml"
    if not path.parent.exists():
        pytest.skip("a source distribution has no workflows")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def runs(job):
    """The environments of a job: each combination of its matrix, and those that it includes."""
    matrix = job["strategy"]["matrix"]
    product = {(os, python, deps) for os in matrix["os"] for python in matrix["python"] for deps in matrix["deps"]}
    return product | {(each["os"], each["python"], each["deps"]) for each in matrix["include"]}


def test_every_promised_python_is_tried(workflow):
    promised = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", c)}
    tried = runs(workflow["jobs"]["test"])
    assert {python for os, python, _ in tried if os.startswith("ubuntu")} == promised
    assert PROJECT["requires-python"] == f">={min(promised, key=lambda version: int(version[2:]))}"
    for system in ("macos", "windows"):
        assert {"3.11", "3.14"} <= {python for os, python, _ in tried if os.startswith(system)}
    assert "oldest" in {deps for _, _, deps in tried}


def test_every_dependency_has_a_lower_bound():
    for words in [*PROJECT["dependencies"], *chain.from_iterable(EXTRAS.values())]:
        assert words.startswith("ocelad[") or re.fullmatch(r"[\w.-]+(\[\w+\])?>=[\d.]+", words), words


def test_the_workflow_calls_targets_that_exist(workflow):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    called = {name for step in steps for name in re.findall(r"^make (\w+)", step, re.MULTILINE)}
    assert {"test", "docs", "dist"} <= called
    for target in called:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_all_is_every_extra_of_users_but_spark():
    (words,) = EXTRAS["all"]
    named = set(re.fullmatch(r"ocelad\[(.*)\]", words)[1].split(","))
    assert named == set(EXTRAS) - OF_DEVELOPERS - {"all", "spark"}


def test_the_examples_name_extras_that_exist():
    rows = re.findall(
        r"^\| \[.*\| ([^|]*) \|$", (ROOT / "examples" / "README.md").read_text(encoding="utf-8"), re.M
    )
    assert {extra for row in rows for extra in re.findall(r"`(\w+)`", row)} <= set(EXTRAS)
