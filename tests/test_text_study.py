"""The study of a stream of texts: its figures, its pictures, its command."""

import csv
import json
import re
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.text import Text
from sklearn.metrics import roc_auc_score

from ocelad import GroupedShare, MetricTracker, cli, plots
from ocelad.data import DriftingTopics, LabelledTexts, TextStream, adjacent
from ocelad.evaluate import discriminant, knn_error
from ocelad.studies import TextStudy, run_text
from ocelad.studies.text_course import Course
from ocelad.watch.prequential import progressive

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
COMMAND = import_module("ocelad.cli.text")
SMALL = TextStudy(features=50, rates=(0.25, 1.0), looks=40)


@pytest.fixture(name="texts", scope="module")
def fixture_texts():
    return DriftingTopics(texts=800, days=20).draw(np.random.default_rng(0))


@pytest.fixture(name="results", scope="module")
def fixture_results(texts):
    return run_text(texts, SMALL)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def rows(texts):
    return TextStream(SMALL.features).fit(texts.texts).transform(texts.texts).toarray()


# What is found


def test_the_window_is_placed_by_the_metric_of_the_past_up_to_its_midpoint(texts, results):
    X, (later, earlier, _) = rows(texts), adjacent(texts.labels, SMALL.back)
    assert (results.window.start, results.midpoint) == (600, 700)
    y = np.where(texts.labels[later] == texts.labels[earlier], 1, -1)
    tracker, done, metrics = SMALL.trackers(X.shape[1])["learned"](), 0, []
    for seen in np.linspace(600, 700, 17).astype(int)[1:]:
        part = slice(done, done := np.searchsorted(later, seen))
        tracker.partial_fit(np.stack([X[later[part]], X[earlier[part]]], axis=1), y[part])
        metrics.append(tracker.get_mahalanobis_matrix())
    P = discriminant(np.mean(metrics, axis=0), X[600:700], texts.labels[600:700])
    Z = X[results.window] @ P.T
    turned = np.abs((Z * results.embeddings["learned"]).sum(axis=0) / np.square(Z).sum(axis=0))
    np.testing.assert_allclose(turned, 1.0, atol=1e-6)  # but for signs
    assert results.loo_knn_error["learned"]["all"] == knn_error(Z, texts.labels[results.window])


def test_the_papers_metric_is_looked_at_in_its_first_dimensions_at_the_midpoint(texts, results):
    X, (later, earlier, _) = rows(texts), adjacent(texts.labels)
    y, past = np.where(texts.labels[later] == texts.labels[earlier], 1, -1), later < 700
    tracker = MetricTracker.paper().partial_fit(np.stack([X[later], X[earlier]], axis=1)[past], y[past])
    Z, drawn = tracker.transform(X)[results.window, :3], results.embeddings["learned_paper"]
    np.testing.assert_allclose(np.square(Z).sum(axis=1), np.square(drawn).sum(axis=1), atol=1e-9)
    assert results.loo_knn_error["learned_paper"]["all"] == pytest.approx(
        knn_error(Z, texts.labels[600:]), abs=0.011
    )


def test_nothing_after_the_midpoint_moves_the_learned_places(texts, results):
    other = LabelledTexts.of(
        texts.times,
        [texts.classes[k] for k in texts.labels[:700]]
        + list(reversed([texts.classes[k] for k in texts.labels[700:]])),
        texts.texts,
    )
    again = run_text(other, TextStudy(**{**vars(SMALL), "rates": ()}))
    for name in ("learned", "learned_paper", "pca", "lda"):
        np.testing.assert_array_equal(again.embeddings[name], results.embeddings[name])


def test_auc_is_that_of_adjacent_texts_before_they_are_learned(texts, results):
    X, (later, earlier, _) = rows(texts), adjacent(texts.labels)
    y = np.where(texts.labels[later] == texts.labels[earlier], 1, -1)
    seen = progressive(MetricTracker.paper(), np.stack([X[later], X[earlier]], axis=1), y)
    score = seen.squared_distance / seen.threshold
    assert results.auc["learned_paper"] == pytest.approx(roc_auc_score(y, -score), abs=1e-12)


