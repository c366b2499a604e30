"""The table `lesion`: accuracy without one residual branch."""

import pyarrow as pa

from vitscope.files.tables import Table
from vitscope.measures.columns import CHANGE
from vitscope.networks.block_table import CUT_POINT

TABLE = Table(
    "lesion",
    {
        **CUT_POINT,
        "images": (pa.int64(), "number of images"),
        **CHANGE,
    },
)
