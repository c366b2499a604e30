"""The table `lesion`: one row per model and unit that can be removed.

A unit is a cut point with a residual branch, whose output is replaced by zeros; cut points without
one (stem, pools) have no row. The interval is for the difference on the same images, and null for a
single image.
"""

from vitscope.files.tables import Table
from vitscope.measures.columns import CHANGE
from vitscope.networks.finding.cut_point_columns import CUT_POINT

TABLE = Table(
    "lesion",
    {
        **CUT_POINT,
        "images": ("int64", "number of images"),
        **CHANGE,
    },
)
