"""The command, as a person types it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ocelad
from ocelad import MetricTracker, Pool, cli, plots
from ocelad.baselines import Euclid
from ocelad.data import Segment
from ocelad.studies import Results, Study, Trial


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["ocelad", *words])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return stopped.value.code


@pytest.fixture(name="short")
def fixture_short(monkeypatch):
    """A scenario of a second or two."""
    segments = (Segment(150, "A", 0.0), Segment(100, "B", 0.05))
    monkeypatch.setattr("ocelad.data.SCENARIO", segments)
    return segments


@pytest.mark.usefixtures("terminal")
def test_demo_leaves_a_table_and_a_figure(monkeypatch, tmp_path, capsys, short):
    assert run(monkeypatch, "demo", "--trials", "2", "--out", str(tmp_path / "new" / "folder")) in (0, None)
    out = capsys.readouterr()
    assert re.search(r"^ocelad +0\.\d+", out.out, re.MULTILINE)
    for method in ("paper's setting", "COMID, high rate", "COMID, low rate", "Euclid"):
        assert method in out.out
    assert "5-NN error: ocelad" in out.err  # the progress bar
    assert "always the most frequent cluster: error 0.5000" in out.out
    figure = tmp_path / "new" / "folder" / "tracking.png"
    assert str(figure) in out.out
    assert figure.read_bytes().startswith(b"\x89PNG")
    table = (tmp_path / "new" / "folder" / "table.csv").read_text().splitlines()
    assert table[0] == "method,trial,t,segment,knn_error,nmi"
    assert len(table) == 1 + 2 * 5 * (sum(segment.steps for segment in short) // 49)


@pytest.mark.parametrize(
    "methods",
    [
        {"Euclid": Euclid},
        {"pool": lambda: MetricTracker(ensemble=lambda spawn: Pool([spawn(4.0**k, None) for k in range(3)]))},
        {f"method {k}": Euclid for k in range(9)},
    ],
    ids=["no-levels", "pool", "nine"],
)
def test_any_methods_can_be_drawn(monkeypatch, methods):
    segments = (Segment(100, "A", 0.0), Segment(60, "A", 0.3))
    monkeypatch.setattr("ocelad.studies.methods.METHODS", methods)
    study = Study(tuple(methods), segments)
    trial = Trial(study, 0)
    for _ in trial:
        pass
    figure = plots.tracking(Results.of(study, [trial.outcome]), trial.levels)
    assert len(figure.axes[0].get_lines()) == len(methods) + 1  # and one line between the segments


@pytest.mark.usefixtures("short")
def test_ctrl_c_shows_what_there_is(monkeypatch, tmp_path, capsys):
    whole = Trial.__iter__

    def interrupted(trial):
        for block in whole(trial):
            yield block
            if block.t == 97:
                raise KeyboardInterrupt

    monkeypatch.setattr(Trial, "__iter__", interrupted)
    assert run(monkeypatch, "demo", "--out", str(tmp_path)) in (0, None)
    out = capsys.readouterr()
    assert "Stopped early" in out.err
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 1 + 5 * 2
    assert (tmp_path / "tracking.png").exists()


def test_ctrl_c_before_anything_says_so(monkeypatch, tmp_path, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trial, "__iter__", interrupted)
    assert run(monkeypatch, "demo", "--out", str(tmp_path)) == 1
    assert "nothing to show" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_said_at_once(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run(monkeypatch, "demo", "--out", str(tmp_path / "file" / "folder")) == 1
    error = capsys.readouterr().err
    assert "Error:" in error
    assert "folder" in error


@pytest.mark.parametrize("words", [["-h"], ["demo", "--help"]])
def test_help(monkeypatch, capsys, words):
    assert run(monkeypatch, *words) == 0
    assert "Usage:" in capsys.readouterr().out


def test_every_command_is_listed_once():
    listed = [name for names in cli.JOBS.values() for name in names]
    assert sorted(listed) == sorted(cli.COMMANDS)


def test_help_shows_the_first_line_of_every_command():
    for name, line in cli.COMMANDS.items():
        assert cli.main.get_command(None, name).help.splitlines()[0] == line
    files = {path.stem for path in Path(cli.__file__).parent.glob("*.py")}
    assert files - {name.replace("-", "_") for name in cli.COMMANDS} == {
        "__init__",
        "__main__",
        "common",
        "failures",
        "features_seen",
        "keys",
        "labelling",
        "measures",
        "options",
        "progress",
        "regret",
        "side_by_side",
        "stopping",
        "study_common",
        "text",
    }


STOPPED = """
import sys

class Stop:
    def find_spec(self, name, *_):
        if name == "numpy":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Stop())
from ocelad.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("words", "code", "said"), [(["-h"], 0, "Learn a metric:"), (["info", "."], 1, "Aborted!")]
)
def test_help_needs_no_numpy_and_ctrl_c_while_it_is_imported_is_no_traceback(words, code, said):
    done = subprocess.run([sys.executable, "-c", STOPPED, *words], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_warmup(monkeypatch, capsys):
    assert run(monkeypatch, "warmup") == 0
    assert "kernels are ready" in capsys.readouterr().out


def test_version(monkeypatch, capsys):
    assert run(monkeypatch, "--version") == 0
    assert ocelad.__version__ in capsys.readouterr().out


@pytest.mark.parametrize("missing", ["click", "tqdm"])
def test_missing_packages_are_named(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from ocelad.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'pip install "ocelad[cli,plots]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_matplotlib_is_named():
    code = "import sys; sys.modules['matplotlib'] = None; from ocelad import plots; plots.pyplot()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "ocelad[plots]"' in done.stderr


def test_module_can_be_run():
    done = subprocess.run([sys.executable, "-m", "ocelad.cli", "-h"], capture_output=True, text=True, check=True)
    assert "demo" in done.stdout
