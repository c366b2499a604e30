"""Maps of attention: where the heads of one block look in an image, and what a query looks at."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from vitscope.measures.measure import FigureKind, Given, Measure, Work, passes
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


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
            "for the token of the class, or the mean of all queries where there is none."
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


class AttentionMaps(Measure):
    """Attention of every head, and of one head for several queries, as maps over images."""

    needs = "model"
    reads_attention = True
    settings = Settings

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"attention_heads": self.kind("heads"), "attention_query": self.kind("query")}

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return which images, heads and queries are shown."""
        settings = asdict(study.section("attention_maps", Settings))
        chosen = {"shown": settings.pop("images"), "images": study.images(model)}
        return {"shows": settings, "chosen": chosen | {"seed": study.analysis.seed}}

    def work(
        self, study: "Study", model: str, part: int, images: int | None, cut_points: int
    ) -> Work | None:
        """Count a pass of each image that is shown."""
        return passes(1, study.section("attention_maps", Settings).images, images, 1)


MEASURE = AttentionMaps()
