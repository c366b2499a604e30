"""Oversmoothing: how alike the tokens of an image are, and how much of them is their mean.

The table `token_similarity`: one row per model and cut point.

A token is the vector of all channels at one position of a feature map; prefix tokens, such as the
class token, do not count. The similarity is the mean cosine of all pairs of different tokens of an
image: 1 if all point the same way, 0 if they have nothing in common. It is null for maps with one
position.

A part has one row per cut point and image of a shard.

The table `mean_token`: one row per model and cut point.

A token is the vector of all channels at one position of a feature map; prefix tokens, such as the
class token, do not count. The energy of tokens is the sum of their squares; the share is what is
left of it when each token is replaced by their mean: 1 if all tokens are equal, 0 if they cancel.
It is null for maps with one position.

A part has one row per cut point and image of a shard.
"""

from vitscope.files.tables import Table
from vitscope.measures.columns import mean_columns, per_image_columns
from vitscope.measures.measure import ByDepth, FigureKind, Measure, mean_over_images

TOKEN_SIMILARITY_TABLE = Table(
    "token_similarity",
    mean_columns("similarity", "mean cosine of all pairs of tokens, mean over images"),
)
TOKEN_SIMILARITY_PART = Table(
    "token_similarity_per_image",
    per_image_columns("similarity", "mean cosine of all pairs of tokens"),
)

TOKEN_SIMILARITY = Measure(
    needs="latents",
    table=TOKEN_SIMILARITY_TABLE,
    part=TOKEN_SIMILARITY_PART,
    question="What becomes of tokens",
    figures={"token_similarity": FigureKind(options=ByDepth)},
    merge=mean_over_images("similarity"),
    seconds_per_gb=0.6,
)

_MEANING_OF_MEAN_TOKEN = "share of the energy of all tokens that their mean has"
MEAN_TOKEN_TABLE = Table(
    "mean_token", mean_columns("share", f"{_MEANING_OF_MEAN_TOKEN}, mean over images")
)
MEAN_TOKEN_PART = Table("mean_token_per_image", per_image_columns("share", _MEANING_OF_MEAN_TOKEN))

MEAN_TOKEN = Measure(
    needs="latents",
    table=MEAN_TOKEN_TABLE,
    part=MEAN_TOKEN_PART,
    question="What becomes of tokens",
    figures={"mean_token": FigureKind(options=ByDepth)},
    merge=mean_over_images("share"),
    seconds_per_gb=0.6,
)
