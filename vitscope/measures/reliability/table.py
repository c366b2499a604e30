"""The table `reliability`: one row per model and bin of confidence.

Ten bins of equal width; a bin holds the images whose confidence is above `low` and not above
`high`.
"""

import pyarrow as pa

from vitscope.files.tables import Table

TABLE = Table(
    "reliability",
    {
        "model": (pa.string(), "model, as the study names it"),
        "bin": (pa.int32(), "bin of confidence, from 0"),
        "low": (pa.float64(), "confidence above which the bin begins"),
        "high": (pa.float64(), "highest confidence of the bin"),
        "images": (pa.int64(), "number of images in the bin"),
        "accuracy": (pa.float64(), "share of these whose class is found; null if there are none"),
        "confidence": (pa.float64(), "their mean confidence; null if there are none"),
    },
)
