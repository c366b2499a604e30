"""Receptive fields: which pixels the centre of a feature map depends on, and how much.

The table `receptive_field`: one row per model and chosen cut point.

The contribution of a pixel to the feature map at a cut point is the gradient of the value at the
central position, summed over its channels, with respect to that pixel: the absolute value, summed
over the channels of the image and averaged over images (Luo et al. 2016). If the number of rows or
columns is even, the position after the middle is the central one, as in the code of Ding et al.
2022.

For a share of all contributions, such as 50 %, `side_50` is the side of the smallest square around
the central pixel of the image that holds this share, and `area_50` the share of the image that it
covers; the part of a square beyond the image does not count. All are null if no pixel contributes.

Ding et al. use `log_area_50`, the area for the same share of log10(contribution + 1): it depends
on the size of values, and says less about large networks than about small ones. They also take the
positive part of values and gradients, in place of absolute values, and have no square as large as
the image.
"""

from dataclasses import dataclass

from vitscope.files.tables import Columns, Table
from vitscope.measures.columns import AT_CUT_POINT, resampled_column
from vitscope.measures.measure import (
    FigureKind,
    Measure,
    bootstrap,
    named,
    passes_of_measure,
    together,
    whole_settings,
)
from vitscope.settings.section import setting

SHARES = (20, 30, 50, 99)  # percent of all contributions
CLAIMED = 50  # the share that claims are about


def _columns_of_field_share(share: int) -> Columns:
    return {
        f"side_{share}": ("int32", f"side of the square with {share} %, in pixels"),
        f"area_{share}": ("float64", "share of the image that it covers"),
        f"low_{share}": ("float64", "lower end of the 95 % bootstrap interval over images"),
        f"high_{share}": ("float64", "upper end of the 95 % bootstrap interval over images"),
        f"log_area_{share}": ("float64", "the same area for contributions in logarithm"),
    }


TABLE = Table(
    "receptive_field",
    {
        **AT_CUT_POINT,
        "row": ("int32", "row of the central position in the feature map"),
        "column": ("int32", "column of the central position in the feature map"),
        **{
            name: column
            for share in SHARES
            for name, column in _columns_of_field_share(share).items()
        },
        **resampled_column(f"area_{CLAIMED}"),
        "image_width": ("int32", "width of the image"),
        "contributions": ("list of float64", "that of each pixel of the image, row by row"),
    },
)

# The cost of an image, in forward passes: one forward pass, and a backward pass, counted as one
# forward pass, from each cut point; by default, networks usually have at most five of these.
VIEWS = 6


@dataclass(frozen=True)
class ReceptiveFieldSettings:
    """The effective receptive field."""

    images: int = setting(50, "How many images at most its gradients are averaged over.", minimum=1)
    cut_points: list[str] = setting(
        [],
        "Names of the cut points that it is measured at; with `*` or `?`, all that a name fits "
        "and none in networks that have no such name. If empty, the last of each stage; in a "
        "network of one stage, the stem, the last and three between.",
        items={"minLength": 1},
        uniqueItems=True,
    )
    batch_size: int = setting(16, "Images whose gradients are in memory at once.", minimum=1)


RECEPTIVE_FIELD = Measure(
    needs="model",
    measure="compute:measure_receptive_field",
    table=TABLE,
    question="Where networks look",
    figures={
        "receptive_field": FigureKind("show:plot_receptive_field", "claims:CLAIMS_RECEPTIVE_FIELD")
    },
    settings=ReceptiveFieldSettings,
    arguments=together(
        whole_settings, lambda case: {"seed": case.study.analysis.seed}, named(bootstrap=bootstrap)
    ),
    takes=passes_of_measure(VIEWS, keeps="gradient"),
    about_features=True,
)
