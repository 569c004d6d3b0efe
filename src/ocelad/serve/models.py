"""What requests to the service look like: checked on the way in, and shown in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

LARGEST = 1e30
"""As in tables, so that exported answers can be read back."""

WIDEST = 100_000
MANY = 1000
"""Comparisons in one request."""

Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
Point = Annotated[list[Number], Field(min_length=1, max_length=WIDEST, fail_fast=True)]
"""Only the first wrong number is told: a million of them would take a minute to tell."""

Id = Annotated[str, Field(min_length=1, max_length=200, examples=["owl 7"], description="The id of an item.")]
RequestId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        pattern=r"^[\x20-\x7e]+$",
        examples=["8d1f6c5e"],
        description="Chosen by the client: a request that comes again with the same is taken once.",
    ),
]
By = Annotated[
    str | None, Field(max_length=64, pattern=r"^[^\x00-\x1f\x7f]*$", examples=["Ann"], description="Who answered.")
]


def _no_bool(value: Any) -> Any:
    if isinstance(value, (bool, float)):  # which would be equal to 1
        raise ValueError("it must be the integer 1 (similar) or -1 (different)")
    return value


Y = Annotated[
    Literal[1, -1], BeforeValidator(_no_bool), Field(examples=[1], description="1 similar, -1 different.")
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ByIds(_Strict):
    """Two items, by their ids."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"a": "owl 7", "b": "cat 2"}]})
    a: Id
    b: Id


class ByFeatures(_Strict):
    """Two points."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"x": [0.1, 2.0], "z": [0.3, 1.5]}]})
    x: Point
    z: Point


class ComparisonOfItems(ByIds):
    """Two items are similar, or different."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"request_id": "8d1f6c5e", "a": "owl 7", "b": "cat 2", "y": -1, "by": "Ann"}]
        }
    )
    request_id: RequestId
    y: Y
    by: By = None


class ComparisonOfPoints(ByFeatures):
    """Two points are similar, or different."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"request_id": "8d1f6c5f", "x": [0.1, 2.0], "z": [0.3, 1.5], "y": 1}]}
    )
    request_id: RequestId
    y: Y
    by: By = None


class Skip(ByIds):
    """Unsure about two items: they are asked about again later."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"request_id": "8d1f6c60", "a": "owl 7", "b": "cat 2", "by": "Ann"}]}
    )
    request_id: RequestId
    by: By = None


class Change(_Strict):
    """From here on, someone judges differently."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"request_id": "8d1f6c61", "by": "Ann"}]})
    request_id: RequestId
    by: By = None


ITEMS_FORM, POINTS_FORM, MANY_FORM = FORMS = ("by id", "by features", "several")


def _form(value: Any) -> str | None:
    """Which of the forms a body is meant to have, so that an error is about that one alone."""
    if isinstance(value, list):
        return MANY_FORM
    if isinstance(value, dict):
        return POINTS_FORM if "x" in value or "z" in value else ITEMS_FORM
    return ITEMS_FORM if isinstance(value, ByIds) else POINTS_FORM


Comparison = Annotated[
    Annotated[ComparisonOfItems, Tag(ITEMS_FORM)] | Annotated[ComparisonOfPoints, Tag(POINTS_FORM)],
    Discriminator(_form),
]
Comparisons = Annotated[
    Annotated[ComparisonOfItems, Tag(ITEMS_FORM)]
    | Annotated[ComparisonOfPoints, Tag(POINTS_FORM)]
    | Annotated[list[Comparison], Field(min_length=1, max_length=MANY), Tag(MANY_FORM)],
    Discriminator(_form),
]
Pair = Annotated[Annotated[ByIds, Tag(ITEMS_FORM)] | Annotated[ByFeatures, Tag(POINTS_FORM)], Discriminator(_form)]
Pairs = Annotated[
    Annotated[ByIds, Tag(ITEMS_FORM)]
    | Annotated[ByFeatures, Tag(POINTS_FORM)]
    | Annotated[list[Pair], Field(min_length=1, max_length=MANY), Tag(MANY_FORM)],
    Discriminator(_form),
]


class Embedding(_Strict):
    """Points, or items, to be given coordinates."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": ["owl 7", "cat 2"], "dimensions": 2}]})
    items: Annotated[list[Id], Field(max_length=10 * MANY)] | None = None
    points: Annotated[list[Point], Field(max_length=MANY)] | None = None
    dimensions: Annotated[int, Field(ge=1, le=WIDEST)] | None = None


class Neighborhood(_Strict):
    """An item, or a point, whose nearest items are wanted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"item": "owl 7", "k": 3}]})
    item: Id | None = None
    point: Point | None = None
    k: Annotated[int, Field(ge=1, le=MANY)] = 5
