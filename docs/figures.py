"""Draw the figures of the documentation: ``python docs/figures.py``, about four minutes."""

from __future__ import annotations

import contextlib
import doctest
import runpy
import tempfile
from pathlib import Path
from types import SimpleNamespace

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from ocelad import ChangeAlarm, History, MetricTracker, cli, plots
from ocelad.data import SCENARIO, DriftingClusters, DriftingTopics
from ocelad.studies import TextStudy, run_text
from ocelad.track import read_timeline

IMAGES = Path(__file__).parent / "images"


def save(axes: Axes, name: str) -> None:
    figure = axes.get_figure()
    assert figure is not None
    save_small(figure, name, dpi=100)


def save_small(figure: Figure, name: str, dpi: int) -> None:
    figure.savefig(IMAGES / f"{name}.png", dpi=dpi)
    make_small(IMAGES / f"{name}.png", name)


def make_small(path: Path, name: str) -> None:
    """In 256 colours, which take a third of the room, and those of lines and letters are among them."""
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE)
    few.save(IMAGES / f"{name}.png", optimize=True)


def features() -> None:
    """Of ten features one matters at first, then two others do."""
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(3000, 2, 10))
    u2 = (pairs[:, 0] - pairs[:, 1]) ** 2
    matter = np.where(np.arange(3000) < 1400, u2[:, 0], (u2[:, 3] + u2[:, 4]) / 2)
    tracker = MetricTracker()
    history = History(tracker, every=5, alarm=ChangeAlarm())
    tracker.partial_fit(pairs, np.where(matter < 1, 1, -1))
    save(plots.relevance(history), "relevance")


def scenario() -> None:
    """One trial of the paper's synthetic stream."""
    rng = np.random.default_rng([2016, 1000])
    data = DriftingClusters.draw(rng)
    steps = list(data.stream(rng, SCENARIO))
    tracker = MetricTracker()
    history = History(tracker, every=4, alarm=ChangeAlarm())
    tracker.partial_fit(np.array([step.pair for step in steps]), [step.y for step in steps])
    save(plots.time_scales(history), "time-scales")
    save(plots.embedding(history, data.points[:600] @ steps[-1].rotation.T, steps[-1].labels[:600]), "embedding")


def matrix() -> None:
    """Equal differences in width and height cancel; the price matters by itself."""
    rng = np.random.default_rng(0)
    names = ["length", "width", "height", "weight", "colour", "price", "age", "origin"]
    pairs = rng.normal(size=(2000, 2, len(names)))
    u = pairs[:, 0] - pairs[:, 1]
    matter = (u[:, 1] - u[:, 2]) ** 2 / 2 + u[:, 5] ** 2
    tracker = MetricTracker().partial_fit(pairs, np.where(matter < 2, 1, -1))
    save(plots.heat_map(tracker, names), "heat-map")


def run() -> None:
    """What ``ocelad track`` writes about one trial of the synthetic stream."""
    rng = np.random.default_rng([2016, 1000])
    steps = list(DriftingClusters.draw(rng).stream(rng, SCENARIO))
    names = [f"{side}_{k}" for side in "xz" for k in range(steps[0].pair.shape[1])]
    rows = [",".join(map(repr, [*step.pair.ravel().tolist(), step.y])) for step in steps]
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        table.write_text("\n".join([",".join([*names, "y"]), *rows]))
        cli.main(["track", str(table), "--out", folder, "--every", "25"], standalone_mode=False)
        figure = plots.timeline(read_timeline(Path(folder) / "timeline.csv"), "run")
    save_small(figure, "timeline", dpi=100)


def demo() -> None:
    """``ocelad demo``."""
    with tempfile.TemporaryDirectory() as folder:
        cli.main(["demo", "--out", folder], standalone_mode=False)
        make_small(Path(folder) / "tracking.png", "tracking")


def words() -> None:
    """The study of a made-up stream of texts."""
    made_up = DriftingTopics(texts=1500, days=40)
    results = run_text(made_up.draw(np.random.default_rng(0)), TextStudy(rates=()))
    name, event = min(made_up.events.items(), key=lambda item: item[1])
    save_small(plots.words(results, results.moments(event, name)), "words", dpi=85)
    save_small(plots.stem_relevance(results, events=made_up.events), "stems", dpi=100)


def digits() -> None:
    """``python examples/digits.py docs/images/digits.png``, smaller."""
    example = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "digits.py"))
    save_small(example["figure"](example["track"]()), "digits", dpi=90)


def bending() -> None:
    """Error of ``predict`` with and without experts on feature maps; means of four seeds."""
    example = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "bending.py"))
    save_small(example["figure"](example["curves"](seeds=4)), "bending", dpi=90)


def closure() -> None:
    """``python examples/closure.py docs/images/closure.png``, in few colours."""
    example = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "closure.py"))
    save_small(example["figure"](example["run"]()), "closure", dpi=100)


def asking() -> None:
    """Random and chosen questions, of ``benchmarks/asking.py``: means of eight trials."""
    benchmark = runpy.run_path(str(Path(__file__).parent.parent / "benchmarks" / "asking.py"))
    names = {"random questions": "at_random", "the best of four": "committee"}
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True)
    for name, strategy in names.items():
        courses = [
            benchmark["course"](trial, benchmark["one"], benchmark[strategy]) for trial in range(9300, 9308)
        ]
        measures = np.mean([course.measures for course in courses], axis=0)
        steps = 49 * np.arange(1, len(measures) + 1)
        for axis, measure in zip(axes, (0, 2), strict=True):
            axis.plot(steps, measures[:, measure], label=name, color="C0" if strategy == "committee" else "0.6")
    for axis, title in zip(axes, ("5-NN error", "error of predict"), strict=True):
        axis.set_ylabel(title)
        axis.set_yscale("log")
        for jump in benchmark["JUMPS"]:
            axis.axvline(jump, color="0.3", linewidth=0.8)
    axes[0].legend(frameon=False)
    axes[1].set_xlabel("answers")
    save_small(figure, "asking", dpi=100)


def page(name: str) -> None:
    """The figures that the examples on a page of the documentation save."""
    source = IMAGES.parent / f"{name}.md"
    fixture = SimpleNamespace(path=source, chdir=lambda path: None)  # noqa: ARG005 pytest's: we are in a folder
    names: dict[str, object] = {"__name__": name, "getfixture": lambda name: fixture}  # noqa: ARG005
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for example in doctest.DocTestParser().get_examples(source.read_text(encoding="utf-8")):
            exec(compile(example.source, source.name, "single"), names)
        for figure in Path().glob("*.png"):
            with Image.open(figure) as picture:
                picture.convert("RGB").quantize(64).save(IMAGES / figure.name, optimize=True)


if __name__ == "__main__":
    features()
    scenario()
    matrix()
    run()
    demo()
    words()
    digits()
    bending()
    closure()
    asking()
    for tutorial in ("start-embeddings", "start-csv", "start-labels", "start-river", "start-research"):
        page(tutorial)
