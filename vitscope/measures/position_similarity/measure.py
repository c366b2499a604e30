"""Position similarity: how alike the position embeddings of a network are."""

from dataclasses import dataclass

from vitscope.measures.measure import FigureKind, Measure, own_settings
from vitscope.settings.section import setting


@dataclass(frozen=True)
class Settings:
    """The similarity of position embeddings."""

    positions: int = setting(
        2048,
        (
            "If there are more positions, only every second row and column are compared, or every "
            "third, and so on."
        ),
        minimum=4,
    )


MEASURE = Measure(
    needs="network",
    figures={"position_similarity": FigureKind(), "position_products": FigureKind("products")},
    settings=Settings,
    arguments=own_settings,
)
