"""Position similarity: how alike the position embeddings of a network are."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from vitscope.measures.measure import FigureKind, Given, Measure
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


@dataclass(frozen=True)
class Settings:
    """The similarity of position embeddings."""

    positions: int = setting(
        2048,
        (
            "Of more positions than so many, those of every second row and column are compared, or "
            "of every third, and so on."
        ),
        minimum=4,
    )


class PositionSimilarity(Measure):
    """The similarity of the position embeddings of a network with each other."""

    needs = "network"
    settings = Settings

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"position_similarity": self.kind(), "position_products": self.kind("products")}

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return how many positions are compared at most."""
        return asdict(study.section("position_similarity", Settings))


MEASURE = PositionSimilarity()
