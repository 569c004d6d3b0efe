"""The service as programs see it: comparisons in, a metric out, and a log that has it all."""

import csv
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs the extra serve")

from ocelad import MetricTracker, dumps, load, loads
from ocelad.serve import Client, ServiceError, log, salvage
from ocelad.serve.fold import Fold
from running import Running

NAMES = ["length", "weight", "age"]


def table(path, count=30, seed=0):
    """Animals of three kinds that differ in length and weight."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=count)
    points = rng.normal(size=(count, 3)) + np.array([[0, 0, 0], [6, 0, 0], [0, 6, 0]])[kind]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "colour", *NAMES])
        for k in range(count):
            writer.writerow([f"animal {k}", ["red", "blue"][k % 2], *map(repr, points[k].tolist())])
    return kind, points


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    kind, points = table(folder / "items.csv")
    with Running(folder / "items.csv", data=folder / "data") as running:
        running.kind, running.points = kind, points
        yield running
        assert "Warning" not in running.words()  # of Python's


@pytest.fixture
def fresh(tmp_path):
    kind, points = table(tmp_path / "items.csv")
    with Running(tmp_path / "items.csv", data=tmp_path / "data") as running:
        running.kind, running.points = kind, points
        yield running


def answer(service, k, i, j, y=None, **more):
    y = y or (1 if service.kind[i] == service.kind[j] else -1)
    return {"request_id": f"r{k}", "a": f"animal {i}", "b": f"animal {j}", "y": y, **more}


def answers(service, count, seed=0, start=0):
    rng = np.random.default_rng(seed)
    return [
        answer(service, start + k, *rng.choice(len(service.kind), 2, replace=False).tolist()) for k in range(count)
    ]


class TestComparisons:
    def test_one_is_acknowledged_once(self, fresh):
        said = answer(fresh, 1, 0, 1)
        path = "/v1/streams/default/comparisons"
        assert fresh.request("POST", path, said) == (201, {"id": 1, "request_id": "r1", "known": False})
        assert fresh.request("POST", path, said) == (200, {"id": 1, "request_id": "r1", "known": True})
        status, problem = fresh.request("POST", path, {**said, "y": -said["y"]})
        assert (status, problem["field"]) == (409, "request_id")
        assert [entry["request_id"] for entry in fresh.get("comparisons")["comparisons"]] == ["r1"]

    def test_a_list_is_taken_whole_or_not_at_all(self, fresh):
        said = answers(fresh, 5)
        assert [added["id"] for added in fresh.post("comparisons", said)] == [1, 2, 3, 4, 5]
        bad = [*answers(fresh, 3, 1, 10), {**said[0], "y": -said[0]["y"]}]
        assert fresh.request("POST", "/v1/streams/default/comparisons", bad)[0] == 409
        assert fresh.get("comparisons?after=0&limit=2")["next"] == 2
        assert len(fresh.get("comparisons")["comparisons"]) == 5

    def test_a_page_of_the_log_is_bounded(self, fresh):
        wide = np.arange(20_000.0)
        said = [
            {"request_id": str(k), "x": (wide + k).tolist(), "z": wide.tolist(), "y": 1} for k in range(5)
        ]  # more than the features of the items
        assert fresh.request("POST", "/v1/streams/wide/comparisons", said[0])[0] == 422
        with closing(log.Log(fresh.data / "other")) as writer:
            for each in said:
                x, z = (np.array(each[side]).tobytes() for side in "xz")
                writer.add("s", log.Entry(0, "s", each["request_id"], "comparison", x=x, z=z, y=1))
            writer.commit()
        with Running(data=fresh.data / "other") as running:
            seen, after = [], 0
            while after is not None:
                page = running.request("GET", f"/v1/streams/s/comparisons?after={after}")[1]
                seen += [entry["id"] for entry in page["comparisons"]]
                assert len(page["comparisons"]) < 3
                after = page["next"]
            assert seen == [1, 2, 3, 4, 5]

    def test_undo_is_as_if_it_had_never_been(self, fresh):
        said = answers(fresh, 40)
        fresh.post("comparisons", said[:20])
        before = fresh.get("export/tracker.ocelad")
        fresh.post("comparisons", answer(fresh, "wrong", 0, 1, 1))
        fresh.post("skips", {"request_id": "skip", "a": "animal 0", "b": "animal 2"})
        assert fresh.get("export/tracker.ocelad") != before
        status, undone = fresh.request("DELETE", "/v1/streams/default/comparisons/21")
        assert (status, undone) == (200, {"id": 23, "undoes": 21, "known": False})
        assert fresh.request("DELETE", "/v1/streams/default/comparisons/21")[1]["known"]
        assert fresh.get("export/tracker.ocelad") == before
        shown = fresh.get("comparisons?after=20")["comparisons"]
        assert [(entry["kind"], entry["undone"]) for entry in shown] == [
            ("comparison", True),
            ("skip", False),
            ("undo", False),
        ]
        fresh.request("DELETE", "/v1/streams/default/comparisons/3")
        fresh.post("comparisons", said[20:])
        pairs, y = learned(fresh, [*said[:2], *said[3:]])
        assert fresh.get("export/tracker.ocelad") == dumps(
            named(MetricTracker(scale="features").partial_fit(pairs, y))
        )
        assert fresh.request("DELETE", "/v1/streams/default/comparisons/99")[0] == 404
        assert fresh.request("DELETE", "/v1/streams/default/comparisons/23")[0] == 409

    def test_features_and_ids_are_the_same(self, fresh):
        said = answers(fresh, 30)
        for comparison in said[::2]:
            fresh.post("comparisons", comparison)
            x, z = (fresh.points[int(comparison[side].split()[1])].tolist() for side in "ab")
            other = {"request_id": comparison["request_id"], "x": x, "z": z, "y": comparison["y"]}
            assert fresh.request("POST", "/v1/streams/other/comparisons", other)[0] == 201
        trackers = [
            fresh.request("GET", f"/v1/streams/{name}/export/tracker.ocelad")[1] for name in ("default", "other")
        ]
        assert trackers[0] == trackers[1]
        assert [stream["name"] for stream in fresh.request("GET", "/v1/streams")[1]["streams"]] == [
            "default",
            "other",
        ]

    @pytest.mark.parametrize(
        ("body", "status", "field"),
        [
            ({"request_id": "b", "a": "animal 0", "b": "nobody", "y": 1}, 422, "b"),
            ({"request_id": "b", "a": "animal 0", "b": "animal 0", "y": 1}, 422, "b"),
            ({"request_id": "b", "a": "animal 0", "b": "animal 1", "y": 0}, 422, "y"),
            ({"request_id": "b", "a": "animal 0", "b": "animal 1", "y": True}, 422, "y"),
            ({"request_id": "b", "a": "animal 0", "b": "animal 1"}, 422, "y"),
            ({"a": "animal 0", "b": "animal 1", "y": 1}, 422, "request_id"),
            ({"request_id": "b", "x": [1, 2], "z": [1, 2], "y": 1}, 422, "x"),
            ({"request_id": "b", "x": [1, 2, 3], "z": [1, 2], "y": 1}, 422, "z"),
            ({"request_id": "b", "x": [1, 2, 1e300], "z": [1, 2, 3], "y": 1}, 422, "x.2"),
            ({"request_id": "b", "x": [1, 2, "3"], "z": [1, 2, 3], "y": 1}, 422, "x.2"),
            ([{"request_id": "b", "a": "animal 0", "b": "animal 1", "y": 3}], 422, "0.y"),
            ([], 422, ""),
            ({"request_id": "b", "a": "animal 0", "b": "animal 1", "y": 1, "weight": 2}, 422, "weight"),
            (b'{"request_id": "b", "x": [NaN, 1, 2], "z": [1, 2, 3], "y": 1}', 422, "x.0"),
            (b"{", 422, None),
            (b"\xff\xfe", 422, None),
        ],
    )
    def test_bad_ones_name_the_field_and_change_nothing(self, service, body, status, field):
        before = service.get("comparisons?limit=10000")
        found, problem = service.request("POST", "/v1/streams/default/comparisons", body)
        assert found == status
        assert problem["status"] == status
        assert problem["title"]
        assert field is None or problem.get("field", "") == field
        assert service.get("comparisons?limit=10000") == before


def learned(service, said):
    numbers = [[int(each[side].split()[1]) for side in "ab"] for each in said]
    return service.points[numbers], [each["y"] for each in said]


def named(tracker):
    tracker.feature_names_in_ = np.array(NAMES, dtype=object)
    return tracker


@pytest.fixture(scope="module")
def tracker(service):
    said = answers(service, 300, seed=5, start=1000)
    service.post("comparisons", said)
    service.learned()
    return loads(service.get("export/tracker.ocelad"))


class TestMetric:
    def published(self, service):
        """The metric that was published last is that of the last comparison, a moment later."""
        for _ in range(200):
            metric, state = service.get("metric"), service.get("state")
            if metric["version"] == state["version"]:
                return metric
            time.sleep(0.02)
        raise AssertionError("it is not published")

    def test_scores_are_the_trackers(self, service, tracker):
        metric = self.published(service)
        pairs = np.random.default_rng(1).normal(size=(20, 2, 3)) * 3
        said = service.post("score", [{"x": x, "z": z} for x, z in pairs.tolist()])
        scores = said["scores"]
        np.testing.assert_allclose(
            [score["distance"] for score in scores], tracker.pair_distance(pairs), rtol=1e-9
        )
        np.testing.assert_allclose(
            [score["probability"] for score in scores], tracker.predict_proba(pairs)[:, 1], rtol=1e-9
        )
        assert [score["similar"] for score in scores] == (tracker.predict(pairs) > 0).tolist()
        assert said["threshold"] == pytest.approx(tracker.threshold_)
        assert said["version"] == metric["version"]
        one = service.post("score", {"a": "animal 0", "b": "animal 1"})
        assert one["distance"] == pytest.approx(tracker.pair_distance(service.points[[[0, 1]]])[0])
        np.testing.assert_allclose(metric["components"], tracker.components_)
        assert metric["features"] == NAMES

    def test_embedding_and_neighbors_are_the_trackers(self, service, tracker):
        self.published(service)
        del tracker.feature_names_in_  # arrays have none
        coordinates = service.post("embed", {"items": ["animal 3", "animal 4"], "dimensions": 2})["coordinates"]
        np.testing.assert_allclose(coordinates, tracker.transform(service.points[[3, 4]])[:, :2], atol=1e-9)
        coordinates = service.post("embed", {"points": service.points[:2].tolist()})["coordinates"]
        np.testing.assert_allclose(coordinates, tracker.transform(service.points[:2]), atol=1e-9)
        found = service.post("neighbors", {"item": "animal 3", "k": 4})["neighbors"]
        d = tracker.pair_distance(np.array([[service.points[3], other] for other in service.points]))
        order = [k for k in np.argsort(d, kind="stable").tolist() if k != 3][:4]
        assert [neighbor["id"] for neighbor in found] == [f"animal {k}" for k in order]
        np.testing.assert_allclose([neighbor["distance"] for neighbor in found], d[order])

    def test_the_picture_does_not_flip(self, service, tracker):
        assert tracker.n_features_in_ == 3
        before = service.get("map")
        service.post("comparisons", answers(service, 1, seed=9, start=5000))
        self.published(service)
        after = service.get("map?color=colour")
        assert after["version"] > before["version"]
        assert after["values"] == ["red", "blue"] * 15
        for axis in "xy":
            assert np.corrcoef(before[axis], after[axis])[0, 1] > 0.9

    def test_before_the_first_comparison_there_is_none(self, fresh):
        for method, path, body in (("POST", "score", {"a": "animal 0", "b": "animal 1"}), ("GET", "metric", None)):
            assert fresh.request(method, f"/v1/streams/default/{path}", body)[0] == 409
        assert fresh.get("state")["t"] == 0
        assert len(fresh.get("map")["x"]) == 30
        assert fresh.request("GET", "/v1/streams/unknown/metric")[0] == 404
        assert fresh.request("GET", "/v1/streams/.hidden/state")[0] == 422


class TestGoingOn:
    def test_it_is_what_track_makes_of_the_exported_answers(self, fresh, tmp_path):
        fresh.post("comparisons", answers(fresh, 250))
        fresh.post("skips", {"request_id": "s", "a": "animal 1", "b": "animal 2"})
        fresh.post("changes", {"request_id": "c"})
        fresh.request("DELETE", "/v1/streams/default/comparisons/100")
        (tmp_path / "answers.csv").write_bytes(fresh.get("export/answers.csv"))
        (tmp_path / "items.exported.csv").write_bytes(fresh.get("export/items.csv"))
        tracker = fresh.get("export/tracker.ocelad")
        for items in ("items.exported.csv", "items.csv"):
            chosen = [] if "exported" in items else [word for name in NAMES for word in ("--features", name)]
            command = ["track", "answers.csv", "--items", items, "--out", f"run-{items}", *chosen]
            subprocess.run([sys.executable, "-m", "ocelad.cli", *command], cwd=tmp_path, check=True)
            assert dumps(load(tmp_path / f"run-{items}" / "tracker.ocelad")) == tracker

    def test_answers_about_points_are_exported_by_features(self, service, tmp_path):
        rng = np.random.default_rng(3)
        said = [
            {"request_id": str(k), "x": x, "z": z, "y": 1 if k % 3 else -1}
            for k, (x, z) in enumerate(rng.normal(size=(60, 2, 3)).tolist())
        ]
        assert service.request("POST", "/v1/streams/points/comparisons", said)[0] == 201
        exported = service.request("GET", "/v1/streams/points/export/answers.csv")[1]
        (tmp_path / "answers.csv").write_bytes(exported)
        subprocess.run([sys.executable, "-m", "ocelad.cli", "track", "answers.csv"], cwd=tmp_path, check=True)
        tracker = service.request("GET", "/v1/streams/points/export/tracker.ocelad")[1]
        assert dumps(load(tmp_path / "track" / "tracker.ocelad")) == tracker

    def test_started_again_it_goes_on(self, tmp_path):
        kind, _ = table(tmp_path / "items.csv")
        for start in (0, 40):
            with Running(tmp_path / "items.csv", data=tmp_path / "data") as running:
                running.kind = kind
                running.post("comparisons", answers(running, 40, seed=start, start=start))
                exported, seconds = running.get("export/tracker.ocelad"), running.stop()
                assert seconds < 5
                assert running.process.returncode == 0
        assert list((tmp_path / "data" / "snapshots" / "default").iterdir())
        with Running(data=tmp_path / "data") as running:  # without the table
            assert running.get("export/tracker.ocelad") == exported
            assert running.request("GET", "/v1/info")[1]["items"] == 30

    def test_damaged_snapshots_are_skipped_with_a_word(self, tmp_path):
        kind, _ = table(tmp_path / "items.csv")
        with Running(tmp_path / "items.csv", data=tmp_path / "data") as running:
            running.kind = kind
            running.post("comparisons", answers(running, 50))
            exported = running.get("export/tracker.ocelad")
            running.stop()
        (snapshot,) = (tmp_path / "data" / "snapshots" / "default").glob("*.zip")
        data = bytearray(snapshot.read_bytes())
        data[len(data) // 2] ^= 1
        snapshot.write_bytes(data)
        with Running(data=tmp_path / "data") as running:
            assert running.get("export/tracker.ocelad") == exported
            assert "this snapshot is left out" in running.words()

    def test_a_snapshot_is_skipped_whatever_is_wrong_with_it(self, tmp_path):
        with closing(TestFold().written(tmp_path)), closing(log.connect(tmp_path)) as db:
            whole = Fold("s", db, tmp_path / "a", None)
            whole.catch_up()
            whole.save()
            (path,) = (tmp_path / "a").iterdir()
            data, rng = path.read_bytes(), np.random.default_rng(0)
            central = data.rindex(b"PK\x01\x02")  # heads are few bytes, and their damage takes many forms
            for at in [*range(central, len(data)), *rng.integers(len(data), size=100).tolist()]:
                path.write_bytes(data[:at] + bytes([data[at] ^ (1 << rng.integers(8))]) + data[at + 1 :])
                again = Fold("s", db, tmp_path / "a", None)
                assert again.position in (0, whole.position)
            again.catch_up()
            assert again.exported() == whole.exported()

    def test_an_undo_of_what_was_not_salvaged(self, tmp_path):
        """The undo comes a block after what it takes back, which is gone."""
        with closing(log.Log(tmp_path)) as writer:
            for k in range(700):
                points = np.random.default_rng(k).normal(size=(2, 2))
                x, z = (point.tobytes() for point in points)
                writer.add("s", log.Entry(0, "s", str(k), "comparison", x=x, z=z, y=1 - 2 * (k % 2)))
            writer.undo("s", 5)
            writer.commit()
            writer._db.execute("UPDATE entries SET y = -y WHERE id = 5")
        assert salvage.salvage(tmp_path)[0] == 700
        with closing(log.connect(tmp_path)) as db:
            fold = Fold("s", db, tmp_path / "a", None)
            assert fold.catch_up(most=5000)
            assert fold.t == 699

    def test_a_salvage_that_was_interrupted_is_finished(self, tmp_path):
        with closing(log.Log(tmp_path / salvage.SALVAGED)) as writer:
            writer.add("s", log.Entry(0, "s", "r", "change"))
            writer.commit()
        salvage.finish_salvage(tmp_path)
        assert salvage.check(tmp_path) == 1
        assert not (tmp_path / salvage.SALVAGED).exists()

    def test_a_stream_that_cannot_be_loaded_leaves_the_others_alone(self, fresh):
        fresh.post("comparisons", answers(fresh, 5))
        (fresh.data / "snapshots" / "other").mkdir(parents=True)
        (fresh.data / "snapshots" / "other" / f"{1:012d}.zip").mkdir()  # no file
        said = answer(fresh, "o", 0, 1)
        assert fresh.request("POST", "/v1/streams/other/comparisons", said)[0] == 201
        assert fresh.learned("other")["t"] == 1
        assert fresh.learned()["t"] == 5

    def test_items_must_fit_the_log(self, tmp_path):
        with Running(data=tmp_path / "data") as running:
            running.post("comparisons", {"request_id": "r", "x": [1.0, 2.0], "z": [2.0, 1.0], "y": 1})
            running.stop()
        table(tmp_path / "items.csv")
        running = Running(tmp_path / "items.csv", data=tmp_path / "data", wait=False)
        assert running.process.wait(60) == 1
        assert "its log has points with 2 features, and the items have 3" in running.words()

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            (["missing.csv"], "TABLE: there is no missing.csv"),
            (["items.csv", "--points", "nothing.npy"], "--points: there is no nothing.npy"),
            (["items.csv", "--token-file", "no"], "--token-file: there is no no"),
            (["items.csv", "--id", "nobody"], "there is no column nobody"),
            (["same.csv"], "all items have the same features"),
            (["empty.jsonl"], "empty.jsonl: it is empty"),
        ],
    )
    def test_a_start_that_fails_leaves_nothing_behind(self, tmp_path, monkeypatch, given, words):
        monkeypatch.chdir(tmp_path)
        table("items.csv")
        Path("same.csv").write_text("id,a\nx,1\ny,1\n")
        Path("empty.jsonl").write_text("")
        running = Running(*given, data=tmp_path / "data", wait=False)
        assert running.process.wait(60) == 1
        assert words in running.words()
        assert not (tmp_path / "data").exists()

    def test_a_damaged_log_is_refused_and_what_is_whole_can_be_saved(self, tmp_path):
        kind, _ = table(tmp_path / "items.csv")
        with Running(tmp_path / "items.csv", data=tmp_path / "data") as running:
            running.kind = kind
            running.post("comparisons", answers(running, 50))
            running.stop()
        with closing(sqlite3.connect(tmp_path / "data" / "log.sqlite")) as db:
            db.execute("UPDATE entries SET y = -y WHERE id = 20")
            db.commit()
        running = Running(data=tmp_path / "data", wait=False)
        assert running.process.wait(30) == 1
        assert "entry 20: it was changed" in running.words()
        assert "49 entries are whole" in running.words()
        with Running("--salvage", data=tmp_path / "data") as running:
            assert [entry["id"] for entry in running.get("comparisons")["comparisons"]] == [
                *range(1, 20),
                *range(21, 51),
            ]
            assert running.learned()["t"] == 49
        assert list((tmp_path / "data").glob("log.damaged-*.sqlite"))

    def test_items_may_be_added_but_not_changed(self, tmp_path):
        table(tmp_path / "items.csv")
        with Running(tmp_path / "items.csv", data=tmp_path / "data") as running:
            running.post("comparisons", {"request_id": "1", "a": "animal 0", "b": "animal 1", "y": 1})
            running.stop()
        text = (tmp_path / "items.csv").read_text()
        (tmp_path / "items.csv").write_text(text + "new,green,1,2,3\n")
        with Running(tmp_path / "items.csv", data=tmp_path / "data") as running:
            running.post("comparisons", {"request_id": "2", "a": "animal 0", "b": "new", "y": -1})
            running.stop()
        text = (tmp_path / "items.csv").read_text()
        (tmp_path / "items.csv").write_text(re.sub("animal 4,red,[^,]*", "animal 4,red,123.5", text))
        running = Running(tmp_path / "items.csv", data=tmp_path / "data", wait=False)
        assert running.process.wait(60) == 1
        assert "animal 4" in running.words()

    def test_one_service_per_folder(self, service):
        other = Running(data=service.data, wait=False)
        assert other.process.wait(30) == 1
        assert "another" in other.words()


def read_events(service, found, stop):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20)
    connection.request("GET", "/v1/streams/default/events")
    answer = connection.getresponse()
    while not stop.is_set():
        line = answer.readline()
        if not line:
            break
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:]))
    connection.close()


def test_events_tell_of_every_change_and_end_with_the_service(tmp_path):
    kind, _ = table(tmp_path / "items.csv")
    found, stop = [], threading.Event()
    with Running(tmp_path / "items.csv", data=tmp_path / "data") as running:
        running.kind = kind
        thread = threading.Thread(target=read_events, args=(running, found, stop))
        thread.start()
        running.post("comparisons", answers(running, 3))
        for _ in range(200):
            if found and found[-1]["t"] == 3:
                break
            time.sleep(0.05)
        assert found[-1]["t"] == 3
        assert running.stop() < 5  # with the stream open
        thread.join(10)
        assert not thread.is_alive()


def test_a_process_that_dies_is_started_again(fresh):
    fresh.post("comparisons", answers(fresh, 20))
    dead = set(fresh.children())
    for pid in dead:
        os.kill(pid, signal.SIGKILL)
    while dead & set(fresh.children()) or len(fresh.children()) < 2:
        time.sleep(0.05)
    fresh.wait()
    fresh.post("comparisons", answers(fresh, 20, seed=1, start=20))
    assert fresh.learned()["t"] == 40


def test_streams_that_are_idle_are_put_away_and_come_back(tmp_path):
    """The learner keeps 64 streams in memory; the others are in their snapshots."""
    pair = {"x": [1.0, 0.0], "z": [0.0, 1.0]}
    with Running(data=tmp_path / "data") as running:
        for k in range(70):
            said = [
                {"request_id": str(j), "x": [float(j), float(k)], "z": [1.0, 2.0], "y": 1 - 2 * (j % 2)}
                for j in range(5)
            ]
            assert running.request("POST", f"/v1/streams/s{k}/comparisons", said)[0] == 201
            running.learned(f"s{k}")
        away = {path.name for path in (tmp_path / "data" / "snapshots").iterdir()}
        assert 6 <= len(away) < 70
        assert "s0" in away
        for k in (0, 1, 69):
            _, score = running.request("POST", f"/v1/streams/s{k}/score", pair)
            tracker = loads(running.request("GET", f"/v1/streams/s{k}/export/tracker.ocelad")[1])
            assert score["t"] == 5
            expected = tracker.pair_distance(np.array([[pair["x"], pair["z"]]]))[0]
            assert score["distance"] == pytest.approx(expected)


def test_questions_are_not_asked_twice(fresh):
    asked = [tuple(question[side]["id"] for side in "ab") for by in ("Ann", "Bob") for question in
             fresh.get(f"next?by={by}&count=4")["questions"]]  # fmt: skip
    assert len({frozenset(pair) for pair in asked}) == 8
    again = [tuple(q[side]["id"] for side in "ab") for q in fresh.get("next?by=Ann&count=4")["questions"]]
    assert again == asked[:4]
    fresh.post("comparisons", {"request_id": "1", "a": asked[0][0], "b": asked[0][1], "y": 1, "by": "Ann"})
    assert fresh.get("next?by=Ann&count=1")["questions"][0]["a"]["id"] == asked[1][0]
    cells = fresh.get("next?by=Ann")["questions"][0]["a"]["cells"]
    assert [name for name, _ in cells] == ["colour", *NAMES]


def test_the_client_does_all_of_it(service):
    with Client(f"http://127.0.0.1:{service.port}", "client", by="Ann") as client:
        ((a, b),) = client.next()
        first = client.compare(a, b, 1)
        assert client.compare([0.0, 1.0, 2.0], np.array([1.0, 1.0, 1.0]), -1, request_id="mine") == first + 1
        assert client.compare([0.0, 1.0, 2.0], np.array([1.0, 1.0, 1.0]), -1, request_id="mine") == first + 1
        assert client.compare_many([("animal 0", "animal 1", 1), ("animal 0", "animal 2", -1)])[-1] == first + 3
        client.skip("animal 3", "animal 4")
        client.judge_differently()
        client.undo(first)
        assert 0 <= client.score("animal 0", "animal 1")["probability"] <= 1
        assert len(client.score_many([("animal 0", "animal 1"), ([0, 0, 0], [1, 1, 1])])["scores"]) == 2
        assert len(client.embed(["animal 0"], dimensions=2)[0]) == 2
        assert len(client.embed(points=np.zeros((2, 3)))) == 2
        assert client.neighbors("animal 0", k=3)[0][0].startswith("animal")
        assert len(client.neighbors(point=[0, 0, 0])) == 5
        assert client.metric()["features"] == NAMES
        assert [entry["kind"] for entry in client.log()] == ["comparison"] * 4 + ["skip", "change", "undo"]
        assert [entry["by"] for entry in client.log()] == ["Ann"] * 7
        assert client.state()["track"] == "ocelad track answers.csv"  # one was about points
        state = client.state()
        assert (state["t"], state["counts"]["similar"], state["counts"]["different"]) == (3, 1, 2)
        assert [(change["t"], change["by"]) for change in state["changes"]] == [(3, "Ann")]
        assert (
            io.BytesIO(client.export("answers.csv")).readline()
            == b"x_length,x_weight,x_age,z_length,z_weight,z_age,y\n"
        )
        with pytest.raises(ServiceError, match="no such item") as error:
            client.compare("nobody", "animal 1", 1)
        assert (error.value.status, error.value.field) == (422, "a")


class TestFold:
    """However a log is cut into blocks, and whatever is undone meanwhile, the fold is that of what is left."""

    def written(self, folder, count=60, seed=0):
        rng = np.random.default_rng(seed)
        writer = log.Log(folder)
        for k in range(count):
            x, z = rng.normal(size=(2, 3))
            writer.add(
                "s", log.Entry(0, "s", str(k), "comparison", x=x.tobytes(), z=z.tobytes(), y=1 - 2 * (k % 2))
            )
            if k == 40:
                writer.add("s", log.Entry(0, "s", "differently", "change"))
            if k % 7 == 6:
                said = [e.id for e in log.read(writer._db, "s") if e.kind == "comparison"]
                writer.undo("s", int(rng.choice(said)))
        writer.commit()
        return writer

    @pytest.mark.parametrize("block", [1, 7, 1000])
    def test_blocks_do_not_matter(self, tmp_path, block):
        with closing(self.written(tmp_path)) as writer, closing(log.connect(tmp_path)) as db:
            whole = Fold("s", db, tmp_path / "a", None)
            whole.catch_up()
            cut = Fold("s", db, tmp_path / "b", None)
            while not cut.catch_up(most=block):
                pass
            assert cut.exported() == whole.exported()
            assert cut.course.state() == whole.course.state()
            gone = log.undone(db, "s")
            kept = [e for e in log.read(db, "s") if e.kind == "comparison" and e.id not in gone]
            assert whole.t == len(kept) < 60
            (change,) = (e.id for e in log.read(db, "s") if e.kind == "change")
            assert whole.course.changes == [{"id": change, "t": sum(e.id < change for e in kept), "by": None}]
            pairs = np.array([[np.frombuffer(e.x), np.frombuffer(e.z)] for e in kept])
            plain = MetricTracker(scale="features").partial_fit(pairs, [e.y for e in kept])
            plain.feature_names_in_ = np.array(["0", "1", "2"], dtype=object)
            assert whole.exported() == dumps(plain)
            # snapshots from before an undo are of no use, later ones are
            cut.save()
            writer.undo("s", 5)
            writer.commit()
            again = Fold("s", db, tmp_path / "b", None)
            again.catch_up()
            cut.catch_up()
            other = Fold("s", db, tmp_path / "c", None)
            other.catch_up()
            assert again.exported() == cut.exported() == other.exported()
            assert again.course.state() == cut.course.state() == other.course.state()
            writer.undo("s", change)
            writer.commit()
            cut.catch_up()
            assert cut.course.changes == []


def test_no_room_on_the_disk(tmp_path):
    """Answers are refused while there is no room, nothing is corrupted, and it goes on when there is some."""
    resource = pytest.importorskip("resource", reason="limits of a process are a matter of Unix")
    if not hasattr(resource, "prlimit"):
        pytest.skip("limits of other processes can be set on Linux alone")
    with Running(data=tmp_path / "data") as running:
        first = {"request_id": "first", "x": [1.0, 2.0], "z": [2.0, 1.0], "y": 1}
        running.post("comparisons", first)
        writer = next(p for p in running.children() if b"log_writer" in Path(f"/proc/{p}/cmdline").read_bytes())
        size = (tmp_path / "data" / "log.sqlite-wal").stat().st_size
        before = resource.prlimit(writer, resource.RLIMIT_FSIZE)
        resource.prlimit(writer, resource.RLIMIT_FSIZE, (size, before[1]))  # files cannot grow
        for k in range(5):
            status, problem = running.request(
                "POST", "/v1/streams/default/comparisons", {**first, "request_id": f"full {k}"}
            )
            assert status == 503
            assert "room on the disk" in problem["detail"]
        assert running.learned()["t"] == 1
        assert running.request("GET", "/readyz")[0] == 200
        resource.prlimit(writer, resource.RLIMIT_FSIZE, before)
        for k in range(5):
            running.post("comparisons", {**first, "request_id": f"full {k}"})
        assert running.learned()["t"] == 6
        running.stop()
    assert salvage.check(tmp_path / "data") == 6


def test_no_room_on_a_small_disk(tmp_path):
    """The same on a file system that is really full."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if (
        not mount
        or subprocess.run(
            [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True
        ).returncode
    ):
        pytest.skip("a small disk cannot be mounted here: that needs root")
    try:
        with Running(data=disk / "data") as running:
            rng = np.random.default_rng(0)
            taken, refused = 0, 0
            for k in range(400):
                x, z = rng.normal(size=(2, 200)).tolist()
                said = {"request_id": str(k), "x": x, "z": z, "y": 1}
                status, _ = running.request("POST", "/v1/streams/default/comparisons", said)
                assert status in (201, 503)
                taken, refused = taken + (status == 201), refused + (status == 503)
                if refused > 20:
                    break
            assert taken > 20 < refused
            subprocess.run([mount, "-o", "remount,size=20m", str(disk)], check=True)
            for k in range(5):
                running.post(
                    "comparisons", {"request_id": f"again {k}", "x": [0.0] * 200, "z": [1.0] * 200, "y": -1}
                )
            assert running.learned()["t"] == taken + 5
            running.stop()
        assert salvage.check(disk / "data") == taken + 5
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)
