"""Accuracy is printed beside what it is worth: the more frequent label, AUC, log loss and calibration error."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from ocelad.cli.measures import Measures
from ocelad.label import Answer, Session
from ocelad.watch.scores import Running


def drawn():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=400)
    return np.where(rng.uniform(size=400) < p, 1, -1), p, np.where(p >= 0.5, 1, -1)


def test_they_are_those_of_scikit_learn():
    y, p, predicted = drawn()
    found = Measures.exactly(y, p, predicted, p)
    assert found.accuracy == np.mean(y == predicted)
    assert found.majority == max(np.mean(y > 0), np.mean(y < 0))
    assert found.auc == roc_auc_score(y, p)
    assert found.log_loss == pytest.approx(log_loss(y, p))
    place = np.minimum((10 * p).astype(int), 9)
    assert found.calibration_error == pytest.approx(
        sum(abs((p - (y > 0))[place == k].sum()) for k in range(10)) / 400
    )


def test_their_words():
    y, p, predicted = drawn()
    found = Measures.exactly(y, p, predicted, p)
    assert found.lines(" so far") == [
        f"accuracy {found.accuracy:.4f} ({found.majority:.4f} by the more frequent label), "
        f"AUC {found.auc:.4f} so far",
        f"log loss {found.log_loss:.4f}, expected calibration error {found.calibration_error:.4f} so far",
    ]
    assert found.briefly() == (
        f"accuracy {found.accuracy:.3f} (majority {found.majority:.3f}), AUC {found.auc:.3f}, "
        f"log loss {found.log_loss:.3f}, calibration error {found.calibration_error:.3f}"
    )
    (line,) = Measures.exactly(y, p, predicted).lines()  # without probabilities
    assert line == found.lines()[0]
    assert "AUC unknown (all y are the same)" in Measures.exactly([1, 1], [0.1, 0.2], [1, -1]).lines()[0]


def test_of_a_stream_it_is_said_how_far_off_the_auc_may_be():
    y, p, predicted = drawn()
    running = Running()
    running.add(np.where(predicted > 0, 0.0, 2.0), np.ones(400), np.zeros(400), y, p)
    found = Measures.of(running)
    assert found.auc == pytest.approx(roc_auc_score(y, p), abs=running.auc_error)
    assert f"(to within {running.auc_error:.0e})" in found.lines()[0]
    assert found.log_loss == pytest.approx(log_loss(y, p))


def test_a_session_counts_what_it_had_foreseen():
    X = np.random.default_rng(0).normal(size=(30, 3))
    session, said = Session(X), []
    for _ in range(60):
        i, j = session.question()
        y = 1 if X[i, 0] * X[j, 0] > 0 else -1
        if session.tracker.__sklearn_is_fitted__():
            said.append((y, session.tracker.mixture_proba(X[[[i, j]]])[0, 1]))
        session.take(Answer(i, j, y))
    y, p = np.array(said).T
    progress = session.progress()
    assert (progress.foreseen, progress.right) == (
        20,
        np.sum((p >= 0.5) == (y > 0), where=np.arange(len(y)) >= 39),
    )
    assert progress.frequent == max((y[-20:] > 0).sum(), (y[-20:] < 0).sum())
    assert session.running.count == 59
    assert session.running.accuracy == np.mean((p >= 0.5) == (y > 0))
    assert session.running.log_loss == pytest.approx(log_loss(y, p))
    session.undo()
    assert session.running.count == 58
