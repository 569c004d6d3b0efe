"""The conversation of ``ocelad label``: show two items, hear a key, keep it, learn it, and say how it goes."""

from __future__ import annotations

import shlex
import shutil
import sys
from contextlib import ExitStack, closing, suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from threadpoolctl import threadpool_limits

from .. import save as save_tracker
from ..data.tables.identifiers import by_name
from ..files import write_csv
from ..label import Answer, AnswersFile, Changed, Event, Items, Session
from ..label.session import Aim
from ..track.run import Stopped
from .common import open_table
from .failures import writing
from .features_seen import warning
from .keys import END, Keys, Lines, reader
from .measures import Measures
from .side_by_side import SideBySide
from .stopping import Stopping

EVERY = 10
"""Answers after which it is said how it goes."""

TOP = 5
"""Features that are named, those that matter most."""

GROUPS = ["id", "group"]

Y = {"y": 1, "n": -1, "u": 0}
WORDS = {
    "y": "yes", "n": "no", "u": "unsure", "p": "undo", "d": "I judge differently now", "q": "quit", "?": "help",
}  # fmt: skip
MEANT = {
    **{letter: letter for letter in WORDS},
    "yes": "y",
    "no": "n",
    "unsure": "u",
    "undo": "p",
    "previous": "p",
    "differently": "d",
    "quit": "q",
    END: "q",
    "\x7f": "p",
    "\x08": "p",
    "help": "?",  # Ctrl-D, and what Backspace sends
}
HELP = """\
y  yes, they are similar
n  no, they are different
u  unsure: asked again later, and not learned
p  undo the last answer (or Backspace, or the word undo), as often as you like
d  I judge differently now: earlier answers no longer imply anything about other pairs
q  quit; all answers are kept (or Ctrl-D, or Ctrl-C)"""


def ask(
    table: str, id: str | None, features: tuple[str, ...], show: tuple[str, ...], answers: str | None, aim: Aim,
    questions: int | None, candidates: int, no_implied: bool, seed: int, save: str | None, groups: str | None,
) -> None:  # fmt: skip
    """Ask, until the person quits or all is known."""
    if aim == "metric" and groups:
        raise click.UsageError("--groups is for --aim groups.")
    if aim == "groups" and no_implied:
        raise click.UsageError("--aim groups rests on what answers imply: it cannot do with --no-implied.")
    if table == "-":
        raise click.UsageError("TABLE must be a file: standard input has the answers.")
    stem = table.removesuffix(".gz").removesuffix(Path(table.removesuffix(".gz")).suffix)
    answers = answers or f"{stem}.answers.csv"
    groups = (groups or f"{stem}.groups.csv") if aim == "groups" else None
    _check(table, answers, groups, save)
    with threadpool_limits(1), Stopping() as stop, ExitStack() as stack, suppress(Stopped):
        with stop.waiting(), closing(open_table("TABLE", table)) as rows:
            items = Items.read(rows, id, features, show)
        stack.enter_context(writing("--answers"))
        file = stack.enter_context(AnswersFile(answers, items.ids))
        session = Session(items.points, aim, candidates, not no_implied, seed)
        conversation = Conversation(items, session, file, stop, SideBySide(items, bool(show)))
        conversation.begin()
        with suppress(Stopped):
            conversation.run(questions)
        click.echo("\n" + conversation.progress())
        if session.log:
            _leave(items, session, table, answers, groups, save)
    if stop.signal:
        sys.exit(128 + stop.signal)


def _leave(items: Items, session: Session, table: str, answers: str, groups: str | None, save: str | None) -> None:
    """Write what was asked for, and say what can be done with it."""
    click.echo(f"{answers}: the answers; the same command goes on")
    if groups:
        number = {item: k for k, group in enumerate(session.groups(), 1) for item in group}
        with writing("--groups"):
            write_csv(groups, GROUPS, ([name, number.get(item, "")] for item, name in enumerate(items.ids)))
        click.echo(f"{groups}: the groups")
    if save and session.tracker.__sklearn_is_fitted__():
        tracker = copy(session.tracker)
        tracker.feature_names_in_ = np.array(items.features, dtype=object)
        with writing("--save"):
            save_tracker(tracker, save)
        click.echo(f"{save}: the tracker; {_words('ocelad embed', save, table)} gives the items coordinates")
    if items.named == "id":  # which ocelad track needs
        click.echo(f"learn from the answers again: {_again(answers, table, items, session.log)}")


def _check(table: str, answers: str, groups: str | None, save: str | None) -> None:
    """Nothing is written over that someone else may need."""
    written = {"--answers": answers, "--groups": groups, "--save": save}
    files = [(name, Path(path).resolve()) for name, path in written.items() if path]
    for k, (name, path) in enumerate(files):
        if path in [Path(table).resolve(), *(other for _, other in files[:k])]:
            raise ValueError(f"{path.name}: {name} must be another file than the others")
        if not path.parent.is_dir():
            raise ValueError(f"{name}: there is no folder {path.parent}")
        if path.is_dir():
            raise ValueError(f"{name}: {path} is a folder, and a file is needed")
    if groups and Path(groups).exists():
        with open(groups, encoding="utf-8", errors="replace") as file:
            if file.readline().strip() != ",".join(GROUPS):
                raise ValueError(f"{groups}: it is there, and has no groups: --groups names another file")


