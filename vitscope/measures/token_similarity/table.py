"""The table `token_similarity`: one row per model and cut point.

A token is the vector of all channels at one position of a feature map; prefix tokens, such as the
class token, do not count. The similarity is the mean cosine of all pairs of different tokens of an
image: 1 if all point the same way, 0 if they have nothing in common. It is null for maps with one
position.

A part has one row per cut point and image of a shard.
"""

from vitscope.files.tables import Table
from vitscope.networks.finding.cut_point_columns import CUT_POINT

TABLE = Table(
    "token_similarity",
    {
        **CUT_POINT,
        "images": ("int64", "number of images"),
        "similarity": ("float64", "mean cosine of all pairs of tokens, mean over images"),
        "ci_low": ("float64", "lower end of the 95 % bootstrap interval over images"),
        "ci_high": ("float64", "upper end of the 95 % bootstrap interval over images"),
    },
)

PART = Table(
    "token_similarity_per_image",
    {
        "index": ("int32", "position of the cut point, 0 for the stem"),
        "image": ("int64", "position of the image among those that are measured"),
        "similarity": ("float64", "mean cosine of all pairs of tokens"),
    },
)