def test_fixed_rates_are_ours_without_levels():
    trackers = SMALL.trackers(50)
    assert list(trackers) == ["learned", "learned_rice", "learned_paper", "comid_0.25", "comid_1"]
    ours, fixed = trackers["learned_rice"](), trackers["comid_0.25"]()
    differ = {name for name, value in ours.get_params().items() if repr(fixed.get_params()[name]) != repr(value)}
    assert differ == {"base", "step"}
    rng = np.random.default_rng(0)
    fixed.partial_fit(rng.normal(size=(3000, 2, 4)), rng.choice([-1, 1], size=3000))
    assert len(fixed.experts_) == 1
    assert fixed.step.size / np.sqrt(fixed.base.base) == 0.25


def test_large_shares_foresee_new_texts_better_than_small_ones_and_than_rice(texts, results):
    X, (later, earlier, adjacent_texts) = rows(texts), adjacent(texts.labels, SMALL.back)
    y = np.where(texts.labels[later] == texts.labels[earlier], 1, -1)
    small_shares = SMALL.trackers(X.shape[1])["learned"]().set_params(weights=GroupedShare())
    seen = progressive(small_shares, np.stack([X[later], X[earlier]], axis=1), y)
    auc = roc_auc_score(y[adjacent_texts], seen.probability[adjacent_texts])
    assert results.auc["learned"] > auc + 0.02
    assert results.auc["learned"] > results.auc["learned_rice"]


def test_unique_texts_have_no_repetition_and_lose_nothing_else(texts, results):
    front = TextStream(5)
    stems = [tuple(front.stems(text)) for text in texts.texts[results.window]]
    kept = [stems[k] for k in results.unique]
    assert len(kept) == len(set(kept))
    assert set(kept) == set(stems)
    assert all(stems.index(stem) == k for k, stem in zip(results.unique, kept, strict=True))  # the first of each


def test_relevance_and_maps_describe_the_metric_at_each_look(texts, results):
    assert results.looks[-1] == len(texts)
    np.testing.assert_allclose(results.relevance.sum(axis=1), 1.0)
    X, (later, earlier, _) = rows(texts), adjacent(texts.labels, SMALL.back)
    y = np.where(texts.labels[later] == texts.labels[earlier], 1, -1)
    tracker = SMALL.trackers(X.shape[1])["learned"]()
    tracker.partial_fit(np.stack([X[later], X[earlier]], axis=1), y)
    diagonal = tracker.get_mahalanobis_matrix().diagonal()
    np.testing.assert_allclose(results.relevance[-1], diagonal / diagonal.sum(), atol=1e-9)
    turned = tracker.components_[:2]
    np.testing.assert_allclose(results.maps[-1].T @ results.maps[-1], turned.T @ turned, atol=1e-9)


def test_vocabulary_of_the_first_texts_is_not_that_of_all(texts, results):
    first = run_text(texts, TextStudy(features=50, rates=(), looks=10, first=150))
    assert first.stems == TextStream(50).fit(texts.texts[:150]).names != results.stems


def test_threads_change_nothing(texts, results):
    again = run_text(texts, SMALL, threads=1)
    assert again.auc == results.auc
    assert again.loo_knn_error == results.loo_knn_error


