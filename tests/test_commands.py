"""``ocelad embed``, ``score``, ``plot`` and ``info``: what is in the files of a run, for people and programs."""

import csv
import io
import re

import click
import numpy as np
import pytest
from sklearn.metrics import log_loss

from ocelad import KeyedTrackers, MetricTracker, SupervisedMetricTracker, cli, load, plots, save
from ocelad.neighbors import MovingIndex
from ocelad.track import read_timeline
from ocelad.watch.history import weights_by_name
from streams import comparisons
from test_cli import run

NAMES = ["length", "width", "age"]


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """Tables of pairs and of points, and a run on the pairs."""
    folder = tmp_path_factory.mktemp("commands")
    pairs, y = comparisons(seed=0, steps=900, n=3)
    write(
        folder / "pairs.csv",
        [*(f"x_{n}" for n in NAMES), *(f"z_{n}" for n in NAMES), "y"],
        pairs.reshape(900, 6),
        y,
    )
    points = np.random.default_rng(1).normal(size=(40, 3))
    kinds = np.where(points[:, 0] < 0, "low, very", 'a "b"')
    write(folder / "points.csv", ["age", "length", "width", "kind"], points[:, [2, 0, 1]], kinds)
    with pytest.MonkeyPatch.context() as patch:
        assert run(patch, "track", str(folder / "pairs.csv"), "--out", str(folder / "run")) in (0, None)
    return folder


def write(path, header, numbers, last):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [header, *([*row, word] for row, word in zip(numbers.tolist(), last, strict=True))]
        )


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_embed_gives_coordinates_by_name(monkeypatch, capsys, folder):
    assert run(monkeypatch, "embed", str(folder / "run"), str(folder / "points.csv"), "--dimensions", "3") in (
        0,
        None,
    )
    rows = table(capsys.readouterr().out)
    tracker = load(folder / "run" / "tracker.ocelad")
    points = np.array([[float(row[name]) for name in NAMES] for row in table((folder / "points.csv").read_text())])
    found = np.array([[float(row[f"dim_{k}"]) for k in (1, 2, 3)] for row in rows])
    np.testing.assert_array_equal(found, tracker.get_metric().transform(points))
    assert {row["kind"] for row in rows} == {"low, very", 'a "b"'}  # passed on as it was
    out = folder / "coordinates.csv"
    assert run(monkeypatch, "embed", str(folder / "run"), str(folder / "points.csv"), "--out", str(out)) in (
        0,
        None,
    )
    assert list(table(out.read_text())[0]) == ["kind", "dim_1", "dim_2"]


def test_score_measures_pairs_under_a_metric_that_stays(monkeypatch, capsys, folder):
    before = (folder / "run" / "tracker.ocelad").read_bytes()
    assert run(monkeypatch, "score", str(folder / "run"), str(folder / "pairs.csv")) in (0, None)
    out, tracker = capsys.readouterr(), load(folder / "run" / "tracker.ocelad")
    pairs, y = comparisons(seed=0, steps=900, n=3)
    rows = table(out.out)
    assert [float(row["distance"]) for row in rows] == pytest.approx(tracker.pair_distance(pairs), rel=1e-12)
    assert [int(row["predicted"]) for row in rows] == tracker.predict(pairs).tolist()
    right, auc = np.mean(tracker.predict(pairs) == y), tracker.score(pairs, y)
    majority = max(np.mean(y > 0), np.mean(y < 0))
    assert (
        f"900 pairs: accuracy {right:.4f} ({majority:.4f} by the more frequent label), AUC {auc:.4f}\n" in out.err
    )
    loss = log_loss(y, tracker.predict_proba(pairs)[:, 1])
    assert f"log loss {loss:.4f}, expected calibration error 0." in out.err
    assert (folder / "run" / "tracker.ocelad").read_bytes() == before


def test_score_needs_no_y_and_takes_items(monkeypatch, capsys, folder):
    write(folder / "items.csv", ["id", *NAMES], np.column_stack([np.arange(3), np.eye(3)[:, :2]]), np.zeros(3))
    (folder / "ids.csv").write_text("id_a,id_b\n0.0,1.0\n2.0,2.0\n")
    words = ["score", str(folder / "run"), str(folder / "ids.csv"), "--items", str(folder / "items.csv")]
    assert run(monkeypatch, *words) in (0, None)
    out, metric = capsys.readouterr(), load(folder / "run" / "tracker.ocelad").get_metric()
    assert [float(row["distance"]) for row in table(out.out)] == pytest.approx([metric([1, 0, 0], [0, 1, 0]), 0.0])
    assert "accuracy" not in out.err


