"""How alike the tokens of an image are: the mean cosine similarity of all pairs.

The table `token_similarity`: one row per model and cut point.

A token is the vector of all channels at one position of a feature map; prefix tokens, such as the
class token, do not count. The similarity is the mean cosine of all pairs of different tokens of an
image: 1 if all point the same way, 0 if they have nothing in common. It is null for maps with one
position.

A part has one row per cut point and image of a shard.
"""

from vitscope.files.tables import Table
from vitscope.measures.columns import mean_columns, per_image_columns
from vitscope.measures.measure import ByDepth, FigureKind, Measure, mean_over_images

TABLE = Table(
    "token_similarity",
    mean_columns("similarity", "mean cosine of all pairs of tokens, mean over images"),
)
PART = Table(
    "token_similarity_per_image",
    per_image_columns("similarity", "mean cosine of all pairs of tokens"),
)


TOKEN_SIMILARITY = Measure(
    needs="latents",
    table=TABLE,
    part=PART,
    question="What becomes of tokens",
    figures={
        "token_similarity": FigureKind(
            drawn_by="by_depth",
            values={
                "value": "similarity",
                "label": "Cosine similarity of tokens",
                "from_zero": False,
            },
            options=ByDepth,
        )
    },
    merge=mean_over_images("similarity"),
    seconds_per_gb=0.6,
)
