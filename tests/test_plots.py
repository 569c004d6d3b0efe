"""Figures: each takes a tracker or its history, says what it shows, and draws where it is told."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_hex

from ocelad import ChangeAlarm, Event, History, MetricTracker, Pool, SupervisedMetricTracker, cli, plots
from ocelad.track import TimeLine
from ocelad.track.timeline import NUMBERS
from ocelad.watch.history import weights_by_name
from streams import comparisons


@pytest.fixture(name="watched")
def fixture_watched():
    pairs, y = comparisons(seed=0, steps=1600, n=10)
    tracker = MetricTracker()
    history = History(tracker, every=10, alarm=ChangeAlarm())
    tracker.partial_fit(pairs, y)
    return tracker, history, pairs.reshape(-1, 10)[:300], np.repeat(["a", "b", "c"], 100)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def draw(kind, source, X, labels, **more):
    extra = (X, labels) if kind == "embedding" else ()
    return getattr(plots, kind)(source, *extra, **more)


@pytest.mark.parametrize("kind", ["time_scales", "relevance", "embedding", "heat_map"])
def test_every_figure(kind, watched):
    tracker, history, X, labels = watched
    from_tracker, from_history = draw(kind, tracker, X, labels), draw(kind, history, X, labels)
    assert from_tracker.figure is not from_history.figure
    given = plt.figure().subplots()
    assert draw(kind, history, X, labels, axes=given) is given
    for axes in (from_tracker, from_history, given):
        assert axes.get_title()
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        axes.figure.canvas.draw()


def test_time_scales_add_up_to_one_and_jumps_are_marked(watched):
    _, history, *_ = watched
    axes = plots.time_scales(history)
    top = axes.collections[-1].get_paths()[0].vertices[:, 1].max()
    assert top == pytest.approx(1.0)
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    named = weights_by_name(history.kinds, history.lengths, np.nan_to_num(history.weights))
    seen = [name for name, weights in named.items() if weights.mean() >= 0.005]
    others = sum(weights for name, weights in named.items() if name not in seen)
    assert names == ["other experts"] * bool(others.mean() >= 0.005) + seen[::-1]
    assert 0 < len(seen) < len(named)
    assert [line.get_xdata()[0] for line in axes.get_lines()] == [event.t for event in history.events]
    assert [text.get_text() for text in axes.texts] == ["jump"]


def test_relevance_shows_what_the_metric_holds(watched):
    tracker, history, *_ = watched
    axes = plots.relevance(history, names=list("abcdefghij"), top=4)
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    assert {"a", "b", "i", "j"} <= set(lines)  # those that matter at first and later
    M = tracker.get_mahalanobis_matrix()
    assert lines["j"][-1] == pytest.approx(M[9, 9] / M.trace())
    colours = [to_hex(line.get_color()) for line in axes.get_lines() if line.get_label() in "abij"]
    assert len(set(colours)) == 4
    assert "other 6" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_embedding_places_points_where_the_metric_does(watched):
    tracker, _, X, labels = watched
    axes = plots.embedding(tracker, X, labels)
    for number, label in enumerate("abc"):
        np.testing.assert_allclose(
            axes.collections[number].get_offsets(), tracker.transform(X[labels == label])[:, :2], atol=1e-12
        )
    (bar,) = axes.get_lines()
    assert np.ptp(bar.get_xdata()) == pytest.approx(tracker.threshold_)


def boxes(artists):
    return [artist.get_window_extent() for artist in artists]


@pytest.mark.parametrize("shape", [(40.0, 1.0), (1.0, 40.0), (5.0, 5.0)], ids=["wide", "tall", "round"])
def test_embedding_has_the_shape_of_the_cloud_and_the_bar_lies_outside(shape):
    tracker = MetricTracker(step=1e-6, scale=None, origin=1.0).partial_fit(np.ones((1, 2, 2)), [1])
    X = np.random.default_rng(0).normal(size=(200, 2)) * shape
    axes = plots.embedding(tracker, X, np.repeat(["a", "hydrogen"], 100))
    axes.figure.canvas.draw()
    inside, whole = axes.get_window_extent(), axes.figure.bbox
    assert inside.width * inside.height > 0.3 * whole.width * whole.height
    (words,), (bar,) = boxes(axes.texts), boxes(axes.get_lines())
    assert not words.overlaps(inside)
    assert not words.overlaps(bar)
    assert bar.y0 > inside.y1
    decorated = axes.get_tightbbox()
    assert whole.x0 < decorated.x0 < decorated.x1 < whole.x1
    assert whole.y0 < decorated.y0 < decorated.y1 < whole.y1
    for own in axes.collections:
        x, y = axes.transData.transform(own.get_offsets()).T
        assert inside.x0 < x.min() <= x.max() < inside.x1
        assert inside.y0 < y.min() <= y.max() < inside.y1


@pytest.mark.parametrize("far", [1, 8])
def test_a_few_points_far_away_do_not_squeeze_the_others(far):
    tracker = MetricTracker(step=1e-6, scale=None, origin=1.0).partial_fit(np.ones((1, 2, 2)), [1])
    X = np.random.default_rng(0).normal(size=(400, 2))
    X[:far, 0] += 1000.0
    axes = plots.embedding(tracker, X, np.zeros(400))
    (low, high), cloud = axes.get_xlim(), tracker.transform(X[far:])[:, 0]
    assert low < cloud.min()
    assert cloud.max() < high
    assert np.ptp(cloud) > 0.5 * (high - low)
    shown = "1 far point is not shown" if far == 1 else "8 far points are not shown"
    assert shown in axes.get_xlabel()


def test_points_on_a_line_and_rare_groups_are_all_shown():
    tracker = MetricTracker(step=1e-6, scale=None, origin=1.0).partial_fit(np.ones((1, 2, 2)), [1])
    X = np.random.default_rng(0).normal(size=(400, 2))
    X[:, 1] = np.arange(400) == 7  # but for one
    X[:20, 0] += 1000.0  # a group of a twentieth
    for points in (X, X[:3], X[:1]):
        axes = plots.embedding(tracker, points, np.zeros(len(points)))
        (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
        assert all(x0 < x < x1 and y0 < y < y1 for x, y in tracker.transform(points))
        assert axes.get_xlabel() == "first dimension"


@pytest.mark.parametrize("many", [10, 600, 20_000])
def test_markers_can_be_seen(many):
    tracker = MetricTracker(step=1e-6, scale=None, origin=1.0).partial_fit(np.ones((1, 2, 2)), [1])
    axes = plots.embedding(tracker, np.random.default_rng(0).normal(size=(many, 2)), np.zeros(many))
    assert 3.0 <= np.sqrt(axes.collections[0].get_sizes()[0]) <= 6.0  # points across


def lines_with(times):
    """A time line of 150,000 comparisons with jumps, and a drift at the end."""
    t = np.arange(500.0, 150_001.0, 500.0)
    events = tuple(Event(k, "jump" if k < times[-1] else "drift", k, 1.0) for k in times)
    weights = np.full((len(t), 4), 0.25)
    numbers = dict.fromkeys(NUMBERS, t) | {"error": t % 7 / 7, "accuracy": t / t, "majority": t / t}
    experts = {"in_charge": ("rice 1",) * len(t), "kinds": ("rice",) * 4, "lengths": 2.0 ** np.arange(4)}
    return TimeLine(**numbers, **experts, weights=weights, events=events)


@pytest.mark.parametrize("times", [[30_000, 90_000, 149_900], [100_000, 100_400, 100_900]])
def test_events_are_named_above_the_curves_and_no_name_is_on_another(times):
    figure = plots.timeline(lines_with(times), "a run")
    figure.canvas.draw()
    top = figure.axes[0]
    assert [text.get_text() for text in top.texts] == ["jump", "jump", "drift"]
    inside, names = top.get_window_extent(), [text.get_tightbbox() for text in top.texts]
    assert all(inside.x0 - 5 < box.x0 < box.x1 <= inside.x1 + 1 for box in names)
    assert all(inside.y1 < box.y0 < box.y1 < top.title.get_window_extent().y0 for box in names)
    assert not any(one.overlaps(other) for k, one in enumerate(names) for other in names[:k])
    lines = top.transData.transform([(time, 0) for time in times[:2]])[:, 0]
    assert all(abs(box.x0 - line) < 4 for box, line in zip(names[:2], lines, strict=True))  # beside its line


def test_many_events_are_in_the_legend():
    times = range(5000, 150_000, 5000)
    top, middle, _ = plots.timeline(lines_with(list(times))).axes
    assert not top.texts
    assert [text.get_text() for text in top.get_legend().get_texts()][-2:] == ["jump", "drift"]
    marks = [line for line in middle.get_lines() if line.get_xdata()[0] in times]
    assert len(marks) == len(times)
    assert all(line.get_linewidth() < 1 for line in marks)


def test_of_many_moments_weights_are_averaged_and_small_experts_are_one_band():
    line = lines_with([])
    assert len(line.t) == 300
    half = np.arange(300) % 2
    weights = np.stack([0.992 * half, 0.992 * (1 - half), np.full(300, 0.004), np.full(300, 0.004)], axis=1)
    middle = plots.timeline(replace(line, weights=weights)).axes[1]
    assert [text.get_text() for text in middle.get_legend().get_texts()] == ["other experts", "rice 2", "rice 1"]
    first, *_, last = middle.collections
    assert last.get_paths()[0].vertices[:, 1].max() == pytest.approx(1.0)
    assert (first.get_paths()[0].vertices[:, 0].min(), first.get_paths()[0].vertices[:, 0].max()) == (500, 150_000)
    assert len(np.unique(first.get_paths()[0].vertices[:, 0])) == 200
    own = weights.copy()
    own[:, 2:], own[:, 0] = 0.001, weights[:, 0] + 0.006
    middle = plots.timeline(replace(line, weights=own)).axes[1]
    assert [text.get_text() for text in middle.get_legend().get_texts()] == ["rice 2", "rice 1"]


def test_the_legend_says_how_many_comparisons_a_share_is_of():
    top = plots.timeline(lines_with([])).axes[0]
    assert [text.get_text() for text in top.get_legend().get_texts()[:2]] == ["each 500 comparisons", "smoothed"]
    short = lines_with([])
    parts = {name: getattr(short, name)[:60] for name in (*NUMBERS, "in_charge", "weights")}
    parts["error"] = np.random.default_rng(0).random(60)  # means of one are not quite these numbers
    top = plots.timeline(replace(short, **parts)).axes[0]
    names = [text.get_text() for text in top.get_legend().get_texts()]
    assert names[:2] == ["each 500 comparisons", "all so far"]


@pytest.mark.parametrize("many", [2, 12, 13, 72])
def test_of_many_labels_the_most_frequent_are_named(many):
    tracker = MetricTracker(step=1e-6, scale=None, origin=1.0).partial_fit(np.ones((1, 2, 2)), [1])
    ages = np.concatenate([np.arange(many), np.repeat(np.arange(many)[-12:], 3)])
    axes = plots.embedding(tracker, np.random.default_rng(0).normal(size=(len(ages), 2)), ages)
    axes.figure.canvas.draw()
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    if many <= 13:
        assert names == [str(age) for age in range(many)]
    else:
        assert names == [*(str(age) for age in range(60, 72)), "60 others"]
        assert len(axes.collections[-1].get_offsets()) == 60
    assert sum(len(own.get_offsets()) for own in axes.collections) == len(ages)
    looks = {(to_hex(own.get_facecolor()[0]), own.get_paths()[0].vertices.tobytes()) for own in axes.collections}
    assert len(looks) == len(axes.collections)


def test_a_run_has_its_name_above_it():
    assert plots.timeline(lines_with([]), "$ales").get_suptitle() == r"\$ales"
    assert plots.timeline(lines_with([])).get_suptitle() == ""


@pytest.mark.parametrize("path", ["monday", "monday/timeline.csv", "monday/copy.csv"])
def test_the_command_calls_a_run_as_its_folder_and_another_file_by_its_name(tmp_path, monkeypatch, path):
    (tmp_path / "monday").mkdir()
    for name in ("timeline.csv", "copy.csv"):
        (tmp_path / "monday" / name).touch()
    titles = []
    monkeypatch.setattr("ocelad.cli.plot.read_timeline", lambda _: lines_with([]))
    draw_line = plots.timeline
    monkeypatch.setattr(plots, "timeline", lambda line, title: titles.append(title) or draw_line(line, title))
    words = ["plot", str(tmp_path / path), "--out", str(tmp_path / "run.png")]
    cli.main(words, standalone_mode=False)
    assert titles == ["copy.csv" if path.endswith("copy.csv") else "monday"]


def test_heat_map_shows_the_matrix_around_zero(watched):
    tracker, *_ = watched
    axes = plots.heat_map(tracker)
    (image,) = axes.get_images()
    M = tracker.get_mahalanobis_matrix()
    np.testing.assert_array_equal(image.get_array(), M)
    assert image.get_clim() == (-np.abs(M).max(), np.abs(M).max())
    named = plots.heat_map(tracker, names=[f"n{k}" for k in range(10)])
    assert [tick.get_text() for tick in named.get_yticklabels()] == [f"n{k}" for k in range(10)]


def test_heat_map_of_features_with_a_unit_each_is_in_these():
    pairs, y = comparisons(seed=1, steps=200, n=3)
    tracker = MetricTracker(scale="features").partial_fit(pairs * [1.0, 1000.0, 0.001], y)
    labelled = SupervisedMetricTracker(MetricTracker(scale="features"), random_state=0)
    for each in (tracker, labelled.fit(pairs[:, 0] * [1.0, 1000.0, 0.001], y)):
        (image,) = plots.heat_map(each).get_images()
        unit = getattr(each, "tracker_", each).scale_
        np.testing.assert_allclose(image.get_array(), each.get_mahalanobis_matrix() * np.outer(unit, unit))


@pytest.mark.parametrize("n", [1, 2, 100])
def test_few_and_many_features(n):
    pairs, y = comparisons(seed=1, steps=30, n=n)
    tracker = MetricTracker(ensemble=lambda spawn: Pool([spawn(4.0, None), spawn(16.0, None)]))
    history = History(tracker)
    tracker.partial_fit(pairs, y)
    X = pairs.reshape(-1, n)
    for axes in (
        plots.time_scales(history),
        plots.relevance(history),
        plots.embedding(history, X, np.arange(len(X)) % 9),
        plots.heat_map(history),
    ):
        axes.figure.canvas.draw()
    assert len(plots.heat_map(history).get_xticks()) <= 16


def test_bad_input(watched):
    tracker, history, X, labels = watched
    with pytest.raises(ValueError, match="has no history"):
        plots.time_scales(MetricTracker())
    with pytest.raises(ValueError, match="history is empty"):
        plots.relevance(History(MetricTracker()))
    with pytest.raises(ValueError, match="names must be 10 names, one per feature, got 2"):
        plots.relevance(history, names=["a", "b"])
    with pytest.raises(ValueError, match=r"labels must be of shape \(300,\)"):
        plots.embedding(tracker, X, labels[:5])
    with pytest.raises(ValueError, match="top must be an integer from 1 to 7, got 0"):
        plots.relevance(history, top=0)