@dataclass
class Conversation:
    """Questions on a terminal, or in a pipe."""

    items: Items
    session: Session
    file: AnswersFile
    stop: Stopping
    look: SideBySide

    def begin(self) -> None:
        """Say what there is, and go through the answers of earlier times."""
        names = self.items.features
        few = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        click.echo(f"{len(self.items.ids)} items; features: {few}. Answers go to {self.file.path}.")
        if ids := by_name(names, self.items.points):
            click.echo(f"warning: {warning(ids)}", err=True)
        if self.file.mended:
            click.echo(f"{self.file.path}: {self.file.mended}")
        self.session.replay(self.file.log)
        if self.file.log:
            click.echo(f"It goes on.\n{self.progress()}")

    def run(self, questions: int | None) -> None:
        with reader(self._prompt) as keys:
            click.echo(f"Are the two similar? {', '.join(f'{key} {word}' for key, word in WORDS.items())}")
            start = len(self.session.log)
            while questions is None or len(self.session.log) - start < questions:
                pair = self.session.question()
                if pair is None:
                    click.echo("\nAll is known: there is nothing left to ask.")
                    return
                self._show(*pair)
                key = self._hear(keys)
                if key == "q":
                    return
                if key == "p":
                    self._undo()
                else:
                    self._keep(Answer(*pair, Y[key]) if key in Y else Changed())

    def _show(self, i: int, j: int) -> None:
        width, height = shutil.get_terminal_size()
        self._asked = self.look.text(i, j, width, height)
        click.echo(f"\n{len(self.session.log) + 1}.\n{self._asked}")

    def _prompt(self) -> None:
        """Once more, after the terminal was used for something else."""
        click.echo(f"\n{self._asked}\nsimilar? ", nl=False)

    def _hear(self, keys: Keys | Lines) -> str:
        """A key that means something."""
        click.echo("similar? ", nl=False)
        sys.stdout.flush()
        while True:
            with self.stop.waiting():
                said = keys.read()
            if not said.strip(" \n\r\t"):
                continue
            key = MEANT.get(said)
            if key is not None and key != "?":
                click.echo(WORDS[key])
                return key
            reason = "" if key else f"{said!r} is none of {', '.join(WORDS)}.\n"
            click.echo(f"\n{reason}{HELP}\nsimilar? ", nl=False)
            sys.stdout.flush()

    def _keep(self, event: Event) -> None:
        """First the disk, then the learner."""
        self.file.append(event)
        if self.session.take(event) is not None:
            click.echo(
                "Answers contradict what earlier ones imply, so those no longer count for that. If you judge as "
                "before, but a like b and b like c does not make a like c: quit, and go on with --no-implied."
            )
        if len(self.session.log) % EVERY == 0:
            click.echo(f"\n{self.progress()}")

    def _undo(self) -> None:
        self.file.undo()
        if self.session.undo() is None:
            click.echo("There is nothing to undo.")

    def progress(self) -> str:
        """Where it stands, in words."""
        now, session = self.session.progress(), self.session
        said = [f"{now.similar + now.different} answered: {now.similar} similar, {now.different} different"]
        if now.unsure:
            said[0] += f", and {now.unsure} unsure"
        if session.implied:
            said[0] += f"; they imply {now.implied} more"
        if session.aim == "groups":
            said.append(f"groups: {now.groups}, with {now.placed} of {len(self.items.ids)} items")
        if now.foreseen:
            alike = f"{now.frequent} by the more frequent answer"
            said.append(f"foreseen: {now.right} of the last {now.foreseen} answers ({alike})")
        if session.running.count > now.foreseen:
            said += Measures.of(session.running).lines(f", of all {session.running.count}")
        share = session.relevance()
        most = [k for k in np.argsort(-share, kind="stable")[:TOP].tolist() if share[k] >= 0.005]
        if most:
            said.append(f"what matters: {', '.join(f'{self.items.features[k]} {share[k]:.2f}' for k in most)}")
        return "\n".join(said)


def _words(*words: str) -> str:
    first, *rest = words
    return " ".join([first, *map(shlex.quote, rest)])


def _again(answers: str, table: str, items: Items, log: list[Event]) -> str:
    """How to track the metric from the files alone."""
    plain = set(items.columns) == {"id", *items.features}
    chosen = [] if plain else [word for name in items.features for word in ("--features", name)]
    bad = [] if all(isinstance(event, Answer) and event.y for event in log) else ["--skip-bad"]
    return _words("ocelad track", answers, "--items", table, *chosen, *bad)
