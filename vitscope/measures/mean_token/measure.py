"""How much of the tokens of an image is their mean: the share of it in all of their energy.

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

_MEANING = "share of the energy of all tokens that their mean has"
TABLE = Table("mean_token", mean_columns("share", f"{_MEANING}, mean over images"))
PART = Table("mean_token_per_image", per_image_columns("share", _MEANING))

MEAN_TOKEN = Measure(
    needs="latents",
    table=TABLE,
    part=PART,
    question="What becomes of tokens",
    figures={
        "mean_token": FigureKind(
            drawn_by="by_depth",
            values={"value": "share", "label": "Share of the mean token"},
            options=ByDepth,
        )
    },
    merge=mean_over_images("share"),
    seconds_per_gb=0.6,
)
