"""``ocelad spark-demo``: its files, what it says without Spark, and (slow) one small run."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import click
import numpy as np
import pytest
from click.testing import CliRunner

from ocelad import cli
from ocelad.spark.demo_data import FIRST, PERIOD, ROWS, STRIDE, comparisons, latest_jump, write_file

SPARK = find_spec("pyspark") is not None


def features(rows):
    """Which features could be the one that matters, by what each user has said in a file."""
    fits = (np.abs(rows["x"] - rows["z"]) < 1) == (rows["y"] > 0)[:, None]
    return [np.flatnonzero(fits[rows["user"] == user].all(axis=0)).tolist() for user in range(3)]


def test_a_file_depends_on_its_number_alone():
    first, again, next_one = comparisons(3, 5), comparisons(3, 5), comparisons(4, 5)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["x"], next_one["x"])
    assert first["seq"][first["user"] == 2].tolist() == list(range(3 * ROWS, 4 * ROWS))
    assert next_one["seq"].min() == first["seq"].max() + 1


def test_notions_jump_where_it_is_said():
    users = np.arange(1000)
    jumps = {int(jump) for jump in latest_jump(users, np.full(1000, FIRST + PERIOD - 1))}
    assert jumps == set(range(FIRST, FIRST + PERIOD))  # at all times
    assert features(comparisons(0, 3)) == [[0], [0], [0]]
    number = FIRST // ROWS  # user 0 jumps with its first comparison
    assert features(comparisons(number, 3)) == [[1], [0], [0]]
    rows = comparisons((FIRST + STRIDE) // ROWS, 3)  # user 1 in the midst of it
    before = rows["seq"] < FIRST + STRIDE
    assert features(rows)[1] == []
    for part, matters in ((before, 0), (~before, 1)):
        assert features({name: rows[name][part] for name in rows})[1] == [matters]


def test_files_appear_whole(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_file(tmp_path, 7, 2)
    assert os.listdir(tmp_path) == ["000007.parquet"]
    table = parquet.read_table(tmp_path / "000007.parquet")
    assert table["key"].to_pylist()[:3] == ["user 0", "user 1", "user 0"]
    assert np.array_equal(np.stack(table["x"].to_numpy()), comparisons(7, 2)["x"])


def test_what_is_missing_is_said(monkeypatch, tmp_path):
    def said():
        done = CliRunner().invoke(cli.main, ["spark-demo", str(tmp_path / "work")])
        assert done.exit_code == 1
        assert isinstance(done.exception, (SystemExit, click.ClickException))
        return done.output

    names = ("pyspark", "pyspark.sql", "pyspark.sql.streaming", "pandas", "pyarrow", "google.protobuf")
    for name in names:
        monkeypatch.setitem(sys.modules, name, None if name == names[2] else ModuleType(name))
    assert 'pip install "ocelad[spark]"' in said()
    if SPARK:
        monkeypatch.undo()
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", "")
        assert "Java 17 or later" in said()
    assert not (tmp_path / "work").exists()


def test_alarms_are_held_against_the_truth(tmp_path):
    pytest.importorskip("pyspark", reason="Spark needs the extra spark")
    import pyarrow as pa

    from ocelad.spark.demo import Demo

    demo, lines = Demo(tmp_path, 2, None), []
    (tmp_path / "checkpoint" / "commits").mkdir(parents=True)
    alarms = {(0, 150): "drift", (0, 220): "jump", (0, 230): "drift", (1, 400): "jump"}
    for number in range(16):  # until comparison 639: 0 jumps at 200 and 600, 1 at 357
        rows = comparisons(number, 2)
        found = [alarms.get(row) for row in zip(rows["user"].tolist(), rows["seq"].tolist(), strict=True)]
        key = [f"user {user}" for user in rows["user"]]
        table = {"key": key, "seq": rows["seq"], "right": [True] * len(key), "alarm": pa.array(found, pa.string())}
        demo.say, outcome = lines.append, SimpleNamespace(toArrow=lambda table=table: pa.table(table))
        demo._keep(SimpleNamespace(select=lambda *_, outcome=outcome: outcome), number)
        (tmp_path / "checkpoint" / "commits" / str(number)).touch()
    assert lines[2] == "    2          240    0.0%       0"
    assert lines[3].endswith("1  user 0: drift at its comparison 150 (nothing has changed)")
    assert "(changed at 200)\n" + " " * 36 + "user 0: drift at its comparison 230" in lines[5]
    assert demo.summary() == "2 of 2 jumps were noticed, 32 comparisons later in the median; 2 false alarms"
    assert demo.learned == 16
    assert demo.comparisons(16) == 16 * 2 * ROWS


def test_only_a_folder_of_its_own_is_used(tmp_path):
    pytest.importorskip("pyspark", reason="Spark needs the extra spark")
    from ocelad.spark.demo import Demo

    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "letters.txt").touch()
    with pytest.raises(ValueError, match="FOLDER must be new or of this demonstration"):
        Demo(tmp_path / "foreign", 2)
    assert os.listdir(tmp_path / "foreign") == ["letters.txt"]
    write_file(Demo(tmp_path / "own", 2).folder / "in", 0, 2)
    assert len(Demo(tmp_path / "own", 2).files) == 1
    with pytest.raises(ValueError, match=r"--keys must be 2, as the run in .* began, got 3"):
        Demo(tmp_path / "own", 3)


@pytest.mark.slow  # a session of its own takes half as long as all other tests of Spark together
@pytest.mark.skipif(not SPARK, reason="Spark needs the extra spark")
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark itself needs Java 17 or later")
def test_it_ends_with_what_one_process_learns(tmp_path):
    command = [sys.executable, "-m", "ocelad.cli", "spark-demo", str(tmp_path), "--keys", "20", "--every", "0"]
    done = subprocess.run([*command, "--batches", "2"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 trackers equal those of one process, bit for bit." in done.stdout
