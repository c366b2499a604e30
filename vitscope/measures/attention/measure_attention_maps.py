"""Maps of attention: where the heads of one block look in an image, and what a query looks at."""

from dataclasses import dataclass

from vitscope.measures.measure import Case, FigureKind, Given, Measure, own_settings, passes_of
from vitscope.settings.section import setting


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


def choose_images(case: Case) -> Given:
    """Depend on which images, heads and queries are shown."""
    shows = own_settings(case)
    chosen = {"shown": shows.pop("images"), "images": case.study.images(case.model)}
    return {"shows": shows, "chosen": chosen | {"seed": case.study.analysis.seed}}


MEASURE = Measure(
    needs="model",
    figures={"attention_heads": FigureKind("heads"), "attention_query": FigureKind("query")},
    settings=Settings,
    arguments=choose_images,
    takes=passes_of(batch=1),
    reads_attention=True,
)