def test_info_says_what_there_is(monkeypatch, capsys, folder):
    assert run(monkeypatch, "info", str(folder / "run")) in (0, None)
    out = capsys.readouterr().out
    assert "900 comparisons from 900 rows, 0 rejected; 901 lines of input used" in out
    assert "MetricTracker of 3 features after 900 comparisons" in out
    assert "features that count most: age" in out  # it does, in the second half
    assert "time line of 9 rows up to comparison 900" in out
    assert "900 predictions: accuracy 0." in out
    save(SupervisedMetricTracker().fit(np.arange(8.0).reshape(4, 2), [0, 0, 1, 1]), folder / "other.ocelad")
    assert run(monkeypatch, "info", str(folder / "other.ocelad")) in (0, None)
    assert "SupervisedMetricTracker of 2 features" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["run/timeline.csv"],
        ["run/tracker.ocelad"],
        ["run", "--kind", "metric"],
        ["run", "--points", "points.csv", "--label", "kind"],
    ],
    ids=" ".join,
)
def test_plot_draws(monkeypatch, folder, tmp_path, words):
    monkeypatch.chdir(folder)
    assert run(monkeypatch, "plot", *words, "--out", str(tmp_path / "figure.png")) in (0, None)
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    plots.pyplot().close("all")


def test_the_time_line_is_drawn_with_its_alarms(folder):
    line = read_timeline(folder / "run" / "timeline.csv")
    assert any(event.kind == "jump" and 450 < event.t < 600 for event in line.events)  # the stream jumps at 450
    figure = plots.timeline(line)
    top, middle, low = figure.axes
    assert [text.get_text() for text in top.texts] == [event.kind for event in line.events]
    assert low.get_lines()[0].get_ydata().tolist() == line.threshold.tolist()
    named = weights_by_name(line.kinds, line.lengths, np.nan_to_num(line.weights))
    seen = [name for name, weights in named.items() if weights.mean() >= 0.005]
    assert len(middle.collections) == len(seen) + 1  # the others are one band
    plots.pyplot().close("all")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["embed", "run", "pairs.csv"], "there is no column length; the metric's features are length, width"),
        (["embed", "run", "points.csv", "--dimensions", "4"], "at most 3"),
        (["embed", "points.csv", "points.csv"], "not a file that ocelad.save wrote"),
        (["embed", "run", "nothing.csv"], "nothing.csv"),
        (["score", "run", "points.csv"], "comparisons need columns"),
        (["score", "run", "other.csv"], "the metric has 3 features, length, width, age; the table has 1, age"),
        (
            ["embed", "fleet", "points.csv"],
            "fleet: it holds a KeyedTrackers, and a file of a single tracker is needed",
        ),
        (["score", "index", "pairs.csv"], "index: it holds a MovingIndex, and"),
        (["plot", "fleet"], "fleet: it holds a KeyedTrackers, and"),
        (["plot", "index", "--points", "points.csv", "--label", "kind"], "index: it holds a MovingIndex, and"),
        (["info", "pairs.csv"], "it is not a time line"),
        (["info", "."], "there is no run in this folder"),
        (["plot", "run", "--points", "points.csv", "--label", "sort"], "there is no column sort"),
        (["plot", "."], "there is no time line: a run writes a row every --every comparisons"),
        (["plot", "run/tracker.ocelad", "--kind", "timeline"], "tracker.ocelad: it is not a time line"),
        (["plot", "run", "--label", "kind"], "an embedding needs --points TABLE"),
        (["plot", "run", "--kind", "metric", "--label", "kind"], "are for an embedding"),
        (["plot", "run", "--format", "csv"], "are for an embedding"),
        (["info", "binary.csv"], "binary.csv: it is not a time line"),
        (["track", "pairs.csv", "--items", "items.csv"], "pairs.csv: items are for columns id_a and id_b"),
        (["track", "points.csv", "--label", "kind", "--items", "items.csv"], "not for labelled rows"),
        (["score", "run", "pairs.csv", "--items", "items.csv"], "pairs.csv: items are for columns id_a and id_b"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_what_does_not_fit_is_said_in_a_line(monkeypatch, capsys, folder, words, message):
    (folder / "other.csv").write_text("x_age,z_age\n1,2\n")
    (folder / "items.csv").write_text("id,age\na,2\n")
    (folder / "binary.csv").write_bytes(b"\xff\xfe\x00")
    save_fleet_and_index(folder)
    monkeypatch.chdir(folder)
    assert run(monkeypatch, *words) in (1, 2)
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert "give --label" not in error or words[0] == "track"  # which alone has it


def save_fleet_and_index(folder):
    pairs, y = comparisons(seed=0, steps=20, n=3)
    index = MovingIndex(MetricTracker().partial_fit(pairs, y))
    index.add(pairs[:, 0])
    save(index, folder / "index")
    save(KeyedTrackers(MetricTracker(base=2)).partial_fit(list("abcd") * 5, pairs, y), folder / "fleet")


def test_info_says_what_a_fleet_or_an_index_has(monkeypatch, capsys, tmp_path):
    save_fleet_and_index(tmp_path)
    save(KeyedTrackers(MetricTracker()), tmp_path / "empty")
    for name, said in (
        ("fleet", ["KeyedTrackers of 3 features: 4 keys", "options: base=2"]),
        ("empty", ["KeyedTrackers: 0 keys", "options: default"]),
        ("index", ["MovingIndex of 20 points", "MetricTracker of 3 features after 20 comparisons"]),
    ):
        assert run(monkeypatch, "info", str(tmp_path / name)) in (0, None)
        assert [line.strip() for line in capsys.readouterr().out.splitlines()[1:3]] == said


@pytest.mark.parametrize("command", ["embed", "score"])
def test_what_is_read_is_never_written_to(monkeypatch, capsys, folder, tmp_path, command):
    own = tmp_path / "own.csv"
    own.write_bytes((folder / ("points.csv" if command == "embed" else "pairs.csv")).read_bytes())
    before = own.read_bytes()
    assert run(monkeypatch, command, str(folder / "run"), str(own), "--out", str(own)) == 1
    assert "--out must be another file" in capsys.readouterr().err
    assert own.read_bytes() == before


def test_a_run_that_has_learned_nothing_has_no_metric(monkeypatch, capsys, folder, tmp_path):
    (tmp_path / "none.csv").write_text("x_a,z_a,y\n")
    assert run(monkeypatch, "track", str(tmp_path / "none.csv"), "--out", str(tmp_path / "run")) in (0, None)
    assert run(monkeypatch, "embed", str(tmp_path / "run"), str(folder / "points.csv")) == 1
    assert "nothing has been learned there yet" in capsys.readouterr().err


def test_a_run_on_items_has_their_digest_in_words(monkeypatch, capsys, tmp_path):
    (tmp_path / "items.csv").write_text("id,a\np,1\nq,2\n")
    (tmp_path / "ids.csv").write_text("id_a,id_b,y\np,q,1\n")
    words = ["track", str(tmp_path / "ids.csv"), "--items", str(tmp_path / "items.csv")]
    assert run(monkeypatch, *words, "--out", str(tmp_path / "run")) in (0, None)
    assert run(monkeypatch, "info", str(tmp_path / "run")) in (0, None)
    assert re.search(r"form: features a, items of a table \(sha256 [0-9a-f]{8}\.\.\.\)\n", capsys.readouterr().out)


def test_the_auc_of_one_kind_of_comparison_is_unknown(monkeypatch, capsys, tmp_path):
    (tmp_path / "same.csv").write_text("x_a,z_a,y\n0,1,1\n2,1,1\n")
    assert run(
        monkeypatch, "track", str(tmp_path / "same.csv"), "--out", str(tmp_path / "run"), "--every", "1"
    ) in (0, None)
    assert run(monkeypatch, "info", str(tmp_path / "run")) in (0, None)
    out = capsys.readouterr()
    assert "nan" not in out.out + out.err
    assert out.out.count("AUC unknown (all y are the same)") == 3  # in all, of the time line, of the predictions


def test_a_tracker_without_names_takes_columns_as_they_come(monkeypatch, capsys, tmp_path):
    pairs, y = comparisons(seed=0, steps=50, n=2)
    tracker = MetricTracker().partial_fit(pairs, y)
    save(tracker, tmp_path / "t.ocelad")
    (tmp_path / "p.csv").write_text("f,g\n1,2\n")
    assert run(monkeypatch, "embed", str(tmp_path / "t.ocelad"), str(tmp_path / "p.csv")) in (0, None)
    (row,) = table(capsys.readouterr().out)
    assert [float(row["dim_1"]), float(row["dim_2"])] == tracker.transform([[1.0, 2.0]])[0].tolist()


@pytest.mark.parametrize("command", ["track", "label", "embed", "score", "plot", "info"])
def test_help_has_an_example_and_a_word_on_every_option(monkeypatch, capsys, command):
    assert run(monkeypatch, command, "--help") == 0
    assert f"ocelad {command} " in capsys.readouterr().out
    options = [each for each in cli.main.get_command(None, command).params if isinstance(each, click.Option)]
    assert all(option.help for option in options)


def test_spark_size_says_what_a_fleet_needs(monkeypatch, capsys):
    words = ["spark-size", "--keys", "1e6", "--per-day", "1e9", "--n", "25", "--t", "100"]
    assert run(monkeypatch, *words) == 0
    assert [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "batches",
        "cores busy",
        "memory",
        "state of a key",
        "state of all",
        "checkpoints a day",
        "buckets",
    ]