def test_what_has_finished_is_kept_and_not_done_again(texts, tmp_path, monkeypatch, results):
    done = []
    follow = Course._follow

    def failing(course, name, tracker):
        done.append(name)
        if name == "comid_1":
            raise KeyboardInterrupt
        return follow(course, name, tracker)

    monkeypatch.setattr(Course, "_follow", failing)
    with pytest.raises(KeyboardInterrupt):
        run_text(texts, SMALL, threads=1, folder=tmp_path)
    assert done == ["learned", "learned_rice", "learned_paper", "comid_0.25", "comid_1"]
    monkeypatch.setattr(
        Course, "_follow", lambda course, name, tracker: done.append(name) or follow(course, name, tracker)
    )
    resumed = run_text(texts, SMALL, threads=1, folder=tmp_path)
    assert done[5:] == ["comid_1"]
    assert resumed.auc == results.auc
    np.testing.assert_array_equal(resumed.maps, results.maps)
    run_text(texts, TextStudy(**{**vars(SMALL), "strength": 0.3}), threads=1, folder=tmp_path)
    assert done[6:] == done[:5]  # others are not taken for the same


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"features": 0}, "features must be an integer >= 3"),
        ({"window": 1.0}, "window must lie between 0 and 1"),
        ({"first": 0}, "first must be None or an integer >= 1"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        TextStudy(**options)


def test_too_few_texts_or_labels(texts):
    few = LabelledTexts.of(texts.times[:40], ["a", "b"] * 20, texts.texts[:40])
    with pytest.raises(ValueError, match="at least 20 in and before the window, got 40"):
        run_text(few, SMALL)
    one = LabelledTexts.of(texts.times, ["a"] * len(texts), texts.texts)
    with pytest.raises(ValueError, match="at least two labels"):
        run_text(one, SMALL)
    late = LabelledTexts.of(texts.times, ["a"] * 750 + ["b"] * 50, texts.texts)
    with pytest.raises(ValueError, match="two labels before the middle of the window"):
        run_text(late, SMALL)


def test_a_stream_that_repeats_itself_has_no_error_without_repetitions():
    said = ["always the same four words", "other things are said now"]
    labels = [0, 1, 0, 0, 1, 1, 0, 1] * 25
    texts = LabelledTexts.of(np.arange(200), [str(k) for k in labels], [said[k] for k in labels])
    results = run_text(texts, TextStudy(features=10, rates=(), looks=10))
    assert np.isnan(results.loo_knn_error["learned"]["unique"])
    assert results.summary()["loo_knn_error"]["learned"] == {"all": 0.0, "unique": None}
    assert json.loads(json.dumps(results.summary(), allow_nan=False))["rows"] == 200
    for draw in FIGURES.values():
        draw(results)


def test_too_few_stems_are_said_before_anything_is_learned():
    texts = LabelledTexts.of(np.arange(200), ["a", "b"] * 100, ["one thing"] * 200)
    with pytest.raises(ValueError, match="at least 3 different stems, got 1"):
        run_text(texts, SMALL)


# Pictures


EVENTS = {"all stories change": np.datetime64("2030-01-13"), "the next day": np.datetime64("2030-01-14")}
FIGURES = {
    "texts-per-day": lambda results: plots.texts_per_day(results, EVENTS),
    "embedding": plots.text_embeddings,
    "errors": plots.text_errors,
    "words": plots.words,
    "relevance": lambda results: plots.stem_relevance(results, events=EVENTS),
}


@pytest.mark.parametrize("name", FIGURES)
def test_no_two_words_of_a_figure_overlap(results, name):
    figure = FIGURES[name](results)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    for axes in figure.axes:
        if not axes.get_visible():
            continue
        assert axes.get_title()
        legend = axes.get_legend()
        texts = [*axes.texts, axes.title, *([] if legend is None else legend.get_texts())]
        boxes = [Text.get_window_extent(text, renderer) for text in texts if text.get_text()]  # without its line
        for k, box in enumerate(boxes):
            assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, texts[k].get_text()  # noqa: PT018
            for other in boxes[:k]:
                wide = min(box.x1, other.x1) - max(box.x0, other.x0)
                high = min(box.y1, other.y1) - max(box.y0, other.y0)
                assert wide <= 0 or high <= 0.25 * min(box.height, other.height)  # lines of text have air above


def test_sixty_words_find_a_place(results):
    figure = plots.words(results, {"end": len(results.looks) - 1}, top=40)
    assert len(figure.axes[0].texts) == 40


def test_words_that_lie_in_a_knot_find_a_place_near_it_and_no_line_crosses_them(results):
    angles = np.random.default_rng(0).permutation(np.arange(len(results.stems)))
    maps = results.maps.copy()
    maps[-1] = 1 + 0.01 * np.stack([np.cos(angles), np.sin(angles)])  # all in one corner
    figure = plots.words(replace(results, maps=maps), {"end": len(maps) - 1}, top=40)
    axes = figure.axes[0]
    assert len(axes.texts) == 40
    assert len(axes.get_lines()) == 2  # the axes of the map, and no other
    knot = axes.transData.transform((1, 1))
    places = [axes.transData.transform(text.get_position()) for text in axes.texts]
    inside = axes.get_window_extent()
    assert np.hypot(*(places - knot).T).max() < 0.6 * inside.width
    assert all(
        inside.x0 < box.x0 < box.x1 < inside.x1 for box in (text.get_window_extent() for text in axes.texts)
    )


def test_words_are_whole_and_events_have_their_names(results):
    told = replace(results, words=[f"{stem}ness" for stem in results.stems])
    event = np.datetime64("2030-01-13")
    figure = plots.words(told, told.moments(event, "the vote of $5"), top=10)
    assert all(text.get_text().endswith("ness") for axes in figure.axes for text in axes.texts)
    assert r"before the vote of \$5" in figure.axes[1].get_title()
    assert r"after the vote of \$5" in figure.axes[2].get_title()
    (legend,) = plots.stem_relevance(told, stems=told.stems[:1]).axes[0].get_legend().get_texts()
    assert legend.get_text() == told.words[0]


def test_the_legend_has_only_what_is_shown(results):
    leaning = np.where(results.leaning == 1, 0, results.leaning)
    figure = plots.words(replace(results, leaning=leaning), top=30)
    shown = {to_hex(text.get_color()) for axes in figure.axes for text in axes.texts}
    (legend,) = figure.legends
    assert {to_hex(handle.get_color()) for handle in legend.legend_handles} == shown
    assert len(shown) < len(results.texts.classes)
    labels = np.where(results.texts.labels == 1, 0, results.texts.labels)
    figure = plots.text_embeddings(replace(results, texts=replace(results.texts, labels=labels)))
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == [name for k, name in enumerate(results.texts.classes) if k != 1]


def test_words_that_no_recent_text_uses_are_grey(texts, results):
    X = rows(texts)
    for look in (5, len(results.looks) - 1):
        recent = X[max(0, results.looks[look] - 80) : results.looks[look]]
        np.testing.assert_array_equal(results.leaning[look] == -1, ~recent.any(axis=0))
    leaning = results.leaning.copy()
    leaning[-1, 0] = -1
    figure = plots.words(replace(results, leaning=leaning), {"end": len(leaning) - 1}, top=len(results.stems))
    grey = {text.get_text() for text in figure.axes[0].texts if to_hex(text.get_color()) == to_hex("0.6")}
    assert grey == {results.words[k] for k in np.flatnonzero(leaning[-1] == -1)}
    assert figure.legends[0].get_texts()[-1].get_text() == "not used lately"


def test_the_corner_of_an_axis_of_dates_is_about_all_of_it(results):
    def corner(times):
        figure = plots.texts_per_day(replace(results, texts=replace(results.texts, times=times)))
        figure.canvas.draw()
        return figure.axes[0].xaxis.get_major_formatter().get_offset()

    times = results.texts.times
    assert corner(times) == "2030-Jan"
    assert corner(times + np.timedelta64(25, "D")) == "2030"


def test_pictures_show_what_was_found(results):
    drawn = plots.stem_relevance(results, stems=results.stems[:2]).axes[0]
    last = np.median(results.relevance[-2:, 1])  # of 40 looks, smoothed over a twentieth
    assert drawn.get_lines()[1].get_ydata()[-1] == pytest.approx(100 * last)
    with pytest.raises(ValueError, match="'nobody-says-this' is not"):
        plots.stem_relevance(results, stems=["nobody-says-this"])
    per_day = plots.texts_per_day(results).axes[0]
    tops = sum(patch.get_data().values - patch.get_data().baseline for patch in per_day.patches[:4])
    assert tops.sum() == len(results.texts)
    assert len(results.telling(6)) == 6


def test_words_that_matter_and_change_are_chosen_and_not_those_of_a_single_look(results):
    looks = np.arange(200)
    relevance = np.full((200, 4), 0.1)
    relevance[100, 0] = 0.9  # one look
    relevance[:, 1] = np.where(looks < 100, 0.01, 0.02)  # changes, and hardly counts
    relevance[:, 2] = np.where(looks < 100, 0.3, 0.2)
    relevance[:, 3] = 0.4  # counts, and does not change
    told = replace(results, relevance=relevance, looks=looks + 1, stems=list("abcd"))
    assert told.telling(2).tolist() == [2, 1]
    np.testing.assert_array_equal(told.smooth_relevance[:, 0], 0.1)
    assert told.smooth_relevance[99, 2] == 0.3  # nothing later enters


# The command


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["ocelad", "study", "text", *map(str, words)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return stopped.value.code


@pytest.fixture(name="table")
def fixture_table(texts, tmp_path):
    with (tmp_path / "texts.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["when", "tag", "said"])
        table.writerows(zip(texts.times, [texts.classes[k] for k in texts.labels], texts.texts, strict=True))
    return tmp_path / "texts.csv"


@pytest.mark.usefixtures("terminal")
def test_the_command_leaves_figures_a_summary_and_a_report(monkeypatch, tmp_path, capsys, table, results):
    columns = ("--time", "when", "--label", "tag", "--text", "said")
    out = tmp_path / "new" / "folder"
    code = run(
        monkeypatch,
        table,
        *columns,
        "--out",
        out,
        "--features",
        50,
        "--event",
        "2030-01-13=news",
        "--stem",
        results.stems[0],
    )
    assert code in (0, None)
    said = capsys.readouterr()
    assert "learning" in said.err
    assert re.search(r"^5-NN error +all +unique\nlearned \(ocelad\) +0\.\d+ ", said.out)
    assert re.search(
        r"^AUC: learned \(ocelad\) .*, learned \(paper's setting\) .*, COMID at rate \d", said.out, re.M
    )
    assert "_" not in said.out.splitlines()[6]
    summary = json.loads((out / "summary.json").read_text())
    assert summary["rows"] == 800
    assert summary["seconds"] > 0
    assert list(summary["loo_knn_error"]) == ["learned", "learned_paper", "pca", "lda", "raw"]
    for errors in summary["loo_knn_error"].values():
        assert set(errors) == {"all", "unique"}
        assert all(0 <= error <= 1 for error in errors.values())
    assert summary["loo_knn_error"] == results.loo_knn_error
    assert {"learned", "learned_paper"} < set(summary["auc"])
    report = (out / "report.html").read_text()
    assert report.count("data:image/png;base64,") == 5
    assert not re.search(r'(src|href)="(?!data:)', report)  # it needs no other file
    assert str(table) in report
    assert "made up" not in report
    for name in FIGURES:
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert not (out / "finished").exists()


def test_without_a_file_the_report_says_that_it_is_synthetic(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(COMMAND, "DriftingTopics", lambda: DriftingTopics(texts=300, days=10))
    assert run(monkeypatch, "--out", tmp_path, "--features", 30) in (0, None)
    assert "made-up" in capsys.readouterr().err
    assert "Synthetic" in (tmp_path / "report.html").read_text()
    assert json.loads((tmp_path / "summary.json").read_text())["source"].startswith("synthetic")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere.csv",), "nowhere.csv"),
        (("--event", "soon"), "expected DATE=NAME"),
        (
            ("--event", "2017-12-14=vote"),
            "--event 2017-12-14=vote: it must lie between 2030-01-01 and 2030-03-01, as",
        ),
        (("--window", "2"), "window must lie between 0 and 1"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(monkeypatch, tmp_path, capsys, words, said):
    assert run(monkeypatch, *words, "--out", tmp_path) in (1, 2)
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_ctrl_c_says_how_to_go_on(monkeypatch, tmp_path, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(COMMAND, "run_text", interrupted)
    assert run(monkeypatch, "--out", tmp_path) == 130
    assert "the same command goes on" in capsys.readouterr().err


# The real stream


def test_tweets_of_congress():
    """On its first half, to save time: better than PCA by far, no worse than LDA, above RICE and fixed rates."""
    path = DATA / "congress_tags_2017.csv.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not in ../shared/data")
    whole = LabelledTexts.read(str(path))
    half = len(whole) // 2
    names = [whole.classes[k] for k in whole.labels[:half]]
    results = run_text(
        LabelledTexts.of(whole.times[:half], names, whole.texts[:half]), TextStudy(rates=(0.5, 1.0, 2.0))
    )
    for kind in ("all", "unique"):
        error = {name: errors[kind] for name, errors in results.loo_knn_error.items()}
        assert error["learned"] <= 0.7 * error["pca"]
        assert error["learned"] <= error["lda"]
    fixed = [auc for name, auc in results.auc.items() if name.startswith("comid")]
    assert results.auc["learned"] >= max(fixed)
    assert results.auc["learned"] > results.auc["learned_rice"] + 0.01
    assert results.auc["learned"] > results.auc["learned_paper"]


def test_words_of_the_users_are_no_mathematics_and_are_all_in_the_legend(texts):
    odd = replace(texts, classes=["A$ or {US$", "_under", *texts.classes[2:]])
    results = run_text(odd, SMALL)
    figure = plots.texts_per_day(results, {"$a_{b$": odd.times[50]})
    figure.canvas.draw()
    shown = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert r"A\$ or {US\$" in shown
    assert " _under" in shown
    plt.close(figure)


def test_what_failed_is_said_and_what_is_damaged_is_done_again(texts, tmp_path):
    run_text(texts, SMALL, folder=tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:100])
    again = run_text(texts, SMALL, folder=tmp_path)
    assert again.auc == run_text(texts, SMALL, folder=tmp_path).auc
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError, match="file"):
        run_text(texts, SMALL, folder=tmp_path / "file")
