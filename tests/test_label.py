"""``ocelad label``: what is asked, what is kept, and that nothing is lost, whatever happens to it."""

import copy
import csv
import io
import os
import random
import re
import signal
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

from ocelad import GroupQuestions, dumps, load
from ocelad.active.nearest import Bounds
from ocelad.data.tables import read_rows
from ocelad.label import Answer, AnswersFile, Changed, Items, Session
from ocelad.label.questions import LATER, Questions, either
from running import posix
from test_cli import run

KINDS = ["cat", "dog", "owl"]


def points(m=30, seed=0):
    """Items of three kinds, which the first two of four features tell apart."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=m)
    X = rng.normal(size=(m, 4)) * [0.3, 3, 1, 100]
    X[:, 0] += kind
    X[:, 1] += 20 * (kind == 2)
    return X.round(4), kind


def judge(kind, i, j):
    return 1 if kind[i] == kind[j] else -1


@pytest.fixture(name="table")
def fixture_table(tmp_path):
    X, kind = points()
    lines = ["id,kind,a,b,c,d"]
    for i, x in enumerate(X.tolist()):
        word = KINDS[kind[i]]
        lines.append(",".join([f"{word} {i}", word, *map(str, x)]))
    path = tmp_path / "items.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def label(monkeypatch, table, said, *words):
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{word}\n" for word in said)))
    return run(monkeypatch, "label", str(table), *words)


def answers(table):
    return table.with_name("items.answers.csv")


def replies(count, seed=0):
    """Of a person who is undecided, wrong, or changes their mind now and then."""
    return random.Random(seed).choices(["y", "n", "u", "p", "d"], [40, 40, 8, 9, 3], k=count)


def state(session):
    """All that a session is: what was learned, to the bit, and what would be asked next."""
    learned = dumps(session.tracker) if session.tracker.__sklearn_is_fitted__() else None
    closure = session.closure
    implied = closure.groups(), dumps(closure)
    return learned, implied, list(session.log), session.progress(), session.question()


def test_features_that_look_like_ids_are_warned_of(monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{k},{rng.integers(10000, 99999)},{k % 2},{rng.normal():.3f}" for k in range(30)]
    (tmp_path / "people.csv").write_text("\n".join(["id,postcode,member_id,size", *lines]) + "\n")
    assert label(monkeypatch, tmp_path / "people.csv", "q") in (0, None)
    said = capsys.readouterr().err
    assert (
        "warning: postcode looks like an id, a batch number or a date; --features '!postcode' leaves it out"
        in said
    )
    assert "member_id" not in said  # which is 0 or 1
    assert label(monkeypatch, tmp_path / "people.csv", "q", "--features", "!postcode") in (0, None)
    assert "warning" not in capsys.readouterr().err


# The session


@pytest.mark.parametrize("options", [{}, {"implied": False}, {"aim": "groups"}], ids=str)
def test_undo_is_as_if_it_had_never_been(options):
    X, kind = points()
    session = Session(X, **options)
    states, rng = [state(session)], random.Random(1)
    for k in range(45):
        y = rng.choice([0, *[judge(kind, *session.question())] * 5])
        session.take(Changed() if k == 20 else Answer(*session.question(), y))
        states.append(state(session))
    undone = []
    for before in reversed(states[:-1]):
        undone.append(session.undo())
        assert state(session) == before
    assert undone[::-1] == states[-1][2]
    assert session.undo() is None


@pytest.mark.parametrize("aim", ["metric", "groups"])
def test_a_session_is_a_function_of_its_log(aim):
    X, kind = points()
    session = Session(X, aim, seed=3)
    for _ in range(30):
        session.take(Answer(*session.question(), judge(kind, *session.question())))
    again = Session(X, aim, seed=3)
    again.replay(session.log)
    assert state(again) == state(session)
    assert Session(X, seed=4).question() != Session(X, seed=3).question()


def test_groups_end_with_the_true_partition():
    X, kind = points(60)
    session = Session(X, "groups")
    while (pair := session.question()) is not None:
        session.take(Answer(*pair, judge(kind, *pair)))
    assert sorted(map(sorted, session.groups())) == sorted(np.flatnonzero(kind == k).tolist() for k in range(3))
    progress = session.progress()
    assert (progress.groups, progress.placed) == (3, 60)
    assert progress.similar + progress.different + progress.implied == 60 * 59 // 2
    assert len(session.log) < 120


@pytest.mark.parametrize("aim", ["metric", "groups"])
def test_what_one_is_unsure_of_is_asked_again_later(aim):
    X, kind = points()
    session = Session(X, aim)
    first = session.question()
    session.take(Answer(*first, 0))
    assert not session.tracker.__sklearn_is_fitted__()  # nothing was learned
    asked = []
    for _ in range(LATER + 1):
        asked.append(session.question())
        session.take(Answer(*asked[-1], judge(kind, *asked[-1])))
        if session.closure.implied(*first):
            return  # it need not be asked
    assert set(first) == set(asked[-1])
    assert all(set(first) != set(pair) for pair in asked[:-1])


@pytest.mark.parametrize("aim", ["metric", "groups"])
def test_who_is_always_unsure_is_asked_about_all_others_first(aim):
    session = Session(points(4)[0], aim)
    seen = set()
    for _ in range(6):
        pair = session.question()
        seen.add(tuple(sorted(pair)))
        session.take(Answer(*pair, 0))
    assert len(seen) >= (6 if aim == "metric" else 3)
    assert session.question() is not None
    assert session.progress().unsure == len(seen)


def test_every_pair_is_asked_at_most_once_and_then_all_is_known():
    X, kind = points(7)
    for implied in (True, False):
        session, asked = Session(X, implied=implied), set()
        while (pair := session.question()) is not None:
            assert frozenset(pair) not in asked
            asked.add(frozenset(pair))
            session.take(Answer(*pair, judge(kind, *pair)))
        assert session.progress().implied == (7 * 6 // 2 - len(asked) if implied else 0)
        assert len(asked) == 21 or implied


def test_implied_answers_are_counted_as_they_follow():
    X, kind = points(12)
    session, rng = Session(X), np.random.default_rng(0)
    for _ in range(25):
        i, j = rng.choice(12, 2, replace=False).tolist()
        session.take(Answer(i, j, judge(kind, i, j)))
        pairs = [(a, b) for a in range(12) for b in range(a)]
        said = {frozenset((event.i, event.j)) for event in session.log}
        known = [pair for pair in pairs if session.closure.implied(*pair) and frozenset(pair) not in said]
        assert session.progress().implied == len(known)


def test_a_notion_that_is_not_transitive_is_noticed_and_is_learned_without_what_answers_imply():
    X = np.random.default_rng(0).normal(size=(40, 3))

    def ask(session):
        i, j = session.question()
        return session.take(Answer(i, j, 1 if abs(X[i, 0] - X[j, 0]) < 0.7 else -1))

    session = Session(X)
    assert any(ask(session) is not None for _ in range(150))
    session = Session(X, implied=False)
    assert not any(ask(session) is not None for _ in range(150))
    assert session.relevance().argmax() == 0
    assert session.progress().right >= 12


def test_who_judges_differently_is_not_held_to_what_they_said():
    session = Session(points()[0])
    for i in range(8):
        session.take(Answer(i, i + 1, 1))
    assert session.closure.implied(0, 8) == 1
    session.take(Changed())
    assert session.closure.implied(0, 8) == session.closure.implied(7, 8) == 0
    assert session.progress().similar == 8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Session(np.zeros((1, 2))), "two or more points"),
        (lambda: Session(np.zeros((3, 2)), "partition"), "aim must be one of metric, groups"),
        (lambda: Session(np.zeros((3, 2)), "groups", implied=False), "needs implied=True"),
        (lambda: Session(np.zeros((3, 2)), seed=-1), "seed"),
        (lambda: Session(np.zeros((3, 2))).take(Answer(0, 3, 1)), "an answer is about two of 3 items"),
        (lambda: Session(np.zeros((3, 2))).take(Answer(1, 1, 1)), "an answer is about two of 3 items"),
        (lambda: Session(np.zeros((3, 2))).take(Answer(0, 1, 2)), "with y 1, -1 or 0"),
    ],
)
def test_what_a_session_refuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# Which pair to ask next


def taught(m, aim="groups", answers=60, seed=0):
    """A tracker and a closure after answers, of which some are wrong."""
    X, kind = points(m, seed)
    session, rng = Session(X, aim), random.Random(seed)
    for _ in range(answers):
        i, j = rng.sample(range(m), 2)
        session.take(Answer(i, j, judge(kind, i, j) * rng.choice([1] * 9 + [-1])))
    return X, session.tracker, session.closure


@pytest.mark.parametrize("seed", range(12))
def test_pairs_to_avoid_are_as_if_they_were_different(seed):
    X, tracker, closure = taught(25, answers=5 * seed, seed=seed)
    rng = random.Random(seed)
    avoid = list({either(*rng.sample(range(25), 2)) for _ in range(rng.randint(0, 20))})
    other = copy.deepcopy(closure)
    for i, j in avoid:
        if not other.implied(i, j):
            other.answer(i, j, -1)
    before = dumps(closure)
    assert GroupQuestions(tracker, closure, X).query(avoid) == GroupQuestions(tracker, other, X).query()
    assert dumps(closure) == before


@pytest.mark.parametrize("seed", range(12))
def test_bounds_leave_the_nearest_group_as_it_is(monkeypatch, seed):
    X, tracker, closure = taught(150, answers=12 * seed, seed=seed)
    X[:, 2] += [0.0, 1e4][seed % 2]  # single precision would resolve little there
    if seed % 3 == 0:
        X[75:] = X[:75]
    exact = GroupQuestions(tracker, closure, X).query()
    monkeypatch.setattr("ocelad.active.groups.MANY", 1)
    assert GroupQuestions(tracker, closure, X).query() == exact
    bounds = Bounds(X)
    items, groups = list(range(40)), [[50, 51, 52], [60], list(range(70, 90))]
    L = tracker.get_metric().components if seed else None
    Z = X if L is None else tracker.transform(X)
    far = np.linalg.norm(Z[items][:, None] - Z, axis=2)
    nearest = np.column_stack([far[:, group].min(axis=1) for group in groups])
    below = bounds.below(L, items, groups)
    assert (below <= nearest * (1 + 1e-9)).all()
    assert (below >= 0.9 * nearest - 1e-4 * far.max()).all()  # and they are of use


def test_points_too_large_for_single_precision_are_not_bounded():
    bounds = Bounds(np.array([[0.0, 1.0], [1e60, 0.0], [0.0, 1e60]]))
    assert (bounds.below(None, [0, 1], [[2]]) == -np.inf).all()


@pytest.mark.parametrize("aim", ["metric", "groups"])
def test_what_others_are_asked_is_not_asked(aim):
    X, tracker, closure = taught(8, answers=0)
    questions, taken = Questions(tracker, closure, X, aim), set()
    while (pair := questions.ask(seed=[0, len(taken)], avoid=taken)) is not None:
        assert either(*pair) not in taken
        taken.add(either(*pair))
    assert len(taken) == 28 if aim == "metric" else len(taken) >= 7


# The file


@pytest.mark.parametrize(
    ("end", "said", "count"),
    [
        (b"cat,do", "line 4 was only half written", 2),
        (b'"cat,', "line 4 was only half written", 2),
        (b"cat,dog,-", "line 4 was only half written", 2),
        (b"cat,dog,uns", "line 4 was only half written", 2),
        (b"cat,\xc3", "line 4 was only half written", 2),
        (b"\0\0\0\0", "line 4 was only half written", 2),
        (b"cat,dog,-1", "line 4 was complete but for its end", 3),
        (b",,changed", "line 4 was complete but for its end", 3),
        (b"", "", 2),
        (b"\r\n\n", "", 2),
    ],
)
def test_the_end_of_a_file_is_mended(tmp_path, end, said, count):
    path, whole = tmp_path / "a.csv", b'id_a,id_b,y\ncat,dog,1\ndog,"owl, old",unsure\n'
    path.write_bytes(whole + end)
    ids = ["cat", "dog", "owl, old"]
    with AnswersFile(path, ids) as file:
        assert file.mended.startswith(said)
        assert len(file.log) == count
        file.append(Answer(2, 0, -1))
        log = list(file.log)
    with AnswersFile(path, ids) as file:
        assert (file.log, file.mended) == (log, "")
        file.undo()
        file.undo()
    assert path.read_bytes().startswith(whole if count == 3 else b"id_a,id_b,y\ncat,dog,1\n")


@pytest.mark.parametrize("size", range(len(b"id_a,id_b,y\n") + 1))
def test_a_file_that_was_killed_in_its_first_line_begins_anew(tmp_path, size):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id_a,id_b,y\n"[:size])
    with AnswersFile(path, ["a", "b"]) as file:
        file.append(Answer(1, 0, 1))
        file.undo()
        file.undo()  # there is nothing to undo
        file.append(Answer(0, 1, 1))
    assert path.read_bytes() == b"id_a,id_b,y\na,b,1\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,y\n", "line 1: it is not a file of answers, which begins with id_a,id_b,y"),
        (b"\x89PNG\r\n", "line 1: it is not a line of CSV"),
        (
            b"id_a,id_b,y\ncat,emu,1\n",
            "line 2, column id_b: there is no item 'emu': these answers are about others",
        ),
        (b"id_a,id_b,y\nemu,cat,1", "line 2, column id_a: there is no item 'emu'"),  # and it is not cut off
        (b"id_a,id_b,y\ncat,cat,1\n", "line 2: it compares item 'cat' with itself"),
        (b"id_a,id_b,y\ncat,dog,1\n\ncat,dog,0\n", "line 4, column y: it must be 1 .* got '0'"),
        (b"id_a,id_b,y\ncat,do\ncat,dog,1\n", "line 2: it has 2 cells, expected 3"),
    ],
)
def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path, content, message):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        AnswersFile(path, ["cat", "dog"])
    assert path.read_bytes() == content


def test_a_file_has_one_person_at_a_time(tmp_path):
    with AnswersFile(tmp_path / "a.csv", ["a", "b"]), pytest.raises(OSError, match="someone else is answering"):
        AnswersFile(tmp_path / "a.csv", ["a", "b"])
    with AnswersFile(tmp_path / "a.csv", ["a", "b"]):
        pass


def test_an_answer_that_cannot_be_written_leaves_no_trace(monkeypatch, tmp_path):
    def full(*_):
        raise OSError("No space left on device")

    with AnswersFile(tmp_path / "a.csv", ["a", "b"]) as file:
        file.append(Answer(0, 1, 1))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space"):
                file.append(Answer(1, 0, -1))
        assert (tmp_path / "a.csv").read_bytes() == b"id_a,id_b,y\na,b,1\n"
        file.append(Answer(1, 0, 0))
    assert (tmp_path / "a.csv").read_bytes() == b"id_a,id_b,y\na,b,1\nb,a,unsure\n"


# Items


def items(tmp_path, text, *words, **options):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with closing(read_rows(str(path))) as rows:
        return Items.read(rows, *words, **options)


def test_columns_of_numbers_are_features(tmp_path):
    found = items(tmp_path, "name,a,zip,b\nx,1,4a,2.5\ny,2,17,1e3\n")
    assert found.features == ("a", "b")
    assert found.points.tolist() == [[1, 2.5], [2, 1000]]
    assert found.shown == ("name", "a", "zip", "b")
    assert found.ids == ["2", "3"]  # their lines
    found = items(tmp_path, "name,a,zip,b\nx,1,4,2.5\ny,2,17,1\x1b[2Je3\n", "name", features=["z*"], shown=["b"])
    assert (found.features, found.ids, found.shown) == (("zip",), ["x", "y"], ("b",))
    assert found.cells == [["2.5"], ["1 [2Je3"]]  # a terminal is sent no commands


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("id,a\nx,1\n", [], "t.csv: two or more items are needed, there is one"),
        ("id,a\n", [], "t.csv: two or more items are needed, there are none"),
        ("id,a\nx,1\nx,2\n", [], "t.csv: line 3, column id: item 'x' is there twice"),
        ("id,a\nx,1\n,2\n", [], "t.csv: line 3, column id: it must not be empty"),
        ("id,a\nx,1\ny,2\n", ["name"], "t.csv: there is no column name: there are id, a"),
        ("id,a\nx,1\ny,nan\n", [], "t.csv: line 3, column a: it must be a finite number, got 'nan'; --features"),
        ("id,a\nx,1\ny,\n", [], "t.csv: line 3, column a: it must be a finite number, got nothing; --features"),
        ("id,a\nx,1\ny,inf\n", [], "t.csv: line 3, column a: it must be a finite number, got 'inf'"),
        ("id,a\nx,one\ny,two\n", [], "t.csv: no column has numbers, which features must be: there are id, a"),
        ("id,a\nx,one\ny,2\n", [None, ["a"]], "t.csv: line 2, column a: it must be a finite number, got 'one'$"),
        ("id,a\nx,1\ny,2\n", [None, ["b*"]], "t.csv: no column matches 'b*'".replace("*", r"\*")),
        ("id,a\nx,1\ny,2\n", [None, [], ["c"]], "t.csv: no column matches 'c'"),
        ("id,a\nx,1\ny,2,3\n", [], "t.csv: line 3: it has 3 cells, expected 2"),
    ],
)
def test_bad_tables_are_refused_with_the_place(tmp_path, text, words, message):
    with pytest.raises(ValueError, match=message):
        items(tmp_path, text, *words)


# The command


def test_answers_are_piped_in(monkeypatch, capsys, table, tmp_path):
    saved = tmp_path / "tracker.ocelad"
    said = [
        "y",
        "NO",
        "",
        "what",
        "u",
        "?",
        "undo",
        "unsure",
        "previous",
        "n",
        "yes",
        "differently",
        "n",
        "quit",
        "y",
    ]
    assert label(monkeypatch, table, said, "--save", str(saved)) == 0
    out = capsys.readouterr().out
    lines = [line.split(",") for line in answers(table).read_text().splitlines()]
    assert [line[2] for line in lines] == ["y", "1", "-1", "-1", "1", "changed", "-1"]
    assert "'what' is none of y, n, u, p, d, q, ?." in out
    assert "5 answered: 2 similar, 3 different" in out
    assert f"ocelad embed {saved} {table}" in out
    for name in (*lines[1][:2], "kind", "what matters:", "foreseen:"):
        assert name in out
    tracker = load(saved)
    assert list(tracker.feature_names_in_) == ["a", "b", "c", "d"]
    assert run(monkeypatch, "embed", str(saved), str(table)) == 0
    assert len(capsys.readouterr().out.splitlines()) == 31


def test_the_answers_are_a_table_for_ocelad_track(monkeypatch, capsys, table, tmp_path):
    assert label(monkeypatch, table, ["y", "n", "n"]) == 0
    hint = capsys.readouterr().out.splitlines()[-1]
    command = f"ocelad track {answers(table)} --items {table} --features a --features b --features c --features d"
    assert hint == f"learn from the answers again: {command}"
    assert run(monkeypatch, *command.split()[1:], "--out", str(tmp_path / "run")) in (0, None)
    assert "3 comparisons from 3 rows, 0 rejected" in capsys.readouterr().out
    assert label(monkeypatch, table, ["u", "d", "y"]) == 0
    hint = capsys.readouterr().out.splitlines()[-1]
    assert hint.endswith(" --skip-bad")
    assert run(monkeypatch, *hint.split()[6:], "--out", str(tmp_path / "more")) in (0, None)
    assert "4 comparisons from 4 rows, 2 rejected" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["--aim", "groups"], ["--no-implied", "--candidates", "9", "--seed", "5"]])
def test_who_stops_and_goes_on_is_asked_what_they_would_have_been(monkeypatch, capsys, table, tmp_path, words):
    said, files = replies(60), []
    for number, cuts in enumerate(([60], [7, 8, 30, 41, 60])):
        saved, file = tmp_path / f"{number}.ocelad", tmp_path / f"{number}.csv"
        more = ["--answers", str(file), "--save", str(saved), *words]
        for start, stop in zip([0, *cuts], cuts, strict=False):
            assert label(monkeypatch, table, said[start:stop], *more) == 0
        files.append((file.read_bytes(), saved.read_bytes(), capsys.readouterr().out.splitlines()[-30:-12]))
    assert files[0] == files[1]


def test_undo_reaches_back_beyond_this_sitting(monkeypatch, capsys, table):
    assert label(monkeypatch, table, ["y", "n", "n"]) == 0
    assert label(monkeypatch, table, ["p"] * 5) == 0
    assert "There is nothing to undo." in capsys.readouterr().out
    assert answers(table).read_text() == "id_a,id_b,y\n"


def test_questions_can_be_few(monkeypatch, capsys, table):
    for count in (3, 6):
        assert label(monkeypatch, table, ["y", "y", "y", "y"], "--questions", "3", "--no-implied") == 0
        assert f"{count} answered: {count} similar, 0 different\n" in capsys.readouterr().out


class Person(io.StringIO):
    """Standard input that answers what was asked last."""

    def __init__(self, monkeypatch, kind):
        super().__init__()
        question = Session.question

        def heard(session):
            self.pair = question(session)
            return self.pair

        monkeypatch.setattr(Session, "question", heard)
        self.kind = kind

    def readline(self):
        return "y\n" if judge(self.kind, *self.pair) > 0 else "n\n"


def test_groups_are_written(monkeypatch, capsys, table):
    kind = points()[1]
    file = table.with_name("items.groups.csv")
    assert label(monkeypatch, table, ["n", "p", "n"], "--aim", "groups") == 0
    assert file.read_text().startswith("id,group\n")
    assert file.read_text().count(",\n") == 28  # they have yet to be placed
    answers(table).unlink()
    monkeypatch.setattr("sys.stdin", Person(monkeypatch, kind))
    assert run(monkeypatch, "label", str(table), "--aim", "groups") == 0
    out = capsys.readouterr().out
    assert "All is known" in out
    assert "groups: 3, with 30 of 30 items" in out
    found = {}
    for row in csv.DictReader(file.read_text().splitlines()):
        found.setdefault(row["group"], set()).add(row["id"].split()[0])
    assert sorted(map(sorted, found.values())) == [["cat"], ["dog"], ["owl"]]
    assert sorted(found) == ["1", "2", "3"]


def test_a_changed_mind_is_said(monkeypatch, capsys, table):
    kind = points()[1]
    person = Person(monkeypatch, kind)
    monkeypatch.setattr("sys.stdin", person)
    assert run(monkeypatch, "label", str(table), "--questions", "60") == 0
    assert "contradict" not in capsys.readouterr().out
    person.kind = np.random.default_rng(1).integers(3, size=30)
    assert run(monkeypatch, "label", str(table), "--questions", "60") == 0
    assert "Answers contradict what earlier ones imply" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing.csv"], "nothing.csv"),
        (["-"], "TABLE must be a file"),
        (["items.csv", "--groups", "g.csv"], "--groups is for --aim groups"),
        (["items.csv", "--aim", "groups", "--no-implied"], "rests on what answers imply"),
        (["items.csv", "--id", "name"], "items.csv: there is no column name"),
        (["items.csv", "--features", "kind"], "line 2, column kind: it must be a finite number"),
        (["items.csv", "--answers", "items.csv"], "items.csv: --answers must be another file"),
        (["items.csv", "--save", "items.answers.csv"], "--save must be another file"),
        (["items.csv", "--save", "no/folder.ocelad"], "there is no folder"),
        (["items.csv", "--answers", "opinions.csv"], "opinions.csv: line 2, column id_a: there is no item 'emu'"),
        (["items.csv", "--aim", "groups", "--groups", "opinions.csv"], "it is there, and has no groups"),
        (["items.csv", "--candidates", "0"], "--candidates"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_what_does_not_fit_is_said_in_a_line(monkeypatch, capsys, table, words, message):
    monkeypatch.chdir(table.parent)
    (table.parent / "opinions.csv").write_text("id_a,id_b,y\nemu,cat 0,1\n")
    before = {path.name: path.read_bytes() for path in table.parent.iterdir()}
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run(monkeypatch, "label", *words) in (1, 2)
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert {path.name: path.read_bytes() for path in table.parent.iterdir()} == before


def test_a_mended_file_is_said(monkeypatch, capsys, table):
    with closing(read_rows(str(table))) as rows:
        a, b, *_ = Items.read(rows).ids
    answers(table).write_text(f"id_a,id_b,y\n{a},{b},1\n{a},")
    assert label(monkeypatch, table, ["n"]) == 0
    out = capsys.readouterr().out
    assert "items.answers.csv: line 3 was only half written, and is left out" in out
    assert "It goes on.\n1 answered: 1 similar" in out
    assert len(answers(table).read_text().splitlines()) == 3


def test_many_columns_are_shown_as_far_as_they_fit(monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 40)).round(2).tolist()
    rows = [",".join([f"word{k} " * 60, *map(str, x)]) for k, x in enumerate(X)]
    table = tmp_path / "items.csv"
    table.write_text("\n".join([",".join(["text", *(f"f{k}" for k in range(40))]), *rows]) + "\n")
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("COLUMNS", "80")
    assert label(monkeypatch, table, []) == 0
    out = capsys.readouterr().out
    assert "columns that differ less; --show chooses" in out
    assert re.search(r"^ +line \d +line \d$", out, re.MULTILINE)  # there is no column of ids
    assert max(map(len, out.splitlines()[2:])) <= 80
    assert len(out.splitlines()) < 40
    assert label(monkeypatch, table, [], "--show", "f*") == 0
    out = capsys.readouterr().out
    assert all(f"\n  f{k} " in out for k in range(40))
    assert "word" not in out


@posix
def test_kill_9_loses_nothing_that_was_acknowledged(monkeypatch, table, tmp_path):
    command = [sys.executable, "-m", "ocelad.cli", "label", str(table)]
    said, rng = ["y", "n", "n", "u", "n", "y", "p", "n", "d"] * 3, random.Random(0)
    given = 0
    while given < len(said):
        count = min(given + rng.randint(5, 15), len(said))
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for word in said[given:count]:
                process.stdin.write(f"{word}\n")
                process.stdin.flush()
                line = ""
                while not line.startswith("similar? "):
                    line = process.stdout.readline()
                    assert line
            while not line.strip().rstrip(".").isdigit():  # the next question is there
                line = process.stdout.readline()
            process.kill()
        assert process.returncode == -signal.SIGKILL
        given = count
    killed = answers(table).read_bytes()
    assert label(monkeypatch, table, said, "--answers", str(tmp_path / "whole.csv")) == 0
    assert (tmp_path / "whole.csv").read_bytes() == killed


def test_help_needs_no_numpy():
    code = "import sys; sys.modules['numpy'] = None; from ocelad.cli import main; main(['label', '--help'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ocelad label items.csv" in done.stdout
