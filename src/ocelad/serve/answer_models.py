"""What answers of the service look like, for the OpenAPI document."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Added(BaseModel):
    """The number of an entry of the log, which is on the disk; ``known`` if it was there before."""

    id: int
    request_id: str
    known: bool


class Undone(BaseModel):
    """The number of the entry that takes another one back."""

    id: int
    undoes: int
    known: bool


class LogEntry(BaseModel):
    """An entry of the log."""

    id: int
    kind: Literal["comparison", "skip", "change", "undo"]
    request_id: str | None
    a: str | None
    b: str | None
    x: list[float] | None
    z: list[float] | None
    y: int | None
    by: str | None
    at: str
    undone: bool
    undoes: int | None


class LogPage(BaseModel):
    """Entries of the log, in order; ``next`` is what ``after`` must be for those that follow."""

    comparisons: list[LogEntry]
    next: int | None


class Score(BaseModel):
    """How far apart two points are, and how likely it is that they are similar."""

    distance: float
    probability: float
    similar: bool


class Estimated(BaseModel):
    """After how many comparisons, and which entry of the log, the metric was as it is used here."""

    t: int
    version: int


class OneScore(Score, Estimated):
    """Of one pair."""

    threshold: float


class Scores(Estimated):
    """Of several pairs."""

    threshold: float
    scores: list[Score]


class Coordinates(Estimated):
    """Coordinates in which the learned distance is Euclidean."""

    coordinates: list[list[float]]


class Neighbor(BaseModel):
    """An item, and how far it is."""

    id: str
    distance: float


class Neighbors(Estimated):
    """The nearest first."""

    neighbors: list[Neighbor]


class DecisionOut(BaseModel):
    """Log odds that two are similar: slope g(threshold - d^2) + shift, g compressing margins, or the identity."""

    threshold: float
    slope: float
    shift: float
    compressed: bool


class MetricOut(Estimated):
    """The metric |L (x - z)|; pairs that are closer than the threshold are similar."""

    features: list[str]
    components: list[list[float]]
    threshold: float
    decision: DecisionOut


class Item(BaseModel):
    """An item to be shown."""

    id: str
    text: str | None = None
    image: str | None = None
    cells: list[tuple[str, str]]


class Question(BaseModel):
    """Are these two similar?"""

    a: Item
    b: Item


class Questions(BaseModel):
    """What to ask next; ``done`` if there is nothing left."""

    questions: list[Question]
    done: bool


class Map(Estimated):
    """All items in two dimensions, and the group that each is known to be in (-1: none yet)."""

    ids: list[str]
    x: list[float]
    y: list[float]
    labels: list[str]
    group: list[int]
    values: list[str] | None


class State(BaseModel):
    """How far a stream is, how right it was, which experts and features count, and who said what."""

    model_config = ConfigDict(extra="allow")
    stream: str
    t: int
    version: int
    last: int
    track: str


class StreamInfo(BaseModel):
    """A stream, and its last entry of the log."""

    name: str
    last: int


class Streams(BaseModel):
    streams: list[StreamInfo]


class Info(BaseModel):
    """What this service is about."""

    version: str
    title: str
    items: int
    columns: list[str]
    features: list[str]
    kind: str
    aim: str
    repeats: int
    auth: bool


class Link(BaseModel):
    """A link that lets one person in, once."""

    link: str


class Health(BaseModel):
    status: str


class Problem(BaseModel):
    """What went wrong (RFC 9457), and with which field."""

    model_config = ConfigDict(extra="allow")
    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str | None = None
