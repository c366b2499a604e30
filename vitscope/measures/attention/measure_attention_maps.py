"""Maps of attention: where the heads of one block look in an image, and what a query looks at.

The table `attention_maps`: one row per model, image, query and head that is shown.

A map is the attention of a query to each key, as the network computes it: the values of a query sum
to one, including keys without a place in the image, such as the class token, which no map shows.
There is no attention to keys outside the window of a query.

The subject is where a [mask](data.md#masks) of the image is white.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Given,
    Measure,
    images_to_show,
    own_settings,
    passes_of,
)
from vitscope.settings.section import optional, setting

TABLE = Table(
    "attention_maps",
    {
        "model": ("string", "model, as the study names it"),
        "name": ("string", "module that computes the attention"),
        "attention": ("int32", "which attention of the network, 0 for the first"),
        "image": ("int64", "row of the image in its split"),
        "shows": ("string", "heads: every head of one query; queries: one head of several"),
        "of": ("string", "whose attention: class token, mean of queries, or query"),
        "query_row": ("float64", "row of the query in pixels of the image, if it is one"),
        "query_column": ("float64", "its column"),
        "head": ("int32", "head, 0 for the first"),
        "height": ("int32", "rows of the map"),
        "width": ("int32", "columns of the map"),
        "weights": ("list of float64", "attention to each position, row by row"),
        "mass": ("float64", "share of the attention within the drawn line, if any"),
        "on_subject": ("float64", "share of the map that is on the subject; null without a mask"),
        "subject": ("float64", "share of the image that is its subject; null without a mask"),
        "picture": ("binary", "the image, as a PNG file"),
        "class_name": ("string", "class that the image is taken for; null without classes"),
        "confidence": ("float64", "probability of that class"),
    },
)


@dataclass(frozen=True)
class Settings:
    """Maps of attention over images."""

    images: int = setting(2, "How many images are shown, the first of those measured.", minimum=1)
    block: str | int | None = setting(
        None,
        (
            "Whose attention is shown: the name of a module, or a number from 0 on, from the end "
            "if below 0; null for the last that has queries with a place."
        ),
    )
    query: list[float] | None = setting(
        None,
        (
            "Whose attention all heads are shown of, as [row, column] in pixels of the image; null "
            "for the class token, or the mean of all queries where there is none."
        ),
        items={"minimum": 0},
        minItems=2,
        maxItems=2,
    )
    queries: list[list[float]] = setting(
        [],
        (
            "Whose attention one head is shown of, each as [row, column] in pixels of the image; "
            "empty for the middles of its four quarters."
        ),
        items={"items": {"type": "number", "minimum": 0}, "minItems": 2, "maxItems": 2},
    )
    head: int = setting(0, "Which head that is, from 0 on.", minimum=0)
    mass: float | None = setting(
        None,
        (
            "The share of the attention that the brightest positions of a map hold, around which a "
            "line is drawn; null for no line."
        ),
        exclusiveMinimum=0,
        exclusiveMaximum=1,
    )


@dataclass(frozen=True)
class Options:
    """How maps are drawn."""

    over: bool | None = optional(
        "For `attention_heads` and `attention_query`: whether maps lie over the image; false if "
        "left out."
    )
    own_scales: bool | None = optional(
        "For `attention_heads` and `attention_query`: whether each map has a scale of its own, up "
        "to its largest value; if left out, all maps of a model share one."
    )


def choose_images(case: Case) -> Given:
    """Depend on which images, heads and queries are shown."""
    shows = own_settings(case)
    del shows["images"]
    return {"shows": shows, "chosen": images_to_show(case)}


ATTENTION_MAPS = Measure(
    needs="model",
    table=TABLE,
    question="Where networks look",
    figures={
        "attention_heads": FigureKind(options=Options),
        "attention_query": FigureKind(options=Options),
    },
    settings=Settings,
    arguments=choose_images,
    takes=passes_of(batch=1),
    reads_attention=True,
)
