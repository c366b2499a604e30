"""Position similarity: how alike the position embeddings of a network are.

The table `position_similarity`: one row per model and position.

The position embedding is what the network adds to its tokens that differs between positions and is
the same for all images, as the network uses it, for example after resizing. Tokens without a
position, such as the class token, are left out. If there are more positions than
`analysis.position_similarity.positions`, only every `step`-th row and column are compared and have
rows.

A cosine is null if one of the two embeddings is zero.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.measure import FigureKind, Measure, own_settings
from vitscope.settings.section import setting

TABLE = Table(
    "position_similarity",
    {
        "model": ("string", "model, as the study names it"),
        "embedding": ("string", "parameter that is added, or else the module that adds it"),
        "height": ("int32", "rows of positions that are compared"),
        "width": ("int32", "columns of positions that are compared"),
        "step": ("int32", "how far apart in the network rows and columns are; 1 for all"),
        "row": ("int32", "row of the position among those that are compared"),
        "column": ("int32", "column of the position among those that are compared"),
        "norm": ("float64", "norm of its embedding"),
        "to_neighbours": ("float64", "mean cosine with those above, below, left and right"),
        "to_others": ("float64", "mean cosine with all others"),
        "products": ("list of float32", "dot product with every position, row by row"),
        "cosines": ("list of float32", "cosine with every position, row by row"),
    },
)


@dataclass(frozen=True)
class Settings:
    """The similarity of position embeddings."""

    positions: int = setting(
        2048,
        "If there are more positions, only every second row and column are compared, or every "
        "third, and so on.",
        minimum=4,
    )


POSITION_SIMILARITY = Measure(
    needs="network",
    table=TABLE,
    question="What the first layer and positions hold",
    figures={"position_similarity": FigureKind(), "position_products": FigureKind()},
    settings=Settings,
    arguments=own_settings,
)
