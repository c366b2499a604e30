"""The table `spectrum`: the variance of feature maps in bands of frequency."""

import pyarrow as pa

from vitscope.files.tables import Table
from vitscope.networks.block_table import CUT_POINT

TABLE = Table(
    "spectrum",
    {
        **CUT_POINT,
        "images": (pa.int64(), "number of images"),
        "band": (pa.string(), "low, middle or high"),
        "above": (pa.float64(), "frequency above which the band begins, in units of pi"),
        "up_to": (pa.float64(), "highest frequency of the band; the root of 2 is in the corners"),
        "components": (pa.int32(), "Fourier components of a map that lie in the band"),
        "variance": (pa.float64(), "variance over space in the band, mean over channels, images"),
        "share": (pa.float64(), "share of the variance of all bands; null where it is undefined"),
        "ci_low": (pa.float64(), "lower end of the 95 % bootstrap interval of the share"),
        "ci_high": (pa.float64(), "upper end of the 95 % bootstrap interval of the share"),
    },
)
